// The Heads tab over the store: what is asked for when, what follows the chosen head, and what pointer and keys do.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { savedBy } from './browser.js';
import { ANSWERS, open, photo } from './heads_page.js';
import { settle, texts } from './room.js';

test('measures stand in their groups, with what the chosen one says', async () => {
  const part = await open();
  const { find, text, asked } = part;
  const groups = find('measure').children;
  assert.deepEqual(groups.map((/** @type {any} */ one) => [one.getAttribute('label'), one.textContent]), [['reach', 'mean distanceentropy'], ['does', 'estimatecausal effect']]); // prettier-ignore
  assert.deepEqual(find('measure').options.map((/** @type {any} */ one) => one.value), ['distance', 'entropy', 'estimate', 'effect']); // prettier-ignore
  assert.equal(find('measure').value, 'distance');
  assert.equal(text('sentence'), 'How far.');
  assert.deepEqual(asked, ['head_tables lion', 'head_names lion']);
  assert.deepEqual([part.ready(), part.seen('wait', 'error')], ['distance', []]);
  assert.deepEqual(part.seen('main', 'kinds', 'scroll', 'bar', 'plot', 'causal'), [
    'main',
    'kinds',
    'scroll',
    'bar',
  ]);
  assert.equal(find('table').getAttribute('aria-label'), 'mean distance: a row for each layer, a cell for each head'); // prettier-ignore
  assert.deepEqual(['low', 'high', 'unit'].map(text), ['0', '30', 'pixels']);
  assert.equal(text('found'), 'Mean distance is largest in layer 0, head 2: 30 pixels; smallest in layer 1, head 2: 4'); // prettier-ignore
});

test('the head that is looked at has its name and its numbers against their thresholds', async () => {
  const part = await open();
  const rows = () => part.all('.vv-heads-evidence li').map((row) => row.textContent.trim());
  assert.equal(part.text('name'), 'local (thin evidence)');
  assert.equal(part.text('name-words'), 'Near. The evidence is thin: with thresholds 25% stricter or looser it would be mixed.'); // prettier-ignore
  assert.deepEqual(rows(), [
    "Mean distance, as a share of the photo's diagonal100%local: at most 200%, passes",
  ]);
  await part.fire(part.cell(0), 'pointermove', { pointerType: 'mouse' }); // a head without a name
  assert.deepEqual([part.seen('name'), rows()], [[], []]);
  const tables = { ...ANSWERS.head_tables, facts: { ...ANSWERS.head_tables.facts, note: 'Not of all.' } };
  const noted = await open({ answer: (name) => name === 'head_tables' && tables });
  assert.match(noted.text('names-words'), /thin\. Not of all\.$/);
  const none = await open({ answer: (name) => name === 'head_names' && new Error('No names here.') });
  assert.equal(none.text('names-words'), 'No names here.');
  assert.equal(none.ready(), 'distance');
});

test('a face is chosen at once and told; what belongs to others is marked so', async () => {
  const part = await open();
  const root = part.find('heads');
  assert.equal(root.dataset.face, 'atlas');
  await part.click('[data-face=depth]');
  assert.deepEqual(part.written.at(-1), [{ face: 'depth' }, true]);
  assert.equal(root.dataset.face, 'depth');
  assert.equal(
    part.text('found'),
    'Mean distance is highest in layer 0 (mean 20) and lowest in layer 1 (mean 5)',
  );
  assert.deepEqual(part.seen('plot', 'scroll', 'orders'), ['plot']);
  assert.equal(part.text('plot-title'), 'Mean distance by depth');
  await part.click(part.find('enlarge'));
  assert.equal(root.dataset.face, 'matrix');
});

test('where no model is at hand there is nothing to switch, and what needs it is named', async () => {
  const part = await open({
    link: 'face=surgery',
    has: (name) => ['head_tables', 'head_names'].includes(name),
  });
  assert.deepEqual(texts(part.all('.vv-heads-faces button')), ['atlas', 'matrix', 'by depth']);
  assert.equal(part.find('heads').dataset.face, 'atlas');
  assert.ok(part.find('switch').hidden);
  assert.deepEqual(texts(part.all('.vv-heads-measure option')), [
    'mean distance',
    'entropy',
    'estimate (in the app)',
    'causal effect (in the app)',
  ]);
});

test('a click on the grid switches a head in surgery alone, a number its layer, a drag several', async () => {
  const part = await open({ link: 'face=surgery&edits=off 0.1' });
  const states = () => part.cells().map((/** @type {any} */ cell) => cell.dataset.state);
  assert.deepEqual(states(), ['on', 'off', 'on', 'on', 'on', 'on']);
  assert.equal(part.text('found'), '1 head off: still lion, 96.3% → 90.8%');
  const rows = () =>
    part.all('.vv-surgery-answers li').map((row) => row.textContent.trim().replace(/\s+/g, ' '));
  assert.deepEqual(rows(), [
    'lion96.3% → 90.8%',
    'cougar3.2% → <6.0%', // it is not among those that are known, of which the last has 6%
    'lynx<3.2% → 6.0%',
  ]);
  await part.click(part.cell(5));
  assert.equal(part.text('found'), '2 heads off: computing …');
  assert.equal(part.find('found').getAttribute('aria-busy'), 'true');
  assert.equal(part.text('surgery-maps-title'), 'Layer 1, mean of the 2 heads that are on: computing …');
  assert.deepEqual([part.says('layer'), part.says('head')], ['1', '2']);
  assert.deepEqual(states()[5], 'off');
  assert.match(part.cell(5).getAttribute('aria-label'), /; local \(thin evidence\); off$/);
  await part.click('[data-all="0"]');
  assert.deepEqual(states(), ['off', 'off', 'off', 'on', 'on', 'off']);
  const over = (/** @type {string} */ kind, /** @type {number} */ at, buttons = 1) =>
    part.fire(part.cell(at), kind, { pointerType: 'mouse', buttons });
  await over('pointerdown', 0);
  await over('pointerover', 0);
  await over('pointerover', 1);
  await over('pointerover', 4); // what a click makes of the first: on
  part.browser.window.fire('pointerup');
  await over('pointerover', 2);
  assert.deepEqual(states(), ['on', 'on', 'off', 'on', 'on', 'off']);
  await part.click('.vv-surgery-undo'); // the drag is one step
  assert.deepEqual(states(), ['off', 'off', 'off', 'on', 'on', 'off']);
  await part.pass(300);
  assert.deepEqual(part.written.at(-1), [{ edits: 'off 0.0 0.1 0.2 1.2' }, true]);
  assert.deepEqual(states(), ['off', 'off', 'off', 'on', 'on', 'off']);
  await part.click('[data-face=atlas]');
  await part.click(part.cell(3));
  assert.equal(states()[3], 'on');
  assert.equal(part.find('table').querySelector('[data-all="0"]'), null);
});

test('while the heads are measured it says so, and nothing is shown that is not known', async () => {
  const part = await open({ answer: (name) => name === 'head_tables' && new Promise(() => {}) });
  assert.equal(part.text('wait'), 'Measuring the heads …');
  assert.deepEqual([...part.seen('bar', 'plot'), part.text('kinds')], ['']);
  assert.deepEqual([part.ready(), part.text('readout')], ['', '']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: patch (0, 1) looks at all patches alike');
  assert.ok(part.find('measure').options.every((/** @type {any} */ one) => !one.disabled));
});

test('what goes wrong is said, and can be tried again', async () => {
  const part = await open({
    answer: (name) => name === 'head_tables' && new Error('No room. '.repeat(5)),
  });
  assert.equal(part.text('error'), `${'No room. '.repeat(5)}Try again`);
  assert.deepEqual(part.seen('error', 'wait'), ['error']);
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
  assert.deepEqual([part.ready(), part.text('wait')], ['', 'Measuring the heads …']);
  assert.deepEqual(part.seen('error'), []);
  held[1]();
  await settle();
  assert.equal(part.ready(), 'distance');
});

test('another query lights the photo anew without measuring again', async () => {
  const part = await open();
  await part.set({ q: 'class' });
  assert.deepEqual(part.asked, ['head_tables lion', 'head_names lion']);
  assert.equal(part.text('caption'), 'Layer 1, head 2: the class token looks at all patches alike');
  assert.equal(part.find('rings').childElementCount, 0);
  await part.back('?tab=heads&image=lion&layer=1&head=2&q=1,1');
  assert.equal(part.text('caption'), 'Layer 1, head 2: patch (1, 1) looks at all patches alike');
  await part.set({ q: '9,9' }); // of another grid: what the model's output is read from
  assert.equal(
    part.text('caption'),
    `Layer 1, head 2: the ${photo.default_query} token looks at all patches alike`,
  );
});

test('numbers of the photo before stand dimmed until those of the next are there', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    answer: (name, body) => (name === 'open' || name === 'head_tables') && JSON.stringify(body).includes('other') && new Promise((done) => held.push(() => done(undefined))),
  }); // prettier-ignore
  const root = part.find('heads');
  const isOld = () => [root.getAttribute('data-old') !== null, part.ready()];
  assert.deepEqual(isOld(), [false, 'distance']);
  await part.set({ image: 'other' });
  assert.equal(isOld()[0], true);
  assert.equal(part.text('found'), 'Mean distance: computing …');
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
  const posted = () => part.posted.filter(([name]) => name !== 'open'); // which is for all of the page
  assert.deepEqual([posted(), part.lit], [[], []]);
  await part.set({ image: 'other' });
  assert.deepEqual(posted(), []);
  await part.set({ tab: 'heads' });
  assert.deepEqual(part.asked, ['head_tables other', 'head_names other']);
  const before = part.lit.length;
  await part.set({ tab: 'look', q: '1,1' });
  assert.equal(part.lit.length, before);
  await part.set({ tab: 'heads' });
  assert.equal(part.text('caption'), 'Layer 1, head 2: patch (1, 1) looks at all patches alike');
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
  assert.deepEqual(part.seen('work', 'wait'), ['work']);
  tell({ share: 0.5, left: 'about 3 s left' });
  await settle();
  const far = ['words', 'amount'].map((name) => job.querySelector(`.vv-job-${name}`).textContent);
  assert.deepEqual(far, ['Measuring the heads over 2,000 tokens …', '50%, about 3 s left']);
  await part.click(job.querySelector('button'));
  assert.equal(job.hidden, true);
  assert.equal(part.text('error'), 'This was stopped; nothing of it was kept. Try again');
  await part.click('.vv-heads-error .vv-again');
  assert.equal(job.hidden, false);
});

test('an edit that the model cannot have is refused with its sentence, and the view stays as it was', async () => {
  const part = await open({
    link: 'face=surgery&edits=off 0.1',
    answer: (name, { edits }) => name === 'edited' && edits?.includes('1.2') && new Error('Head 2 does not exist.'),
  }); // prettier-ignore
  await part.click(part.cell(5));
  await part.pass(300);
  assert.equal(part.text('surgery-error'), 'Head 2 does not exist.');
  assert.deepEqual([part.says('edits'), part.cell(5).dataset.state], ['off 0.1', 'on']);
});

test('an edit that is asked about while Back is pressed is not made', async () => {
  /** @type {(() => void)[]} */
  const held = [];
  const part = await open({
    link: 'face=surgery&edits=off 0.1',
    answer: (name, { edits }) => name === 'edited' && edits && new Promise((done) => held.push(() => done(undefined))),
  }); // prettier-ignore
  await part.click(part.cell(5));
  part.browser.pass(300);
  await part.back('?tab=heads&image=lion&face=surgery');
  held[0]();
  await settle();
  assert.equal(part.says('edits'), null);
  assert.ok(part.cells().every((/** @type {any} */ cell) => cell.dataset.state === 'on'));
});

test('a temperature is no place to which Back leads; what is forbidden and switched off is', async () => {
  const part = await open({ link: 'face=surgery' });
  await part.click(part.cell(0));
  await part.pass(300);
  assert.deepEqual(part.written.at(-1), [{ edits: 'off 0.0' }, true]);
  const answered = { off: [], temperatures: [[0, 2]], forbidden: [], tokens: [{ value: 'class', label: 'class' }], trace: 'unedited' }; // prettier-ignore
  const warm = await open({
    link: 'face=surgery',
    answer: (name, { edits }) => name === 'edited' && edits && { ...answered, edits },
  });
  const slider = warm.find('surgery-warmth');
  slider.value = '1';
  await warm.fire(slider, 'input');
  await warm.pass(300);
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

test('the head under the pointer, or with the focus, is looked at, in the grid and in the plot', async () => {
  const part = await open();
  const over = (/** @type {any} */ node, pointerType = 'mouse') =>
    part.fire(node, 'pointermove', { pointerType });
  assert.equal(part.text('readout'), 'mean distance: 4 pixels');
  await over(part.cell(4));
  assert.deepEqual([part.looked(), part.text('readout')], ['Layer 1, head 1', 'mean distance: 5 pixels']);
  assert.ok(part.cell(4).classList.contains('vv-hovered'));
  assert.deepEqual(
    part
      .cells()
      .map((cell) => cell.getAttribute('tabindex'))
      .join(),
    '-1,-1,-1,-1,0,-1',
  );
  assert.equal(part.selected(), 5);
  await part.fire(part.find('heads'), 'pointerleave');
  assert.equal(part.looked(), 'Layer 1, head 2');
  await over(part.cell(0), 'touch');
  assert.equal(part.looked(), 'Layer 1, head 2');
  await part.fire(part.cell(0), 'focusin');
  assert.equal(part.looked(), 'Layer 0, head 0');
  await part.fire(part.find('caption'), 'focusin');
  assert.equal(part.looked(), 'Layer 0, head 0');
  await part.fire(part.cell(0), 'focusout', { relatedTarget: part.cell(1) });
  assert.equal(part.looked(), 'Layer 0, head 1'); // not the chosen one in between
  await part.fire(part.find('heads'), 'focusout');
  assert.equal(part.looked(), 'Layer 1, head 2');
  await part.click('[data-face=depth]');
  await over(part.find('dots').children[1]);
  assert.deepEqual(
    [part.looked(), part.find('dots').children[1].className],
    ['Layer 0, head 1', 'vv-heads-dot vv-hovered'],
  );
});

test('what is pointed at draws cells and words again, and not the grid', async () => {
  const part = await open();
  const drawn = () => part.find('tiles').canvas.calls.length;
  const before = drawn();
  for (const at of [0, 3, 3]) await part.fire(part.cell(at), 'pointermove', { pointerType: 'mouse' });
  assert.deepEqual([part.looked(), drawn()], ['Layer 1, head 0', before]);
});

test('a head is chosen by a click on its cell or its dot, by Enter or by Space; arrows go from one to the next', async () => {
  const part = await open();
  const key = async (/** @type {any} */ node, /** @type {string} */ name) =>
    (await part.fire(node, 'keydown', { key: name })).prevented;
  await part.click(part.cell(3));
  assert.deepEqual([part.selected(), part.looked()], [3, 'Layer 1, head 0']);
  await part.click('.vv-heads-table'); // between the cells
  assert.ok(await key(part.cell(4), 'Enter'));
  assert.equal(part.selected(), 4);
  assert.ok(await key(part.cell(5), ' '));
  const heads = part.written.map(([{ layer = '=', head = '=' }, push]) => [layer, head, push]);
  assert.deepEqual(heads, [['=', '0', false], ['=', '1', false], ['=', '2', false]]); // prettier-ignore
  assert.ok(await key(part.cell(0), 'ArrowDown'));
  assert.ok(part.cell(3).focused);
  for (const name of ['ArrowLeft', 'ArrowDown', 'ArrowRight', 'ArrowRight', 'ArrowRight']) {
    const [focused] = part.cells().filter((cell) => cell.focused);
    await key(focused, name);
  }
  assert.ok(part.cell(5).focused); // at the edges it stays
  assert.ok(!(await key(part.cell(0), 'x')));
  assert.ok(!(await key(part.find('table'), 'ArrowDown')));
  await part.click('[data-order=value]');
  await key(part.cell(0), 'ArrowRight'); // the largest of all heads first, row by row
  assert.ok(part.cell(1).focused);
  await key(part.cell(0), 'ArrowDown');
  assert.equal(
    part
      .cells()
      .find((cell) => cell.focused)
      ?.getAttribute('aria-label')
      ?.split(':')[0],
    '1·0 6.0; layer 1, head 0',
  );
  await part.click('[data-face=depth]');
  await part.click(part.find('dots').children[1]);
  assert.deepEqual(
    [part.says('layer'), part.says('head'), part.find('dots').children[1].className],
    ['0', '1', 'vv-heads-dot vv-chosen'],
  );
  assert.ok(await key(part.plot(), 'ArrowRight'));
  assert.deepEqual([part.says('layer'), part.says('head')], ['0', '1']); // pointed at alone
  assert.ok(await key(part.plot(), 'Enter'));
  assert.deepEqual([part.says('layer'), part.says('head')], ['1', '0']);
});

test('a patch of the photo becomes the query, by a click or by the arrows', async () => {
  const part = await open();
  const click = (/** @type {number} */ row, /** @type {number} */ col) =>
    part.fire(part.find('stage'), 'click', { clientY: 50 + 2 * (2 + 8 * (row + 0.5)), clientX: 100 + 2 * (5 + 10 * (col + 0.5)) }); // prettier-ignore
  const pinned = () => part.written.map(([{ q }, push]) => (push ? q : 'no place'));
  await click(0, 0);
  await click(1, 2);
  await part.fire(part.find('stage'), 'click', { clientY: 52, clientX: 101 }); // outside what the model saw
  const key = async (/** @type {string} */ of_) =>
    (await part.fire(part.find('stage'), 'keydown', { key: of_ })).prevented;
  assert.ok((await key('ArrowDown')) && (await key('ArrowRight')) && !(await key('x')));
  assert.equal(part.find('at').style.left, part.find('ring').style.left); // at the edge of the photo there is no other
  assert.ok((await key('ArrowUp')) && (await key('Enter')));
  assert.ok((await key('ArrowLeft')) && (await key('Enter')));
  assert.deepEqual(pinned().slice(2), ['0,2', '0,1']);
  assert.ok((await key('Escape')) && (await key('Escape')));
  assert.equal(part.says('q'), null);
  await part.set({ q: 'class' });
  await key('ArrowDown');
  await key('Enter');
  assert.equal(pinned().at(-1), '1,1'); // the middle one
  const large = await open({ link: 'q=pool', of: { grid: [5, 7], tokens: 37 } });
  for (const name of ['ArrowUp', 'Enter']) large.find('stage').fire('keydown', { key: name });
  assert.equal(large.says('q'), '2,3');
  const none = await open({ answer: (name) => name === 'open' && new Promise(() => {}) });
  assert.deepEqual(none.seen('stage', 'main'), []);
  assert.deepEqual(none.written, []);
});

test('the heads that are most like another one are none of itself, and can be chosen', async () => {
  const part = await open();
  const kin = () => part.all('.vv-heads-kin-tile').map((tile) => tile.textContent.trim());
  assert.deepEqual(kin(), ['0 · 0, 0.00', '0 · 1, 0.00', '0 · 2, 0.00', '1 · 0, 0.00']);
  await part.click('.vv-heads-kin-tile');
  assert.deepEqual([part.selected(), kin()[0]], [0, '0 · 1, 0.00']);
});

test('of what takes long one thing is computed at a time', async () => {
  /** @type {(answer?: any) => void} */
  let done = () => {};
  const part = await open({
    link: 'measure=estimate',
    of: { tokens: 2000 },
    answer: (name) => name === 'head_tables' && new Promise((give) => (done = give)),
  });
  assert.deepEqual(part.asked, ['head_tables lion']);
  done();
  await settle();
  assert.deepEqual(part.asked.slice(1), ['head_names lion', 'head_importance lion zero 7']);
});

test('where heads stand the largest first, a link that names no layer shows the first of them', async () => {
  const chosen = async (/** @type {string} */ link) => {
    const { says } = await open({ link });
    return [says('layer'), says('head')];
  };
  assert.deepEqual(await chosen('layer=&head=&order=value'), ['0', '2']);
  assert.deepEqual(await chosen('layer=&head='), ['', '']);
  assert.deepEqual(await chosen('order=value'), ['1', '2']);
});

test('what replaces a head and the order of the heads are chosen by their buttons', async () => {
  const part = await open();
  const pressed = (/** @type {string} */ of_) => part.find(of_).querySelectorAll('button').map((/** @type {any} */ one) => one.getAttribute('aria-pressed')).join(); // prettier-ignore
  await part.click(part.all('[data-order=value]')[0]);
  assert.equal(pressed('orders'), 'false,true');
  assert.deepEqual([part.text('caption').split(':')[0], part.texts()], ['Layer 0, head 2', ['0·2 30', '0·1 20', '0·0 10', '1·0 6.0', '1·1 5.0', '1·2 4.0']]); // prettier-ignore
  await part.choose('entropy');
  await part.choose('effect');
  await part.click(part.all('[data-how=uniform]')[0]);
  assert.equal(pressed('hows'), 'false,false,true');
  part.find('hows').fire('click');
  part.find('hows').fire('click', { target: null });
  assert.deepEqual(part.written, [
    [{ order: 'value', layer: '0' }, false], // the largest of all
    [{ measure: 'entropy' }, true],
    [{ measure: 'effect' }, true], // nothing is known yet
    [{ how: 'uniform' }, false],
  ]);
  await part.click(part.find('start'));
  assert.equal(part.asked.at(-1), 'ablation lion uniform 7');
});

test('the table that is shown is saved', async () => {
  for (const [link, ...wanted] of /** @type {[string, string, any][]} */ ([
    ['', 'heads', { measure: 'distance' }],
    ['measure=estimate&how=mean&target=7&style=heat', 'head_importance', { how: 'mean', target: '7' }],
  ])) {
    const part = await open({ link });
    const [name, { figure, model, image, edits, ...body }] = savedBy(part.root, part.find('save'));
    assert.deepEqual([name, body], wanted);
    assert.deepEqual([model, image, edits], ['mini', { sample: 'lion' }, '']);
    assert.deepEqual(figure, link ? { style: 'heat' } : {});
  }
});
