// Light, tint and heat in the explorer as a whole: the scale bar, and photos that cannot be lit.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { percent } from '../../vit_viz/explorer/labels.js';
import { tableIndex } from '../../vit_viz/explorer/paint.js';
import { makeTrace } from './oracle.js';
import { expected, open } from './visit.js';

test('the scale bar ends at a value that this map reaches, and says where peaks are clipped', async () => {
  const { parts, show, explorer, browser, trace } = open();
  await show();
  explorer.change({ query: '1,1', head: 2, layer: 0, scale: 'layer', clip: false });
  browser.pass(16);
  const heads = expected(trace, 0).map((head) => head[2 + 7].slice(2));
  const own = Math.max(...heads[2]);
  const all = heads.flat();
  const [low, high] = [Math.min(...all), Math.max(...all)];
  assert.equal(parts.high.textContent, `${percent(Math.fround(own))} of its attention`);
  assert.equal(parts.unit.textContent, '');
  const reached = tableIndex(own, low, high);
  assert.ok(reached < 250);
  assert.ok(Math.abs(parts.colors.canvas.data.width - (reached + 1)) <= 1);
  const tops = [0, 1, 2].map((l) => Math.max(...expected(trace, l).flatMap((head) => head[2 + 7].slice(2))));
  const layer = tops.indexOf(Math.max(...tops));
  explorer.change({ clip: true, scale: 'shared', head: 'max', layer });
  browser.pass(16);
  assert.match(parts.high.textContent, /^≥ .*% of its attention$/);
  assert.equal(parts.unit.textContent, `max ${percent(Math.fround(tops[layer]))}`);
  assert.equal(parts.colors.canvas.data.width, 256);
  explorer.change({ direction: 'column', scale: 'own' });
  browser.pass(16);
  assert.match(parts.high.textContent, /% of each patch’s attention$/);
  assert.ok(parts.details.hasAttribute('data-own'));
  assert.match(parts.details.textContent, /Scale: each head/);
  explorer.change({ norm: true, scale: 'layer', clip: false });
  browser.pass(16);
  assert.match(parts.high.textContent, /^[\d.]+ weight \u00d7 size of the value$/);
  assert.ok(!parts.details.hasAttribute('data-own'));
});

test('a photo that cannot be lit is tinted, and light cannot be chosen', async () => {
  const { parts, show, explorer, browser, element } = open({ unlit: 'too dark' });
  await show();
  const input = (/** @type {string} */ value) =>
    /** @type {any} */ (element.querySelectorAll('[name$="-style"]').find((one) => one.value === value));
  assert.deepEqual(
    [input('light').disabled, input('light').checked, input('tint').checked],
    [true, false, true],
  );
  assert.match(parts.details.textContent, /Tint, smooth\. This photo is too dark for light: tint\.$/);
  assert.equal(explorer.view?.style, 'light'); // the next photo may be lit
  const colours = new Set(new Uint32Array(parts.map.canvas.data.data.buffer).map((p) => p & 0xffffff));
  assert.deepEqual([...colours], [0x4ad5ff]);
  explorer.show({ ...makeTrace({ trace: 'x' }) });
  browser.pass(16);
  assert.equal(input('light').disabled, false);
  assert.ok(input('light').checked);
});
