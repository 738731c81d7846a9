// Where the cells of the mosaic stand: their size for models and photos of every shape, bands of layers, and the names beside them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makeAxes, markAxes } from '../../vit_viz/explorer/labels.js';
import { Arrangement, arrange, cellSize } from '../../vit_viz/explorer/layout.js';
import { Browser, Element } from './browser.js';
import { makeTrace } from './oracle.js';

test('a photo far from square keeps its shape within a cell that a finger finds', () => {
  const flat = cellSize({ width: 700, height: 500, layers: 6, columns: 7, aspect: 10 });
  assert.deepEqual(flat, { width: 100, height: 28, gap: 4, radius: 1, inset: [0, 7] });
  const upright = cellSize({ width: 700, height: 500, layers: 6, columns: 7, aspect: 0.1 });
  assert.deepEqual([upright.width, upright.height, upright.inset], [28, 83, [8.5, 0]]);
  const many = cellSize({ width: 600, height: 500, layers: 40, columns: 17, aspect: 10 });
  assert.deepEqual([many.width, many.height, many.inset], [76, 28, [0, 8.5]]);
  const alone = cellSize({ width: 900, height: 700, layers: 1, columns: 2, aspect: 1.5 });
  assert.deepEqual([alone.width, alone.height], [244, 164]);
});

// --- bands of layers

test('few heads of many layers stand in bands that fill the width; a model of as many heads has one', () => {
  const room = { width: 752, height: 576, aspect: 1 };
  const tiny = arrange({ ...room, layers: 12, columns: 4 });
  assert.deepEqual([tiny.bands, tiny.rows, tiny.cell.width], [2, 6, 88]);
  assert.ok(tiny.width > 0.95 * room.width && tiny.width <= room.width && tiny.height <= room.height);
  const base = arrange({ ...room, layers: 12, columns: 13 });
  assert.deepEqual([base.bands, base.rows], [1, 12]);
  const slim = arrange({ ...room, layers: 40, columns: 3 });
  assert.ok(slim.bands > 2 && slim.cell.width > 40 && slim.height <= room.height);
});

test('cells that do not all fit scroll, and are as large as the width allows up to 40 px', () => {
  const wide = arrange({ width: 752, height: 576, layers: 40, columns: 17, aspect: 1 });
  assert.deepEqual([wide.bands, wide.cell.width, wide.cell.height], [1, 44, 44]);
  const phone = arrange({ width: 320, height: 540, layers: 40, columns: 17, aspect: 1 });
  assert.deepEqual([phone.bands, phone.cell.width, phone.cell.height], [1, 28, 28]);
});

test('a mosaic that fits is not taken for one that scrolls, whatever its cells were rounded to', () => {
  for (let height = 360; height < 1000; height += 0.5) {
    const mini = arrange({ width: 1449, height, layers: 6, columns: 7, aspect: 1 });
    assert.ok(mini.cell.height >= Math.floor(height / 6), `${height}: ${mini.cell.height}`);
  }
});

test('each cell is found where it stands, and none between the bands or behind the last layer', () => {
  const cell = { width: 50, height: 40, gap: 4, radius: 3, inset: /** @type {[number, number]} */ ([0, 0]) };
  const mosaic = new Arrangement(cell, 5, 3, 2);
  assert.deepEqual([mosaic.bands, mosaic.shift, mosaic.width, mosaic.height], [3, 192, 534, 80]);
  assert.deepEqual(mosaic.at(4, 2), [2 * 192 + 100, 0]);
  assert.deepEqual(mosaic.at(3, 1), [192 + 50, 40]);
  const find = (/** @type {number} */ x, /** @type {number} */ y) => mosaic.find([y / 80, x / 534]);
  for (let layer = 0; layer < 5; layer++) {
    for (let column = 0; column < 3; column++) {
      const [x, y] = mosaic.at(layer, column);
      assert.deepEqual(find(x + 1, y + 1), { layer, column });
      assert.deepEqual(find(x + 49, y + 39), { layer, column });
    }
  }
  for (const [x, y] of [
    [165, 10],
    [420, 60],
    [-1, 10],
    [10, -1],
    [10, 81],
    [535, 10],
  ])
    assert.equal(find(x, y), null, `${x}, ${y}`);
});

test('each band has its names above it, and the chosen ones are marked in theirs', () => {
  new Browser().install();
  const parts = /** @type {Record<string, any>} */ (
    Object.fromEntries(['heads', 'layers', 'axes'].map((name) => [name, new Element('div')]))
  );
  const small = makeTrace({ layers: 5, heads: 2 });
  const cell = { width: 50, height: 40, gap: 4, radius: 3, inset: /** @type {[number, number]} */ ([0, 0]) };
  const mosaic = new Arrangement(cell, 5, 3, 3);
  makeAxes(parts, small, mosaic);
  const texts = (/** @type {any} */ axis) => axis.children.map((/** @type {any} */ one) => one.textContent);
  const marked = (/** @type {any} */ axis) =>
    axis.children.flatMap((/** @type {any} */ one, /** @type {number} */ i) =>
      one.hasAttribute('data-on') ? [i] : [],
    );
  assert.deepEqual(texts(parts.heads), ['0', '1', 'all', '', '0', '1', 'all']);
  assert.deepEqual(texts(parts.layers), ['0', '1', '2', '3', '4']);
  assert.equal(
    parts.axes.textContent,
    'rows are layers, columns are heads; layers 3 to 4 continue on the right',
  );
  const last = parts.layers.children[4].style;
  assert.deepEqual(
    ['--band', '--row'].map((name) => last.getPropertyValue(name)),
    ['1', '1'],
  );
  markAxes(parts, mosaic, 4, 1);
  assert.deepEqual([marked(parts.layers), marked(parts.heads)], [[4], [5]]);
  const before = parts.heads.children[0];
  makeAxes(parts, small, mosaic);
  assert.equal(parts.heads.children[0], before);
  makeAxes(parts, small, new Arrangement(cell, 5, 5));
  assert.deepEqual(texts(parts.heads), ['0', '1', 'all', 'max', 'min']);
  assert.equal(parts.axes.textContent, 'rows are layers, columns are heads');
});
