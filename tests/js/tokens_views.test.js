// The measures of the Tokens tab on the page: colours, norms, the lens and segments, with the panels beside the maps.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { drawHistogram } from '../../vit_viz/web/tokens/panels.js';
import { segmentColour } from '../../vit_viz/web/tokens/segments.js';
import { Browser, Element } from './browser.js';
import { open, settle, subject, texts } from './tokens_tab.js';

const kindOf = (/** @type {string} */ path) => /^\w+/.exec(path)?.[0] ?? '';
const rows = (/** @type {number} */ count, /** @type {(state: number) => any} */ make) =>
  Array.from({ length: count }, (_, state) => make(state));
/** A server that knows one kind of numbers. @param {string} kind @param {any} told */
const only = (kind, told) => (/** @type {string} */ path) => (kindOf(path) === kind ? told : null);
const opacities = (/** @type {number[]} */ bytes) => bytes.filter((_, i) => i % 4 === 3);

// --- colours

/** Red is 40 state + patch, green 7, blue 9. */
const painted = (/** @type {number} */ add) =>
  rows(5, (state) =>
    Buffer.from([0, 1, 2, 3, 4, 5].flatMap((patch) => [add + 40 * state + patch, 7, 9])).toString('base64'),
  );
const components = {
  colours: painted(0),
  second: null,
  explained: rows(5, (state) => [0.2, 0.1, 0.01 * state]),
  overall: [0.3, 0.2, 0.1],
};

test('three components are the colours of all photos, over their own lightness, without a scale', async () => {
  const part = await open(
    { chosen: { token_measure: 'components' } },
    { answer: only('colours', components) },
  );
  assert.equal(part.asked[0], 'colours?role=tokens&foreground=false&whitened=false');
  assert.deepEqual(part.small(2, 'components'), [80, 81, 82, 83, 84, 85]);
  assert.deepEqual(part.big().slice(4, 12), [121, 7, 9, 255, 122, 7, 9, 255]);
  assert.equal(part.how()?.how, 'colours');
  assert.equal(part.find('room-bar').hasAttribute('data-none'), true);
  assert.equal(part.find('room-second-stage').hidden, true);
  assert.equal(
    part.words('room-caption'),
    'Three directions hold 33% of what differs between the patches, after layer 2',
  );
  assert.equal(
    part.words('room-readout'),
    "Red 20%, green 10%, blue 3% of what differs here; in all layers together 60%. Brightness is the photo's own",
  );
  part.element.querySelector('[data-option=token_foreground]')?.click();
  await settle();
  assert.ok(part.asked.some((path) => /foreground=true&whitened=false$/.test(path)));
});

test('a second photo shares the colours, and a note of it is said', async () => {
  const second = { ...subject, photo: '/photo/h9', name: 'a cat', colours: painted(20) };
  const both = { ...components, second, note: 'It was made smaller.' };
  const answer = (/** @type {string} */ path) =>
    only('colours', path.includes('second') ? both : components)(path);
  const part = await open(
    { chosen: { token_measure: 'components', token_role: 'keys', token_second: 'cat' } },
    { answer },
  );
  assert.match(part.asked[0], /role=keys&foreground=false&whitened=false&second=cat$/);
  const stage = part.find('room-second-stage');
  assert.equal(stage.hidden, false);
  const image = /** @type {any} */ (stage.querySelector('img'));
  assert.deepEqual([image.src, image.alt], ['/photo/h9', 'a cat']);
  assert.match(part.words('room-readout'), /photo's own[.] It was made smaller[.]$/);
  stage.querySelector('.vv-box').box = { left: 0, top: 0, width: 60, height: 20 };
  image.fire('load');
  part.frame();
  assert.deepEqual(part.shownBy(stage)?.bytes.slice(0, 8), [100, 7, 9, 255, 101, 7, 9, 255]); // layer 2 of 4 is in the middle
  await part.show({ chosen: { token_role: 'tokens', token_second: '' } });
  assert.equal(stage.hidden, true);
  await part.show({ chosen: { token_role: 'keys', token_second: 'cat' } });
  assert.equal(part.asked.filter((path) => kindOf(path) === 'colours').length, 2); // both are here
  assert.equal(stage.hidden, false);
  await part.press('token_measure', 'similarity');
  assert.equal(stage.hidden, true);
});

test('until colours have come, it says that they are computed', async () => {
  const never = new Promise(() => {});
  const part = await open({ chosen: { token_measure: 'components' } }, { answer: () => never });
  assert.equal(part.words('room-wait'), 'Computing colours …');
  assert.equal(part.words('room-readout'), '');
  assert.equal(part.words('room-caption'), 'By what the patches differ most, after layer 2');
  assert.deepEqual([part.small(0, 'components'), part.big()], [[], []]);
});

test('an answer to what was chosen before changes nothing', async () => {
  /** @type {(told: any) => void} */
  let late = () => {};
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'colours' ? new Promise((done) => (late = done)) : null;
  const part = await open({ chosen: { token_measure: 'components' } }, { answer });
  await part.press('token_measure', 'similarity');
  const before = part.big();
  late(components);
  await settle();
  assert.deepEqual(part.big(), before);
  assert.equal(part.element.dataset.ready, 'similarity');
  await part.press('token_measure', 'components');
  assert.equal(part.element.dataset.ready, 'components');
  assert.deepEqual(part.big().slice(0, 4), [120, 7, 9, 255]);
});

test('colours and segments have no scale, also where the maps before them had one', async () => {
  const answer = (/** @type {string} */ path) =>
    /** @type {any} */ ({ colours: components, segments: segments(1) })[kindOf(path)] ?? null;
  const part = await open({}, { answer });
  const bar = part.find('room-bar');
  for (const measure of ['components', 'segments']) {
    assert.equal(bar.hasAttribute('data-none'), false);
    await part.press('token_measure', measure);
    assert.equal(bar.hasAttribute('data-none'), true);
    await part.press('token_measure', 'similarity');
  }
});

// --- norms

const norms = {
  values: rows(5, (state) => [1, 2, 3, 4, 5, 8 + 8 * state]),
  others: { class: [9, 9, 9, 16, 9], 'register 0': rows(5, () => 0.5), 'detection 0': rows(5, () => 0) },
  thresholds: rows(5, () => 10),
  outliers: [[], [5], [5], [5], [5]],
  named: [[], [], [], ['class'], []],
  received: [0.1, 0.2, 0.3, 0.34],
  fair: [0.01, 0.02, 0.03, 0.04],
};
const NORMS = { token_measure: 'norms' };

test('norms are maps with their outliers ringed, and a histogram of all tokens with the limit in it', async () => {
  const part = await open({ chosen: NORMS }, { answer: only('token_norms', norms) });
  assert.equal(part.asked[0], 'token_norms?factor=5');
  assert.deepEqual([part.words('low'), part.words('high'), part.words('unit')], ['1', '32', 'length']);
  assert.deepEqual(part.marks(), ['vv-ring vv-outlier 50% 70%', 'vv-ring 50% 50%']);
  assert.equal(part.words('room-caption'), 'Patch (1, 1) after layer 2: 2.5 times as long as the median');
  assert.match(part.words('room-readout'), /^Length 5[.] Longer than 5 medians: 1 patch and the class token, which get 34%/); // prettier-ignore
  assert.deepEqual(part.under('norms'), Array(5).fill('2.5x'));
  const panel = part.find('room-panel');
  const [title, picture, ends, words] = panel.children;
  assert.equal(title.textContent, 'Norms of this state');
  assert.equal(words.textContent, '9 tokens, up to 2 in a bar; beyond 10, 5 medians, a token is an outlier.');
  assert.equal(picture.getAttribute('aria-label'), `How many tokens have each norm: ${words.textContent}`);
  assert.deepEqual(['role', 'viewBox', 'preserveAspectRatio'].map((name) => picture.getAttribute(name)), [
    'img',
    '0 0 320 96',
    'none',
  ]); // prettier-ignore
  assert.equal(picture.className, 'vv-room-histogram');
  assert.deepEqual(texts(ends.children), ['0', 'norm', '32']);
  const sides = (/** @type {Element} */ node, /** @type {string[]} */ names) =>
    names.map((name) => Number(node.getAttribute(name)));
  const bar = (/** @type {number} */ bin) => sides(picture.children[bin], ['x', 'y', 'width', 'height']);
  assert.deepEqual(bar(0), [0, 4, 9, 92]); // 0 and 0.5
  assert.deepEqual(bar(1), [10, 50, 9, 46]);
  assert.deepEqual(bar(6), [60, 96, 9, 0]);
  assert.deepEqual(bar(16), [160, 50, 9, 46]);
  assert.deepEqual(bar(31), [310, 50, 9, 46]); // the largest is in the last
  const kinds = picture.children.map((node) => node.className);
  assert.deepEqual(kinds.slice(0, 10), Array(10).fill('vv-room-count'));
  assert.deepEqual(kinds.slice(10), [...Array(22).fill('vv-room-far'), 'vv-room-limit']);
  assert.deepEqual(sides(picture.children[32], ['x1', 'x2', 'y1', 'y2']), [100, 100, 0, 96]);
});

test('the histogram is drawn anew for another state or limit, and not while the pointer moves', async () => {
  const part = await open({ chosen: NORMS }, { answer: only('token_norms', norms) });
  const panel = part.find('room-panel');
  const [title] = panel.children;
  part.stage.fire('pointermove', part.patch(0, 0));
  part.browser.pass(16);
  assert.match(part.words('room-readout'), /^Length 1[.] Longer/);
  assert.equal(panel.children[0], title);
  part.cells('norms')[1].click();
  await settle();
  assert.match(panel.children[2].textContent, /16$/);
  assert.match(part.words('room-readout'), /which get 20% of the next layer's attention \(an even share would be 2%\)/); // prettier-ignore
  await part.show({ chosen: { ...NORMS, token_factor: 7.5 } });
  assert.ok(part.asked.some((path) => /factor=7[.]5$/.test(path)));
  assert.match(panel.children[3].textContent, /beyond 10, 7[.]5 medians/);
  part.element.fire('pointerleave');
  await part.press('token_measure', 'similarity');
  assert.equal(panel.childElementCount, 0);
  assert.deepEqual(part.marks(), ['vv-ring 50% 50%']);
  await part.press('token_measure', 'norms');
  assert.equal(panel.childElementCount, 4);
});

test('where no patch is meant, norms tell of the outliers alone', async () => {
  const part = await open(
    { query: 'class', chosen: { ...NORMS, token_state: 0 } },
    { answer: only('token_norms', norms) },
  );
  assert.equal(part.words('room-readout'), 'Length 9. No token is longer than 5 medians.');
  assert.equal(
    part.words('room-caption'),
    'The class token before the first layer: 4.5 times as long as the median',
  );
  assert.deepEqual(part.marks(), []);
});

test('a lonely bar is seen beside a high one, and a limit beyond all tokens is not drawn', (context) => {
  new Browser().install(context);
  const place = new Element('div');
  const told = {
    ...norms,
    values: [[...Array(95).fill(0), 64]],
    others: { class: [0] },
    thresholds: [64],
  };
  drawHistogram(/** @type {any} */ (place), told, 0, 4);
  const picture = place.children[1];
  assert.deepEqual([0, 1, 31].map((bin) => Number(picture.children[bin].getAttribute('height'))), [92, 0, 3]); // prettier-ignore
  assert.equal(picture.childElementCount, 32);
  assert.match(place.children[3].textContent, /^97 tokens, up to 96 in a bar; beyond 64, 4 medians/);
});

// --- the lens

const lens = {
  values: rows(5, (state) => [0.1, 0.7, 0.2, 0.3, 0.4, 0.1 * state]),
  unit: 'probability',
  note: 'A probe <b>.',
  top: rows(5, () => [4, 7, 4, 4, 4, 7]),
  top_probability: rows(5, () => [0.5, 0.7, 0.4, 0.6, 0.9, 0.8]),
  words: { 4: 'nail', 7: 'lion' },
};

test('the lens is as bright as it is sure, on one scale for all layers, and tells of the patch', async () => {
  const sure = {
    ...lens,
    top_probability: rows(5, (state) => [0.5, 0.7, 0.4, 0.6, state < 4 ? 0.16 * state : 0.8, 0.8]),
  };
  const part = await open({ chosen: { token_measure: 'lens' } }, { answer: only('logit_lens', sure) });
  assert.deepEqual(part.asked.slice(0, 2), ['target?view=', 'logit_lens?']);
  assert.equal(part.words('room-caption'), 'Patch (1, 1) after layer 2: the head would say nail, 48%');
  assert.equal(part.words('room-readout'), 'It is surest of patch (1, 2): lion, 80%. A probe <b>.');
  assert.deepEqual(
    [part.words('low'), part.words('high'), part.words('unit')],
    ['0', '0.8', 'probability of the likeliest class'],
  );
  assert.deepEqual(part.under('lens'), ['nail 0%', 'nail 16%', 'nail 32%', 'nail 48%', 'nail 80%']);
  assert.deepEqual(
    rows(5, (state) => part.small(state, 'lens')[4]),
    [0, 51, 102, 153, 255],
  );
});

test('a class that is chosen is what the lens shows', async () => {
  const aims = { classes: [{ index: 7, name: 'lion', probability: 0.4 }], chosen: 7, name: 'lion' };
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'target' ? aims : only('logit_lens', lens)(path);
  const part = await open({ target: '7', chosen: { token_measure: 'lens' } }, { answer });
  assert.deepEqual(part.asked.slice(0, 2), ['target?view=target%3D7', 'logit_lens?target=7']);
  assert.match(part.words('room-readout'), /^patch \(1, 1\): nail 90%, lion 40%[.] It is surest/);
  assert.deepEqual(
    [part.words('low'), part.words('high'), part.words('unit')],
    ['0', '0.7', 'probability of lion'],
  );
  assert.deepEqual(part.small(3, 'lens'), [36, 255, 73, 109, 146, 109]); // 255 · 0.1 / 0.7 = 36.4
  await part.show({ target: '4', chosen: { token_measure: 'lens' } });
  assert.ok(part.asked.some((path) => /target=4$/.test(path)));
  await part.show({ target: '4', query: 'class', chosen: { token_measure: 'lens' } });
  assert.equal(
    part.words('room-caption'),
    'The class token after layer 2: of the patches most would be called nail',
  );
});

test('values are called by their output, once its name is there, and never by the one before', async () => {
  /** @type {((told: any) => void)[]} */
  const names = [];
  const values = { values: rows(5, () => [1, 2, 3, 4, 5, 6]), unit: 'value', note: '' };
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'target' ? new Promise((done) => names.push(done)) : only('logit_lens', values)(path);
  const part = await open({ target: '1', chosen: { token_measure: 'lens' } }, { answer });
  assert.equal(part.words('unit'), 'value');
  names[0]({ classes: [{ index: 1, name: 'output 1', value: 3 }], name: 'output 1' });
  await settle();
  part.frame();
  assert.equal(part.words('unit'), 'value of output 1');
  assert.equal(part.words('room-caption'), 'Patch (1, 1) after layer 2: value of output 1 5');
  part.store.set({ target: '0' });
  await settle();
  part.frame();
  assert.equal(part.words('unit'), 'value');
  names[1]({ classes: [], name: 'output 0' });
  await settle();
  part.frame();
  assert.equal(part.words('unit'), 'value of output 0');
});

test('before the lens has answered there is its name alone', async () => {
  const part = await open({ chosen: { token_measure: 'lens' } }, { answer: () => new Promise(() => {}) });
  assert.equal(part.words('room-caption'), 'What the head would say of each patch');
  assert.equal(part.words('room-readout'), '');
  assert.equal(part.find('room-bar').hasAttribute('data-none'), true);
  assert.match(part.asked[1], /^logit_lens/);
});

// --- segments

const segments = (/** @type {number} */ layer) => ({
  labels: [0, 0, 0, layer % 2, 1, 2],
  overlap: null,
  method: 'k-means of keys',
});
const layerOf = (/** @type {string} */ path) => Number(/layer=(\d+)/.exec(path)?.[1]);
const segmented = (/** @type {string} */ path) =>
  kindOf(path) === 'segments' ? segments(layerOf(path)) : null;
const SEGMENTS = { token_measure: 'segments' };

test('segments come layer by layer, the one that is looked at first, and each has its colour', async () => {
  const part = await open({ chosen: SEGMENTS }, { answer: segmented });
  assert.deepEqual(part.asked.slice(0, 4).map(layerOf), [2, 0, 1, 3]);
  assert.match(part.asked[0], /^segments[?]layer=2&role=keys&method=k-means&count=4$/);
  assert.equal(part.words('room-caption'), 'Patch (1, 1), by the keys of layer 2: alone in segment 1');
  assert.equal(part.words('room-readout'), 'patch (1, 1): segment 1, 17% of the patches');
  assert.equal(part.find('room-bar').hasAttribute('data-none'), true);
  const reds = [0, 0, 0, 1, 1, 2].map((segment) => segmentColour(segment)[0]);
  assert.deepEqual(part.small(1, 'segments'), reds);
  assert.deepEqual(part.small(2, 'segments'), [0, 0, 0, 0, 1, 2].map((segment) => segmentColour(segment)[0])); // prettier-ignore
  assert.deepEqual(part.big().slice(16, 19), segmentColour(1));
  assert.deepEqual(opacities(part.big()), Array(6).fill(130));
  part.cells('segments')[1].click();
  assert.equal(
    part.words('room-caption'),
    'Patch (1, 1), by the keys of layer 1: one of 2 patches of segment 1',
  );
  part.cells('segments')[2].click();
  await settle();
  const [title, list, note] = part.find('room-panel').children;
  assert.equal(title.textContent, 'Segments');
  assert.deepEqual(texts(list.children), ['segment 067%', 'segment 117%', 'segment 217%']);
  assert.equal(
    list.children[2].querySelector('span')?.style.background,
    `rgb(${segmentColour(2).join(' ')})`,
  );
  assert.equal(
    note.textContent,
    'k-means of keys; the largest segment is 0. Draw a box on the photo to read how far each segment overlaps with it.',
  );
});

test('the segment under the pointer or in the legend is lit', async () => {
  const part = await open({ chosen: SEGMENTS }, { answer: segmented });
  const buttons = part.find('room-panel').querySelectorAll('button');
  const lit = () => [opacities(part.big()), buttons.map((button) => button.hasAttribute('data-on'))];
  const frame = () => part.browser.pass(16);
  part.stage.fire('pointermove', part.patch(1, 2));
  frame();
  assert.deepEqual(lit(), [[130, 130, 130, 130, 130, 190], [false, false, true]]); // prettier-ignore
  buttons[0].fire('pointerenter');
  frame();
  assert.deepEqual(lit(), [[190, 190, 190, 190, 130, 130], [true, false, false]]); // prettier-ignore
  buttons[0].fire('pointerleave');
  part.stage.fire('pointermove', part.patch(1, 2));
  frame();
  assert.deepEqual(lit()[1], [false, false, true]);
  buttons[1].fire('focus');
  frame();
  assert.deepEqual(lit()[0], [130, 130, 130, 130, 190, 130]);
  buttons[1].fire('blur');
  part.element.fire('pointerleave');
  frame();
  assert.deepEqual(lit(), [Array(6).fill(130), [false, false, false]]);
  assert.equal(part.find('room-panel').querySelectorAll('button')[0], buttons[0]); // the focus stays
});

test('segments of tokens and cuts are asked for as such, and a box is told with its overlaps', async () => {
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'segments' ? { ...segmented(path), overlap: [0.25, 0.5, 0.125] } : null;
  const chosen = { ...SEGMENTS, token_segment_role: 'tokens', token_method: 'cut', token_box: '40,10,80,30' };
  const part = await open({ chosen, query: 'class' }, { answer });
  assert.match(part.asked[0], /layer=2&role=tokens&method=cut&box=40%2C10%2C80%2C30$/);
  assert.equal(part.words('room-caption'), 'Patches that belong together, after layer 2');
  assert.equal(part.cells('segments').length, 4); // none before the first layer
  assert.equal(part.words('room-readout'), 'Point at a patch to read which segment it belongs to.');
  const [, list, note] = part.find('room-panel').children;
  assert.deepEqual(texts(list.children).slice(1), ['segment 117%, overlap 0.5', 'segment 217%, overlap 0.125']); // prettier-ignore
  assert.match(note.textContent, /intersection over union, in areas of patches; segment 1 comes closest[.]$/);
});

test('while segments arrive, those that are here are shown', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const answer = () => new Promise((done) => void waiting.push(done));
  const part = await open({ chosen: SEGMENTS }, { answer });
  assert.equal(part.words('room-readout'), '');
  waiting[0](segments(2));
  await settle();
  part.frame();
  assert.equal(part.words('room-wait'), 'Computing segments …');
  assert.deepEqual(opacities(part.big()), Array(6).fill(130));
  assert.deepEqual([part.small(2, 'segments').length, part.small(3, 'segments').length], [6, 0]);
  part.cells('segments')[3].click(); // not here yet
  assert.equal(part.words('room-caption'), 'Patches that belong together, layer 3');
  await part.press('token_measure', 'similarity');
  const before = waiting.length;
  waiting[1](segments(0));
  await settle();
  assert.equal(waiting.length, before); // nothing more of the segments was asked for
});
