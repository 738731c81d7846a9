// The explorer outside the page: in a notebook, where its choice is shared with Python, and in a file of its own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as rest } from 'node:timers/promises';
import { deflateSync } from 'node:zlib';

import { widget } from '../../vit_viz/notebook/widget.js';
import { start } from '../../vit_viz/offline/page.js';
import { Browser, Element, parse, read } from './browser.js';
import { makeTrace } from './oracle.js';
import { settle } from './room.js';
import { layerBuffer, tables } from './visit.js';

const HTML = read('../../vit_viz/explorer/explorer.html').replaceAll('__ID__', 'vv0');

/** Layers as they are packed: all first bytes, then all second ones, compressed. */
function packed(/** @type {any} */ trace, /** @type {number} */ layer) {
  const bytes = new Uint8Array(layerBuffer(trace, layer));
  const planes = [0, 1].flatMap((place) => [...bytes].filter((_, i) => i % 2 === place));
  return new Uint8Array(deflateSync(Uint8Array.from(planes)));
}

/** A page around an explorer; `dataset` is that of its body. */
function page({ dataset = {}, isDark = false, more = {} } = {}) {
  const browser = new Browser();
  const window = browser.window;
  /** @type {any} */
  const theme = Object.assign(new Element('media'), { matches: isDark });
  class ResizeObserver {
    observe() {}

    disconnect() {
      window.disconnected = true;
    }
  }
  class CSSStyleSheet {
    text = '';

    replaceSync(/** @type {string} */ text) {
      this.text = text;
    }
  }
  const documentElement = new Element('html');
  const made = /** @type {any} */ (browser.globals.document).createElement;
  const createElement = (/** @type {string} */ tag) => {
    const node = made(tag);
    Object.defineProperty(node, 'innerHTML', {
      set(html) {
        node.replaceChildren(...parse(html).children);
      },
    });
    node.attachShadow = (/** @type {any} */ { mode }) => {
      node.shadow = Object.assign(new Element('root'), { mode });
      return node.shadow;
    };
    return node;
  };
  /** @type {Record<string, any>} */
  const byId = {};
  Object.assign(browser.globals.document, {
    body: { dataset },
    documentElement,
    createElement,
    getElementById: (/** @type {string} */ id) => byId[id] ?? null,
  });
  const asked = (/** @type {string} */ query) => (query.includes('dark') ? theme : { matches: false });
  browser.install({ matchMedia: asked, ResizeObserver, CSSStyleSheet, ...more });
  return { browser, theme, byId, documentElement };
}

/** A notebook's widget, whose kernel has all layers. */
function notebook(where = {}, view = /** @type {any} */ ({})) {
  const around = page(where);
  const trace = makeTrace({ view: { layer: 0, norm: true } });
  /** @type {Record<string, any>} */
  const traits = {
    facts: { value: trace, tables, packing: { storage: 'fp16', pool: null } },
    layer: 1,
    head: 2,
    query: '1,2',
    ...view,
  };
  /** @type {Record<string, ((...args: any[]) => void)[]>} */
  const hears = {};
  /** @type {any[]} */
  const sent = [];
  let saved = 0;
  const model = {
    get: (/** @type {string} */ name) => traits[name],
    set: (/** @type {string} */ name, /** @type {any} */ value) => void (traits[name] = value),
    save_changes: () => void (saved += 1),
    on: (/** @type {string} */ name, /** @type {any} */ hear) => void (hears[name] ??= []).push(hear),
    off: (/** @type {string} */ name, /** @type {any} */ hear) =>
      void (hears[name] = hears[name].filter((one) => one !== hear)),
    send: (/** @type {any} */ content) => void sent.push(content),
  };
  const el = new Element('div');
  const end = widget(HTML, 'p { color: red }').render(/** @type {any} */ ({ model, el }));
  const [outer] = /** @type {any} */ (el.children);
  const host = outer.shadow.children[0];
  const part = (/** @type {string} */ name) => host.querySelector(`[data-vv=${name}]`);
  const answer = async () => {
    for (const { layer } of sent.splice(0).filter((content) => 'layer' in content)) {
      const bytes = packed(trace, layer);
      for (const hear of hears['msg:custom']) hear({ layer }, [new DataView(bytes.buffer)]);
    }
    await settle();
    around.browser.pass(60);
    await settle();
    around.browser.pass(600);
    await settle();
  };
  return { ...around, trace, traits, hears, sent, el, outer, host, part, end, answer, saves: () => saved };
}

test('in a notebook the explorer is out of reach of its rules and keys', () => {
  const { outer, host, part } = notebook();
  assert.equal(outer.dataset.lmSuppressShortcuts, 'true');
  assert.equal(outer.shadow.mode, 'open');
  assert.deepEqual(
    outer.shadow.adoptedStyleSheets.map((/** @type {any} */ sheet) => sheet.text),
    ['p { color: red }'],
  );
  assert.equal(host.className, 'vv-host');
  assert.equal(part('closer').hidden, true);
});

test('it is as dark as the notebook says, else as the system', () => {
  const classOf = (/** @type {any} */ dataset, isDark = false) =>
    notebook({ dataset, isDark }).host.className;
  assert.equal(classOf({ jpThemeLight: 'false' }), 'vv-host dark');
  assert.equal(classOf({ jpThemeLight: 'true' }, true), 'vv-host');
  assert.equal(classOf({ vscodeThemeKind: 'vscode-dark' }), 'vv-host dark');
  assert.equal(classOf({ vscodeThemeKind: 'vscode-light' }, true), 'vv-host');
  assert.equal(classOf({}, true), 'vv-host dark');
});

test('it opens at the layer, head and query of Python, and asks the kernel for that layer first', async () => {
  const { sent, part, answer } = notebook();
  assert.deepEqual(sent[0], { layer: 1 });
  await answer();
  assert.match(part('caption').textContent, /layer 1, head 2/i);
  assert.match(part('caption').textContent, /\(1, 2\)/);
  const exact = sent.find((content) => 'ask' in content);
  assert.deepEqual(
    [exact.question, exact.asked.layer, exact.asked.head, exact.asked.query, exact.asked.norm],
    ['look', 1, '2', '1,2', true],
  );
});

test('what is chosen there is shared with Python, and what Python chooses is shown', async () => {
  const { traits, hears, part, answer, saves, browser } = notebook();
  await answer();
  const before = saves();
  Object.assign(traits, { layer: 2, head: 0, query: '0,3' });
  for (const hear of hears['change:layer']) hear();
  browser.pass(600);
  await settle();
  assert.equal(part('caption').textContent, 'Layer 2, head 0: computing …');
  while (/computing/.test(part('caption').textContent)) await answer(); // layers are unpacked in their own time
  assert.match(part('caption').textContent, /layer 2, head 0: patch \(0, 3\)/i);
  assert.equal(saves(), before); // an echo is not told
  traits.query = '1,1';
  for (const hear of hears['change:query']) hear();
  browser.pass(600);
  assert.match(part('caption').textContent, /\(1, 1\)/);
  const press = { clientX: 0, clientY: 0, pointerType: 'mouse', pointerId: 4 };
  part('box').box = { left: 0, top: 0, width: 600, height: 400 };
  part('box').fire('pointerdown', { ...press, clientX: 5, clientY: 5 });
  part('box').fire('pointerup', { ...press, clientX: 5, clientY: 5 });
  part('box').fire('click', { ...press, clientX: 5, clientY: 5 });
  browser.pass(600);
  await settle();
  assert.deepEqual([traits.layer, traits.head, traits.query], [2, 0, '0,0']);
  assert.equal(saves(), before + 1);
});

test('a notebook without a kernel shows the picture that it keeps, until one answers', async () => {
  const { browser, el, outer, answer } = notebook({}, { still: 'data:image/jpeg;base64,AA' });
  browser.pass(4900);
  assert.deepEqual([outer.hidden ?? false, el.children.length], [false, 1]);
  browser.pass(200);
  assert.deepEqual([outer.hidden, el.children[1].src], [true, 'data:image/jpeg;base64,AA']);
  await answer();
  assert.deepEqual([outer.hidden, el.children.length], [false, 1]);
});

test('a kernel that answers is never taken for gone, nor is there a picture where none is kept', async () => {
  const live = notebook({}, { still: 'data:image/jpeg;base64,AA' });
  await live.answer();
  live.browser.pass(9000);
  assert.equal(live.el.children.length, 1);
  const bare = notebook();
  bare.browser.pass(9000);
  assert.deepEqual([bare.outer.hidden ?? false, bare.el.children.length], [false, 1]);
});

test('a widget that is closed hears nothing more', async () => {
  const { hears, end, answer, browser } = notebook();
  await answer();
  assert.deepEqual(Object.keys(hears).sort(), ['change:head', 'change:layer', 'change:query', 'msg:custom']);
  end();
  assert.deepEqual(
    Object.values(hears).map((all) => all.length),
    [0, 0, 0, 0],
  );
  assert.equal(browser.window.disconnected, true);
});

/** A file with three layers in it. */
async function file({ isDark = false, isOld = false } = {}) {
  const around = page({ isDark, more: isOld ? { DecompressionStream: undefined } : {} });
  const trace = makeTrace({});
  const { byId } = around;
  const hold = (/** @type {string} */ id, /** @type {string} */ text) => (byId[id] = { textContent: text });
  hold('vv-facts', JSON.stringify({ value: trace, tables, packing: { storage: 'fp16', pool: null } }));
  for (let layer = 0; layer < trace.layers; layer++)
    hold(`vv-layer-${layer}`, Buffer.from(packed(trace, layer)).toString('base64'));
  byId['vv-explorer'] = parse(HTML);
  start();
  const { explorer } = byId['vv-explorer'];
  const here = () => explorer.store?.layers.size ?? trace.layers;
  for (let turns = 0; turns < 5000 && here() < trace.layers; turns++) {
    await rest(1); // until they are unpacked
    around.browser.pass(60);
  }
  const part = (/** @type {string} */ name) => byId['vv-explorer'].querySelector(`[data-vv=${name}]`);
  return { ...around, part, explorer, trace };
}

test('a file shows the explorer of its own layers, without a place for another picture', async () => {
  const { part, explorer, trace } = await file();
  assert.equal(part('closer').hidden, true);
  assert.equal(part('root').dataset.state, 'ready');
  const { q } = explorer.store.layers.get(2);
  assert.equal(explorer.store.layers.size, 3); // all were read from the page
  const halves = new Uint16Array(layerBuffer(trace, 2), 8 * trace.heads * trace.tokens).slice(0, 8);
  const numbers = [...halves].map((half) => 0.4 * [0, 0x3c00, 0x4000, 0x4200].indexOf(half));
  assert.deepEqual([...q.slice(0, 8)], numbers.map(Math.fround));
});

test('a file is as dark as the reader’s system, also where that changes', async () => {
  const { documentElement, theme } = await file({ isDark: true });
  assert.ok(documentElement.classList.contains('dark'));
  theme.matches = false;
  theme.fire('change');
  assert.ok(!documentElement.classList.contains('dark'));
  assert.ok(!(await file()).documentElement.classList.contains('dark'));
});

test('a browser that cannot unpack layers is told which one can', async () => {
  const { part } = await file({ isOld: true });
  assert.match(part('message').textContent, /^This page needs a newer browser/);
  assert.equal(part('root').dataset.state, 'empty');
});
