// What is chosen in the Tokens tab: the controls of its rows, the class of the lens, and the box on the photo.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { OPTIONS } from './browser.js';
import { open } from './tokens_tab.js';
import { pressed, settle, texts } from './room.js';

/** Segments of four layers, so that the tab is content whatever is asked. */
const segments = { labels: [0, 0, 1, 1, 0, 0], overlap: null, method: 'k-means' };
const answer = (/** @type {string} */ path) => (path.includes('segments') ? segments : null);
const SEGMENTS = { token_measure: 'segments' };

/** Which controls are shown, by their option or their words. */
const shown = (/** @type {any} */ { find }) =>
  find('tokens-choices').querySelectorAll('[data-option], .vv-tokens-likeliest, .vv-tokens-draw').map((/** @type {any} */ { dataset, textContent }) => dataset.option?.replace('token_', '') ?? textContent.trim()); // prettier-ignore

test('each question shows its own controls, with the choices and limits that Python declares', async () => {
  const classed = (/** @type {string} */ path) =>
    path.startsWith('target') ? { classes: [{ index: 4, name: 'nail' }], name: 'nail' } : answer(path);
  const part = await open({}, { answer: classed });
  const controls = {
    similarity: ['role', 'scale'],
    components: ['role', 'foreground', 'whitened', 'second'],
    norms: ['role', 'scale', 'factor', 'register'],
    lens: ['role', 'its likeliest class'], // probabilities have one scale
    layers: ['role', 'scale'],
    segments: ['segment_role', 'method', 'count', 'box', 'draw a box'],
  };
  const declared = Object.fromEntries(OPTIONS.tokens.map((one) => [one.name, one]));
  const seen = new Set(['token_measure', 'token_state']);
  for (const [measure, names] of Object.entries(controls)) {
    await part.press('token_measure', measure);
    assert.deepEqual(shown(part), names);
    for (const node of part.find('tokens-choices').querySelectorAll('[data-option]')) {
      const { choices, low, high, step } = declared[node.dataset.option];
      seen.add(node.dataset.option);
      const buttons = node
        .querySelectorAll('[data-value]')
        .map((/** @type {any} */ one) => one.dataset.value);
      assert.deepEqual(buttons, choices ?? []);
      if (node.type === 'range')
        assert.deepEqual([node.min, node.max, node.step].map(Number), [low, high, step ?? 1]);
    }
  }
  assert.deepEqual([...seen].sort(), Object.keys(declared).sort());
  assert.deepEqual(part.element.querySelectorAll('tr[data-row]').map((/** @type {any} */ row) => row.dataset.row).sort(), [...declared.token_measure.choices].sort()); // prettier-ignore
  await part.press('token_method', 'cut');
  assert.deepEqual(shown(part), ['segment_role', 'method', 'box', 'draw a box']);
  const bare = await open({ chosen: { token_measure: 'lens' } });
  assert.deepEqual(shown(bare), ['role', 'scale', 'its likeliest class']); // a cosine has a scale
});

test('a model without queries and keys shows its tokens, and offers nothing else', async () => {
  const part = await open({ head_dim: 0, chosen: { token_role: 'keys' } }, { answer });
  assert.match(part.asked[0], /role=tokens$/);
  assert.equal(part.find('roles'), null);
  await part.press('token_measure', 'segments');
  assert.ok(!shown(part).includes('segment_role'));
  assert.ok(part.asked.some((path) => /^segments.*role=tokens/.test(path)));
});

test('the lens is of the likeliest class, until one is chosen by its chip or its name', async () => {
  const lion = { index: 7, name: 'lion', probability: 0.05 };
  const server = (/** @type {string} */ path) => {
    const [name, asked] = path.split('?');
    if (name !== 'target') return null;
    if (new URLSearchParams(asked).get('find')) return { hits: [lion] };
    return { classes: [{ index: 4, name: 'nail', probability: 0.9 }, lion], chosen: 4, name: 'nail' };
  };
  const { find, told, browser, asked, click } = await open(
    { chosen: { token_measure: 'lens' } },
    { answer: server },
  );
  assert.deepEqual(texts(find('why').children), ['nail90%', 'lion5%']);
  assert.deepEqual([...find('why').children, find('tokens-likeliest')].map(pressed), [
    'false',
    'false',
    'true',
  ]); // each patch has its own
  await click(find('why').children[1]);
  assert.deepEqual(told, [[{ target: '7' }, false]]);
  assert.ok(asked.includes('logit_lens?target=7'));
  assert.equal(pressed(find('tokens-likeliest')), 'false');
  find('search').value = 'li';
  find('search').fire('input');
  assert.equal(find('hits').hidden, true); // nothing was asked yet
  browser.pass(150);
  await settle();
  assert.equal(asked.at(-1), 'target?view=&find=li');
  await click(find('hits').querySelector('button'));
  assert.equal(told.length, 1); // it is chosen already
  await click(find('tokens-likeliest'));
  assert.deepEqual(told.at(-1), [{ target: null }, false]);
});

test('the controls say what is chosen, and pictures are offered to share the colours', async () => {
  const pictures = ['lion', 'p1', 'p2'].map((id) => ({ id, name: `photo ${id}` }));
  const chosen = { token_factor: 7.5, token_whitened: true, token_measure: 'norms', token_second: 'p2' };
  const { control, press, show } = await open({ chosen, pictures }, { answer: () => new Error('no') });
  assert.equal(control('factor').value, '7.5');
  assert.equal(control('factor').parentElement.querySelector('output').textContent, '7.5');
  assert.equal(pressed(control('register')), 'false');
  await press('token_measure', 'components');
  assert.deepEqual(['whitened', 'foreground'].map(control).map(pressed), ['true', 'false']);
  assert.equal(control('second').value, 'p2');
  assert.deepEqual(texts(control('second').children), ['no other photo', 'photo p1', 'photo p2']); // not itself
  const [first] = control('second').children;
  await show({ pictures: pictures.slice(0, 2), chosen: { token_measure: 'components' } });
  assert.equal(control('second').children[0], first); // a list that is open stays
  assert.deepEqual(texts(control('second').children), ['no other photo', 'photo p1']);
});

test('a box that is typed is told when it is done, without spaces, and stays while somebody types', async () => {
  const part = await open({ chosen: SEGMENTS }, { answer });
  const { told, words, find, control } = part;
  const field = control('box');
  field.focus();
  field.value = ' 20, 0,120 ,80';
  field.fire('input');
  part.browser.pass(500);
  assert.deepEqual(told, []);
  field.fire('change');
  assert.deepEqual(told, [[{ box: '20,0,120,80' }, false]]);
  await settle();
  field.value = '1,2';
  field.fire('input');
  await part.show({ chosen: { ...SEGMENTS, token_box: '0,0,9,9' } });
  assert.equal(field.value, '1,2');
  for (const text of ['20,80,120,0', '5,0,5,9', '1,2,3', '-1,0,5,9', 'a,b,c,d']) {
    field.value = text;
    field.fire('input');
    field.fire('change');
    await settle();
    assert.equal(words('tokens-error'), 'A box is left,top,right,bottom in pixels, as 20,10,120,90.');
    await part.click(find('close'));
    assert.equal(find('tokens-error').hidden, true);
  }
  assert.equal(told.length, 1);
  field.blur();
  await part.click(find('tokens-no-box'));
  assert.deepEqual(part.chosen().at(-1), { box: null });
  assert.deepEqual([find('tokens-no-box'), field.value, find('tokens-error').hidden], [null, '', true]);
});

test('a box is drawn while its button is on; the click that ends the press pins nothing', async () => {
  const { find, stage, at, told, marks, chosen, click, point, frame } = await open(
    { chosen: SEGMENTS },
    { answer },
  );
  const state = () => [pressed(find('tokens-draw')), stage.classList.contains('vv-drawing')];
  await click(find('tokens-draw'));
  assert.deepEqual(state(), ['true', true]);
  assert.equal(stage.fire('pointerdown', at(12, 35)).prevented, true);
  assert.equal(stage.captured, 7);
  await point(at(30, 75));
  assert.equal(marks().at(-1), 'vv-ring vv-object 30% 35%'); // 12 of 40 down, 35 of 100 across
  assert.deepEqual(told, []);
  await point(at(25, 60));
  stage.fire('pointerup', at(31, 77));
  await settle();
  assert.deepEqual(chosen(), [{ box: '35,12,77,31' }]);
  assert.deepEqual(state(), ['false', false]);
  stage.fire('click', at(31, 77));
  await point(at(15, 35)); // the press is over
  stage.fire('pointerup', at(15, 35));
  await frame();
  assert.equal(told.length, 1);
  assert.equal(marks().at(-1), 'vv-ring vv-object 30% 35%');
  assert.equal(stage.fire('pointerdown', at(15, 40)).prevented, false); // the button is off: the next press pins again
  stage.fire('click', at(15, 40));
  assert.deepEqual(told.at(-1), [{ q: '0,0' }, true]);
});

test('the box goes with the pointer, from any corner, within the photo, and what is drawn is not what was there', async () => {
  const { find, stage, at, marks, click, point, press } = await open({ chosen: { ...SEGMENTS, token_box: '10,10,20,20' } }, { answer }); // prettier-ignore
  assert.equal(marks().at(-1), 'vv-ring vv-object 25% 10%');
  await click(find('tokens-draw'));
  stage.fire('pointerdown', at(30, 80));
  await point(at(-8, 90));
  assert.equal(marks().at(-1), 'vv-ring vv-object 0% 80%');
  const { width, height } = find('object').style;
  assert.deepEqual([width, height], ['10%', '75%']);
  stage.fire('pointercancel', at(8, 90));
  await point(at(20, 20));
  assert.equal(marks().at(-1), 'vv-ring vv-object 25% 10%'); // as before
  assert.equal(pressed(find('tokens-draw')), 'true'); // to be tried again
  await press('token_measure', 'similarity');
  assert.deepEqual(marks(), ['vv-ring 50% 50%']);
});

test('a press without a way draws no box, and the button stays on until it is pressed again', async () => {
  const { find, stage, at, told, click } = await open({ chosen: SEGMENTS }, { answer });
  await click(find('tokens-draw'));
  stage.fire('pointerdown', at(15, 40));
  stage.fire('pointerup', at(15.3, 90)); // no height
  stage.fire('click', at(15, 40));
  assert.deepEqual(told, []);
  assert.equal(pressed(find('tokens-draw')), 'true');
  await click(find('tokens-draw'));
  assert.equal(pressed(find('tokens-draw')), 'false');
  stage.fire('pointerdown', at(15, 40));
  stage.fire('pointermove', at(25, 60));
  stage.fire('pointerup', at(25, 60));
  stage.fire('click', at(25, 60));
  assert.deepEqual(told, [[{ q: '1,1' }, true]]); // no box
});
