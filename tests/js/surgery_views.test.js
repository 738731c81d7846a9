// The table of switches and temperatures, the views that are forbidden, and rectangles that are drawn on the photo.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mount as mountSurgery } from '../../vit_viz/ui/heads/surgery.js';
import { component, mount } from './browser.js';

const SURGERY = component(mountSurgery, 'ui/heads/surgery.html');
/** A patch is 8 pixels high and 10 wide, and the model saw the photo from (4, 15) on. */
const PANEL = {
  revision: 4,
  layers: 3,
  heads: 5,
  grid: [4, 6],
  crop: { original: [40, 90], input: [32, 48], region: [4, 15, 32, 60] },
  photo: '/vit_viz/photo/x',
  photo_size: [40, 90],
  name: 'a photo',
  tokens: [
    { value: 'class', label: 'class token' },
    { value: 'patches', label: 'all patches' },
  ],
  off: [
    [1, 2, 'off'],
    [2, 0, 'mean'],
    [0, 4, 'uniform'],
  ],
  temperatures: [
    [2, 0.5],
    [0, 2],
  ],
  forbidden: ['class>1,2@0'],
  error: '',
};
const KEPT = ';temperature 2=0.5 0=2;forbid class>1,2@0';
const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const texts = (/** @type {any} */ nodes) => nodes.map((/** @type {any} */ node) => node.textContent);

/** Surgery whose photo is twice as large as it is, at (100, 50). */
function open(/** @type {any} */ panel = PANEL) {
  const part = mount(SURGERY, panel);
  const find = (/** @type {string} */ name) => any(part.find(name ? `surgery-${name}` : 'surgery'));
  find('stage').box = { left: 100, top: 50, width: 180, height: 80 };
  const fire = (/** @type {string} */ name, /** @type {number} */ row, /** @type {number} */ col) =>
    find('stage').fire(name, {
      clientY: 50 + 2 * (4 + 8 * (row + 0.5)),
      clientX: 100 + 2 * (15 + 10 * (col + 0.5)),
      pointerId: 7,
    });
  const cell = (/** @type {string} */ place) => find('table').querySelector(`[data-place="${place}"]`);
  return {
    ...part,
    find,
    cell,
    fire,
    slider: (/** @type {number} */ layer) => find('table').querySelectorAll('input')[layer],
    /** What is told once the clicks pause. */
    edits: () => {
      part.browser.pass(250);
      return part.told.at(-1)?.[1].edits;
    },
    outline: () => {
      const { top, left, width, height } = find('box').style;
      return find('box').hidden ? '' : [top, left, width, height].join(' ');
    },
    choose: (/** @type {string} */ side, /** @type {string} */ value) => {
      find(side).value = value;
      find(side).fire('change');
    },
    type: (/** @type {string} */ side, /** @type {string} */ words) => {
      find(`${side}-patches`).value = words;
      find(`${side}-patches`).fire('input');
    },
  };
}

test('the table has a row for each layer: a switch for all, one for each head, and a temperature', () => {
  const { find, cell, slider } = open();
  assert.equal(find('').hidden, false);
  const heads = find('table').querySelectorAll('thead th');
  assert.deepEqual(texts(heads), ['layer', '0', '1', '2', '3', '4', 'temperature']);
  assert.ok(heads.every((/** @type {any} */ one) => one.getAttribute('scope') === 'col'));
  const rows = find('table').querySelectorAll('tbody tr');
  assert.deepEqual(rows.map((/** @type {any} */ row) => texts(row.children)), [
    ['0', 'on', 'on', 'on', 'on', 'uni', '2'],
    ['1', 'on', 'on', 'off', 'on', 'on', '1'],
    ['2', 'mean', 'on', 'on', 'on', 'on', '0.5'],
  ]); // prettier-ignore
  const [first] = rows[1].children;
  assert.deepEqual([first.tagName, first.getAttribute('scope')], ['TH', 'row']);
  const [all] = first.children;
  assert.deepEqual([all.className, all.dataset.all], ['vv-surgery-all', '1']);
  assert.equal(all.getAttribute('aria-label'), 'all heads of layer 1');
  assert.equal(cell('2.0').className, 'vv-surgery-cell');
  assert.deepEqual(
    ['1.2', '2.0', '0.4', '0.0'].map((place) => cell(place).getAttribute('aria-label')),
    [
      'layer 1, head 2: off',
      'layer 2, head 0: at its mean',
      'layer 0, head 4: uniform',
      'layer 0, head 0: on',
    ],
  );
  const { type, min, max, step, value } = slider(2);
  assert.deepEqual([type, min, max, step, value], ['range', '-3', '3', '0.25', '-1']);
  assert.deepEqual([slider(0).value, slider(1).value], ['1', '0']);
  assert.equal(slider(2).getAttribute('aria-label'), 'temperature of layer 2');
  assert.deepEqual(
    [0, 1, 2].map((layer) => slider(layer).getAttribute('aria-valuetext')),
    ['2, more even', '1', '0.5, sharper'],
  );
  assert.equal(slider(0).parentElement.className, 'vv-surgery-temperature');
});

test('heads that this model does not have are left out, and another model has another table', () => {
  const { find, set, cell, edits } = open({ ...PANEL, off: [[3, 0, 'off'], [0, 5, 'off'], [2, 4, 'off']] }); // prettier-ignore
  cell('0.0').click();
  assert.equal(edits(), `off 2.4 0.0${KEPT}`);
  const table = find('table').querySelectorAll('tbody')[0].children;
  set({ ...PANEL, revision: 9 });
  assert.equal(find('table').querySelectorAll('tbody')[0].children[0], table[0]);
  set({ ...PANEL, revision: 10, layers: 2, heads: 4 });
  assert.equal(find('table').querySelectorAll('[data-place]').length, 8);
  assert.equal(cell('0.0').textContent, 'on');
});

test('where nothing can be edited there is nothing, but an error is said', () => {
  const { find, set } = open(null);
  set({ ...PANEL, layers: 0, error: 'No weights.' });
  assert.equal(find('').hidden, true);
  assert.deepEqual([find('error').textContent, find('error').hidden], ['No weights.', false]);
  assert.equal(find('table').querySelectorAll('tr').length, 0);
  set(PANEL);
  assert.deepEqual([find('').hidden, find('error').hidden], [false, true]);
});

test('what is chosen is what a click makes of a head; "on" takes back whatever it was', () => {
  const { find, cell, edits } = open();
  const buttons = find('states').querySelectorAll('button');
  const pressed = () =>
    buttons.map((/** @type {any} */ one) => one.getAttribute('aria-pressed') === 'true').indexOf(true);
  buttons[2].click();
  assert.equal(pressed(), 2);
  cell('1.2').click();
  assert.equal(cell('1.2').textContent, 'uni');
  assert.equal(edits(), `mean 2.0;uniform 1.2 0.4${KEPT}`);
  find('states').fire('click'); // beside the buttons
  assert.equal(pressed(), 2);
  buttons[3].click();
  assert.equal(pressed(), 3);
  cell('1.2').click();
  cell('2.0').click();
  cell('0.0').click();
  assert.equal(edits(), `uniform 0.4${KEPT}`);
});

test('the switch of a layer makes all of its heads alike, then takes that back', () => {
  const { find, cell, edits, told, browser } = open();
  find('states').querySelectorAll('button')[1].click();
  const [, , all] = find('table').querySelectorAll('.vv-surgery-all');
  all.click();
  browser.pass(249);
  assert.deepEqual(told, []);
  assert.equal(edits(), `off 1.2;mean 2.0 2.1 2.2 2.3 2.4;uniform 0.4${KEPT}`);
  cell('2.3').click();
  all.click();
  assert.match(edits(), /^off 1\.2;mean 2\.0 2\.1 2\.2 2\.4 2\.3;/);
  all.click();
  assert.equal(edits(), `off 1.2;uniform 0.4${KEPT}`);
  find('table').fire('click');
  browser.pass(250);
  assert.equal(told.length, 3);
});

test('a temperature follows its slider', () => {
  const { find, slider, edits } = open();
  slider(1).value = '-0.5';
  slider(1).fire('input');
  assert.equal(slider(1).getAttribute('aria-valuetext'), '0.707, sharper');
  assert.equal(slider(1).parentElement.children[1].textContent, '0.707');
  assert.equal(slider(1).value, '-0.5');
  slider(2).value = '0';
  slider(2).fire('input');
  assert.equal(edits(), 'off 1.2;mean 2.0;uniform 0.4;temperature 0=2 1=0.707;forbid class>1,2@0');
  find('seeing-patches').fire('input');
  find('table').fire('input');
  assert.equal(slider(2).getAttribute('aria-valuetext'), '1');
});

test('the arrows go from head to head, to the edges; one head takes part in the tab order', () => {
  const { cell, find } = open();
  const reached = () => {
    const open_ = find('table').querySelectorAll('[data-place]').filter((/** @type {any} */ one) => one.tabIndex === 0); // prettier-ignore
    return open_.map((/** @type {any} */ one) => one.dataset.place).join();
  };
  assert.equal(reached(), '0.0');
  const go = (/** @type {string} */ from, /** @type {string} */ key) => {
    assert.ok(cell(from).fire('keydown', { key }).prevented);
    assert.ok(cell(reached()).focused);
    return reached();
  };
  assert.equal(go('0.0', 'ArrowDown'), '1.0');
  assert.equal(go('1.0', 'ArrowRight'), '1.1');
  assert.equal(go('2.4', 'ArrowDown'), '2.4');
  assert.equal(go('2.4', 'ArrowRight'), '2.4');
  assert.equal(go('0.3', 'ArrowUp'), '0.3');
  assert.equal(go('1.0', 'ArrowLeft'), '1.0');
  assert.ok(!cell('1.0').fire('keydown', { key: 'x' }).prevented);
  assert.ok(!find('table').fire('keydown', { key: 'ArrowUp' }).prevented);
  assert.equal(reached(), '1.0');
});

test('while clicks are gathered, and until the server knows them, what it says does not take them back', () => {
  const { set, cell, edits } = open();
  cell('0.0').click();
  set({ ...PANEL, revision: 20 });
  assert.equal(cell('0.0').textContent, 'off');
  edits();
  set({ ...PANEL, revision: 4 });
  assert.equal(cell('0.0').textContent, 'off');
  cell('0.1').click();
  edits();
  set({ ...PANEL, revision: 5 }); // knows the first of two
  assert.equal(cell('0.0').textContent, 'off');
  set({ ...PANEL, revision: 6 });
  assert.equal(cell('0.0').textContent, 'on');
  set({ ...PANEL, revision: 1, off: [] }); // nothing is awaited any more
  assert.equal(cell('1.2').textContent, 'on');
});

test('tokens are offered by name and by place; the photo is there where places are asked for', () => {
  const { find, choose, set } = open();
  assert.deepEqual(texts(find('seeing').options), ['class token', 'all patches', 'some patches']);
  assert.deepEqual(find('seen').options.map((/** @type {any} */ one) => one.value), ['class', 'patches', 'some patches']); // prettier-ignore
  assert.deepEqual([find('seeing').value, find('seen').value], ['class', 'some patches']);
  const hidden = () => ['seeing-patches', 'seen-patches', 'stage', 'hint'].map((name) => find(name).hidden);
  assert.deepEqual(hidden(), [true, false, false, false]);
  choose('seen', 'patches');
  assert.deepEqual(hidden(), [true, true, true, true]);
  choose('seeing', 'some patches');
  assert.deepEqual(hidden(), [false, true, false, false]);
  assert.deepEqual([find('photo').src, find('photo').alt], ['/vit_viz/photo/x', 'a photo']);
  set({ ...PANEL, revision: 5 });
  assert.equal(find('seeing').value, 'some patches'); // the same tokens are not offered anew
  set({ ...PANEL, revision: 6, tokens: [{ value: 'pool', label: 'pool' }], photo: '/vit_viz/photo/y' });
  assert.equal(find('seeing').value, 'pool');
  assert.deepEqual(texts(find('seen').options), ['pool', 'some patches']);
  assert.equal(find('photo').src, '/vit_viz/photo/y');
});

test('patches that are typed are outlined on the photo', () => {
  const { type, outline } = open();
  assert.equal(outline(), '');
  type('seen', ' 1-2,3-5 ');
  assert.equal(outline(), `30% 50% ${3000 / 90}% 40%`); // from (12, 45) to (28, 75) of 40 x 90
  type('seen', '0,2');
  assert.equal(outline(), `10% ${3500 / 90}% ${1000 / 90}% 20%`);
  type('seen', '1-2');
  assert.equal(outline(), '');
  type('seen', 'x1,2');
  assert.equal(outline(), '');
});

test('a rectangle on the photo is the patches of the side that was touched last', () => {
  const { find, fire, outline, choose } = open();
  const event = fire('pointerdown', 2, 4);
  assert.ok(event.prevented);
  assert.equal(find('stage').captured, 7);
  assert.equal(find('seen-patches').value, '2,4');
  fire('pointermove', 1, 5);
  assert.equal(find('seen-patches').value, '1-2,4-5');
  assert.equal(outline(), `30% ${5500 / 90}% ${2000 / 90}% 40%`);
  find('stage').fire('pointermove', { clientX: 101, clientY: 51 }); // outside what the model saw
  assert.equal(find('seen-patches').value, '1-2,4-5');
  fire('pointerup', 1, 5);
  fire('pointermove', 0, 0);
  assert.equal(find('seen-patches').value, '1-2,4-5');
  fire('pointerdown', 3, 0);
  fire('pointercancel', 3, 0);
  fire('pointermove', 0, 0);
  assert.equal(find('seen-patches').value, '3,0');
  const outside = find('stage').fire('pointerdown', { clientX: 101, clientY: 51, pointerId: 7 });
  assert.ok(!outside.prevented);
  fire('pointermove', 0, 0);
  assert.equal(find('seen-patches').value, '3,0');
  choose('seeing', 'some patches');
  fire('pointerdown', 1, 1);
  fire('pointerup', 1, 1);
  assert.deepEqual([find('seeing-patches').value, find('seen-patches').value], ['1,1', '3,0']);
  find('seen-patches').fire('focus');
  fire('pointerdown', 0, 5);
  assert.deepEqual([find('seeing-patches').value, find('seen-patches').value], ['1,1', '0,5']);
  find('seeing-patches').fire('focus');
  choose('seeing', 'class');
  fire('pointerdown', 2, 2); // the side that is left asks for places
  assert.equal(find('seen-patches').value, '2,2');
});

test('a view is forbidden with its layers, all of them where none is named, and never twice', () => {
  const { find, choose, type, edits, told } = open();
  choose('seen', 'patches');
  find('forbid').click();
  assert.equal(
    edits(),
    'off 1.2;mean 2.0;uniform 0.4;temperature 2=0.5 0=2;forbid class>1,2@0;forbid class>patches',
  );
  const list = () => texts(find('forbidden').children);
  assert.deepEqual(list(), [
    'class no longer sees 1,2, in layers 0Allow',
    'class no longer sees patchesAllow',
  ]);
  const [, line] = find('forbidden').children;
  assert.equal(line.children[0].getAttribute('aria-label'), 'Allow again: class no longer sees patches');
  find('layers').value = ' all ';
  find('forbid').click();
  find('layers').value = '0, 2';
  choose('seeing', 'some patches');
  type('seeing', ' 0,1 ');
  find('forbid').click();
  assert.match(edits(), /;forbid class>1,2@0;forbid class>patches;forbid 0,1>patches@0\+2$/);
  find('forbidden').fire('click');
  find('forbidden').children[0].querySelector('button').click();
  assert.match(edits(), /0=2;forbid class>patches;forbid 0,1>patches@0\+2$/);
  type('seeing', ' ');
  find('forbid').click();
  assert.equal(find('error').textContent, 'Which patches? Draw them on the photo, or type them.');
  const { length } = told;
  edits();
  assert.equal(told.length, length); // nothing was changed
  type('seeing', '2,2');
  find('forbid').click();
  assert.equal(find('error').hidden, true);
});
