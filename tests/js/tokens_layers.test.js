// What the Tokens tab computes as a job: how alike any two layers are, and what a register takes over; with what it fetches them by.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cellWords, drawMatrix, ticksOf } from '../../vit_viz/web/tokens/panels.js';
import {
  changeWords,
  commonest,
  lensWords,
  outlierWords,
  registerWords,
  spotSegment,
} from '../../vit_viz/web/tokens/measures.js';
import { normFinding } from '../../vit_viz/web/tokens/findings.js';
import { segmentColour } from '../../vit_viz/web/tokens/segments.js';
import { percent, rangeOf, short } from '../../vit_viz/ui/kit/numbers.js';
import { Browser, Element } from './browser.js';
import { open, settle, texts } from './tokens_tab.js';

const rows = (/** @type {number} */ count, /** @type {(state: number) => any} */ make) =>
  Array.from({ length: count }, (_, state) => make(state));

// --- layers

const change = {
  values: rows(4, (layer) => [0.5, 0.6, 0.7, 0.8, 0.9, 0.1 * layer]),
  others: { class: [0.9, 0.8, 0.25, 0.6], 'register 0': rows(4, () => 0.125) },
  unit: 'cosine',
};
const names = ['input', 'after layer 0', 'after layer 1', 'after layer 2', 'after layer 3'];
const alike = {
  matrix: rows(5, (row) => rows(5, (col) => (row === col ? 1 : (2 * row + col + 1) / 20))),
  names,
  unit: 'CKA',
  note: 'Over all patches.',
};
const LAYERS = 'layer_similarity?role=tokens';
const kindOf = (/** @type {string} */ path) => /^\w+/.exec(path)?.[0] ?? '';

/** A server that knows some numbers, and computes those of one question for so long as a test likes. @param {string} slow @param {Record<string, any>} known */
function computing(slow, known) {
  /** @type {{tell: (far: {share: number, left: string}) => void, done: (told?: any) => void, fail: (words: string) => void}[]} */
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
const layered = () => computing('layer_similarity', { token_change: change, layer_similarity: alike });

test('what each layer changes is shown at once; how alike the layers are is a job', async () => {
  const { jobs, answer } = layered();
  const part = await open({ chosen: { token_measure: 'layers' } }, { answer });
  assert.deepEqual(part.asked.slice(0, 2), ['token_change?', LAYERS]); // what is looked at comes first
  assert.equal(part.words('job-words'), 'Comparing all layers …');
  assert.equal(part.words('room-caption'), 'Layer 2 turned patch (1, 1) by 26°, the average patch by 50°');
  assert.equal(
    part.words('room-readout'),
    'Cosine with itself before the layer (1: only the length changed): patch (1, 1) 0.9; class token 0.25; register 0 0.125',
  );
  assert.deepEqual(
    [part.words('low'), part.words('high'), part.words('unit')],
    ['25.8', '78.5', 'degrees turned'],
  );
  assert.deepEqual(part.under('layers'), ['26°', '26°', '26°', '26°']); // acos 0.9
  assert.equal(part.find('room-panel').childElementCount, 0);
  assert.equal(part.element.dataset.ready, undefined);
  jobs[0].tell({ share: 0.5, left: 'about 2 s left' });
  const far = ['job-words', 'job-amount'].map(part.words);
  assert.deepEqual(far, ['Comparing all layers …', '50%, about 2 s left']);
  jobs[0].done();
  await settle();
  assert.equal(part.find('room-job').hidden, true);
  assert.equal(part.find('room-panel').childElementCount, 5);
  assert.equal(part.element.dataset.ready, 'layers');
  await part.press('token_measure', 'similarity');
  await part.press('token_measure', 'layers');
  assert.equal(part.find('room-panel').childElementCount, 5);
  assert.equal(jobs.length, 1); // it is here
});

test('what is chosen in the meantime does not start the job anew', async () => {
  const { jobs, answer } = layered();
  const part = await open({ chosen: { token_measure: 'layers' } }, { answer });
  await part.show({ chosen: { token_measure: 'layers' } });
  await part.show({ query: '0,0', chosen: { token_measure: 'layers' } });
  assert.equal(jobs.length, 1);
  jobs[0].done();
  await settle();
  assert.equal(part.element.dataset.ready, 'layers');
  assert.equal(part.find('room-panel').childElementCount, 5);
});

test('a comparison that fails is said, and what changes in each layer stays', async () => {
  const { jobs, answer } = layered();
  const part = await open({ chosen: { token_measure: 'layers' } }, { answer });
  jobs[0].fail('There is no memory.');
  await settle();
  assert.equal(part.words('room-error'), 'There is no memory. Try again');
  assert.match(part.words('room-readout'), /^Cosine with itself/);
});

/** The matrix of three layers on a page of its own: 90 pixels wide and 60 high. */
function drawnMatrix(/** @type {any} */ context, told = {}) {
  new Browser().install(context);
  const place = new Element('div');
  const table = Uint32Array.from({ length: 256 }, (_, i) => i);
  const three = {
    matrix: [
      [1, 0.5, 0.25],
      [0.5, 1, 0.875],
      [0.25, 0.875, 1],
    ],
    names: names.slice(0, 3),
    unit: 'CKA',
    note: 'Over all patches.',
    ...told,
  };
  const draw = (more = {}) => drawMatrix(/** @type {any} */ (place), { ...three, ...more }, table);
  draw();
  const square = /** @type {Element} */ (place.querySelector('.vv-room-matrix'));
  square.box = { left: 10, top: 20, width: 90, height: 60 };
  return { place, square, draw, cell: () => place.querySelector('.vv-room-cell')?.textContent };
}

test('the matrix is a square of colours from its lowest value up to 1', (context) => {
  const { place, square } = drawnMatrix(context);
  const [title, sides, scale, , note] = place.children;
  assert.equal(title.textContent, 'How alike the layers are');
  const { data } = /** @type {any} */ (square.querySelector('canvas')).canvas.data;
  const places = [...new Uint32Array(data.buffer)];
  assert.deepEqual(places, [255, 85, 0, 85, 255, 213, 0, 213, 255]); // 255 · 0.25 / 0.75 and 255 · 0.625 / 0.75 = 212.5
  assert.equal(note.textContent, 'CKA. Over all patches.');
  assert.deepEqual(texts(scale.children), ['input, then after each layer; down and across', '0.25', '', '1']);
  assert.match(scale.children[2].style.background, /^linear-gradient/);
  const [down, , across] = sides.children;
  assert.deepEqual([down.className, across.className], [
    'vv-room-ticks vv-room-down vv-small',
    'vv-room-ticks vv-room-across vv-small',
  ]); // prettier-ignore
  assert.deepEqual(texts(down.children), ['input', '0', '1']);
  assert.deepEqual(across.children.map((tick) => Math.round(parseFloat(tick.style.getPropertyValue('--at')))), [17, 50, 83]); // prettier-ignore
  assert.equal(down.getAttribute('aria-hidden'), 'true');
});

test('the same matrix is drawn once, another one anew', (context) => {
  const { place, draw } = drawnMatrix(context);
  const [title] = place.children;
  draw();
  assert.equal(place.children[0], title);
  draw({ unit: 'cosine' });
  assert.notEqual(place.children[0], title);
  assert.equal(place.childElementCount, 5);
});

test('a pointer or the arrow keys read a cell, which has a ring', (context) => {
  const { square, cell } = drawnMatrix(context);
  assert.deepEqual([square.getAttribute('role'), square.getAttribute('aria-label')], [
    'application',
    'How alike any two layers are',
  ]); // prettier-ignore
  assert.ok(square.classList.contains('vv-cells'));
  assert.equal(/** @type {any} */ (square).tabIndex, 0);
  const ring = /** @type {Element} */ (square.querySelector('.vv-ring'));
  assert.equal(ring.hidden, true);
  assert.equal(cell(), 'Point at a cell, or move with the arrow keys.');
  square.fire('pointermove', { clientX: 10 + 75, clientY: 20 + 30 });
  assert.equal(cell(), 'after layer 0 with after layer 1: 0.875');
  assert.equal(ring.hidden, false);
  const at = () => ['top', 'left', 'width', 'height'].map((name) => Math.round(parseFloat(ring.style[name])));
  assert.deepEqual(at(), [33, 67, 33, 33]);
  square.fire('pointermove', { clientX: 5, clientY: 30 }); // outside
  assert.equal(cell(), 'after layer 0 with after layer 1: 0.875');
  assert.equal(square.fire('keydown', { key: 'ArrowUp' }).prevented, true);
  assert.equal(cell(), 'input with after layer 1: 0.25');
  square.fire('keydown', { key: 'ArrowLeft' });
  square.fire('keydown', { key: 'ArrowLeft' });
  assert.equal(cell(), 'input with itself: 1');
  assert.deepEqual(at(), [0, 0, 33, 33]);
  assert.equal(square.fire('keydown', { key: 'a' }).prevented, false);
});

test('a cell is of a row and a column, and the sides name eight layers at most', () => {
  assert.equal(cellWords(alike, 7), 'after layer 0 with after layer 1: 0.25'); // (2 · 1 + 2 + 1) / 20
  assert.equal(cellWords(alike, 11), 'after layer 1 with after layer 0: 0.3'); // (2 · 2 + 1 + 1) / 20
  const many = rows(8, (layer) => `after layer ${layer}`);
  assert.equal(ticksOf(many).length, 8);
  assert.deepEqual(
    ticksOf(['input', ...many]).map(({ at }) => at),
    [0.5 / 9, 2.5 / 9, 4.5 / 9, 6.5 / 9, 8.5 / 9],
  );
});

// --- a register

const normsOf = (/** @type {number} */ longest) => ({
  values: rows(5, (state) => [1, 2, 3, 4, 5, longest + state]),
  others: { class: rows(5, () => 1) },
  thresholds: rows(5, () => 10),
  outliers: rows(5, () => (longest > 10 ? [5] : [])),
  named: rows(5, () => []),
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
const WITH = { token_measure: 'norms', token_register: true };
const register = () => computing('added_register', { added_register: registered, token_norms: normsOf(21) });

test('a register is a job; then norms and attention stand beside what was there before', async () => {
  const { jobs, answer } = register();
  const part = await open({ chosen: WITH }, { answer });
  assert.ok(part.asked.includes('added_register?factor=5'));
  assert.match(part.words('job-words'), /^Adding a register: /);
  const place = part.find('room-register');
  assert.equal(place.hidden, true);
  jobs[0].done();
  await settle();
  assert.equal(place.hidden, false);
  assert.equal(part.element.dataset.ready, 'norms');
  const [title, words, norms, attention] = place.children;
  assert.equal(title.textContent, 'Before and after a register was added');
  assert.equal(
    words.textContent,
    'After layer 3, 1 patch was an outlier; with register 1 added there are 0. It took over 1 neurons of layer 1, without training.',
  );
  const captions = (/** @type {Element} */ row) => texts(row.querySelectorAll('figcaption'));
  assert.deepEqual(captions(norms), [
    'Norms, after layer 3, before: 1 to 25', // before that state nothing differs
    'Norms, after layer 3, after: 1 to 25',
  ]);
  assert.deepEqual(captions(attention), [
    'What the output looks at in the last layer, mean of its heads, before: 0 to 0.5',
    'What the output looks at in the last layer, mean of its heads, after: 0 to 0.5',
  ]);
  const pixels = norms.querySelectorAll('canvas').map((node) => node.canvas?.data.data);
  assert.deepEqual([...pixels[0].slice(16)], [43, 43, 43, 191, 255, 255, 255, 191]); // 255 · 4 / 24 = 42.5
  assert.deepEqual([...pixels[1].slice(20)], [96, 96, 96, 191]); // 255 · 9 / 24 = 95.6
  const rings = norms.querySelectorAll('.vv-rings').map((node) => node.children);
  assert.deepEqual(rings.map((one) => one.length), [1, 0]); // prettier-ignore
  assert.deepEqual([rings[0][0].className, rings[0][0].style.top], ['vv-ring vv-outlier', '50%']);
  assert.equal(attention.querySelectorAll('.vv-outlier').length, 0);
  assert.equal(/** @type {any} */ (norms.querySelector('img')).src, '/photo/h4');
});

test('the register is drawn once, and goes with its button', async () => {
  const { jobs, answer } = register();
  const part = await open({ chosen: WITH }, { answer });
  jobs[0].done();
  await settle();
  const place = part.find('room-register');
  const [title] = place.children;
  part.stage.fire('pointermove', part.patch(0, 0));
  part.browser.pass(16);
  assert.equal(place.children[0], title);
  part.element.querySelector('[data-option=token_register]')?.click();
  await settle();
  assert.equal(place.hidden, true);
  part.element.querySelector('[data-option=token_register]')?.click();
  await settle();
  assert.equal(place.hidden, false);
  assert.equal(jobs.length, 1);
});

test('a register that failed says why in its place, until something else is chosen', async () => {
  const { jobs, answer } = register();
  const part = await open({ chosen: WITH }, { answer });
  jobs[0].fail('There are no outliers.');
  await settle();
  const place = part.find('room-register');
  assert.deepEqual([place.hidden, place.textContent], [false, 'There are no outliers. Try again']);
  assert.equal(place.children[0].className, 'vv-room-error vv-notice');
  assert.equal(part.find('room-error').hidden, true); // the norms are here
  part.cells('norms')[1].click();
  await settle();
  assert.equal(place.hidden, false);
  part.element.querySelector('[data-option=token_register]')?.click();
  assert.equal(place.hidden, true);
  await settle();
});

test('a register that was stopped because something else was chosen says nothing', async () => {
  const part = await open({ chosen: WITH }, register());
  await part.press('token_measure', 'similarity');
  await part.show({ trace: 'h5', chosen: { token_measure: 'similarity' } });
  assert.equal(part.find('room-register').hidden, true);
  assert.equal(part.find('room-job').hidden, true);
});

// --- words

test('what a register took over is told in singular and plural', () => {
  const told = /** @type {any} */ ({ ...registered, patches: [2, 1], neurons: [[3, 7], [10, 1], [3, 2]] }); // prettier-ignore
  assert.equal(
    registerWords(told),
    'After layer 3, 2 patches were outliers; with register 1 added there is 1. It took over 3 neurons of layers 3, 10, without training.',
  );
});

test('norms of a state without a median are told as none of it', () => {
  const told = { ...normsOf(21), thresholds: rows(5, () => 0) };
  assert.equal(normFinding('It', told, 4, 4, 5), 'It: how long the tokens are');
  assert.equal(outlierWords(told, 4, 5), 'Longer than 5 medians: 1 patch.'); // after the last layer nothing attends
  const named = { ...told, outliers: rows(5, () => []), named: rows(5, () => ['register 0']) };
  assert.equal(
    outlierWords(named, 3, 5),
    "Longer than 5 medians: register 0, which get 40% of the next layer's attention (an even share would be 40%).",
  );
});

test('the lens needs classes, their shares and their words, to name one', () => {
  const told = {
    values: [[0.25, 0.5]],
    unit: 'logit',
    target: 'lion',
    note: '',
    top: [[4, 7]],
    top_probability: [[0.5, 0.75]],
    words: { 4: 'nail', 7: 'lion' },
  };
  const spot = { state: 0, patch: 0, cols: 2, name: '' };
  for (const lacking of ['top', 'top_probability', 'words'])
    assert.equal(lensWords({ ...told, [lacking]: undefined }, spot), 'patch (0, 0): 0.25, logit');
  assert.equal(commonest(told, 0), 'nail'); // the first of those that are as common
  assert.equal(commonest({ ...told, top: [[4, 7, 7]] }, 0), 'lion');
  assert.equal(commonest({ ...told, words: undefined }, 0), '');
  assert.equal(commonest({ ...told, top: undefined }, 0), '');
});

test('a change names five other tokens at most', () => {
  const others = Object.fromEntries(rows(7, (i) => [`register ${i}`, [i / 8]]));
  assert.match(
    changeWords({ values: [[1]], others, unit: '' }, 0, null),
    /: register 0 0; .*; register 4 0[.]5$/,
  );
});

test('a patch that no segment has is in none', () => {
  const told = { labels: [2, 1], shares: [], overlap: null, method: '' };
  assert.deepEqual([spotSegment(told, 0), spotSegment(told, 2)], [2, null]);
});

test('the first segments are gold, sea green and pink', () => {
  // lightness 0.6, 0.42, 0.75 and hues 35, 172.508, 310.016, with a saturation of 0.72
  assert.deepEqual([0, 1, 2].map(segmentColour), [[226, 165, 80], [30, 184, 165], [237, 145, 222]]); // prettier-ignore
});

test('numbers are short at their limits', () => {
  assert.deepEqual([999.6, 1000, 0.01, 0.0099].map(short), ['1000', '1000', '0.01', '1e-2']);
  assert.deepEqual([0.01, 0.0051, 1].map(percent), ['1%', '< 1%', '100%']);
  assert.deepEqual(rangeOf([Float32Array.of(4)]), [4, 4]);
});
