// The tour: which stop it begins at, what it does there, what ends it, and what is remembered.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { START, STOPS, isSeen, mount as mountTour } from '../../vit_viz/ui/tour/tour.js';
import { Browser, mount, parse, read } from './browser.js';
import { page } from './document.js';
import { placeAt } from './room.js';
import { Store } from '../../vit_viz/web/kit/store.js';

const TOUR = read('../../vit_viz/ui/tour/tour.html');

/** Storage as a browser has it; null: one that refuses. @param {Record<string, string> | null} kept */
function storage(kept) {
  const given = () => {
    if (!kept) throw new Error('SecurityError');
    return kept;
  };
  return {
    getItem: (/** @type {string} */ name) => given()[name] ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ value) => void (given()[name] = value),
  };
}

/** The tour on a page that has what its stops are about, but for some. */
function opened(
  /** @type {Record<string, string> | null} */ kept = {},
  /** @type {string[]} */ missing = [],
) {
  const browser = new Browser();
  const at = placeAt('?image=lion&tab=tokens&layer=3&head=1');
  const store = new Store(JSON.parse(read('./links.json')).fields, at);
  const heard = /** @type {string[]} */ ([]);
  const parts = new Map(
    STOPS.filter(({ about }) => !missing.includes(about)).map(({ about }) => {
      const part = about.includes('range')
        ? parse('<input type="range" min="0" max="50" />')
        : parse('<div></div>');
      const node = about.includes('range') ? part.querySelector('input') : part;
      Object.assign(node, {
        getBoundingClientRect: () => ({ left: 600, top: 10, right: 680, bottom: 50, width: 80, height: 40 }),
      });
      Object.assign(node, { scrollIntoView: () => heard.push('scrolled') });
      for (const event of ['keydown', 'input', 'change'])
        node.addEventListener(event, () => heard.push(event));
      Object.defineProperty(node, 'isConnected', { value: true });
      return [about, node];
    }),
  );
  const document = /** @type {any} */ (browser.globals.document);
  document.getElementById = (/** @type {string} */ id) => ({
    getAttribute: () => String(id === `vv-tab-${store.view.tab.peek()}-button`),
  });
  document.elementsFromPoint = () => [];
  document.querySelector = (/** @type {string} */ selector) => parts.get(selector) ?? null;
  Object.assign(browser.globals, {
    localStorage: storage(kept),
    performance: { now: () => browser.now },
    KeyboardEvent: page.KeyboardEvent,
    Event: page.Event,
    Node: { TEXT_NODE: 3 },
  });
  const part = mount((element) => mountTour(element, { store }), { html: TOUR, browser });
  Object.defineProperty(part.element, 'isConnected', { value: true, configurable: true });
  Object.assign(browser.window, { innerWidth: 1000, scrollY: 300 });
  browser.window.scrollTo = (/** @type {{top: number}} */ { top }) => heard.push(`scrolled to ${top}`);
  browser.window.fire(START);
  return { ...part, at, store, document, heard, parts, browser };
}

const settled = () => new Promise((done) => setImmediate(() => setImmediate(done)));
/** What a moment brings. @param {{browser: Browser}} part */
async function moment({ browser }) {
  browser.pass(20);
  await settled();
}

const title = (/** @type {any} */ part) => part.find('tour-title').textContent;

test('each stop opens its tab, frames what it is about and acts once; behind the last one it is over', async () => {
  const kept = /** @type {Record<string, string>} */ ({});
  const part = opened(kept);
  for (const [place, stop] of STOPS.entries()) {
    await moment(part);
    assert.deepEqual([title(part), part.find('tour').dataset.state], [stop.title, 'open']);
    for (const [name, value] of Object.entries(stop.view)) assert.equal(part.store.view[name].value, value);
    assert.equal(part.find('tour-ring').style.left, '600px');
    assert.equal(part.find('tour-back').disabled, place === 0);
    assert.equal(part.browser.timers.size, 1); // one ring follows, whichever stop it is
    part.find('tour-next').click();
  }
  assert.deepEqual([part.find('tour').hidden, part.find('tour-ring').hidden, isSeen()], [true, true, true]);
  assert.equal(part.heard.filter((event) => event === 'keydown').length, 1);
  assert.deepEqual(part.heard.filter((event) => event === 'input' || event === 'change'), ['input', 'change']); // prettier-ignore
  assert.equal(/** @type {any} */ (part.parts.get(STOPS[2].about)).value, '10');
});

test('the view is left as it was found, without a step of the history; not where another picture is looked at', async () => {
  const part = opened();
  await moment(part);
  const view = () => ['tab', 'layer', 'head', 'explain'].map((name) => part.store.view[name].value);
  const before = ['tokens', 3, 1, part.store.view.explain.value];
  part.find('tour-next').click();
  await moment(part);
  part.store.set({ layer: 5, head: 0 }); // as the stop does on the page
  assert.deepEqual(view().slice(0, 3), ['look', 5, 0]);
  part.find('tour-end').click();
  await moment(part);
  assert.deepEqual(view(), before);
  assert.equal(part.heard.at(-1), 'scrolled to 300');
  part.browser.window.fire(START);
  await moment(part);
  part.store.look({ image: 'tower' });
  part.find('tour-end').click();
  await moment(part);
  assert.deepEqual([part.store.view.tab.value, part.store.view.image.value], ['look', 'tower']);
  assert.deepEqual(
    part.at.written.filter(([change, pushed]) => pushed && !('image' in change)),
    [],
  );
});

test('the card stands where it hides the least', async () => {
  const part = opened();
  const card = part.find('tour');
  const lies = (/** @type {any} */ { dataset: { end, side } }) => ({
    ...(side === 'left' ? { left: 20, right: 400 } : { left: 600, right: 980 }),
    ...(end === 'top' ? { top: 20, bottom: 220 } : { top: 500, bottom: 700 }),
    ...{ width: 380, height: 200 },
  });
  Object.assign(card, { getBoundingClientRect: () => lies(card) });
  const words = parse('<p>lion</p>').querySelector('p');
  part.document.elementsFromPoint = (/** @type {number} */ x, /** @type {number} */ y) => [
    card,
    ...(x > 500 || y > 400 ? [words] : []),
  ];
  await moment(part);
  assert.deepEqual([card.dataset.end, card.dataset.side], ['top', 'left']);
  part.document.elementsFromPoint = (/** @type {number} */ _, /** @type {number} */ y) =>
    y > 400 ? [words] : [];
  const framed = { left: 100, top: 30, right: 140, bottom: 70, width: 40, height: 40 }; // there, small
  Object.assign(/** @type {any} */ (part.parts.get(STOPS[0].about)), { getBoundingClientRect: () => framed });
  await moment(part);
  assert.deepEqual([card.dataset.end, card.dataset.side], ['top', 'right']);
});

test('it goes on where it was left, and begins anew once it was seen', async () => {
  const kept = /** @type {Record<string, string>} */ ({});
  const part = opened(kept);
  part.find('tour-next').click();
  part.find('tour-next').click();
  part.find('tour-end').click();
  assert.deepEqual([part.find('tour').hidden, isSeen()], [true, false]);
  assert.equal(title(opened(kept)), STOPS[2].title);
  assert.equal(title(opened({ 'vit_viz-tour': 'done' })), STOPS[0].title);
  assert.equal(title(opened({ 'vit_viz-tour': '97' })), STOPS[0].title);
});

test('a browser that keeps nothing has the tour from its start', async () => {
  const part = opened(null);
  assert.equal(title(part), STOPS[0].title);
  part.find('tour-next').click();
  assert.deepEqual([title(part), isSeen()], [STOPS[1].title, false]);
});

test('what is not there is not framed, and the tour goes on', async () => {
  const part = opened(/** @type {Record<string, string>} */ ({}), [STOPS[0].about]);
  await settled();
  assert.equal(part.find('tour').dataset.state, 'opening');
  for (let time = 0; time < 13_000; time += 1000) {
    part.browser.pass(1000);
    await settled();
  }
  assert.deepEqual([part.find('tour').dataset.state, part.find('tour-ring').hidden], ['missing', true]);
  part.find('tour-next').click();
  await moment(part);
  assert.equal(part.find('tour').dataset.state, 'open');
});

test('whoever goes on before a stop has opened sees the next one only', async () => {
  const part = opened(/** @type {Record<string, string>} */ ({}), [STOPS[2].about]);
  part.find('tour-next').click();
  part.find('tour-next').click();
  part.find('tour-next').click();
  await moment(part);
  assert.deepEqual([title(part), part.find('tour').dataset.state], [STOPS[3].title, 'open']);
  part.find('tour-back').click();
  part.find('tour-end').click();
  part.browser.pass(20_000);
  await settled();
  assert.deepEqual([part.find('tour').hidden, part.heard.includes('input')], [true, false]);
});
