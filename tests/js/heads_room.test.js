// The Heads tab as Gradio runs it: what is fetched when, what follows the chosen head, and what pointer and keys do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { numbers, open, subject } from './heads_page.js';
import { settle } from './visit.js';

test('measures stand in their groups, with what the chosen one says', async () => {
  const { find, text, element, asked } = await open();
  const groups = find('measure').children;
  assert.deepEqual(groups.map((/** @type {any} */ one) => [one.getAttribute('label'), one.textContent]), [['reach', 'mean distanceentropy'], ['does', 'estimatecausal effect']]); // prettier-ignore
  assert.deepEqual(find('measure').options.map((/** @type {any} */ one) => one.value), ['distance', 'entropy', 'estimate', 'effect']); // prettier-ignore
  assert.equal(find('measure').value, 'distance');
  assert.equal(text('sentence'), 'How far.');
  assert.deepEqual(asked, ['h4ndle?kind=measures']);
  assert.deepEqual(
    [element.dataset.ready, find('wait').hidden, find('error').hidden],
    ['distance', true, true],
  );
  assert.deepEqual(['main', 'names', 'scroll', 'bar', 'plot'].map((part) => find(part).hidden), new Array(5).fill(false)); // prettier-ignore
  assert.equal(find('causal').hidden, true);
  assert.equal(find('table').getAttribute('aria-label'), 'mean distance: a row for each layer, a cell for each head'); // prettier-ignore
  assert.deepEqual(['low', 'high', 'unit', 'plot-title'].map(text), ['4', '30', 'pixels', 'Mean distance by depth']); // prettier-ignore
  assert.match(find('strip').style.background, /^linear-gradient\(to right, rgb\(0 0 0\), rgb\(15 15 15\)/);
});

test('names are told with their evidence, or why there are none, or what is not known', async () => {
  const { text, find } = await open();
  assert.match(text('names-words'), /^A head has the first name .* that the evidence is thin\.$/);
  find('kinds').querySelectorAll('.vv-chip')[0].click();
  assert.match(find('kinds').textContent, /with thresholds 25% stricter/);
  const noted = await open({
    answer: (path) => path.includes('measures') && { ...numbers, note: 'Not of all.' },
  });
  assert.match(noted.text('names-words'), /thin\. Not of all\.$/);
  const none = { ...numbers, names: [], unnamed: 'No names here.', margin: undefined };
  assert.equal((await open({ answer: (path) => path.includes('measures') && none })).text('names-words'), 'No names here.'); // prettier-ignore
  const usual = await open({
    answer: (path) => path.includes('measures') && { ...numbers, margin: undefined },
  });
  usual.find('kinds').querySelectorAll('.vv-chip')[0].click();
  assert.match(usual.find('kinds').textContent, /with thresholds 10% stricter/);
});

test('while the heads are measured it says so, and nothing is shown that is not known', async () => {
  const part = await open({ answer: () => new Promise(() => {}) });
  assert.equal(part.text('wait'), 'Measuring the heads …');
  assert.deepEqual(['scroll', 'bar', 'plot', 'names'].map((of_) => part.find(of_).hidden), new Array(4).fill(true)); // prettier-ignore
  assert.deepEqual([part.element.dataset.ready, part.text('readout')], ['', '']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the patch (0, 1) looks at');
  assert.ok(part.find('measure').options.every((/** @type {any} */ one) => !one.disabled));
});

test('what goes wrong is said in at most 300 letters', async () => {
  const part = await open({
    answer: (path) => path.includes('measures') && new Error('No room. '.repeat(50)),
  });
  assert.equal(part.text('error'), 'No room. '.repeat(50).slice(0, 300));
  assert.deepEqual([part.find('error').hidden, part.find('wait').hidden], [false, true]);
});

test('numbers of a trace that was left are not shown', async () => {
  /** @type {((found: any) => void)[]} */
  const held = [];
  const part = await open({
    answer: (path) => path.includes('measures') && new Promise((done) => held.push(done)),
  });
  const rows = () => part.lit.filter((path) => path.includes('/other/')).length;
  assert.equal(rows(), 0);
  await part.set({ revision: 5, trace: 'other' });
  assert.equal(rows(), 2); // of both layers: the photo is lit anew
  assert.deepEqual(part.asked, ['h4ndle?kind=measures', 'other?kind=measures']);
  held[0](undefined);
  await settle();
  assert.deepEqual([part.element.dataset.ready, part.text('wait')], ['', 'Measuring the heads …']);
  assert.equal(part.find('error').hidden, true);
  held[1](undefined);
  await settle();
  assert.equal(part.element.dataset.ready, 'distance');
});

test('another query lights the photo anew without measuring again; a note is shown', async () => {
  const part = await open();
  await part.set({ revision: 5, query: 'class', note: 'A note.' });
  assert.deepEqual(part.asked, ['h4ndle?kind=measures']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the class token looks at');
  assert.deepEqual([part.text('error'), part.find('error').hidden], ['A note.', false]);
  assert.equal(part.find('rings').childElementCount, 0);
  await part.set({ revision: 3, query: '1,1' });
  assert.equal(part.text('caption'), 'Layer 1, head 2: what the class token looks at');
  await part.set({ revision: 6, trace: '' });
  assert.deepEqual(
    ['main', 'names', 'wait'].map((of_) => part.find(of_).hidden),
    [true, true, true],
  );
});

test('the query has a ring on the photo, each patch of a region its own', async () => {
  const part = await open({ now: { ...subject, query: '0,1;1,2' } });
  const rings = part
    .find('rings')
    .children.map((/** @type {any} */ { className, style }) =>
      [className, style.top, style.left, style.width, style.height].join(' '),
    );
  assert.deepEqual(rings, ['vv-ring 10% 37.5% 25% 40%', 'vv-ring 50% 62.5% 25% 40%']);
});

test('the head under the pointer is looked at, in the table, in the plot and among the names', async () => {
  const part = await open();
  const dot = part.find('dots').children[4];
  const chip = part.find('kinds').querySelectorAll('.vv-chip')[1];
  assert.equal(part.text('readout'), 'mean distance: 4 pixels; name: local (thin evidence)');
  for (const [node, head] of [
    [part.cell(0), 'Layer 0, head 0'],
    [dot, 'Layer 1, head 1'],
    [chip, 'Layer 0, head 1'],
  ]) {
    // prettier-ignore
    node.fire('pointermove', { pointerType: 'mouse' });
    assert.equal(part.looked(), head);
  }
  assert.equal(part.text('readout'), 'mean distance: 20 pixels; name: local (thin evidence)');
  assert.ok(part.cell(1).classList.contains('vv-hovered'));
  assert.equal(part.cell(1).getAttribute('tabindex'), '0');
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
  assert.deepEqual(part.told, [
    ['choose', { layer: 1, head: 0 }],
    ['choose', { layer: 0, head: 1 }],
    ['choose', { layer: 1, head: 1 }],
    ['choose', { layer: 1, head: 2 }],
  ]);
  assert.ok(part.cell(0).fire('keydown', { key: 'ArrowDown' }).prevented);
  assert.ok(part.cell(3).focused);
  assert.ok(!part.cell(0).fire('keydown', { key: 'x' }).prevented);
  assert.ok(!part.find('table').fire('keydown', { key: 'ArrowDown' }).prevented);
});

test('a patch of the photo becomes the query, by a click or by the arrows', async () => {
  const part = await open();
  const click = (/** @type {number} */ row, /** @type {number} */ col) =>
    part.find('stage').fire('click', { clientY: 50 + 2 * (2 + 8 * (row + 0.5)), clientX: 100 + 2 * (5 + 10 * (col + 0.5)) }); // prettier-ignore
  const pinned = () => part.told.filter(([event]) => event === 'pin').map(([, { query }]) => query);
  click(0, 0);
  click(1, 2);
  part.find('stage').fire('click', { clientY: 52, clientX: 101 }); // outside what the model saw
  const key = (/** @type {string} */ of_) => part.find('stage').fire('keydown', { key: of_ }).prevented;
  assert.ok(key('ArrowDown') && key('ArrowRight') && !key('x'));
  assert.deepEqual(pinned(), ['0,0', '1,2', '1,1', '0,2']); // from the query (0, 1), which the view has not changed yet
  await part.set({ revision: 5, query: 'class' });
  key('ArrowDown');
  assert.equal(pinned().at(-1), '1,1'); // the middle one
  await part.set({ revision: 6, query: 'class', grid: [5, 7], tokens: 37 });
  key('ArrowUp');
  assert.equal(pinned().at(-1), '2,3');
  const none = await open({ now: null });
  none.find('stage').fire('click', { clientY: 60, clientX: 130 });
  assert.ok(!none.find('stage').fire('keydown', { key: 'ArrowUp' }).prevented);
  assert.deepEqual(none.told, []);
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
  assert.deepEqual(part.told, [
    ['option', { head_order: 'value' }],
    ['option', { measure: 'effect' }],
    ['option', { how: 'uniform' }],
  ]);
  part.find('start').click();
  assert.deepEqual(part.told.at(-1), ['start', { how: 'uniform' }]);
});
