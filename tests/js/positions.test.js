// The Positions tab over the store, against a source that a test answers for: small maps that answer the pointer, the curve over
// distance, and what else a model has of positions.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Picture } from '../../vit_viz/explorer/paint.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { html, render, signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import {
  aboutWords,
  everyIn,
  pairsIn,
  paintTiles,
  placeOf,
  stepWords,
} from '../../vit_viz/web/positions/places.js';
import {
  Positions,
  filterLevels,
  onOneScale,
  pixelsOf,
  sameWords,
  variantWords,
} from '../../vit_viz/web/positions/room.js';
import { Browser, parse, savedBy, ending } from './browser.js';
import { makeTrace } from './oracle.js';
import { fields, placeAt, settle, toned } from './room.js';

const tables = { viridis: toned((i) => i), diverging: toned((i) => i) };
const BITS = [0xbc00, 0xb800, 0, 0x3800, 0x3c00]; // -1, -0.5, 0, 0.5 and 1 in fp16
const GRAY = [0, 64, 128, 191, 255];

const numbers = (/** @type {number[]} */ shape, /** @type {number[]} */ data) => ({
  shape,
  data: Float32Array.from(data),
});

/** Four rows and two columns of places, of which the model sees the middle half of the photo; trained at 2 x 2. */
const photo = makeTrace({
  grid: [4, 2],
  prefix: ['class', 'register 0', 'register 1'],
  photo: '/photo/h',
  photo_size: [40, 60],
  crop: { region: [0, 20, 40, 40], original: [40, 80], input: [32, 32] },
  trace: 'h',
  name: 'photo',
});
const KNOWN = {
  questions: ['positions', 'resampling', 'rotary_similarity', 'position_components', 'filter_components'],
  grid: [2, 2],
  prefix: [],
  why: '',
};
/** @type {Record<string, any>} */
const ANSWERS = {
  position_distance: {
    facts: {
      note: 'Positions tell near from far: neighbours are 0.50 alike. Along a row it falls more slowly.',
    },
    arrays: {
      y: numbers([3], [1, 0.5, -0.25]),
      'band.low': numbers([3], [1, 0.25, -0.5]),
      'band.high': numbers([3], [1, 0.75, 0]),
    },
  },
  positions: {
    facts: { unit: 'cosine similarity', note: 'Resampled.' },
    arrays: { values: numbers([4, 2], [0, 0.5, 0, 1, 0, 0, 0, -0.5]) },
  },
};

let opens = 0; // the maps that were fetched last are kept by their address

/** The tab; the map of place (0, 0) and of (2, 0), so of every other place: value i of the list, and the other way round. */
async function open(search = '?q=1,1', { known = KNOWN, answers = {}, refuses = '' } = {}) {
  const browser = new Browser();
  const handle = `h${(opens += 1)}`;
  /** @type {string[]} */
  const fetched = [];
  const halves = [0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2, 1, 0].map((i) => BITS[i]);
  const fetch = async (/** @type {string} */ path) => {
    fetched.push(path);
    return {
      ok: !refuses,
      text: async () => refuses,
      arrayBuffer: async () => Uint16Array.from(halves).buffer,
    };
  };
  browser.install({ fetch });
  const place = placeAt(`?tab=positions&${search.slice(1)}`);
  const store = new Store(fields, place);
  /** @type {[string, any][]} */
  const questions = [];
  const ask = asker({
    keeps: (name) => name !== 'open',
    async answer(name, body) {
      questions.push([name, body]);
      const answer = /** @type {any} */ ({ ...ANSWERS, ...answers })[name];
      if (name === 'open') return { ...photo, trace: handle, about: { model: 'mini' }, positions: known };
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  const element = /** @type {any} */ (parse('<div></div>'));
  const page = { store, source: SERVER, ask, turn: signal(0) };
  render(html`<${Positions} page=${page} tables=${tables} />`, element);
  ending.after(() => render(null, element));
  await settle();
  const find = (/** @type {string} */ name) => element.querySelector(`.vv-${name}`);
  if (find('places-tiles')) find('places-tiles').box = { left: 0, top: 0, width: 200, height: 200 };
  if (find('stage')) find('stage').box = { left: 0, top: 0, width: 80, height: 40 };
  const reds = (/** @type {any} */ canvas) =>
    [...canvas.canvas.data.data].filter((/** @type {number} */ _, /** @type {number} */ i) => i % 4 === 0);
  const one = () => find('places-pair').querySelector('.vv-cells');
  const style = (/** @type {any} */ ring) =>
    ['top', 'left', 'width', 'height'].map((name) => Math.round(parseFloat(ring.style[name])));
  return {
    ...{ handle, element, find, store, place, questions, fetched, one },
    map: () => reds(one()?.querySelector('canvas')),
    caption: () => one()?.parentNode?.querySelector('figcaption span')?.textContent,
    ring: () => style(find('places-tiles').querySelector('.vv-ring')),
    onPhoto: () => style(find('stage').querySelector('.vv-ring')),
    words: (/** @type {string} */ name) => find(`tables-${name}`).textContent,
    figures: () => find('tables-figures').children,
    captions: () =>
      find('tables-figures')
        .querySelectorAll('figcaption')
        .map((/** @type {any} */ node) => node.textContent),
    reds: () => find('tables-figures').querySelectorAll('canvas').map(reds),
    labels: () => find('tables-parts').children.map((/** @type {any} */ node) => node.textContent.trim()),
  };
}

test('each small map is painted where its place lies, enlarged to squares, with a clear line between', () => {
  new Browser().install();
  const picture = new Picture();
  const table = Uint32Array.from({ length: 256 }, (_, i) => 1000 + i);
  paintTiles(picture, Float32Array.of(-1, 1, 0, 1, -1, 0), [1, 3], [2, 1], table); // 3 maps of 2 x 1
  const zoom = 200; // 600 pixels are 3 columns
  assert.deepEqual([picture.data.width, picture.data.height], [3 * (zoom + 1) - 1, 2 * zoom]);
  const at = (/** @type {number} */ row, /** @type {number} */ col) =>
    picture.pixels[row * picture.data.width + col];
  assert.deepEqual([at(0, 0), at(zoom - 1, zoom - 1), at(zoom, 0)], [1000, 1000, 1255]);
  assert.deepEqual([at(0, zoom), at(0, zoom + 1), at(zoom, zoom + 1)], [0, 1128, 1255]);
  assert.deepEqual([at(zoom - 1, 3 * zoom + 1), at(2 * zoom - 1, 3 * zoom + 1)], [1000, 1128]);
});

test('the pinned place is enlarged from its own numbers, and ringed on the maps and on the photo', async () => {
  const page = await open();
  assert.deepEqual(page.fetched, [`/vit_viz/positions/${page.handle}?places=image`]);
  assert.deepEqual(page.questions.slice(1), [
    ['position_distance', { model: 'mini', rows: 4, cols: 2 }],
    ['positions', { model: 'mini', grid: '4,2', place: '1,1' }],
  ]);
  assert.deepEqual(page.map(), [128, 191, 128, 255, 128, 128, 128, 64]);
  assert.equal(page.caption(), 'position (1, 1) with all places');
  assert.deepEqual(page.ring(), [0, 0, 100, 50]); // the nearest place that has a map
  assert.deepEqual(page.onPhoto(), [25, 50, 25, 25]); // the model sees the middle half of the photo
  assert.equal(page.find('places-tiles').style.getPropertyValue('--vv-aspect'), '1');
  assert.match(page.find('places-caption').textContent, /one in 2 in either direction/);
  assert.equal(
    page.find('places-title').textContent,
    'Positions tell near from far: neighbours are 0.50 alike',
  );
  assert.match(
    page.find('places-about').textContent,
    /^Resampled[.] The class token and the registers have no/,
  );
  assert.equal(page.find('tables').getAttribute('aria-busy'), 'false');
});

test('while an answer is on its way, that is said', async () => {
  let answer = /** @type {(value: any) => void} */ (() => {});
  const late = new Promise((done) => (answer = done));
  const page = await open('?q=1,1', { answers: { positions: late } });
  assert.equal(page.find('tables').getAttribute('aria-busy'), 'true');
  answer(ANSWERS.positions);
  await settle();
  assert.equal(page.find('tables').getAttribute('aria-busy'), 'false');
});

test('the place under the pointer is enlarged without asking, and leaving brings the pinned one back', async () => {
  const page = await open();
  const asked = page.questions.length;
  page.find('places-tiles').fire('pointermove', { clientX: 150, clientY: 150 });
  await settle();
  assert.deepEqual(page.map(), [...[255, 255, 255, 255], ...[3, 2, 1, 0].map((i) => GRAY[i])]);
  assert.equal(page.caption(), 'position (2, 0) with all places');
  page.one()?.fire('keydown', { key: 'ArrowDown' });
  await settle();
  assert.equal(
    page.find('places-read').textContent,
    'position (2, 0) with position (1, 0): cosine similarity 1',
  );
  page.find('places-tiles').fire('pointerleave', {});
  await settle();
  assert.equal(page.caption(), 'position (1, 1) with all places');
  page.find('stage').fire('pointermove', { clientX: 45, clientY: 25 }); // row 2 and column 1, whose map is that of column 0
  await settle();
  assert.equal(page.caption(), 'position (2, 0) with all places');
  assert.deepEqual([page.questions.length, page.fetched.length], [asked, 1]);
});

test('a click on a map or on the photo pins, arrow keys pin the next place, and the maps stay', async () => {
  const page = await open();
  const pinned = async (/** @type {() => void} */ act) => {
    act();
    await settle();
    return page.store.view.q.value;
  };
  assert.equal(
    await pinned(() => page.find('places-tiles').fire('click', { clientX: 20, clientY: 120 })),
    '2,0',
  );
  assert.deepEqual(page.place.written, [[{ q: '2,0' }, true]]);
  assert.equal(page.caption(), 'position (2, 0) with all places');
  assert.equal(await pinned(() => page.find('stage').fire('click', { clientX: 55, clientY: 35 })), '3,1');
  assert.equal(await pinned(() => page.find('stage').fire('click', { clientX: 5, clientY: 35 })), '3,1'); // beside what the model sees
  const keys = (/** @type {string} */ part, /** @type {string[]} */ names) =>
    pinned(() => names.forEach((key) => page.find(part).fire('keydown', { key })));
  assert.equal(await keys('places-tiles', ['ArrowUp', 'ArrowUp']), '3,1');
  assert.equal(page.caption(), 'position (0, 0) with all places'); // the nearest that has a small map
  assert.equal(await keys('places-tiles', ['ArrowDown', 'Enter']), '2,1');
  assert.equal(await keys('places-tiles', ['Escape', 'Escape']), '');
  assert.equal(await keys('stage', ['ArrowUp', 'ArrowLeft', 'Enter']), '1,0');
  assert.equal(page.fetched.length, 1);
});

test('on the grid of the training a place is that of the photo, scaled there and back', async () => {
  const page = await open('?q=3,1&places=trained');
  assert.deepEqual(page.questions.slice(1), [
    ['position_distance', { model: 'mini', rows: 0, cols: 0 }],
    ['positions', { model: 'mini', grid: '', place: '1,1' }],
  ]);
  assert.deepEqual(page.fetched, [`/vit_viz/positions/${page.handle}?places=trained`]);
  for (const key of ['ArrowUp', 'Enter']) page.find('places-tiles').fire('keydown', { key });
  await settle();
  assert.equal(page.store.view.q.value, '0,1');
  page.element.querySelector('[data-places=image]').click();
  await settle();
  assert.deepEqual(page.place.written.at(-1), [{ places: null }, false]);
  const of = /** @type {any} */ ({ photo: { grid: [4, 2] }, positions: { grid: [3, 5] }, isTrained: true });
  assert.deepEqual(placeOf({ ...of, query: '3,1' }), [2, 2]);
  assert.deepEqual(placeOf({ ...of, query: 'class' }), [1, 2]);
  assert.deepEqual(placeOf({ ...of, query: '2,1;3,0', isTrained: false }), [2, 1]);
});

test('while another tab is open nothing is asked, and then what its link says', async () => {
  const { store, questions, caption } = await open();
  const asked = () => questions.filter(([name]) => name !== 'open').length; // which is for all of the page
  const before = asked();
  store.set({ tab: 'look', q: '0,1' });
  store.look({ image: 'tower' });
  await settle();
  assert.equal(asked(), before);
  store.set({ tab: 'positions', q: '2,0' });
  await settle();
  assert.match(caption(), /^position \(2, 0\)/);
});

test('all places, the pinned one and the prefix token are saved on the grid that is shown', async () => {
  const known = { ...KNOWN, prefix: ['class'] };
  for (const [link, grid, place] of [
    ['?q=1,1', '4,2', '1,1'],
    ['?q=3,1&places=trained', '', '1,1'],
    ['?q=class', '4,2', '2,1'],
  ]) {
    const { element } = await open(link, { known: /** @type {any} */ (known) });
    const saved = [0, 1, 2].map((which) => savedBy(element, element.querySelector(`[data-save="${which}"]`)));
    const wanted = ['', place, 'class'].map((one) => ['positions', { model: 'mini', grid, place: one }]);
    assert.deepEqual(saved, wanted);
  }
});

test('the curve is read step by step, and a token with a position has a map of its own', async () => {
  const known = { ...KNOWN, prefix: ['class'] };
  const page = await open('?q=1,1', { known: /** @type {any} */ (known) });
  assert.deepEqual(page.questions.at(-1), ['positions', { model: 'mini', grid: '4,2', place: 'class' }]);
  const curve = page.find('places-curve');
  assert.equal(page.find('plot-line').getAttribute('d'), 'M16.67 0.00L50.00 25.00L83.33 62.50');
  const heights = [...page.find('plot-left').children].map((one) => one.style.getPropertyValue('--at'));
  assert.deepEqual(heights, ['100%', '50%', '0%']); // of 1, 0 and -1
  curve.fire('keydown', { key: 'ArrowRight' });
  await settle();
  assert.equal(page.find('places-step').textContent, stepWords(1, [0.5, 0.25, 0.75], pairsIn([4, 2])[1]));
  assert.equal(stepWords(2, [0.5, 0.25, 0.75], 12), '2 steps apart: 0.50 on average of 12 pairs; a tenth below 0.25, a tenth above 0.75.'); // prettier-ignore
  assert.match(page.find('places-key').textContent, /Along a row it falls more slowly[.]$/);
  const [, cells] = page.find('places-pair').querySelectorAll('.vv-cells');
  cells.fire('keydown', { key: 'ArrowRight' });
  await settle();
  assert.equal(page.find('places-read').textContent, 'with position (0, 1): cosine similarity 0.5');
  assert.doesNotMatch(page.find('places-about').textContent, /no position/);
});

test('pairs of places are counted once, by the straight line between them', () => {
  for (const [rows, cols] of [
    [1, 1],
    [4, 2],
    [3, 7],
  ]) {
    /** @type {number[]} */
    const counted = [];
    for (let one = 0; one < rows * cols; one++)
      for (let other = one; other < rows * cols; other++) {
        const [down, across] = [
          Math.floor(other / cols) - Math.floor(one / cols),
          (other % cols) - (one % cols),
        ];
        const steps = Math.round(Math.hypot(down, across));
        counted[steps] = (counted[steps] ?? 0) + 1;
      }
    assert.deepEqual(pairsIn([rows, cols]), counted);
  }
  assert.deepEqual([everyIn(64, [4, 2]), everyIn(16, [4, 2]), everyIn(8, [4, 2])], [1, 2, 4]);
});

test('it is said where positions come from, and who has none', () => {
  const of = /** @type {any} */ ({ photo: { grid: [4, 2] }, prefix: ['class'], positions: KNOWN });
  assert.equal(
    aboutWords(of, [2, 2], ''),
    'The positions were trained at 2 x 2; this photo has 4 x 2 patches. The class token has no position of its own.',
  );
  const own = { ...of, photo: { grid: [2, 2] }, prefix: [] };
  assert.equal(
    aboutWords(own, [2, 2], ''),
    'The positions were trained at 2 x 2; this photo uses them as they are.',
  );
  const waves = { ...own, positions: { ...KNOWN, questions: ['positions'] } };
  assert.equal(
    aboutWords(waves, [2, 2], 'These positions are fixed waves.'),
    'These positions are fixed waves.',
  );
});

test('only what the model has can be chosen, and what cannot be drawn says why', async () => {
  const why = 'This model has no position embedding.';
  const known = { questions: ['filter_components'], grid: [2, 2], prefix: [], why };
  const page = await open('?q=1,1', { known });
  assert.equal(page.questions.length, 1); // it is not asked what it does not have
  assert.deepEqual(page.labels(), ['patch filters']);
  assert.equal(page.words('note'), 'This model has no position embedding.');
  assert.deepEqual(
    [page.find('places'), page.find('tables-main'), page.find('tables-grids')],
    [null, null, null],
  );
  const foreign = await open('?q=1,1', {
    known: /** @type {any} */ ({ questions: [], grid: null, prefix: [], why }),
  });
  assert.equal(foreign.words('note'), why);
  assert.equal(foreign.find('tables-parts'), null);
  const all = await open();
  assert.deepEqual(all.labels(), [
    'similarity',
    'on another grid',
    'rotary periods',
    'in colours',
    'patch filters',
  ]);
  assert.ok(all.find('tables-grids'));
  all.element.querySelector('[data-show=filters]').click();
  await settle();
  assert.deepEqual(all.place.written.at(-1), [{ positions: 'filters' }, true]); // a place to come back to
});

test('maps that are refused leave the words in their place', async () => {
  const page = await open('?q=0,0&places=trained', {
    refuses: 'This picture is no longer kept.',
    known: { ...KNOWN, grid: [4, 4] },
  });
  assert.equal(page.words('note'), 'This picture is no longer kept.');
  assert.equal(page.find('places'), null);
});

// --- beside similarity

test('a way of resampling is told by how far it lies from the own one', () => {
  assert.equal(variantWords('dino', 0.184, 'timm'), 'dino: differs by 18%');
  assert.equal(variantWords('dino', 0, 'timm'), 'dino: differs by nothing');
  assert.equal(variantWords('dino', 1e-6, 'timm'), 'dino: differs by <0.1%');
  assert.equal(variantWords('dino', 0.2, 'dino'), "dino: this model's own way");
  assert.match(sameWords([4, 6]), /^This photo's grid, 4 x 6, is the checkpoint's own/);
});

test('three coordinates are colours on one scale for all, from the 1st to the 99th percentile', () => {
  const first = Float32Array.from({ length: 3 * 101 }, (_, i) =>
    i % 3 === 0 ? Math.floor(i / 3) : i % 3 === 1 ? 5 : -Math.floor(i / 3),
  );
  const [levels, other] = onOneScale([first, Float32Array.of(50, 5, -100)]);
  assert.ok(Math.abs(levels[3 * 50] - 0.5) < 1e-6);
  assert.ok(Math.abs(levels[3] - (1 - 1.01) / 97.98) < 1e-5); // numpy: percentile of 102 numbers at 0.01 * 101
  assert.equal(levels[1], 0); // where there is no spread
  assert.ok(other[2] < 0);
  assert.deepEqual([...pixelsOf([0, 0.5, 1, -1, 2, 1 / 255])], [0xffff8000, 0xff01ff00]);
});

test('a filter is gray where it is 0 and reaches an end; of other channels than three their mean is drawn', () => {
  const levels = filterLevels(Float32Array.of(1, 0, -2, 0, 0, 0), 3); // two pixels
  assert.deepEqual([...levels], [0.75, 0, 0.5, 0.5, 0.5, 0.5]);
  assert.deepEqual([...filterLevels(Float32Array.of(4, 0, 0, 4), 2)], [1, 1, 1, 1, 1, 1]);
  assert.deepEqual([...filterLevels(Float32Array.of(0, 0), 1)], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
});

const RESAMPLED = {
  facts: { own: 'timm', after: { names: ['timm', 'dino'] } },
  arrays: {
    'before.values': numbers([1, 2, 2, 3], [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0]),
    'after.values': numbers(
      [2, 2, 3, 3],
      Array.from({ length: 36 }, (_, i) => (i % 3 ? 0 : Math.floor(i / 3) % 2)),
    ),
    'difference.values': numbers([2, 2, 3], [0, 0, 0, 0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.5]),
    overall: numbers([2], [0, 0.25]),
  },
};

test('the table on another grid stands beside its own, and each other way with its difference', async () => {
  const part = await open('?positions=resampled', { answers: { resampling: RESAMPLED } });
  assert.deepEqual(part.questions.at(-1), ['resampling', { model: 'mini', rows: 4, cols: 2 }]);
  assert.equal(part.find('tables-grids'), null); // it has both
  assert.match(
    part.words('words'),
    /^The table brought from 2 x 2 to 2 x 3 as .* bright 0[.]5 of the mean norm/,
  );
  assert.deepEqual(part.captions(), [
    "the checkpoint's own table, 2 x 2",
    "timm: this model's own way",
    'dino: differs by 25%',
  ]);
  assert.deepEqual(part.reds(), [
    [0, 255, 0, 255],
    [0, 255, 0, 255, 0, 255],
    [0, 255, 0, 255, 0, 255],
    [45, 87, 129, 171, 213, 255],
  ]); // the own way has no difference
  const cells = part.figures()[2].children[2];
  assert.equal(cells.getAttribute('aria-label'), "Difference of dino from this model's own way");
  assert.equal(cells.style.aspectRatio, '3 / 2');
  assert.match(part.words('cell'), /^Point at a cell/);
  cells.box = { left: 10, top: 20, width: 300, height: 100 };
  cells.fire('pointermove', { clientX: 10 + 250, clientY: 20 + 25 });
  await settle();
  assert.equal(part.words('cell'), 'dino, position (0, 2): differs by 0.2 of the mean norm of a position');
  cells.fire('keydown', { key: 'ArrowDown' });
  await settle();
  cells.fire('keydown', { key: 'ArrowLeft' });
  await settle();
  assert.match(part.words('cell'), /^dino, position \(1, 1\): differs by 0[.]4 /);
  const { before } = { before: RESAMPLED.arrays['before.values'] };
  const same = {
    ...RESAMPLED,
    arrays: { ...RESAMPLED.arrays, 'after.values': { ...before, shape: [1, 2, 2, 3] } },
  };
  const own = await open('?positions=resampled', { answers: { resampling: same } });
  assert.equal(own.words('words'), sameWords([2, 2]));
  assert.deepEqual(own.captions(), ["the checkpoint's own table, 2 x 2"]);
});

test('rotary periods are likenesses by distance, down and across', async () => {
  const rotary_similarity = {
    facts: {},
    arrays: {
      periods: numbers([2], [0.5, 1.5]),
      rows: numbers([2, 3], [1, 0, -1, 1, 0.5, 0]),
      cols: numbers([2, 4], [1, 0.25, 0, -0.5, 1, 0.75, 0.5, 0.125]),
    },
  };
  const part = await open('?positions=periods&places=trained', { answers: { rotary_similarity } });
  assert.deepEqual(part.questions.at(-1), ['rotary_similarity', { model: 'mini', rows: 0, cols: 0 }]);
  assert.deepEqual(part.captions(), [
    'a row for each period, 0.5 to 1.5 half sides of the picture; across: 0 to 2 rows apart',
    'a row for each period, 0.5 to 1.5 half sides of the picture; across: 0 to 3 columns apart',
  ]);
  assert.deepEqual(part.reds()[0], [255, 128, 0, 255, 191, 128]); // from -1 to 1
  const [, cells] = part.find('tables-figures').querySelectorAll('.vv-cells');
  assert.equal(cells.style.aspectRatio, '4 / 3');
  assert.equal(cells.getAttribute('aria-label'), 'Likeness by distance, columns');
  cells.box = { left: 0, top: 0, width: 400, height: 200 };
  cells.fire('pointermove', { clientX: 350, clientY: 150 });
  await settle();
  assert.equal(part.words('cell'), 'period 1.5, 3 columns apart: cosine 0.125');
  assert.ok(part.figures()[0].classList.contains('vv-wide'));
});

test('positions in colours tell the levels of a cell, and the shares of their variance', async () => {
  const position_components = {
    facts: {},
    arrays: {
      'maps.values': numbers([1, 1, 2, 3], [0, 3, 5, 1, 3, 4]),
      shares: numbers([3], [0.5, 0.25, 0.004]),
    },
  };
  const part = await open('?positions=components', { answers: { position_components } });
  assert.deepEqual(part.questions.at(-1), ['position_components', { model: 'mini', rows: 4, cols: 2 }]);
  assert.match(part.words('words'), /their variance: red 50%, green 25%, blue 0\.4%[.]$/);
  assert.deepEqual([part.captions(), part.reds()[0]], [['1 x 2 positions'], [0, 255]]);
  assert.ok(part.find('tables-grids'));
  const [cells] = part.find('tables-figures').querySelectorAll('.vv-cells');
  cells.box = { left: 0, top: 0, width: 200, height: 100 };
  cells.fire('pointermove', { clientX: 150, clientY: 50 });
  await settle();
  assert.equal(part.words('cell'), 'position (0, 1): red 100%, green 0%, blue 0% of their scale');
});

test('patch filters have a number and a share each, and no cells to read', async () => {
  const filter_components = {
    facts: {},
    arrays: { values: numbers([2, 1, 1, 2], [1, -1, 0, 2]), shares: numbers([2], [0.5, 0.125]) },
  };
  const part = await open('?positions=filters', { answers: { filter_components } });
  assert.deepEqual(part.questions.at(-1), ['filter_components', { model: 'mini' }]);
  assert.deepEqual(part.captions(), ['1: 50%', '2: 13%']);
  assert.match(part.words('words'), /the 2 components in which .* 63% of their variance together/);
  assert.deepEqual(part.reds(), [
    [255, 0],
    [128, 255],
  ]);
  assert.equal(part.words('cell'), '');
  assert.ok(part.figures()[1].classList.contains('vv-little'));
});
