// The measures of the Tokens tab on the page: colours, norms, the lens and segments, with the panels beside the maps.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { drawHistogram } from '../../vit_viz/ui/tokens/panels.js';
import { segmentColour } from '../../vit_viz/ui/tokens/views.js';
import { Browser, Element } from './browser.js';
import { open, settle, subject, texts } from './tokens_tab.js';

const kindOf = (/** @type {string} */ path) => /kind=(\w+)/.exec(path)?.[1];
const rows = (/** @type {number} */ count, /** @type {(state: number) => any} */ make) =>
  Array.from({ length: count }, (_, state) => make(state));
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

test('three components are the colours of all maps, nearly opaque over the photo, without a scale', async () => {
  const part = await open({ chosen: { token_measure: 'components' } }, { answer: () => components });
  assert.deepEqual(part.asked, [
    '/vit_viz/token_numbers/h4?kind=components&role=tokens&foreground=false&whitened=false',
  ]);
  assert.deepEqual(part.small(2), [80, 81, 82, 83, 84, 85]);
  assert.deepEqual(part.big().slice(4, 12), [121, 7, 9, 230, 122, 7, 9, 230]);
  assert.equal(part.find('room-bar').hidden, true);
  assert.equal(part.find('room-second-stage').hidden, true);
  assert.equal(part.words('room-caption'), 'Three components as colours, after layer 2');
  assert.equal(
    part.words('room-readout'),
    '33% of what differs in this layer: red 20%, green 10%, blue 3%; all layers together: 60%',
  );
  assert.deepEqual(
    part.tiles().map((tile) => tile.children[2].textContent),
    [30, 31, 32, 33, 34].map((share) => `${share}% of what differs`),
  );
  assert.equal(part.find('room-wait').hidden, true);
  part.element.querySelector('[data-option=token_foreground]')?.click();
  await settle();
  assert.match(part.asked[1], /foreground=true&whitened=false$/);
});

test('a second photo shares the colours, and a note of it is said', async () => {
  const second = {
    ...subject,
    handle: 'h9',
    photo: '/photo/h9',
    note: 'It was made smaller.',
    name: 'a cat',
  };
  const answer = () => ({ ...components, second: painted(20) });
  const part = await open(
    { second, chosen: { token_measure: 'components', token_role: 'keys' } },
    { answer },
  );
  assert.match(part.asked[0], /role=keys&foreground=false&whitened=false&also=h9$/);
  const stage = part.find('room-second-stage');
  assert.equal(stage.hidden, false);
  const image = /** @type {any} */ (stage.querySelector('img'));
  assert.deepEqual([image.src, image.alt], ['/photo/h9', 'a cat']);
  const { data } = /** @type {any} */ (stage.querySelector('canvas')).canvas.data;
  assert.deepEqual([...data.slice(0, 8)], [100, 7, 9, 230, 101, 7, 9, 230]); // layer 2 of 4 is in the middle
  assert.match(part.words('room-readout'), /together: 60%[.] It was made smaller[.]$/);
  await part.show({ revision: 2, second: null, chosen: { token_measure: 'components' } });
  assert.equal(stage.hidden, true);
  await part.show({ revision: 3, second, chosen: { token_measure: 'components', token_role: 'keys' } });
  assert.equal(part.asked.length, 2); // both are here
  assert.equal(stage.hidden, false);
  await part.press('token_measure', 'similarity');
  assert.equal(stage.hidden, true);
});

test('until colours have come, it says that they are computed', async () => {
  const never = new Promise(() => {});
  const part = await open({ chosen: { token_measure: 'components' } }, { answer: () => never });
  assert.equal(part.words('room-wait'), 'Computing …');
  assert.equal(part.words('room-readout'), '');
  assert.deepEqual(part.tiles()[0].children[2].hidden, true);
});

test('an answer to what was chosen before changes nothing', async () => {
  /** @type {(told: any) => void} */
  let late = () => {};
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'components' ? new Promise((done) => (late = done)) : null;
  const part = await open({ chosen: { token_measure: 'components' } }, { answer });
  await part.press('token_measure', 'similarity');
  const before = part.big();
  late(components);
  await settle();
  assert.deepEqual(part.big(), before);
  assert.equal(part.element.dataset.ready, 'similarity');
  await part.press('token_measure', 'components');
  assert.equal(part.element.dataset.ready, 'components');
  assert.deepEqual(part.big().slice(0, 4), [120, 7, 9, 230]);
});

test('colours and segments have no scale, also where the maps before them had one', async () => {
  const answer = (/** @type {string} */ path) =>
    /** @type {any} */ ({ components, segments: segments(1) })[kindOf(path) ?? ''] ?? null;
  const part = await open({}, { answer });
  const bar = part.find('room-bar');
  for (const measure of ['components', 'segments']) {
    assert.equal(bar.hidden, false);
    await part.press('token_measure', measure);
    assert.equal(bar.hidden, true);
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
  const part = await open({ chosen: NORMS }, { answer: () => norms });
  assert.deepEqual(part.asked, ['/vit_viz/token_numbers/h4?kind=norms&factor=5']);
  assert.deepEqual([part.words('low'), part.words('high'), part.words('unit')], ['1', '32', 'norm']);
  assert.deepEqual(part.marks(), ['vv-ring vv-outlier 50% 70%', 'vv-ring 50% 50%']);
  assert.equal(part.words('room-caption'), 'How long the tokens are, after layer 2');
  assert.match(part.words('room-readout'), /^patch \(1, 1\): 5, 2[.]5 x the median[.] Longer than 5 medians: 1 patch and the class token, which get 34%/); // prettier-ignore
  assert.deepEqual(
    part.tiles().map((tile) => tile.children[2].textContent),
    ['no outliers', '1 outlier', '1 outlier', '2 outliers', '1 outlier'],
  );
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
  const part = await open({ chosen: NORMS }, { answer: () => norms });
  const panel = part.find('room-panel');
  const [title] = panel.children;
  part.stage.fire('pointermove', part.patch(0, 0));
  part.browser.pass(16);
  assert.match(part.words('room-readout'), /^patch \(0, 0\): 1, 0[.]5 x/);
  assert.equal(panel.children[0], title);
  part.tiles()[1].click();
  await settle();
  assert.match(panel.children[2].textContent, /16$/);
  assert.match(part.words('room-readout'), /which get 20% of the next layer's attention \(an even share would be 2%\)/); // prettier-ignore
  await part.show({ revision: 9, chosen: { ...NORMS, token_factor: 7.5 } });
  assert.match(part.asked[1], /factor=7[.]5$/);
  assert.match(panel.children[3].textContent, /beyond 10, 7[.]5 medians/);
  part.element.fire('pointerleave');
  await part.press('token_measure', 'similarity');
  assert.equal(panel.childElementCount, 0);
  assert.deepEqual(part.marks(), ['vv-ring 50% 50%']);
  await part.press('token_measure', 'norms');
  assert.equal(panel.childElementCount, 4);
});

test('where no patch is meant, norms tell of the outliers alone', async () => {
  const part = await open({ query: 'class', chosen: { ...NORMS, token_state: 0 } }, { answer: () => norms });
  assert.equal(part.words('room-readout'), 'No token is longer than 5 medians.');
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
  title: 'What speaks for lion',
  target: 'lion',
  note: 'A probe <b>.',
  top: rows(5, () => [4, 7, 4, 4, 4, 7]),
  top_probability: rows(5, () => [0.5, 0.7, 0.4, 0.6, 0.9, 0.8]),
  words: { 4: 'nail', 7: 'lion' },
};

test('the lens asks for its class, and tells of the patch, the title and the note', async () => {
  const part = await open({ target: '7', chosen: { token_measure: 'lens' } }, { answer: () => lens });
  assert.deepEqual(part.asked, ['/vit_viz/token_numbers/h4?kind=lens&target=7']);
  assert.equal(part.words('room-caption'), 'What speaks for lion, after layer 2');
  assert.equal(part.words('room-readout'), 'patch (1, 1): nail 90%, lion 40%');
  assert.deepEqual(
    [part.words('low'), part.words('high'), part.words('unit')],
    ['0.1', '0.7', 'probability'],
  );
  assert.equal(part.words('room-note'), 'A probe <b>.');
  assert.deepEqual(texts(part.tiles().map((tile) => tile.children[2])), Array(5).fill('mostly nail'));
  assert.deepEqual(part.small(3), [0, 255, 43, 85, 128, 85]); // 255 · 0.1 / 0.6 = 42.5, in fp32 a little more
  await part.show({ revision: 2, target: '4', chosen: { token_measure: 'lens' } });
  assert.match(part.asked[1], /target=4$/);
  await part.show({ revision: 3, target: '4', query: 'class', chosen: { token_measure: 'lens' } });
  assert.equal(part.words('room-readout'), 'Point at a patch to read what the head says of it.');
  await part.press('token_measure', 'similarity');
  assert.equal(part.find('room-note').hidden, true);
});

test('before the lens has answered there is its name alone', async () => {
  const part = await open({ chosen: { token_measure: 'lens' } }, { answer: () => new Promise(() => {}) });
  assert.equal(part.words('room-caption'), 'Logit lens, after layer 2');
  assert.equal(part.words('room-readout'), '');
  assert.equal(part.find('room-bar').hidden, true);
  assert.match(part.asked[0], /kind=lens$/);
});

// --- segments

const segments = (/** @type {number} */ layer) => ({
  labels: [0, 0, 0, layer % 2, 1, 2],
  shares: [0.5, 1 / 3, 1 / 6],
  overlap: null,
  method: 'k-means of keys',
});
const layerOf = (/** @type {string} */ path) => Number(/layer=(\d+)/.exec(path)?.[1]);
const segmented = (/** @type {string} */ path) => segments(layerOf(path));
const SEGMENTS = { token_measure: 'segments' };

test('segments come layer by layer, the one that is looked at first, and each has its colour', async () => {
  const part = await open({ chosen: SEGMENTS }, { answer: segmented });
  assert.deepEqual(part.asked.map(layerOf), [2, 0, 1, 3]);
  assert.match(part.asked[0], /kind=segments&layer=2&role=keys&method=k-means&count=4$/);
  assert.equal(part.words('room-caption'), 'Segments by the keys, layer 2');
  assert.equal(part.words('room-readout'), 'patch (1, 1): segment 1, 33% of the patches');
  assert.equal(part.find('room-bar').hidden, true);
  const reds = [0, 0, 0, 1, 1, 2].map((segment) => segmentColour(segment)[0]);
  assert.deepEqual(part.small(1), reds);
  assert.deepEqual(part.small(2), [0, 0, 0, 0, 1, 2].map((segment) => segmentColour(segment)[0])); // prettier-ignore
  assert.deepEqual(part.big().slice(16, 19), segmentColour(1));
  assert.deepEqual(opacities(part.big()), Array(6).fill(130));
  const [title, list, note] = part.find('room-panel').children;
  assert.equal(title.textContent, 'Segments');
  assert.deepEqual(texts(list.children), ['segment 050%', 'segment 133%', 'segment 217%']);
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
  const answer = (/** @type {string} */ path) => ({ ...segmented(path), overlap: [0.25, 0.5, 0.125] });
  const chosen = { ...SEGMENTS, token_segment_role: 'tokens', token_method: 'cut', token_box: '40,10,80,30' };
  const part = await open({ chosen, query: 'class' }, { answer });
  assert.match(part.asked[0], /layer=2&role=tokens&method=cut&box=40%2C10%2C80%2C30$/);
  assert.equal(part.words('room-caption'), 'Segments by the tokens, after layer 2');
  assert.equal(part.tiles().length, 4); // none before the first layer
  assert.equal(part.words('room-readout'), 'Point at a patch to read which segment it belongs to.');
  const [, list, note] = part.find('room-panel').children;
  assert.deepEqual(texts(list.children).slice(1), ['segment 133%, overlap 0.5', 'segment 217%, overlap 0.125']); // prettier-ignore
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
  assert.equal(part.words('room-wait'), '1 of 4 are here …');
  assert.deepEqual(opacities(part.big()), Array(6).fill(130));
  part.tiles()[3].click(); // not here yet
  assert.deepEqual(part.big(), Array(24).fill(0));
  await part.press('token_measure', 'similarity');
  waiting[1](segments(0));
  await settle();
  assert.equal(waiting.length, 3); // the vectors of one state beside the segments: nothing more of those was asked for
});
