// Builds src/sidelight/report/assets/plotly.min.js. Run by `make drawing`, only when plotly.js is upgraded.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const [, , folder] = process.argv;
const { version } = JSON.parse(await readFile("node_modules/plotly.js/package.json", "utf8"));
const banner = `/*!
 * plotly.js v${version}, the parts that drawing/entry.cjs names
 * Copyright 2012-2026, Plotly, Inc.
 * Licensed under the MIT license; it and those of the libraries inside are in NOTICE
 */`;

// Attributes explain themselves to people who read the source; a page does not need that.
const string = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/.source;
const joined = `\\[(?:\\s|,|${string})*\\]\\s*\\.join\\([^)]*\\)`;
const explanation = new RegExp(`^\\s*description:\\s*(?:${string}|${joined}),?[ \\t]*$`, "gm");
const withoutExplanations = {
  name: "without-explanations",
  setup({ onLoad }) {
    onLoad({ filter: /plotly\.js[\\/]src[\\/].*\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace(explanation, ""),
    }));
  },
};

const { metafile } = await build({
  entryPoints: ["entry.cjs"],
  outfile: `${folder}/plotly.min.js`,
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "Plotly",
  target: "es2019",
  charset: "ascii",
  define: { global: "window", "define.amd": "false" },
  loader: { ".css": "empty" },
  legalComments: "none",
  banner: { js: banner },
  plugins: [withoutExplanations],
  metafile: true,
});

const licenceOf = async (name) => {
  const home = `node_modules/${name}`;
  const about = JSON.parse(await readFile(`${home}/package.json`, "utf8"));
  const file = (await readdir(home)).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? (await readFile(`${home}/${file}`, "utf8")).trim() : `${about.license} licence`;
  return `${name} ${about.version}\n\n${text.replace(/[ \t]+$/gm, "")}\n`;
};
const [{ inputs }] = Object.values(metafile.outputs);
const places = Object.entries(inputs).filter(([path, part]) => part.bytesInOutput > 0 && !path.endsWith(".css"));
const names = places.flatMap(([path]) => path.match(/(?<=.*node_modules\/)(@[^/]+\/)?[^/]+/g)?.slice(-1) ?? []);
const licences = await Promise.all([...new Set(names)].sort().map(licenceOf));
const head = "plotly.min.js holds parts of plotly.js and of the libraries it uses. Their licences:\n";
await writeFile(`${folder}/NOTICE`, [head, ...licences].join(`\n${"-".repeat(80)}\n\n`));
