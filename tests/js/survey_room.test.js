// The Survey tab as Gradio runs it: what it asks the server for, what it shows of the answers, and what it tells the view.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  card,
  chosen,
  makeFigure,
  methods,
  open,
  POINTS,
  settle,
  survey,
  texts,
  value,
} from './survey_page.js';

const PLACES = 'points?across=confidence&up=mean_entropy&layer=1&head=2';
const CHOSEN = 'chosen?where=&layer=1&head=2&measure=distance';

test('what was surveyed is said, and its measures, numbers, filters and columns are offered', async () => {
  const { text, find, element } = await open({ of: { ...survey, photos: 12345 } });
  assert.equal(text('what'), '12,345 photos through mini');
  const options = (/** @type {string} */ name) =>
    find(`survey-${name}`).options.map((/** @type {any} */ one) => [one.value, one.textContent]);
  assert.deepEqual(options('measure'), [
    ['distance', 'mean distance'],
    ['entropy', 'evenness'],
  ]);
  const axes = [
    ['confidence', 'confidence'],
    ['head_entropy', 'head entropy'],
    ['mean_entropy', 'mean entropy'],
  ];
  assert.deepEqual([options('across'), options('up')], [axes, axes]);
  const chips = find('survey-chips').children;
  assert.deepEqual(texts(chips), ['right', 'wrong', 'wrong and sure', 'looks outside the boxes']);
  assert.deepEqual(
    chips.map((chip) => chip.dataset.where),
    ['is_right', 'not is_right', 'not is_right and confidence > 0.5', 'outside_box > 0.5'],
  );
  assert.ok(chips.every((chip) => chip.className === 'vv-chip'));
  const rows = find('survey-names').querySelectorAll('tr');
  assert.deepEqual(
    rows.map((row) => texts(row.children)),
    [
      ['label', 'what it shows'],
      ['mean depth, depthmean_depth', 'how far it looks (pixels)'],
    ],
  );
  assert.deepEqual(
    rows[0].children.map((one) => [one.tagName, one.getAttribute('scope')]),
    [
      ['TH', 'row'],
      ['TD', null],
    ],
  );
  assert.equal(element.querySelectorAll('.vv-survey-heads td').length, 6);
});

test('filters by label or by box are offered only where the photos have them', async () => {
  const boxes = await open({ of: { ...survey, has_labels: false } });
  assert.deepEqual(texts(boxes.find('survey-chips').children), ['looks outside the boxes']);
  const labels = await open({ of: { ...survey, has_boxes: false } });
  assert.deepEqual(texts(labels.find('survey-chips').children), ['right', 'wrong', 'wrong and sure']);
});

test('the first view asks for the dots and for the photos that pass, and a while later for the methods', async () => {
  const { news, browser, text, find, element, told } = await open();
  assert.deepEqual(news(), [PLACES, CHOSEN]);
  assert.equal(text('count'), '3 of 7 photos; 66.7% are right.');
  assert.equal(element.dataset.waits, undefined);
  browser.pass(249);
  assert.deepEqual(news(), []);
  browser.pass(1);
  assert.deepEqual(news(), ['methods?where=&layer=1&head=2&measure=distance']);
  await settle();
  assert.equal(text('conclusion'), 'Trust rollout.');
  assert.equal(
    text('method-words'),
    'Means with 95% intervals from 50 bootstrap samples of the photos; higher is better.',
  );
  assert.deepEqual(texts(find('survey-method-table').querySelectorAll('td')), ['0.50 (0.40 to 0.60)']);
  assert.equal(find('survey-method-table').hidden, false);
  assert.deepEqual(told, []);
});

test('while an answer is on its way the tab waits, and an answer to an older question is given up', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    answer: (path) => path.startsWith('chosen') && new Promise((done) => held.push(() => done(undefined))),
  });
  assert.equal(part.element.dataset.waits, 'true');
  part.select('measure', 'entropy');
  held[0]();
  await settle();
  assert.equal(part.element.dataset.waits, 'true');
  assert.equal(part.text('count'), '');
  assert.equal(part.find('survey-error').hidden, true);
  held[1]();
  await settle();
  assert.equal(part.element.dataset.waits, undefined);
  assert.equal(part.text('count'), '3 of 7 photos; 66.7% are right.');
});

test('the methods are asked for once where another filter follows at once, and an old answer about them is left', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    answer: (path) =>
      path.startsWith('methods') &&
      new Promise((done) => held.push(() => done({ ...methods, conclusion: path }))),
  });
  part.browser.pass(200);
  part.type('depth > 2');
  await settle();
  part.browser.pass(200);
  assert.equal(held.length, 0);
  part.browser.pass(50);
  assert.equal(held.length, 1);
  part.type('depth > 3');
  await settle();
  held[0]();
  await settle();
  assert.equal(part.text('conclusion'), '');
});

test('a table of heads shows means, their spread on one scale, names, and what the measure means', async () => {
  const { cell, text, find } = await open();
  const cells = [0, 1].flatMap((layer) => [0, 1, 2].map((head) => cell(layer, head)));
  assert.deepEqual(texts(cells), ['11', '20', '30', '8.0', '', '5.0']);
  assert.deepEqual(
    cells.map(({ style }) => [style.getPropertyValue('--from'), style.getPropertyValue('--to')]),
    [
      ['10%', '30%'], // of 5 to 35
      ['30%', '70%'],
      [`${2000 / 30}%`, '100%'],
      ['0%', '20%'],
      ['0%', '0%'],
      ['0%', '0%'],
    ],
  );
  assert.equal(cells[3].getAttribute('aria-label'), '8.0; layer 1, head 0: 8 pixels; even');
  assert.equal(cells[5].getAttribute('aria-label'), '5.0; layer 1, head 2: 5 pixels; last');
  assert.equal(cells[0].style.backgroundColor, 'rgb(51 51 51)'); // a fifth of the way
  assert.deepEqual(
    [find('low').textContent, find('high').textContent, find('unit').textContent],
    ['5', '35', 'pixels'],
  );
  assert.equal(text('meaning'), 'How far a head looks.');
  assert.equal(text('unknown'), 'Nothing is unknown.');
  const { background } = find('strip').style;
  assert.ok(background.startsWith('linear-gradient(to right, rgb(0 0 0), rgb(15 15 15), '));
  assert.equal(text('readout'), 'Layer 1, head 2: 5 ± 0 pixels, over 3 photos.');
  assert.equal(text('named'), 'last: It is last. It holds in 50% of these photos alone.');
  assert.equal(find('survey-named').hidden, false);
  const marked = cells.map((one) => one.getAttribute('aria-selected'));
  assert.deepEqual(marked, ['false', 'false', 'false', 'false', 'false', 'true']);
});

test('where all heads have one mean the lines have no length, and a head without a name has none', async () => {
  const atlas = { ...chosen.atlas, mean: [[4, 4, 4], [4, 4, 4]], spread: [[0, 0, 0], [0, 0, 0]], names: [] }; // prettier-ignore
  const { cell, find } = await open({
    answer: (path) => path.startsWith('chosen') && { ...chosen, atlas: { ...atlas, measure: 'distance' } },
  });
  assert.deepEqual(
    [cell(0, 1).style.getPropertyValue('--from'), cell(0, 1).style.getPropertyValue('--to')],
    ['0%', '0%'],
  );
  assert.equal(cell(0, 1).getAttribute('aria-label'), '4.0; layer 0, head 1: 4 pixels');
  assert.equal(find('survey-named').hidden, true);
});

test('a note is shown; a link without numbers is of the first measure and the last layer, and an equal one asks nothing', async () => {
  const part = await open({ now: { ...value, note: 'A note.' } });
  assert.equal(part.text('note'), 'A note.');
  part.news();
  part.set({ ...value, measure: 'entropy' });
  assert.deepEqual(part.news(), ['chosen?where=&layer=1&head=2&measure=entropy']);
  part.set({ ...value, measure: 'entropy' });
  assert.deepEqual(part.news(), []);
  part.go('?tab=survey&head=9&of_heads=none');
  assert.deepEqual(part.news(), ['chosen?where=&layer=1&head=2&measure=distance']);
});

test('while another tab is open nothing is asked, and then what its link says', async () => {
  const part = await open();
  part.news();
  part.store.set({ tab: 'look', layer: 0, where: 'is_right' });
  await settle();
  assert.deepEqual(part.news(), []);
  part.store.set({ tab: 'survey' });
  assert.deepEqual(part.news(), ['chosen?where=is_right&layer=0&head=2&measure=distance']);
});

test('only what a choice changes is asked for again', async () => {
  const part = await open();
  part.news();
  part.set({ ...value, up: 'confidence' });
  assert.deepEqual(part.news(), ['points?across=confidence&up=confidence&layer=1&head=2']);
  part.set({ ...value, across: 'mean_entropy', up: 'confidence' });
  assert.deepEqual(part.news(), ['points?across=mean_entropy&up=confidence&layer=1&head=2']);
  part.set({ ...value, across: 'mean_entropy', up: 'confidence', layer: 0 });
  assert.deepEqual(part.news(), ['chosen?where=&layer=0&head=2&measure=distance']);
  part.set({ ...value, across: 'mean_entropy', up: 'head_entropy', layer: 0 });
  part.news();
  part.set({ ...value, across: 'mean_entropy', up: 'head_entropy', layer: 0, head: 1 });
  assert.deepEqual(part.news(), [
    'points?across=mean_entropy&up=head_entropy&layer=0&head=1', // which are numbers of the head
    'chosen?where=&layer=0&head=1&measure=distance',
  ]);
  part.set({ ...value, across: 'mean_entropy', up: 'head_entropy', layer: 0, head: 1, where: 'depth > 2' });
  assert.deepEqual(part.news(), ['chosen?where=depth+%3E+2&layer=0&head=1&measure=distance']);
});

test('what is chosen stands in the fields', async () => {
  const part = await open({ now: { ...value, where: 'is_right' } });
  const values = () => ['where', 'across', 'up', 'measure'].map((name) => part.find(`survey-${name}`).value);
  assert.deepEqual(values(), ['is_right', 'confidence', 'mean_entropy', 'distance']);
  assert.equal(part.find('survey-clear').hidden, false);
  assert.equal(part.find('survey-unbrush').hidden, true);
  const pressed = part.find('survey-chips').children.map((chip) => chip.getAttribute('aria-pressed'));
  assert.deepEqual(pressed, ['true', 'false', 'false', 'false']);
  part.set(value);
  assert.equal(part.find('survey-clear').hidden, true);
  assert.equal(part.find('survey-where').value, '');
  part.find('survey-where').focus();
  part.set({ ...value, where: 'depth > 2' });
  assert.equal(part.find('survey-where').value, ''); // somebody is writing there
});

test('a choice shows at once, is in the link, and Back takes it back', async () => {
  const part = await open();
  part.news();
  part.select('measure', 'entropy');
  assert.deepEqual(part.news(), ['chosen?where=&layer=1&head=2&measure=entropy']);
  assert.deepEqual(part.told, [[{ of_heads: 'entropy' }, false]]);
  await settle();
  assert.equal(part.text('meaning'), 'How widely a head looks.');
  part.cell(0, 1).click();
  assert.deepEqual(part.told.at(-1), [{ layer: '0', head: '1' }, false]);
  part.news();
  part.set(value);
  assert.deepEqual(part.news(), [CHOSEN]);
});

test('a filter that the server refuses says why, and the next one that it takes ends that', async () => {
  const part = await open({
    answer: (path) => path.startsWith('chosen?where=depht') && new Error(`${'No such column. '.repeat(30)}`),
  });
  assert.equal(part.find('survey-error').hidden, true);
  part.type('depht > 2');
  await settle();
  assert.equal(part.text('error'), 'No such column. '.repeat(25));
  assert.equal(part.find('survey-error').hidden, false);
  assert.equal(part.element.dataset.waits, undefined);
  part.type('depth > 2');
  await settle();
  assert.equal(part.find('survey-error').hidden, true);
});

test('what a refused filter no longer describes is dimmed until a filter is taken', async () => {
  const part = await open({
    answer: (path) => path.startsWith('chosen?where=depht') && { refused: 'There is no column depht.' },
  });
  const state = () => [
    part.element.hasAttribute('data-stale'),
    part.find('survey-where').getAttribute('aria-invalid'),
    part.text('error'),
  ];
  assert.deepEqual(state(), [false, 'false', '']);
  part.type('depht > 2');
  await settle();
  assert.deepEqual(state(), [true, 'true', 'There is no column depht.']);
  assert.equal(part.text('count'), '3 of 7 photos; 66.7% are right.');
  part.browser.pass(250);
  assert.ok(!part.news().some((path) => path.startsWith('methods?where=depht')));
  part.type('depth > 2');
  await settle();
  assert.deepEqual(state(), [false, 'false', '']);
});

test('what goes wrong with the dots or with the methods is said', async () => {
  const part = await open({
    answer: (path) =>
      (path.startsWith('points') && new Error('No such number.')) ||
      (path.startsWith('methods') && new Error('Too few photos.')) ||
      undefined,
  });
  part.browser.pass(250);
  await settle();
  assert.equal(part.text('conclusion'), 'Too few photos.');
  const dots = await open({ answer: (path) => path.startsWith('points') && new Error('No such number.') });
  dots.set({ ...value, across: 'mean_entropy' });
  await settle();
  assert.equal(dots.text('error'), 'No such number.');
});

test('classes are a table where there are some', async () => {
  const { find } = await open();
  assert.equal(find('survey-classes').hidden, false);
  assert.deepEqual(texts(find('survey-class-table').querySelectorAll('td')), ['2', '50%', '0.75']);
  const none = await open({ answer: (path) => path.startsWith('chosen') && { ...chosen, classes: [] } });
  assert.equal(none.find('survey-classes').hidden, true);
});

test('a photo opens in Look as it was surveyed, with the head under the outline; what the page shows already is left', async () => {
  const subject = { image: 'survey-1', model: 'tiny', part: '', mode: 'crop', size: 0, edits: 'off 1.2' };
  const answer = (/** @type {string} */ path) => path.startsWith('look') && subject;
  const part = await open({ answer });
  part.store.set({ q: '3,4', target: '7' });
  part.news();
  part.cards()[1].click();
  await settle();
  assert.deepEqual(part.news(), ['look/1?model=']);
  const { view } = part.store;
  const shown = () => Object.keys(subject).map((name) => view[name].value);
  assert.deepEqual(shown(), Object.values(subject));
  assert.deepEqual([view.q.value, view.target.value], ['', '']); // of the photo before
  assert.equal(part.told.at(-1)?.[1], true);
  assert.equal(part.opened(), 1);
  const written = part.told.length;
  part.cards()[1].click();
  await settle();
  assert.deepEqual([part.told.length, part.opened()], [written, 2]);
  part.cell(0, 1).click();
  part.cards()[1].click();
  await settle();
  assert.deepEqual([view.layer.value, view.head.value, part.opened()], [0, 1, 3]);
});

test('a photo whose file is gone stays where it is, and the tab says why', async () => {
  const answer = (/** @type {string} */ path) => path.startsWith('look') && { refused: 'It is gone.' };
  const part = await open({ answer });
  part.cards()[1].click();
  await settle();
  assert.deepEqual([part.text('error'), part.told, part.opened()], ['It is gone.', [], 0]);
});

test('where a photo opens through another model than the page shows, the tab says so', async () => {
  const answer = (/** @type {string} */ path) =>
    path === 'beside?model=other&edits=' && { lit: false, note: '', jump: 'A photo opens through mini.' };
  const part = await open({ answer });
  assert.equal(part.find('survey-jump').hidden, true);
  part.store.set({ model: 'other' });
  await settle();
  assert.equal(part.text('jump'), 'A photo opens through mini.');
  part.store.set({ model: '' });
  await settle();
  assert.equal(part.find('survey-jump').hidden, true);
});

test('a list goes on by twelve, with the first new photo in focus, and is saved and linked whole', async () => {
  const part = await open({
    answer: (path) =>
      (path.startsWith('chosen') && { ...chosen, totals: { ...chosen.totals, high: 3 } }) ||
      (path.startsWith('cards') && [card(6)]) ||
      undefined,
  });
  const [more, ...others] = part.find('survey-cards').querySelectorAll('.vv-survey-more');
  assert.deepEqual(
    [more.textContent, more.dataset.more, others.length],
    ['1 more (2 of 3 shown)', 'high', 0],
  );
  part.news();
  more.click();
  await settle();
  assert.deepEqual(part.news(), ['cards?where=&layer=1&head=2&measure=distance&list=high&from=2']);
  assert.deepEqual(
    part.cards().map((node) => node.dataset.row),
    ['4', '1', '6', '2'],
  );
  assert.equal(part.page.activeElement, part.cards()[2]);
  assert.equal(more.hidden, true);
  const file = /** @type {any} */ (part.find('survey-csv'));
  assert.equal(file.textContent, 'Save 3 paths (CSV)');
  assert.ok(file.href.endsWith('/photos.csv?where=&layer=1&head=2&measure=distance&list=high'));
});

test('dots of photos that do not pass fade, and dots of axes that were left are not shown', async () => {
  const figure = makeFigure();
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    figure,
    answer: (path) => path.startsWith('points') && new Promise((done) => held.push(() => done(POINTS))),
  });
  part.select('up', 'confidence');
  part.select('across', 'mean_entropy');
  held[1](); // of axes of which one was left
  held[0]();
  await settle();
  assert.equal(part.laid.length, 0);
  held[2]();
  await settle();
  figure.draw(part.laid[0]);
  const { dataset } = figure.plot.children[0];
  assert.deepEqual([dataset.dots, dataset.shown], ['6', '3']);
  const all = makeFigure();
  const whole = await open({
    figure: all,
    answer: (path) => path.startsWith('chosen') && { ...chosen, count: 7, labelled: 6 },
  });
  all.draw(whole.laid[0]);
  assert.equal(all.plot.children[0].dataset.shown, '6'); // all that have both numbers
});
