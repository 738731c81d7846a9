// The live explorer: a photo whose patches are queries, and every layer and head answering at once.
//
// The state is one View. Whatever changes it goes through `setView`; whatever shows it happens in `render`, once per frame.

import { attachChips, makeChips, markChips, Controls } from './controls.js';
import { Frame } from './frame.js';
import { aboutOf, isNamed, outline, queryPatches } from './geometry.js';
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
  spokenFrame,
} from './labels.js';
import { place } from './closer.js';
import { LayerStore } from './layers.js';
import { fitPanels, placeCell, revealCell } from './layout.js';
import { measure } from './paint.js';
import { Pictures } from './pictures.js';
import { saveSheet, savedByHost } from './save.js';
import { Gone } from './source.js';
import { headColumn, initialView, linkChange, linkMatches, shownColumns, updateView } from './state.js';
import { Asker, Player, Reporter, exactKey } from './server.js';
/** @import { Trace } from './geometry.js' */
/** @import { Numbers, Trigger } from './server.js' */
/** @import { Link, View } from './state.js' */

/**
 * @typedef {{value: Trace | null, tables: Record<string, string>, busy: string}} Props
 * @typedef {{event?: 'pin' | 'view' | null, push?: boolean, byUser?: boolean}} How
 */

/**
 * Who keeps the link to what the explorer shows: the page around it.
 * @typedef {object} LinkKeeper
 * @property {(trace: Trace, insist: boolean) => Record<string, unknown>} claim the change of view that an opened link asks of
 *     this trace, once; insist: of whatever trace comes
 * @property {(trace: Trace) => boolean} names whether the link names this picture and model already
 * @property {(view: View, trace: Trace, how: {push: boolean, byUser: boolean}) => void} write the view has changed; push: Back
 *     should lead to the one before
 * @property {(link: Link) => void} await another picture was asked for, and this link waits for it
 * @property {() => void} close
 */

/** Where nobody keeps a link. @type {LinkKeeper} */
const NO_LINK = { claim: () => ({}), names: () => true, write() {}, await() {}, close() {} };

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
  link = NO_LINK;
  /** @type {ReturnType<typeof makeChips>} */ chips = { chips: new Map(), list: null };
  /** @type {string | null} query under the pointer */ hovered = null;
  /** @type {{key: string, numbers: Numbers} | null} */ exact = null;
  collecting = false;
  /** @type {import('./closer.js').Closer | null} */ closer = null;
  computed = ''; // what the frame holds
  version = 0; // counts arrivals of data
  recomputed = ''; // the picture for which the server was asked to compute again
  frameRequest = 0;
  speakTimer = 0;
  busyTimer = 0;

  /** @param {HTMLElement} element @param {Trigger} trigger @param {Props} props @param {import('./source.js').Source} source */
  constructor(element, trigger, props, source) {
    this.trigger = trigger;
    this.source = source;
    this.props = props;
    /** @type {Record<string, HTMLElement>} */
    this.parts = {};
    for (const part of element.querySelectorAll('[data-vv]')) {
      this.parts[part.getAttribute('data-vv') ?? ''] = /** @type {HTMLElement} */ (part);
    }
    this.pictures = new Pictures(this.parts, props.tables);
    this.parts.photo.addEventListener('load', () => this.schedule());
    this.reporter = new Reporter(trigger);
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

  /** Takes a new value from the server: another trace, or another view of the present one. */
  setValue(/** @type {Trace | null} */ value) {
    if (!value?.trace) return this.clear(value?.note ?? '');
    setText(this.parts.message, value.note ?? '');
    showProof(this.parts.proof, value.proof);
    if (this.trace?.trace === value.trace && this.store && !this.store.broken) return this.follow(value);
    return this.open(value);
  }

  /** Another view of the same trace, asked for by another part of the page; an echo of an older event is ignored. */
  follow(/** @type {Trace} */ value) {
    const { view } = value;
    if (!view || !this.view || this.reporter.isAhead(view)) return;
    const next = updateView(this.view, view, value);
    if (JSON.stringify(next) !== JSON.stringify(this.view)) {
      this.setView(next, { event: null, push: next.query !== this.view.query });
    }
  }

  /** Another trace: its photo, its axes, its layers. What was chosen since the page made its view of it stays chosen. */
  open(/** @type {Trace} */ trace) {
    const before = this.trace;
    const [asked, own] = [trace.view ?? {}, this.keepable(trace)];
    const believed = updateView(initialView(trace), asked, trace);
    const linked = this.link.claim(trace, !before && this.parts.root.dataset.asked === '1');
    const changes = this.reporter.isAhead(asked) ? [asked, own, linked] : [own, asked, linked];
    let view = initialView(trace);
    for (const change of changes) view = updateView(view, change, trace);
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
    const moved = Boolean(before && !this.link.names(trace)); // someone else may have written the address already
    const told = JSON.stringify(view) === JSON.stringify(believed);
    const quiet = trace.is_placed === false ? 'view' : null; // where a first look begins, the page knows from here
    this.setView(view, { event: told ? quiet : 'pin', push: moved, byUser: Boolean(before) });
    this.ghost = startTour(this, !before && !linked.query);
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

  /** What survives a change of picture or model: the options, and where it makes sense the place. */
  keepable(/** @type {Trace} */ trace) {
    if (!this.view || !this.trace) return {};
    const { layer, head, query, ...options } = this.view;
    if (this.trace.model !== trace.model) return options;
    const same = aboutOf(this.trace) === aboutOf(trace);
    return { ...options, layer, head, ...(same || isNamed(query, trace) ? { query } : {}) };
  }

  /** Shows that there is no picture, and why. */
  clear(/** @type {string} */ note) {
    this.close();
    this.trace = null;
    this.parts.root.dataset.state = 'empty';
    this.parts.root.dataset.asked = '1'; // a link may wait for its picture
    setText(this.parts.message, note || NOTHING);
  }

  /** While the server works on something new the old pictures are dimmed; what is quick does not flicker. */
  setBusy(/** @type {string} */ text) {
    clearTimeout(this.busyTimer);
    const show = () => {
      const wasShown = this.parts.busy.textContent !== '';
      if (this.trace) this.parts.root.dataset.state = text ? 'busy' : 'ready';
      setText(this.parts.busy, text);
      if (text || wasShown) setText(this.parts.status, text);
      if (!text && wasShown) this.speak(); // what was said of the view meanwhile is gone
    };
    if (text) this.busyTimer = window.setTimeout(show, 250);
    else show();
  }

  /** Back or Forward. */
  goTo(/** @type {Link} */ link) {
    if (this.trace && linkMatches(link, this.trace)) {
      const view = updateView(initialView(this.trace), linkChange(link, this.trace), this.trace);
      this.setView(view, { event: 'pin', byUser: false });
    } else {
      this.link.await(link); // the page asks for its picture
    }
  }

  /** Something could not be fetched. A trace that is gone is computed again, once. */
  failed(/** @type {Error} */ error) {
    if (!this.trace || !this.store) return;
    const which = aboutOf(this.trace);
    if (error instanceof Gone && this.recomputed !== which) {
      this.store.broken = true;
      this.recomputed = which;
      this.trigger('recompute', { seq: this.reporter.seq, ...this.payload() });
      return;
    }
    setText(this.parts.message, error.message);
  }

  // --- the one way in which the view changes

  /** @param {Record<string, unknown>} options @param {How} [how] */
  change(options, how = { event: 'view' }) {
    if (this.view && this.trace) this.setView(updateView(this.view, options, this.trace), how);
  }

  /** @param {View} next @param {How} [how] */
  setView(next, { event = 'view', push = false, byUser = true } = {}) {
    if (!this.trace || !this.store) return;
    const before = this.view;
    this.view = next;
    this.store.load(next.layer);
    this.controls.show(next, this.trace, this.hasNorms());
    if (this.mosaic?.columns === shownColumns(next, this.trace.heads)) this.markChoices(next);
    else this.fit();
    if (before?.layer !== next.layer || before.head !== next.head)
      revealCell(this.parts.scroll, this.parts.pick);
    setText(this.parts.about, about(next.query, this.trace));
    if (!this.player.playing) {
      this.link.write(next, this.trace, { push, byUser });
      if (event) this.reporter.tell(event, () => this.payload());
      this.asker.ask(this.store, next);
    }
    this.speak();
    this.schedule();
  }

  /** Pins a query. */
  pin(/** @type {string} */ query, push = true) {
    this.hovered = null;
    if (this.view && query !== this.view.query) this.change({ query }, { event: 'pin', push });
    else this.schedule();
  }

  /** Shows a query while the pointer is on it; null returns to the pinned one. */
  preview(/** @type {string | null} */ query) {
    if (query === this.hovered) return;
    this.hovered = query;
    this.schedule();
  }

  payload() {
    const { model, image, mode, trace } = /** @type {Trace} */ (this.trace);
    return { trace, model, image, mode, ...this.view };
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
      if (this.store.next() === null) this.recomputed = '';
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
    const view = this.hovered === null ? pinned : { ...pinned, query: this.hovered };
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
    this.mass?.show(frame, view, exact);
    setText(this.parts.progress, store.progress(pinned.layer));
    measure('vit_viz:paint', start, this.hovered === null ? 'pinned' : 'hover');
  }

  drawRings(/** @type {View} */ pinned) {
    const { trace, parts, hovered } = this;
    if (!trace) return;
    const ring = (/** @type {string} */ name, /** @type {string | null} */ query) => {
      const path = query === null ? '' : outline(queryPatches(query, trace), trace.grid);
      parts[name].setAttribute('d', path);
      parts[`${name}-halo`].setAttribute('d', path);
    };
    ring('pinned', pinned.query);
    ring('hovered', hovered);
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

  /** Says the pinned view to screen readers, once it rests. */
  speak() {
    clearTimeout(this.speakTimer);
    if (this.player.playing) return;
    this.speakTimer = window.setTimeout(() => {
      const { frame, view } = this;
      if (frame && view && this.hovered === null) setText(this.parts.status, spokenFrame(frame, view));
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
    this.reporter.cancel();
    clearTimeout(this.speakTimer);
    this.hovered = null;
    this.computed = '';
    this.exact = null;
  }

  /** The component has left the page. */
  destroy() {
    this.close();
    this.link.close();
    this.resizer.disconnect();
  }
}
