// The Positions tab's tables: their words and numbers, and the pictures whose cells can be read.

import assert from 'node:assert/strict';
import test from 'node:test';

import { readFloats } from '../../vit_viz/ui/positions/places.js';
import { mount as mountTables, sameWords, variantWords } from '../../vit_viz/ui/positions/tables.js';
import { Browser, component, mount } from './browser.js';

const TABLES = component(mountTables, 'ui/positions/tables.html');
const base64 = (/** @type {ArrayBufferLike} */ buffer) => Buffer.from(buffer).toString('base64');
const floats = (/** @type {number[]} */ ...numbers) => base64(Float32Array.from(numbers).buffer);
/** A table whose place i is i, or 255 - i, in all channels. */
const tableOf = (/** @type {(i: number) => number} */ tone) =>
  base64(Uint8Array.from({ length: 768 }, (_, i) => tone(Math.floor(i / 3))).buffer);
const tables = { viridis: tableOf((i) => i), diverging: tableOf((i) => 255 - i) };
/** Red is `add` + cell, green 20, blue 30. */
const colours = (/** @type {number} */ count, add = 0) =>
  base64(Uint8Array.from({ length: 3 * count }, (_, i) => [add + i / 3, 20, 30][i % 3]).buffer);

/** A value as Python tells it. */
const told = (/** @type {any} */ value) => ({
  revision: 1,
  parts: ['similarity', 'resampled', 'periods', 'components', 'filters'],
  ...value,
});

function draw(/** @type {any} */ value) {
  const browser = new Browser();
  const part = mount(TABLES, told(value), { props: { tables }, browser });
  const reds = (/** @type {any} */ canvas) =>
    [...canvas.canvas.data.data].filter((/** @type {number} */ _, /** @type {number} */ i) => i % 4 === 0);
  return {
    ...part,
    words: (/** @type {string} */ name) => part.find(`tables-${name}`).textContent,
    figures: () => part.find('tables-figures').children,
    captions: () => part.element.querySelectorAll('figcaption').map((node) => node.textContent),
    reds: () => part.find('tables-figures').querySelectorAll('canvas').map(reds),
  };
}

test('numbers travel as they are', () => {
  const numbers = Float32Array.of(0.1, -2.5, 1e-20);
  assert.deepEqual(readFloats(Buffer.from(numbers.buffer).toString('base64')), numbers);
});

test('a way of resampling is told by how far it lies from the own one', () => {
  const variant = { name: 'dino', colours: '', difference: '', overall: 0.184 };
  assert.equal(variantWords(variant, 'timm'), 'dino: differs by 18%');
  assert.equal(variantWords({ ...variant, overall: 0 }, 'timm'), 'dino: differs by nothing');
  assert.equal(variantWords({ ...variant, overall: 1e-6 }, 'timm'), 'dino: differs by < 1%');
  assert.equal(variantWords(variant, 'dino'), "dino: this model's own way");
  assert.match(sameWords([4, 6]), /^This photo's grid, 4 x 6, is the checkpoint's own/);
});

const resampled = {
  old_grid: [1, 2],
  grid: [2, 3],
  before: colours(2, 100),
  own: 'timm',
  unit: '',
  high: 0.5,
  variants: [
    { name: 'timm', colours: colours(6), difference: floats(0, 0, 0, 0, 0, 0), overall: 0 },
    { name: 'dino', colours: colours(6, 50), difference: floats(0, 0.1, 0.2, 0.3, 0.4, 0.5), overall: 0.25 },
  ],
};

test('the table on another grid stands beside its own, and each other way with its difference', () => {
  const part = draw({ part: 'resampled', drawn: resampled });
  assert.match(
    part.words('words'),
    /^The table brought from 1 x 2 to 2 x 3 as .* bright 0[.]5 of the mean norm/,
  );
  assert.deepEqual(part.captions(), [
    "the checkpoint's own table, 1 x 2",
    "timm: this model's own way",
    'dino: differs by 25%',
  ]);
  assert.deepEqual(part.reds(), [
    [100, 101],
    [0, 1, 2, 3, 4, 5],
    [50, 51, 52, 53, 54, 55],
    [0, 51, 102, 153, 204, 255],
  ]); // the own way has no difference
  const cells = part.figures()[2].children[2];
  assert.equal(cells.getAttribute('aria-label'), "Difference of dino from this model's own way");
  assert.equal(cells.style.aspectRatio, '3 / 2');
  assert.match(part.words('cell'), /^Point at a cell/);
  cells.box = { left: 10, top: 20, width: 300, height: 100 };
  cells.fire('pointermove', { clientX: 10 + 250, clientY: 20 + 25 });
  assert.equal(part.words('cell'), 'dino, position (0, 2): differs by 0.2 of the mean norm of a position');
  const { style } = /** @type {any} */ (cells.querySelector('.vv-ring'));
  const shares = ['top', 'left', 'width', 'height'].map((name) => Math.round(parseFloat(style[name])));
  assert.deepEqual(shares, [0, 67, 33, 50]);
  cells.fire('keydown', { key: 'ArrowDown' });
  cells.fire('keydown', { key: 'ArrowLeft' });
  assert.match(part.words('cell'), /^dino, position \(1, 1\): differs by 0[.]4 /);
  assert.deepEqual([Math.round(parseFloat(style.top)), Math.round(parseFloat(style.left))], [50, 33]);
});

test('on the own grid nothing is resampled', () => {
  const part = draw({ part: 'resampled', drawn: { ...resampled, grid: [1, 2], variants: [] } });
  assert.equal(part.words('words'), sameWords([1, 2]));
  assert.deepEqual(part.captions(), ["the checkpoint's own table, 1 x 2"]);
  assert.equal(part.figures()[0].className.trim(), 'vv-tables-figure vv-stack');
});

test('rotary periods are likenesses by distance, down and across', () => {
  const drawn = {
    periods: [0.5, 1.5],
    rows: { values: floats(1, 0, -1, 1, 0.5, 0), count: 3 },
    cols: { values: floats(1, 0.25, 0, -0.5, 1, 0.75, 0.5, 0.125), count: 4 },
  };
  const part = draw({ part: 'periods', drawn });
  assert.deepEqual(part.captions(), [
    'a row for each period, 0.5 to 1.5 half sides of the picture; across: 0 to 2 rows apart',
    'a row for each period, 0.5 to 1.5 half sides of the picture; across: 0 to 3 columns apart',
  ]);
  assert.deepEqual(part.reds()[0], [0, 127, 255, 0, 64, 127]); // from -1 to 1: 0 is the place 127.5 + 0.5, tone 255 - 128
  assert.match(part.words('words'), /^How alike two patches are by each period alone/);
  const [, cells] = part.find('tables-figures').querySelectorAll('.vv-cells');
  assert.equal(cells.style.aspectRatio, '4 / 3');
  assert.equal(cells.getAttribute('aria-label'), 'Likeness by distance, columns');
  cells.box = { left: 0, top: 0, width: 400, height: 200 };
  cells.fire('pointermove', { clientX: 350, clientY: 150 });
  assert.equal(part.words('cell'), 'period 1.5, 3 columns apart: cosine 0.125');
  assert.ok(part.figures()[0].classList.contains('vv-wide'));
});

test('positions in colours tell the levels of a cell, and the shares of their variance', () => {
  const bytes = Uint8Array.from({ length: 18 }, (_, i) => [0, 193, 255][(i + Math.floor(i / 3)) % 3]);
  const drawn = { grid: [2, 3], colours: base64(bytes.buffer), shares: [0.5, 0.25, 0.004] };
  const part = draw({ part: 'components', drawn });
  assert.match(part.words('words'), /their variance: red 50%, green 25%, blue < 1%[.]$/);
  assert.deepEqual(part.captions(), ['2 x 3 positions']);
  assert.deepEqual(part.reds()[0], [0, 193, 255, 0, 193, 255]);
  const [cells] = part.find('tables-figures').querySelectorAll('.vv-cells');
  cells.box = { left: 0, top: 0, width: 300, height: 200 };
  cells.fire('pointermove', { clientX: 250, clientY: 150 });
  assert.equal(part.words('cell'), 'position (1, 2): red 100%, green 0%, blue 76% of their scale');
});

test('patch filters have a number and a share each, and no cells to read', () => {
  const drawn = { grid: [2, 2], filters: [colours(4), colours(4, 9)], shares: [0.5, 0.125] };
  const part = draw({ part: 'filters', drawn });
  assert.deepEqual(part.captions(), ['1: 50%', '2: 13%']);
  assert.match(part.words('words'), /the 2 components in which .* 63% of their variance together/);
  assert.deepEqual(part.reds()[1], [9, 10, 11, 12]);
  assert.equal(part.words('cell'), '');
  assert.ok(part.figures()[1].classList.contains('vv-little'));
});

test('only what the model has can be chosen, what cannot be drawn says why, and older answers are not drawn', () => {
  const part = draw({ part: 'resampled', drawn: resampled, revision: 5, places: '' });
  const labels = () => part.find('tables-parts').children.map((node) => node.textContent);
  const on = () => part.element.querySelectorAll('[aria-pressed=true]').map((node) => node.textContent);
  assert.deepEqual([labels().length, on(), part.find('tables').dataset.part], [5, ['on another grid'], 'resampled']); // prettier-ignore
  assert.deepEqual([part.find('tables-main').hidden, part.find('tables-note').hidden], [false, true]);
  assert.ok(part.find('tables-grids').hidden);
  part.set(null);
  assert.equal(part.figures().length, 3);
  part.set(told({ part: 'periods', note: 'Not this.', revision: 4 }));
  assert.equal(part.figures().length, 3);
  part.set({ revision: 6, busy: true });
  assert.equal(part.find('tables').getAttribute('aria-busy'), 'true');
  part.set(told({ part: 'periods', parts: ['similarity', 'filters'], note: 'There are no periods.', places: 'image', revision: 6 })); // prettier-ignore
  assert.deepEqual([labels(), on()], [['similarity', 'patch filters'], ['grid of this photo']]);
  assert.deepEqual([part.find('tables-main').hidden, part.words('note')], [true, 'There are no periods.']);
  assert.deepEqual([part.figures().length, part.find('tables-grids').hidden], [0, true]);
  part.element.querySelector('[data-show=filters]')?.click();
  part.element.querySelector('[data-places=trained]')?.click();
  part.find('tables-note').click();
  assert.deepEqual(part.told, [
    ['show', { position_part: 'filters' }],
    ['show', { position_grid: 'trained' }],
  ]);
});
