// What pointer, wheel, fingers and keys do with the matrix and with the photo beside it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fire, open, OPTIONS, trace } from './matrix_page.js';

const MOUSE = { deltaMode: 0, ctrlKey: false };
const pins = (/** @type {any[]} */ told) => told.filter((change) => 'q' in change).map(({ q }) => q);

/** What the link says of the zoom: how large, and the cells above and left of what is in sight. */
async function zoomOf(/** @type {any} */ part) {
  await part.frames(20);
  const seen = part.store.view.zoom.value;
  if (!seen) return 'none';
  const [zoom, ...shares] = seen.split(',').map(Number);
  return [zoom, ...shares.map((/** @type {number} */ share) => Math.round(2400 * share) / 100)].join(' ');
}

test('a click chooses the row of the pair as the query of the page, and marks the pair', async () => {
  const part = await open();
  const { over, told, band, frames, text } = part;
  await over('pointerdown', 25, 2);
  await over('pointerup', 25, 2);
  await over('click', 25, 2);
  await frames(1);
  assert.deepEqual(told, [{ q: '3,5' }]);
  assert.deepEqual(['pinned', 'row', 'column'].map(band), ['264px 10px', '264px 10px', '34px 10px']);
  await over('click', 25, 7); // which is pinned already
  await over('click', 1, 7);
  await over('click', 0, 7);
  assert.deepEqual(pins(told), ['3,5', 'register 0', 'class']);
  await fire(part.find('sheet'), 'click', part.point(30, 100)); // in the gap
  await frames(1);
  assert.equal(pins(told).length, 3);
  assert.equal(text('readout'), 'class token looks at patch (0, 5): 1.6%');
});

test('a pointer that moves over a gap or leaves points at nothing; a finger that leaves keeps its pair', async () => {
  const { over, find, band, frames, point } = await open();
  const row = async () => {
    await frames(1);
    return band('row');
  };
  await over('pointermove', 10, 5);
  assert.equal(await row(), '114px 10px');
  await fire(find('sheet'), 'pointermove', point(30, 100));
  assert.equal(await row(), '');
  await over('pointermove', 10, 5);
  await fire(find('sheet'), 'pointermove', point(100, 30));
  assert.equal(await row(), '');
  await over('pointermove', 10, 5);
  await fire(find('sheet'), 'pointerleave', { pointerId: 1, pointerType: 'touch' });
  assert.equal(await row(), '114px 10px');
  await fire(find('sheet'), 'pointerleave', { pointerId: 1, pointerType: 'mouse' });
  assert.equal(await row(), '');
});

test('the buttons zoom about the middle, about the pair that is pointed at, and back to the whole', async () => {
  const part = await open();
  const [larger, smaller, whole] = part.element.querySelectorAll('[data-zoom]');
  await part.click(larger);
  assert.equal(await zoomOf(part), '1.5 3.43 3.43'); // (137 - 34) / 10 = 10.3 patches stay under the middle: 10.3 - 10.3 / 1.5
  assert.equal(part.find('sheet').hasAttribute('data-zoomed'), true);
  await part.click(smaller);
  await part.frames(20);
  assert.deepEqual(part.told.at(-1), { zoom: null });
  assert.equal(part.find('sheet').hasAttribute('data-zoomed'), false);
  await part.over('pointermove', 25, 2);
  await part.click(larger);
  assert.equal(await zoomOf(part), '1.5 7.83 0.17'); // 23.5 / 3 and 0.5 / 3
  await part.click(whole);
  await part.frames(20);
  assert.deepEqual(part.told.at(-1), { zoom: null });
  await part.frames(20);
  assert.equal(part.told.length, 4);
});

test('the scale and the links are chosen by their buttons, the number of links in its list', async () => {
  const part = await open();
  const press = (/** @type {string} */ name) => part.click(part.element.querySelector(`[${name}]`));
  await press('data-scale=linear');
  await part.frames(20);
  await press('data-links=head');
  await part.frames(20);
  part.find('count').value = '20';
  await fire(part.find('count'), 'change');
  await part.frames(18);
  assert.deepEqual(part.told, [{ matrix_scale: 'linear' }, { links: 'head' }, { strongest: '20' }]);
  const chosen = part.element
    .querySelectorAll('button')
    .filter((/** @type {any} */ one) => one.getAttribute('aria-pressed') === 'true')
    .map((/** @type {any} */ one) => one.textContent);
  assert.deepEqual(chosen, ['of the whole head', 'linear']);
  assert.equal(part.arrows().length, 20);
});

test('another layer or head is told, and shown at once', async () => {
  const part = await open();
  part.find('layer').value = '0';
  await fire(part.find('layer'), 'change');
  part.find('head').value = 'max';
  await fire(part.find('head'), 'change');
  assert.deepEqual(part.told, [{ layer: '0', head: '2' }, { head: 'max' }]);
  await new Promise((done) => setImmediate(done));
  assert.equal(part.text('caption'), 'Layer 0, max over heads: computing …');
  part.find('head').value = '4';
  await fire(part.find('head'), 'change');
  assert.equal(part.text('caption'), 'Layer 0, head 4: computing …');
});

test('arrows move the pair from the pinned query on, to the edges, with Shift ten at a time', async () => {
  const part = await open();
  const { key, band } = part;
  const pair = () => ['row', 'column'].map((name) => Number(band(name).split('px')[0]));
  assert.ok((await key('ArrowDown')).prevented);
  assert.deepEqual(pair(), [114, 114]); // it begins at the query with itself
  await key('ArrowDown');
  assert.deepEqual(pair(), [124, 114]);
  await key('ArrowRight');
  assert.deepEqual(pair(), [124, 124]);
  await key('ArrowUp', { shiftKey: true });
  assert.deepEqual(pair(), [14, 124]); // from cell 11 to the register
  await key('ArrowUp', { shiftKey: true });
  await key('ArrowRight', { shiftKey: true });
  await key('ArrowRight', { shiftKey: true });
  assert.deepEqual(pair(), [0, 264]);
  for (let i = 0; i < 3; i++) await key('ArrowDown', { shiftKey: true });
  for (let i = 0; i < 3; i++) await key('ArrowLeft', { shiftKey: true });
  assert.deepEqual(pair(), [264, 0]);
  assert.equal(part.text('status'), '');
  await part.frames(24);
  assert.equal(part.text('status'), '');
  await part.frames(1);
  assert.equal(part.text('status'), 'patch (3, 5) looks at class token: 1.6%');
});

test('from a query on the photo the arrows go on to a pair; from a pool that is not known they begin at the first', async () => {
  const part = await open();
  await part.onPhoto('pointermove', 3, 5);
  await part.key('ArrowLeft');
  assert.deepEqual(['row', 'column'].map(part.band), ['264px 10px', '254px 10px']);
  const pool = { ...trace, pooling: 'attention', view: { layer: 1, head: 2, query: 'pool' } };
  const other = await open({ now: pool });
  await other.key('ArrowLeft');
  assert.deepEqual(['row', 'column'].map(other.band), ['0px 14px', '0px 14px']);
});

test('the arrows bring the pair into sight where the matrix is zoomed', async () => {
  const part = await open({ options: { ...OPTIONS, zoom: '4,0,0' } });
  for (let i = 0; i < 2; i++) await part.key('ArrowDown');
  assert.equal(await zoomOf(part), '4 4 3'); // six cells are in sight: patches 4 to 9, and 3 to 8
  assert.deepEqual(['row', 'column'].map(part.band), ['234px 40px', '234px 40px']);
});

test('Enter chooses the query of the pair, Escape leaves it, and without a pair they do nothing', async () => {
  const { key, told, band, over } = await open();
  assert.ok(!(await key('Enter')).prevented);
  assert.ok(!(await key('Escape')).prevented);
  await over('pointermove', 25, 2);
  assert.ok((await key('Enter')).prevented);
  assert.deepEqual(told, [{ q: '3,5' }]);
  assert.ok((await key('Escape')).prevented);
  assert.equal(band('row'), '');
  assert.ok(!(await key('x')).prevented);
});

test("plus and minus zoom by a half, 0 shows everything; with Control they are the browser's", async () => {
  const part = await open();
  await part.over('pointermove', 25, 2); // at the edges: later it is the middle of what is seen of its cells that stays
  for (const [name, zoom] of [
    ['+', '1.5 7.83 0.17'],
    ['=', '2.25 13.03 0.3'],
    ['-', '1.5 7.87 0.13'],
  ]) {
    // prettier-ignore
    assert.ok((await part.key(name)).prevented);
    assert.equal(await zoomOf(part), zoom);
  }
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }])
    for (const name of ['0', '+', 'ArrowDown']) assert.ok(!(await part.key(name, more)).prevented);
  assert.equal(await zoomOf(part), '1.5 7.87 0.13');
  assert.ok((await part.key('0')).prevented);
  await part.frames(20);
  assert.deepEqual(part.told.at(-1), { zoom: null });
});

test('a drag moves a zoomed matrix, a short one is a click, and one over the whole matrix moves nothing', async () => {
  const part = await open({ options: { ...OPTIONS, zoom: '2,0.5,0.25' } });
  const { find, point, told } = part;
  const drag = async (/** @type {number} */ down, /** @type {number} */ across, button = 0) => {
    await fire(find('sheet'), 'pointerdown', point(150, 150, { button }));
    await fire(find('sheet'), 'pointermove', point(150 + down, 150 + across));
    await fire(find('sheet'), 'pointerup', point(150 + down, 150 + across));
    if (!button) await fire(find('sheet'), 'click', point(150 + down, 150 + across));
  };
  await drag(60, -40);
  assert.equal(find('sheet').captured, 1);
  assert.equal(await zoomOf(part), '2 9 8'); // of 12 and 6: three cells of 20 pixels up, two to the left
  assert.deepEqual(pins(told), []);
  await drag(3, 2);
  assert.equal(await zoomOf(part), '2 9 8');
  assert.deepEqual(pins(told), ['2,2']); // 119 pixels below the first patch that is in sight: patch 14
  await drag(-60, 0, 2);
  assert.equal(await zoomOf(part), '2 9 8');
  await fire(find('sheet'), 'pointerdown', point(150, 150));
  for (const at of [152, 154, 157]) await fire(find('sheet'), 'pointermove', point(at, 150)); // in small steps
  assert.equal(await zoomOf(part), '2 8.85 8');
  await fire(find('sheet'), 'pointercancel', point(157, 150));
  await fire(find('sheet'), 'pointermove', point(200, 150));
  assert.equal(await zoomOf(part), '2 8.85 8');
  assert.equal(pins(told).length, 1);
  const whole = await open();
  await whole.over('pointerdown', 10, 5);
  await whole.over('pointermove', 20, 5);
  assert.equal(await zoomOf(whole), 'none');
  assert.equal(whole.find('sheet').captured, 0);
  await whole.over('pointerup', 20, 5);
  await whole.over('click', 20, 5);
  assert.deepEqual(pins(whole.told), []);
  await whole.over('pointerdown', 20, 5);
  await whole.over('click', 20, 5);
  assert.deepEqual(pins(whole.told), ['3,0']);
});

test('two fingers zoom by their distance, about their middle, and move with it', async () => {
  const part = await open();
  const touch = (/** @type {string} */ name, /** @type {number} */ id, /** @type {number} */ down, /** @type {number} */ across) =>
    fire(part.find('sheet'), name, part.point(down, across, { pointerId: id, pointerType: 'touch' })); // prettier-ignore
  await touch('pointerdown', 3, 94, 134);
  await touch('pointerdown', 5, 94, 174);
  await touch('pointermove', 5, 94, 214); // from 40 to 80 pixels apart; their middle goes from 154 to 174
  assert.equal(await zoomOf(part), '2 3 7'); // (174 - 34) / 10 = 14 stay under it, less 140 / 20
  await touch('pointermove', 3, 114, 134);
  // from 80 to sqrt(20^2 + 80^2) = 82.46 pixels: 1.0308 times; the middle goes from 94 to 104 down
  assert.equal(await zoomOf(part), '2.06 2.6 7.21'); // 2.5 + 3.5 - 70 / 20.616, 7 + 7 - 140 / 20.616
  await touch('pointerup', 5, 94, 214);
  await touch('pointermove', 5, 94, 240);
  assert.equal(await zoomOf(part), '2.06 2.6 7.21');
  await touch('pointerleave', 3, 114, 134);
  const other = await open();
  const put = (/** @type {string} */ name, /** @type {number} */ id, /** @type {number} */ down, /** @type {number} */ across) =>
    fire(other.find('sheet'), name, other.point(down, across, { pointerId: id, pointerType: 'touch' })); // prettier-ignore
  await put('pointerdown', 3, 94, 134);
  await put('pointerdown', 5, 94, 134); // at one point, which has no distance
  await put('pointermove', 5, 94, 214);
  assert.equal(await zoomOf(other), 'none');
});

test('the wheel zooms about the pointer, in pixels or in lines', async () => {
  const part = await open();
  const turn = (/** @type {any} */ more) => part.over('wheel', 12, 7, { ...MOUSE, ...more });
  part.browser.now += 1000;
  assert.ok((await turn({ deltaY: -400 * Math.log(2) })).prevented);
  assert.equal(await zoomOf(part), '2 5.25 2.75'); // 10.5 / 2 and 5.5 / 2
  assert.ok((await turn({ deltaY: 25 * Math.log(2), deltaMode: 1 })).prevented); // lines of 16 pixels
  await part.frames(20);
  assert.deepEqual(part.told.at(-1), { zoom: null });
  assert.ok(!(await turn({ deltaY: 100 })).prevented); // nothing gets smaller: the page scrolls
  const { prevented } = await turn({ deltaY: 100, ctrlKey: true });
  assert.ok(prevented); // or the browser would zoom the page
  assert.ok((await turn({ deltaY: -100 * Math.log(2), ctrlKey: true })).prevented);
  assert.equal(await zoomOf(part), '2 5.25 2.75');
});

test('a turn of the wheel that began elsewhere on the page goes on scrolling it until it rests', async () => {
  const part = await open();
  const turn = (more = {}) => part.over('wheel', 12, 7, { ...MOUSE, deltaY: -400 * Math.log(2), ...more });
  const { window } = part.browser;
  part.browser.now = 5000;
  window.fire('wheel', { target: part.find('caption') });
  part.browser.now = 5200;
  assert.ok(!(await turn()).prevented);
  part.browser.now = 5400; // 200 milliseconds after it was turned here
  assert.ok(!(await turn()).prevented);
  assert.ok((await turn({ ctrlKey: true, deltaY: -100 * Math.log(2) })).prevented);
  part.browser.now = 5800;
  window.fire('wheel', { target: part.find('plot') });
  assert.ok((await turn()).prevented);
});

test('a patch of the photo is chosen by a click, and the arrows choose its neighbours', async () => {
  const { onPhoto, told, find } = await open();
  await onPhoto('click', 3, 4);
  assert.deepEqual(pins(told), ['3,4']);
  await fire(find('stage'), 'click', { clientX: 501, clientY: 200 });
  assert.equal(pins(told).length, 1);
  const key = (/** @type {string} */ name, more = {}) =>
    fire(find('stage'), 'keydown', { key: name, ...more });
  assert.ok((await key('ArrowUp')).prevented);
  await key('Enter');
  await key('ArrowRight');
  await key('Enter');
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }])
    assert.ok(!(await key('ArrowUp', more)).prevented);
  assert.ok(!(await key('x')).prevented);
  assert.deepEqual(pins(told), ['3,4', '2,4', '2,5']);
  const pooled = await open({ now: { ...trace, view: { layer: 1, head: 2, query: 'class' } } });
  for (const name of ['ArrowLeft', 'Enter']) pooled.find('stage').fire('keydown', { key: name });
  assert.deepEqual(pins(pooled.told), ['2,3']); // of a query that is no patch the middle one
});

test('a patch under the pointer is left with the photo', async () => {
  const { onPhoto, find, band, frames } = await open();
  await onPhoto('pointermove', 0, 0);
  await frames(1);
  assert.equal(band('row'), '34px 10px');
  await fire(find('stage'), 'pointerleave');
  await frames(1);
  assert.equal(band('row'), '');
});
