// The live explorer: a photo whose patches are queries, and every layer and head answering at once.
//
// The state is one View. Whatever changes it goes through `setView`; whatever shows it happens in `render`, once per frame.

import { attachChips, makeChips, markChips, Controls } from './controls.js';
import { Frame } from './frame.js';
import { aboutOf, outline, patchQuery, queryPatches } from './geometry.js';
import { attachHands } from './gestures.js';
import { startTour } from './ghost.js';
import {
  MassBars,
  about,
  describeFrame,
  makeAxes,
  markAxes,
  setText,
  showProof,
  patchText,
  spokenFrame,
} from './labels.js';
import { place } from './closer.js';
import { LayerStore } from './layers.js';
import { fitPanels, placeCell, revealCell } from './layout.js';
import { measure } from './paint.js';
import { Pictures } from './pictures.js';
import { saveSheet, savedByHost } from './save.js';
import { Gone } from './source.js';
import { headColumn, initialView, shownColumns, updateView } from './state.js';
import { Asker, Player, exactKey } from './server.js';
/** @import { Trace } from './geometry.js' */
/** @import { Numbers } from './server.js' */
/** @import { View } from './state.js' */

/**
 * @typedef {{push?: boolean, byUser?: boolean}} How push: Back should lead to the view before; byUser: false of a view that somebody
 *     else has chosen
 *
 * Who keeps what is chosen, and opens pictures: the page around it.
 * @typedef {object} Host
 * @property {(trace: Trace) => Record<string, unknown>} chosen what differs from the view that a trace begins with
 * @property {(view: View, trace: Trace, how: Required<How>) => void} keep the view is this one now
 * @property {(part: string) => void} closer a part of the picture becomes the picture; "": the whole
 * @property {() => void} again what is known of the picture is gone: it has to be opened again
 */

const NOTHING = 'Choose a picture to see what the model looks at.';

/** One explorer on the page. */
export class Explorer {
  /** @type {Trace | null} */ trace = null;
  /** @type {View | null} */ view = null;
  /** @type {Frame | null} */ frame = null;
  /** @type {LayerStore | null} */ store = null;
  /** @type {MassBars | null} */ mass = null;
  /** @type {import('./ghost.js').Ghost | null} */ ghost = null;
  /** @type {import('./layout.js').Arrangement | null} */ mosaic = null;
  /** @type {ReturnType<typeof makeChips>} */ chips = { chips: new Map(), list: null };
  /** @type {string | null} query under the pointer */ hovered = null;
  /** @type {number | null} patch whose value is read */ spot = null;
  /** @type {Pick<View, 'layer' | 'head'> | null} head that the keys point at */ reached = null;
  /** @type {{key: string, numbers: Numbers} | null} */ exact = null;
  collecting = false;
  /** @type {import('./closer.js').Closer | null} */ closer = null;
  computed = ''; // what the frame holds
  version = 0; // counts arrivals of data
  recomputed = ''; // the picture for which the server was asked to compute again
  frameRequest = 0;
  speakTimer = 0;
  busyTimer = 0;

  /** @param {HTMLElement} element @param {Host} host @param {Record<string, string>} tables of colours @param {import('./source.js').Source} source */
  constructor(element, host, tables, source) {
    this.host = host;
    this.source = source;
    /** @type {Record<string, HTMLElement>} */
    this.parts = {};
    for (const part of element.querySelectorAll('[data-vv]')) {
      this.parts[part.getAttribute('data-vv') ?? ''] = /** @type {HTMLElement} */ (part);
    }
    this.pictures = new Pictures(this.parts, tables);
    this.parts.photo.addEventListener('load', () => this.schedule());
    this.asker = new Asker({
      answered: () => this.refresh(),
      numbers: (view, numbers) => {
        this.exact = { key: exactKey(view), numbers };
        this.schedule();
      },
      failed: (error) => this.failed(error),
    });
    this.player = new Player(
      () => this.nextLayer(),
      (playing) => this.played(playing),
    );
    this.controls = new Controls(this.parts.root, (change) => this.change(change));
    this.resizer = new ResizeObserver(() => this.fit());
    this.resizer.observe(this.parts.root);
    attachHands(this);
  }

  // --- what comes in

  /** Shows a trace; where it is the one that is shown, what was chosen of it elsewhere. @param {Trace} trace */
  show(trace) {
    setText(this.parts.message, trace.note ?? '');
    showProof(this.parts.proof, trace.proof);
    if (this.trace?.trace === trace.trace && this.store && !this.store.broken) this.follow();
    else this.open(trace);
  }

  /** Takes the view that was chosen elsewhere. */
  follow() {
    if (!this.trace || !this.view) return;
    const next = this.viewOf(this.trace);
    if (JSON.stringify(next) !== JSON.stringify(this.view)) this.setView(next, { byUser: false });
  }

  /** What is chosen of a trace; where nobody has chosen, a first look. @param {Trace} trace */
  viewOf(trace) {
    return updateView(initialView(trace), this.host.chosen(trace), trace);
  }

  /** Another trace: its photo, its axes, its layers. */
  open(/** @type {Trace} */ trace) {
    const isFirst = !this.trace && !this.host.chosen(trace).query;
    this.close();
    this.trace = trace;
    this.view = null;
    this.frame = new Frame(trace);
    this.mass = new MassBars(this.parts.mass, trace);
    this.chips = makeChips(this.parts.chips, trace);
    attachChips(this);
    this.parts.root.dataset.state = 'ready';
    place(this);
    this.store = new LayerStore(trace, this.source, {
      ready: () => this.refresh(),
      failed: (error) => this.failed(error),
    });
    this.setView(this.viewOf(trace), { byUser: false });
    this.ghost = startTour(this, isFirst);
  }

  /** Fits everything to the window. */
  fit() {
    const { trace, view, parts } = this;
    if (!trace) return;
    const { mosaic, box } = fitPanels(parts, trace, shownColumns(view, trace.heads));
    this.mosaic = mosaic;
    this.pictures.fit(mosaic, box);
    makeAxes(parts, trace, mosaic);
    if (view) this.markChoices(view);
    this.schedule();
  }

  /** Shows that there is no picture, and why. */
  clear(/** @type {string} */ note) {
    this.close();
    this.trace = null;
    this.parts.root.dataset.state = 'empty';
    setText(this.parts.message, note || NOTHING);
  }

  /** While the server works on something new the old pictures are dimmed; what is quick does not flicker. */
  setBusy(/** @type {string} */ text) {
    clearTimeout(this.busyTimer);
    const show = () => {
      const wasShown = this.parts.busy.textContent !== '';
      if (this.trace) this.parts.root.dataset.state = text ? 'busy' : 'ready';
      else if (text) setText(this.parts.message, '');
      setText(this.parts.busy, text);
      if (text || wasShown) setText(this.parts.status, text);
      if (!text && wasShown) this.speak(); // what was said of the view meanwhile is gone
    };
    if (text) this.busyTimer = window.setTimeout(show, 250);
    else show();
  }

  /** Something could not be fetched. A trace that is gone is computed again, once. */
  failed(/** @type {Error} */ error) {
    if (!this.trace || !this.store) return;
    const which = aboutOf(this.trace);
    if (error instanceof Gone && this.recomputed !== which) {
      this.store.broken = true;
      this.recomputed = which;
      return this.host.again();
    }
    setText(this.parts.message, error.message);
  }

  // --- the one way in which the view changes

  /** @param {Record<string, unknown>} options @param {How} [how] */
  change(options, how = {}) {
    if (this.view && this.trace) this.setView(updateView(this.view, options, this.trace), how);
  }

  /** @param {View} next @param {How} [how] */
  setView(next, { push = false, byUser = true } = {}) {
    if (!this.trace || !this.store) return;
    const before = this.view;
    this.view = next;
    this.store.load(next.layer);
    this.controls.show(next, this.trace, this.hasNorms());
    if (this.mosaic?.columns === shownColumns(next, this.trace.heads)) this.markChoices(next);
    else this.fit();
    if (before?.layer !== next.layer || before.head !== next.head) {
      this.reach(null);
      revealCell(this.parts.scroll, this.parts.pick);
    }
    setText(this.parts.about, about(next.query, this.trace));
    if (!this.player.playing) {
      this.host.keep(next, this.trace, { push, byUser });
      this.asker.ask(this.store, next);
    }
    this.speak();
    this.schedule();
  }

  /** Pins a query. */
  pin(/** @type {string} */ query, push = true) {
    this.hovered = null;
    if (this.view && query !== this.view.query) this.change({ query }, { push });
    else this.schedule();
  }

  /** Shows a query while the pointer is on it; null returns to the pinned one. */
  preview(/** @type {string | null} */ query) {
    if (this.reached) this.reach(null);
    if (query === this.hovered) return;
    this.hovered = query;
    this.schedule();
  }

  /** Rings the patch whose value is read. */
  read(/** @type {number | null} */ patch) {
    if (patch === this.spot) return;
    this.spot = patch;
    this.schedule();
  }

  /** Shows a head while the keys point at it; null returns to the chosen one. @param {Pick<View, 'layer' | 'head'> | null} head */
  reach(head) {
    const { trace, mosaic, parts } = this;
    this.hovered = null;
    this.reached = head;
    parts.over.hidden = !head;
    if (head && trace && mosaic) {
      placeCell(parts.over, mosaic, head.layer, headColumn(head.head, trace.heads));
      revealCell(parts.scroll, parts.over);
      this.store?.load(head.layer);
    }
    this.speak();
    this.schedule();
  }

  /** What is shown: the pinned view, or what is pointed at. @param {View} pinned @returns {View} */
  seen(pinned) {
    return { ...pinned, query: this.hovered ?? pinned.query, ...this.reached };
  }

  hasNorms() {
    if (this.trace?.norms !== undefined) return this.trace.norms;
    for (const layer of this.store?.layers.values() ?? []) return layer.norms !== null;
    return false;
  }

  toggleRegion() {
    this.collecting = !this.collecting;
    this.parts.region.setAttribute('aria-pressed', String(this.collecting));
  }

  nextLayer() {
    if (this.view && this.trace) this.change({ layer: (this.view.layer + 1) % this.trace.layers });
  }

  played(/** @type {boolean} */ playing) {
    this.parts.play.setAttribute('aria-pressed', String(playing));
    if (!playing && this.view) this.setView(this.view); // what was not told while playing
  }

  // --- what is shown

  /** New data: compute again. */
  refresh() {
    this.version += 1;
    if (this.view && this.store) {
      this.controls.show(this.view, this.store.trace, this.hasNorms());
      if (this.store.isComplete) this.recomputed = '';
    }
    this.schedule();
  }

  schedule() {
    if (!this.frameRequest) this.frameRequest = requestAnimationFrame(() => this.render());
  }

  /** One repaint: numbers, mosaic, big map, words. */
  render() {
    this.frameRequest = 0;
    const { frame, store, view: pinned } = this;
    if (!frame || !store || !pinned) return;
    const start = performance.now();
    const view = this.seen(pinned);
    const key = `${view.query}|${view.direction}|${view.norm}|${this.version}`;
    if (key !== this.computed) {
      const answer = (/** @type {number} */ l) => store.answer(l, view);
      frame.compute(view, (l) => store.get(l), answer);
      this.computed = key;
    }
    const range = this.pictures.paint(frame, view);
    this.drawRings(pinned);
    const exact = this.exact?.key === exactKey(view) ? this.exact.numbers : null;
    describeFrame(this.parts, frame, view, range, exact);
    this.parts.about.style.visibility = view.query === pinned.query ? '' : 'hidden'; // it is about that query, and keeps its place
    this.mass?.show(frame, view, exact);
    setText(this.parts.progress, store.progress(pinned.layer));
    measure('vit_viz:paint', start, this.hovered === null ? 'pinned' : 'hover');
  }

  drawRings(/** @type {View} */ pinned) {
    const { trace, parts, hovered, spot } = this;
    if (!trace) return;
    const ring = (/** @type {string} */ name, /** @type {string | null} */ query) => {
      const path = query === null ? '' : outline(queryPatches(query, trace), trace.grid);
      parts[name].setAttribute('d', path);
      parts[`${name}-halo`].setAttribute('d', path);
    };
    ring('pinned', pinned.query);
    ring('hovered', spot === null ? hovered : patchQuery([spot], trace.grid[1]));
  }

  /** Marks the chosen layer, head and token on mosaic, axes and chips. */
  markChoices(/** @type {View} */ view) {
    const { trace, parts, mosaic } = this;
    if (!trace || !mosaic) return;
    const column = headColumn(view.head, trace.heads);
    placeCell(parts.pick, mosaic, view.layer, column);
    markAxes(parts, mosaic, view.layer, column);
    markChips(this.chips, view.query, trace);
  }

  /** Says the view to screen readers, once it rests. */
  speak() {
    clearTimeout(this.speakTimer);
    if (this.player.playing) return;
    this.speakTimer = window.setTimeout(() => {
      const { frame, view, spot } = this;
      if (!frame || !view) return;
      setText(
        this.parts.status,
        spot === null ? spokenFrame(frame, this.seen(view)) : patchText(frame, view, spot),
      );
    }, 500);
  }

  /** Saves the big map with its caption and colour bar. */
  save() {
    const { trace, view, parts } = this;
    if (!trace || !view || savedByHost(parts.save, trace, view, this.source.page(trace, view))) return;
    saveSheet(parts, this.pictures, trace, view);
  }

  // --- leaving

  /** Stops whatever is under way for the present trace. */
  close() {
    this.store?.close();
    this.closer?.stop('');
    this.store = null; // from here on nothing changes the view
    this.player.stop();
    this.ghost?.stop();
    this.frame = null;
    this.asker.cancel();
    clearTimeout(this.speakTimer);
    this.hovered = this.reached = this.spot = null;
    this.computed = '';
    this.exact = null;
  }

  /** The component has left the page. */
  destroy() {
    this.close();
    this.resizer.disconnect();
  }
}
