// Light, tint and heat in the explorer as a whole: the scale bar, and photos that cannot be lit.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { describeFrame, percent } from '../../vit_viz/explorer/labels.js';
import { makeTrace } from './oracle.js';
import { expected, open } from './visit.js';

test('the large photo has a scale of its own, and its bar says so, and where peaks are clipped', async () => {
  const { parts, show, explorer, browser, trace } = open();
  await show();
  explorer.change({ query: '1,1', head: 2, layer: 0, scale: 'layer', clip: false });
  browser.pass(16);
  const heads = expected(trace, 0).map((head) => head[2 + 7].slice(2));
  const own = Math.max(...heads[2]);
  const bytes = [...new Uint32Array(parts.map.canvas.data.data.buffer)].map((pixel) => pixel >>> 24);
  assert.deepEqual([Math.min(...bytes), Math.max(...bytes)], [0, 255]); // lit fully, though another head of the layer has more
  assert.ok(own < Math.max(...heads.flat()));
  assert.equal(parts.low.textContent, percent(Math.fround(Math.min(...heads[2]))));
  assert.equal(parts.high.textContent, `${percent(Math.fround(own))} of its attention`);
  assert.equal(parts.unit.textContent, 'its own scale');
  const { frame, view } = /** @type {any} */ (explorer);
  describeFrame(parts, frame, view, { low: 0.1, high: 0.25, most: 0.5 }, null);
  assert.deepEqual(
    [parts.high, parts.unit].map(({ textContent }) => textContent),
    ['≥ 25% of its attention', 'its own scale, max 50%'],
  );
  assert.equal(parts.colors.canvas.data.width, 256);
  explorer.change({ direction: 'column', scale: 'own' });
  browser.pass(16);
  assert.match(parts.high.textContent, /% of each patch’s attention$/);
  assert.ok(parts.details.hasAttribute('data-own'));
  assert.match(parts.details.textContent, /cells: each head/);
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
