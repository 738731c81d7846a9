// The Tokens tab: a table of small photos, a row for each question and a column for each layer, and the chosen one large. While the
// pointer moves, nothing is asked of the server: the cosines of the pointed patch with all others are computed here.

import { centreOf, patchQuery, queryTokens } from '../../explorer/geometry.js';
import { decodeTable, measure as timed } from '../../explorer/paint.js';
import { STRENGTHS, layerTable, suited } from '../../explorer/styles.js';
import { limit } from '../../ui/kit/controls.js';
import { finder, press, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { asked } from '../kit/ask.js';
import { Job, JobBar, STOPPED } from '../kit/job.js';
import { openAgain, opened, thePage } from '../kit/page.js';
import { computed, effect } from '../kit/preact.js';
import { TargetChooser } from '../kit/target.js';
import { keyOf, Store } from './fetched.js';
import { tokenName, whose } from './findings.js';
import { Large } from './large.js';
import { readBox, listen } from './listen.js';
import { showControls } from './offers.js';
import { Table } from './table.js';
import { VIEWS } from './views.js';
/** @import { Option } from '../../explorer/options.js' */
/** @import { Style } from '../../explorer/styles.js' */
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Photo } from '../../ui/kit/stage.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Target } from '../kit/target.js' */
/** @import { Asked, Kind, Of, Role } from './fetched.js' */
/** @import { Measure, View } from './views.js' */

/**
 * @typedef {{token_measure: 'similarity' | 'components' | 'norms' | 'lens' | 'layers' | 'segments',
 *   token_role: Role, token_state: number, token_scale: 'layer' | 'shared',
 *   token_foreground: boolean, token_whitened: boolean, token_second: string, token_factor: number,
 *   token_register: boolean, token_segment_role: Role, token_method: 'k-means' | 'cut',
 *   token_count: number, token_box: string, style: Style, alpha: number, smooth: boolean}} Options
 *
 * What the tokens are of: the answer to 'open', and what is chosen of it.
 * @typedef {Photo & Of & SubjectFacts} Subject
 * @typedef {object} SubjectFacts
 * @property {number} layers
 * @property {string} query
 * @property {string} unlit why the photo cannot be lit; "" where it can
 * @property {Role[]} roles
 * @property {string} target index of the class of the lens; "" is the model's first
 * @property {Target | null} classes that the lens can be of; null while something else is shown, or until they are there
 * @property {{id: string, name: string}[]} pictures that can share the colours
 */

const FLAT = 0.75; // opacity of the maps before and after a register

const DRAWN = ['style', 'alpha', 'smooth']; // what is chosen of all maps, wherever they are

/** @type {Mount<{tables: Record<string, string>, options: Option[]}>} */
export function mount(element, _trigger, { tables, options }) {
  tokens(element, thePage(), decodeTable(tables.viridis), options);
}

/** @param {HTMLElement} element @param {Page} one @param {Uint32Array} table of colours @param {Option[]} schema of what is chosen here */
export function tokens(element, one, table, schema) {
  const { store, ask } = one;
  const { view } = store;
  const room = new Room(element, one, table, schema);
  listen(room);
  const open = opened(one, 'tokens');
  const isSeen = () => view.tab.value === 'tokens' && open.value.state === 'done';
  const target = computed(() => view.target.value.split('-')[0]);
  const aim = () => {
    const link = new URLSearchParams(store.subject());
    if (target.value) link.set('target', target.value);
    return link.toString();
  };
  const classes = asked(
    async (name, body, stop) => {
      const of = { trace: open.peek().value.trace, target: target.peek() };
      return { of, told: await ask(name, body, stop) };
    },
    () => (isSeen() && view.tokens.value === 'lens' ? ['target', { view: aim() }] : null),
  );
  const chooser = new TargetChooser(room.find('room-classes'), {
    why: (index) => store.set({ target: String(index) }),
    find: async (text, stop) => (await ask('target', { view: store.subject(), find: text }, stop)).hits,
  });
  effect(() => {
    if (open.value.state === 'failed') return room.refuse(open.value.error ?? '');
    if (!isSeen()) return;
    const { value } = open.value;
    const { of, told } = classes.value.value ?? {};
    const hasClasses = view.tokens.value === 'lens' && of?.trace === value.trace;
    const isOfTarget = of?.target === target.value; // else they are on their way, and so is its name
    // of a class that nobody chose each patch shows its likeliest
    const found = { ...told, single: true, ...(!target.value && { chosen: null }) };
    if (hasClasses && isOfTarget) chooser.show(found);
    room.show({
      ...value,
      query: view.q.value || firstQuery(value),
      roles: ['tokens', ...(value.head_dim ? ['queries', 'keys'] : [])],
      target: target.value,
      classes: hasClasses ? { ...found, ...(!isOfTarget && { name: '' }) } : null,
      pictures: value.pictures.filter((/** @type {{id: string}} */ { id }) => id !== value.image),
    });
  });
}

/** What is looked at before anybody has chosen: a patch that is worth it, since most questions here are about patches. @param {any} value */
function firstQuery({ opening, grid, default_query: usual }) {
  return opening.patch === null ? usual : patchQuery([opening.patch], grid[1]);
}

/** What the component shows. */
export class Room {
  /** @type {Subject | null} */ subject = null;
  /** @type {Store | null} */ store = null;
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

  /** @param {HTMLElement} element @param {Page} page @param {Uint32Array} table @param {Option[]} schema */
  constructor(element, page, table, schema) {
    this.element = element;
    this.find = finder(element);
    this.page = page;
    /** The options that are chosen here, by the names of links. @type {[string, string][]} */
    this.links = [...schema, ...DRAWN.map((name) => ({ name, link: name }))].map(({ name, link }) => [
      name,
      link,
    ]);
    this.colours = table;
    this.over = layerTable('heat', FLAT, table);
    this.panel = this.find('room-panel');
    this.large = new Large(this);
    this.big = this.large.sheet;
    this.table = new Table(element, () => this.scrolled());
    this.job = new Job(() => bar.show(this.job));
    const bar = new JobBar(this.find('room-job'), { end: () => this.job.end(STOPPED) });
    this.options = this.chosen();
    limit(element, schema);
  }

  /** What is chosen, as the link has it. @returns {Options} */
  chosen() {
    const { view } = this.page.store;
    return /** @type {any} */ (
      Object.fromEntries(this.links.map(([name, link]) => [name, view[link].value]))
    );
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

  /** Why there is nothing to show. */
  refuse(/** @type {string} */ words) {
    this.find('room-main').hidden = true;
    showError(this.find('room-error'), '');
    showError(this.find('room-error'), words, { stays: true, again: openAgain });
  }

  show(/** @type {Subject} */ subject) {
    const isNew = subject.trace !== this.subject?.trace;
    this.find('room-main').hidden = this.find('room-save').hidden = false;
    this.subject = subject;
    this.options = possible(this.chosen(), subject.roles);
    const asks = queryTokens(subject.query, { ...subject, pooling: '' });
    this.pinned =
      Array.isArray(asks) && asks.length ? asks[0] : subject.prefix.length + centreOf(subject.grid);
    if (isNew) this.begin(subject);
    this.load();
  }

  /** Another picture, or another model. */
  begin(/** @type {Subject} */ subject) {
    this.store?.abort.abort();
    this.job.end('Another photo was chosen.');
    const { grid } = subject;
    this.store = new Store(subject, this.page.ask);
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
    const { token_measure: measure, ...others } = { ...this.options, ...chosen };
    const all = { ...chosen };
    if (chosen.style) all.alpha = STRENGTHS[chosen.style];
    const asksOther = 'token_measure' in chosen || 'token_role' in chosen || 'token_segment_role' in chosen;
    if (asksOther && !('token_state' in chosen)) {
      const column = this.state + this.offsetOf(this.options.token_measure);
      this.options = { token_measure: measure, ...others };
      all.token_state = Math.max(0, column - this.offsetOf(measure)); // the column stays
    }
    const links = new Map(this.links);
    this.page.store.set(
      Object.fromEntries(Object.entries(all).map(([name, value]) => [links.get(name), value])),
    );
  }

  /** Fetches what the open questions need and is not here, the chosen one first, and draws what is there. */
  async load() {
    const round = ++this.round;
    const isStill = () => round === this.round;
    delete this.element.dataset.ready;
    const { token_measure: chosen } = this.options;
    this.errors.delete(chosen);
    this.table.tell(chosen);
    showError(this.find('room-error'), '', { stays: true });
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
        showError(this.find('room-error'), this.errors.get(measure), { again: openAgain });
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
    const key = [this.subject?.trace, chosen, this.options.token_role].join();
    if (this.panel.dataset.of === key) return;
    this.panel.dataset.of = key;
    delete this.panel.dataset.drawn;
    this.panel.replaceChildren();
    this.lit = null;
    this.large.second.element.hidden = true;
    this.find('room-register').hidden = true;
    delete this.find('room-register').dataset.drawn;
  }

  /** Asks what takes a while, and shows how far it is, unless it is here. @param {Kind} kind @param {Asked} options @param {string} words */
  async compute(kind, options, words) {
    const { store } = this;
    if (!store || store.known(kind, options)) return;
    await store.once(`job ${keyOf(kind, options)}`, () =>
      this.job.follow((stop, tell) => store.fetchNumbers(kind, options, stop, tell), { words }),
    );
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

  /** Pins a token for the whole page. @param {string} query */
  pin(query) {
    this.hovered = null;
    this.page.store.set({ q: query });
    this.repaint();
  }

  /** Pins a patch. */
  pinPatch(/** @type {number} */ patch) {
    this.pin(patchQuery([patch], this.cols));
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
