// What is chosen in the Tokens tab: the controls of its head, the box on the photo, and the jobs that take a while.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chosenBy } from '../../vit_viz/ui/kit/controls.js';
import { possible } from '../../vit_viz/web/tokens/room.js';
import { Browser, parse, read } from './browser.js';
import { open, pressed, settle, texts, usual } from './tokens_tab.js';

const HTML = read('../../vit_viz/web/tokens/room.html');

/** Which parts of the head are shown, by their option or their words. */
function shown(/** @type {any} */ element) {
  const parts = element.querySelectorAll('[data-for]').filter((/** @type {any} */ part) => !part.hidden);
  return parts.map((/** @type {any} */ part) => {
    const option = part.dataset.option ?? part.querySelector('[data-option]')?.dataset.option;
    return option?.replace('token_', '') ?? part.textContent.slice(0, 10);
  });
}

/** Segments of four layers, so that the tab is content whatever is asked. */
const segments = { labels: [0, 0, 1, 1, 0, 0], shares: [4 / 6, 2 / 6], overlap: null, method: 'k-means' };
const answer = (/** @type {string} */ path) => (path.includes('segments') ? segments : null);

test('sliders have the limits that Python declares', async () => {
  const { element } = await open();
  const limits = (/** @type {string} */ name) => {
    const { min, max, step } = /** @type {any} */ (element.querySelector(`[data-option=${name}]`));
    return [min, max, step];
  };
  assert.deepEqual(limits('token_factor'), ['1.5', '20', '0.5']);
  assert.deepEqual(limits('token_count'), ['2', '24', '1']);
});

const classed = (/** @type {string} */ path) =>
  path.startsWith('target') ? { classes: [{ index: 4, name: 'nail' }], name: 'nail' } : null;

test('each measure shows its own controls', async () => {
  const { element, press } = await open({}, { answer: classed });
  assert.deepEqual(shown(element), ['role', 'scale']);
  await press('token_measure', 'components');
  assert.deepEqual(shown(element), ['role', 'foreground', 'whitened', 'second']);
  await press('token_measure', 'norms');
  assert.deepEqual(shown(element), ['role', 'scale', 'factor', 'register']);
  await press('token_measure', 'lens');
  assert.deepEqual(shown(element), ['role', 'how sure o']); // probabilities have one scale
  await press('token_measure', 'layers');
  assert.deepEqual(shown(element), ['role', 'scale']);
  await press('token_measure', 'segments');
  assert.deepEqual(shown(element), ['segment_role', 'method', 'count', 'box', 'draw a box']);
  await press('token_method', 'cut');
  assert.deepEqual(shown(element), ['segment_role', 'method', 'box', 'draw a box']);
  const bare = await open({ chosen: { token_measure: 'lens' } });
  assert.deepEqual(shown(bare.element), ['role', 'scale', 'how sure o']); // a cosine has a scale
});

test('the lens is of the likeliest class, until one is chosen', async () => {
  const { find, told, show } = await open({ chosen: { token_measure: 'lens' } });
  assert.equal(pressed(find('room-likeliest')), 'true');
  await show({ target: '7', chosen: { token_measure: 'lens' } });
  assert.equal(pressed(find('room-likeliest')), 'false');
  find('room-likeliest').click();
  assert.deepEqual(told, [[{ target: null }, false]]);
  await settle();
});

test('a box can be taken away only where there is one, and roles chosen only where there are some', async () => {
  const chosen = { token_measure: 'segments', token_box: '40,10,80,30' };
  const part = await open({ chosen }, { answer });
  assert.equal(part.find('room-no-box').hidden, false);
  part.find('room-no-box').click();
  assert.deepEqual(part.chosen(), [{ box: null }]);
  assert.equal(part.find('room-no-box').hidden, true);
  await part.show({ head_dim: 0 });
  assert.ok(!shown(part.element).includes('segment_role'));
});

test('the controls say what is chosen', async () => {
  const chosen = { token_factor: 7.5, token_whitened: true, token_measure: 'norms', token_second: 'p2' };
  const pictures = [{ id: 'p2', name: 'b' }];
  const { element } = await open({ chosen, pictures }, { answer: () => new Error('no') });
  const control = (/** @type {string} */ option) =>
    /** @type {any} */ (element.querySelector(`[data-option=token_${option}]`));
  assert.equal(control('factor').value, '7.5');
  assert.equal(control('factor').parentElement.querySelector('output').textContent, '7.5');
  assert.equal(control('count').parentElement.querySelector('output').textContent, '4');
  assert.equal(control('second').value, 'p2');
  assert.deepEqual(['whitened', 'foreground', 'register'].map(control).map(pressed), [
    'true',
    'false',
    'false',
  ]);
  const rows = control('measure').querySelectorAll('[data-value]');
  assert.deepEqual(rows.map(pressed), ['false', 'false', 'true', 'false', 'false', 'false']);
  assert.equal(pressed(control('measure')), null);
});

test('a field that somebody is typing into keeps its text', async () => {
  const part = await open({ pictures: [{ id: 'p3', name: 'c' }] });
  const field = /** @type {any} */ (part.element.querySelector('[data-option=token_box]'));
  field.focus();
  field.value = '1,2';
  await part.show({ chosen: { token_box: '0,0,9,9' } });
  assert.equal(field.value, '1,2');
  const select = /** @type {any} */ (part.element.querySelector('[data-option=token_second]'));
  select.focus();
  await part.show({ chosen: { token_second: 'p3', token_box: '0,0,9,9' } });
  assert.deepEqual([field.value, select.value], ['0,0,9,9', 'p3']);
});

test('a slider that is moved shows its number at once, and is told once it rests', async () => {
  const { element, browser, told } = await open();
  const slider = /** @type {any} */ (element.querySelector('[data-option=token_factor]'));
  for (const value of ['6', '6.5']) {
    slider.value = value;
    slider.fire('input');
    browser.pass(199);
  }
  assert.deepEqual(told, []);
  assert.equal(slider.parentElement.querySelector('output').textContent, '6.5');
  browser.pass(1);
  assert.deepEqual(told, [[{ outliers: '6.5' }, false]]);
  slider.value = '8';
  slider.fire('input');
  slider.fire('change');
  browser.pass(1000);
  assert.deepEqual(told.slice(1), [[{ outliers: '8' }, false]]); // once
  await settle();
});

test('what is typed is told when it is done, without spaces', async () => {
  const { element, told, browser } = await open();
  const field = /** @type {any} */ (element.querySelector('[data-option=token_box]'));
  field.value = ' 20, 0,120 ,80';
  field.fire('input');
  browser.pass(500);
  assert.deepEqual(told, []);
  field.fire('click');
  assert.deepEqual(told, []);
  field.fire('change');
  assert.deepEqual(told, [[{ box: '20,0,120,80' }, false]]);
  const search = /** @type {any} */ (element.querySelector('.vv-search'));
  search.fire('change');
  assert.equal(told.length, 1); // no option
  await settle();
});

test('what is no box is refused in words, and nothing is told', async () => {
  const { element, told, words, find, browser } = await open();
  const field = /** @type {any} */ (element.querySelector('[data-option=token_box]'));
  field.value = '20,80,120,0';
  field.fire('change');
  assert.deepEqual(told, []);
  assert.equal(words('room-error'), 'A box is left,top,right,bottom in pixels, as 20,10,120,90.');
  assert.equal(find('room-error').hidden, false);
  browser.pass(1000);
});

test('events are read as what they choose', (context) => {
  new Browser().install(context);
  const element = parse(HTML);
  const chosen = (/** @type {string} */ selector, /** @type {string} */ type, more = {}) => {
    const target = Object.assign(/** @type {any} */ (element.querySelector(selector)), more);
    return chosenBy(/** @type {any} */ ({ type, target }));
  };
  assert.equal(chosenBy(/** @type {any} */ ({ type: 'click', target: null })), null);
  assert.equal(chosen('.vv-room-head', 'click'), null);
  assert.equal(chosen('.vv-room-table', 'click'), null); // between its buttons
  assert.deepEqual(chosen('[data-value=norms]', 'click'), { token_measure: 'norms' });
  assert.equal(chosen('[data-value=norms]', 'change'), null);
  assert.deepEqual(chosen('[data-option=token_register]', 'click'), { token_register: true });
  element.querySelector('[data-option=token_register]')?.setAttribute('aria-pressed', 'true');
  assert.deepEqual(chosen('[data-option=token_register]', 'click'), { token_register: false });
  assert.deepEqual(chosen('[data-option=token_count]', 'change', { value: '12' }), { token_count: 12 });
  assert.equal(chosen('[data-option=token_count]', 'click'), null);
  element.querySelector('[data-option=token_second]').innerHTML = '<option>7</option>';
  assert.deepEqual(chosen('[data-option=token_second]', 'change', { value: '7' }), { token_second: '7' });
  assert.equal(chosen('[data-option=token_second]', 'click'), null);
});

test('a role that the model lacks becomes the tokens', () => {
  const wanted = /** @type {any} */ ({ ...usual, token_role: 'queries', token_segment_role: 'keys' });
  assert.deepEqual(possible(wanted, ['tokens', 'keys']), {
    ...usual,
    token_role: 'tokens',
    token_segment_role: 'keys',
  });
  assert.equal(possible(wanted, ['tokens', 'queries']).token_segment_role, 'tokens');
});

test('pictures are offered to share the colours, and a list that is open is not drawn anew', async () => {
  const pictures = [
    { id: 'p1', name: 'a cat' },
    { id: 'p2', name: 'a dog' },
  ];
  const { element, show } = await open({ pictures });
  const select = /** @type {any} */ (element.querySelector('[data-option=token_second]'));
  assert.deepEqual(texts(select.children), ['no other photo', 'a cat', 'a dog']);
  assert.deepEqual(
    select.children.map((/** @type {any} */ one) => one.value),
    ['', 'p1', 'p2'],
  );
  const [first] = select.children;
  await show({});
  assert.equal(select.children[0], first);
  await show({ pictures: pictures.slice(1) });
  assert.deepEqual(texts(select.children), ['no other photo', 'a dog']);
});

// --- the box on the photo

const boxed = { chosen: { token_measure: 'segments' } };

test('a box is drawn while its button is on; the click that ends the press pins nothing', async () => {
  const { find, stage, at, told, browser, marks, chosen } = await open(boxed, { answer });
  const button = find('room-draw');
  button.click();
  assert.deepEqual([pressed(button), stage.classList.contains('vv-drawing')], ['true', true]);
  assert.equal(stage.fire('pointerdown', at(12, 35)).prevented, true);
  assert.equal(stage.captured, 7);
  stage.fire('pointermove', at(30, 75));
  browser.pass(16);
  assert.equal(marks().at(-1), 'vv-ring vv-object 30% 35%'); // 12 of 40 down, 35 of 100 across
  assert.deepEqual(told, []);
  stage.fire('pointermove', at(25, 60));
  stage.fire('pointerup', at(31, 77));
  assert.deepEqual(chosen(), [{ box: '35,12,77,31' }]);
  assert.deepEqual([pressed(button), stage.classList.contains('vv-drawing')], ['false', false]);
  stage.fire('click', at(31, 77));
  assert.equal(told.length, 1);
  assert.equal(marks().at(-1), 'vv-ring vv-object 30% 35%');
  stage.fire('pointermove', at(15, 35)); // the press is over
  browser.pass(16);
  stage.fire('pointerup', at(15, 35));
  assert.equal(told.length, 1);
  assert.equal(marks().at(-1), 'vv-ring vv-object 30% 35%');
  assert.equal(stage.fire('pointerdown', at(15, 40)).prevented, false); // the button is off: the next press pins again
  stage.fire('click', at(15, 40));
  assert.deepEqual(told.at(-1), [{ q: '0,0' }, true]);
  await settle();
});

test('the box goes with the pointer, from any corner, and what is drawn is not what was there', async () => {
  const chosen = { token_measure: 'segments', token_box: '10,10,20,20' };
  const { find, stage, at, browser, marks } = await open({ chosen }, { answer });
  assert.equal(marks().at(-1), 'vv-ring vv-object 25% 10%');
  find('room-draw').click();
  stage.fire('pointerdown', at(30, 80));
  stage.fire('pointermove', at(8, 90));
  browser.pass(16);
  assert.equal(marks().at(-1), 'vv-ring vv-object 20% 80%');
  const { width, height } = find('rings').children[find('rings').childElementCount - 1].style;
  assert.deepEqual([width, height], ['10%', '55%']);
  stage.fire('pointercancel', at(8, 90));
  browser.pass(16);
  stage.fire('pointermove', at(20, 20));
  browser.pass(16);
  assert.equal(marks().at(-1), 'vv-ring vv-object 25% 10%'); // as before
  assert.equal(pressed(find('room-draw')), 'true'); // to be tried again
});

test('a press without a way draws no box, and the button stays on until it is pressed again', async () => {
  const { find, stage, at, told } = await open(boxed, { answer });
  find('room-draw').click();
  stage.fire('pointerdown', at(15, 40));
  stage.fire('pointerup', at(15, 40));
  stage.fire('click', at(15, 40));
  assert.deepEqual(told, []);
  assert.equal(pressed(find('room-draw')), 'true');
  find('room-draw').click();
  assert.deepEqual([pressed(find('room-draw')), stage.classList.contains('vv-drawing')], ['false', false]);
  stage.fire('pointerdown', at(15, 40));
  stage.fire('pointermove', at(25, 60));
  stage.fire('pointerup', at(25, 60));
  stage.fire('click', at(25, 60));
  assert.deepEqual(told, [[{ q: '1,1' }, true]]); // no box
});

test('other measures show no box', async () => {
  const { marks } = await open({ chosen: { token_box: '10,10,20,20' } });
  assert.deepEqual(marks(), ['vv-ring 50% 50%']);
});

test('another photo ends the job of the old one', async () => {
  const never = (/** @type {string} */ path) =>
    path.startsWith('layer_similarity') ? new Promise(() => {}) : null;
  const { find, show, asked, signals } = await open(
    { chosen: { token_measure: 'layers' } },
    { answer: never },
  );
  assert.equal(find('room-job').hidden, false);
  const asking = asked.findIndex((path) => path.startsWith('layer_similarity'));
  await show({ trace: 'h5', chosen: { token_measure: 'similarity' } });
  assert.equal(signals[asking].aborted, true);
  assert.equal(find('room-job').hidden, true);
  assert.equal(find('room-error').hidden, true);
});
