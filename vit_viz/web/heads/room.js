// The Heads tab but for the matrix: every head as a small photo with one measure and a name, as a switch, or by depth; the head under
// the pointer, or the chosen one, in detail.

import { patchQuery, queryPatches, queryWords } from '../../explorer/geometry.js';
import { decodeTable } from '../../explorer/paint.js';
import { initialView, updateView } from '../../explorer/state.js';
import { finder, press, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { short } from '../../ui/kit/numbers.js';
import { asked } from '../kit/ask.js';
import { opened, thePage } from '../kit/page.js';
import { effect as follow, untracked } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
import { TargetChooser } from '../kit/target.js';
import { chosenIn } from '../look/keeper.js';
import { BeforeNow } from './before_now.js';
import { agreement, drawCausal, Effects } from './causal.js';
import { Job, JobBar } from '../kit/job.js';
import { fillChooser, markChooser } from './chooser.js';
import { Detail } from './detail.js';
import { findingOf } from './findings.js';
import { listen } from './listen.js';
import { Lit } from './lit.js';
import { matrixIn, OPTIONS } from './matrix.js';
import { Names, nameWords } from './names.js';
import { Numbers } from './numbers.js';
import { PhotoGrid } from './photo_grid.js';
import { Plot } from './plot.js';
import { Surgery } from './surgery.js';
import { Tiles } from './tiles.js';
import { agreementWords, capital, endsOf, headWords, scaleWords, valueWords } from './words.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Effect, Target } from './causal.js' */
/** @import { Rule } from './names.js' */
/** @import { Panel } from './surgery.js' */
/** @import { Place, Table } from './words.js' */

/**
 * @typedef {{face: string, measure: string, how: string, order: string}} Options
 * @typedef {{name: string, group: string, label: string, sentence: string}} MeasureWords
 *
 * What the heads are of: the answer of vit_viz/ui/opened.py, and the chosen query.
 * @typedef {import('../../explorer/geometry.js').Trace & {about: any, query: string}} Subject
 *
 * What of it is for a class; note: why there is none.
 * @typedef {{target: Target | null, cost: string, note: string}} OfClass
 *
 * @typedef {{tables: Record<string, string>, measures: MeasureWords[], rules: Rule[], margin: number}} Props
 */

/** Measures that depend on the class. */
const OF_THE_CLASS = ['estimate', 'effect'];

const RANKED = 50; // classes that are compared before and after an edit

/** @type {import('../../ui/kit/elements.js').Mount<Props>} */
export function mount(element, _trigger, props) {
  headsIn(element, thePage(), props);
}

/** @param {HTMLElement} element with room.html @param {Page} one @param {Props} props */
export function headsIn(element, one, props) {
  const { store, ask } = one;
  const { view } = store;
  const open = opened(one, 'heads');
  const isHere = () => view.tab.value === 'heads';
  const targeted = () => store.linkOf(TARGETED);
  /** What is open, as far as it is that of the store. */
  const present = () => (isHere() && open.value.state === 'done' ? open.value.value : null);
  /**
   * Asks the page about what is open; the answer says what it is of.
   * @param {string} name @param {() => string} link @param {(told: any, about: any, stop: AbortSignal) => any} [more] that is asked then
   */
  const ofPage = (name, link, more) =>
    asked(
      async (_name, of, stop) => {
        const told = await ask(name, { view: of.link }, stop);
        return { ...of, ...told, ...(await more?.(told, of.about, stop)) };
      },
      () => {
        const subject = present();
        return subject && [name, { link: link(), of: subject.trace, ...shapeOf(subject) }];
      },
    );
  const target = ofPage('target', () => targeted());
  const causal = ofPage('causal', () => targeted());
  const panel = ofPage(
    'surgery',
    () => store.subject(),
    async ({ edits }, about, stop) => {
      const [before, now] = ['', edits].map((words) =>
        ask('classes', { ...about, edits: words, count: RANKED }, stop).then(answersIn, () => []),
      );
      return { before: await before, now: await now };
    },
  );
  /** @returns {Panel | null} */
  const edited = () => {
    const { state, value } = panel.value;
    const isOfThis = present()?.trace === value?.of && value?.link === store.subject();
    return state === 'done' && isOfThis ? value : null;
  };
  const chosenOf = (/** @type {any} */ trace) =>
    updateView(initialView(trace), chosenIn(store, trace), trace);
  const room = new HeadRoom(element, one, props, () => untracked(edited));
  listen(room);
  const matrix = matrixIn(element, store, room.colours.plain);
  const chooser = new TargetChooser(room.find('heads-classes'), {
    why: (index) => store.set({ target: String(index) }),
    find: async (text, stop) => (await ask('target', { view: targeted(), find: text }, stop)).hits,
  });
  follow(() => {
    const { state, value } = target.value;
    if (state === 'done') chooser.show({ ...value, single: true });
  });
  follow(() => {
    if (!isHere()) return;
    const { state, error = '', value } = open.value;
    const options = {
      ...{ face: view.face.value, measure: view.measure.value },
      ...{ how: view.how.value, order: view.order.value },
    };
    if (state !== 'done') return untracked(() => room.wait(options, error));
    const chosen = chosenOf(value);
    const map = ofTrace(causal.value, value.trace);
    const ofClass = {
      ...{ target: ofTrace(target.value, value.trace), note: target.value.error ?? '' },
      cost: map?.cost ?? '',
    };
    const refused = panel.value.error ?? '';
    untracked(() => {
      room.show(value, chosen, options, ofClass);
      if (map && ofClass.target && map.link === targeted()) room.effects.keep(map.kept);
      room.surgery.take();
      if (refused) showError(room.find('surgery-error'), refused);
    });
  });
  follow(() => {
    const [face, { state, value }] = [view.face.value, open.value];
    OPTIONS.forEach((name) => view[name].value); // read here, so that a change of them is followed
    if (!isHere() || state === 'none' || state === 'pending') return;
    const chosen = state === 'done' ? chosenOf(value) : undefined;
    untracked(() => matrix.show(face === 'matrix' ? value : null, chosen));
  });
  return room;
}

/** An answer where it is about a trace, which another one may follow already. @param {import('../kit/ask.js').Answer} answer @param {string} trace */
function ofTrace({ state, value }, trace) {
  return state !== 'failed' && value?.of === trace ? value : null;
}

/** Classes or values, the first ones. @param {any} answer @returns {import('./findings.js').Answer[]} */
function answersIn({ arrays, facts }) {
  const amount = facts.unit === 'value' ? 'value' : 'probability';
  return facts.names.map((/** @type {string} */ name, /** @type {number} */ i) => ({
    ...{ name, [amount]: arrays.scores.data[i] },
  }));
}

/** What a part of the room knows of what is open. @param {Subject} subject */
function shapeOf({ about, layers, heads, grid, crop, photo, photo_size, name }) {
  return { about, layers, heads, grid, crop, photo, photo_size, name };
}

/** What of edits is another place, to which Back leads: temperatures are not. @param {string} edits in words */
function placeOfEdits(edits) {
  return edits
    .split(';')
    .filter((one) => !one.startsWith('temperature '))
    .join(';');
}

/** What the component shows. */
export class HeadRoom {
  /** @type {Options} */ options = { face: '', measure: '', how: '', order: '' };
  /** @type {Subject | null} */ subject = null;
  /** @type {Target | null} */ target = null;
  cost = '';
  note = ''; // why there is nothing to ask of a class
  /** @type {Place} */ chosen = { layer: 0, head: 0 };
  /** @type {Place | null} */ hovered = null;
  isOpening = true; // whether the next is on its way
  reopened = ''; // the trace that was opened again, because the server did not keep it
  frame = 0;

  /** @param {HTMLElement} element @param {Page} one @param {Props} props @param {() => Panel | null} edited */
  constructor(element, { store, ask, turn }, { tables, measures, rules, margin }, edited) {
    this.element = element;
    this.find = finder(element);
    this.store = store;
    this.ask = ask;
    this.words = measures;
    this.colours = { plain: decodeTable(tables.viridis), signed: decodeTable(tables.diverging) };
    this.effects = new Effects(ask, () => this.draw());
    this.bar = new JobBar(this.find('heads-switching'), {
      begin: () => this.effects.start(this.options.how),
      end: () => this.effects.end(),
    });
    this.grid = new PhotoGrid(this.find('heads-table'));
    this.plot = new Plot(this.find);
    this.tiles = new Tiles(
      this.find('heads-grid'),
      /** @type {HTMLCanvasElement} */ (this.find('heads-tiles')),
      this.colours.plain,
    );
    const again = (/** @type {string} */ trace) => {
      if (this.reopened === trace) return false;
      this.reopened = trace;
      turn.value += 1;
      return true;
    };
    this.lit = new Lit(this.find('heads-stage'), this.colours.plain, () => this.arrived(), again);
    this.names = new Names(this.find('heads-kinds'), this.find('heads-names-words'), { rules, margin }, () =>
      this.names.fade(this),
    );
    this.numbers = new Numbers(this);
    this.detail = new Detail(this);
    this.compared = new BeforeNow(this.find, this.colours);
    this.surgery = new Surgery(
      this.find,
      (words, stop) => this.edit(words, stop),
      edited,
      () => this.draw(),
    );
    fillChooser(this.chooser, measures);
    new ResizeObserver(() => this.fit()).observe(this.find('heads-scroll'));
    new ResizeObserver(() => this.fit()).observe(this.find('heads-stage'));
  }

  /** What is looked at is on its way, or cannot be shown. @param {Options} options @param {string} error */
  wait(options, error) {
    this.options = options;
    this.isOpening = !error;
    this.showFace(options.face);
    this.dim();
    if (!error) return;
    showError(this.find('heads-error'), error, { stays: true });
    this.find('heads-main').hidden = true;
    this.element.dataset.ready = '';
    showText(this.find('heads-wait'), '');
  }

  /** @param {any} trace @param {import('../../explorer/state.js').View} chosen @param {Options} options @param {OfClass} ofClass */
  show(trace, { layer, head, query }, options, ofClass) {
    if (this.find('heads-main').hidden) showError(this.find('heads-error'), '');
    this.find('heads-main').hidden = false;
    const before = this.subject;
    const subject = (this.subject = { ...trace, query });
    this.isOpening = false;
    this.chosen = { layer, head: typeof head === 'number' ? head : 0 };
    Object.assign(this, { options, ...ofClass });
    const { target } = this;
    this.effects.begin(`${subject.trace}|${target?.link}`, target && this.ofClass);
    const isNew = before?.trace !== subject.trace;
    if (isNew || before?.query !== query || this.lit.isGone) this.lit.begin(subject);
    if (isNew) {
      this.detail.begin();
      this.numbers.begin(subject);
    }
    this.draw();
    this.fit();
  }

  /** What a question about the chosen class is asked with; how a head is switched off is that of the moment. */
  get ofClass() {
    const link = this.target?.link;
    return { ...this.subject?.about, how: this.options.how, ...(link && { target: link }) };
  }

  /** What is seen is of what was there before, while that of the next is on its way. */
  dim() {
    const isOld = (this.isOpening && Boolean(this.subject)) || this.numbers.isOld;
    this.find('heads').toggleAttribute('data-old', isOld);
    this.find('heads-main').setAttribute('aria-busy', String(isOld && !this.find('heads-work').hidden));
  }

  get told() {
    return this.numbers.told;
  }

  /** Whether what is seen needs the estimate, and that is not here. */
  get lacksEstimate() {
    const { measure } = this.options;
    const found = this.effect;
    if (this.isOpening) return false;
    if (measure === 'estimate') return !this.table;
    return (
      measure === 'effect' &&
      Boolean(found?.table) &&
      !this.effects.jobOf(this.options.how).isRunning &&
      !found?.estimate
    );
  }

  /** What is known of the chosen way of switching off, with its estimate. @returns {Effect | undefined} */
  get effect() {
    const found = this.effects.of[this.options.how];
    const estimate = found?.estimate ?? this.numbers.estimate?.values;
    if (!found?.table || !estimate) return found;
    return { ...found, estimate, correlation: agreement(estimate, found.table) };
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
    return { values, unit: '', signed: true };
  }

  /** Everything that depends on the measure, the class and the chosen head. */
  draw() {
    const { subject, options, told } = this;
    if (!subject) return;
    if (this.lacksEstimate) void this.numbers.askImportance();
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
    if (told || this.numbers.isLong || !this.find('heads-error').hidden)
      this.find('heads').dataset.drawn = '';
    const isReady = table && told && !this.numbers.isOld && !this.isOpening;
    this.element.dataset.ready = isReady ? options.measure : '';
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
    const { options } = this;
    const said = this.words.find(({ name }) => name === options.measure);
    const known = this.told && [...Object.keys(this.told.measures), ...OF_THE_CLASS];
    markChooser(this.chooser, options.measure, known);
    press(this.find('heads-orders'), 'order', options.order);
    showText(this.find('heads-sentence'), said?.sentence);
    this.find('heads-causal').hidden = !this.isOfClass;
    if (!this.isOfClass) return;
    const { cost, note, target } = this;
    const { measure, how } = options;
    const [effect, job] =
      measure === 'effect' ? [this.effect, this.effects.jobOf(how)] : [undefined, new Job()];
    drawCausal(this.find, this.bar, { effect, job, how, target, cost, note, heads: this.heads });
    if (measure === 'estimate') this.find('heads-start').hidden = true;
    if (measure === 'estimate') showText(this.find('heads-cost'), note);
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
      order: this.options.order,
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
    const { name = '' } = this.target ?? {};
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
    this.hovered = null;
    this.surgery.see(place.layer);
    this.store.set({ ...place });
    this.mark();
  }

  /** Another face or measure, which Back leaves. @param {{face: string} | {measure: string}} changed */
  go(changed) {
    this.store.set(changed, { push: true });
  }

  /** Pins a patch for the whole page. */
  pin(/** @type {number} */ patch) {
    if (this.subject) this.store.set({ q: patchQuery([patch], this.subject.grid[1]) }, { push: true });
  }

  /**
   * Edits the model of the whole page, in words; what it cannot have is refused.
   * @param {string} words @param {AbortSignal} stop
   */
  async edit(words, stop) {
    const { store } = this;
    const link = store.subject();
    const { edits } = await this.ask('surgery', { view: link, edits: words }, stop);
    if (stop.aborted || store.subject() !== link) return; // Back was pressed, or another photo chosen, meanwhile
    const before = store.view.edits.peek();
    store.set({ edits }, { push: placeOfEdits(before) !== placeOfEdits(edits) });
  }
}
