// The Survey tab: what it asks, what it shows of the answers, and what it writes into the link.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { card, CHOSEN, open, SURVEY } from './survey_page.js';
import { settle, texts } from './room.js';

const QUESTION = { where: '', layer: 1, head: 2, measure: 'distance' };
const LINK = '?tab=survey&layer=1&head=2&of_heads=distance';
const BOX = '(confidence BETWEEN 1 AND 3.5 AND mean_entropy BETWEEN 20 AND 60)';

/** What was asked about the photos that pass. @param {Awaited<ReturnType<typeof open>>} room */
const filters = (room) => room.news().flatMap(([name, { where }]) => (name === 'chosen' ? [where] : []));

/** Answers that a test gives when it likes. */
function held() {
  /** @type {{body: any, give: (value: any) => Promise<void>}[]} */
  const waiting = [];
  const answer = (/** @type {any} */ body) =>
    new Promise((done) => waiting.push({ body, give: async (value) => (done(value), settle()) }));
  return { waiting, answer };
}

test('what was surveyed is said, and its measures, numbers, filters and columns are offered', async (t) => {
  const { find, all } = await open(t, { link: LINK });
  assert.equal(find('h2').textContent, '1,207 photos through mini');
  const options = (/** @type {string} */ name) =>
    find(`.vv-survey-${name}`).options.map((/** @type {any} */ one) => `${one.value}: ${one.textContent}`);
  assert.deepEqual(options('measure'), ['distance: mean distance', 'entropy: evenness']);
  const axes = ['confidence: confidence', 'head_entropy: head entropy', 'mean_entropy: mean entropy'];
  assert.deepEqual([options('across'), options('up')], [axes, axes]);
  assert.deepEqual(['across', 'up', 'measure'].map((name) => find(`.vv-survey-${name}`).value), ['confidence', 'mean_entropy', 'distance']); // prettier-ignore
  assert.deepEqual(texts(all('.vv-chip')), ['right', 'wrong', 'wrong and sure', 'looks outside the boxes']);
  const columns = all('.vv-survey-names tr').map((row) => texts(row.children).join(' | '));
  assert.deepEqual(columns, ['label | what it shows', 'mean depth, depthmean_depth | how far it looks (pixels)']); // prettier-ignore
});

test('filters by label or by box, and the list that needs both, are offered where the photos have them', async (t) => {
  for (const [lacks, chips] of /** @type {const} */ ([
    ['has_labels', ['looks outside the boxes']],
    ['has_boxes', ['right', 'wrong', 'wrong and sure']],
  ])) {
    const room = await open(t, { of: { ...SURVEY, [lacks]: false }, link: `${LINK}&photos=elsewhere` });
    assert.deepEqual(texts(room.all('.vv-chip')), chips);
    assert.equal(
      room.find('.vv-survey-list-words').textContent,
      'This list needs photos with labels and boxes.',
    );
  }
});

test('nothing is asked before the tab is open; then the dots and the photos, and the methods where a filter stands', async (t) => {
  const room = await open(t, { link: LINK.replace('survey', 'look') });
  assert.deepEqual([room.news(), room.root.childElementCount], [[], 0]);
  room.store.set({ tab: 'survey' });
  await settle();
  const points = { across: 'confidence', up: 'mean_entropy' };
  assert.deepEqual(room.news(), [['chosen', QUESTION], ['points', points]]); // prettier-ignore
  assert.equal(room.find('.vv-survey-count').textContent, '3 of 1,207 photos; 66.7% are right.');
  const parts = [...room.find('.vv-survey').children].map(({ className }) => className.split(' ')[0]);
  assert.deepEqual([parts[1], parts.at(-1)], ['vv-survey-lists', 'vv-survey-filters']); // photos first, SQL last
  t.mock.timers.tick(249);
  await settle();
  assert.deepEqual(room.news(), []);
  t.mock.timers.tick(1);
  await settle();
  assert.deepEqual(room.news(), [['methods', { where: '', layer: 1, head: 2 }]]);
  assert.ok(room.says('Trust rollout.'));
  assert.ok(room.says('Means with 95% intervals from 50 bootstrap samples of the photos; higher is better; in insertion and deletion 0 is chance.')); // prettier-ignore
  assert.deepEqual(
    room.all('.vv-survey-method-table tr').map((row) => texts(row.children)),
    [
      ['method', 'points at the object', 'deletion below random'],
      ['raw', '', '0.50 (0.40 to 0.60)'],
      ['rollout', '0.50 (0.40 to 0.60)', ''],
    ],
  );
  room.store.set({ tab: 'look', layer: 0, where: 'is_right' });
  await settle();
  assert.deepEqual(room.news(), []);
  room.store.set({ tab: 'survey' });
  assert.deepEqual(room.news(), [['chosen', { ...QUESTION, layer: 0, where: 'is_right' }]]);
});

test('who comes back to the same choice finds the tab as it was: nothing is drawn anew or asked again', async (t) => {
  const room = await open(t, { link: LINK });
  await room.press('Copy link to these photos');
  room.news();
  for (const tab of ['look', 'survey']) {
    room.store.set({ tab });
    await settle();
  }
  assert.deepEqual([Boolean(room.button('Copied')), room.news()], [true, []]);
});

test('the open photo is marked among the surveyed ones, by questions that are read as the survey reads photos', async (t) => {
  const room = await open(t, { link: LINK });
  const said = () => room.find('.vv-survey-place').textContent;
  const about = { model: '', image: { upload: 'u1' }, edits: '', mode: 'crop', size: 0 };
  assert.deepEqual(room.ofPhoto, [
    ['classes', { ...about, count: 2 }],
    ['heads', { ...about, measure: 'entropy' }],
  ]);
  assert.equal(
    said(),
    'The open photo, marked: confidence 2.5, more than 3 of 6; mean entropy 36, more than 3 of 7.',
  );
  const [{ style }, { xaxis, yaxis }] = [room.over('.vv-survey-mine'), room.figure._fullLayout];
  const shares = [
    (2.5 - xaxis.range[0]) / (xaxis.range[1] - xaxis.range[0]),
    (yaxis.range[1] - 36) / (yaxis.range[1] - yaxis.range[0]),
  ];
  const drawn = [parseFloat(style.left) / 200, parseFloat(style.top) / 100];
  assert.deepEqual(drawn.map((share) => share.toFixed(3)), shares.map((share) => share.toFixed(3))); // prettier-ignore
  await room.choose('up', 'head_entropy');
  assert.match(said(), /; head entropy 86, more than 7 of 7\.$/);
  assert.ok(yaxis.range[1] < 86); // the axis is that of the surveyed photos
  const mine = room.over('.vv-survey-mine');
  assert.ok(mine.classList.contains('vv-beyond'));
  assert.deepEqual([mine.style.top, mine.style.rotate], ['0px', `${-Math.PI / 2}rad`]);
});

test('a number that only surveyed photos have is said to be unknown, and a survey of another model places nothing', async (t) => {
  const numbers = [...SURVEY.numbers, 'outside_box'];
  const room = await open(t, { of: { ...SURVEY, numbers }, link: `${LINK}&up=outside_box` });
  const said = () => room.find('.vv-survey-place').textContent;
  assert.match(
    said(),
    /^The open photo: confidence 2.5, more than 3 of 6; its outside box is not known: only photos of a survey have one\.$/,
  );
  assert.ok(!room.over('.vv-survey-mine'));
  const beside = { lit: false, note: 'Another one.', jump: '', read: null };
  const other = await open(t, { link: LINK, answers: { beside } });
  assert.equal(other.find('.vv-survey-place').textContent, 'The open photo has no place among them: they went through another model.'); // prettier-ignore
  assert.deepEqual(other.ofPhoto, []);
});

test('how many photos pass is said with how many are right of those with a label', async (t) => {
  const count = async (/** @type {any} */ changes) =>
    (await open(t, { answers: { chosen: { ...CHOSEN, ...changes } } })).find('.vv-survey-count').textContent;
  assert.equal(await count({ count: 1207, labelled: 1207, accuracy: 0.5 }), 'All 1,207 photos; 50.0% are right.'); // prettier-ignore
  assert.equal(await count({ count: 7, accuracy: 1 / 3 }), '7 of 1,207 photos; 33.3% of the 3 with a label are right.'); // prettier-ignore
  assert.match(await count({ labelled: 0, accuracy: null }), /^3 of 1,207 photos; of none is it known/);
});

test('only what a choice changes is asked again, and a number of a head with each head', async (t) => {
  const room = await open(t, { link: LINK });
  const asked = async (/** @type {string} */ more, head = 2) => {
    room.news();
    await room.go(LINK.replace('head=2', `head=${head}`) + more);
    return room.news().map(([name, body]) => `${name} ${Object.values(body).join(' ')}`);
  };
  assert.deepEqual(await asked('&up=confidence'), ['points confidence confidence']);
  assert.deepEqual(await asked('&up=head_entropy'), ['points confidence head_entropy 1 2']);
  assert.deepEqual(await asked('&up=head_entropy', 1), ['chosen  1 1 distance', 'points confidence head_entropy 1 1']); // prettier-ignore
  assert.deepEqual(await asked('&photos=all'), []); // all this was asked before
  assert.deepEqual(await asked('&photos=all', 9), []); // of the last head
});

test('an answer that was overtaken is left, and the tab waits until the newest is there', async (t) => {
  const { waiting, answer } = held();
  const room = await open(t, { link: LINK, answers: { chosen: answer } });
  const waits = () => [room.find('.vv-survey').dataset.waits, room.find('.vv-survey-count').textContent];
  await room.choose('measure', 'entropy');
  await waiting[0].give({ ...CHOSEN, count: 1 });
  assert.deepEqual(waits(), ['', '']);
  await waiting[1].give(CHOSEN);
  assert.deepEqual(waits(), [undefined, '3 of 1,207 photos; 66.7% are right.']);
  await room.filter('a');
  t.mock.timers.tick(200);
  await waiting[2].give(CHOSEN);
  t.mock.timers.tick(249);
  assert.ok(!room.news().some(([name]) => name === 'methods'));
});

test('a filter is what is written, on one line but for what is quoted; Enter applies it, unless a word is being composed', async (t) => {
  const room = await open(t, { link: LINK });
  room.news();
  const field = room.find('textarea');
  assert.ok((await room.filter("  label =  'two  spaces'\n and depth > 2 ")).prevented);
  const where = "label = 'two  spaces' and depth > 2";
  assert.deepEqual([filters(room), field.value], [[where], where]);
  assert.deepEqual(room.place.written, [[{ where }, false]]);
  field.value = 'is_right';
  assert.ok(!field.fire('keydown', { key: 'Enter', isComposing: true }).prevented);
  assert.ok(!field.fire('keydown', { key: 'a', isComposing: false }).prevented);
  assert.deepEqual(filters(room), []);
  assert.ok(room.find('form').fire('submit').prevented);
  await settle();
  assert.deepEqual(filters(room), ['is_right']);
  assert.equal(room.button('right').getAttribute('aria-pressed'), 'true');
  field.focus();
  await room.press('Show all');
  assert.deepEqual([room.store.view.where.value, field.value, room.button('Show all')], ['', '', undefined]);
  await room.go(`${LINK}&where=depth`);
  assert.equal(field.value, ''); // somebody is writing there
  field.blur();
  await room.go(`${LINK}&where=is_right`);
  assert.equal(field.value, 'is_right');
});

test('a filter that is often asked for is chosen by its button and left by the same one', async (t) => {
  const room = await open(t, { link: LINK });
  room.news();
  for (const words of ['wrong', 'right', 'right']) await room.press(words);
  assert.deepEqual(room.place.written.map(([{ where }]) => where), ['not is_right', 'is_right', null]); // prettier-ignore
});

test('a filter that is refused says why, dims what it does not describe, and says that this is of the one before', async (t) => {
  const chosen = (/** @type {any} */ { where }) =>
    where === 'depht' ? new Error('There is no column depht.') : CHOSEN;
  const room = await open(t, { link: LINK, answers: { chosen } });
  const state = () => [
    room.find('.vv-survey').hasAttribute('data-stale'),
    room.find('textarea').getAttribute('aria-invalid'),
    room.find('.vv-survey-error').hidden ? '' : room.find('.vv-survey-error').textContent,
    room.find('.vv-survey-count').textContent,
  ];
  const fine = [false, 'false', '', '3 of 1,207 photos; 66.7% are right.'];
  assert.deepEqual(state(), fine);
  await room.filter('depht');
  assert.deepEqual(state(), [
    true,
    'true',
    'There is no column depht.',
    `Still of the filter before: ${fine[3]}`,
  ]);
  assert.deepEqual(room.cards(), ['4', '1', '2']);
  t.mock.timers.tick(250);
  assert.ok(!room.news().some(([name, { where }]) => name === 'methods' && where === 'depht'));
  await room.filter('depth');
  assert.deepEqual(state(), fine);
});

test('what goes wrong with the dots or with the methods is said', async (t) => {
  const answers = { points: new Error('No such number.'), methods: new Error('Too few photos.') };
  const room = await open(t, { answers });
  assert.equal(room.find('.vv-survey-failure').textContent, 'No such number.');
  assert.ok(!room.find('.vv-survey').hasAttribute('data-stale'));
  t.mock.timers.tick(250);
  await settle();
  assert.equal(room.find('.vv-survey-conclusion').textContent, 'Too few photos.');
});

test('the name of a class filters by it, also one with a quotation mark; without classes there is no table', async (t) => {
  const room = await open(t, { link: LINK });
  assert.deepEqual(
    room.all('.vv-survey-class-table tr').map((row) => texts(row.children)),
    [
      ['label', 'photos', 'right', 'confidence'],
      ["cat's", '2', '50%', '0.75'],
    ],
  );
  await room.press("cat's");
  assert.equal(room.store.view.where.value, "label = 'cat''s'");
  const none = await open(t, { answers: { chosen: { ...CHOSEN, classes: [] } } });
  assert.equal(none.find('.vv-survey-classes'), null);
});

// --- heads

test('a table of heads shows means, their spread on one scale, names, and what the measure means', async (t) => {
  const { find, all, says } = await open(t, { link: LINK });
  const cells = all('td[role=gridcell]');
  assert.deepEqual(texts(cells), ['11', '20', '30', '8.0', '', '5.0']);
  const spreads = cells.map(({ style }) => ['--from', '--to'].map((name) => Math.round(parseFloat(style.getPropertyValue(name))))); // prettier-ignore
  assert.deepEqual(spreads, [[10, 30], [30, 70], [67, 100], [0, 20], [0, 0], [0, 0]]); // prettier-ignore
  assert.equal(cells[3].getAttribute('aria-label'), '8.0; layer 1, head 0: 8 pixels; even');
  assert.deepEqual(cells.map(({ classList }) => classList.contains('vv-unknown')), [false, false, false, false, true, false]); // prettier-ignore
  assert.equal(cells[0].style.backgroundColor.replaceAll(',', ''), 'rgb(51 51 51)'); // a fifth of the way
  assert.deepEqual(cells.map((one) => one.getAttribute('aria-selected')).indexOf('true'), 5);
  assert.deepEqual(['.vv-low', '.vv-high', '.vv-unit'].map((one) => find(one).textContent), ['5', '35', 'pixels']); // prettier-ignore
  assert.ok(says('How far a head looks.') && says('Nothing is unknown.'));
});

test('the head under the pointer or with the focus is read out, then the chosen one again', async (t) => {
  const { cell, find } = await open(t, { link: LINK });
  const said = () =>
    [find('.vv-survey-readout'), find('.vv-survey-named')].map((one) => one?.textContent.trim());
  const own = ['Layer 1, head 2: 5 ± 0 pixels, over 3 photos.', 'last: It is last. It holds in 50% of these photos alone. The evidence is thin.']; // prettier-ignore
  assert.deepEqual(said(), own);
  for (const [come, go] of [
    ['pointerenter', 'pointerleave'],
    ['focusin', 'focusout'],
  ]) {
    // prettier-ignore
    cell(0, 1).fire(come);
    await settle();
    assert.deepEqual(said(), ['Layer 0, head 1: 20 ± 6 pixels, over 3 photos.', 'local: It is local. It holds in 50% of these photos alone.']); // prettier-ignore
    find('.vv-survey-heads').fire(go);
    await settle();
    assert.deepEqual(said(), own);
  }
  cell(1, 1).fire('pointerenter');
  await settle();
  assert.equal(said()[0], 'Layer 1, head 1: not known of these photos.');
});

test('a head is chosen by a click, by Enter or by Space, and the arrows lead to it; of it the exemplars are listed', async (t) => {
  const room = await open(t, { link: `${LINK}&photos=all` });
  const last = () => room.place.written.at(-1)?.[0];
  const tabbed = () => room.all('td[role=gridcell]').findIndex((one) => one.getAttribute('tabindex') === '0');
  room.cell(0, 1).click();
  await settle();
  assert.deepEqual([last(), tabbed()], [{ layer: '0', head: '1', photos: null }, 1]);
  assert.ok(room.cell(0, 2).fire('keydown', { key: 'Enter' }).prevented);
  assert.ok(room.cell(1, 0).fire('keydown', { key: ' ' }).prevented);
  await settle();
  assert.deepEqual([last(), tabbed()], [{ layer: '1', head: '0' }, 3]);
  room.cell(1, 0).fire('keydown', { key: 'ArrowRight' });
  assert.ok(room.cell(1, 1).focused);
  room.cell(1, 0).fire('keydown', { key: 'ArrowDown' }); // the last layer
  assert.ok(room.cell(1, 0).focused);
  assert.ok(!room.cell(1, 0).fire('keydown', { key: 'x' }).prevented);
});

// --- dots

test('plotly is told the axes, with room around the outermost dots, what dragging does, and how large the figure is; then only what changes', async (t) => {
  const room = await open(t, { link: LINK });
  const { told } = room.figure;
  const { 'xaxis.range': across, 'yaxis.range': up, ...others } = told;
  assert.deepEqual(others, {
    ...{ 'xaxis.title.text': 'confidence', 'yaxis.title.text': 'mean entropy' },
    ...{ dragmode: 'select', selections: [], width: 600, height: 400 },
  });
  assert.deepEqual([...across, ...up].map((end) => end.toFixed(3)), ['-0.200', '5.200', '7.600', '72.400']); // prettier-ignore
  room.figure.told = {};
  room.cell(0, 1).click();
  await settle();
  await room.go(`${LINK}&where=is_right`);
  assert.deepEqual(room.figure.told, {});
  await room.press('lasso');
  assert.deepEqual(room.figure.told, { dragmode: 'lasso' });
});

test('plotly is fetched where it is not there yet, and draws the axes that the page names; where it cannot be had that is said', async (t) => {
  const room = await open(t, { link: `${LINK}&where=${encodeURIComponent(BOX)}`, hasFigure: false });
  const scripts = () => room.root.ownerDocument.head.querySelectorAll('script');
  const script = scripts().at(-1);
  assert.match(script.getAttribute('src'), /\/vit_viz\/survey\/plotly\.js\?of=3\.1$/);
  assert.equal(room.over('canvas'), null);
  script.fire('error');
  await settle();
  assert.ok(room.says('The axes could not be fetched'));
  room.root.ownerDocument.defaultView.Plotly = room.Plotly;
  script.fire('load');
  await settle();
  assert.deepEqual(room.figure.drawn, { data: ['traces'], layout: { height: 420 } });
  const { selections, 'xaxis.title.text': title } = room.figure.told;
  assert.deepEqual([selections.length, title, Boolean(room.over('canvas'))], [1, 'confidence', true]);
});

test('dots lie over the plot, also where its axes are moved, and are counted with those that pass', async (t) => {
  const { over, figure } = await open(t, { link: LINK });
  const { dots, shown } = over('canvas').dataset;
  assert.deepEqual([dots, shown], ['6', '3']);
  assert.equal(over('canvas').getAttribute('aria-label'), 'confidence and mean entropy of 6 photos');
  assert.deepEqual(['left', 'top', 'width', 'height'].map((side) => over('.vv-survey-area').style[side]), ['30px', '40px', '200px', '100px']); // prettier-ignore
  assert.deepEqual([over('canvas').width, over('canvas').height], [200, 100]);
  const last = () => over('canvas').canvas.calls.filter((/** @type {any[]} */ [name]) => name === 'drawImage').at(-1).slice(2); // prettier-ignore
  const [x, y] = last();
  figure._fullLayout.xaxis.range = [-2.9, 2.5]; // half as far again
  figure.heard.plotly_afterplot(undefined);
  await settle();
  assert.deepEqual(last(), [x + 100, y]);
});

test('what dragging draws over the dots comes on top of what was written, until it is taken away', async (t) => {
  const room = await open(t, { link: `${LINK}&where=is_right` });
  const box = { range: { x: [3.5, 1], y: [20, 60] } };
  room.news();
  await room.tell('selected', box);
  assert.deepEqual(filters(room), [`(is_right) AND ${BOX}`]);
  assert.equal(room.find('textarea').value, `(is_right) AND ${BOX}`);
  assert.equal(room.button('right').getAttribute('aria-pressed'), 'true');
  await room.press('lasso');
  assert.equal(room.figure.told.dragmode, 'lasso');
  await room.tell('selected', { lassoPoints: { x: [0, 1, 2], y: [10, 30, 20] } });
  await room.tell('selected');
  await room.tell('selected', {});
  const lasso = "(is_right) AND inside(confidence, mean_entropy, '0 10, 1 30, 2 20')";
  assert.equal(room.store.view.where.value, lasso);
  assert.deepEqual(room.figure.told.selections, [{ type: 'path', path: 'M0,10L1,30L2,20Z' }]);
  await room.press('Forget the brush');
  assert.deepEqual([room.store.view.where.value, room.button('Forget the brush')], ['is_right', undefined]);
  assert.deepEqual(room.figure.told.selections, []);
  await room.tell('selected', box);
  await room.tell('deselect');
  assert.equal(room.store.view.where.value, 'is_right');
  await room.press('nothing');
  assert.equal(room.figure.told.dragmode, false);
});

test('with a finger dragging draws nothing at first', async (t) => {
  const finger = await open(t, { link: LINK, touch: true });
  assert.equal(finger.button('nothing').getAttribute('aria-pressed'), 'true');
  assert.equal(finger.figure.told.dragmode, false);
});

test('a brush of the link is drawn, can be forgotten, and is left with its axes; another measure keeps it', async (t) => {
  const room = await open(t, { link: `${LINK}&where=${encodeURIComponent(`(a) AND ${BOX}`)}` });
  const drawn = [{ type: 'rect', x0: 1, y0: 20, x1: 3.5, y1: 60 }];
  assert.deepEqual(room.figure.told.selections, drawn);
  await room.choose('measure', 'entropy');
  assert.ok(room.button('Forget the brush'));
  await room.choose('across', 'head_entropy');
  assert.deepEqual([room.store.view.where.value, room.store.view.across.value], ['a', 'head_entropy']);
  assert.deepEqual(room.figure.told.selections, []);
  await room.go(`${LINK}&across=head_entropy&where=${encodeURIComponent(BOX)}`);
  assert.deepEqual(room.figure.told.selections, []); // which is of other axes
  await room.go(`${LINK}&where=${encodeURIComponent(BOX)}`);
  assert.deepEqual(room.figure.told.selections, drawn);
});

test('the dot under the pointer says its numbers, beside it where there is room', async (t) => {
  const room = await open(t, { link: LINK });
  const said = async (/** @type {number} */ x, /** @type {number} */ y) => {
    room.dots('pointermove', x, y);
    await settle();
    const words = room.over('.vv-survey-dot-words');
    return (
      words && [words.textContent.trim(), words.style.translate, Math.round(parseFloat(words.style.left))]
    );
  };
  // rows 1, 2 and 4 pass: at 44.4, 81.5 and 155.6 pixels across
  assert.deepEqual(await said(43, 82), ['confidence 1, mean entropy 20; wrong', '0 -50%', 54]);
  assert.deepEqual(await said(155, 35), ['confidence 4, mean entropy 50; right', '-100% -50%', 146]);
  assert.equal(await said(118, 50), null); // which does not pass
  room.dots('pointermove', 43, 82);
  room.figure.fire('pointerleave');
  await settle();
  assert.equal(room.over('.vv-survey-dot-words'), null);
});

test('the photo of a dot that is pressed comes first, until another list, head or filter is chosen', async (t) => {
  const answers = { 'photo/2': card(2, { photo: 'the one.jpg' }) };
  const room = await open(t, { link: LINK, answers });
  const titles = () => texts(room.all('.vv-survey-group h3'));
  const pick = () => room.pressDot(81, 65, 2, 3);
  room.news();
  await pick();
  assert.deepEqual(room.news(), [['photo/2', { layer: 1, head: 2 }]]);
  assert.deepEqual(titles(), ['the dot that was chosen', 'highest', 'lowest']);
  assert.equal(room.find('.vv-survey-card').title, 'Open the one.jpg in Look');
  await room.press('exemplars of the head');
  assert.deepEqual(titles(), ['highest', 'lowest']);
  await pick();
  room.cell(0, 0).click();
  await settle();
  assert.deepEqual(titles(), ['highest', 'lowest']);
  await pick();
  room.store.set({ photos: 'all' }); // as Back does
  await settle();
  assert.ok(!titles().includes('the dot that was chosen'));
  room.news();
  await room.pressDot(118, 50); // no dot that passes
  await room.pressDot(81, 65, 4, 0); // a drag
  assert.ok(!room.news().some(([name]) => name.startsWith('photo/')));
});

// --- photos

test('each list has its words and its photos, with the answer, what is said of it, and a ring', async (t) => {
  const room = await open(t, { link: LINK });
  const ring = 'The ring marks the highest patch of the head, as the survey noted it.';
  const words = () => room.find('.vv-survey-list-words').textContent;
  assert.equal(words(), `Where the mean distance of layer 1, head 2 is highest, then lowest. ${ring}`);
  assert.deepEqual([texts(room.all('.vv-survey-group h3')), room.cards()], [['highest', 'lowest'], ['4', '1', '2']]); // prettier-ignore
  const first = room.find('.vv-survey-card');
  assert.equal(first.querySelector('img').src, '/vit_viz/survey/thumbnail/4');
  const mark = first.querySelector('.vv-survey-ring').style;
  assert.deepEqual([mark.top, mark.left, first.title], ['25%', '75%', 'Open photo 4.jpg in Look']);
  assert.equal(first.querySelector('.vv-survey-answer').dataset.right, 'false');
  assert.deepEqual(texts(first.querySelector('.vv-survey-file').children), ['dog', '63%, is cat', '12.5']);
  await room.press('wrong and looking elsewhere');
  assert.equal(words(), `Wrong answers, by confidence times what of the last layer's map falls outside the boxes. ${ring}`); // prettier-ignore
  assert.ok(room.says('outside 12.5'));
  await room.press('first that pass');
  assert.equal(words(), `The first photos that pass the filter, in the survey's order. ${ring}`);
  assert.deepEqual([room.all('.vv-survey-group h3').length, room.cards()], [0, ['1', '2', '4']]);
  const none = await open(t, {
    answers: { chosen: { ...CHOSEN, lists: { ...CHOSEN.lists, high: [] }, totals: {} } },
  });
  assert.ok(none.says('No photo.') && !none.find('.vv-survey-csv'));
});

test('a list goes on by twelve, with the first new photo in focus, and is saved and linked whole', async (t) => {
  const room = await open(t, { link: LINK, answers: { cards: [card(6)] } });
  room.news();
  const more = room.button('1 more (2 of 3 shown)');
  more.click();
  more.click(); // once more before the answer
  await settle();
  assert.deepEqual(room.news(), [['cards', { ...QUESTION, list: 'high', from: 2 }]]);
  assert.deepEqual(room.cards(), ['4', '1', '6', '2']);
  assert.ok(room.all('.vv-survey-card')[2].focused);
  assert.equal(room.find('.vv-survey-more'), null);
  const file = room.find('.vv-survey-csv');
  assert.equal(file.textContent.trim(), 'Save 3 paths (CSV)');
  assert.ok(file.href.endsWith('/photos.csv?where=&layer=1&head=2&measure=distance&list=high'), file.href);
  await room.filter('a & b');
  assert.deepEqual(room.cards(), ['4', '1', '2']);
  await room.press('Copy link to these photos');
  const said = Object.fromEntries(new URL(room.copied[0]).searchParams);
  const { where, measure, ...head } = { ...QUESTION, layer: '1', head: '2', where: 'a & b' };
  assert.deepEqual(said, { tab: 'survey', where, ...head, across: 'confidence', up: 'mean_entropy', of_heads: measure, photos: 'high' }); // prettier-ignore
  assert.ok(room.button('Copied'));
  const shy = await open(t, { link: LINK, copies: false });
  await shy.press('Copy link to these photos');
  assert.ok(shy.says('http://page/?tab=survey'));
});

test('the next photos of a list that was left are left, too', async (t) => {
  const { waiting, answer } = held();
  const lists = { ...CHOSEN.lists, high: [card(5)] };
  const chosen = (/** @type {any} */ { where }) => (where ? { ...CHOSEN, lists } : CHOSEN);
  const room = await open(t, { link: LINK, answers: { cards: answer, chosen } });
  await room.press('1 more (2 of 3 shown)');
  await room.filter('a');
  await waiting[0].give([card(6)]);
  assert.deepEqual(room.cards(), ['5', '2']);
  await room.go(LINK);
  assert.deepEqual(room.cards(), ['4', '1', '2']);
});

test('a photo opens in Look as it was surveyed, with the head under the outline, and Back leads to the survey as it was', async (t) => {
  const subject = { image: 'survey-1', model: 'tiny', part: '', mode: 'crop', size: 0, edits: 'off 1.2' };
  const room = await open(t, { link: `${LINK}&q=3,4&target=7`, answers: { 'look/1': subject } });
  const open1 = async () => {
    room.all('.vv-survey-card')[1].click();
    await settle();
  };
  await open1();
  assert.deepEqual(room.news().at(-1), ['look/1', { model: room.store.fields.get('model')?.usual ?? '' }]);
  const { view } = room.store;
  assert.deepEqual(Object.keys(subject).map((name) => view[name].value), Object.values(subject)); // prettier-ignore
  assert.deepEqual([view.q.value, view.target.value, view.tab.value], ['', '', 'look']); // of the photo before
  assert.equal(room.place.written.length, 1);
  assert.equal(room.place.written[0][1], true); // so Back leads to the link of before
  await room.go(`?tab=survey&q=5,6&layer=0&head=1&${room.store.subject()}`);
  await open1();
  assert.deepEqual([view.q.value, view.tab.value, view.layer.value, view.head.value], ['5,6', 'look', 0, 1]);
});

test('what cannot be opened is said until something else is chosen; through which model it opens stands with the photos', async (t) => {
  const beside = (/** @type {any} */ { model }) => ({ lit: false, note: 'A note.', jump: model && 'It opens through mini.' }); // prettier-ignore
  const room = await open(t, { link: LINK, answers: { 'look/4': new Error('It is gone.'), beside } });
  assert.ok(room.says('A note.') && !room.says('It opens through'));
  room.find('.vv-survey-card').click();
  await settle();
  assert.equal(room.find('.vv-survey-failure').textContent, 'It is gone.');
  assert.deepEqual([room.place.written, room.store.view.tab.value], [[], 'survey']);
  await room.go(`${LINK}&model=other`);
  assert.ok(room.says('It opens through mini.') && room.find('.vv-survey-error').hidden);
  const lost = await open(t, { answers: { beside: new Error('No answer.') } });
  assert.ok(lost.says('No answer.'));
});

test('photos are lit one after the other by the chosen head, but for those whose file is gone', async (t) => {
  const { waiting, answer } = held();
  const lists = { ...CHOSEN.lists, high: [card(4), card(1, { there: false })], low: [card(2), card(3)] };
  const chosen = (/** @type {any} */ { where }) => (where ? answer(where) : { ...CHOSEN, lists });
  const room = await open(t, { link: LINK, answers: { beside: { lit: true }, chosen } });
  const lit = () => room.all('.vv-survey-lit').map(({ src, hidden }) => `${src.replace(/.*lit\//, '')}${hidden ? '' : ' lit'}`); // prettier-ignore
  assert.ok(room.says('Each photo is lit by what the head looks at, computed now; '));
  assert.deepEqual(lit(), ['4?layer=1&head=2']);
  room.find('.vv-survey-lit').fire('load');
  await settle();
  assert.deepEqual(lit(), ['4?layer=1&head=2 lit', '2?layer=1&head=2']);
  assert.equal(room.find('.vv-survey-stage').querySelector('.vv-survey-ring'), null);
  assert.equal(room.find('.vv-survey-stage').style.aspectRatio, '1.5 / 1');
  room.all('.vv-survey-lit')[1].fire('error'); // the thumbnail with its ring stays
  await settle();
  assert.deepEqual(lit(), ['4?layer=1&head=2 lit', '3?layer=1&head=2']);
  await room.filter('a');
  assert.deepEqual(lit(), ['4?layer=1&head=2 lit']); // another answer is on its way
  await waiting[0].give(CHOSEN);
  assert.deepEqual(lit(), ['4?layer=1&head=2 lit', '1?layer=1&head=2']);
});

test('a photo without a picture has words in its place, and no address that would be refused', async (t) => {
  const says = async (/** @type {any} */ changes) => {
    const lists = { ...CHOSEN.lists, high: [card(3, changes)] };
    const { find } = await open(t, { answers: { chosen: { ...CHOSEN, lists } } });
    const one = find('.vv-survey-card');
    return [
      one.querySelectorAll('img').length,
      texts(one.querySelectorAll('.vv-survey-none')).join(),
      one.title,
    ];
  };
  const [opens, gone] = ['Open photo 3.jpg in Look', 'photo 3.jpg: its file is gone'];
  assert.deepEqual(await says({}), [1, '', opens]);
  assert.deepEqual(await says({ small: false }), [0, 'no small picture was kept', opens]);
  assert.deepEqual(await says({ small: false, there: false }), [0, 'no picture: its file is gone', gone]);
  assert.deepEqual(await says({ there: false }), [1, '', gone]);
  const room = await open(t, { link: LINK });
  room.find('.vv-survey-card img').fire('error');
  await settle();
  assert.equal(room.all('.vv-gone').length, 1);
});

// --- a second survey

const moved = (/** @type {number} */ head, changes = {}) => ({
  ...{
    layer: 1,
    head,
    statistic: 'entropy',
    words: 'evenness',
    unit: 'bits',
    photos: 7,
    before: 0.75,
    after: 0.5,
  },
  ...{ difference: -0.25, low: -0.375, high: -0.125, effect: -1.5, ...changes },
});
const COMPARED = {
  ...{ name: 'tuned', model: 'mini with edits (off 1.2)', photos: 1200, changed: 1003, note: '' },
  ...{ accuracy: 'Top-1 0.600 before, 0.500 after.', heads: '14 of 36 statistics of heads moved.' },
  moved: Array.from({ length: 14 }, (_, at) =>
    moved(
      at % 3,
      at === 13 ? { statistic: 'peak_in_box', difference: 0.25, low: 0.125, high: 0.375, effect: null } : {},
    ),
  ),
};
const change = (/** @type {string} */ kind) => ({ kind, was: 'cat', now: 'dog', confidences: [0.625, 0.5] });
const ANSWERS = {
  compared: (/** @type {any} */ { second }) =>
    second === 'tuned' ? COMPARED : new Error('These are surveys of other photos.'),
  chosen: (/** @type {any} */ { second }) =>
    second
      ? {
          ...CHOSEN,
          lists: {
            ...CHOSEN.lists,
            lost: [card(4, { change: change('right to wrong') })],
            other: [card(2, { change: change('other class') })],
          },
          totals: { ...CHOSEN.totals, lost: 1, other: 1, changed: 2 },
        }
      : CHOSEN,
};

/** What is shown of a comparison. @param {Awaited<ReturnType<typeof open>>} room */
const comparison = ({ find, all }) => [
  find('.vv-survey-second').value,
  find('.vv-survey-compared').hidden ? '' : find('.vv-survey-compared-title')?.textContent,
  texts(all('.vv-survey-group h3')),
];
const FOUND = 'Compared with tuned: 1,003 of 1,200 photos changed their answer';
const CHANGED = ['right before, wrong now: 1', 'still wrong, or no label: 1'];

test('a second survey is compared, its finding stands above, and its photos are listed by what became of them', async (t) => {
  const alone = await open(t, { of: { ...SURVEY, others: [] } });
  assert.equal(alone.find('.vv-survey-second'), null);
  const { waiting, answer } = held();
  const room = await open(t, { link: LINK, answers: { ...ANSWERS, compared: answer } });
  assert.deepEqual(texts(room.find('.vv-survey-second').options), ['no other survey', 'tuned', 'fewer']);
  assert.deepEqual([comparison(room)[1], room.button('changed their answer')], ['', undefined]);
  room.news();
  await room.choose('second', 'tuned');
  assert.deepEqual(room.news(), [['compared', { second: 'tuned' }]]);
  assert.equal(room.find('.vv-survey-compared').getAttribute('aria-busy'), 'true');
  assert.deepEqual(comparison(room).slice(0, 2), ['tuned', 'Comparing with tuned …']);
  await waiting[0].give(COMPARED);
  assert.deepEqual(room.news(), [['chosen', { ...QUESTION, second: 'tuned' }]]);
  assert.deepEqual(comparison(room), ['tuned', FOUND, CHANGED]);
  assert.ok(
    room.says('Top-1 0.600 before, 0.500 after.') && room.says('14 of 36 statistics of heads moved.'),
  );
  assert.ok(room.says('After: tuned, through mini with edits (off 1.2). Over all photos that both could read, whatever the filter. p: how likely')); // prettier-ignore
  const answers = room.all('.vv-survey-answer');
  assert.deepEqual(answers.map(({ textContent, dataset }) => [textContent, dataset.right]), [['was cat, is now dog', 'false'], ['was cat, is now dog', undefined]]); // prettier-ignore
  assert.ok(room.says('another answer in tuned, those that changed sides first.'));
  assert.ok(room.find('.vv-survey-csv').href.endsWith('&second=tuned&list=changed'));
  assert.deepEqual(room.place.written, [[{ compared_with: 'tuned', photos: 'changed' }, false]]);
  room.cell(0, 0).click();
  await settle();
  assert.deepEqual(comparison(room)[2], CHANGED); // also of another head
});

test('a survey that cannot be compared is refused in words, and what was shown stays', async (t) => {
  const room = await open(t, { link: LINK, answers: ANSWERS });
  await room.choose('second', 'tuned');
  const written = room.place.written.length;
  room.news();
  await room.choose('second', 'fewer');
  const error = room.find('.vv-survey-compared-error');
  assert.equal(error.textContent, 'Not compared with fewer. These are surveys of other photos.');
  assert.deepEqual(comparison(room), ['tuned', FOUND, CHANGED]);
  assert.deepEqual([room.place.written.length, room.news()], [written, [['compared', { second: 'fewer' }]]]);
  await room.choose('second', '');
  assert.deepEqual(comparison(room), ['', '', ['highest', 'lowest']]);
  assert.deepEqual(room.place.written.at(-1), [{ compared_with: null, photos: null }, false]);
});

test('a link opens its second survey once, and says so where it is not there', async (t) => {
  const link = `${LINK}&compared_with=tuned&photos=changed`;
  const room = await open(t, { link, answers: ANSWERS });
  assert.deepEqual(comparison(room), ['tuned', FOUND, CHANGED]);
  await room.go(`${link}&where=is_right`);
  assert.deepEqual(room.news().filter(([name]) => name === 'compared').length, 1); // prettier-ignore
  const gone = await open(t, { link: link.replace('tuned', 'gone'), answers: ANSWERS });
  assert.match(gone.find('.vv-survey-compared-error').textContent, /^Not compared with gone\. These are /);
  assert.equal(gone.find('.vv-survey-count').textContent, '3 of 1,207 photos; 66.7% are right.');
  assert.ok(gone.says('This list needs a survey to compare with: choose one above.'));
});

test('heads that moved go on beyond twelve, and one of them is chosen with its measure', async (t) => {
  const room = await open(t, { link: `${LINK}&compared_with=tuned&photos=changed`, answers: ANSWERS });
  const rows = () => room.all('[data-moved]');
  assert.equal(rows().length, 12);
  await room.press('2 more (12 of 14 shown)');
  assert.equal(rows().length, 14);
  assert.ok(rows()[12].focused && !room.button('2 more (12 of 14 shown)'));
  assert.ok(room.find('.vv-survey-moved a').href.endsWith('/heads.csv?second=tuned'));
  const lines = room.all('.vv-survey-moved-table tbody tr').map((row) => texts(row.children));
  assert.deepEqual(lines[1], ['layer 1, head 1', 'evenness (bits)', '0.75 to 0.5', '-0.25 (-0.375 to -0.125)', '-1.5']); // prettier-ignore
  assert.deepEqual(lines[13].slice(3), ['+0.25 (+0.125 to +0.375)', 'alike in all photos']);
  rows()[0].click();
  assert.deepEqual(room.place.written.at(-1), [{ head: '0', of_heads: 'entropy' }, false]);
  rows()[13].click(); // a statistic that the table of heads does not have
  assert.deepEqual(room.place.written.at(-1), [{ head: '1' }, false]);
  await settle();
  assert.deepEqual(comparison(room)[2], CHANGED);
});

test('a comparison that was overtaken by another choice is left', async (t) => {
  const { waiting, answer } = held();
  const room = await open(t, { link: LINK, answers: { ...ANSWERS, compared: answer } });
  await room.choose('second', 'tuned');
  await room.choose('second', '');
  await waiting[0].give(COMPARED);
  assert.deepEqual(comparison(room).slice(0, 2), ['', '']);
  await room.choose('second', 'tuned');
  await room.choose('second', 'fewer');
  await waiting[2].give({ ...COMPARED, name: 'fewer', accuracy: '' });
  await waiting[1].give(COMPARED);
  assert.deepEqual(comparison(room).slice(0, 2), ['fewer', FOUND.replace('tuned', 'fewer')]);
  assert.ok(!room.says(' p: how likely'));
  await room.choose('second', 'tuned');
  await room.choose('second', ''); // before the answer
  await waiting[3].give(COMPARED);
  assert.deepEqual(comparison(room).slice(0, 2), ['', '']);
  assert.equal(room.store.view.compared_with.value, '');
});
