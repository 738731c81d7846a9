// The table with arrow keys and the bar of the kit, each by itself.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Bar } from '../../vit_viz/web/kit/bar.js';
import { Grid } from '../../vit_viz/web/kit/grid.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { Browser, parse, ending } from './browser.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);

/** What a component draws. */
function drawn(/** @type {any} */ node) {
  new Browser().install();
  const root = any(parse('<div></div>'));
  render(node, root);
  ending.after(() => render(null, root));
  return root;
}

/** A table of 3 rows by 2 columns: a cell with a button, one that takes no focus, and cells that take it themselves. */
function table(pressed = /** @type {string[]} */ ([])) {
  const cell = (/** @type {string} */ place) =>
    html`<td tabindex="-1" data-place=${place} onClick=${() => pressed.push(place)}>${place}</td>`;
  const button = html`<td><button tabindex="0" data-place="0.0">0.0</button></td>`;
  const rows = [
    { key: 0, head: 'a', cells: [button, cell('0.1')] },
    { key: 1, head: 'b', said: 'row b', cells: [html`<td>–</td>`, cell('1.1')], more: { 'data-row': 'b' } },
    { key: 2, head: 'c', cells: [cell('2.0'), html`<td>–</td>`] },
  ];
  const root = drawn(
    html`<${Grid} label="All" corner="row" columns=${[['x', 'column x'], ['y']]} rows=${rows} bands=${2} />`,
  );
  const at = (/** @type {string} */ place) => root.querySelector(`[data-place="${place}"]`);
  return { root, at, key: (/** @type {string} */ place, key = '', more = {}) => at(place).fire('keydown', { key, ...more }) }; // prettier-ignore
}

test('arrow keys go from cell to cell, over those that take no focus, and stay at the edge', () => {
  const { at, key } = table();
  assert.ok(key('0.0', 'ArrowRight').prevented);
  assert.ok(at('0.1').focused);
  key('0.1', 'ArrowDown');
  assert.ok(at('1.1').focused);
  key('1.1', 'ArrowLeft'); // a cell without, then the heading of the row
  assert.ok(at('1.1').focused);
  key('1.1', 'ArrowDown'); // the last cell of its column takes none
  assert.ok(at('1.1').focused);
  key('0.0', 'ArrowDown');
  assert.ok(at('2.0').focused); // over the cell between
  key('2.0', 'ArrowUp');
  assert.ok(at('0.0').focused);
  for (const more of [{ ctrlKey: true }, { altKey: true }, { metaKey: true }])
    assert.ok(!key('0.0', 'ArrowRight', more).prevented); // the browser's own
});

test('Enter and Space press a cell, and leave a button to itself', () => {
  const pressed = /** @type {string[]} */ ([]);
  const { key } = table(pressed);
  assert.ok(key('1.1', 'Enter').prevented && key('2.0', ' ').prevented);
  assert.ok(!key('0.0', 'Enter').prevented && !key('2.0', 'x').prevented);
  assert.deepEqual(pressed, ['1.1', '2.0']);
});

test('a table says what its rows and columns are, for each of its bands', () => {
  const { root } = table();
  const headings = root.querySelectorAll('thead th');
  assert.deepEqual(headings.map((/** @type {any} */ th) => th.textContent), ['row', 'x', 'y', 'row', 'x', 'y']); // prettier-ignore
  assert.deepEqual(
    headings.map((/** @type {any} */ th) => th.getAttribute('aria-label')),
    [null, 'column x', null, null, 'column x', null],
  );
  const [, row] = root.querySelectorAll('tbody tr');
  assert.deepEqual([row.dataset.row, row.querySelector('th').getAttribute('aria-label')], ['b', 'row b']);
  assert.equal(root.querySelector('table').getAttribute('aria-label'), 'All');
});

test('a bar goes from 0 to its value, within its track, and its colour is the sign', () => {
  const bar = (/** @type {any} */ props) => {
    const [track] = drawn(html`<${Bar} ...${props} />`).querySelectorAll('.vv-track');
    const [from, long] = ['--from', '--long'].map((name) => track.style.getPropertyValue(name));
    const side = ['for', 'against'].filter((name) => track.classList.contains(`vv-is-${name}`)).join();
    return [from, long, side, track.querySelector('.vv-tick')?.style.left];
  };
  assert.deepEqual(bar({ value: 0.25 }), ['0.00%', '25.00%', '', undefined]);
  assert.deepEqual(bar({ value: 3, ends: [0, 12], sign: -3, tick: 9 }), ['0.00%', '25.00%', 'against', '75.00%']); // prettier-ignore
  assert.deepEqual(bar({ value: -2, ends: [-4, 4], sign: -2 }), ['25.00%', '25.00%', 'against', undefined]);
  assert.deepEqual(bar({ value: 4, ends: [-4, 4], sign: 4, tick: 0 }), ['50.00%', '50.00%', 'for', '50.00%']);
  assert.deepEqual(bar({ value: 7, ends: [0, 5] }).slice(0, 2), ['0.00%', '100.00%']); // beyond its track
  assert.deepEqual(bar({ value: 1, ends: [0, 0] }).slice(0, 2), ['0.00%', '0.00%']); // a track without length
  assert.deepEqual(bar({ value: null, ends: [-1, 1], sign: null }), ['50.00%', '0.00%', '', undefined]);
});
