// Runs the tests of the files that are named, or of all, in one process: to start one for each file takes longer than most tests.

import { readdirSync } from 'node:fs';
import { basename } from 'node:path';

const named = process.argv.slice(2).map((path) => basename(path));
const all = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.test.js'));
for (const name of named.length ? named : all.sort()) await import(`./${name}`);
