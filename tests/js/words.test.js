// Words, sizes and what is told: the parts around the pictures.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  MassBars,
  about,
  cellText,
  percent,
  spokenFrame,
  valueText,
  caption,
  details,
  finding,
  mark,
  title,
} from '../../vit_viz/explorer/labels.js';
import { cellSize, fitPanels, placePhoto, revealCell } from '../../vit_viz/explorer/layout.js';
import { fileName } from '../../vit_viz/explorer/save.js';
import { initialView } from '../../vit_viz/explorer/state.js';
import { Browser, Element } from './browser.js';
import { frameOf, made, trace } from './framed.js';
import { makeTrace } from './oracle.js';

const any = (/** @type {unknown} */ value) => /** @type {any} */ (value);

// --- words

test('a token that is no patch is explained where it asks, by what this model does with it, and how patches are named', () => {
  const of = (/** @type {string} */ pooling) => ({
    ...trace,
    prefix: ['class', 'register 0', 'distillation'],
    pooling,
  });
  const named = 'Patches are named by (row, column), counted from 0 at the top left.';
  assert.ok(
    about('class', of('class')).endsWith(`adds it to the patches, and reads its answer from it. ${named}`),
  );
  assert.match(about('class', of('mean')), /elsewhere[.] Patches/);
  assert.match(about('register 0', of('class')), /^A register /);
  assert.match(about('distillation', of('class')), /another model/);
  assert.deepEqual([about('1,2', of('class')), about('pool', of('mean')), about('class', { ...of('mean'), prefix: [] })], [named, named, named]); // prettier-ignore
});

test('shares have as many digits as are known', () => {
  assert.deepEqual(
    [
      [0, 2],
      [0.123456, 2],
      [0.123456, 4],
      [0.0123456, 2],
      [0.0123456, 4],
      [0.9996, 2],
      [0.9994, 2],
      [NaN, 2],
      [0.1, 2],
      [9e-6, 2],
      [1.1e-5, 2],
    ].map(([v, d]) => percent(v, d)),
    ['0%', '12.3%', '12.35%', '1.2%', '1.235%', '100%', '99.9%', '', '10%', '<0.001%', '0.0011%'],
  );
  const view = any({ norm: true });
  assert.deepEqual(
    [valueText(0.123456, view), valueText(0.123456, view, 4), valueText(0.5, any({ norm: false }))],
    ['0.123', '0.1235', '50%'],
  );
});

test('a cell says its smallest and largest value, or that it is not here', () => {
  const { frame, view } = frameOf({ layer: 1, head: 3, query: '0,1' });
  const row = made[1].attention[3][3].slice(2);
  assert.equal(
    cellText(frame, view),
    `Layer 1, head 3: ${percent(Math.fround(Math.min(...row)))} to ${percent(Math.fround(Math.max(...row)))}`,
  );
  frame.fresh[1] = 0;
  assert.equal(cellText(frame, { ...view, head: 'max' }), 'Layer 1, max over heads: not here yet');
  assert.match(spokenFrame(frame, view), /\. Waiting\.$/);
});

test('captions say the scale, the mask and the weights', () => {
  const view = any({
    ...initialView(trace),
    head: 'max',
    layer: 1,
    scale: 'layer',
    clip: false,
    mask: 0.6,
    norm: true,
    direction: 'column',
  });
  assert.equal(
    caption(view, trace),
    'Layer 1, max over heads: where the class token is looked at from. ' +
      'mini. Scale: its own (cells: each layer). Light, smooth. Weight \u00d7 size of the value. Only the top 60%.',
  );
  const other = any({
    ...view,
    scale: 'own',
    clip: true,
    mask: 0,
    norm: false,
    style: 'heat',
    smooth: false,
  });
  assert.equal(
    details(other, trace),
    'mini. Scale: its own, peaks clipped (cells: each head). Heat, patches.',
  );
  assert.match(
    details({ ...other, scale: 'shared' }, trace),
    /Scale: its own, peaks clipped \(cells: all alike\)\./,
  );
});

test('titles say layer, heads, and where the query looks', () => {
  const view = any({ ...initialView(trace), layer: 2 });
  const says = (/** @type {string} */ query, /** @type {any} */ head = 'mean', of = trace) =>
    title({ ...view, query, head }, of);
  assert.deepEqual(
    [says('class'), says('1,2', 3), says('1,2;1,3', 'min'), says('register 0')],
    [
      'Layer 2, all heads: where the class token looks',
      'Layer 2, head 3: where patch (1, 2) looks',
      'Layer 2, min over heads: where a region of 2 patches looks',
      'Layer 2, all heads: where register 0 looks',
    ],
  );
  const mean = makeTrace({ pooling: 'mean', prefix: [], default_query: 'pool' });
  assert.equal(says('pool', 'mean', mean), 'Layer 2, all heads: where the pool (mean of patches) looks');
});

test('the title on the screen says on how few patches half of the map is, or what stands out more', () => {
  const own = makeTrace({ prefix: ['class'], grid: [2, 5] });
  const says = (/** @type {number[]} */ map, /** @type {any} */ more = {}, of = own) => {
    const view = { layer: 1, head: 3, query: 'class', direction: 'row', norm: false, ...more };
    return finding(Float32Array.from(map), view, of).replace('Layer 1, head 3: ', '');
  };
  const even = new Array(10).fill(0.1);
  const few = [0.3, 0.25, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.1];
  const one = (/** @type {number} */ patch) => even.map((_, i) => (i === patch ? 0.71 : 0.03));
  const column = { direction: 'column', query: '1,2' };
  assert.equal(says(even), 'the class token looks at all patches alike');
  assert.equal(says(even, column), 'patch (1, 2) is looked at from all patches alike');
  assert.equal(says(few), 'the class token looks mostly at 2 of 10 patches');
  assert.equal(says(few, column), 'patch (1, 2) is looked at mostly from 2 of 10 patches');
  const wide = even.map((share, i) => share + 0.001 * i);
  assert.equal(says(wide), 'the class token looks at nearly all patches: 5 of 10 hold half');
  const from = { query: '1,2' };
  assert.deepEqual(
    [7, 6, 8, 2, 5].map((patch) => says(one(patch), from).replace('patch (1, 2) looks mostly at ', '')),
    ['itself, 71%', 'its left neighbour, 71%', 'its right neighbour, 71%', 'its upper neighbour, 71%', 'patch (1, 0), 71%'], // prettier-ignore
  );
  assert.equal(says(one(4), { query: '1,0' }), 'patch (1, 0) looks mostly at patch (0, 4), 71%'); // not across the edge
  assert.equal(says(one(6), { query: '1,2;1,3' }), 'a region of 2 patches looks mostly at patch (1, 1), 71%');
  const elsewhere = few.map((share) => 0.4 * share);
  assert.equal(says(elsewhere), 'the class token looks mostly at itself, 60%');
  assert.equal(says(elsewhere, from), 'patch (1, 2) looks mostly at the class token, 60%');
  assert.equal(says(elsewhere, from, trace), 'patch (1, 2) looks mostly at tokens that are no patch, 60%');
  for (const more of [{ ...column }, { norm: true }, { head: 'max' }])
    assert.match(says(elsewhere, more), /mostly (at|from) 2 of 10 patches$/); // no shares of one row
});

test('the mark on the photo says what the style does, and the details why another style is drawn', () => {
  const view = any({ ...initialView(trace), query: '1,2' });
  const dark = makeTrace({ unlit: 'too dark' });
  assert.deepEqual(
    [mark(view, trace), mark({ ...view, style: 'heat', direction: 'column' }, trace), mark(view, dark)],
    [
      'lit where patch (1, 2) looks',
      'coloured where patch (1, 2) is looked at from',
      'tinted where patch (1, 2) looks',
    ],
  );
  assert.match(details(view, dark), /\. Tint, smooth\. This photo is too dark for light: tint\.$/);
  assert.doesNotMatch(details({ ...view, style: 'heat' }, dark), /too dark/);
});

test('a map that is the same everywhere has no peak', () => {
  const view = { ...initialView(trace), direction: 'column' };
  const frame = { trace, fresh: [true, true, true], map: () => new Float32Array(24).fill(0.03125) };
  assert.match(spokenFrame(any(frame), any(view)), /\. No peak: \u2248 3\.1% from every patch\. /);
  const row = { ...view, direction: 'row' };
  assert.match(spokenFrame(any(frame), any(row)), /No peak: \u2248 3\.1% on every patch\./);
  const falling = { ...frame, map: () => Float32Array.from({ length: 24 }, (_, i) => 1 / (2 + i)) };
  assert.match(spokenFrame(any(falling), any(row)), /Most on patch \(0, 0\), \u2248 50%\./);
});

test('mass bars are shares of the row; of a column the weights, for patches their mean', () => {
  new Browser().install();
  const box = new Element('div');
  const bars = new MassBars(any(box), trace);
  const numbers = { max: 1, peak: [0, 0], patches: 1.5, prefix: { class: 0.3, 'register 0': 0.2 } };
  const { frame, view } = frameOf({ layer: 0, head: 1, query: '1,1' });
  const shown = () =>
    bars.bars.map(({ value, bar, part }) => [
      value.textContent,
      any(bar.style).getPropertyValue('--share'),
      part.title.split(' ')[0],
    ]);
  bars.show(frame, view, any(numbers));
  assert.deepEqual(shown(), [
    ['15%', '15%', 'share'],
    ['10%', '10%', 'share'],
    ['75%', '75%', 'share'],
  ]);
  bars.show(frame, { ...view, direction: 'column' }, any({ ...numbers, prefix: { class: 0.3 } }));
  assert.deepEqual(shown(), [
    ['30%', '30%', 'weight'],
    ['0%', '0%', 'weight'],
    ['6.25%', '6.25%', 'mean'],
  ]);
  bars.show(frame, { ...view, direction: 'column', norm: true }, any({ ...numbers, patches: 48 }));
  assert.deepEqual(
    shown().map(([text, share]) => [text, share]),
    [
      ['0.3', '30%'],
      ['0.2', '20%'],
      ['2', '100%'],
    ],
  );
  frame.fresh[0] = 0;
  bars.show(frame, view, null);
  assert.equal(bars.bars[0].value.textContent, '0.3');
  bars.show(frame, { ...view, layer: 1 }, null);
  const row = made[1].attention[1][2 + 7];
  assert.equal(bars.bars[0].value.textContent, percent(Math.fround(row[0])));
  assert.equal(
    any(new MassBars(any(box), makeTrace({ prefix: ['class', 'register 0', 'register 1'] })).bars[2].part)
      .firstChild.data,
    'register 1 ',
  );
  assert.equal(any(bars.bars[1].part).firstChild.data, 'register 0 ');
});

test('file names hold what the picture shows', () => {
  const query = 'x'.repeat(40);
  const view = any({ layer: 1, head: 'max', query, direction: 'row', style: 'light', smooth: true });
  assert.equal(fileName(trace, view), `vit_viz-mini-lion-layer1-headmax-${query}-row-light-smooth`);
  assert.match(fileName(trace, { ...view, query: 'x'.repeat(41) }), /-region-row-light-smooth$/);
  const dark = makeTrace({ unlit: 'too dark', name: 'my cat' });
  assert.match(fileName(dark, { ...view, smooth: false }), /-my cat-.*-row-tint-patches$/);
});

// --- sizes on the screen

test('cells fill the width, or the height where that is less, and are never smaller than 24 px', () => {
  for (const [width, height, layers, columns, aspect, ...found] of [
    [800, 3000, 12, 8, 2, 100, 52, 6],
    [800, 360, 12, 8, 2, 56, 30, 3],
    [80, 900, 3, 8, 2, 52, 28, 3],
    [600, 2000, 12, 15, 1.25, 40, 33, 4],
    [300, 400, 3, 200, 1.25, 34, 28, 3],
  ]) {
    const cell = cellSize({ width, height, layers, columns, aspect });
    const expected = { width: found[0], height: found[1], gap: 4, radius: found[2], inset: [0, 0] };
    assert.deepEqual(cell, expected, `${width} x ${height}`);
  }
});

function partsOf(/** @type {string[]} */ names) {
  return /** @type {Record<string, any>} */ (
    Object.fromEntries(names.map((name) => [name, new Element('div')]))
  );
}

test('the model\u2019s input lies on the photo where the crop says', () => {
  const parts = partsOf(['root', 'box', 'rings']);
  placePhoto(
    parts,
    makeTrace({ crop: { original: [200, 300], input: [32, 48], region: [20, 60, 100, 150] } }),
  );
  const { top, left, width, height } = parts.box.style;
  assert.deepEqual([top, left, width, height], ['10%', '20%', '50%', '50%']);
  assert.deepEqual(
    [
      parts.box.style.getPropertyValue('--vx-rows'),
      parts.box.style.getPropertyValue('--vx-cols'),
      parts.root.style.getPropertyValue('--vv-aspect'),
    ],
    ['4', '6', '1.5'],
  );
  assert.equal(parts.rings.getAttribute('viewBox'), '0 0 6 4');
  assert.ok(parts.root.hasAttribute('data-cropped'));
  placePhoto(parts, makeTrace({ crop: { original: [200, 300], input: [32, 48], region: [0, 0, 200, 299] } }));
  assert.ok(!parts.root.hasAttribute('data-cropped'));
  for (const [original, shape] of /** @type {[[number, number], string][]} */ ([
    [[200, 300], 'usual'],
    [[10, 60], 'flat'],
    [[60, 10], 'narrow'],
    [[10, 59], 'usual'],
  ])) {
    placePhoto(parts, makeTrace({ crop: { original, input: [32, 48], region: [0, 0, ...original] } }));
    assert.equal(parts.root.dataset.shape, shape);
  }
});

test('photo and mosaic are fitted to the window', () => {
  const browser = new Browser();
  browser.install();
  const parts = partsOf(['root', 'caption', 'scroll', 'mosaic', 'box']);
  const outer = new Element('div');
  outer.append(parts.scroll);
  parts.root.box.width = 820;
  parts.caption.box.width = 480;
  parts.box.box.width = 30;
  outer.box.width = 852;
  const fitted = fitPanels(parts, trace, 8);
  assert.deepEqual(fitted.mosaic.cell, { width: 101, height: 69, gap: 4, radius: 6, inset: [0, 0] });
  assert.deepEqual(fitted.box, { width: 30, height: 0 });
  const read = (/** @type {string} */ name) => parts.mosaic.style.getPropertyValue(`--vx-${name}`);
  assert.deepEqual(['cell-width', 'cell-height', 'label', 'width', 'height'].map(read), [
    '101px',
    '69px',
    '30px',
    '808px',
    '207px',
  ]);
  assert.deepEqual(
    ['data-slim', 'data-fine'].map((n) => parts.root.hasAttribute(n)),
    [false, false],
  );
  parts.root.box.width = 819;
  parts.caption.box.width = 479;
  parts.box.box.width = 29;
  outer.box.width = 8 * 27 + 42;
  fitPanels(parts, makeTrace({ grid: [4, 60] }), 8);
  assert.deepEqual(
    ['data-slim', 'data-fine'].map((n) => parts.root.hasAttribute(n)),
    [true, true],
  );
});

test('the chosen cell is scrolled into its own box, as little as needed', () => {
  const [scroll, cell] = [any(new Element('div')), any(new Element('div'))];
  scroll.box = { left: 100, top: 200, width: 300, height: 150 };
  const after = (/** @type {any} */ box) => {
    Object.assign(scroll, { scrollLeft: 50, scrollTop: 70 });
    cell.box = box;
    revealCell(scroll, cell);
    return [scroll.scrollLeft, scroll.scrollTop];
  };
  assert.deepEqual(after({ left: 148, top: 224, width: 252, height: 126 }), [50, 70]);
  assert.deepEqual(after({ left: 140, top: 220, width: 20, height: 20 }), [42, 66]);
  assert.deepEqual(after({ left: 395, top: 345, width: 20, height: 20 }), [65, 85]);
});
