// What is bundled is what the lock file names, and nothing else.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { buildSync } from 'esbuild';

import { read } from './browser.js';

test('preact.js is what `npm run preact` makes of the packages', () => {
  const [, ...options] = JSON.parse(read('../../package.json')).scripts.preact.split(' ');
  assert.deepEqual(options.slice(1, -1), ['--bundle', '--format=esm', '--minify', '--target=es2022']);
  const { outputFiles } = buildSync({
    entryPoints: [options[0]],
    bundle: true,
    format: 'esm',
    minify: true,
    target: 'es2022',
    write: false,
  });
  assert.equal(read('../../vit_viz/web/kit/preact.js'), outputFiles[0].text);
});
