// The small parts of the page, each run as Gradio runs it: what they show for a value, and what they tell Python.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fit, mountPlots } from '../../vit_viz/ui/kit/parts.js';
import { Browser, component, mount } from './browser.js';

const PLOTS = component(mountPlots, 'ui/kit/plots.html');

/** A figure of plotly, shown larger by a factor. */
function drawnGraph(scale = 1) {
  const style = /** @type {Record<string, string>} */ ({});
  return /** @type {any} */ ({
    style,
    offsetHeight: 400,
    getBoundingClientRect: () => ({ height: scale * 400 }),
  });
}

test('a figure that is shown larger keeps what lies below it away', () => {
  const curve = drawnGraph(1.25);
  fit(curve);
  assert.deepEqual(curve.style, { marginBottom: '100px' });
});

test('every figure of the page is fitted once, also one that comes later', () => {
  const browser = new Browser();
  const graphs = /** @type {any[]} */ ([drawnGraph()]);
  /** @type {any[]} */
  const watched = [];
  let changed = () => {};
  const globals = /** @type {any} */ (browser.globals);
  globals.document.querySelectorAll = () => graphs;
  globals.document.body = {};
  globals.MutationObserver = class {
    constructor(/** @type {() => void} */ run) {
      changed = run;
    }

    observe() {}
  };
  globals.ResizeObserver = class {
    observe(/** @type {any} */ graph) {
      watched.push(graph);
    }
  };
  mount(PLOTS, null, { browser });
  assert.deepEqual(watched, graphs);
  graphs.push(drawnGraph());
  changed();
  changed();
  assert.deepEqual(watched, graphs);
});
