// Bundles the studio's page into one folder: studio.js, studio.css, the icon and the licences of what is inside.
import { gzipSync } from "node:zlib";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const LIMIT = 150_000;
const [, , folder] = process.argv;
const notice = "/*! Built from studio/ by `make studio`; do not edit. Licences of what is inside: NOTICE */";
const { metafile } = await build({
  entryPoints: { studio: "src/main.tsx" },
  outdir: folder,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  banner: { js: notice, css: notice },
});

const licenceOf = async (name) => {
  const { version } = JSON.parse(await readFile(`node_modules/${name}/package.json`, "utf8"));
  const text = (await readFile(`node_modules/${name}/LICENSE`, "utf8")).trim();
  return `${name} ${version}\n\n${text.replace(/[ \t]+$/gm, "")}\n`;
};
const names = Object.keys(metafile.inputs).flatMap((path) => path.match(/(?<=node_modules\/)(@[^/]+\/)?[^/]+/g) ?? []);
const licences = await Promise.all([...new Set(names)].sort().map(licenceOf));
await mkdir(folder, { recursive: true });
const head = "studio.js holds these libraries. Their licences:\n";
await writeFile(`${folder}/NOTICE`, [head, ...licences].join(`\n${"-".repeat(80)}\n\n`));
await copyFile("src/icon.svg", `${folder}/icon.svg`);

let bytes = 0;
for (const name of ["studio.js", "studio.css"]) {
  bytes += gzipSync(await readFile(`${folder}/${name}`), { level: 9 }).length;
}
console.log(`${(bytes / 1000).toFixed(1)} kB gzipped of ${LIMIT / 1000} kB`);
if (bytes > LIMIT) process.exit(1);
