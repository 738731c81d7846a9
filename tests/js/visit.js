// An explorer on a page of its own, with a server whose layers have known queries and keys.

import { layerBytes } from '../../vit_viz/explorer/attention.js';
import { Explorer } from '../../vit_viz/explorer/explorer.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser, parse, read } from './browser.js';
import { attentionOf, makeTrace, random } from './oracle.js';
import { GRAYS, settle } from './room.js';

/** @typedef {import('./document.js').Element} Element */

export const tables = { viridis: GRAYS, magma: GRAYS, cividis: GRAYS, gray: GRAYS };

/**
 * An explorer on a page of its own, with a server that has layers of known queries and keys, and a host that keeps the view.
 * `told`: 'place' and 'view' (what the user chose, with and without a way Back), 'closer', 'again'.
 */
export function open(
  changes = {},
  { chosen = /** @type {any} */ ({}), answer = /** @type {any} */ (null) } = {},
) {
  const trace = makeTrace(changes);
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  /** @type {[string, any][]} */
  const told = [];
  const fetch = async (/** @type {string} */ path) => {
    asked.push(path);
    const found = answer?.(path) ?? standard(path, trace);
    if (found instanceof Error) throw found;
    return { status: 200, ok: true, headers: { get: () => 'qk' }, ...found };
  };
  class ResizeObserver {
    observe() {}

    disconnect() {
      browser.window.disconnected = true;
    }
  }
  browser.install({ fetch, ResizeObserver });
  const element = parse(read('../../vit_viz/explorer/explorer.html').replaceAll('__ID__', 'vv0'));
  /** @type {Record<string, any>} */
  const parts = Object.fromEntries(
    element.querySelectorAll('[data-vv]').map((node) => [node.dataset.vv, node]),
  );
  parts.root.box = { left: 0, top: 0, width: 1000, height: 800 };
  parts.box.box = { left: 100, top: 50, width: 600, height: 400 };
  parts.cells.box = { left: 0, top: 500, width: 400, height: 90 };
  const kept = { chosen };
  const host = {
    chosen: () => kept.chosen,
    keep(/** @type {any} */ view, /** @type {any} */ _trace, /** @type {any} */ { push, byUser }) {
      kept.chosen = { ...view };
      if (byUser) told.push([push ? 'place' : 'view', { ...view }]);
    },
    closer: (/** @type {string} */ part) => void told.push(['closer', { part }]),
    again: () => void told.push(['again', {}]),
  };
  const explorer = new Explorer(/** @type {any} */ (element), host, tables, SERVER);
  /** The middle of a patch, and of a cell, in the window. */
  const patch = (/** @type {number} */ row, /** @type {number} */ col) => ({
    clientX: 100 + (600 * (col + 0.5)) / trace.grid[1],
    clientY: 50 + (400 * (row + 0.5)) / trace.grid[0],
    pointerType: 'mouse',
    pointerId: 4,
  });
  const cell = (/** @type {number} */ layer, /** @type {number} */ column) => ({
    clientX: (400 * (column + 0.5)) / (trace.heads + 1),
    clientY: 500 + (90 * (layer + 0.5)) / trace.layers,
    pointerType: 'mouse',
  });
  const show = async (/** @type {any} */ value = trace) => {
    explorer.show(value);
    await settle();
    browser.pass(60);
    await settle();
    browser.pass(300);
    await settle();
  };
  return { explorer, trace, browser, asked, told, kept, parts, patch, cell, show, element };
}

function standard(/** @type {string} */ path, /** @type {any} */ trace) {
  if (path.startsWith('/vit_viz/layer/')) {
    const buffer = layerBuffer(trace, Number(path.split('/').at(-1)));
    return { arrayBuffer: async () => buffer };
  }
  if (path.startsWith('/vit_viz/numbers/'))
    return {
      json: async () => ({
        max: 0.43215,
        peak: [3, 1],
        patches: 0.75,
        prefix: { class: 0.2, 'register 0': 0.05 },
      }),
    };
  const rows = new Float32Array(trace.heads * trace.tokens).fill(1 / trace.tokens);
  return { arrayBuffer: async () => rows.buffer };
}

/** Queries and keys that are 0, 1, 2 or 3, exact in fp16. */
function operands(/** @type {any} */ { heads, tokens, head_dim: dim }, /** @type {number} */ layer) {
  const make = (/** @type {number} */ seed) => {
    const next = random(seed);
    return Float32Array.from({ length: heads * tokens * dim }, () => Math.floor(2 * next() + 2));
  };
  return [make(5 + layer), make(55 + layer)];
}

export function layerBuffer(/** @type {any} */ trace, /** @type {number} */ layer) {
  const { heads, tokens, head_dim: dim } = trace;
  const buffer = new ArrayBuffer(layerBytes('qk', heads, tokens, dim));
  const lse = new Float32Array(buffer, 0, heads * tokens);
  new Float32Array(buffer, 4 * heads * tokens, heads * tokens).fill(2);
  const [q, k] = operands(trace, layer);
  const bits = new Uint16Array(buffer, 8 * heads * tokens);
  const half = [0, 0x3c00, 0x4000, 0x4200];
  [...q, ...k].forEach((value, i) => (bits[i] = half[value]));
  for (let i = 0; i < heads * tokens; i++) {
    const head = Math.floor(i / tokens);
    let sum = 0;
    for (let j = 0; j < tokens; j++) {
      let score = 0;
      for (let t = 0; t < dim; t++) score += q[i * dim + t] * k[(head * tokens + j) * dim + t];
      sum += Math.exp(0.4 * score);
    }
    lse[i] = Math.log(sum);
  }
  return buffer;
}

export function expected(/** @type {any} */ trace, /** @type {number} */ layer) {
  const [q, k] = operands(trace, layer);
  return attentionOf(q, k, { heads: trace.heads, tokens: trace.tokens, headDim: trace.head_dim, scale: 0.4 });
}
