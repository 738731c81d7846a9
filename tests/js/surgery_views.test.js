// Switches and temperatures, the views that are forbidden, and rectangles that are drawn on the photo.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PANEL as EDITED, mountSurgery } from './surgery_part.js';

/** A patch is 8 pixels high and 10 wide, and the model saw the photo from (4, 15) on. */
const PANEL = {
  ...EDITED,
  crop: { original: [40, 90], input: [32, 48], region: [4, 15, 32, 60] },
  off: [
    [1, 2, 'off'],
    [2, 0, 'mean'],
    [0, 4, 'uniform'],
  ],
  temperatures: [
    [2, 0.5],
    [0, 2],
  ],
};
const KEPT = ';temperature 2=0.5 0=2;forbid class>1,2@0';
const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const texts = (/** @type {any} */ nodes) => nodes.map((/** @type {any} */ node) => node.textContent);

/** Surgery whose photo is twice as large as it is, at (100, 50). */
function open(/** @type {any} */ panel = PANEL) {
  const part = mountSurgery(panel);
  const find = (/** @type {string} */ name) => any(part.find(name ? `surgery-${name}` : 'surgery'));
  find('stage').box = { left: 100, top: 50, width: 180, height: 80 };
  const fire = (/** @type {string} */ name, /** @type {number} */ row, /** @type {number} */ col) =>
    find('stage').fire(name, {
      clientY: 50 + 2 * (4 + 8 * (row + 0.5)),
      clientX: 100 + 2 * (15 + 10 * (col + 0.5)),
      pointerId: 7,
    });
  return {
    ...part,
    find,
    fire,
    /** What is told once the clicks pause. */
    edits: () => {
      part.browser.pass(250);
      return part.told.at(-1) ?? '';
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

test('the temperature of one layer is seen at a time, and those that are others are listed', () => {
  const { find, set } = open();
  assert.equal(find('').hidden, false);
  assert.deepEqual(texts(find('layer').options), ['0', '1', '2']);
  const seen = () => [find('layer').value, find('warmth').value, find('degree').textContent];
  assert.deepEqual(seen(), ['0', '1', '2, more even']);
  find('layer').value = '2';
  find('layer').fire('change');
  assert.deepEqual(seen(), ['2', '-1', '0.5, sharper']);
  assert.equal(find('warm').textContent, 'Temperatures: layer 0: 2, layer 2: 0.5.');
  set({ ...PANEL, layers: 2, temperatures: [[0, 1]] });
  assert.deepEqual(seen(), ['1', '0', '1']);
  assert.equal(find('warm').hidden, true);
});

test('heads that this model does not have are left out', () => {
  const { press, edits } = open({ ...PANEL, off: [[3, 0, 'off'], [0, 5, 'off'], [2, 4, 'off']] }); // prettier-ignore
  press('0.0');
  assert.equal(edits(), `off 2.4 0.0${KEPT}`);
});

test('what is chosen is what a click makes of a head; "on" takes back whatever it was', () => {
  const { find, press, state, edits } = open();
  const buttons = find('states').querySelectorAll('button');
  const pressed = () =>
    buttons.map((/** @type {any} */ one) => one.getAttribute('aria-pressed') === 'true').indexOf(true);
  buttons[2].click();
  assert.equal(pressed(), 2);
  press('1.2');
  assert.equal(state('1.2'), 'uniform');
  assert.equal(edits(), `mean 2.0;uniform 1.2 0.4${KEPT}`);
  find('states').fire('click'); // beside the buttons
  assert.equal(pressed(), 2);
  buttons[3].click();
  assert.equal(pressed(), 3);
  for (const place of ['1.2', '2.0', '0.0']) press(place);
  assert.equal(edits(), `uniform 0.4${KEPT}`);
});

test('a temperature follows its slider', () => {
  const { find, surgery, edits } = open();
  const slide = (/** @type {number} */ layer, /** @type {string} */ power) => {
    surgery.see(layer);
    find('warmth').value = power;
    find('warmth').fire('input');
  };
  slide(1, '-0.5');
  assert.equal(find('warmth').getAttribute('aria-valuetext'), '0.707, sharper');
  assert.equal(find('warmth').value, '-0.5');
  slide(2, '0');
  assert.equal(edits(), 'off 1.2;mean 2.0;uniform 0.4;temperature 0=2 1=0.707;forbid class>1,2@0');
  assert.equal(find('warmth').getAttribute('aria-valuetext'), '1');
  surgery.see(7); // there are three
  assert.equal(find('layer').value, '2');
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
  set({ ...PANEL });
  assert.equal(find('seeing').value, 'some patches'); // the same tokens are not offered anew
  set({ ...PANEL, tokens: [{ value: 'pool', label: 'pool' }], photo: '/vit_viz/photo/y' });
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
  type('seeing', '2, 2');
  assert.equal(find('box').hidden, false); // it is drawn, too
  find('forbid').click();
  assert.equal(find('error').hidden, true);
  assert.match(edits(), /;forbid 2,2>patches@0\+2$/);
});
