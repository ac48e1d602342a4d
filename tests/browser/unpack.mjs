// Unpacks the headless Chromium from npm, and the libraries that a machine may lack, into node_modules/.chromium.
// Setup runs it once; look.mjs only reads the result, in any number of processes.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { inflate } from "@sparticuz/chromium";

const MODULES = join(import.meta.dirname, "node_modules");

process.env.TMPDIR = join(MODULES, ".chromium"); // where `inflate` puts them
mkdirSync(process.env.TMPDIR);
for (const packed of ["chromium.br", "al2023.tar.br"]) {
  await inflate(join(MODULES, "@sparticuz", "chromium", "bin", packed));
}
