// Surgery: what it shows, and what it changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { editsIn, wordsOf } from '../../vit_viz/web/kit/edits.js';
import {
  comparedNames,
  meanMap,
  movedWords,
  scaleWords,
  temperatureOf,
} from '../../vit_viz/web/heads/surgery.js';
import { namedTokens } from '../../vit_viz/web/heads/views.js';
import { open as openTab } from './heads_page.js';
import { settle } from './room.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);
const MODEL = { layers: 3, heads: 5 };
const KEPT = 'temperature 1=0.5;forbid class>1,2@0';

/** The switches at a link with edits; a patch of the photo is 16 x 20 pixels of the page. @param {string} edits @param {any} [more] */
async function open(edits = `off 1.2;${KEPT}`, more = {}) {
  const part = await openTab({ ...more, link: `face=surgery&edits=${encodeURIComponent(edits)}` });
  const find = (/** @type {string} */ name) =>
    any(part.root.querySelector(`.vv-surgery${name && `-${name}`}`));
  const at = (/** @type {number} */ row, /** @type {number} */ col) => ({
    clientY: 50 + 2 * (2 + 8 * (row + 0.5)),
    clientX: 100 + 2 * (5 + 10 * (col + 0.5)),
    pointerId: 7,
  });
  return {
    ...part,
    find,
    /** The state of a head. */
    state: (/** @type {string} */ key) =>
      part.cells().find((cell) => `${cell.dataset.layer}.${cell.dataset.head}` === key)?.dataset.state,
    press: (/** @type {string} */ key) => {
      const [layer, head] = key.split('.');
      return part.click(`td[data-layer="${layer}"][data-head="${head}"]`);
    },
    brush: (/** @type {string} */ state) => part.click(`[data-state="${state}"][aria-pressed]`),
    slide: async (/** @type {string} */ power) => {
      find('warmth').value = power;
      await part.fire(find('warmth'), 'input');
    },
    choose: async (/** @type {string} */ name, /** @type {string} */ value) => {
      find(name).value = value;
      await part.fire(find(name), 'change');
    },
    type: async (/** @type {string} */ name, /** @type {string} */ words) => {
      find(name).value = words;
      await part.fire(find(name), 'input');
    },
    /** An event over a patch of the photo. */
    over: async (/** @type {string} */ name, /** @type {number} */ row, /** @type {number} */ col) => {
      find('stage').box = { left: 100, top: 50, width: 80, height: 40 };
      return part.fire(find('stage'), name, at(row, col));
    },
    outline: () => {
      const { top, left, width, height } = find('box')?.style ?? {};
      return top ? [top, left, width, height].join(' ') : '';
    },
    /** What the link says once the clicks pause. */
    edits: async () => {
      await part.pass(250);
      return part.says('edits') ?? '';
    },
  };
}

test('edits are read from their words, and put into the words that Python reads', () => {
  const words = 'off 0.4 1.0;mean 2.3;temperature 2=0.5;forbid class>patches@0';
  const edits = editsIn(words, MODEL);
  assert.deepEqual([...edits.heads], [['0.4', 'off'], ['1.0', 'off'], ['2.3', 'mean']]); // prettier-ignore
  assert.deepEqual([[...edits.temperatures], edits.forbidden], [[[2, 0.5]], ['class>patches@0']]);
  assert.equal(wordsOf(edits), words);
  assert.equal(
    wordsOf(editsIn(' off  1.0 ;; forbid token 5>class ;temperature 1=1', MODEL)),
    'off 1.0;forbid token 5>class',
  );
  assert.equal(wordsOf(editsIn('off 3.0 0.5 2.4', MODEL)), 'off 2.4'); // of heads that this model does not have
  assert.equal(wordsOf(editsIn('', MODEL)), '');
  assert.equal(wordsOf(editsIn('off 10.2 4.10 4.3')), 'off 4.3 4.10 10.2');
  assert.deepEqual([-3, -1, 0, 0.25, 3].map(temperatureOf), [0.125, 0.5, 1, 1.19, 8]);
});

test('clicks on heads are gathered and told once; what is chosen is what a click makes of a head', async () => {
  const { says, press, state, brush, edits, posted } = await open();
  assert.equal(state('1.2'), 'off');
  await press('1.2'); // which has the state: it is on again
  await press('0.1');
  await brush('mean');
  await press('0.2');
  await brush('uniform');
  await press('1.0');
  assert.deepEqual(['1.2', '0.1', '0.2', '1.0'].map(state), ['on', 'off', 'mean', 'uniform']);
  assert.equal(says('edits'), `off 1.2;${KEPT}`);
  assert.equal(await edits(), `off 0.1;mean 0.2;uniform 1.0;${KEPT}`);
  assert.equal(posted.filter(([name, { edits: words }]) => name === 'edited' && words).length, 1);
  await brush('on');
  for (const key of ['0.1', '0.2', '1.1']) await press(key);
  assert.equal(await edits(), `uniform 1.0;${KEPT}`);
});

test('all heads of a layer are switched at once, and on again where all are off', async () => {
  const { click, edits } = await open();
  await click('[data-all="1"]');
  assert.equal(await edits(), `off 1.0 1.1 1.2;${KEPT}`);
  await click('[data-all="1"]');
  assert.equal(await edits(), KEPT);
});

test('what is edited elsewhere does not take back what was clicked since; a refusal does, with its sentence', async () => {
  /** @type {((refused?: Error) => void)[]} */
  const held = [];
  const answer = (/** @type {string} */ name, /** @type {any} */ { edits }) =>
    name === 'edited' && edits !== undefined && new Promise((done) => held.push(done));
  const part = await open('off 1.2', { answer });
  const { find, set, press, state, pass, all, text } = part;
  const isBusy = () => find('answers').getAttribute('aria-busy');
  assert.equal(isBusy(), 'false');
  await press('0.0');
  await set({ edits: 'off 1.1' });
  assert.deepEqual([state('0.0'), isBusy()], ['off', 'true']);
  await pass(250);
  held[0](new Error('No.'));
  await settle();
  assert.deepEqual([state('0.0'), state('1.1'), isBusy()], ['on', 'off', 'false']);
  assert.equal(text('surgery-error'), 'No.');
  await press('0.1');
  assert.deepEqual(all('.vv-surgery-error:not([hidden])'), []);
  await pass(250);
  await press('0.2'); // before it is known whether the first is possible
  held[1](new Error('No.'));
  await settle();
  assert.deepEqual([state('0.1'), state('0.2'), all('.vv-surgery-error:not([hidden])')], ['off', 'off', []]);
  await pass(250);
  held[2]();
  await settle();
  assert.deepEqual([part.says('edits'), isBusy()], ['off 0.1 0.2 1.1', 'false']);
  await press('0.0');
  await set({ image: 'other' }); // what was clicked there is not done here
  assert.equal(state('0.0'), 'on');
});

test('where taking a step back is refused, it can be taken back again', async () => {
  let refusal = /** @type {Error | null} */ (null);
  const answer = (/** @type {string} */ name, /** @type {any} */ { edits }) => {
    if (name === 'edited' && edits !== undefined && refusal) throw refusal;
  };
  const { find, press, state, click, edits, text } = await open('off 1.2', { answer });
  await press('0.0');
  await edits();
  refusal = new Error('No.');
  await click('.vv-surgery-undo');
  assert.deepEqual([state('0.0'), find('undo').disabled], ['on', true]);
  assert.equal(await edits(), 'off 0.0 1.2');
  assert.deepEqual([text('surgery-error'), state('0.0'), find('undo').disabled], ['No.', 'off', false]);
});

test('every step is taken back, by the button or by Ctrl+Z, one movement of a slider as one step', async () => {
  const { find, press, edits, slide, click, fire, browser, set, choose } = await open();
  assert.equal(find('undo').disabled, true);
  await press('0.0');
  for (const power of ['0.5', '1', '2']) await slide(power);
  await click('.vv-surgery-all');
  assert.equal(await edits(), '');
  assert.equal(find('all').disabled, true);
  await click('.vv-surgery-undo');
  assert.equal(await edits(), 'off 0.0 1.2;temperature 1=0.5 0=4;forbid class>1,2@0');
  const key = (/** @type {any} */ more) =>
    fire(browser.window, 'keydown', { key: 'z', target: null, ...more });
  await set({ tab: 'look' }); // the switches are not seen
  assert.ok(!(await key({ ctrlKey: true })).prevented);
  await set({ tab: 'heads' });
  for (const more of [{}, { ctrlKey: true, shiftKey: true }, { ctrlKey: true, target: find('layers') }])
    assert.ok(!(await key(more)).prevented); // somebody types
  assert.ok((await key({ ctrlKey: true })).prevented);
  assert.equal(await edits(), `off 0.0 1.2;${KEPT}`);
  assert.ok((await key({ metaKey: true })).prevented);
  assert.equal(await edits(), `off 1.2;${KEPT}`);
  assert.ok(!(await key({ ctrlKey: true })).prevented);
  await set({ edits: '' }); // edited elsewhere, such as by the badge
  await click('.vv-surgery-undo');
  assert.equal(await edits(), `off 1.2;${KEPT}`);
  await choose('layer', '1');
  await press('0.0');
  await set({ image: 'other' });
  assert.equal(find('undo').disabled, true);
});

test('a step that was refused is none, and what was before it can still be taken back', async () => {
  const answer = (/** @type {string} */ name, /** @type {any} */ { edits }) =>
    name === 'edited' && edits?.includes('0.1') && new Error('No.');
  const { find, press, edits, click, text } = await open('', { answer });
  await press('0.0');
  assert.equal(await edits(), 'off 0.0');
  await press('0.1');
  await press('0.2');
  assert.equal(await edits(), 'off 0.0');
  assert.equal(text('surgery-error'), 'No.');
  await click('.vv-surgery-undo');
  assert.equal(await edits(), '');
  assert.equal(find('undo').disabled, true);
});

test('a head that is switched off in the atlas is one step back', async () => {
  const part = await openTab({ link: 'layer=1&head=2' });
  await part.click('.vv-heads-switch');
  assert.equal(part.find('heads').dataset.face, 'surgery');
  assert.equal(part.cell(5).dataset.state, 'off');
  await part.pass(250);
  assert.deepEqual(part.written, [[{ face: 'surgery' }, true], [{ edits: 'off 1.2' }, false]]); // prettier-ignore
  await part.click('[data-face=atlas]');
  assert.equal(part.text('switch'), 'switch on');
});

test('the temperature of one layer is seen at a time, and those that are others are listed', async () => {
  const { find, choose, slide, press, set, edits } = await open('temperature 0=2 1=0.5');
  const seen = () => [find('layer').value, find('warmth').value, find('degree').textContent];
  assert.deepEqual(seen(), ['0', '1', '2, more even']);
  await choose('layer', '1');
  assert.deepEqual(seen(), ['1', '-1', '0.5, sharper']);
  assert.equal(find('warm').textContent.trim(), 'Temperatures: layer 0: 2, layer 1: 0.5.');
  await slide('-0.5');
  assert.equal(find('warmth').getAttribute('aria-valuetext'), '0.707, sharper');
  assert.equal(await edits(), 'temperature 0=2 1=0.707');
  await press('0.1'); // the layer of a head that is chosen
  await slide('0');
  assert.equal(await edits(), 'off 0.1;temperature 1=0.707');
  await set({ edits: '' });
  assert.deepEqual([seen(), find('warm')], [['0', '0', '1'], null]);
});

test('tokens are offered by name and by place; the photo is there where places are asked for', async () => {
  const { find, choose, all, set } = await open();
  const values = (/** @type {string} */ side) =>
    all(`.vv-surgery-${side} option`).map(({ textContent }) => textContent);
  const names = ['class token', 'detection 0', 'all patches', 'all tokens', 'some patches'];
  assert.deepEqual(values('seeing'), names);
  assert.deepEqual([find('seeing').value, find('seen').value], ['class', 'some patches']);
  const seen = () =>
    ['seeing-patches', 'seen-patches', 'stage', 'hint'].filter((name) => find(name) && !find(name).hidden);
  assert.deepEqual(seen(), ['seen-patches', 'stage', 'hint']);
  assert.deepEqual([find('photo').src, find('photo').alt], ['/photo/x', 'lion']);
  await choose('seen', 'class');
  assert.deepEqual(seen(), []);
  await choose('seeing', 'some patches');
  assert.deepEqual(seen(), ['seeing-patches', 'stage', 'hint']);
  await set({ edits: 'off 0.0' });
  assert.equal(find('seeing').value, 'some patches'); // the same tokens are not offered anew
});

test('where there are many named tokens those behind the patches are left to be typed; registers are a group', () => {
  const registers = ['register 0', 'register 1'];
  const detections = Array.from({ length: 14 }, (_, i) => `detection ${i}`);
  const values = (/** @type {string[]} */ suffix) =>
    namedTokens({ prefix: ['class', ...registers], suffix }).map(({ value }) => value);
  const groups = ['patches', 'registers', 'everything'];
  assert.deepEqual(values(detections.slice(1)), ['class', ...registers, ...detections.slice(1), ...groups]);
  assert.deepEqual(values(detections), ['class', ...registers, ...groups]);
});

test('patches that are typed are outlined on the photo', async () => {
  const { type, outline } = await open();
  assert.equal(outline(), '');
  await type('seen-patches', ' 0-1,1-2 ');
  assert.equal(outline(), '10% 37.5% 50% 80%'); // from (2, 15) to (18, 35) of 20 x 40
  await type('seen-patches', '0,2');
  assert.equal(outline(), '10% 62.5% 25% 40%');
  for (const words of ['1-2', 'x1,2']) {
    await type('seen-patches', words);
    assert.equal(outline(), '');
  }
});

test('a rectangle on the photo is the patches of the side that was touched last', async () => {
  const { find, over, choose, fire } = await open();
  assert.ok((await over('pointerdown', 1, 2)).prevented);
  assert.deepEqual([find('stage').captured, find('seen-patches').value], [7, '1,2']);
  await over('pointermove', 0, 1);
  assert.equal(find('seen-patches').value, '0-1,1-2');
  await fire(find('stage'), 'pointermove', { clientX: 101, clientY: 51 }); // outside what the model saw, above it and to the left
  assert.equal(find('seen-patches').value, '0-1,0-2');
  await over('pointerup', 0, 1);
  await over('pointermove', 0, 0);
  assert.equal(find('seen-patches').value, '0-1,0-2');
  await over('pointerdown', 1, 0);
  await over('pointercancel', 1, 0);
  await over('pointermove', 0, 0);
  assert.equal(find('seen-patches').value, '1,0');
  assert.ok(
    !(await fire(find('stage'), 'pointerdown', { clientX: 101, clientY: 51, pointerId: 7 })).prevented,
  );
  await choose('seeing', 'some patches');
  await over('pointerdown', 1, 1);
  assert.deepEqual([find('seeing-patches').value, find('seen-patches').value], ['1,1', '1,0']);
  await fire(find('seen-patches'), 'focus');
  await over('pointerdown', 0, 2);
  assert.deepEqual([find('seeing-patches').value, find('seen-patches').value], ['1,1', '0,2']);
  await choose('seeing', 'class');
  await over('pointerdown', 1, 2); // the side that is left asks for places
  assert.equal(find('seen-patches').value, '1,2');
});

test('a view is forbidden with its layers, all of them where none is named, and never twice; and allowed again', async () => {
  const { find, choose, type, edits, click, all, text } = await open();
  await click('.vv-surgery-forbid');
  assert.equal(text('surgery-error'), 'Which patches? Draw them on the photo, or type them.');
  await type('seen-patches', ' 0-1, 2');
  await type('layers', '0, 1');
  await click('.vv-surgery-forbid');
  assert.deepEqual(all('.vv-surgery-error:not([hidden])'), []);
  assert.equal(await edits(), `off 1.2;${KEPT};forbid class>0-1,2@0+1`);
  await choose('seen', 'class');
  for (const layers of ['', ' all ']) {
    await type('layers', layers);
    await click('.vv-surgery-forbid');
  }
  const lines = () =>
    all('.vv-surgery-forbidden li').map(({ textContent }) => textContent.trim().replace(/\s+/g, ' '));
  assert.deepEqual(lines(), [
    'class no longer sees 1,2, in layers 0Allow',
    'class no longer sees 0-1,2, in layers 0+1Allow',
    'class no longer sees classAllow',
  ]);
  const [button] = all('.vv-surgery-forbidden button');
  assert.equal(button.getAttribute('aria-label'), 'Allow again: class no longer sees 1,2, in layers 0');
  await click(button);
  assert.equal(await edits(), 'off 1.2;temperature 1=0.5;forbid class>0-1,2@0+1;forbid class>class');
  assert.equal(find('forbidden').children.length, 2);
});

test('the maps before and after are of the heads that are on, on one scale', async () => {
  const part = await open('off 1.0');
  assert.equal(
    part.text('surgery-maps-title'),
    'Layer 1, mean of the 2 heads that are on: patch (0, 1) looks where it did',
  );
  assert.deepEqual(part.all('.vv-surgery-maps figcaption').map(({ textContent }) => textContent), ['before', 'now', 'difference']); // prettier-ignore
  assert.equal(part.text('surgery-maps-words'), 'An edit changes where later layers look, not its own.');
  assert.ok(
    part.lit.some((path) => path.includes('/h4ndle/1?')) &&
      part.lit.some((path) => path.includes('/edited%20off%201.0/1?')),
  );
  await part.click('[data-all="1"]');
  await part.pass(250);
  assert.match(part.text('surgery-maps-title'), /: no head is on, and patch \(0, 1\) looks at nothing$/);
  const failed = await open('off 1.0', {
    rows: (/** @type {string} */ path) => path.includes('h4ndle') && { status: 500, ok: false },
  });
  assert.match(failed.text('surgery-maps-words'), /^The server refused this request/);
  const shape = any({ heads: 2, tokens: 3, prefix: ['class'], grid: [1, 2] });
  const rows = Float32Array.of(9, 0.25, 0.5, 9, 0.75, 1);
  assert.deepEqual([...(meanMap(rows, shape, new Set()) ?? [])], [0.5, 0.75]);
  assert.deepEqual([...(meanMap(rows, shape, new Set([0])) ?? [])], [0.75, 1]);
  assert.equal(meanMap(rows, shape, new Set([0, 1])), null);
  const change = Float32Array.of(0.01, -0.007, 0.002);
  const moved = { now: change, before: change, change, most: 0.01, top: 0.02 };
  assert.match(scaleWords(moved), /fully lit from 2% .* by at most 1% of it\.$/);
  assert.equal(movedWords(moved, 'patch (0, 1)'), 'patch (0, 1) looks elsewhere with 1.2% of its attention');
  const named = (/** @type {string[]} */ ...names) => names.map((name) => ({ name }));
  assert.deepEqual(comparedNames(named('a', 'b', 'c', 'd'), named('b', 'e', 'a', 'f')), ['a', 'b', 'c', 'e']);
});
