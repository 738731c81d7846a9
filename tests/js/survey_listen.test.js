// What pointer and keys do in the Survey tab: filters that are written, brushed or clicked, heads, lists, and dots.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Element } from './browser.js';
import { makeFigure, open, settle, survey, texts, value } from './survey_page.js';

const chosenOf = (/** @type {string} */ where) =>
  `chosen?${new URLSearchParams({ where, layer: '1', head: '2', measure: 'distance' })}`;

const pressed = (/** @type {any} */ nodes) =>
  nodes.map((/** @type {any} */ node) => node.getAttribute('aria-pressed'));

test('a filter is what is written, on one line, and the same one is not asked for twice', async () => {
  const part = await open();
  part.news();
  const event = part.type('  depth > 2\n\n  and is_right ');
  assert.ok(event.prevented);
  assert.deepEqual(part.news(), [chosenOf('depth > 2 and is_right')]);
  assert.equal(part.find('survey-where').value, 'depth > 2 and is_right');
  assert.equal(part.find('survey-clear').hidden, false);
  part.type('depth > 2 and  is_right');
  assert.deepEqual(part.news(), []);
  part.browser.pass(250);
  assert.deepEqual(part.told, [[{ where: 'depth > 2 and is_right' }, false]]);
});

test('Enter applies a filter, but not while a word is being composed, and other keys only write', async () => {
  const part = await open();
  part.news();
  const field = part.find('survey-where');
  field.value = 'is_right';
  assert.ok(!field.fire('keydown', { key: 'a', isComposing: false }).prevented);
  assert.ok(!field.fire('keydown', { key: 'Enter', isComposing: true }).prevented);
  assert.deepEqual(part.news(), []);
  assert.ok(field.fire('keydown', { key: 'Enter', isComposing: false }).prevented);
  assert.deepEqual(part.news(), [chosenOf('is_right')]);
});

test('spaces within the quotes of a filter stay', async () => {
  const part = await open();
  part.news();
  part.find('survey-where').value = "label =  'two  spaces'\n and answer <> '  ' ";
  part.find('survey-filter').fire('submit');
  assert.deepEqual(part.news(), [chosenOf("label = 'two  spaces' and answer <> '  '")]);
});

test('a filter that is often asked for is chosen by its button and left by the same one', async () => {
  const part = await open();
  part.news();
  part.chip(1).click();
  assert.deepEqual(part.news(), [chosenOf('not is_right')]);
  assert.equal(part.find('survey-where').value, 'not is_right');
  assert.deepEqual(pressed(part.find('survey-chips').children), ['false', 'true', 'false', 'false']);
  part.chip(0).click();
  assert.deepEqual(part.news(), [chosenOf('is_right')]);
  part.chip(0).click();
  assert.deepEqual(part.news(), [chosenOf('')]);
  assert.deepEqual(pressed(part.find('survey-chips').children), ['false', 'false', 'false', 'false']);
  part.find('survey-chips').click(); // beside the buttons
  assert.deepEqual(part.news(), []);
});

test('all photos are shown again, without what was written and what was brushed', async () => {
  const figure = makeFigure();
  const part = await open({ figure });
  part.type('is_right');
  figure.heard.plotly_selected({ range: { x: [1, 2], y: [3, 4] } });
  part.news();
  part.laid.length = 0;
  part.find('survey-where').focus();
  part.find('survey-clear').click();
  assert.deepEqual(part.news(), [chosenOf('')]);
  assert.equal(part.find('survey-where').value, '');
  assert.deepEqual(part.laid, [{ graph: figure, selections: [] }]);
});

test('what is brushed comes on top of what is written, and is forgotten alone', async () => {
  const figure = makeFigure();
  const part = await open({ figure });
  part.type('is_right');
  part.news();
  part.find('survey-where').focus();
  const box = '(confidence BETWEEN 1 AND 2 AND mean_entropy BETWEEN 3 AND 4)';
  figure.heard.plotly_selected({ range: { x: [1, 2], y: [3, 4] } });
  assert.deepEqual(part.news(), [chosenOf(`(is_right) AND ${box}`)]);
  assert.equal(part.find('survey-where').value, `(is_right) AND ${box}`); // also where the field has the focus
  assert.equal(part.find('survey-unbrush').hidden, false);
  assert.deepEqual(pressed(part.find('survey-chips').children), ['true', 'false', 'false', 'false']);
  part.laid.length = 0;
  part.find('survey-unbrush').click();
  assert.deepEqual(part.news(), [chosenOf('is_right')]);
  assert.equal(part.find('survey-unbrush').hidden, true);
  assert.deepEqual(part.laid, [{ graph: figure, selections: [] }]);
  figure.heard.plotly_selected({ range: { x: [1, 2], y: [3, 4] } });
  part.laid.length = 0;
  part.type('label is null'); // another filter in place of both
  assert.equal(part.news().at(-1), chosenOf('label is null'));
  assert.deepEqual(part.laid, [{ graph: figure, selections: [] }]);
});

test('a filter of the view takes the place of what was brushed here', async () => {
  const figure = makeFigure();
  const part = await open({ figure });
  figure.heard.plotly_selected({ range: { x: [1, 2], y: [3, 4] } });
  part.set({ ...value, where: 'is_right' });
  assert.equal(part.find('survey-unbrush').hidden, true);
  part.find('survey-unbrush').click();
  assert.equal(part.news().at(-1), chosenOf('is_right'));
});

test('other axes forget the brush; another measure keeps it', async () => {
  const figure = makeFigure();
  const part = await open({ figure });
  const box = '(confidence BETWEEN 1 AND 2 AND mean_entropy BETWEEN 3 AND 4)';
  figure.heard.plotly_selected({ range: { x: [1, 2], y: [3, 4] } });
  part.news();
  part.select('measure', 'entropy');
  const search = new URLSearchParams({ where: box, layer: '1', head: '2', measure: 'entropy' });
  assert.deepEqual(part.news(), [`chosen?${search}`]);
  part.select('across', 'head_entropy');
  assert.deepEqual(part.news(), [
    'chosen?where=&layer=1&head=2&measure=entropy',
    'points?across=head_entropy&up=mean_entropy&layer=1&head=2',
  ]);
  part.select('up', 'confidence');
  assert.deepEqual(part.news(), ['points?across=head_entropy&up=confidence&layer=1&head=2']);
  part.browser.pass(250);
  assert.deepEqual(part.told.slice(-2), [
    [{ across: 'head_entropy' }, false],
    [{ up: 'confidence' }, false],
  ]);
});

test('the name of a class filters by it, also one with a quotation mark', async () => {
  const part = await open();
  part.news();
  part.find('survey-class-table').querySelectorAll('button')[0].click();
  assert.deepEqual(part.news(), [chosenOf("label = 'cat''s'")]);
  part.find('survey-class-table').fire('click');
  assert.deepEqual(part.news(), []);
});

test('what dragging over the dots does is chosen, and the button of it is pressed', async () => {
  const figure = makeFigure();
  const part = await open({ figure });
  const buttons = part.find('survey-brush').querySelectorAll('button');
  assert.deepEqual(pressed(buttons), ['true', 'false', 'false']);
  part.laid.length = 0;
  buttons[1].click();
  assert.deepEqual(pressed(buttons), ['false', 'true', 'false']);
  buttons[2].click();
  part.find('survey-brush').fire('click');
  assert.deepEqual(part.laid, [
    { graph: figure, dragmode: 'lasso' },
    { graph: figure, dragmode: false },
  ]);
  assert.deepEqual(pressed(buttons), ['false', 'false', 'true']);
  const finger = await open({ prepare: ({ browser }) => (browser.touch = true) });
  assert.deepEqual(pressed(finger.find('survey-brush').querySelectorAll('button')), [
    'false',
    'false',
    'true',
  ]);
});

test('the head under the pointer or with the focus is read out, then the chosen one again', async () => {
  const part = await open();
  const heads = part.find('survey-heads');
  const first = 'Layer 0, head 1: 20 ± 6 pixels, over 3 photos.';
  const own = 'Layer 1, head 2: 5 ± 0 pixels, over 3 photos.';
  for (const [come, go] of [
    ['pointerover', 'pointerleave'],
    ['focusin', 'focusout'],
  ]) {
    part.cell(0, 1).fire(come);
    assert.deepEqual([part.text('readout'), part.text('named').slice(0, 6)], [first, 'local:']);
    heads.fire(come);
    assert.equal(part.text('readout'), own);
    part.cell(0, 1).fire(come);
    heads.fire(go);
    assert.deepEqual([part.text('readout'), part.text('named').slice(0, 5)], [own, 'last:']);
  }
});

test('a head is chosen by a click, by Enter or by Space, and the arrows lead to it', async () => {
  const part = await open();
  part.news();
  const chosen = () => [0, 1, 2, 3, 4, 5].filter((at) => part.cell(0, at).getAttribute('tabindex') === '0');
  part.cell(0, 1).click();
  assert.deepEqual(part.news(), ['chosen?where=&layer=0&head=1&measure=distance']);
  assert.deepEqual(chosen(), [1]);
  assert.ok(part.cell(0, 2).fire('keydown', { key: 'Enter' }).prevented);
  assert.deepEqual(chosen(), [2]);
  assert.ok(part.cell(1, 0).fire('keydown', { key: ' ' }).prevented);
  assert.deepEqual(chosen(), [3]);
  part.news();
  assert.ok(part.cell(1, 0).fire('keydown', { key: 'ArrowRight' }).prevented);
  assert.ok(part.cell(1, 1).focused);
  assert.ok(!part.cell(1, 0).fire('keydown', { key: 'x' }).prevented);
  assert.ok(!part.find('survey-heads').fire('keydown', { key: 'ArrowLeft' }).prevented);
  part.find('survey-heads').click(); // on no head
  assert.deepEqual(part.news(), []);
});

test('each list has its words and its photos', async () => {
  const part = await open();
  const ring = 'The ring marks the highest patch of the head, as the survey noted it.';
  const lists = part.find('survey-which').querySelectorAll('button');
  const titles = () => texts(part.find('survey-cards').querySelectorAll('h4'));
  const rows = () => part.cards().map((node) => node.dataset.row);
  assert.deepEqual(pressed(lists), ['true', 'false', 'false', 'false']);
  assert.equal(
    part.text('list-words'),
    `Where the mean distance of layer 1, head 2 is highest, then lowest. ${ring}`,
  );
  assert.deepEqual([titles(), rows()], [['highest', 'lowest'], ['4', '1', '2']]); // prettier-ignore
  lists[1].click();
  assert.deepEqual(pressed(lists), ['false', 'true', 'false', 'false']);
  assert.equal(
    part.text('list-words'),
    `Wrong answers, by confidence times what of the last layer's map falls outside the boxes. ${ring}`,
  );
  assert.deepEqual([titles(), rows()], [[], ['1']]);
  assert.equal(part.cards()[0].querySelectorAll('span').at(-1)?.textContent, 'outside 12.5');
  lists[2].click();
  assert.equal(
    part.text('list-words'),
    `The first photos that pass the filter, in the survey's order. ${ring}`,
  );
  assert.deepEqual([titles(), rows()], [[], ['1', '2', '4']]);
  part.find('survey-which').fire('click');
  assert.deepEqual(pressed(lists), ['false', 'false', 'true', 'false']);
  part.cell(0, 0).click(); // of another head its exemplars
  assert.deepEqual(pressed(lists), ['true', 'false', 'false', 'false']);
  part.browser.pass(250);
  assert.deepEqual(part.told.slice(-2), [
    [{ photos: null }, false],
    [{ layer: '0', head: '0' }, false],
  ]);
});

test('a list that needs labels and boxes says so where there are none', async () => {
  for (const lacks of ['has_boxes', 'has_labels']) {
    const part = await open({ of: { ...survey, [lacks]: false } });
    part.find('survey-which').querySelectorAll('button')[1].click();
    assert.equal(part.text('list-words'), 'This list needs photos with labels and boxes.');
  }
});

test('the photo of a dot that is clicked comes first, until another list or filter is chosen', async () => {
  const figure = makeFigure();
  const part = await open({ figure });
  figure.draw(part.laid.at(-1));
  const canvas = figure.plot.children[0];
  canvas.box = { left: 0, top: 0, width: 200, height: 100 };
  const titles = () => texts(part.find('survey-cards').querySelectorAll('h4'));
  // of -0.2 to 5.2 the photo with 2 stands at 81.5 pixels, of 7.6 to 72.4 the one with 30 at 65.4 from above
  const pick = async () => {
    figure.fire('pointerdown', { clientX: 81, clientY: 65 });
    part.browser.window.fire('pointerup', { clientX: 82, clientY: 65 });
    await settle();
  };
  part.news();
  await pick();
  assert.deepEqual(part.news(), ['photo/2?layer=1&head=2']);
  assert.deepEqual(titles(), ['the dot that was chosen', 'highest', 'lowest']);
  assert.equal(/** @type {any} */ (part.cards()[0]).title, 'Open the one.jpg in Look');
  part.find('survey-which').querySelectorAll('button')[2].click();
  assert.deepEqual(titles(), []);
  await pick();
  part.cell(0, 0).click();
  await settle();
  assert.deepEqual(titles(), ['highest', 'lowest']);
  await pick();
  part.type('is_right');
  await settle();
  assert.deepEqual(titles(), ['highest', 'lowest']);
});

test('photos are lit one after the other by the chosen head', async () => {
  /** @type {string[]} */
  const lit = [];
  function Image() {
    const image = new Element('img');
    image.decode = async () => void lit.push(image.src.replace('/vit_viz/survey/lit/', ''));
    return image;
  }
  const part = await open({
    now: { ...value, lit: true },
    prepare: ({ browser }) => Object.assign(browser.globals, { Image }),
  });
  assert.deepEqual(
    lit.splice(0),
    [4, 1, 2].map((row) => `${row}?layer=1&head=2`),
  );
  assert.equal(part.cards()[2].querySelectorAll('.vv-survey-lit').length, 1);
  assert.match(
    part.text('list-words'),
    /lowest\. Each photo is lit by what the head looks at, computed now; /,
  );
  part.cell(0, 1).click();
  await settle();
  assert.deepEqual(
    lit.splice(0),
    [4, 1, 2].map((row) => `${row}?layer=0&head=1`),
  );
  const dim = await open({ prepare: ({ browser }) => Object.assign(browser.globals, { Image }) });
  assert.equal(dim.cards()[0].querySelectorAll('.vv-survey-ring').length, 1);
  assert.deepEqual(lit, []);
});
