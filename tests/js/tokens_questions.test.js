// The questions of the Tokens tab: colours, lengths, what the head says, change and segments, with what stands beside the maps.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { coloursOf } from '../../vit_viz/web/tokens/colours.js';
import { segmentColour } from '../../vit_viz/web/tokens/plate.js';
import { open } from './tokens_tab.js';
import { settle, texts } from './room.js';

const kindOf = (/** @type {string} */ path) => /^\w+/.exec(path)?.[0] ?? '';
const rows = (/** @type {number} */ count, /** @type {(state: number) => any} */ make) =>
  Array.from({ length: count }, (_, state) => make(state));
/** A server that knows one kind of numbers. @param {string} kind @param {any} told */
const only = (kind, told) => (/** @type {string} */ path) => (kindOf(path) === kind ? told : null);
const opacities = (/** @type {number[]} */ bytes) => bytes.filter((_, i) => i % 4 === 3);

/** A server that knows some numbers, and computes those of one question for so long as a test likes. @param {string} slow @param {Record<string, any>} known */
function computing(slow, known) {
  /** @type {{tell: (far: {share: number, left: string}) => void, done: () => void, fail: (words: string) => void}[]} */
  const jobs = [];
  const answer = (/** @type {string} */ path, /** @type {any} */ tell) => {
    const told = known[kindOf(path)] ?? null;
    if (kindOf(path) !== slow) return told;
    return new Promise((done) =>
      jobs.push({ tell, done: () => done(told), fail: (words) => done(new Error(words)) }),
    );
  };
  return { jobs, answer };
}

// --- colours

/** Red is 40 state + patch, green 7, blue 9. */
const painted = (/** @type {number} */ add) =>
  rows(5, (state) => [0, 1, 2, 3, 4, 5].flatMap((patch) => [add + 40 * state + patch, 7, 9]));
const components = {
  colours: painted(0),
  explained: rows(5, (state) => [0.2, 0.1, 0.01 * state]),
  overall: [0.3, 0.2, 0.1],
};
const COLOURS = { token_measure: 'components' };

test('three components are the colours of all photos, over their own lightness, without a scale', async () => {
  const part = await open({ chosen: COLOURS }, { answer: only('token_components', components) });
  assert.equal(part.asked[0], 'token_components?role=tokens&foreground=false&whitened=false');
  assert.deepEqual(part.small(2, 'components'), [80, 81, 82, 83, 84, 85]);
  assert.deepEqual(part.big().slice(4, 12), [121, 7, 9, 255, 122, 7, 9, 255]);
  assert.equal(part.how()?.how, 'colours');
  assert.equal(part.find('tokens-second-stage'), null);
  assert.equal(
    part.words('tokens-caption'),
    'Three directions hold 33% of what differs between the patches, after layer 2',
  );
  assert.equal(
    part.words('tokens-readout'),
    "Red 20%, green 10%, blue 3% of what differs here; in all layers together 60%. Brightness is the photo's own",
  );
  await part.click(part.control('foreground'));
  assert.ok(part.asked.some((path) => /foreground=true&whitened=false$/.test(path)));
  for (const measure of ['components', 'segments']) {
    await part.press('token_measure', measure);
    assert.equal(part.find('tokens-bar').hasAttribute('data-none'), true);
    await part.press('token_measure', 'similarity');
    assert.equal(part.find('tokens-bar').hasAttribute('data-none'), false);
  }
});

test('a second photo shares the colours; where it has gone the first stands alone, and that is said', async () => {
  const both = { ...components, others: painted(20) };
  let isGone = false;
  const answer = (/** @type {string} */ path) =>
    isGone && path.includes('second')
      ? new Error('It has gone.')
      : only('token_components', path.includes('second') ? both : components)(path);
  const chosen = { ...COLOURS, token_role: 'keys', token_second: 'cat' };
  const part = await open({ chosen }, { answer });
  assert.match(part.asked[0], /role=keys&foreground=false&whitened=false&second=cat$/);
  const stage = () => part.find('tokens-second-stage');
  const image = stage().querySelector('img');
  assert.deepEqual([image.src, image.alt], ['/photo/h9', 'a cat']);
  assert.match(part.words('tokens-readout'), /photo's own$/);
  stage().querySelector('.vv-box').box = { left: 0, top: 0, width: 60, height: 20 };
  image.fire('load');
  assert.deepEqual(part.shownBy(stage())?.bytes.slice(0, 8), [100, 7, 9, 255, 101, 7, 9, 255]); // layer 2 of 4 is in the middle
  await part.show({ chosen: { token_role: 'tokens', token_second: '' } });
  assert.equal(stage(), null);
  await part.show({ chosen });
  assert.equal(part.asked.filter((path) => kindOf(path) === 'token_components').length, 2); // both are here
  assert.ok(stage());
  await part.press('token_measure', 'similarity');
  assert.equal(stage(), null);
  isGone = true;
  const gone = await open({ chosen }, { answer });
  assert.match(gone.words('tokens-readout'), /photo's own[.] It has gone[.]$/);
  assert.equal(gone.find('tokens-second-stage'), null);
  const itself = await open({ chosen: { ...chosen, token_second: 'lion' } }, { answer });
  assert.match(itself.asked[0], /whitened=false$/); // there is nothing to share
});

test('colours go from the 1st to the 99th percentile of all that is shown, and what was left out is black', () => {
  const ramp = Float32Array.from({ length: 303 }, (_, i) => (i % 3 === 2 ? 5 : Math.floor(i / 3)));
  const array = (/** @type {Float32Array} */ data) => ({ shape: [1, 1, data.length / 3, 3], data });
  const bytes = (/** @type {any} */ answer) =>
    coloursOf(answer).map(([pixels]) => [
      ...new Uint8Array(pixels.buffer, pixels.byteOffset, 4 * pixels.length),
    ]);
  const whole = { arrays: { 'maps.0.values': array(ramp) }, facts: { whitened: false } };
  const [one] = bytes(whole);
  assert.deepEqual([0, 1, 50, 99, 100].map((patch) => one[4 * patch]), [0, 0, 128, 255, 255]); // prettier-ignore
  assert.deepEqual(one.slice(4 * 50, 4 * 51), [128, 128, 0, 255]); // the third differs nowhere
  const second = Float32Array.from({ length: 3 }, () => 1000);
  const mask = { shape: [1, 1, 1], data: Uint8Array.of(0) };
  const arrays = { ...whole.arrays, 'maps.1.values': array(second), 'foreground.1': mask };
  const [first, other] = bytes({ arrays, facts: { whitened: false } });
  assert.deepEqual([first, other], [one, [0, 0, 0, 255]]);
  const both = bytes({ arrays: { ...arrays, 'foreground.1': undefined }, facts: { whitened: false } });
  assert.deepEqual([both[1].slice(0, 3), both[0][4 * 99]], [[255, 255, 255], 252]);
});

test('until colours have come, it says that they are computed; an answer to what was chosen before changes nothing', async () => {
  /** @type {(told: any) => void} */
  let late = () => {};
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'token_components' ? new Promise((done) => (late = done)) : null;
  const part = await open({ chosen: COLOURS }, { answer });
  const said = ['tokens-wait', 'tokens-readout', 'tokens-caption'].map(part.words);
  assert.deepEqual(said, ['Computing colours …', '', 'Colours: computing …']);
  assert.deepEqual([part.small(0, 'components'), part.big()], [[], []]);
  await part.press('token_measure', 'similarity');
  const before = part.big();
  late(components);
  await settle();
  assert.deepEqual(part.big(), before);
  assert.equal(part.ready(), 'similarity');
  await part.press('token_measure', 'components');
  assert.equal(part.ready(), 'components');
  assert.deepEqual(part.big().slice(0, 4), [120, 7, 9, 255]);
});

// --- lengths

const norms = {
  values: rows(5, (state) => [1, 2, 3, 4, 5, 8 + 8 * state]),
  others: { class: [9, 9, 9, 16, 9], 'register 0': rows(5, () => 0.5), 'detection 0': rows(5, () => 0) },
  thresholds: rows(5, () => 10),
  outliers: [[], [5], [5], [5], [5]],
  received: [0.1, 0.2, 0.3, 0.34],
  fair: [0.01, 0.02, 0.03, 0.04],
};
const NORMS = { token_measure: 'norms' };

test('norms are maps with their outliers ringed, and a histogram of all tokens with the limit in it', async () => {
  const part = await open({ chosen: NORMS }, { answer: only('token_norms', norms) });
  assert.equal(part.asked[0], 'token_norms?factor=5');
  assert.deepEqual(['low', 'high', 'unit'].map(part.words), ['1', '32', 'length']);
  assert.deepEqual(part.marks(), ['vv-ring vv-outlier 50% 70%', 'vv-ring 50% 50%']);
  assert.equal(part.words('tokens-caption'), 'Patch (1, 1) after layer 2: 2.5 times as long as the median');
  assert.equal(
    part.words('tokens-readout'),
    "Length 5. Longer than 5 medians: 1 patch and the class token, which get 34% of the next layer's attention (an even share would be 4%).",
  );
  assert.deepEqual(part.under('norms'), Array(5).fill('2.5x'));
  const [title, picture, ends, words] = part.find('tokens-panel').children;
  assert.equal(title.textContent, 'Norms of this state');
  assert.equal(words.textContent, '9 tokens, up to 2 in a bar; beyond 10, 5 medians, a token is an outlier.');
  assert.equal(picture.getAttribute('aria-label'), `How many tokens have each norm: ${words.textContent}`);
  const looks = ['role', 'viewBox', 'preserveAspectRatio', 'class'].map((name) => picture.getAttribute(name));
  assert.deepEqual(looks, ['img', '0 0 320 96', 'none', 'vv-tokens-histogram']);
  assert.deepEqual(texts(ends.children), ['0', 'norm', '32']);
  const sides = (/** @type {any} */ node, /** @type {string[]} */ names) =>
    names.map((name) => Number(node.getAttribute(name)));
  const bars = [0, 1, 6, 16, 31].map((bin) => sides(picture.children[bin], ['x', 'y', 'width', 'height']));
  assert.deepEqual(bars[0], [0, 4, 9, 92]); // 0 and 0.5
  assert.deepEqual(bars.slice(1, 4), [[10, 50, 9, 46], [60, 96, 9, 0], [160, 50, 9, 46]]); // prettier-ignore
  assert.deepEqual(bars[4], [310, 50, 9, 46]); // the largest is in the last
  const kinds = picture.children.map((/** @type {any} */ node) => node.getAttribute('class'));
  const [near, far] = [Array(10).fill('vv-tokens-count'), Array(22).fill('vv-tokens-far')];
  assert.deepEqual(kinds, [...near, ...far, 'vv-tokens-limit']);
  assert.deepEqual(sides(picture.children[32], ['x1', 'x2', 'y1', 'y2']), [100, 100, 0, 96]);
});

test('lengths are told for another state, limit, patch or token', async () => {
  const part = await open({ chosen: NORMS }, { answer: only('token_norms', norms) });
  const [title] = part.find('tokens-panel').children;
  await part.point(part.patch(0, 0));
  assert.match(part.words('tokens-readout'), /^Length 1[.] Longer/);
  assert.equal(part.find('tokens-panel').children[0], title);
  await part.click(part.cells('norms')[1]);
  assert.match(part.find('tokens-panel').children[2].textContent, /16$/);
  assert.match(
    part.words('tokens-readout'),
    /: 1 patch, which get 20% of the next layer's attention \(an even share would be 2%\)/,
  );
  await part.click(part.cells('norms')[4]);
  assert.match(part.words('tokens-readout'), /medians: 1 patch[.]$/); // after the last layer nothing attends
  await part.show({ query: 'class', chosen: { ...NORMS, token_factor: 7.5 } });
  assert.ok(part.asked.some((path) => /factor=7[.]5$/.test(path)));
  assert.match(part.find('tokens-panel').children[3].textContent, /beyond 10, 7[.]5 medians/);
  part.stage.fire('pointerleave');
  await part.show({ query: 'class', chosen: { ...NORMS, token_factor: 5, token_state: 0 } });
  assert.equal(part.words('tokens-readout'), 'Length 9. No token is longer than 5 medians.');
  assert.match(part.words('tokens-caption'), /^The class token before the first layer: 4.5 times as long/);
  assert.deepEqual(part.marks(), []);
  await part.press('token_measure', 'similarity');
  assert.equal(part.find('tokens-panel').childElementCount, 0);
});

test('an outlier is called so, a lonely bar is seen beside a high one, and a limit beyond all tokens is not drawn', async () => {
  const lonely = {
    ...norms,
    values: rows(5, () => [0, 0, 0, 0, 0, 64]),
    others: Object.fromEntries(rows(90, (i) => [`detection ${i}`, rows(5, () => 0)])),
    thresholds: [64, 64, 64, 20, 0],
  };
  const part = await open(
    { query: '1,2', chosen: { ...NORMS, token_factor: 4, token_state: 0 } },
    { answer: only('token_norms', lonely) },
  );
  const picture = part.find('tokens-histogram');
  assert.deepEqual([0, 1, 31].map((bin) => Number(picture.children[bin].getAttribute('height'))), [92, 0, 3]); // prettier-ignore
  assert.equal(picture.childElementCount, 32);
  assert.match(part.words('tokens-caption'), /first layer: 4 times as long as the median$/); // at the limit
  await part.click(part.cells('norms')[3]);
  assert.match(part.words('tokens-caption'), /: an outlier, 13 times as long as the median$/);
  await part.click(part.cells('norms')[4]); // there is no median
  assert.match(part.words('tokens-caption'), /^1 patch is longer than 4 medians, after layer 3$/);
  assert.equal(part.under('norms')[4], '');
});

// --- a register

const normsOf = (/** @type {number} */ longest) => ({
  values: rows(5, (state) => [1, 2, 3, 4, 5, longest + state]),
  others: { class: rows(5, () => 1) },
  thresholds: rows(5, () => 10),
  outliers: rows(5, () => (longest > 10 ? [5] : [])),
  received: [0.1, 0.2, 0.3, 0.4],
  fair: [0.1, 0.2, 0.3, 0.4],
});
const registered = {
  norms: [normsOf(21), normsOf(6)],
  attention: [
    [0, 0.5, 0, 0, 0, 0.5],
    [0.2, 0.2, 0.2, 0.2, 0.1, 0.1],
  ],
  patches: [1, 0],
  state: 4,
  name: 'register 1',
  neurons: [[1, 7]],
};
const WITH = { ...NORMS, token_register: true };
const register = (told = registered) =>
  computing('added_register', { added_register: told, token_norms: normsOf(21) });

test('a register is a job; then norms and attention stand beside what was there before', async () => {
  const { jobs, answer } = register();
  const part = await open({ chosen: WITH }, { answer });
  assert.ok(part.asked.includes('added_register?factor=5'));
  assert.match(part.words('job-words'), /^Adding a register: /);
  const place = part.find('tokens-register');
  assert.equal(place.hidden, true);
  jobs[0].done();
  await settle();
  assert.deepEqual([place.hidden, part.ready()], [false, 'norms']);
  const [title, words, lengths, attention] = place.children;
  assert.equal(title.textContent, 'Before and after a register was added');
  assert.equal(
    words.textContent,
    'After layer 3, 1 patch was an outlier; with register 1 added there are 0. It took over 1 neurons of layer 1, without training.',
  );
  const captions = (/** @type {any} */ row) => texts(row.querySelectorAll('figcaption'));
  assert.deepEqual(captions(lengths), [
    'Norms, after layer 3, before: 1 to 25', // before that state nothing differs
    'Norms, after layer 3, after: 1 to 25',
  ]);
  const looked = 'What the output looks at in the last layer, mean of its heads';
  assert.deepEqual(captions(attention), [`${looked}, before: 0 to 0.5`, `${looked}, after: 0 to 0.5`]);
  const pixels = lengths.querySelectorAll('canvas').map((/** @type {any} */ node) => node.canvas.data.data);
  assert.deepEqual([...pixels[0].slice(16)], [43, 43, 43, 191, 255, 255, 255, 191]); // 255 · 4 / 24 = 42.5
  assert.deepEqual([...pixels[1].slice(20)], [96, 96, 96, 191]); // 255 · 9 / 24 = 95.6
  const rings = lengths.querySelectorAll('.vv-rings').map((/** @type {any} */ node) => node.children);
  assert.deepEqual(rings.map((/** @type {any} */ one) => one.length), [1, 0]); // prettier-ignore
  assert.deepEqual([rings[0][0].className, rings[0][0].style.top], ['vv-ring vv-outlier', '50%']);
  assert.equal(attention.querySelectorAll('.vv-outlier').length, 0);
  assert.equal(lengths.querySelector('img').src, '/photo/h4');
  await part.point(part.patch(0, 0));
  assert.equal(place.children[0], title);
  for (const hidden of [true, false]) {
    await part.click(part.control('register'));
    assert.equal(place.hidden, hidden);
  }
  assert.equal(jobs.length, 1); // it is here
});

test('what a register took over is told in singular and plural', async () => {
  const { jobs, answer } = register({ ...registered, norms: [normsOf(21), normsOf(21)], patches: [2, 1], neurons: [[10, 7], [3, 1], [3, 2]] }); // prettier-ignore
  const part = await open({ chosen: WITH }, { answer });
  jobs[0].done();
  await settle();
  assert.equal(part.find('tokens-register').querySelectorAll('.vv-outlier').length, 2); // one on each side
  assert.equal(
    part.find('tokens-register').children[1].textContent,
    'After layer 3, 2 patches were outliers; with register 1 added there is 1. It took over 3 neurons of layers 3, 10, without training.',
  );
});

test('a register that failed says why in its place, and is tried again; one that was left says nothing', async () => {
  const { jobs, answer } = register();
  const part = await open({ chosen: WITH }, { answer });
  jobs[0].fail('There are no outliers.');
  await settle();
  const place = part.find('tokens-register');
  assert.deepEqual([place.hidden, place.textContent], [false, 'There are no outliers. Try again']);
  assert.equal(place.children[0].className, 'vv-tokens-error vv-notice');
  assert.deepEqual([part.find('tokens-error').hidden, part.ready()], [true, 'norms']); // the norms are here
  await part.click(place.querySelector('.vv-again'));
  assert.equal(jobs.length, 2);
  jobs[1].fail('There are none.');
  await settle();
  assert.equal(place.textContent, 'There are none. Try again');
  await part.click(part.control('register'));
  assert.equal(place.hidden, true);
  await part.click(part.control('register'));
  assert.equal(part.find('tokens-job').hidden, false);
  await part.press('token_measure', 'similarity');
  assert.deepEqual([place.hidden, part.find('tokens-job').hidden, part.ready()], [true, true, 'similarity']);
});

// --- what the head says

const lens = {
  values: rows(5, (state) => [0.1, 0.7, 0.2, 0.3, 0.4, 0.1 * state]),
  unit: 'probability',
  note: 'A probe <b>.',
  top: rows(5, () => [4, 7, 4, 4, 4, 7]),
  top_probability: rows(5, (state) => [0.5, 0.7, 0.4, 0.6, state < 4 ? 0.16 * state : 0.8, 0.8]),
  words: { 4: 'nail, tack', 7: 'lion' },
};
const LENS = { token_measure: 'lens' };

test('the lens is as bright as it is sure, on one scale for all layers, and tells of the patch', async () => {
  const part = await open({ chosen: LENS }, { answer: only('logit_lens', lens) });
  assert.deepEqual(part.asked.slice(0, 2), ['target?view=', 'logit_lens?']);
  assert.equal(
    part.words('tokens-caption'),
    'Patch (1, 1) after layer 2: the head would say nail, tack, 48%',
  );
  assert.equal(part.words('tokens-readout'), 'It is surest of patch (1, 2): lion, 80%. A probe <b>.');
  assert.deepEqual(['low', 'high', 'unit'].map(part.words), ['0', '0.8', 'probability of the likeliest class']); // prettier-ignore
  assert.deepEqual(part.under('lens'), ['nail 0%', 'nail 16%', 'nail 32%', 'nail 48%', 'nail 80%']);
  assert.deepEqual(rows(5, (state) => part.small(state, 'lens')[4]), [0, 51, 102, 153, 255]); // prettier-ignore
  const unsure = { ...lens, top_probability: rows(5, () => [0.2, 0.3, 0.2, 0.1, 0.099, 0.2]) };
  const other = await open({ chosen: LENS }, { answer: only('logit_lens', unsure) });
  assert.match(other.words('tokens-caption'), /: the head would say nothing clear \(nail, tack, 9\.9%\)$/);
  await other.point(other.patch(1, 0));
  assert.match(other.words('tokens-caption'), /: the head would say nail, tack, 10%$/); // from a tenth on
});

test('a class that is chosen is what the lens shows', async () => {
  const aims = { classes: [{ index: 7, name: 'lion', probability: 0.4 }], chosen: 7, name: 'lion' };
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'target' ? aims : only('logit_lens', { ...lens, top_probability: rows(5, () => [0.5, 0.7, 0.4, 0.6, 0.9, 0.8]) })(path); // prettier-ignore
  const part = await open({ target: '7', chosen: LENS }, { answer });
  assert.deepEqual(part.asked.slice(0, 2), ['target?view=target%3D7', 'logit_lens?target=7']);
  assert.match(part.words('tokens-readout'), /^patch \(1, 1\): nail, tack 90%, lion 40%[.] It is surest/);
  assert.deepEqual(['low', 'high', 'unit'].map(part.words), ['0', '0.7', 'probability of lion']);
  assert.deepEqual(part.small(3, 'lens'), [36, 255, 73, 109, 146, 109]); // 255 · 0.1 / 0.7 = 36.4
  await part.point(part.patch(0, 1));
  assert.match(part.words('tokens-readout'), /^patch \(0, 1\): lion 70%[.] It is surest/);
  part.stage.fire('pointerleave');
  await part.show({ target: '4', query: 'class', chosen: LENS });
  assert.ok(part.asked.some((path) => /target=4$/.test(path)));
  assert.equal(
    part.words('tokens-caption'),
    'The class token after layer 2: of the patches most would be called nail, tack',
  );
});

test('values are called by their output, once its name is there, and never by the one before', async () => {
  /** @type {((told: any) => void)[]} */
  const names = [];
  const values = { values: rows(5, () => [1, 2, 3, 4, 5, 6]), unit: 'value', note: '' };
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'target' ? new Promise((done) => names.push(done)) : only('logit_lens', values)(path);
  const part = await open({ target: '1', chosen: LENS }, { answer });
  assert.equal(part.words('unit'), 'value');
  names[0]({ classes: [{ index: 1, name: 'output 1', value: 3 }], name: 'output 1' });
  await settle();
  assert.equal(part.words('unit'), 'value of output 1');
  assert.equal(part.words('tokens-caption'), 'Patch (1, 1) after layer 2: value of output 1 5');
  assert.match(part.words('tokens-readout'), /^patch \(1, 1\): 5, value of output 1/);
  assert.equal(part.find('tokens-likeliest'), null); // no output is the likeliest
  part.store.set({ target: '0', q: 'class' });
  await settle();
  assert.equal(part.words('unit'), 'value');
  names[1]({ classes: [], name: 'output 0' });
  await settle();
  assert.equal(part.words('unit'), 'value of output 0');
  assert.equal(
    part.words('tokens-caption'),
    'The class token after layer 2: value of output 0 3.5 on average',
  );
});

test('without classes the lens says a cosine; before it has answered there is its name alone', async () => {
  const waits = await open({ chosen: LENS }, { answer: () => new Promise(() => {}) });
  assert.equal(waits.words('tokens-caption'), 'What the head would say: computing …');
  assert.equal(waits.words('tokens-readout'), '');
  assert.equal(waits.find('tokens-bar').hasAttribute('data-none'), true);
  assert.match(waits.asked[1], /^logit_lens/);
  const part = await open({ chosen: LENS });
  assert.equal(part.words('tokens-caption'), "Patch (1, 1) after layer 2: cosine 0.5 with the photo's own embedding"); // prettier-ignore
  assert.deepEqual([part.words('unit'), part.words('tokens-readout')], ['cosine', 'A probe.']);
  assert.deepEqual(part.under('lens'), Array(5).fill('0.5'));
});

// --- change

const change = {
  values: rows(4, (layer) => [0.5, 0.6, 0.7, 0.8, 0.9, 0.1 * layer]),
  others: { class: [0.9, 0.8, 0.25, 0.6], 'register 0': rows(4, () => 0.125) },
  unit: 'cosine',
};
const names = ['input', 'after layer 0', 'after layer 1', 'after layer 2', 'after layer 3'];
const compared = {
  matrix: rows(5, (row) => rows(5, (col) => (row === col ? 1 : (2 * row + col + 1) / 20))),
  names,
  unit: 'CKA',
  note: 'Over all patches.',
};
const layered = (told = compared) =>
  computing('layer_similarity', { token_change: change, layer_similarity: told });
const CHANGE = { token_measure: 'layers' };

test('what each layer changes is shown at once; how alike the layers are is a job', async () => {
  const { jobs, answer } = layered();
  const part = await open({ chosen: CHANGE }, { answer });
  assert.deepEqual(part.asked.slice(0, 2), ['token_change?', 'layer_similarity?role=tokens']); // what is looked at comes first
  assert.equal(part.words('tokens-caption'), 'Layer 2 turned patch (1, 1) by 26°, the average patch by 50°');
  assert.equal(
    part.words('tokens-readout'),
    'Cosine with itself before the layer (1: only the length changed): patch (1, 1) 0.9; class token 0.25; register 0 0.125',
  );
  assert.deepEqual(['low', 'high', 'unit'].map(part.words), ['25.8', '78.5', 'degrees turned']);
  assert.deepEqual(part.under('layers'), ['26°', '26°', '26°', '26°']); // acos 0.9
  assert.equal(part.find('tokens-panel').childElementCount, 0);
  assert.equal(part.ready(), undefined);
  jobs[0].tell({ share: 0.5, left: 'about 2 s left' });
  await settle();
  const far = ['job-words', 'job-amount'].map(part.words);
  assert.deepEqual(far, ['Comparing all layers …', '50%, about 2 s left']);
  await part.show({ query: 'class', chosen: CHANGE }); // which does not start the job anew
  assert.equal(part.words('tokens-caption'), 'Layer 2 turned the patches by 50° on average');
  assert.match(part.words('tokens-readout'), /changed\): class token 0[.]25; register/);
  assert.equal(jobs.length, 1);
  jobs[0].done();
  await settle();
  assert.deepEqual([part.find('tokens-job').hidden, part.ready()], [true, 'layers']);
  assert.equal(part.find('tokens-panel').childElementCount, 5);
  await part.press('token_measure', 'similarity');
  await part.press('token_measure', 'layers');
  assert.equal(part.find('tokens-panel').childElementCount, 5);
  assert.equal(jobs.length, 1); // it is here
});

test('a change names five other tokens at most', async () => {
  const others = Object.fromEntries(rows(7, (i) => [`register ${i}`, rows(4, () => i / 8)]));
  const part = await open(
    { query: 'class', chosen: CHANGE },
    { answer: only('token_change', { ...change, others }) },
  );
  assert.match(part.words('tokens-readout'), /: register 0 0; .*; register 4 0[.]5$/);
});

test('a comparison that fails or is stopped is said, and what changes in each layer stays', async () => {
  const { jobs, answer } = layered();
  const part = await open({ chosen: CHANGE }, { answer });
  jobs[0].fail('There is no memory.');
  await settle();
  assert.equal(part.words('tokens-error'), 'There is no memory. Try again');
  assert.match(part.words('tokens-readout'), /^Cosine with itself/);
  await part.click(part.find('again'));
  await part.click(part.find('stop'));
  assert.equal(part.words('tokens-error'), 'This was stopped; nothing of it was kept. Try again');
  const asking = part.asked.findLastIndex((path) => kindOf(path) === 'layer_similarity');
  assert.equal(part.signals[asking].aborted, true);
});

test('another photo ends the job of the old one', async () => {
  const { answer } = layered();
  const part = await open({ chosen: CHANGE }, { answer });
  const asking = part.asked.findIndex((path) => kindOf(path) === 'layer_similarity');
  await part.show({ trace: 'h5', chosen: { token_measure: 'similarity' } });
  assert.equal(part.signals[asking].aborted, true);
  assert.deepEqual([part.find('tokens-job').hidden, part.find('tokens-error').hidden], [true, true]);
});

test('the matrix is a square of colours from its lowest value up to 1, of which each cell is read', async () => {
  const matrix = [[1, 0.5, 0.25], [0.5, 1, 0.875], [0.25, 0.875, 1]]; // prettier-ignore
  const { jobs, answer } = layered({ ...compared, matrix, names: names.slice(0, 3) });
  const part = await open({ chosen: CHANGE }, { answer });
  jobs[0].done();
  await settle();
  const [title, sides, scale, , note] = part.find('tokens-panel').children;
  assert.deepEqual(texts([title, note]), ['How alike the layers are', 'CKA. Over all patches.']);
  const square = part.find('tokens-matrix');
  const { data } = square.querySelector('canvas').canvas.data;
  const reds = [...data].filter((_, i) => i % 4 === 0);
  assert.deepEqual(reds, [255, 115, 45, 115, 255, 220, 45, 220, 255]); // from 45 on, of 255: 0.25 / 0.75 and 0.625 / 0.75
  assert.deepEqual(texts(scale.children), ['input, then after each layer; down and across', '0.25', '', '1']);
  assert.match(scale.children[2].style.background, /^linear-gradient/);
  const [down, , across] = sides.children;
  assert.deepEqual([down.className, across.className], ['vv-tokens-ticks vv-tokens-down vv-small', 'vv-tokens-ticks vv-tokens-across vv-small']); // prettier-ignore
  assert.deepEqual(texts(down.children), ['input', '0', '1']);
  assert.deepEqual(across.children.map((/** @type {any} */ tick) => Math.round(parseFloat(tick.style.getPropertyValue('--at')))), [17, 50, 83]); // prettier-ignore
  assert.equal(down.getAttribute('aria-hidden'), 'true');
  assert.equal(square.getAttribute('aria-label'), 'How alike any two layers are');
  assert.equal(part.words('tokens-cell'), 'Point at a cell, or move with the arrow keys.');
  square.box = { left: 10, top: 20, width: 90, height: 60 };
  square.fire('pointermove', { clientX: 10 + 75, clientY: 20 + 30 });
  await settle();
  assert.equal(part.words('tokens-cell'), 'after layer 0 with after layer 1: 0.875');
  for (const key of ['ArrowUp', 'ArrowLeft', 'ArrowLeft']) {
    square.fire('keydown', { key });
    await settle();
  }
  assert.equal(part.words('tokens-cell'), 'input with itself: 1');
});

test('the sides of the matrix name eight layers at most', async () => {
  const many = ['input', ...rows(12, (layer) => `after layer ${layer}`)];
  const matrix = rows(13, () => rows(13, () => 1));
  const { jobs, answer } = layered({ ...compared, matrix, names: many });
  const part = await open({ chosen: CHANGE }, { answer });
  jobs[0].done();
  await settle();
  assert.deepEqual(texts(part.find('tokens-down').children), ['input', '1', '3', '5', '7', '9', '11']);
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
  assert.equal(part.words('tokens-caption'), 'Patch (1, 1), by the keys of layer 2: alone in segment 1');
  assert.equal(part.words('tokens-readout'), 'patch (1, 1): segment 1, 17% of the patches');
  const reds = (/** @type {number[]} */ labels) => labels.map((segment) => segmentColour(segment)[0]);
  assert.deepEqual(part.small(1, 'segments'), reds([0, 0, 0, 1, 1, 2]));
  assert.deepEqual(part.small(2, 'segments'), reds([0, 0, 0, 0, 1, 2]));
  assert.deepEqual(part.big().slice(16, 19), segmentColour(1));
  assert.deepEqual(opacities(part.big()), Array(6).fill(130));
  await part.click(part.cells('segments')[1]);
  assert.match(part.words('tokens-caption'), /by the keys of layer 1: one of 2 patches of segment 1$/);
  await part.click(part.cells('segments')[2]);
  const [title, list, note] = part.find('tokens-panel').children;
  assert.equal(title.textContent, 'Segments');
  assert.deepEqual(texts(list.children), ['segment 067%', 'segment 117%', 'segment 217%']);
  assert.equal(list.children[2].querySelector('span').style.background, `rgb(${segmentColour(2).join(' ')})`);
  assert.equal(
    note.textContent,
    'k-means of keys; the largest segment is 0. Draw a box on the photo to read how far each segment overlaps with it.',
  );
});

test('the first segments are gold, sea green and pink, and all have colours of their own', () => {
  // lightness 0.6, 0.42, 0.75 and hues 35, 172.508, 310.016, with a saturation of 0.72
  assert.deepEqual([0, 1, 2].map(segmentColour), [[226, 165, 80], [30, 184, 165], [237, 145, 222]]); // prettier-ignore
  assert.equal(new Set(rows(24, (segment) => segmentColour(segment).join())).size, 24);
});

test('the segment under the pointer or in the legend is lit', async () => {
  const part = await open({ chosen: SEGMENTS }, { answer: segmented });
  const buttons = part.find('tokens-panel').querySelectorAll('button');
  /** Opacities of the patches, and which segments are marked in the legend. */
  const lit = async () => {
    await settle();
    const marked = buttons.map((/** @type {any} */ button) => button.hasAttribute('data-on'));
    return [opacities(part.big()), marked];
  };
  await part.point(part.patch(1, 2));
  assert.deepEqual(await lit(), [[130, 130, 130, 130, 130, 190], [false, false, true]]); // prettier-ignore
  buttons[0].fire('pointerenter');
  assert.deepEqual(await lit(), [[190, 190, 190, 190, 130, 130], [true, false, false]]); // prettier-ignore
  buttons[0].fire('pointerleave');
  assert.deepEqual((await lit())[1], [false, false, true]);
  buttons[1].fire('focus');
  assert.deepEqual((await lit())[0], [130, 130, 130, 130, 190, 130]);
  buttons[1].fire('blur');
  part.stage.fire('pointerleave');
  await part.frame();
  assert.deepEqual(await lit(), [Array(6).fill(130), [false, false, false]]);
  assert.equal(part.find('tokens-panel').querySelector('button'), buttons[0]); // the focus stays
  buttons[1].fire('focus');
  for (const measure of ['similarity', 'segments']) await part.press('token_measure', measure);
  assert.deepEqual((await lit())[0], Array(6).fill(130)); // what was pointed at went with its legend
});

test('segments of tokens and cuts are asked for as such, and a box is told with its overlaps', async () => {
  const answer = (/** @type {string} */ path) =>
    kindOf(path) === 'segments' ? { ...segmented(path), overlap: [0.25, 0.5, 0.125] } : null;
  const chosen = { ...SEGMENTS, token_segment_role: 'tokens', token_method: 'cut', token_box: '40,10,80,30' };
  const part = await open({ chosen, query: 'class' }, { answer });
  assert.match(part.asked[0], /layer=2&role=tokens&method=cut&box=40%2C10%2C80%2C30$/);
  assert.equal(
    part.words('tokens-caption'),
    '3 segments, the largest with 67% of the patches, after layer 2',
  );
  assert.equal(part.cells('segments').length, 4); // none before the first layer
  assert.equal(part.words('tokens-readout'), 'Point at a patch to read which segment it belongs to.');
  const [, list, note] = part.find('tokens-panel').children;
  assert.deepEqual(texts(list.children).slice(1), ['segment 117%, overlap 0.5', 'segment 217%, overlap 0.125']); // prettier-ignore
  assert.match(note.textContent, /intersection over union, in areas of patches; segment 1 comes closest[.]$/);
  await part.point(part.patch(1, 1));
  assert.equal(part.words('tokens-readout'), 'patch (1, 1): segment 1, 17% of the patches; overlap with the box 0.5'); // prettier-ignore
  const even = await open({ chosen }, { answer: only('segments', { ...segments(2), overlap: [0, 0, 0] }) });
  assert.match(even.find('tokens-panel').textContent, /intersection over union, in areas of patches[.]$/);
});

test('while segments arrive, those that are here are shown', async () => {
  /** @type {((told: any) => void)[]} */
  const waiting = [];
  const answer = () => new Promise((done) => void waiting.push(done));
  const part = await open({ chosen: SEGMENTS }, { answer });
  assert.equal(part.words('tokens-readout'), '');
  waiting[0](segments(2));
  await settle();
  assert.equal(part.words('tokens-wait'), 'Computing segments …');
  assert.deepEqual(opacities(part.big()), Array(6).fill(130));
  assert.deepEqual([part.small(2, 'segments').length, part.small(3, 'segments').length], [6, 0]);
  await part.click(part.cells('segments')[3]); // not here yet
  assert.equal(part.words('tokens-caption'), 'Segments: computing …');
  await part.press('token_measure', 'similarity');
  const before = waiting.length;
  waiting[1](segments(0));
  await settle();
  assert.equal(waiting.length, before); // nothing more of the segments was asked for
});
