// The Heads tab but for the matrix: every head as a small photo with one measure and a name, as a switch, or by depth; the head under
// the pointer, or the chosen one, in detail.

import { decodeTable } from '../../explorer/paint.js';
import { patchQuery, queryPatches, queryWords } from '../../explorer/geometry.js';
import { defaultsOf } from '../../explorer/options.js';
import { drawValue, finder, press, showText } from '../kit/elements.js';
import { showError } from '../kit/notes.js';
import { fillChooser, markChooser } from './chooser.js';
import { chooseTarget } from '../explain/target.js';
import { short } from '../kit/numbers.js';
import { BeforeNow } from './before_now.js';
import { Effects, drawCausal } from './causal.js';
import { Detail } from './detail.js';
import { findingOf } from './findings.js';
import { PhotoGrid } from './photo_grid.js';
import { Lit } from './lit.js';
import { listen } from './listen.js';
import { Names, nameWords } from './names.js';
import { Numbers } from './numbers.js';
import { Plot } from './plot.js';
import { Surgery } from './surgery.js';
import { Tiles } from './tiles.js';
import { agreementWords, capital, endsOf, headWords, scaleWords, valueWords } from './words.js';
/** @import { Place, Table } from './words.js' */
/** @import { Effect, News, Target } from './causal.js' */
/** @import { Named, Rule } from './names.js' */
/** @import { Mount, Trigger } from '../kit/elements.js' */

/**
 * @typedef {{face: string, measure: string, how: string, head_order: string}} Options
 * @typedef {{name: string, group: string, label: string, sentence: string}} MeasureWords
 *
 * @typedef {{revision: number, trace: string, name: string, photo: string, photo_size: [number, number],
 *   query: string, layer: number, head: number, options: Options, note: string, long?: boolean, busy?: boolean, key: string, target: Target | null,
 *   cost: string, causal_note: string, effects: Record<string, Effect>,
 *   surgery?: import('./surgery.js').Panel}} OfHeads key: of the subject and the class
 * @typedef {import('../../explorer/geometry.js').Trace & OfHeads} Subject
 *
 * @typedef {{measures: Record<string, Table>, names: Named[], rules: Rule[], margin?: number, unnamed: string,
 *   note: string}} Told unnamed: why no head has a name; note: what is not known
 *
 * @typedef {{value: Subject | null, causal: News | null, job: import('../kit/jobs.js').Job | null, tables: Record<string, string>, measures: MeasureWords[],
 *   options: import('../../explorer/options.js').Option[], matches: any, surgery: import('./surgery.js').Panel | null}} Props
 *   matches: classes that were searched; surgery: an edit that was refused
 */

/** Measures that depend on the class. */
const OF_THE_CLASS = ['estimate', 'effect'];

/** @type {Mount<Props>} */
export function mount(element, trigger, props, watch) {
  const room = new HeadRoom(element, trigger, props);
  listen(room);
  chooseTarget(room.find('heads-classes'), trigger, watch, {
    value: () => props.value?.target,
    matches: () => props.matches,
  });
  watch('causal', () => room.follow(props.causal));
  watch('job', () => room.numbers.jobs.hear(props.job));
  watch('surgery', () => room.surgery.take(props.surgery));
  drawValue(watch, () => {
    room.show(props.value);
    room.surgery.take(props.value?.surgery ?? null);
  });
}

/** What the component shows. */
export class HeadRoom {
  effects = new Effects();
  /** @type {Record<string, string | number>} what was chosen here and the server has not answered yet */ pending =
    {};
  /** @type {Subject | null} */ subject = null;
  /** @type {Place} */ chosen = { layer: 0, head: 0 };
  /** @type {Place | null} */ hovered = null;
  frame = 0;

  /** @param {HTMLElement} element @param {Trigger} trigger @param {Props} props */
  constructor(element, trigger, { tables, measures, options }) {
    this.element = element;
    this.find = finder(element);
    this.trigger = trigger;
    this.words = measures;
    this.colours = { plain: decodeTable(tables.viridis), signed: decodeTable(tables.diverging) };
    this.grid = new PhotoGrid(this.find('heads-table'));
    this.plot = new Plot(this.find);
    this.tiles = new Tiles(
      this.find('heads-grid'),
      /** @type {HTMLCanvasElement} */ (this.find('heads-tiles')),
      this.colours.plain,
    );
    this.lit = new Lit(this.find('heads-stage'), this.colours.plain, () => this.arrived());
    this.names = new Names(this.find('heads-kinds'), this.find('heads-names-words'), () =>
      this.names.fade(this),
    );
    this.numbers = new Numbers(this);
    this.detail = new Detail(this);
    this.compared = new BeforeNow(this.find, this.colours);
    this.surgery = new Surgery(this.find, trigger, () => this.draw());
    this.options = /** @type {Options} */ (defaultsOf(options));
    fillChooser(this.chooser, measures);
    new ResizeObserver(() => this.fit()).observe(this.find('heads-scroll'));
    new ResizeObserver(() => this.fit()).observe(this.find('heads-stage'));
  }

  show(/** @type {Subject | null} */ subject) {
    if (!subject || subject.revision < (this.subject?.revision ?? -1)) return;
    this.dim(Boolean(subject.busy));
    if (subject.busy) return;
    if (subject.note || this.find('heads-main').hidden)
      showError(this.find('heads-error'), subject.note, { stays: !subject.trace });
    this.find('heads-main').hidden = !subject.trace;
    this.showFace(subject.options?.face ?? this.options.face);
    if (!subject.trace) return void (this.find('heads-wait').hidden = true);
    const before = this.subject;
    this.subject = subject;
    this.settle(subject);
    this.effects.begin(subject.key, subject.effects);
    const isNew = before?.trace !== subject.trace;
    if (isNew || before?.query !== subject.query) this.lit.begin(subject);
    if (isNew) {
      this.detail.begin();
      this.numbers.begin(subject);
    }
    this.draw();
    this.fit();
  }

  /** Takes what the view says is chosen, but for what was chosen here meanwhile, until the view says that, too. */
  settle(/** @type {Subject} */ { options, layer, head }) {
    const told = { ...options, layer, head };
    for (const [name, value] of Object.entries(told)) {
      if (this.pending[name] === value) delete this.pending[name];
    }
    const { layer: down, head: across, ...others } = { ...told, ...this.pending };
    this.chosen = { layer: Number(down), head: Number(across) };
    this.options = /** @type {Options} */ (others);
  }

  follow(/** @type {News | null} */ news) {
    if (this.effects.follow(news)) this.draw();
  }

  /** What is seen is of what was there before, while that of the next is on its way. */
  dim(isBusy = false) {
    const isOld = isBusy || this.numbers.isOld;
    this.find('heads').toggleAttribute('data-old', isOld);
    this.find('heads-main').setAttribute('aria-busy', String(isOld && !this.find('heads-work').hidden));
  }

  get told() {
    return this.numbers.told;
  }

  get effect() {
    return this.effects.of[this.options.how];
  }

  get chooser() {
    return /** @type {HTMLSelectElement} */ (this.find('heads-measure'));
  }

  /** Whether the measure depends on the class. */
  get isOfClass() {
    return OF_THE_CLASS.includes(this.options.measure);
  }

  get heads() {
    return (this.subject?.layers ?? 0) * (this.subject?.heads ?? 0);
  }

  /** The numbers of the chosen measure; null while they are on their way. @returns {Table | null} */
  get table() {
    const { measure } = this.options;
    if (measure === 'effect') return this.effect?.table ?? this.nothing();
    if (measure === 'estimate') return this.numbers.estimate;
    return this.told?.measures[measure] ?? null;
  }

  /** A table of which nothing is known yet. @returns {Table} */
  nothing() {
    const { layers = 0, heads = 0 } = this.subject ?? {};
    const values = Array.from({ length: layers }, () => Array.from({ length: heads }, () => null));
    return { values, unit: '', signed: true, range: [null, null] };
  }

  /** Everything that depends on the measure, the class and the chosen head. */
  draw() {
    const { subject, options, told } = this;
    if (!subject) return;
    if (options.measure === 'estimate' && !this.table) void this.numbers.fetchImportance();
    this.dim();
    this.showFace(options.face);
    this.drawHead();
    const table = this.table;
    const isKnown = Boolean(table?.values.flat().some((value) => value !== null));
    this.find('bar').hidden = this.find('heads-plot').hidden = !isKnown;
    this.drawTable(table ?? this.nothing());
    for (const part of ['heads-kinds', 'heads-names-words']) this.find(part).hidden = !told;
    this.mark();
    if (this.isShown('surgery')) this.compared.show(this);
    this.find('heads-save').hidden = !isKnown;
    if (told || subject.long || !this.find('heads-error').hidden) this.find('heads').dataset.drawn = '';
    this.element.dataset.ready = table && told && !this.numbers.isOld ? options.measure : '';
  }

  /** The face that is seen, also for what stands beside this component. */
  showFace(/** @type {string} */ face) {
    press(this.find('heads-faces'), 'face', face);
    this.find('heads').dataset.face = face;
    /** @type {HTMLElement | null} */ (this.element.closest('#vv-heads-faces'))?.setAttribute(
      'data-face',
      face,
    );
  }

  /** Whether one of these faces is seen. */
  isShown(/** @type {string[]} */ ...faces) {
    return faces.includes(this.options.face);
  }

  /** The chooser, the sentence, and the panel of the causal map. */
  drawHead() {
    const { options, subject } = this;
    const said = this.words.find(({ name }) => name === options.measure);
    const known = this.told && [...Object.keys(this.told.measures), ...OF_THE_CLASS];
    markChooser(this.chooser, options.measure, known);
    press(this.find('heads-orders'), 'order', options.head_order);
    showText(this.find('heads-sentence'), said?.sentence);
    this.find('heads-causal').hidden = !this.isOfClass;
    if (!this.isOfClass || !subject) return;
    const { cost, causal_note: note, target } = subject;
    const effect = options.measure === 'effect' ? this.effect : undefined;
    drawCausal(this.find, { effect, how: options.how, target, cost, note, heads: this.heads });
    if (options.measure === 'estimate') this.find('heads-start').hidden = true;
    if (options.measure === 'estimate') showText(this.find('heads-cost'), note);
  }

  /** The grid with the scale of its bars, and the plot. */
  drawTable(/** @type {Table} */ numbers) {
    const { layers, heads } = /** @type {Subject} */ (this.subject);
    const table = { ...numbers, unit: this.unitOf(numbers) };
    const ends = endsOf(table);
    const from = /** @type {[number, number]} */ (
      table.signed ? ends : [Math.min(0, ends[0]), Math.max(0, ends[1])]
    );
    const label = this.words.find(({ name }) => name === this.options.measure)?.label ?? '';
    this.grid.lay(layers, heads);
    this.grid.switchRows(this.isShown('surgery'));
    this.grid.show(table, {
      ends: from,
      order: this.options.head_order,
      nameOf: (place) => nameWords(this.names.of(place)),
      kindOf: (place) => this.names.of(place)?.name ?? '',
      stateOf: ({ layer, head }) => this.surgery.heads.get(`${layer}.${head}`) ?? 'on',
    });
    this.names.fade(this);
    this.find('heads-table').setAttribute(
      'aria-label',
      `${label}: a row for each layer, a cell for each head`,
    );
    const bar = { low: short(from[0]), high: short(from[1]), unit: table.unit };
    for (const [part, text] of Object.entries(bar)) this.find(part).textContent = text;
    this.find('strip').toggleAttribute('data-signed', table.signed);
    this.find('heads-found').textContent = findingOf(this, table, label);
    const { estimate, done = 0, correlation = 0 } = this.effect ?? {};
    if (this.options.measure === 'effect' && estimate) {
      const both = endsOf({ ...table, values: [...table.values, ...estimate] });
      this.plot.drawAgreement(estimate, table, both, agreementWords({ done, correlation }, this.heads));
    } else this.plot.drawDepth(label, table, ends);
  }

  /** Follows the width of its column. */
  fit() {
    if (!this.subject?.trace) return;
    this.tiles.fit(this.subject);
    this.arrived();
    this.compared.paint();
  }

  /** Maps or the photo have come. */
  arrived() {
    this.tiles.paint(this.lit, this.grid.orders);
    this.drawPhoto();
    this.detail.show();
  }

  /** The unit, with the name of the class in place of its number. */
  unitOf(/** @type {Table} */ { unit }) {
    const { name = '' } = this.subject?.target ?? {};
    return name ? unit.replace(/class \d+/, () => name) : unit;
  }

  /** The head that is looked at: under the pointer, else the chosen one. */
  get place() {
    return this.hovered ?? this.chosen;
  }

  /** Marks the head that is looked at everywhere, and lights the photo. */
  mark() {
    this.grid.mark(this.chosen, this.hovered);
    this.plot.mark(this.chosen, this.hovered);
    this.drawPhoto();
    this.say();
    this.detail.show();
  }

  drawPhoto() {
    if (!this.subject) return;
    const map = this.lit.draw(this.place);
    showText(this.find('heads-scale'), map ? scaleWords(map) : this.lit.error);
    this.ring();
  }

  /** The ring of the query. */
  ring() {
    const subject = /** @type {Subject} */ (this.subject);
    this.lit.stage.ring(queryPatches(subject.query, subject).map((patch) => [patch, 'vv-ring']));
  }

  say() {
    const { place, table } = this;
    const subject = /** @type {Subject} */ (this.subject);
    const title = `${headWords(place)}: what the ${queryWords(subject.query, subject)} looks at`;
    showText(this.find('heads-caption'), capital(title));
    const value = table?.values[place.layer]?.[place.head];
    const said = this.words.find(({ name }) => name === this.options.measure)?.label ?? '';
    const number =
      table && value !== undefined && !this.numbers.isOld
        ? `${said}: ${valueWords(value, this.unitOf(table))}`
        : '';
    showText(this.find('heads-readout'), number);
  }

  /** At most once per frame of the screen. */
  hover(/** @type {Place | null} */ place) {
    if (place?.layer === this.hovered?.layer && place?.head === this.hovered?.head) return;
    this.hovered = place;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.mark();
    });
  }

  /** Chooses a head for the whole page. */
  choose(/** @type {Place} */ place) {
    this.chosen = place;
    Object.assign(this.pending, place);
    this.hovered = null;
    this.surgery.see(place.layer);
    this.mark();
    this.trigger('choose', { ...place });
  }

  /** Another measure, way of switching off, or order. @param {Partial<Options>} changed */
  set(changed) {
    this.options = { ...this.options, ...changed };
    Object.assign(this.pending, changed);
    this.draw();
    this.fit();
    this.trigger('option', changed);
  }

  /** Pins a patch for the whole page. */
  pin(/** @type {number} */ patch) {
    if (this.subject) this.trigger('pin', { query: patchQuery([patch], this.subject.grid[1]) });
  }
}
