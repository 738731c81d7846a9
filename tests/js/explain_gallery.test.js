// The maps of all methods side by side, how far they can be trusted, and whether they show the model.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { endOfStrips, fallWords, firstChoice } from '../../vit_viz/web/explain/trust.js';
import { savedBy } from './browser.js';
import {
  LION,
  METHODS,
  SHAP,
  TRUST,
  compared,
  mapBy,
  openExplain,
  pressed,
  texts,
  trustBy,
} from './explain_page.js';
import { settle } from './room.js';

const TITLE =
  'Area under the curve while patches go, the best first: 0.05. Random orders: 0.2 in the mean, 95% of them from 0.1 to 0.3 (gray). The lower, the better.';
const TEST_ALL = 'Test this map, then the others';
const COST = 'Takes its patches away, beside random orders of patches; about 9 s.';
const STOPPED = 'This was stopped; nothing of it was kept.';

/** @param {any} t @param {string} [search] @param {any} [answers] */
async function open(t, search = '&method=rollout', answers = {}) {
  const page = await openExplain(t, search, answers);
  const { find, card, asked, click } = page;
  /** How far a job is. */
  const far = (/** @type {string} */ within) =>
    texts(['words', 'amount'].map((name) => find(`${within} .vv-job-${name}`)))
      .join(' ')
      .trim();
  return {
    ...page,
    far,
    farOf: (/** @type {string} */ name) => far(`[data-method=${name}]`),
    compute: (/** @type {string} */ name) => click(`[data-method=${name}] .vv-go`),
    order: () => page.all('[data-method]').map(({ dataset }) => dataset.method),
    falls: (/** @type {string} */ name) => {
      const words = card(name, '.vv-falls');
      return words.hidden ? '' : words.textContent.trim();
    },
    title: () => page.text('.vv-gallery-title'),
    said: () => texts(page.all('.vv-said > p')),
    /** Another photo. */
    async look(/** @type {string} */ image) {
      page.store.look({ image });
      await settle();
    },
    /** Tests all maps, one after the other. @param {any[]} all */
    async tested(...all) {
      await click('.vv-test');
      for (const answer of all) await asked('trust').at(-1)?.answer(answer);
    },
  };
}

test('a gallery has a card per method: a map, or how to get one', async (t) => {
  const { all, find, card, text, farOf, order, title } = await open(t);
  assert.deepEqual(order(), ['rollout', 'relevance', 'shap']);
  assert.equal(find('.vv-gallery-wait'), null);
  assert.ok(card('rollout').matches('.vv-chosen'));
  assert.ok(!card('rollout').classList.contains('vv-busy'));
  const map = card('rollout', '.vv-drawn-map');
  assert.deepEqual([card('rollout', 'img').src, map.style.aspectRatio], ['/photo/lion', '1.5 / 1']);
  assert.equal(
    map.getAttribute('aria-label'),
    'A rollout. Half of the map lies on 2 of 6 patches. Scale: weight from 0 to 5.',
  );
  assert.equal(title(), 'Three ways to ask');
  assert.deepEqual(
    all('.vv-tag').map(({ hidden }) => hidden),
    [false, true, true],
  );
  assert.deepEqual(
    all('.vv-open').map(({ hidden }) => hidden),
    [false, false, true],
  );
  assert.deepEqual(all('.vv-open').map(pressed), ['true', 'false', 'false']);
  assert.deepEqual([farOf('shap'), text('[data-method=shap] .vv-go')], ['about 800 runs', 'compute']);
  assert.equal(card('shap', '.vv-blank').style.aspectRatio, '1.5 / 1');
  assert.equal(card('shap', '.vv-go').getAttribute('aria-label'), 'Compute Shap');
  assert.equal(text('.vv-fold.vv-formula > div'), 'how');
});

test('a slow method says how far it is, and shows its map in the end, on the stage too', async (t) => {
  const page = await open(t, '&method=shap');
  const { card, farOf, compute, asked } = page;
  assert.match(page.text('.vv-note'), /^Shap takes longer: its card computes it. Rollout is shown instead/);
  await compute('shap');
  const [first] = asked('shap');
  assert.deepEqual(first.body, { model: 'mini', image: { sample: 'lion' }, edits: '', target: '4' });
  assert.deepEqual([farOf('shap'), card('shap', '.vv-go').hidden], ['Starting …', true]);
  assert.equal(card('shap', '.vv-stop').getAttribute('aria-label'), 'Cancel Shap');
  await first.tell({ share: 0.5, left: 'about 3 s left' });
  assert.equal(farOf('shap'), '50% (about 3 s left) of about 800 runs');
  assert.equal(card('shap', 'progress').value, 0.5);
  await first.answer(new Error('No.'));
  assert.deepEqual([farOf('shap'), card('shap', '.vv-go').hidden], ['No.', false]);
  await compute('shap');
  await asked('shap')[1].answer(mapBy('shap'));
  assert.deepEqual(
    [card('shap', '.vv-open').hidden, card('shap', '.vv-open').title.slice(0, 7)],
    [false, 'A shap.'],
  );
  const bodies = asked('agreement').map(({ body }) => body.methods);
  const quick = ['rollout', 'relevance'];
  assert.deepEqual([bodies, asked('shap').length], [[quick, [...quick, 'shap']], 2]); // and is asked for once
  assert.deepEqual([page.text('.vv-note'), /a shap/.test(page.text('#vv-stage .vv-caption'))], ['', true]);
  assert.equal(page.text('.vv-test'), TEST_ALL);
  await page.click('.vv-test');
  const body = { ...first.body, method: 'shap' }; // the chosen one is tested first
  assert.deepEqual(asked('trust')[0].body, body);
});

test('a slow map that is at hand is there without being asked for, with what the others cost', async (t) => {
  const methods = [...METHODS, { ...SHAP, name: 'occlusion', label: 'Occlusion' }];
  const known = { methods, kept: { shap: mapBy('shap') }, costs: { occlusion: 'about 9 s' } };
  const { card, asked, farOf, text } = await open(t, '&method=shap', known);
  assert.deepEqual(
    [card('shap', '.vv-open').hidden, asked('shap').length, farOf('occlusion')],
    [false, 0, 'about 9 s'],
  );
  assert.match(text('#vv-stage .vv-caption'), /a shap/);
});

test('several slow methods run at once, each with its bar; more of them wait, as the page needs its connections', async (t) => {
  const names = ['one', 'two', 'three', 'four'];
  const cards = names.map((name) => ({ ...SHAP, name, label: name }));
  const { compute, asked, farOf, click } = await open(t, '', { methods: [...METHODS, ...cards] });
  const jobs = () => asked(...names);
  const methods = () => jobs().map(({ name }) => name);
  for (const name of names) await compute(name);
  assert.deepEqual(methods(), ['one', 'two']);
  await jobs()[1].tell({ share: 0.25 });
  await jobs()[0].tell({ share: 0.5 });
  assert.deepEqual(names.map(farOf), [
    ...['50% of about 800 runs', '25% of about 800 runs', 'Starting …', 'Starting …'],
  ]);
  await click('[data-method=three] .vv-stop'); // while it waits
  await click('[data-method=two] .vv-stop');
  assert.deepEqual(
    jobs()
      .slice(0, 2)
      .map(({ stop }) => stop.aborted),
    [false, true],
  );
  await jobs()[1].answer(new Error('aborted'));
  assert.deepEqual(methods(), ['one', 'two', 'four']);
  assert.deepEqual(names.map(farOf), ['50% of about 800 runs', STOPPED, STOPPED, 'Starting …']);
  await jobs()[1].tell({ share: 0.75 }); // came late
  assert.equal(farOf('two'), STOPPED);
  await compute('two');
  await jobs()[0].answer(mapBy('one'));
  assert.deepEqual(methods(), ['one', 'two', 'four', 'two']);
});

test('what runs about another class, or with other options, is ended and never shown', async (t) => {
  for (const change of [{ target: '7' }, { 'attention_flow.attention_share': 0.25 }]) {
    const methods = [...METHODS.slice(0, 2), { ...SHAP, name: 'attention_flow' }];
    const { compute, asked, farOf, set, card } = await open(t, '', { methods });
    await compute('attention_flow');
    await set({ layer: 3 }); // drawn again
    assert.equal(farOf('attention_flow'), 'Starting …');
    await set(change);
    const [run] = asked('attention_flow');
    await run.tell({ share: 0.5 });
    assert.deepEqual([run.stop.aborted, farOf('attention_flow')], [true, 'about 800 runs']);
    await run.answer(mapBy('attention_flow'));
    assert.ok(card('attention_flow', '.vv-open').hidden);
  }
});

test('the test of all maps sorts them and says how far each can be trusted', async (t) => {
  const page = await open(t, '&method=rollout', { costs: { trust: 'about 9 s' } });
  const { asked, find, text, far, falls, title, order, card, set, look, click } = page;
  const job = '.vv-belief .vv-job';
  assert.deepEqual([text('.vv-test'), far(job)], [TEST_ALL, COST]);
  await click('.vv-test');
  const [first] = asked('trust');
  const body = { model: 'mini', image: { sample: 'lion' }, edits: '', target: '4' };
  assert.deepEqual(first.body, { ...body, method: 'rollout' });
  assert.equal(far(job), 'Rollout and random orders of patches …');
  await first.tell({ share: 0.5, left: 'about 3 s left' }); // of the random orders and one of two maps
  assert.equal(find(`${job} progress`).value, 0.425);
  await first.answer(trustBy(0.1));
  assert.deepEqual([far(job), find('.vv-test').hidden], ['Relevance … 85%', true]);
  assert.deepEqual([falls('rollout'), title()], ['falls no faster than at random', 'Three ways to ask']); // while the others are tested
  await asked('trust')[1].answer(trustBy());
  assert.deepEqual(order(), ['relevance', 'rollout', 'shap']);
  assert.equal(title(), 'Three ways to ask, the most faithful first');
  assert.ok(!find('.vv-legend').hidden);
  assert.deepEqual(
    [falls('relevance'), card('relevance', '.vv-falls').dataset.better],
    [TRUST.falls, 'true'],
  );
  assert.equal(card('relevance', '.vv-place').title, TITLE);
  assert.ok(find(job).hidden); // nothing is left to test
  assert.match(text('.vv-first-choice'), /^Believe Relevance first: /);
  await set({ share: 0.25 }); // of rollout, which was tested with other options
  assert.deepEqual([falls('rollout'), falls('relevance'), text('.vv-test')], ['', TRUST.falls, 'Test this map']); // prettier-ignore
  await click('.vv-test');
  const last = asked('trust')[2]; // the known one takes its place in the order without being asked for
  assert.deepEqual(last.body, { ...body, method: 'rollout', options: { attention_share: 0.25 } });
  await look('twins');
  assert.ok(last.stop.aborted);
  await last.answer(trustBy());
  assert.deepEqual([falls('relevance'), title(), find('.vv-legend').hidden], ['', 'Three ways to ask', true]);
  assert.equal(text('.vv-test'), TEST_ALL);
});

test('the map on the photo is tested first and said to be believed at once, then whichever is chosen meanwhile', async (t) => {
  const methods = [
    ...METHODS.slice(0, 2),
    ...['legrad', 'cam'].map((name) => ({ ...METHODS[1], name, label: name })),
  ];
  const page = await open(t, '&method=cam', { methods, legrad: mapBy('legrad'), cam: mapBy('cam') });
  const { asked, said, set, falls, text, click } = page;
  await click('.vv-test');
  assert.deepEqual([asked('trust').map(({ body }) => body.method), said()], [['cam'], []]);
  await asked('trust')[0].answer(trustBy());
  assert.deepEqual([said(), falls('cam')], [TRUST.sentences, TRUST.falls]);
  assert.equal(text('.vv-belief .vv-fall-title'), 'cam: the answer falls as its patches go');
  await set({ method: 'legrad' });
  assert.deepEqual(said(), []); // nothing is known of it yet
  await asked('trust')[1].answer(trustBy(0.4));
  await asked('trust')[2].answer(trustBy());
  assert.deepEqual(
    asked('trust').map(({ body }) => body.method),
    ['cam', 'rollout', 'legrad', 'relevance'],
  );
  assert.deepEqual([said(), falls('rollout')], [TRUST.sentences, 'falls slower than at random']);
});

test('how fast the answer falls is said beside the band', () => {
  const place = (/** @type {number} */ area, low = 0.3) => ({ area, mean: 0.4, low, high: 0.6 });
  assert.deepEqual(
    [0.05, 0.01, 0.35, 0.7].map((area) => fallWords(place(area), false, false)),
    [
      ...['falls 8.0 x faster than at random', 'falls 40 x faster than at random'],
      ...['falls no faster than at random', 'falls slower than at random'],
    ],
  );
  assert.equal(fallWords(place(-0.741), true, false), 'mean lead −0.74, at random 0.40'); // a lead has no share of another
  assert.equal(fallWords(place(-1234.5), true, true), 'mean value -1.23e+03, at random 0.4');
});

test('a map is judged by the first half of its test, which goes on from there when it was cancelled', async (t) => {
  const { asked, text, falls, said, all, click } = await open(t, '&method=rollout');
  await click('.vv-test');
  const half = { ...trustBy(0.05, { deletion: [1, 0.25, 0] }), words: undefined };
  await asked('trust')[0].tell({ share: 0.5, left: '', preview: half });
  const judged = () => [text('.vv-belief > .vv-title'), falls('rollout'), said()];
  const verdict = `How far to believe it: ${TRUST.falls}`;
  const first = [verdict, TRUST.falls, ['Measured as its patches go, not yet as they come back.']];
  assert.deepEqual([judged(), all('.vv-belief [data-test]').length], [first, 1]);
  await click('.vv-belief .vv-job .vv-stop');
  assert.deepEqual([judged(), text('.vv-test')], [first, TEST_ALL]);
  await click('.vv-test');
  await asked('trust').at(-1)?.answer(trustBy());
  assert.deepEqual(judged(), [verdict, TRUST.falls, TRUST.sentences]);
});

test('a test that is cancelled keeps what was tested, and may be taken up again; a map that cannot be tested says why', async (t) => {
  const { asked, far, falls, text, find, said, click, set } = await open(t, '&method=relevance');
  const job = '.vv-belief .vv-job';
  await click('.vv-test');
  await asked('trust')[0].answer(trustBy());
  await click(`${job} .vv-stop`);
  assert.ok(asked('trust')[1].stop.aborted);
  assert.deepEqual([far(job), falls('relevance'), text('.vv-test')], [STOPPED, TRUST.falls, 'Test the new maps too']); // prettier-ignore
  await click('.vv-test');
  await asked('trust').at(-1)?.answer(new Error('not this one'));
  await set({ method: 'rollout' });
  assert.deepEqual([far(job), falls('rollout'), said()], ['', 'not this one', ['not this one']]);
  assert.ok(find('.vv-belief .vv-fall').hidden);
});

test('all cards have one line, from 0 to beyond every map, with the random orders and the map on it', async (t) => {
  const { card, tested } = await open(t);
  await tested(trustBy(0.8), trustBy());
  const at = (/** @type {string} */ name, /** @type {string} */ of, side = 'left') =>
    Math.round(10 * parseFloat(card(name, of).style[side])) / 10;
  const percent = (/** @type {number} */ value) => Math.round((1000 * value) / (1.05 * 0.8)) / 10;
  for (const name of ['relevance', 'rollout'])
    assert.deepEqual([at(name, '.vv-band'), at(name, '.vv-band', 'width')], [percent(0.1), percent(0.2)]);
  assert.deepEqual([at('relevance', '.vv-dot'), at('rollout', '.vv-dot')], [percent(0.05), percent(0.8)]);
  assert.deepEqual([Boolean(card('shap', '.vv-place')), card('shap', '.vv-dot')], [true, null]); // an empty line
});

test('the chosen map has a curve, sentences and what it does not show; another photo takes them away', async (t) => {
  const { find, all, text, said, tested, look, click } = await open(t);
  const within = (/** @type {string} */ name) => text(`.vv-belief .vv-${name}`);
  const line = () => find('.vv-belief .vv-plot-line').getAttribute('d');
  assert.ok(find('.vv-belief .vv-fall').hidden);
  assert.deepEqual(said(), ['Not compared with random orders of patches yet.']);
  assert.deepEqual(
    ['shows', 'hides'].map((name) => text(`#vv-stage .vv-${name}`)),
    ['Rollout shows how tokens mix.', 'It does not show any class.'],
  );
  assert.equal(text('.vv-belief > .vv-title'), 'How far to believe it');
  await tested(trustBy(), trustBy());
  assert.equal(text('.vv-belief > .vv-title'), `How far to believe it: ${TRUST.falls}`);
  assert.equal(within('fall-title'), 'Rollout: the answer falls as its patches go');
  assert.equal(find('.vv-belief .vv-plot').getAttribute('aria-label'), `${within('fall-title')}. ${TITLE}`);
  assert.deepEqual(said(), TRUST.sentences);
  assert.equal(line(), 'M0.00 0.00L50.00 75.00L100.00 100.00');
  assert.equal(
    find('.vv-belief .vv-plot-band').getAttribute('d'),
    'M0.00 0.00L50.00 25.00L100.00 50.00L100.00 100.00L50.00 75.00L0.00 50.00Z',
  );
  const beside = () => texts(all('.vv-belief .vv-plot > [aria-hidden] > span'));
  assert.deepEqual(beside(), ['100%', '0', 'no patch gone', 'all gone']);
  const plot = find('.vv-belief .vv-plot-area');
  plot.box = { left: 10, top: 0, width: 200, height: 50 };
  plot.fire('pointermove', { clientX: 10 + 110 });
  await settle();
  assert.equal(within('curve-words'), '50% gone: 25%');
  plot.fire('pointerleave');
  await settle();
  assert.match(within('curve-words'), /Painted over here/);
  assert.deepEqual(texts(all('.vv-belief [data-test]')), ['taking away', 'putting back']);
  await click('.vv-belief [data-test=insertion]');
  assert.equal(within('fall-title'), 'Rollout: the answer rises as its patches come back');
  assert.equal(line(), 'M0.00 100.00L50.00 50.00L100.00 0.00');
  assert.deepEqual(beside().slice(2), ['no patch there', 'all back']);
  await look('twins');
  assert.ok(find('.vv-belief .vv-fall').hidden);
});

test('the curve says where the slider of the stage is, while both are about the same map', async (t) => {
  const page = await open(t);
  const now = () => page.find('.vv-belief .vv-now');
  const slide = async (/** @type {number} */ count) => {
    page.find('.vv-most').value = String(count);
    page.find('.vv-most').fire('input');
    await settle();
  };
  await page.tested(trustBy(), trustBy());
  assert.ok(now().hidden);
  await slide(1);
  assert.deepEqual([now().hidden, Math.round(parseFloat(now().style.left))], [false, 17]); // one of six
  await page.click('.vv-belief [data-test=insertion]');
  assert.equal(now(), null);
  await page.click('.vv-belief [data-test=deletion]');
  assert.ok(!now().hidden);
  Object.assign(page.known, { own_part: mapBy('own part'), comparison: compared('rollout', 'relevance') });
  await page.set({ ruler: 'only' });
  assert.ok(now().hidden);
});

test('what was tested for a class stays as that of this class until the other one is tested, and comes back with it', async (t) => {
  const page = await open(t);
  const { find, text, card, falls, order, title, said, asked, look, set, tested, click } = page;
  const shown = () => ({
    ...{ title: title(), first: order()[0], falls: falls('rollout'), said: said()[0] },
    isOther: card('rollout').classList.contains('vv-of-other'),
    curve: find('.vv-belief .vv-fall').hidden ? '' : text('.vv-belief .vv-fall-title'),
  });
  page.find('.vv-most').value = '1';
  page.find('.vv-most').fire('input');
  await tested(trustBy(0.05), trustBy(0.049));
  const lion = shown();
  assert.deepEqual(lion, {
    ...{ title: 'Three ways to ask, the most faithful first', first: 'relevance', falls: TRUST.falls },
    ...{ said: TRUST.sentences[0], isOther: false, curve: 'Rollout: the answer falls as its patches go' },
  });
  assert.ok(!find('.vv-belief .vv-now').hidden);
  await set({ target: '7' });
  assert.deepEqual(shown(), {
    ...{ title: 'Three ways to ask, the most faithful for lion first', first: 'relevance' },
    ...{ falls: `for lion: ${TRUST.falls}`, said: 'Measured for lion, not for cat yet.', isOther: true },
    curve: 'Rollout for lion: the answer falls as its patches go',
  });
  assert.match(text('.vv-first-choice'), /do about equally well for lion: /);
  assert.equal(find('.vv-belief .vv-now'), null); // the slider takes away the patches of another map
  await click('.vv-test');
  const run = asked('trust').at(-1);
  assert.deepEqual([run?.body.method, run?.body.target], ['rollout', '7']);
  assert.equal(falls('rollout'), `for lion: ${TRUST.falls}`);
  await run?.answer(trustBy(0.4));
  assert.deepEqual(
    [falls('rollout'), shown().isOther, order()[0]],
    ['falls slower than at random', false, 'rollout'],
  );
  assert.equal(falls('relevance'), ''); // not tested for this class
  await page.click('.vv-belief .vv-stop');
  await set({ target: '4' });
  assert.deepEqual(shown(), lion);
  await look('tower');
  assert.deepEqual([shown().falls, shown().curve, shown().isOther], ['', '', false]);
  await look('lion');
  assert.deepEqual([falls('rollout'), falls('relevance')], [TRUST.falls, '']); // the answer about the map on the photo is at hand
});

test('a card that is opened puts its map on the stage and brings that onto the screen', async (t) => {
  const page = await open(t, '&method=shap');
  const there = { scrolled: 0, scrollIntoView: () => void (there.scrolled += 1) };
  /** @type {any} */ (globalThis.document).querySelector = (/** @type {string} */ stage) =>
    stage === '#vv-explain-picture .vv-play-stage' ? there : null;
  await page.click('[data-method=relevance] .vv-open');
  assert.deepEqual(page.place.written.at(-1), [{ method: null }, false]); // the first one
  assert.ok(page.card('relevance').classList.contains('vv-chosen'));
  assert.equal(there.scrolled, 1);
});

test('the card with the smallest area is to be believed first, and less is said where two do as well or none does', () => {
  const trust = (/** @type {number} */ area, better = true, more = {}) => ({
    ...{ options: '', better, place: { area, low: 0.31, high: 0.56, mean: 0.44, ...more } },
  });
  const cards = (/** @type {[string, any][]} */ ...all) => all.map(([label, of]) => ({ label, trust: of }));
  assert.equal(
    firstChoice(cards(['Relevance', trust(0.0721)], ['LeGrad', trust(0.2)])),
    "Believe Relevance first: as the best patches go, the mean height of the answer's curve is 0.072; random orders lie between 0.31 and 0.56.",
  );
  assert.ok(firstChoice(cards(['A', trust(0.07)]), 'lion').startsWith('Believe A first for lion: '));
  const both = firstChoice(cards(['A', trust(0.1)], ['B', trust(0.11)]));
  assert.ok(both.startsWith('A and B do about equally well: ') && both.includes(' is 0.1 and 0.11; '));
  assert.ok(firstChoice(cards(['A', trust(0.1)], ['B', trust(0.12)])).startsWith('Believe A first: '));
  assert.equal(
    firstChoice(cards(['A', trust(0.4, false)], ['B', trust(0.5, false)])),
    'Believe none first: no map tested does better than the band of random orders (0.31 to 0.56).',
  );
  assert.equal(firstChoice(cards(['A', undefined], ['B', { options: '', error: 'no' }])), '');
  const lead = (/** @type {number} */ area) => ({
    ...trust(area, true, { low: -0.5, high: 1, floor: -2 }),
    what: 'the lead of lion over cougar',
  });
  assert.equal(endOfStrips([lead(-1), lead(0)]), -2 + 1.6 * 3);
  assert.equal(endOfStrips([]), 0);
  assert.equal(
    firstChoice(cards(['A', lead(-1.5)], ['B', lead(-1)])),
    'Believe A first: as the best patches go, the mean of the lead of lion over cougar is −1.5; random orders lie between −0.5 and 1.',
  );
});

test('the agreement is a table of the correlations; with a refusal it goes, and all cards', async (t) => {
  const square = (/** @type {number[]} */ ...data) => ({ shape: [3, 3], data: Float32Array.from(data) });
  const arrays = {
    values: square(1, 0, -0.26, 0, 0, 0, -0.26, 0, 1),
    top_fifth: square(1, NaN, 0.1, NaN, NaN, NaN, 0.1, NaN, 1), // the second is the same everywhere
  };
  const agreement = { arrays, facts: { names: ['A', 'flat', 'B'] }, words: 'No two maps look alike.' };
  const { text, all, set, known, find, asked } = await open(t, '&share=0.25', { agreement });
  const [{ body }] = asked('agreement');
  assert.deepEqual(
    [body.target, body.methods, body.options],
    ['4', ['rollout', 'relevance'], { rollout: { attention_share: 0.25 } }],
  );
  assert.equal(text('.vv-agree-words'), agreement.words);
  assert.deepEqual(texts(all('.vv-agree-table td')), ['', '−0.3', '−0.3', '']);
  assert.deepEqual(texts(all('.vv-agree-table th')), ['method', '1', '2', '1 A', '2 B']);
  assert.equal(all('.vv-agree-table td')[0].style.getPropertyValue('--agrees'), '70%');
  const cells = all('.vv-agree-table td');
  const seats = cells.map((/** @type {any} */ cell) => cell.getAttribute('tabindex'));
  assert.deepEqual(seats, [null, '0', '-1', null]); // one is in the tab order, arrows find the others
  assert.equal(find('.vv-agree-table').getAttribute('role'), 'grid');
  known.target = new Error('No model.');
  await set({ target: '7' });
  assert.equal(text('.vv-gallery-error'), 'No model.');
  assert.ok(['agree', 'belief', 'cards'].every((name) => find(`.vv-${name}`).closest('[hidden]')));
  known.target = LION;
  await set({ target: '4' });
  assert.deepEqual([find('.vv-gallery-error').hidden, find('.vv-cards').closest('[hidden]')], [true, null]);
});

// --- as the link has it

test('the maps of the cards are asked for once what they are of is known, while somebody looks', async (t) => {
  const page = await open(t, '&target=7&ruler=share&share=0.25', { target: null });
  const { asked, find, all, set, click } = page;
  assert.ok(find('.vv-gallery').classList.contains('vv-busy') && find('.vv-gallery-wait'));
  assert.deepEqual([asked('open').length, asked('rollout').length], [1, 0]);
  await asked('target')[0].answer({ ...LION, chosen: 7, link: '7', name: 'cat' });
  assert.ok(!find('.vv-gallery').classList.contains('vv-busy'));
  const body = { model: 'mini', image: { sample: 'lion' }, edits: '' };
  assert.deepEqual(asked('rollout')[0].body, { ...body, attention_share: 0.25 });
  assert.deepEqual(asked('relevance')[0].body, { ...body, target: '7' });
  assert.deepEqual(all('[data-map-scale]').map(pressed), ['false', 'true', 'false']);
  await click('[data-map-scale=own]');
  assert.deepEqual(page.place.written.at(-1), [{ ruler: null }, false]);
  await set({ layer: 3, method: 'relevance', style: 'tint' });
  assert.equal(asked('rollout', 'relevance').length, 2);
  await set({ explain: 'parts' });
  await set({ tab: 'look' });
  page.store.look({ image: 'tower' });
  await settle();
  assert.equal(asked('rollout', 'relevance').length, 2); // nobody asks for maps that nobody looks at
});

test('another photo ends what runs at once, before its cards are there; another tab does not', async (t) => {
  const page = await open(t);
  await page.compute('shap');
  await page.click('.vv-test');
  page.known.target = null;
  const ended = () => [page.asked('shap')[0], page.asked('trust')[0]].map(({ stop }) => stop.aborted);
  await page.set({ tab: 'look' });
  await page.set({ tab: 'explain', explain: 'parts' });
  await page.set({ explain: 'why', target: '7' }); // whose cards say whether this is another class
  assert.deepEqual(ended(), [false, false]);
  page.store.look({ image: 'twins' });
  await settle();
  assert.deepEqual(ended(), [true, true]);
  assert.deepEqual([page.farOf('shap'), page.find('.vv-test').hidden], ['about 800 runs', false]);
});

// --- whether the map shows the model

const TITLED = 'Rollout, weights re-initialised';
const curveBy = (/** @type {number[]} */ ...y) => ({
  arrays: { y: { shape: [y.length], data: Float32Array.from(y) } },
  facts: { x_label: 'parts re-initialised', y_label: 'correlation' },
  words: 'It falls apart.',
});

/** @param {any} t @param {any} [kept] */
async function openCheck(t, kept) {
  const page = await open(t, '&method=rollout&target=7', { kept: { randomisation: kept } });
  const curve = () => page.find('#vv-sanity-curve') && page.text('.vv-weights-title');
  return {
    ...page,
    shown: () => [page.far('#vv-sanity'), !page.find('#vv-sanity .vv-go').hidden, curve()],
    begin: () => page.click('#vv-sanity .vv-go'),
  };
}

test('a curve that is at hand is shown, and said beside the map; else nothing but the button', async (t) => {
  const nothing = await openCheck(t);
  assert.deepEqual([nothing.shown(), nothing.said().length], [['For Rollout.', true, null], 1]);
  const { shown, text, find, all, said, root } = await openCheck(t, curveBy(1, 0.25, -0.125));
  assert.deepEqual(shown(), ['For Rollout.', true, TITLED]);
  assert.equal(text('.vv-weights-words'), 'Rollout: It falls apart.');
  assert.equal(said()[1], 'It falls apart.');
  assert.equal(find('#vv-sanity .vv-plot-line').getAttribute('d'), 'M0.00 0.00L50.00 50.00L100.00 75.00');
  assert.equal(
    find('#vv-sanity .vv-plot-rules').getAttribute('d'),
    'M0 0.00H100M0 33.33H100M0 66.67H100M0 100.00H100',
  );
  assert.deepEqual(texts(all('#vv-sanity .vv-plot-left span')), ['1', '0.5', '0', '−0.5']);
  assert.deepEqual(texts(all('#vv-sanity .vv-plot-below span')), ['0', '1', '2']);
  assert.deepEqual(['.vv-weights-axis', '.vv-weights-what'].map(text), [
    'parts re-initialised',
    'correlation',
  ]);
  assert.equal(text('#vv-sanity-curve .vv-caption'), 'mini · lion · for cat');
  const plot = find('#vv-sanity .vv-plot-area');
  assert.equal(find('#vv-sanity .vv-plot').getAttribute('aria-label'), `${TITLED}: 1.00, 0.25, −0.13`);
  plot.box = { left: 10, top: 0, width: 200, height: 50 };
  plot.fire('pointermove', { clientX: 10 + 190 });
  await settle();
  assert.equal(text('.vv-weights-read'), '2 of 2 re-initialised: −0.13');
  plot.fire('pointerleave');
  await settle();
  assert.equal(text('.vv-weights-read'), '');
  const about = { model: 'mini', image: { sample: 'lion' }, edits: '' };
  const saved = savedBy(root, find('#vv-sanity-curve .vv-save'));
  assert.deepEqual(saved, ['randomisation', { ...about, method: 'rollout', target: '7', figure: {} }]);
});

test('the check says how far it is, can be cancelled and fail, and then shows its curve', async (t) => {
  const { asked, shown, said, find, begin, click } = await openCheck(t);
  await begin();
  const [run] = asked('randomisation');
  const body = { model: 'mini', image: { sample: 'lion' }, edits: '' };
  assert.deepEqual(run.body, { ...body, method: 'rollout', target: '7' });
  assert.deepEqual(shown(), ['Rollout: the trained model …', false, null]);
  await run.tell({ share: 0.5 });
  assert.deepEqual(shown(), ['Rollout: 50%', false, null]);
  assert.equal(find('#vv-sanity progress').value, 0.5);
  await click('#vv-sanity .vv-stop');
  assert.deepEqual([run.stop.aborted, shown()], [true, [STOPPED, true, null]]);
  await begin();
  await asked('randomisation')[1].answer(new Error('Not this model.'));
  assert.deepEqual(shown(), ['Not this model.', true, null]);
  await begin();
  await asked('randomisation')[2].answer(curveBy(1, 0.5));
  assert.deepEqual(shown(), ['For Rollout.', true, TITLED]);
  assert.equal(said()[1], 'It falls apart.');
});

test('another map has its own check: what runs ends, and what came of it is not shown for this one', async (t) => {
  const page = await openCheck(t);
  const { asked, set, shown, said, begin, find, text } = page;
  await set({ method: 'relevance' });
  assert.deepEqual([shown(), said().length], [['For Relevance.', true, null], 1]);
  await begin();
  const [run] = asked('randomisation');
  await set({ layer: 3, q: '1,2' }); // of another tab
  await set({ tab: 'look' });
  await set({ tab: 'explain' });
  assert.deepEqual([run.stop.aborted, shown()[1]], [false, false]);
  await set({ target: '2' });
  await run.answer(curveBy(1, 0));
  assert.deepEqual([run.stop.aborted, shown()], [true, ['For Relevance.', true, null]]);
  await set({ method: 'shap' });
  assert.match(text('#vv-sanity .vv-job-words'), /^Shap would have to be recomputed for every block; /);
  assert.equal(find('#vv-sanity .vv-go'), null);
});
