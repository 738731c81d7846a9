// The Heads tab over the store: what is asked for when, what follows the chosen head, and what pointer and keys do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ANSWERS, open, photo } from './heads_page.js';
import { settle } from './visit.js';

const any = (/** @type {unknown} */ thing) => /** @type {any} */ (thing);

test('measures stand in their groups, with what the chosen one says', async () => {
  const { find, text, element, asked } = await open();
  const groups = find('measure').children;
  assert.deepEqual(groups.map((/** @type {any} */ one) => [one.getAttribute('label'), one.textContent]), [['reach', 'mean distanceentropy'], ['does', 'estimatecausal effect']]); // prettier-ignore
  assert.deepEqual(find('measure').options.map((/** @type {any} */ one) => one.value), ['distance', 'entropy', 'estimate', 'effect']); // prettier-ignore
  assert.equal(find('measure').value, 'distance');
  assert.equal(text('sentence'), 'How far.');
  assert.deepEqual(asked, ['head_tables lion', 'head_names lion']);
  assert.deepEqual(
    [element.dataset.ready, find('wait').hidden, find('error').hidden],
    ['distance', true, true],
  );
  assert.deepEqual(['main', 'kinds', 'scroll', 'bar', 'plot'].map((part) => find(part).hidden), new Array(5).fill(false)); // prettier-ignore
  assert.equal(find('causal').hidden, true);
  assert.equal(find('table').getAttribute('aria-label'), 'mean distance: a row for each layer, a cell for each head'); // prettier-ignore
  assert.deepEqual(['low', 'high', 'unit', 'plot-title'].map(text), ['0', '30', 'pixels', 'Mean distance by depth']); // prettier-ignore
  assert.equal(text('found'), 'Mean distance: from 4 in layer 1, head 2 to 30 in layer 0, head 2; 2 of 2 heads are called local'); // prettier-ignore
});

test('the head that is looked at has its name and its numbers against their thresholds', async () => {
  const part = await open();
  const rows = () => part.find('evidence').children.map((/** @type {any} */ row) => row.textContent);
  assert.equal(part.text('name'), 'local (thin evidence)');
  assert.equal(part.text('name-words'), 'Near. The evidence is thin: with thresholds 25% stricter or looser it would be mixed.'); // prettier-ignore
  assert.deepEqual(rows(), ["Mean distance, as a share of the photo's diagonal1local: at most 2, passes"]);
  part.cell(0).fire('pointermove', { pointerType: 'mouse' }); // a head without a name
  part.looked();
  assert.deepEqual([part.find('name').hidden, rows()], [true, []]);
  const tables = { ...ANSWERS.head_tables, facts: { ...ANSWERS.head_tables.facts, note: 'Not of all.' } };
  const noted = await open({ answer: (name) => name === 'head_tables' && tables });
  assert.match(noted.text('names-words'), /thin\. Not of all\.$/);
  const none = await open({ answer: (name) => name === 'head_names' && new Error('No names here.') });
  assert.equal(none.text('names-words'), 'No names here.');
  assert.equal(none.element.dataset.ready, 'distance');
});

test('a face is chosen at once and told; what belongs to others is marked so', async () => {
  const part = await open();
  const root = part.element.querySelector('.vv-heads');
  assert.equal(root.dataset.face, 'atlas');
  part.find('faces').querySelector('[data-face=depth]').click();
  assert.deepEqual(part.written.at(-1), [{ face: 'depth' }, true]);
  assert.equal(root.dataset.face, 'depth');
  assert.equal(
    part.text('found'),
    'Mean distance is highest in layer 0 (mean 20) and lowest in layer 1 (mean 5)',
  );
  part.find('enlarge').click();
  assert.equal(root.dataset.face, 'matrix');
});

test('a click on the grid switches a head in surgery alone, a number its layer, a drag several', async () => {
  const part = await open({ link: 'face=surgery&edits=off 0.1' });
  const states = () => part.cells().map((/** @type {any} */ cell) => cell.dataset.state);
  assert.deepEqual(states(), ['on', 'off', 'on', 'on', 'on', 'on']);
  assert.equal(part.text('found'), '1 head off: still lion, 96.3% → 90.8%');
  const rows = () =>
    any(part.part('surgery-answers')).children.map((/** @type {any} */ row) => row.textContent);
  assert.deepEqual(rows(), [
    'lion96.3% → 90.8%',
    'cougar3.2% → not among the first',
    'lynxnot among the first → 6.0%',
  ]);
  part.cell(5).click();
  assert.deepEqual([part.says('layer'), part.says('head')], ['1', '2']);
  assert.deepEqual(states()[5], 'off');
  assert.match(part.cell(5).getAttribute('aria-label'), /; local \(thin evidence\); off$/);
  part.find('table').querySelector('[data-all="0"]').click();
  assert.deepEqual(states(), ['off', 'off', 'off', 'on', 'on', 'off']);
  const over = (/** @type {string} */ kind, /** @type {number} */ at, buttons = 1) =>
    part.cell(at).fire(kind, { pointerType: 'mouse', buttons });
  over('pointerdown', 0);
  over('pointerover', 0);
  over('pointerover', 1);
  over('pointerover', 4); // what a click makes of the first: on
  part.browser.window.fire('pointerup');
  over('pointerover', 2);
  assert.deepEqual(states(), ['on', 'on', 'off', 'on', 'on', 'off']);
  any(part.part('surgery-undo')).click(); // the drag is one step
  assert.deepEqual(states(), ['off', 'off', 'off', 'on', 'on', 'off']);
  part.browser.pass(300);
  await settle();
  assert.deepEqual(part.written.at(-1), [{ edits: 'off 0.1 1.2 0.0 0.2' }, true]);
  assert.deepEqual(states(), ['off', 'off', 'off', 'on', 'on', 'off']);
  part.find('faces').querySelector('[data-face=atlas]').click();
  part.cell(3).click();
  assert.equal(states()[3], 'on');
  assert.equal(part.find('table').querySelector('[data-all="0"]'), null);
});

test('while the heads are measured it says so, and nothing is shown that is not known', async () => {
  const part = await open({ answer: (name) => name === 'head_tables' && new Promise(() => {}) });
  assert.equal(part.text('wait'), 'Measuring the heads …');
  assert.deepEqual(['bar', 'plot', 'kinds'].map((of_) => part.find(of_).hidden), new Array(3).fill(true)); // prettier-ignore
  assert.deepEqual([part.element.dataset.ready, part.text('readout')], ['', '']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the patch (0, 1) looks at');
  assert.ok(part.find('measure').options.every((/** @type {any} */ one) => !one.disabled));
});

test('what goes wrong is said, and can be tried again', async () => {
  const part = await open({
    answer: (name) => name === 'head_tables' && new Error('No room. '.repeat(5)),
  });
  assert.equal(part.text('error'), `${'No room. '.repeat(5)} Try again`);
  assert.deepEqual([part.find('error').hidden, part.find('wait').hidden], [false, true]);
});

test('numbers of a trace that was left are not shown', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    answer: (name) => name === 'head_tables' && new Promise((done) => held.push(() => done(undefined))),
  });
  const rows = () => part.lit.filter((path) => path.includes('/other/')).length;
  assert.equal(rows(), 0);
  await part.set({ image: 'other' });
  assert.equal(rows(), 2); // of both layers: the photo is lit anew
  assert.deepEqual(part.asked, ['head_tables lion', 'head_tables other']);
  held[0]();
  await settle();
  assert.deepEqual([part.element.dataset.ready, part.text('wait')], ['', 'Measuring the heads …']);
  assert.equal(part.find('error').hidden, true);
  held[1]();
  await settle();
  assert.equal(part.element.dataset.ready, 'distance');
});

test('another query lights the photo anew without measuring again', async () => {
  const part = await open();
  await part.set({ q: 'class' });
  assert.deepEqual(part.asked, ['head_tables lion', 'head_names lion']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the class token looks at');
  assert.equal(part.find('rings').childElementCount, 0);
  part.place.go('?tab=heads&image=lion&layer=1&head=2&q=1,1');
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the patch (1, 1) looks at');
  await part.set({ q: '9,9' }); // of another grid: what the model's output is read from
  assert.equal(part.text('caption'), `Layer 1, head 2: what the ${photo.default_query} token looks at`);
});

test('numbers of the photo before stand dimmed until those of the next are there', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    answer: (name, body) => (name === 'open' || name === 'head_tables') && JSON.stringify(body).includes('other') && new Promise((done) => held.push(() => done(undefined))),
  }); // prettier-ignore
  const root = part.element.querySelector('.vv-heads');
  const isOld = () => [root.getAttribute('data-old') !== null, part.element.dataset.ready];
  assert.deepEqual(isOld(), [false, 'distance']);
  await part.set({ image: 'other' });
  assert.equal(isOld()[0], true);
  assert.deepEqual(part.texts(), ['10', '20', '30', '6.0', '5.0', '4.0']);
  held[0]();
  await settle();
  assert.deepEqual([isOld(), part.text('readout')], [[true, ''], '']);
  held[1]();
  await settle();
  assert.deepEqual([isOld(), part.text('readout')], [[false, 'distance'], 'mean distance: 4 pixels']);
});

test('only the tab that is open asks, and what changed meanwhile is shown when it is opened again', async () => {
  const part = await open({ link: 'tab=look' });
  assert.deepEqual([part.posted, part.lit], [[], []]);
  await part.set({ image: 'other' });
  assert.deepEqual(part.posted, []);
  await part.set({ tab: 'heads' });
  assert.deepEqual(part.asked, ['head_tables other', 'head_names other']);
  await part.set({ tab: 'look', q: '1,1' });
  await part.set({ tab: 'heads' });
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the patch (1, 1) looks at');
  assert.deepEqual(part.asked, ['head_tables other', 'head_names other']);
});

test('a photo that the server no longer keeps is opened again, once', async () => {
  let rows = 0;
  const part = await open({ rows: () => (rows += 1) < 2 && { status: 404, ok: false } });
  assert.equal(part.posted.filter(([name]) => name === 'open').length, 2);
  assert.match(part.text('scale'), /^Brightest: 12\.5%/);
  const gone = await open({ rows: () => ({ status: 404, ok: false }) });
  assert.equal(gone.posted.filter(([name]) => name === 'open').length, 2);
  assert.match(gone.text('scale'), /no longer keeps this picture/);
});

test('where there is much attention to read it is said how far that is, and it can be stopped', async () => {
  /** @type {any} */
  let tell;
  const part = await open({
    of: { tokens: 2000 },
    answer: (name, _body, told) => name === 'head_tables' && ((tell = told), new Promise(() => {})),
  });
  const job = part.find('work');
  assert.deepEqual([job.hidden, part.find('wait').hidden], [false, true]);
  tell({ share: 0.5, left: 'about 3 s left' });
  const far = ['words', 'amount'].map((name) => job.querySelector(`.vv-job-${name}`).textContent);
  assert.deepEqual(far, ['Measuring the heads over 2,000 tokens …', '50%, about 3 s left']);
  job.querySelector('button').click();
  await settle();
  assert.equal(job.hidden, true);
  assert.equal(part.text('error'), 'This was stopped; nothing of it was kept. Try again');
  part.find('error').querySelector('button').click();
  await settle();
  assert.equal(job.hidden, false);
});

test('an edit that the model cannot have is refused with its sentence, and the view stays as it was', async () => {
  const part = await open({
    link: 'face=surgery&edits=off 0.1',
    answer: (name, { edits }) => name === 'surgery' && edits?.includes('1.2') && new Error('Head 2 does not exist.'),
  }); // prettier-ignore
  part.cell(5).click();
  part.browser.pass(300);
  await settle();
  assert.equal(part.part('surgery-error')?.textContent, 'Head 2 does not exist.');
  assert.deepEqual([part.says('edits'), part.cell(5).dataset.state], ['off 0.1', 'on']);
});

test('an edit that is asked about while Back is pressed is not made', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    link: 'face=surgery&edits=off 0.1',
    answer: (name, { edits }) => name === 'surgery' && edits && new Promise((done) => held.push(() => done(undefined))),
  }); // prettier-ignore
  part.cell(5).click();
  part.browser.pass(300);
  part.place.go('?tab=heads&image=lion&face=surgery');
  held[0]();
  await settle();
  assert.equal(part.says('edits'), null);
  assert.ok(part.cells().every((/** @type {any} */ cell) => cell.dataset.state === 'on'));
});

test('a temperature is no place to which Back leads; what is forbidden and switched off is', async () => {
  const part = await open({ link: 'face=surgery' });
  part.cell(0).click();
  part.browser.pass(300);
  await settle();
  assert.deepEqual(part.written.at(-1), [{ edits: 'off 0.0' }, true]);
  const answered = { off: [], temperatures: [[0, 2]], forbidden: [], tokens: [{ value: 'class', label: 'class' }], trace: 'unedited' }; // prettier-ignore
  const warm = await open({
    link: 'face=surgery',
    answer: (name, { edits }) => name === 'surgery' && edits && { ...answered, edits },
  });
  const slider = any(warm.part('surgery-warmth'));
  slider.value = '1';
  slider.fire('input');
  warm.browser.pass(300);
  await settle();
  assert.deepEqual(warm.written.at(-1), [{ edits: 'temperature 0=2' }, false]);
});

test('the query has a ring on the photo, each patch of a region its own', async () => {
  const part = await open({ link: 'q=0,1;1,2' });
  const rings = part
    .find('rings')
    .children.map((/** @type {any} */ { className, style }) =>
      [className, style.top, style.left, style.width, style.height].join(' '),
    );
  assert.deepEqual(rings, ['vv-ring 10% 37.5% 25% 40%', 'vv-ring 50% 62.5% 25% 40%']);
});

test('the head under the pointer is looked at, in the grid and in the plot', async () => {
  const part = await open();
  const dot = part.find('dots').children[4];
  assert.equal(part.text('readout'), 'mean distance: 4 pixels');
  for (const [node, head] of [
    [part.cell(0), 'Layer 0, head 0'],
    [dot, 'Layer 1, head 1'],
  ]) {
    // prettier-ignore
    node.fire('pointermove', { pointerType: 'mouse' });
    assert.equal(part.looked(), head);
  }
  assert.equal(part.text('readout'), 'mean distance: 5 pixels');
  assert.ok(part.cell(4).classList.contains('vv-hovered'));
  assert.equal(part.cell(4).getAttribute('tabindex'), '0');
  assert.equal(part.selected(), 5);
  part.element.fire('pointerleave');
  assert.equal(part.looked(), 'Layer 1, head 2');
  part.cell(0).fire('pointermove', { pointerType: 'touch' });
  assert.equal(part.looked(), 'Layer 1, head 2');
  part.cell(0).fire('focusin');
  assert.equal(part.looked(), 'Layer 0, head 0');
  part.find('caption').fire('focusin');
  assert.equal(part.looked(), 'Layer 0, head 0');
  part.element.fire('focusout');
  assert.equal(part.looked(), 'Layer 1, head 2');
});

test('many moves are one repaint, and one that stays on its head is none', async () => {
  const { cell, browser, text } = await open();
  cell(0).fire('pointermove', { pointerType: 'mouse' });
  cell(3).fire('pointermove', { pointerType: 'mouse' });
  assert.equal(browser.timers.size, 1);
  assert.match(text('caption'), /^Layer 1, head 2/);
  browser.pass(16);
  assert.match(text('caption'), /^Layer 1, head 0/);
  cell(3).fire('pointermove', { pointerType: 'mouse' });
  assert.equal(browser.timers.size, 0);
  cell(0).fire('pointermove', { pointerType: 'mouse' }); // the same place in another row
  assert.equal(browser.timers.size, 1);
});

test('a head is chosen by a click on its cell or its dot, by Enter or by Space', async () => {
  const part = await open();
  part.cell(0).fire('pointermove', { pointerType: 'mouse' });
  part.cell(3).click();
  assert.match(part.text('caption'), /^Layer 1, head 0/);
  assert.equal(part.selected(), 3);
  part.find('dots').children[1].click();
  assert.equal(part.selected(), 1);
  assert.ok(part.find('dots').children[1].classList.contains('vv-chosen'));
  part.find('table').fire('click'); // between the cells
  assert.ok(part.cell(4).fire('keydown', { key: 'Enter' }).prevented);
  assert.equal(part.selected(), 4);
  assert.ok(part.cell(5).fire('keydown', { key: ' ' }).prevented);
  const heads = part.written.map(([{ layer = '=', head = '=' }, push]) => [layer, head, push]);
  assert.deepEqual(heads, [['=', '0', false], ['0', '1', false], ['1', '=', false], ['=', '2', false]]); // prettier-ignore
  assert.ok(part.cell(0).fire('keydown', { key: 'ArrowDown' }).prevented);
  assert.ok(part.cell(3).focused);
  assert.ok(!part.cell(0).fire('keydown', { key: 'x' }).prevented);
  assert.ok(!part.find('table').fire('keydown', { key: 'ArrowDown' }).prevented);
});

test('a patch of the photo becomes the query, by a click or by the arrows', async () => {
  const part = await open();
  const click = (/** @type {number} */ row, /** @type {number} */ col) =>
    part.find('stage').fire('click', { clientY: 50 + 2 * (2 + 8 * (row + 0.5)), clientX: 100 + 2 * (5 + 10 * (col + 0.5)) }); // prettier-ignore
  const pinned = () => part.written.map(([{ q }, push]) => (push ? q : 'no place'));
  click(0, 0);
  click(1, 2);
  part.find('stage').fire('click', { clientY: 52, clientX: 101 }); // outside what the model saw
  const key = (/** @type {string} */ of_) => part.find('stage').fire('keydown', { key: of_ }).prevented;
  assert.ok(key('ArrowDown') && key('ArrowRight') && !key('x'));
  assert.deepEqual(pinned(), ['0,0', '1,2']); // at the edge of the photo there is no other
  assert.ok(key('ArrowUp') && key('ArrowLeft'));
  assert.deepEqual(pinned().slice(2), ['0,2', '0,1']);
  await part.set({ q: 'class' });
  key('ArrowDown');
  assert.equal(pinned().at(-1), '1,1'); // the middle one
  const large = await open({ link: 'q=pool', of: { grid: [5, 7], tokens: 37 } });
  large.find('stage').fire('keydown', { key: 'ArrowUp' });
  assert.equal(large.says('q'), '2,3');
  const none = await open({ answer: (name) => name === 'open' && new Promise(() => {}) });
  none.find('stage').fire('click', { clientY: 60, clientX: 130 });
  assert.ok(!none.find('stage').fire('keydown', { key: 'ArrowUp' }).prevented);
  assert.deepEqual(none.written, []);
});

test('what replaces a head and the order of the heads are chosen by their buttons', async () => {
  const part = await open();
  const pressed = (/** @type {string} */ of_) => part.find(of_).querySelectorAll('button').map((/** @type {any} */ one) => one.getAttribute('aria-pressed')).join(); // prettier-ignore
  part.element.querySelectorAll('[data-order=value]')[0].click();
  assert.equal(pressed('orders'), 'false,true');
  part.choose('effect');
  part.element.querySelectorAll('[data-how=uniform]')[0].click();
  assert.equal(pressed('hows'), 'false,false,true');
  part.find('hows').fire('click');
  part.find('hows').fire('click', { target: null });
  assert.deepEqual(part.written, [
    [{ order: 'value' }, false],
    [{ measure: 'effect' }, true],
    [{ how: 'uniform' }, false],
  ]);
  part.find('start').click();
  assert.equal(part.asked.at(-1), 'ablation lion uniform 7');
});

test('the table that is shown is saved', async () => {
  const { find, element } = await open();
  /** @type {string[]} */
  const asked = [];
  element.addEventListener('vv-figure', (/** @type {any} */ event) => asked.push(event.detail.address));
  assert.equal(find('save').hidden, false);
  find('save').click();
  const link = new URL(asked[0], 'http://page');
  assert.equal(link.pathname, '/vit_viz/figure/h4ndle');
  const { kind, tab, measure, how } = Object.fromEntries(link.searchParams);
  assert.deepEqual([kind, tab, measure, how], ['shown', 'heads', 'distance', 'zero']);
});
