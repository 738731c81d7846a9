// What of the matrix the address holds: its scale, which links and how many, and the part that is in sight.

import { defaultsOf } from '../../explorer/options.js';

/**
 * @typedef {object} Options
 * @property {string} matrix_scale "log" or "linear"
 * @property {string} matrix_links "query" or "head"
 * @property {number} matrix_count of links
 * @property {string} matrix_zoom as `Panes.seen` writes it
 */

const REST = 300; // milliseconds without another choice after which the page is told

/** The options as they are shown: what the view says, but for what was chosen here and the view does not say yet. */
export class MatrixOptions {
  /** @type {Partial<Options>} */
  pending = {};
  areLinked = false; // whether the link that opened the page chose any of them
  isFirst = true;
  timer = 0;

  /** @param {import('../../explorer/options.js').Option[]} schema @param {(changed: Partial<Options>) => void} tell */
  constructor(schema, tell) {
    this.now = /** @type {Options} */ (defaultsOf(schema));
    this.tell = tell;
  }

  /** Takes what the view says. */
  settle(/** @type {Partial<Options> | undefined} */ told) {
    const known = new Map(Object.entries(told ?? {}));
    for (const [name, value] of Object.entries(this.pending)) {
      if (known.get(name) === value) Reflect.deleteProperty(this.pending, name);
    }
    const next = { ...this.now, ...told, ...this.pending };
    if (this.isFirst) this.areLinked = JSON.stringify(next) !== JSON.stringify(this.now);
    this.isFirst = false;
    this.now = next;
  }

  /** Takes what was chosen here, and tells the page once the hand rests. */
  choose(/** @type {Partial<Options>} */ changed) {
    const before = new Map(Object.entries(this.now));
    if (Object.entries(changed).every(([name, value]) => before.get(name) === value)) return;
    Object.assign(this.now, changed);
    Object.assign(this.pending, changed);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.tell({ ...this.pending }), REST);
  }
}
