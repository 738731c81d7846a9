// A picture of the page: what it shows for a value.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Picture, showTip } from '../../vit_viz/ui/kit/picture.js';
import { Browser, mount, read } from './browser.js';

const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);

const [, INSIDE] = /** @type {RegExpMatchArray} */ (
  read('../../vit_viz/web/explain/stage.html').match(/vv-play-picture">([^]*)<\/div>\s*<\/div>\s*<details/)
);
/** What the stage of the Explain tab has of a picture. @type {import('./browser.js').Component} */
const PICTURE = {
  html: INSIDE,
  start(element, _trigger, props, watch) {
    const picture = new Picture(element);
    const draw = () => {
      if (props.value === null) picture.wait();
      else if (typeof props.value === 'string') picture.fail(props.value);
      else picture.show(props.value);
    };
    watch('value', draw);
    draw();
  },
};
const shown = {
  src: '/picture/x.png',
  save: '/picture/x.png?save=1',
  alt: 'Layer 2.',
  caption: 'layer 2, head 1',
  area: [10, 20, 50, 180],
  rings: [[20, 60, 30, 100]],
  bar: { low: '0', high: '0.7', unit: 'share', stops: ['red', 'blue'] },
  note: '',
  pick: true,
  cells: {
    region: [10, 20, 40, 150],
    grid: [4, 6],
    texts: Array.from({ length: 24 }, (_, i) => `cell ${i}`),
  },
};

const settled = () => new Promise((done) => setImmediate(done));

test('a picture shows its file, its words and its bar, and rings where the query is once it is there', () => {
  const { element, find } = mount(PICTURE, shown);
  const image = /** @type {any} */ (find('image'));
  assert.equal(image.src, '/picture/x.png');
  assert.equal(image.hidden, false);
  assert.equal(image.alt, 'Layer 2.');
  assert.equal(image.style.aspectRatio, '4 / 1');
  assert.equal(find('frame').style.width, 'calc(4 * var(--vv-tallest))');
  assert.ok(element.classList.contains('vv-busy'));
  assert.equal(find('rings').childElementCount, 0);
  image.onload();
  assert.ok(!element.classList.contains('vv-busy'));
  const [ring] = find('rings').children;
  assert.equal(ring.className, 'vv-ring');
  assert.deepEqual(
    [ring.style.top, ring.style.left, ring.style.height, ring.style.width],
    ['25%', '25%', '25%', '25%'],
  );
  assert.deepEqual(texts(['low', 'high', 'unit', 'caption'].map(find)), [
    '0',
    '0.7',
    'share',
    'layer 2, head 1',
  ]);
  assert.equal(find('strip').style.background, 'linear-gradient(to right, red, blue)');
  assert.deepEqual([find('bar').hidden, find('note').hidden, find('empty').hidden], [false, true, true]);
  assert.deepEqual(
    [find('save').hidden, /** @type {any} */ (find('save')).getAttribute('href')],
    [false, '/picture/x.png?save=1'],
  );
  assert.equal(find('frame').getAttribute('role'), 'application');
  assert.equal(find('frame').getAttribute('aria-label'), 'Layer 2. Arrow keys move the query.');
  assert.ok(find('frame').classList.contains('vv-pickable'));
});

test('rings have the place and size of their patch, down and across', () => {
  const { find } = mount(PICTURE, {
    ...shown,
    area: [0, 0, 40, 200],
    rings: [
      [10, 50, 30, 150],
      [0, 0, 4, 8],
    ],
  });
  /** @type {any} */ (find('image')).onload();
  const places = find('rings').children.map(({ style: s }) => [s.top, s.left, s.height, s.width]);
  assert.deepEqual(places, [
    ['25%', '25%', '50%', '50%'],
    ['0%', '0%', '10%', '4%'],
  ]);
});

test('a picture that cannot be picked is an image, and one without size takes the width', () => {
  const { find } = mount(PICTURE, {
    ...shown,
    pick: false,
    area: null,
    rings: null,
    bar: null,
    save: '',
    note: 'small',
  });
  /** @type {any} */ (find('image')).onload();
  assert.equal(find('frame').getAttribute('role'), 'img');
  assert.equal(find('frame').getAttribute('aria-label'), 'Layer 2.');
  assert.ok(!find('frame').classList.contains('vv-pickable'));
  assert.deepEqual([find('image').style.aspectRatio, find('frame').style.width], ['', '100%']);
  assert.deepEqual(
    [find('bar').hidden, find('save').hidden, find('note').textContent],
    [true, true, 'small'],
  );
});

test('a file that arrives after another was asked for changes nothing, the same file is ready at once', () => {
  const { element, set, find } = mount(PICTURE, shown);
  const late = /** @type {any} */ (find('image')).onload;
  set(null);
  late();
  assert.ok(element.classList.contains('vv-busy')); // another one is on its way
  set({ ...shown, src: '/picture/y.png', rings: [] });
  late();
  assert.ok(element.classList.contains('vv-busy')); // the older file arrived
  /** @type {any} */ (find('image')).onload();
  set({ ...shown, src: '/picture/y.png', caption: 'again' });
  assert.ok(!element.classList.contains('vv-busy'));
  assert.equal(find('caption').textContent, 'again');
});

test('while it is busy it keeps the old picture, and an error takes everything away', async () => {
  const { element, set, find } = mount(PICTURE, shown);
  /** @type {any} */ (find('image')).onload();
  set(null);
  assert.ok(element.classList.contains('vv-busy'));
  assert.equal(find('caption').textContent, 'layer 2, head 1');
  set('No such head.');
  assert.deepEqual([find('image').hidden, find('bar').hidden, find('save').hidden], [true, true, true]);
  assert.deepEqual([find('empty').textContent, find('empty').hidden], ['No such head.', false]);
  assert.deepEqual([find('rings').childElementCount, find('caption').textContent], [0, '']);
  assert.ok(!element.classList.contains('vv-busy'));
  set({ ...shown });
  globalThis.fetch = /** @type {any} */ (() => Promise.reject(new Error('refused')));
  /** @type {any} */ (find('image')).onerror();
  await settled();
  assert.match(find('empty').textContent, /could not be fetched/);
  set({ ...shown, src: '/z.png' });
  const late = /** @type {any} */ (find('image')).onerror;
  set({ ...shown, src: '/w.png' });
  late();
  await settled();
  assert.equal(find('empty').textContent, '');
  globalThis.fetch = /** @type {any} */ (() => new Promise(() => {})); // as where no server answers
  /** @type {any} */ (find('image')).onerror();
  await settled();
  assert.equal(find('empty').textContent, '');
});

test('the pointer reads the number under it, inside the part that the model received', () => {
  const { find } = mount(PICTURE, shown);
  const image = find('image');
  const tip = find('tip');
  const at = (/** @type {number} */ clientX, /** @type {number} */ clientY) => {
    tip.hidden = true;
    showTip(/** @type {any} */ (find), /** @type {any} */ ({ clientX, clientY }), /** @type {any} */ (shown));
  };
  image.box = find('frame').box = { left: 100, top: 30, width: 320, height: 80 };
  at(100 + 2 * 60, 30 + 2 * 25); // x = 20 + 60, y = 10 + 25
  assert.deepEqual([tip.hidden, tip.textContent], [false, 'row 2, column 2: cell 14']);
  assert.deepEqual([tip.style.left, tip.style.right, tip.style.top], ['', '214px', '20px']);
  find('frame').box = { left: 100, top: 30, width: 500, height: 80 };
  at(101, 31);
  assert.deepEqual(
    [tip.textContent, tip.style.left, tip.style.right, tip.style.top],
    ['row 0, column 0: cell 0', '15px', '', '0px'],
  );
  at(100 + 2 * 149, 30 + 79);
  assert.equal(tip.textContent, 'row 3, column 5: cell 23');
  for (const [x, y] of [
    [100 + 2 * 151, 40],
    [99, 40],
    [110, 29],
    [110, 30 + 81],
  ]) {
    at(x, y);
    assert.ok(tip.hidden, `${x}, ${y}`);
  }
});

test('files lie behind the prefix of the page', () => {
  const browser = new Browser();
  browser.window.gradio_config = { root: '/behind' };
  const { find } = mount(PICTURE, shown, { browser });
  assert.equal(find('image').src, '/behind/picture/x.png');
  assert.equal(/** @type {any} */ (find('save')).getAttribute('href'), '/behind/picture/x.png?save=1');
});
