// The Heads tab: one measure of every head in a table, the photo as the head under the pointer sees it, and a name for each.

import { decodeTable } from '../../explorer/paint.js';
import { patchQuery, queryPatches, queryWords } from '../../explorer/geometry.js';
import { defaultsOf } from '../../explorer/state.js';
import { finder, make, showText, fetched } from '../kit/elements.js';
import { mount as mountTarget } from '../explain/target.js';
import { short, showBar } from '../kit/numbers.js';
import { Effects, drawCausal } from './causal.js';
import { Grid } from './grid.js';
import { listen } from './listen.js';
import { Lit } from './lit.js';
import { Names, nameWords } from './names.js';
import { Plot } from './plot.js';
import { agreementWords, endsOf, headWords, scaleWords, valueWords } from './words.js';

/**
 * @typedef {import('./words.js').Place} Place
 * @typedef {import('./words.js').Table} Table
 * @typedef {{measure: string, how: string, head_order: string}} Options
 * @typedef {{name: string, group: string, label: string, sentence: string}} MeasureWords
 *
 * @typedef {object} OfHeads
 * @property {number} revision
 * @property {string} trace
 * @property {string} name
 * @property {string} photo
 * @property {[number, number]} photo_size
 * @property {string} query
 * @property {number} layer
 * @property {number} head
 * @property {Options} options
 * @property {string} note
 * @property {string} key of the subject and the class
 * @property {import('./causal.js').Target | null} target
 * @property {string} cost
 * @property {string} causal_note
 * @property {Record<string, import('./causal.js').Effect>} effects
 * @typedef {import('../../explorer/geometry.js').Trace & OfHeads} Subject
 *
 * @typedef {object} Told
 * @property {Record<string, Table>} measures
 * @property {import('./names.js').Named[]} names
 * @property {import('./names.js').Rule[]} rules
 * @property {number} [margin]
 * @property {string} unnamed why no head has a name
 * @property {string} note what is not known
 *
 * @typedef {object} Props
 * @property {Subject | null} value
 * @property {import('./causal.js').News | null} causal
 * @property {Record<string, string>} tables
 * @property {MeasureWords[]} measures
 * @property {import('../../explorer/state.js').Option[]} options
 * @property {any} matches classes that were searched
 */

/** Measures that depend on the class. */
const OF_THE_CLASS = ['estimate', 'effect'];

/** @type {import('../kit/elements.js').Mount<Props>} */
export function mount(element, trigger, props, watch) {
  const room = new HeadRoom(element, trigger, props);
  listen(room);
  const target = {
    get value() {
      return /** @type {any} */ (props.value?.target ?? null);
    },
    get matches() {
      return props.matches;
    },
  };
  mountTarget(room.find('heads-classes'), trigger, target, watch);
  watch('value', () => room.show(props.value));
  watch('causal', () => room.follow(props.causal));
  room.show(props.value);
}

/** What the component shows. */
export class HeadRoom {
  /** @param {HTMLElement} element @param {import('../kit/elements.js').Trigger} trigger @param {Props} props */
  constructor(element, trigger, { tables, measures, options }) {
    this.element = element;
    this.find = finder(element);
    this.trigger = trigger;
    this.words = measures;
    this.colours = { plain: decodeTable(tables.viridis), signed: decodeTable(tables.diverging) };
    this.grid = new Grid(this.find('heads-table'));
    this.plot = new Plot(this.find);
    this.lit = new Lit(this.find('heads-stage'), this.colours.plain, () => this.drawPhoto());
    this.names = new Names(this.find('heads-kinds'), (place) => this.choose(place));
    this.effects = new Effects();
    this.options = /** @type {Options} */ (defaultsOf(options));
    /** @type {Record<string, string | number>} what was chosen here and the server has not answered yet */
    this.pending = {};
    /** @type {Subject | null} */
    this.subject = null;
    /** @type {Told | null} */
    this.told = null;
    /** @type {Record<string, Table>} by class and way of switching off */
    this.importance = {};
    /** @type {Set<string>} which of them are on their way */
    this.coming = new Set();
    this.abort = new AbortController();
    /** @type {Place} */
    this.chosen = { layer: 0, head: 0 };
    /** @type {Place | null} */
    this.hovered = null;
    this.frame = 0;
    this.fillChooser();
  }

  /** The measures, in their groups. */
  fillChooser() {
    const groups = new Map(this.words.map(({ group }) => [group, make('optgroup')]));
    for (const [label, group] of groups) group.setAttribute('label', label);
    for (const { name, group, label } of this.words) {
      const option = make('option', '', label);
      option.value = name;
      groups.get(group)?.append(option);
    }
    this.find('heads-measure').append(...groups.values());
  }

  show(/** @type {Subject | null} */ subject) {
    if (!subject || subject.revision < (this.subject?.revision ?? -1)) return;
    showText(this.find('heads-error'), subject.note);
    for (const part of ['heads-main', 'heads-names']) this.find(part).hidden = !subject.trace;
    if (!subject.trace) {
      this.find('heads-wait').hidden = true;
      return;
    }
    const before = this.subject;
    this.subject = subject;
    this.settle(subject);
    this.effects.begin(subject.key, subject.effects);
    const isNew = before?.trace !== subject.trace;
    if (isNew || before?.query !== subject.query) this.lit.begin(subject);
    if (isNew) void this.begin(subject);
    this.draw();
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

  /** Another photo or model: its numbers. */
  async begin(/** @type {Subject} */ subject) {
    this.abort.abort();
    this.abort = new AbortController();
    Object.assign(this, { told: null, importance: {}, coming: new Set(), hovered: null });
    const told = await this.get('kind=measures', 'Measuring the heads …');
    if (!told || subject.trace !== this.subject?.trace) return;
    this.told = told;
    this.names.draw(told.names, told.rules, told.margin ?? 0.1);
    this.draw();
  }

  /** Fetches numbers; says what goes wrong. @param {string} search @param {string} words */
  async get(search, words) {
    const { signal } = this.abort;
    showText(this.find('heads-wait'), words);
    try {
      const answer = await fetched(`/vit_viz/head_numbers/${this.subject?.trace}?${search}`, signal);
      return await answer.json();
    } catch (error) {
      if (!signal.aborted) showText(this.find('heads-error'), /** @type {Error} */ (error).message);
      return null;
    } finally {
      if (!signal.aborted) showText(this.find('heads-wait'), '');
    }
  }

  follow(/** @type {import('./causal.js').News | null} */ news) {
    if (this.effects.follow(news)) this.draw();
  }

  get effect() {
    return this.effects.of[this.options.how];
  }

  get heads() {
    return (this.subject?.layers ?? 0) * (this.subject?.heads ?? 0);
  }

  /** The numbers of the chosen measure; null while they are on their way. @returns {Table | null} */
  get table() {
    const { measure, how } = this.options;
    if (measure === 'effect') return this.effect?.table ?? this.nothing();
    if (measure === 'estimate') return this.importance[`${this.subject?.target?.link}|${how}`] ?? null;
    return this.told?.measures[measure] ?? null;
  }

  /** A table of which nothing is known yet. @returns {Table} */
  nothing() {
    const { layers = 0, heads = 0 } = this.subject ?? {};
    const values = Array.from({ length: layers }, () => Array.from({ length: heads }, () => null));
    return { values, unit: '', signed: true, range: [null, null] };
  }

  /** Fetches the importance for the chosen class, once. */
  async fetchImportance() {
    const { subject, options, coming } = this;
    const link = subject?.target?.link ?? '';
    const key = `${link}|${options.how}`;
    if (!subject?.target || key in this.importance || coming.has(key)) return;
    coming.add(key);
    const search = new URLSearchParams({ kind: 'importance', how: options.how });
    if (link) search.set('target', link);
    const importance = await this.get(String(search), 'One pass forwards and one back …');
    coming.delete(key);
    if (!importance || subject.trace !== this.subject?.trace) return;
    this.importance[key] = importance;
    this.draw();
  }

  /** Everything that depends on the measure, the class and the chosen head. */
  draw() {
    const { subject, options, told } = this;
    if (!subject) return;
    if (options.measure === 'estimate' && !this.table) void this.fetchImportance();
    this.drawHead();
    const table = this.table;
    const isKnown = Boolean(table?.values.flat().some((value) => value !== null));
    this.find('heads-scroll').hidden = !table;
    this.find('bar').hidden = this.find('heads-plot').hidden = !isKnown;
    if (table) this.drawTable({ ...table, unit: this.unitOf(table) });
    this.find('heads-names').hidden = !told;
    if (told) this.find('heads-names-words').textContent = told.unnamed || `${NAMES} ${told.note}`.trim();
    this.mark();
    this.element.dataset.ready = table && told ? options.measure : '';
  }

  /** The chooser, the sentence, and the panel of the causal map. */
  drawHead() {
    const { options, subject } = this;
    const said = this.words.find(({ name }) => name === options.measure);
    const select = /** @type {HTMLSelectElement} */ (this.find('heads-measure'));
    select.value = options.measure;
    for (const option of select.querySelectorAll('option')) {
      const known = this.told?.measures;
      option.disabled =
        Boolean(known) && !(option.value in (known ?? {})) && !OF_THE_CLASS.includes(option.value);
    }
    for (const button of this.find('heads-orders').querySelectorAll('button'))
      button.setAttribute('aria-pressed', String(button.dataset.order === options.head_order));
    showText(this.find('heads-sentence'), said?.sentence);
    const isOfClass = OF_THE_CLASS.includes(options.measure);
    this.find('heads-causal').hidden = !isOfClass;
    if (!isOfClass || !subject) return;
    const { cost, causal_note: note, target } = subject;
    const effect = options.measure === 'effect' ? this.effect : undefined;
    drawCausal(this.find, { effect, how: options.how, target, cost, note, heads: this.heads });
    if (options.measure === 'estimate') this.find('heads-start').hidden = true;
    if (options.measure === 'estimate') showText(this.find('heads-cost'), note);
  }

  /** The painted table, its colour bar, and the plot. */
  drawTable(/** @type {Table} */ table) {
    const { layers, heads } = /** @type {Subject} */ (this.subject);
    const ends = endsOf(table);
    const colours = table.signed ? this.colours.signed : this.colours.plain;
    const label = this.words.find(({ name }) => name === this.options.measure)?.label ?? '';
    this.grid.lay(layers, heads);
    const nameOf = (/** @type {Place} */ place) => nameWords(this.names.of(place));
    this.grid.paint(table, { colours, ends, order: this.options.head_order, nameOf });
    this.find('heads-table').setAttribute(
      'aria-label',
      `${label}: a row for each layer, a cell for each head`,
    );
    showBar(this.find, [short(ends[0]), short(ends[1])], table.unit, colours);
    const { estimate, done = 0, correlation = 0 } = this.effect ?? {};
    if (this.options.measure === 'effect' && estimate) {
      const both = endsOf({ ...table, values: [...table.values, ...estimate] });
      this.plot.drawAgreement(estimate, table, both, agreementWords({ done, correlation }, this.heads));
    } else this.plot.drawDepth(label, table, ends);
  }

  /** The unit, with the name of the class in place of its number. */
  unitOf(/** @type {Table} */ { unit }) {
    const { name = '' } = this.subject?.target ?? {};
    return name ? unit.replace(/class \d+/, name) : unit;
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
    showText(this.find('heads-caption'), title[0].toUpperCase() + title.slice(1));
    const value = table?.values[place.layer]?.[place.head];
    const said = this.words.find(({ name }) => name === this.options.measure)?.label ?? '';
    const number = table && value !== undefined ? `${said}: ${valueWords(value, this.unitOf(table))}` : '';
    const name = nameWords(this.names.of(place));
    showText(this.find('heads-readout'), [number, name && `name: ${name}`].filter(Boolean).join('; '));
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
    this.mark();
    this.trigger('choose', { ...place });
  }

  /** Another measure, way of switching off, or order. @param {Partial<Options>} changed */
  set(changed) {
    this.options = { ...this.options, ...changed };
    Object.assign(this.pending, changed);
    this.draw();
    this.trigger('option', changed);
  }

  /** Pins a patch for the whole page. */
  pin(/** @type {number} */ patch) {
    if (this.subject) this.trigger('pin', { query: patchQuery([patch], this.subject.grid[1]) });
  }
}

const NAMES =
  'A head has the first name whose numbers pass their thresholds, on this photo alone. Each chip is a head, layer · head, and opens ' +
  'the numbers that named it; a dashed one lies so close to a threshold that the evidence is thin.';
