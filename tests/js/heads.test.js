// The Heads tab: its words and its arithmetic, and the table as Gradio runs it.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Effects, jobWords } from '../../vit_viz/ui/heads/causal.js';
import { inkOn } from '../../vit_viz/ui/heads/grid.js';
import { evidenceOf, nameWords, numberWords, ruleWords, thinWords } from '../../vit_viz/ui/heads/names.js';
import { agreementDots, depthDots, meanPath } from '../../vit_viz/ui/heads/plot.js';
import { mount as heads } from '../../vit_viz/ui/heads/table.js';
import {
  agreementWords,
  cellText,
  endsOf,
  layerMeans,
  orderOf,
  scaleWords,
  valueWords,
} from '../../vit_viz/ui/heads/words.js';
import { Browser, component, mount, OPTIONS } from './browser.js';

const SHARE = 'share of the attention';
const table = (/** @type {(number | null)[][]} */ values, signed = false, unit = SHARE) => ({
  values,
  unit,
  signed,
  range: [0, 1],
});

test('a value has its unit, and a share is in percent', () => {
  assert.equal(valueWords(0.2345, SHARE), '23.4% of the attention');
  assert.equal(valueWords(56.44, 'pixels of the model input'), '56.4 pixels of the model input');
  assert.equal(valueWords(-0.5, 'correlation'), '-0.5 correlation');
  assert.equal(valueWords(null, SHARE), 'not computed yet');
});

test('what is lit has its share of the attention', () => {
  assert.equal(
    scaleWords({ most: 0.0221, lit: 0.0221, sum: 0.998 }),
    "Brightest: 2.21% of its attention, this head's own scale; 99.8% falls on patches.",
  );
  assert.match(
    scaleWords({ most: 2e-7, lit: 2e-7, sum: 8e-6 }),
    /: less than 0.1% of .*; less than 0.1% falls on patches/,
  );
  assert.match(scaleWords({ most: 5e-4, lit: 5e-4, sum: 1 }), /^Brightest: 0.05% of/);
  assert.equal(
    scaleWords({ most: 0.19, lit: 0.025, sum: 0.998 }),
    "Fully lit from 2.5% of its attention on, at most 19%, this head's own scale; 99.8% falls on patches.",
  );
});

test('a cell has room for three letters and a sign', () => {
  const values = [114.4, 9.97, 7.16, 0.997, 0.234, 0, -0.05, -3.43, -0.001, null];
  const texts = ['114', '10', '7.2', '1.0', '.23', '.00', '−.05', '−3.4', '.00', ''];
  assert.deepEqual(values.map(cellText), texts);
});

test('colours go from the smallest to the largest value, and as far below zero as above where values have signs', () => {
  assert.deepEqual(endsOf(table([[3, 1], [null, 2]])), [1, 3]); // prettier-ignore
  assert.deepEqual(endsOf(table([[0.5, -2]], true)), [-2, 2]);
  assert.deepEqual(endsOf(table([[0, 0]], true)), [-1, 1]);
  assert.deepEqual([endsOf(table([[null]])), endsOf(table([[null]], true))], [[0, 1], [-1, 1]]); // prettier-ignore
});

test('the largest come first, equal ones in their order, and the unknown last', () => {
  assert.deepEqual(orderOf([0.1, null, 0.7, 0.1], 'value'), [2, 0, 3, 1]);
  assert.deepEqual(orderOf([0.1, null, 0.7, 0.1], 'head'), [0, 1, 2, 3]);
});

test('the mean of a layer is over the heads that are known', () => {
  const means = layerMeans(table([[1, 2, null], [null, null, null]])); // prettier-ignore
  assert.deepEqual(means, [1.5, null]);
});

test('agreement is told over the heads that are done', () => {
  assert.equal(agreementWords({ done: 2, correlation: 1 }, 36), '');
  const so = 'Estimate and truth have a rank correlation of 0.67 over';
  assert.equal(agreementWords({ done: 9, correlation: 0.668 }, 36), `${so} the 9 of 36 heads so far.`);
  assert.equal(agreementWords({ done: 36, correlation: 0.668 }, 36), `${so} all 36 heads.`);
});

test('ink stands out on every colour', () => {
  const luminance = (/** @type {string} */ css) => {
    const [red, green, blue] = (css === '#000' ? [0, 0, 0] : css === '#fff' ? [255, 255, 255] : css.match(/\d+/g) ?? [])
      .map((byte) => Number(byte) / 255)
      .map((share) => (share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4)); // prettier-ignore
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const colours = Uint32Array.from(
    { length: 256 },
    (_, i) => (255 << 24) | (i << 16) | ((255 - i) << 8) | (i / 2),
  );
  for (let at = 0; at < 256; at++) {
    const { ground, ink } = inkOn(colours, at);
    const [low, high] = [luminance(ground), luminance(ink)].sort((a, b) => a - b);
    assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `${ground} ${ink}`);
  }
});

test('dots stand by layer and value, or by estimate and truth', () => {
  const found = table([[1, 3], [2, null], [1, 1]]); // prettier-ignore
  assert.deepEqual(depthDots(found, [1, 3]).slice(0, 3), [
    { layer: 0, head: 0, x: 0, y: 0 },
    { layer: 0, head: 1, x: 0, y: 1 },
    { layer: 1, head: 0, x: 0.5, y: 0.5 },
  ]);
  assert.equal(depthDots(found, [1, 3]).length, 5);
  const [dot] = agreementDots([[-1, 2]], table([[0, null]], true), [-2, 2]);
  assert.deepEqual(dot, { layer: 0, head: 0, x: 0.25, y: 0.5 });
  assert.equal(meanPath(found, [1, 3]), 'M0.00 50.00L50.00 50.00L100.00 100.00');
  assert.equal(meanPath(table([[null]]), [0, 1]), '');
});

/** @type {import('../../vit_viz/ui/heads/names.js').Rule[]} */
const RULES = [
  { name: 'neighbour', sentence: 'Beside.', at_least: { neighbour: 0.2 }, at_most: {} },
  { name: 'local', sentence: 'Near.', at_least: {}, at_most: { distance: 0.2 } },
];
const named = {
  layer: 1,
  head: 0,
  name: 'neighbour',
  label: 'left neighbour',
  sentence: 'Beside. Neighbour 0.21 (at least 0.2).',
  numbers: { neighbour: 0.21, distance: 0.3 },
  could_be: ['mixed'],
  thin: true,
};

test('a name has its evidence: every number beside its threshold', () => {
  assert.equal(ruleWords(RULES[1]), "mean distance, as a share of the photo's diagonal, at most 0.2");
  assert.deepEqual(evidenceOf(named, RULES), [
    { name: 'neighbour', number: 'neighbour', value: 0.21, bound: 'at least 0.2', limit: 0.2, passes: true },
    { name: 'local', number: 'distance', value: 0.3, bound: 'at most 0.2', limit: 0.2, passes: false },
  ]);
  assert.equal(numberWords('unevenness'), 'unevenness (1 - entropy)');
  assert.equal(nameWords(named), 'left neighbour (thin evidence)');
  assert.equal(nameWords({ ...named, thin: false }), 'left neighbour');
  assert.equal(nameWords(undefined), '');
});

test('where evidence is thin it says so', () => {
  assert.equal(
    thinWords(named),
    'The evidence is thin: with thresholds 10% stricter or looser it would be mixed.',
  );
  assert.equal(thinWords({ ...named, could_be: [] }), '');
  assert.match(thinWords({ ...named, name: 'mixed', could_be: [] }), /No rule holds/);
});

test('older news of a map, and news of another class, change nothing', () => {
  const effects = new Effects();
  effects.begin('k', {});
  assert.ok(effects.follow({ key: 'k', of: { zero: { seq: 2, done: 9 } } }));
  effects.follow({ key: 'k', of: { zero: { seq: 1, done: 4 }, mean: { seq: 3, done: 1 } } });
  assert.deepEqual([effects.of.zero.done, effects.of.mean.done], [9, 1]);
  assert.ok(!effects.follow({ key: 'other', of: { zero: { seq: 9, done: 36 } } }));
  assert.equal(effects.of.zero.done, 9);
  effects.begin('k', { zero: { done: 36 } });
  effects.follow({ key: 'k', of: { zero: { seq: 2, done: 9 } } });
  assert.equal(effects.of.zero.done, 36);
  effects.begin('other', {});
  assert.deepEqual(effects.of, {});
});

test('a job says how far it is', () => {
  assert.equal(jobWords(undefined, 36), '');
  assert.equal(
    jobWords({ running: true, done: 2 }, 36),
    '2 of 36 heads are done, what the estimate says matters most first.',
  );
  assert.equal(jobWords({ running: false, done: 1, error: 'Stopped.' }, 36), 'Stopped.');
});

// --- the component

const HEADS = component(heads, 'ui/heads/table.html');
const gray = Buffer.from(Uint8Array.from({ length: 768 }, (_, i) => i / 3)).toString('base64');
const measures = [
  { name: 'distance', group: 'reach', label: 'mean attention distance', sentence: 'How far.' },
  { name: 'entropy', group: 'reach', label: 'entropy', sentence: 'How widely.' },
  { name: 'suffix_mass', group: 'where', label: 'suffix', sentence: 'On others.' },
  { name: 'effect', group: 'does', label: 'causal effect', sentence: 'What it does.' },
];
const subject = {
  revision: 4,
  trace: 'h4ndle',
  name: 'lion',
  layers: 2,
  heads: 3,
  tokens: 5,
  prefix: ['class'],
  suffix: [],
  grid: [2, 2],
  pooling: 'class',
  crop: { region: [0, 0, 20, 20], original: [20, 20] },
  photo: '/photo/x',
  photo_size: [20, 20],
  query: '0,1',
  layer: 1,
  head: 2,
  options: { face: 'atlas', measure: 'distance', how: 'zero', head_order: 'head' },
  note: '',
  key: 'k',
  target: {
    classes: [{ index: 7, name: 'lion <b>', probability: 0.5 }],
    chosen: 7,
    single: true,
    name: 'lion <b>',
    link: '7',
  },
  cost: 'switches off 6 heads',
  causal_note: '',
  effects: {},
};
const numbers = {
  measures: {
    distance: table([[10, 20, 30], [6, 5, 4]], false, 'pixels'),
    entropy: table([[0.1, 0.9, 0.5], [1, 0, 1]]),
  },
  names: [named],
  rules: RULES,
  margin: 0.1,
  unnamed: '',
  note: '',
}; // prettier-ignore

/** The tab with its numbers; every address that was asked for is in `asked`. */
async function tab(value = subject, told = numbers) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  const answer = async (/** @type {string} */ path) => {
    if (path.includes('/layer/')) return { ok: false, status: 500, text: async () => 'None.' };
    asked.push(path);
    return {
      ok: true,
      status: 200,
      json: async () => told,
      arrayBuffer: async () => Float32Array.from({ length: 15 }, (_, i) => i / 15).buffer,
    };
  };
  class ResizeObserver {
    observe() {}
  }
  Object.assign(browser.globals, { fetch: answer, ResizeObserver });
  const part = mount(HEADS, value, {
    browser,
    props: {
      causal: null,
      surgery: null,
      tables: { viridis: gray, diverging: gray },
      measures,
      options: OPTIONS.heads,
    },
  });
  await new Promise((done) => setImmediate(done));
  return { ...part, asked, cells: () => part.element.querySelectorAll('td') };
}

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);

test('the table has a row for each layer with the numbers of the measure, and marks the chosen head', async () => {
  const part = await tab();
  assert.deepEqual(texts(part.cells().slice(0, 6)), ['10', '20', '30', '6.0', '5.0', '4.0']);
  const label = part.cells()[3].getAttribute('aria-label');
  assert.equal(label, '6.0; layer 1, head 0: 6 pixels; left neighbour (thin evidence)');
  const chosen = part.cells().filter((cell) => cell.getAttribute('aria-selected') === 'true');
  assert.deepEqual(texts(chosen), ['4.0']);
  assert.equal(part.cells().filter((cell) => cell.getAttribute('tabindex') === '0').length, 1);
  assert.deepEqual([part.find('low').textContent, part.find('high').textContent], ['0', '30']);
  assert.equal(part.find('heads-caption').textContent, 'Layer 1, head 2: what the patch (0, 1) looks at');
  assert.equal(part.find('heads-readout').textContent, 'mean attention distance: 4 pixels');
  assert.equal(part.find('heads-dots').childElementCount, 6);
  assert.ok(part.asked[0].includes('/head_numbers/h4ndle?kind=measures'));
  assert.ok(part.asked.some((path) => path.includes('/rows/h4ndle/1?query=0%2C1')));
  const scale = part.find('heads-scale').textContent; // of the rows 10/15 to 14/15, the first of which is the class token's
  assert.ok(scale.startsWith('Brightest: 93.3% of its attention'));
  assert.ok(scale.endsWith('333% falls on patches.'));
});

test('measures that this model does not have cannot be chosen', async () => {
  const part = await tab();
  const options = part.find('heads-measure').querySelectorAll('option');
  assert.deepEqual(texts(options), measures.map(({ label }) => label)); // prettier-ignore
  assert.deepEqual(
    options.map((one) => one.disabled),
    [false, false, true, false],
  );
});

test('a choice shows at once, and an answer to an older one does not take it back', async () => {
  const part = await tab();
  part.element.querySelectorAll('[data-order=value]')[0].fire('click');
  const select = part.find('heads-measure');
  select.value = 'entropy';
  select.fire('change');
  assert.deepEqual(part.told, [
    ['option', { head_order: 'value' }],
    ['option', { measure: 'entropy' }],
  ]);
  assert.deepEqual(texts(part.cells().slice(0, 3)), ['head 1', 'head 2', 'head 0']);
  part.set({ ...subject, revision: 5, options: { ...subject.options, head_order: 'value' } });
  assert.equal(part.find('heads-sentence').textContent, 'How widely.');
  part.set({
    ...subject,
    revision: 6,
    options: { face: 'atlas', measure: 'entropy', how: 'zero', head_order: 'value' },
  });
  part.set({ ...subject, revision: 7 });
  assert.equal(part.find('heads-sentence').textContent, 'How far.');
  part.set({ ...subject, revision: 2, options: { ...subject.options, measure: 'entropy' } });
  assert.equal(part.find('heads-sentence').textContent, 'How far.');
});

test('a head that was chosen stays chosen while the answer to an earlier choice arrives', async () => {
  const part = await tab();
  const chosen = () =>
    part
      .cells()
      .filter((cell) => cell.getAttribute('aria-selected') === 'true')
      .map((cell) => `${cell.dataset.layer}.${cell.dataset.head}`);
  part.cells()[0].click();
  part.cells()[4].click();
  assert.deepEqual(part.told.at(-1), ['choose', { layer: 1, head: 1 }]);
  part.set({ ...subject, revision: 5, layer: 0, head: 0 });
  assert.deepEqual(chosen(), ['1.1']);
  part.set({ ...subject, revision: 6, layer: 1, head: 1 });
  part.set({ ...subject, revision: 7, layer: 0, head: 2 });
  assert.deepEqual(chosen(), ['0.2']);
});

test('a causal map fills while it runs, for the class that it was asked for', async () => {
  const options = { ...subject.options, measure: 'effect' };
  const part = await tab({ ...subject, options });
  assert.equal(part.find('heads-cost').textContent, 'Switches off 6 heads.');
  part.find('heads-start').click();
  assert.deepEqual(part.told, [['start', { how: 'zero' }]]);
  const filled = table([[null, -1, 2], [null, null, null]], true, 'change of the logit of class 7'); // prettier-ignore
  const estimate = [[0, -1, 1], [0, 0, 0]]; // prettier-ignore
  const news = { table: filled, estimate, correlation: 1, done: 2, running: true, share: 0.3, seq: 1 };
  part.set({ key: 'other', of: { zero: news } }, 'causal');
  assert.equal(part.find('heads-stop').hidden, true);
  part.set({ key: 'k', of: { zero: news } }, 'causal');
  assert.deepEqual(texts(part.cells().slice(0, 3)), ['', '−1.0', '2.0']);
  assert.equal(part.find('unit').textContent, 'change of the logit of lion <b>');
  assert.equal(part.find('heads-progress').value, 0.3);
  assert.equal(part.find('heads-dots').childElementCount, 2);
  part.find('heads-stop').click();
  assert.deepEqual(part.told.at(-1), ['stop', {}]);
});

test('any class can be searched for, and the one that is chosen is told', async () => {
  const part = await tab({ ...subject, options: { ...subject.options, measure: 'effect' } });
  assert.deepEqual(texts(part.find('why').children), ['lion <b>50%']);
  const field = part.find('search');
  field.value = 'owl';
  field.fire('input');
  part.browser.pass(200);
  assert.deepEqual(part.told.at(-1), ['search', { text: 'owl', seq: 1 }]);
  part.set({ seq: 1, hits: [{ name: 'great grey owl', index: 24 }] }, 'matches');
  await new Promise((done) => setImmediate(done));
  part.find('hits').querySelectorAll('button')[0].click();
  assert.deepEqual(part.told.at(-1), ['why', { index: 24 }]);
});

test('what cannot be shown is one sentence', async () => {
  const part = await tab(/** @type {any} */ ({ revision: 1, trace: '', note: 'No such model.' }));
  assert.equal(part.find('heads-error').textContent, 'No such model.');
  assert.ok(part.find('heads-main').hidden);
});
