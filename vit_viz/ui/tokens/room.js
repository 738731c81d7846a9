// The Tokens tab: a measure of the tokens over the photo, in one state of the model, and small maps of all states. While the pointer
// moves, nothing is asked of the server: the cosines of the pointed patch with all others are computed here.

import { movedPatch, patchQuery, queryTokens } from '../../explorer/geometry.js';
import { decodeTable } from '../../explorer/paint.js';
import { defaultsOf } from '../../explorer/state.js';
import { layerTable } from '../../explorer/styles.js';
import { finder, showText } from '../kit/elements.js';
import { mount as mountTarget } from '../explain/target.js';
import { readBox, listen } from './listen.js';
import { Jobs, Store } from './store.js';
import { tileWords } from './measures.js';
import { limit, offer, showOptions } from '../kit/controls.js';
import { Stage } from '../kit/stage.js';
import { Strip } from './strip.js';
import { showBar, rangeOf, short } from '../kit/numbers.js';
import { VIEWS } from './views.js';

/**
 * @typedef {{token_measure: 'similarity' | 'components' | 'norms' | 'lens' | 'layers' | 'segments',
 *   token_role: import('./store.js').Role, token_state: number, token_scale: 'layer' | 'shared',
 *   token_foreground: boolean, token_whitened: boolean, token_second: string, token_factor: number,
 *   token_register: boolean, token_segment_role: import('./store.js').Role, token_method: 'k-means' | 'cut',
 *   token_count: number, token_box: string}} Options
 *
 * @typedef {import('../kit/stage.js').Photo & {handle: string}} Photo
 * @typedef {Photo & SubjectFacts} Subject
 * @typedef {object} SubjectFacts
 * @property {number} revision
 * @property {number} layers
 * @property {string[]} prefix
 * @property {string[]} suffix
 * @property {string} query
 * @property {boolean} travels whether the vectors may come to the browser
 * @property {import('./store.js').Role[]} roles
 * @property {Options} chosen
 * @property {string} target index of the class of the lens; "" is the model's first
 * @property {object | null} classes the value of the chooser of classes
 * @property {{id: string, name: string}[]} pictures that can share the colours
 * @property {Photo & {note?: string} | null} second
 * @property {string} note
 *
 * How one measure is fetched, painted and told; one file each.
 * @typedef {object} View
 * @property {(room: Room) => import('./store.js').Role} role whose states there are maps of
 * @property {boolean} [isPerLayer] whether there is no map before the first layer, whatever the role
 * @property {(room: Room, isStill: () => boolean) => Promise<void>} load
 * @property {(room: Room) => void} paint
 * @property {(room: Room, spot: import('./measures.js').Spot | null) => string} title
 * @property {(room: Room, spot: import('./measures.js').Spot | null) => string} readout
 * @property {(room: Room) => string} [unit]
 * @property {(room: Room) => number[]} [rings] patches that stand out
 */

const OPACITY = 0.75; // of the big map over the photo

/** @type {import('../kit/elements.js').Mount<{value: Subject | null, tables: Record<string, string>, options: import('../../explorer/state.js').Option[], job: import('./store.js').Job | null, matches: any}>} */
export function mount(element, trigger, props, watch) {
  const room = new Room(element, trigger, decodeTable(props.tables.viridis), props.options);
  listen(room);
  const target = {
    get value() {
      return /** @type {any} */ (props.value?.classes ?? null);
    },
    get matches() {
      return props.matches;
    },
  };
  mountTarget(room.find('room-classes'), trigger, target, watch);
  watch('value', () => room.show(props.value));
  watch('job', () => room.jobs.hear(props.job));
  room.show(props.value);
}

/** What the component shows. */
export class Room {
  /**
   * @param {HTMLElement} element
   * @param {import('../kit/elements.js').Trigger} trigger
   * @param {Uint32Array} table
   * @param {import('../../explorer/state.js').Option[]} schema
   */
  constructor(element, trigger, table, schema) {
    this.element = element;
    this.find = finder(element);
    this.trigger = trigger;
    this.table = table;
    this.over = layerTable('heat', OPACITY, table);
    this.stage = this.find('room-main-stage');
    this.panel = this.find('room-panel');
    this.big = new Stage(this.stage);
    this.second = new Stage(this.find('room-second-stage'));
    this.strip = new Strip(this.find('room-strip'), table);
    this.jobs = new Jobs(this.find('room-job'), trigger);
    /** @type {Subject | null} */
    this.subject = null;
    /** @type {Store | null} */
    this.store = null;
    this.options = /** @type {Options} */ (defaultsOf(schema));
    limit(element, schema);
    this.expects = 0; // the revision from which on the server knows what was chosen here
    this.pinned = 0; // index of a token
    /** @type {number | null} */
    this.hovered = null; // index of a patch
    /** @type {number | null} */
    this.lit = null; // a segment
    this.drawing = ''; // the box that is being drawn
    /** @type {Float32Array[]} */
    this.maps = [];
    /** @type {any} */
    this.told = null;
    this.asked = ''; // what is on the screen, or on its way there
    this.done = ''; // what has arrived
    this.frame = 0;
  }

  /** @type {View} */
  get view() {
    return VIEWS[this.options.token_measure];
  }

  /** Whose states there are maps of. */
  get role() {
    return this.view.role(this);
  }

  /** The state that is over the photo. */
  get state() {
    const { token_state: state } = this.options;
    const { length } = this.names;
    return state >= 0 && state < length ? state : Math.floor((2 * length) / 3);
  }

  /** The names of the states. */
  get names() {
    const layers = Array.from({ length: this.subject?.layers ?? 0 }, (_, i) => i);
    if (this.role !== 'tokens') return layers.map((layer) => `layer ${layer}`);
    const after = layers.map((layer) => `after layer ${layer}`);
    return this.view.isPerLayer ? after : ['input', ...after];
  }

  get patches() {
    const [rows, cols] = this.subject?.grid ?? [1, 1];
    return rows * cols;
  }

  /** Index of the token that all others are compared with. */
  get token() {
    return this.hovered === null ? this.pinned : (this.subject?.prefix.length ?? 0) + this.hovered;
  }

  centre() {
    const [rows, cols] = this.subject?.grid ?? [1, 1];
    return Math.floor(rows / 2) * cols + Math.floor(cols / 2);
  }

  show(/** @type {Subject | null} */ subject) {
    if (!subject) return;
    showText(this.find('room-error'), subject.note);
    this.find('room-main').hidden = this.find('room-head').hidden = !subject.handle;
    if (!subject.handle) return;
    const isNew = subject.handle !== this.subject?.handle;
    this.subject = subject;
    if (subject.revision >= this.expects) this.options = possible(subject.chosen, subject.roles);
    const tokens = queryTokens(subject.query, { ...subject, pooling: '' });
    this.pinned = Array.isArray(tokens) && tokens.length ? tokens[0] : subject.prefix.length + this.centre();
    const select = /** @type {HTMLSelectElement} */ (
      this.element.querySelector('[data-option=token_second]')
    );
    const pictures = subject.pictures.map(({ id, name }) => ({ value: id, label: name }));
    offer(select, [{ value: '', label: 'no other photo' }, ...pictures]);
    if (isNew) this.begin(subject);
    this.load();
  }

  /** Another picture, or another model. */
  begin(/** @type {Subject} */ subject) {
    this.store?.drop();
    this.jobs.end(new Error('Another photo was chosen.'));
    const { grid, prefix, suffix, photo_size: size } = subject;
    this.store = new Store(subject.handle, prefix.length + grid[0] * grid[1] + suffix.length);
    this.hovered = null;
    this.asked = '';
    this.big.place(subject);
    this.find('room-left').style.setProperty('--vv-aspect', String(size[1] / size[0]));
  }

  /** Something is chosen here: shown at once, and told to the page. @param {Partial<Options>} chosen */
  choose(chosen) {
    if (chosen.token_box && !readBox(chosen.token_box)) {
      showText(this.find('room-error'), 'A box is left,top,right,bottom in pixels, as 20,10,120,90.');
      return;
    }
    this.options = { ...this.options, ...chosen };
    this.expects = Math.max(this.expects, this.subject?.revision ?? 0) + 1;
    this.load();
    this.trigger('choose', chosen);
  }

  /** What the numbers on the screen depend on. */
  get asking() {
    return JSON.stringify([
      this.subject?.handle,
      { ...this.options, token_state: 0, token_scale: '' },
      this.subject?.target,
      this.subject?.second?.handle ?? '',
    ]);
  }

  /** Fetches what the chosen measure needs and is not here, and paints what is there. */
  async load() {
    const { asking } = this;
    this.press();
    if (asking === this.asked) return this.done === asking ? this.settle() : this.paint();
    this.asked = asking;
    this.told = null;
    this.maps = [];
    this.lit = null;
    this.clearPanel();
    delete this.element.dataset.ready;
    this.layTiles();
    this.say();
    showText(this.find('room-error'), '');
    const isStill = () => asking === this.asked;
    try {
      await this.view.load(this, isStill);
    } catch (error) {
      if (isStill() && !this.store?.abort.signal.aborted) {
        showText(this.find('room-error'), /** @type {Error} */ (error).message);
        this.asked = ''; // so that it can be tried again
      }
    }
    if (isStill()) this.done = asking;
    if (isStill() || !this.asked) this.settle();
  }

  /** Everything that can be shown is here. */
  settle() {
    this.wait('');
    this.paint();
    if (this.asked) this.element.dataset.ready = this.options.token_measure;
  }

  clearPanel() {
    delete this.panel.dataset.drawn;
    this.panel.replaceChildren();
    this.second.element.hidden = true;
    this.find('room-register').hidden = true;
    delete this.find('room-register').dataset.drawn;
    this.big.clear();
  }

  /** The numbers of a measure, which become the maps where they are some. @param {import('./store.js').Kind} kind @param {import('./store.js').Asked} asked @param {() => boolean} isStill */
  async fetch(kind, asked, isStill) {
    if (!this.store?.known(kind, asked)) this.wait('Computing …');
    const told = await this.store?.fetchNumbers(kind, asked);
    if (!isStill()) return;
    this.wait('');
    this.told = told;
    this.maps = (told.values ?? []).map((/** @type {number[]} */ map) => Float32Array.from(map));
    this.paint();
  }

  /** Lets the server compute what takes a while, unless it is here. @param {import('./store.js').Kind} kind @param {import('./store.js').Asked} asked @param {string} words */
  async compute(kind, asked, words) {
    if (!this.store || this.store.known(kind, asked)) return;
    await this.jobs.compute(this.store.pathOf(kind, asked), words, kind, asked);
  }

  wait(/** @type {string} */ words) {
    showText(this.find('room-wait'), words);
  }

  /** Which controls there are, and what they say. */
  press() {
    const { subject } = this;
    showOptions(this.element, this.options, this.options.token_measure, (part) => {
      if (part.dataset.needs === 'roles') return (subject?.roles.length ?? 1) > 1;
      if (part.dataset.needs === 'count') return this.options.token_method !== 'cut';
      return true;
    });
    this.find('room-no-box').hidden ||= !this.options.token_box;
  }

  /** One small map per state. */
  layTiles() {
    if (!this.subject) return;
    const { crop, grid } = this.subject;
    this.strip.lay(this.names, grid, crop.region[3] / crop.region[2]);
  }

  /** At most once per frame of the screen. */
  repaint() {
    this.frame ||= requestAnimationFrame(() => {
      const start = performance.now();
      this.frame = 0;
      this.paint();
      performance.measure('vit_viz:tokens', { start, end: performance.now() });
    });
  }

  paint() {
    if (!this.subject) return;
    this.view.paint(this);
    this.ring();
    this.say();
  }

  /** The maps of all states, and the chosen one over the photo. */
  paintMaps() {
    const { token_scale: scale } = this.options;
    const shared = rangeOf(this.maps.filter(Boolean));
    const rangeFor = (/** @type {number} */ state) =>
      scale === 'layer' ? rangeOf([this.maps[state]]) : shared;
    this.maps.forEach((map, state) => this.strip.paint(state, map, rangeFor(state)));
    const map = this.maps[this.state];
    if (!map) return this.bar(null);
    this.big.paint(map, this.over, rangeFor(this.state));
    this.bar(rangeFor(this.state));
  }

  /** The scale of the big map; none where it has none. @param {[number, number] | null} range */
  bar(range) {
    this.find('room-bar').hidden = !range;
    if (!range) return;
    showBar(this.find, [short(range[0]), short(range[1])], this.view.unit?.(this) ?? '', this.table);
  }

  /** The ring of the patch that is looked at, of the outliers, and the box. */
  ring() {
    const patch = this.token - (this.subject?.prefix.length ?? 0);
    const outliers = this.view.rings?.(this) ?? [];
    /** @type {[number, string][]} */
    const marks = outliers.map((outlier) => [outlier, 'vv-ring vv-outlier']);
    if (patch >= 0 && patch < this.patches) marks.push([patch, 'vv-ring']);
    const isOn = this.options.token_measure === 'segments';
    const box = isOn ? readBox(this.drawing || this.options.token_box) : null;
    this.big.ring(marks, box ? [[box, 'vv-ring vv-object']] : []);
  }

  say() {
    const name = this.names[this.state];
    const patch = this.token - (this.subject?.prefix.length ?? 0);
    const isPatch = patch >= 0 && patch < this.patches;
    const spot = isPatch ? { state: this.state, patch, cols: this.subject?.grid[1] ?? 1, name } : null;
    showText(this.find('room-caption'), `${this.view.title(this, spot)}, ${name}`);
    this.find('room-readout').textContent = this.view.readout(this, spot);
    const measure = this.options.token_measure;
    this.strip.say(this.state, (state) => (this.told ? tileWords(measure, this.told, state) : ''));
    showText(this.find('room-note'), measure === 'lens' ? this.told?.note : '');
  }

  /** The pinned token in words, where it is no patch. */
  namedToken() {
    const { prefix, suffix } = /** @type {Subject} */ (this.subject);
    const name = [...prefix, ...suffix][this.token < prefix.length ? this.token : this.token - this.patches];
    return /\d$/.test(name) ? name : `${name} token`;
  }

  /** Pins a patch for the whole page. */
  pin(/** @type {number} */ patch) {
    if (!this.subject) return;
    this.pinned = this.subject.prefix.length + patch;
    this.hovered = null;
    this.expects = Math.max(this.expects, this.subject.revision + 1); // its answer knows nothing of what is chosen after it
    this.paint();
    this.trigger('pin', { query: patchQuery([patch], this.subject.grid[1]) });
  }

  /** Moves the pinned patch by the keys. */
  step(/** @type {[number, number]} */ step) {
    if (!this.subject) return;
    const patch = this.pinned - this.subject.prefix.length;
    const isPatch = patch >= 0 && patch < this.patches;
    this.pin(isPatch ? movedPatch(patch, step, this.subject.grid) : this.centre());
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
