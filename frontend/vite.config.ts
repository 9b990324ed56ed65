// How the page is built: everything bundled into a few files with fixed names, so that the result is committed
// and changes only where its sources did.

import { createHash } from "node:crypto";
import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig, type Plugin } from "vite";

const ROOT = import.meta.dirname;
// What lies here and leaves the page as it is. tests/page/test_page.py knows the same list.
const NOT_BUILT = ["node_modules", "tests", "GLOSSARY.md", "biome.json"];

/** One hash over the sources: of a line `sha256  path` for each file, sorted by path. */
function hashSources(): string {
  const paths = readdirSync(ROOT, { withFileTypes: true }).flatMap(filesOf).sort();
  return sha256(paths.map((path) => `${sha256(readFileSync(join(ROOT, path)))}  ${path}\n`).join(""));
}

function filesOf(entry: Dirent): string[] {
  if (entry.name.startsWith(".") || NOT_BUILT.includes(entry.name)) return [];
  const path = join(entry.parentPath, entry.name);
  if (entry.isDirectory()) return readdirSync(path, { withFileTypes: true }).flatMap(filesOf);
  return [relative(ROOT, path).replaceAll("\\", "/")];
}

function sha256(data: string | Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}

// A test compares this file with the sources: a page that was not rebuilt cannot go unnoticed.
const writeHash: Plugin = {
  name: "sources-hash",
  generateBundle() {
    this.emitFile({ type: "asset", fileName: "sources.sha256", source: `${hashSources()}\n` });
  },
};

export default defineConfig({
  base: "./",
  plugins: [writeHash],
  build: {
    outDir: "../triton_viz/static",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: { entryFileNames: "assets/page.js", assetFileNames: "assets/page[extname]" },
    },
  },
  // `npm run dev` shows the sources on the trace of a server that runs already.
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
});
