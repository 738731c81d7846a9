// Every script is formatted, linted and typed: what `npm run check` looks at is all there is.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { ESLint } from 'eslint';
import { getFileInfo } from 'prettier';
import typescript from 'typescript';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** Written in AssemblyScript: its compiler checks its types, and `engine_kernels.test.js` that it has compiled. */
const KERNELS = 'vit_viz/browser/*.ts';
/** Made of the packages by esbuild, and what it makes them of: `preact.test.js` compares. */
const BUNDLED = /^vit_viz[/]web[/]kit[/]preact[.]/;
const files = ['vit_viz', 'tests', 'benchmarks', 'training', 'assets']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${String(name)}`),
  )
  .filter(
    (name) =>
      /[.][cm]?[jt]sx?$/.test(name) &&
      !BUNDLED.test(name) &&
      !(dirname(name) === dirname(KERNELS) && name.endsWith('.ts')),
  );

/** What a command of package.json is told to look at. */
function targets(/** @type {string} */ name) {
  return scripts[name]
    .split(' ')
    .slice(1)
    .map((/** @type {string} */ word) => word.replaceAll('"', ''));
}

/** Whether a target is this file, a folder that holds it, or the pattern of a folder and whatever is below it. */
function covers(/** @type {string} */ target, /** @type {string} */ file) {
  if (target.endsWith('/**/*.js')) return file.startsWith(target.slice(0, -7)) && file.endsWith('.js');
  if (target.endsWith('/*.js')) return dirname(file) === dirname(target) && file.endsWith('.js');
  return file === target || file.startsWith(`${target}/`);
}

/** Files that no target of a command covers. */
function missed(/** @type {string} */ command) {
  const all = targets(command);
  return files.filter((file) => !all.some((/** @type {string} */ target) => covers(target, file)));
}

test('there are scripts in the package, the tests and the benchmarks, and all are modules named .js', () => {
  for (const folder of ['vit_viz/explorer/', 'vit_viz/web/explain/', 'tests/js/', 'benchmarks/'])
    assert.ok(files.some((file) => file.startsWith(folder)));
  assert.deepEqual(
    files.filter((file) => !file.endsWith('.js')),
    [],
  );
});

test('every script is formatted', async () => {
  assert.deepEqual(missed('format:check'), []);
  assert.deepEqual(missed('format'), []);
  for (const command of ['format', 'format:check']) assert.ok(targets(command).includes(KERNELS));
  for (const file of files) assert.equal((await getFileInfo(join(root, file))).ignored, false, file);
});

test('every script is linted', async () => {
  assert.deepEqual(missed('lint'), []);
  const eslint = new ESLint({ cwd: root });
  for (const file of files) {
    assert.equal(await eslint.isPathIgnored(join(root, file)), false, file);
    assert.ok((await eslint.calculateConfigForFile(join(root, file))).rules.eqeqeq, file);
  }
});

test('the types of every script are checked', () => {
  const config = typescript.readConfigFile(join(root, 'tsconfig.json'), typescript.sys.readFile);
  const parsed = typescript.parseJsonConfigFileContent(config.config, typescript.sys, root);
  assert.ok(parsed.options.checkJs && parsed.options.strict);
  const typed = new Set(parsed.fileNames.map((name) => relative(root, name)));
  assert.deepEqual(
    files.filter((file) => !typed.has(file)),
    [],
  );
  for (const file of files)
    assert.doesNotMatch(readFileSync(join(root, file), 'utf8'), /^\s*\/\/\s*@ts-(?:nocheck|ignore)/m, file);
});

test('one command runs all of it', () => {
  for (const part of ['format:check', 'lint', 'types'])
    assert.match(scripts.check, new RegExp(`npm run ${part}\\b`));
  assert.match(scripts.types, /^tsc --project tsconfig.json$/);
});

test('one module alone reads and writes the address bar', () => {
  const ours = files.filter((file) => file.startsWith('vit_viz/'));
  const touching = ours.filter((file) => /\b(?:location|history|popstate)\b/.test(code(file)));
  assert.deepEqual(touching, ['vit_viz/ui/visit/link.js']);
});

test('of the page one module alone knows the server; the Survey tab has routes of its own', () => {
  const others = files.filter((file) => /^vit_viz[/]web[/](?!survey[/])/.test(file));
  const naming = others.filter((file) =>
    /[/]vit_viz[/]|[/]api[/]|(?<![.]|async )\bfetch(?:ed)?\(|\bfetched\b.*elements|\bgradio_/.test(
      code(file),
    ),
  );
  assert.deepEqual(naming, ['vit_viz/web/kit/server.js']);
  const entries = others.filter((file) => /from '.*[/]server[.]js'/.test(code(file)));
  assert.deepEqual(entries, []); // whoever begins the page gives it its source
});

/** A script without its comments. */
function code(/** @type {string} */ file) {
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*.*?\*\//gs, '');
  return text.replace(/(?:^|\s)\/\/ .*$/gm, '');
}
