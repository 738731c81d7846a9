// Rooms outside the app: in a notebook, where what is chosen is shared with Python, and in a file of their own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as rest } from 'node:timers/promises';
import { deflateSync } from 'node:zlib';

import { widget } from '../../vit_viz/notebook/widget.js';
import { thePage } from '../../vit_viz/web/kit/page.js';
import { mount } from '../../vit_viz/web/look/room.js';
import { start } from '../../vit_viz/offline/page.js';
import { start as unpack } from '../../vit_viz/offline/start.js';
import { Browser, Element, parse, read } from './browser.js';
import { close, makeTrace } from './oracle.js';
import { fields, settle } from './room.js';
import { layerBuffer, tables } from './visit.js';

const HTML = read('../../vit_viz/explorer/explorer.html').replaceAll('__ID__', 'vv0');

/** Layers as they are packed: all first bytes, then all second ones, compressed. */
function packed(/** @type {any} */ trace, /** @type {number} */ layer) {
  const bytes = new Uint8Array(layerBuffer(trace, layer));
  const planes = [0, 1].flatMap((place) => [...bytes].filter((_, i) => i % 2 === place));
  return new Uint8Array(deflateSync(Uint8Array.from(planes)));
}

/** Bytes as a page has them (vit_viz/offline/letters.py): a row of bits in groups of 13, each two letters, of at most 6 bits one. */
function letters(/** @type {Uint8Array} */ bytes) {
  const codes = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i));
  const alphabet = codes.filter((letter) => !'&<>'.includes(letter));
  const bits = [...bytes].flatMap((byte) => Array.from({ length: 8 }, (_, i) => (byte >> i) & 1));
  let text = '';
  for (let i = 0; i < bits.length; i += 13) {
    const group = bits.slice(i, i + 13);
    const value = group.reduce((sum, bit, place) => sum + bit * 2 ** place, 0);
    text += alphabet[value % 91] + (group.length > 6 ? alphabet[Math.floor(value / 91)] : '');
  }
  return text;
}

/** A page around an explorer; `dataset` is that of its body. */
function page({ dataset = {}, isDark = false, search = '', more = {} } = {}) {
  const browser = new Browser(search);
  const window = browser.window;
  /** @type {any} */
  const theme = Object.assign(new Element('media'), { matches: isDark });
  class ResizeObserver {
    observe() {}

    disconnect() {
      window.disconnected = true;
    }
  }
  class MutationObserver {
    constructor(/** @type {() => void} */ changed) {
      this.changed = changed;
    }

    observe(/** @type {any} */ element) {
      element.changed = this.changed;
    }

    disconnect() {
      body.changed = null;
    }
  }
  class CSSStyleSheet {
    text = '';

    replaceSync(/** @type {string} */ text) {
      this.text = text;
    }
  }
  const [documentElement, body] = /** @type {any[]} */ ([new Element('html'), new Element('body')]);
  Object.assign(body.dataset, dataset);
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
    body,
    head: documentElement,
    documentElement,
    createElement,
    getElementById: (/** @type {string} */ id) => byId[id] ?? null,
  });
  const asked = (/** @type {string} */ query) => (query.includes('dark') ? theme : { matches: false });
  class Image {}
  browser.install({ matchMedia: asked, ResizeObserver, MutationObserver, CSSStyleSheet, Image, ...more });
  return { browser, theme, body, byId, documentElement };
}

/** A notebook's widget, whose kernel has all layers. */
function notebook(where = {}, view = /** @type {any} */ ({})) {
  const around = page(where);
  const trace = makeTrace({});
  const own = fields.map((field) => (field.link === 'norm' ? { ...field, default: true } : field));
  /** @type {Record<string, any>} */
  const traits = {
    facts: { value: trace, fields: own, packing: { storage: 'fp16', pool: null }, tables },
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
    await settle();
    const layers = sent.filter((content) => 'layer' in content);
    sent.splice(0, sent.length, ...sent.filter((content) => !layers.includes(content)));
    for (const { layer } of layers) {
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
  const { outer, host } = notebook();
  assert.equal(outer.dataset.lmSuppressShortcuts, 'true');
  assert.equal(outer.shadow.mode, 'open');
  assert.deepEqual(
    outer.shadow.adoptedStyleSheets.map((/** @type {any} */ sheet) => sheet.text),
    ['p { color: red }'],
  );
  assert.equal(host.className, 'vv-host');
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

test('it follows a theme that changes while it is shown, and no longer', () => {
  const { host, body, end } = notebook({ dataset: { jpThemeLight: 'true' } });
  body.dataset.jpThemeLight = 'false';
  body.changed();
  assert.equal(host.className, 'vv-host dark');
  end();
  assert.equal(body.changed, null);
});

test('it opens at the layer, head and query of Python, and asks the kernel for that layer first', async () => {
  const { sent, part, answer } = notebook();
  await settle();
  assert.deepEqual(sent[0], { layer: 1 });
  const caption = () => part('caption').textContent;
  while (!caption() || /computing/.test(caption())) await answer(); // layers are unpacked in their own time
  assert.match(caption(), /layer 1, head 2/i);
  assert.match(caption(), /\(1, 2\)/);
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
  for (const key of ['ArrowUp', 'Enter']) part('mosaic').fire('keydown', { key });
  browser.pass(600);
  await settle();
  assert.deepEqual([traits.layer, traits.head], [1, 0]); // as numbers
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

/** A file with three layers in it, and an answer. */
async function file({ isDark = false, search = '' } = {}) {
  const around = page({ isDark, search });
  const trace = makeTrace({ name: 'lion', photo: 'data:image/webp;base64,AA' });
  const { byId, documentElement } = around;
  const hold = (/** @type {string} */ id, /** @type {string} */ text) => (byId[id] = { textContent: text });
  const answers = [
    { question: 'layer_similarity', options: { role: 'queries' }, refused: 'Too few patches.' },
    { question: 'head_tables', options: {} },
  ];
  const head = JSON.stringify({ __metadata__: { vit_viz: JSON.stringify({ words: 'It is here.' }) } });
  const answer = Buffer.from([head.length, ...Array(7).fill(0), ...Buffer.from(head)]);
  hold('vv-answer-1', letters(deflateSync(answer)));
  hold(
    'vv-facts',
    JSON.stringify({ value: trace, fields, packing: { storage: 'fp16', pool: null }, answers }),
  );
  for (let layer = 0; layer < trace.layers; layer++) hold(`vv-layer-${layer}`, letters(packed(trace, layer)));
  byId['vv-page'] = new Element('main');
  around.browser.window.vit_viz = () => ({ mount });
  const tab = { name: 'look', label: 'Look', module: 'web/look/room.js', html: HTML, props: {} };
  start([tab], tables, 'p { color: red }');
  await settle();
  const part = (/** @type {string} */ name) => byId['vv-page'].querySelector(`[data-vv=${name}]`);
  const { explorer } = byId['vv-page'].querySelector('.vv-tab');
  for (let turns = 0; turns < 5000 && (explorer.store?.layers.size ?? 0) < trace.layers; turns++) {
    await rest(1); // until they are unpacked
    around.browser.pass(60);
  }
  return { ...around, part, explorer, trace, style: documentElement.children };
}

test('a file shows the explorer of its own layers', async () => {
  const { part, explorer, trace, documentElement } = await file();
  assert.equal(part('root').dataset.state, 'ready');
  assert.equal(documentElement.dataset.shape, 'usual'); // by which rooms are laid out
  assert.equal(explorer.store.layers.size, 3); // all were read from the page
  const { q } = explorer.store.layers.get(2);
  const halves = new Uint16Array(layerBuffer(trace, 2), 8 * trace.heads * trace.tokens).slice(0, 8);
  const numbers = [...halves].map((half) => 0.4 * [0, 0x3c00, 0x4000, 0x4200].indexOf(half));
  assert.deepEqual([...q.slice(0, 8)], numbers.map(Math.fround));
});

test('a file has the answers that stand in it, with their options, and names the app for others', async () => {
  await file();
  const { source, ask } = thePage();
  assert.equal((await ask('head_tables', { target: null })).words, 'It is here.');
  await assert.rejects(ask('head_tables', { query: '1,1' }), /not in the file: it is in the app/);
  await assert.rejects(ask('layer_similarity', { role: 'queries' }), { message: 'Too few patches.' });
  assert.deepEqual(['open', 'target', 'head_tables', 'layer_similarity', 'edited'].map(source.answers), [
    true,
    true,
    true,
    false,
    false,
  ]);
});

test('vectors of a file are its queries and keys, each of length 1', async () => {
  const { explorer, trace } = await file();
  const { source } = thePage();
  const { signal } = new AbortController();
  const layer = explorer.store.layers.get(1);
  for (const [role, of] of /** @type {const} */ ([
    ['keys', 'k'],
    ['queries', 'q'],
  ])) {
    const { data, tokens, dim } = await source.vectors('page', 1, role, trace.tokens, signal);
    assert.deepEqual([tokens, dim], [26, 40]);
    const token = 7;
    const own = Array.from({ length: 5 }, (_, h) => [...layer[of].slice((h * 26 + token) * 8, (h * 26 + token + 1) * 8)]).flat(); // prettier-ignore
    const length = Math.hypot(...own);
    assert.ok(
      close(
        data.slice(token * dim, (token + 1) * dim),
        own.map((value) => value / length),
        1e-6,
      ),
    );
  }
  await assert.rejects(source.vectors('page', 1, 'tokens', trace.tokens, signal), /needs the model/);
});

test('a file is as dark as the reader’s system, also where that changes', async () => {
  const { documentElement, theme } = await file({ isDark: true });
  assert.ok(documentElement.classList.contains('dark'));
  theme.matches = false;
  theme.fire('change');
  assert.ok(!documentElement.classList.contains('dark'));
  assert.ok(!(await file()).documentElement.classList.contains('dark'));
});

test('the first script runs the program, or says which browser can', async () => {
  const { byId, browser } = page();
  const { document } = /** @type {any} */ (browser.globals);
  byId['vv-program'] = { textContent: letters(deflateSync(Buffer.from('run(“it”);'))) };
  await unpack();
  const [script] = document.body.children;
  assert.deepEqual([script.tagName, script.type, script.textContent], ['SCRIPT', 'module', 'run(“it”);']);
  const old = page({ more: { DecompressionStream: undefined } });
  old.byId['vv-page'] = new Element('main');
  await unpack();
  assert.match(old.byId['vv-page'].textContent, /^This page needs a newer browser/);
});
