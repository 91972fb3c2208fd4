// Bundles src/index.ts into one file without dependencies, for browsers and for Node.
import { build } from "esbuild";

const [, , outfile] = process.argv;
await build({
  entryPoints: ["src/index.ts"],
  outfile,
  bundle: true,
  format: "esm",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  banner: { js: "// Built from clients/typescript by `make client`; do not edit." },
});
