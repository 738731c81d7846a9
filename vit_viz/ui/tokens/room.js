// The Tokens tab: a table of small photos, a row for each question and a column for each layer, and the chosen one large. While the
// pointer moves, nothing is asked of the server: the cosines of the pointed patch with all others are computed here.

import { centreOf, patchQuery, queryTokens } from '../../explorer/geometry.js';
import { decodeTable, measure as timed } from '../../explorer/paint.js';
import { defaultsOf } from '../../explorer/options.js';
import { STRENGTHS, layerTable, suited } from '../../explorer/styles.js';
import { drawValue, finder, press, showText } from '../kit/elements.js';
import { showError } from '../kit/notes.js';
import { chooseTarget } from '../explain/target.js';
import { tokenName, whose } from './findings.js';
import { Large } from './large.js';
import { readBox, listen } from './listen.js';
import { Jobs } from '../kit/jobs.js';
import { Store } from './store.js';
import { Table } from './table.js';
import { limit } from '../kit/controls.js';
import { showControls } from './offers.js';
import { VIEWS } from './views.js';
/** @import { Job } from '../kit/jobs.js' */
/** @import { Asked, Kind, Role } from './store.js' */
/** @import { Measure, View } from './views.js' */
/** @import { Style } from '../../explorer/styles.js' */
/** @import { Mount, Trigger } from '../kit/elements.js' */
/** @import { Option } from '../../explorer/options.js' */

/**
 * @typedef {{token_measure: 'similarity' | 'components' | 'norms' | 'lens' | 'layers' | 'segments',
 *   token_role: Role, token_state: number, token_scale: 'layer' | 'shared',
 *   token_foreground: boolean, token_whitened: boolean, token_second: string, token_factor: number,
 *   token_register: boolean, token_segment_role: Role, token_method: 'k-means' | 'cut',
 *   token_count: number, token_box: string, style: Style, alpha: number, smooth: boolean}} Options
 *
 * @typedef {import('../kit/stage.js').Photo & {handle: string}} Photo
 * @typedef {Photo & SubjectFacts} Subject
 * @typedef {object} SubjectFacts
 * @property {number} revision
 * @property {number} layers
 * @property {string[]} prefix
 * @property {string[]} suffix
 * @property {string} query
 * @property {string} unlit why the photo cannot be lit; "" where it can
 * @property {Role[]} roles
 * @property {Options} chosen
 * @property {string} target index of the class of the lens; "" is the model's first
 * @property {{classes: {value?: number}[]} | null} classes the value of the chooser of classes
 * @property {{id: string, name: string}[]} pictures that can share the colours
 * @property {Photo & {note?: string} | null} second
 * @property {string} note
 */

const FLAT = 0.75; // opacity of the maps before and after a register

/** @type {Mount<{value: Subject | null, tables: Record<string, string>, options: Option[], job: Job | null, matches: any}>} */
export function mount(element, trigger, props, watch) {
  const room = new Room(element, trigger, decodeTable(props.tables.viridis), props.options);
  listen(room);
  chooseTarget(room.find('room-classes'), trigger, watch, {
    value: () => /** @type {any} */ (props.value?.classes),
    matches: () => props.matches,
  });
  watch('job', () => room.jobs.hear(props.job));
  drawValue(watch, () => room.show(props.value));
}

/** What the component shows. */
export class Room {
  /** @type {Subject | null} */ subject = null;
  /** @type {Store | null} */ store = null;
  expects = 0; // the revision from which on the server knows what was chosen here
  pinned = 0; // index of a token
  /** @type {number | null} index of a patch */ hovered = null;
  /** @type {number | null} a segment */ lit = null;
  drawing = ''; // the box that is being drawn
  /** @type {Map<string, {token: number, values: Float32Array, range: [number, number]}>} */ alike =
    new Map();
  /** @type {Map<Measure, string>} */ errors = new Map();
  unfolded = ''; // the question whose row was opened since it was chosen
  round = 0; // of loading: a newer one ends the older
  frame = 0;

  /** @param {HTMLElement} element @param {Trigger} trigger @param {Uint32Array} table @param {Option[]} schema */
  constructor(element, trigger, table, schema) {
    this.element = element;
    this.find = finder(element);
    this.trigger = trigger;
    this.colours = table;
    this.over = layerTable('heat', FLAT, table);
    this.panel = this.find('room-panel');
    this.large = new Large(this);
    this.big = this.large.sheet;
    this.table = new Table(element, () => this.scrolled());
    this.jobs = new Jobs(this.find('room-job'), trigger);
    this.options = /** @type {Options} */ ({ ...defaultsOf(schema), style: 'light', alpha: 1, smooth: true });
    limit(element, schema);
  }

  /** @type {View} */
  get view() {
    return VIEWS[this.options.token_measure];
  }

  /** The questions that are answered: the chosen one first, none that is folded. */
  get order() {
    const { token_measure: chosen } = this.options;
    const others = [...this.table.lines.keys()].filter((one) => one !== chosen && !this.table.isFolded(one));
    return [chosen, ...others];
  }

  /** The columns before a question's first photo. */
  offsetOf(/** @type {Measure} */ measure) {
    return VIEWS[measure].isPerLayer || VIEWS[measure].role(this) !== 'tokens' ? 1 : 0;
  }

  /** The names of the states of a question. */
  namesOf(/** @type {Measure} */ measure) {
    const all = Array.from({ length: this.subject?.layers ?? 0 }, (_, i) => i);
    if (measure === 'layers' || VIEWS[measure].role(this) !== 'tokens') return all.map((i) => `layer ${i}`);
    const after = all.map((i) => `after layer ${i}`);
    return VIEWS[measure].isPerLayer ? after : ['input', ...after];
  }

  /** The state that is over the photo. */
  get state() {
    const { token_state: state, token_measure: chosen } = this.options;
    const { length } = this.namesOf(chosen);
    return state >= 0 && state < length ? state : Math.floor((2 * length) / 3);
  }

  /** The states of a question that are looked at: the large one, then those that the table shows. */
  seenStates(/** @type {Measure} */ measure) {
    const offset = this.offsetOf(measure);
    const { length } = this.namesOf(measure);
    const column = this.state + this.offsetOf(this.options.token_measure);
    const states = [column, ...this.table.seen()].map((one) => one - offset);
    return [...new Set(states)].filter((one) => one >= 0 && one < length);
  }

  /** What is shown that the link does not say: the tab, the token that asks and the layer. @returns {Record<string, string | number>} */
  get shown() {
    const { grid = /** @type {[number, number]} */ ([1, 1]), query = '' } = this.subject ?? {};
    const q = query || patchQuery([centreOf(grid)], grid[1]);
    return { tab: 'tokens', tokens: this.options.token_measure, q, layer: this.state };
  }

  get cols() {
    return this.subject?.grid[1] ?? 1;
  }

  get patches() {
    return (this.subject?.grid[0] ?? 1) * this.cols;
  }

  /** Index of the token that all others are compared with. */
  get token() {
    return this.hovered === null ? this.pinned : (this.subject?.prefix.length ?? 0) + this.hovered;
  }

  /** That token as a patch; undefined where it is none. */
  get patch() {
    return this.patchOf(this.token);
  }

  /** A token as a patch; undefined where it is none. */
  patchOf(/** @type {number} */ token) {
    const patch = token - (this.subject?.prefix.length ?? 0);
    return patch >= 0 && patch < this.patches ? patch : undefined;
  }

  /** Which vector the large photo is about: "Patch (7, 7) after layer 4". */
  who() {
    const { token_measure: chosen } = this.options;
    const name = tokenName(/** @type {Subject} */ (this.subject), this.token);
    return whose(
      name,
      chosen === 'layers' ? 'tokens' : this.view.role(this),
      this.namesOf(chosen)[this.state],
    );
  }

  show(/** @type {Subject | null} */ subject) {
    if (!subject) return;
    if (subject.note || !this.subject) showError(this.find('room-error'), subject.note, { stays: true });
    this.find('room-main').hidden = !subject.handle;
    this.find('room-save').hidden = !subject.handle;
    if (!subject.handle) return;
    const isNew = subject.handle !== this.subject?.handle;
    this.subject = subject;
    if (subject.revision >= this.expects)
      this.options = { ...this.options, ...possible(subject.chosen, subject.roles) };
    const tokens = queryTokens(subject.query, { ...subject, pooling: '' });
    this.pinned =
      Array.isArray(tokens) && tokens.length ? tokens[0] : subject.prefix.length + centreOf(subject.grid);
    if (isNew) this.begin(subject);
    this.load();
  }

  /** Another picture, or another model. */
  begin(/** @type {Subject} */ subject) {
    this.store?.abort.abort();
    this.jobs.end(new Error('Another photo was chosen.'));
    const { grid, prefix, suffix } = subject;
    this.store = new Store(subject.handle, prefix.length + grid[0] * grid[1] + suffix.length);
    this.alike.clear();
    for (const measure of this.errors.keys()) this.table.tell(measure);
    this.errors.clear();
    this.hovered = null;
    this.large.map.resize(grid[1], grid[0]);
    this.big.place(subject);
    this.find('room-left').style.setProperty(
      '--vv-aspect',
      String(subject.photo_size[1] / subject.photo_size[0]),
    );
  }

  /** Something is chosen here: shown at once, and told to the page. @param {Partial<Options>} chosen */
  choose(chosen) {
    if (chosen.token_box && !readBox(chosen.token_box)) {
      showError(this.find('room-error'), '');
      showError(this.find('room-error'), 'A box is left,top,right,bottom in pixels, as 20,10,120,90.');
      return;
    }
    const before = this.state + this.offsetOf(this.options.token_measure);
    this.options = { ...this.options, ...chosen };
    const all = { ...chosen };
    if (chosen.style) all.alpha = this.options.alpha = STRENGTHS[chosen.style];
    const asksOther = 'token_measure' in chosen || 'token_role' in chosen || 'token_segment_role' in chosen;
    if (asksOther && !('token_state' in chosen)) {
      const state = Math.max(0, before - this.offsetOf(this.options.token_measure)); // the column stays
      all.token_state = this.options.token_state = state;
    }
    this.expects = Math.max(this.expects, this.subject?.revision ?? 0) + 1;
    this.load();
    this.trigger('choose', all);
  }

  /** Fetches what the open questions need and is not here, the chosen one first, and draws what is there. */
  async load() {
    const round = ++this.round;
    const isStill = () => round === this.round;
    delete this.element.dataset.ready;
    const { token_measure: chosen } = this.options;
    this.errors.delete(chosen);
    this.table.tell(chosen);
    showError(this.find('room-error'), this.subject?.note, { stays: true });
    this.lay();
    this.paint();
    let more = null;
    for (const measure of this.order) {
      if (this.errors.has(measure)) continue;
      this.wait(measure);
      await this.guarded(measure, () => VIEWS[measure].load(this, isStill));
      if (!isStill()) return;
      this.paint();
      if (measure === chosen && this.view.more && !this.errors.has(chosen))
        more = this.guarded(chosen, () => this.view.more?.(this, isStill));
    }
    this.wait(null);
    await more;
    if (!isStill()) return;
    this.paint();
    this.table.name(this);
    if (!this.errors.has(chosen)) this.element.dataset.ready = chosen;
  }

  /** Does something for a question; where it fails, the question says why. @param {Measure} measure @param {() => Promise<void> | undefined} act */
  async guarded(measure, act) {
    const { store } = this;
    try {
      await act();
    } catch (error) {
      if (store !== this.store || store?.abort.signal.aborted) return;
      this.errors.set(measure, /** @type {Error} */ (error).message);
      this.table.tell(measure, this.errors.get(measure));
      if (measure === this.options.token_measure)
        showError(this.find('room-error'), this.errors.get(measure), { again: () => void this.load() });
    }
  }

  /** Everything in its place, before there are numbers. */
  lay() {
    const { subject, options } = this;
    if (!subject) return;
    const { token_measure: chosen } = options;
    this.large.dress(suited(options.style, subject.unlit), options.alpha);
    if (this.unfolded !== chosen) this.table.fold(chosen, false);
    this.unfolded = chosen;
    this.table.lay(this, subject.layers, subject.crop.region[3] / subject.crop.region[2]);
    this.table.fit();
    this.table.reveal(this.state + this.offsetOf(chosen));
    showControls(this, subject);
    this.clear();
  }

  /** Takes away what belongs to another question or state. */
  clear() {
    const { token_measure: chosen } = this.options;
    const key = [this.subject?.handle, chosen, this.options.token_role].join();
    if (this.panel.dataset.of === key) return;
    this.panel.dataset.of = key;
    delete this.panel.dataset.drawn;
    this.panel.replaceChildren();
    this.lit = null;
    this.large.second.element.hidden = true;
    this.find('room-register').hidden = true;
    delete this.find('room-register').dataset.drawn;
  }

  /** Lets the server compute what takes a while, unless it is here. @param {Kind} kind @param {Asked} asked @param {string} words */
  async compute(kind, asked, words) {
    if (!this.store || this.store.known(kind, asked)) return;
    const path = this.store.pathOf(kind, asked);
    await this.store.once(`job ${path}`, () => this.jobs.compute(path, words, kind, asked));
  }

  /** Which question is being answered; null where all are. */
  wait(/** @type {Measure | null} */ measure) {
    const name = measure && this.table.lines.get(measure)?.querySelector('[data-value]')?.textContent;
    this.table.box.setAttribute('aria-busy', String(measure !== null));
    this.find('room-wait').textContent = name ? `Computing ${name} …` : '';
  }

  /** At most once per frame of the screen. */
  repaint() {
    this.frame ||= requestAnimationFrame(() => {
      const start = performance.now();
      this.frame = 0;
      this.paint();
      timed('vit_viz:tokens', start);
    });
  }

  /** Photos come into sight: those that are not here yet are fetched. */
  scrolled() {
    this.repaint();
    const { token_role: role } = this.options;
    const lacking = this.seenStates('similarity').some((state) => !this.store?.vectorsOf(role, state));
    if (lacking && !this.errors.has('similarity') && this.element.dataset.ready) this.load();
  }

  paint() {
    if (!this.subject) return;
    const start = performance.now();
    const seen = this.table.seen(); // before anything is written: after that the browser would lay out the page once more
    this.large.draw();
    this.large.ring();
    this.say();
    this.view.panel?.(this);
    if (!this.table.draw(this, seen, start)) this.repaint();
  }

  /** What a photo depends on; "" while its numbers are not here. @param {Measure} measure @param {number} state */
  keyOf(measure, state) {
    const key = VIEWS[measure].keyOf(this, state);
    const { alpha, smooth } = this.options;
    return key && [key, this.subject?.photo, this.large.style, alpha, smooth].join('|');
  }

  /** @param {Measure} measure @param {number} state */
  drawingOf(measure, state) {
    return VIEWS[measure].draw(this, state, false);
  }

  /** What stands under a small photo. @param {Measure} measure @param {number} state */
  wordsOf(measure, state) {
    return VIEWS[measure].words?.(this, state) ?? '';
  }

  say() {
    showText(this.find('room-caption'), this.view.title(this, this.state));
    this.find('room-readout').textContent = this.view.readout(this, this.state);
    press(this.find('room-named'), 'token', this.subject?.prefix[this.pinned]);
    this.table.say(this);
  }

  /** Pins a token for the whole page. @param {number} token @param {string} query */
  pin(token, query) {
    if (!this.subject) return;
    this.pinned = token;
    this.hovered = null;
    this.expects = Math.max(this.expects, this.subject.revision + 1); // its answer knows nothing of what is chosen after it
    this.paint();
    this.trigger('pin', { query });
  }

  /** Pins a patch. */
  pinPatch(/** @type {number} */ patch) {
    if (this.subject) this.pin(this.subject.prefix.length + patch, patchQuery([patch], this.cols));
  }
}

/** What is chosen, as a model can show it. @param {Options} chosen @param {Options['token_role'][]} roles that the model has */
export function possible(chosen, roles) {
  const role = (/** @type {Options['token_role']} */ wanted) => (roles.includes(wanted) ? wanted : 'tokens');
  return {
    ...chosen,
    token_role: role(chosen.token_role),
    token_segment_role: role(chosen.token_segment_role),
  };
}
