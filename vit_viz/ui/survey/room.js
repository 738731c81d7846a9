// The Survey tab: a filter, every head over the photos that pass, and those photos in lists. Numbers are fetched; the view holds choices.

import { decodeTable } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { offer } from '../kit/controls.js';
import { finder, make, showText, fetched } from '../kit/elements.js';
import { Grid } from '../heads/grid.js';
import { showBar, short } from '../kit/numbers.js';
import { listen } from './listen.js';
import {
  cardGroup,
  drawClasses,
  drawMethods,
  Lighter,
  columnWords,
  countWords,
  endsOf,
  headLine,
  joined,
  nameLine,
  readBits,
} from './lists.js';
import { Dots } from './scatter.js';

/**
 * @typedef {{name: string, label: string, unit: string, meaning: string}} Measure
 * @typedef {{name: string, kind: string, unit: string, meaning: string}} Column
 * @typedef {{photos: number, model: string, layers: number, heads: number, has_boxes: boolean, has_labels:
 *   boolean, measures: Measure[], numbers: string[], columns: Column[]}} Opened
 *
 * @typedef {{layer: number, head: number, where: string, across: string, up: string, measure: string}} Choice
 * @typedef {Choice & {revision: number, image: string, prefix: string, lit: boolean, note: string}} Value
 *
 * @typedef {{measure: string, unit: string, mean: (number | null)[][], spread: (number | null)[][], photos:
 *   number, names: {name: string, sentence: string, evidence: number | null, thin: boolean}[], unknown:
 *   string}} Atlas
 *
 * @typedef {{count: number, labelled: number, accuracy: number | null, bits: string, atlas: Atlas, lists:
 *   Record<'high' | 'low' | 'elsewhere' | 'all', import('./lists.js').Card[]>, classes:
 *   import('./lists.js').ClassLine[]}} Chosen
 *
 * @typedef {{value: Value | null, survey: Opened, tables: Record<string, string>}} Props
 */

const TELL_WAIT = 250; // milliseconds after which the page hears of a choice: Gradio takes 70 of them, and the answer comes first
const METHODS_WAIT = 250; // milliseconds that a filter stands before the methods are resampled

/** Filters that are often asked for. @type {[string, string, 'labels' | 'boxes'][]} */
const OFTEN = [
  ['right', 'is_right', 'labels'],
  ['wrong', 'not is_right', 'labels'],
  ['wrong and sure', 'not is_right and confidence > 0.5', 'labels'],
  ['looks outside the boxes', 'outside_box > 0.5', 'boxes'],
];

/** @type {import('../kit/elements.js').Mount<Props>} */
export function mount(element, trigger, props, watch) {
  const room = new SurveyRoom(element, trigger, props);
  listen(room);
  watch('value', () => room.show(props.value));
  room.show(props.value);
}

/** What the component shows. */
export class SurveyRoom {
  /** @param {HTMLElement} element @param {import('../kit/elements.js').Trigger} trigger @param {Props} props */
  constructor(element, trigger, { survey, tables }) {
    this.find = finder(element);
    this.element = element;
    this.trigger = trigger;
    this.survey = survey;
    this.colours = decodeTable(tables.viridis);
    this.grid = new Grid(this.find('survey-heads'));
    this.lighter = new Lighter();
    this.dots = new Dots('vv-survey-dots', {
      brush: (filter) => this.filter({ brushed: filter }),
      pick: (row) => void this.pick(row),
    });
    /** @type {Choice} */
    this.choice = { layer: 0, head: 0, where: '', across: '', up: '', measure: '' };
    this.typed = '';
    this.brushed = '';
    /** @type {Value | null} */
    this.value = null;
    /** @type {Chosen | null} */
    this.chosen = null;
    /** @type {'high' | 'elsewhere' | 'all'} */
    this.list = 'high';
    /** @type {import('./lists.js').Card | null} the photo whose dot was clicked */
    this.picked = null;
    this.opening = -1;
    this.sent = 0;
    this.timer = 0;
    this.abort = new AbortController();
    this.lay();
  }

  /** What never changes. */
  lay() {
    const { photos, model, measures, numbers, columns } = this.survey;
    this.find('survey-what').textContent = `${photos.toLocaleString('en')} photos through ${model}`;
    fillSelect(
      this.find('survey-measure'),
      measures.map(({ name, label }) => [name, label]),
    );
    for (const axis of ['across', 'up'])
      fillSelect(
        this.find(`survey-${axis}`),
        numbers.map((name) => [name, columnWords(name)]),
      );
    const often = OFTEN.filter(([, , needs]) =>
      needs === 'labels' ? this.survey.has_labels : this.survey.has_boxes,
    );
    const chips = often.map(([words, where]) => {
      const chip = make('button', 'vv-chip', words);
      chip.dataset.where = where;
      return chip;
    });
    this.find('survey-chips').replaceChildren(...chips);
    const lines = columns.map(({ name, unit, meaning }) => {
      const line = make('tr');
      const head = make('th', '', name);
      head.setAttribute('scope', 'row');
      line.append(head, make('td', '', unit ? `${meaning} (${unit})` : meaning));
      return line;
    });
    this.find('survey-names')
      .querySelector('tbody')
      ?.replaceChildren(...lines);
    this.grid.lay(this.survey.layers, this.survey.heads);
  }

  /** What the view says is chosen; what was chosen here meanwhile is newer. */
  show(/** @type {Value | null} */ value) {
    if (!value || value.revision < (this.value?.revision ?? -1)) return;
    const isFirst = !this.value;
    this.value = value;
    showText(this.find('survey-note'), value.note);
    if (this.opening >= 0 && value.image === `${value.prefix}${this.opening}`) {
      this.opening = -1;
      document.getElementById('vv-tab-look-button')?.click();
    }
    if (this.sent > 0) {
      this.sent -= 1;
      return;
    }
    const { layer, head, where, across, up, measure } = value;
    if (where !== this.choice.where) Object.assign(this, { typed: where, brushed: '' });
    this.change({ layer, head, where, across, up, measure }, { isFirst });
  }

  /** Another choice: fetches what it changes. @param {Partial<Choice>} choice @param {{isFirst?: boolean}} [how] */
  change(choice, { isFirst = false } = {}) {
    const before = this.choice;
    this.choice = { ...before, ...choice };
    const isNew = (/** @type {(keyof Choice)[]} */ names) =>
      isFirst || names.some((name) => this.choice[name] !== before[name]);
    this.drawChoice();
    const ofHead = isNew(['layer', 'head']);
    const axes = [this.choice.across, this.choice.up];
    if (isNew(['across', 'up']) || (ofHead && axes.some((name) => name.startsWith('head_'))))
      void this.place();
    if (ofHead || isNew(['where', 'measure'])) void this.ask();
  }

  /** A choice of the user: the view is told. @param {Partial<Choice>} choice */
  choose(choice) {
    this.change(choice);
    this.sent += 1;
    const { layer, head, ...options } = choice;
    const named = Object.entries(options).map(([name, text]) => [`survey_${name}`, text]);
    window.setTimeout(() => {
      if (layer !== undefined) this.trigger('choose', { layer, head });
      else this.trigger('option', Object.fromEntries(named));
    }, TELL_WAIT);
  }

  /** Another filter: what was written, what was brushed, or both. @param {{typed?: string, brushed?: string}} parts */
  filter({ typed = this.typed, brushed = this.brushed }) {
    Object.assign(this, { typed, brushed, picked: null });
    const where = joined(typed, brushed);
    if (where !== this.choice.where) this.choose({ where });
  }

  get search() {
    const { where, layer, head, measure } = this.choice;
    return new URLSearchParams({ where, layer: String(layer), head: String(head), measure }).toString();
  }

  /** Everything that depends on the filter. */
  async ask() {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    clearTimeout(this.timer);
    this.lighter.stop(); // photos of the answer before would keep the server from this one
    this.element.dataset.waits = 'true';
    try {
      this.chosen = /** @type {Chosen} */ (
        await (await fetched(`/vit_viz/survey/chosen?${this.search}`, signal, 400)).json()
      );
      showText(this.find('survey-error'), '');
      this.draw();
      this.timer = window.setTimeout(() => void this.askMethods(signal), METHODS_WAIT);
    } catch (error) {
      if (!signal.aborted) showText(this.find('survey-error'), /** @type {Error} */ (error).message);
    } finally {
      if (!signal.aborted) delete this.element.dataset.waits;
    }
  }

  async askMethods(/** @type {AbortSignal} */ signal) {
    try {
      const answer = await fetched(`/vit_viz/survey/methods?${this.search}`, signal);
      const methods = /** @type {import('./lists.js').Methods} */ (await answer.json());
      this.find('survey-conclusion').textContent = methods.conclusion;
      const words = drawMethods(this.find('survey-method-table'), methods);
      showText(this.find('survey-method-words'), words);
    } catch (error) {
      if (!signal.aborted) this.find('survey-conclusion').textContent = /** @type {Error} */ (error).message;
    }
  }

  /** Where the dots are. */
  async place() {
    const { across, up, layer, head } = this.choice;
    const search = new URLSearchParams({ across, up, layer: String(layer), head: String(head) });
    try {
      const answer = await fetched(`/vit_viz/survey/points?${search}`);
      const points = new Float32Array(await answer.arrayBuffer());
      if (across === this.choice.across && up === this.choice.up) this.dots.fill(points, across, up);
    } catch (error) {
      showText(this.find('survey-error'), /** @type {Error} */ (error).message);
    }
  }

  /** The photo of a dot, first of the list. */
  async pick(/** @type {number} */ row) {
    const { layer, head } = this.choice;
    const answer = await fetched(`/vit_viz/survey/photo/${row}?layer=${layer}&head=${head}`);
    this.picked = /** @type {import('./lists.js').Card} */ (await answer.json());
    this.drawLists();
  }

  drawChoice() {
    const { where, across, up, measure, layer, head } = this.choice;
    const field = /** @type {HTMLTextAreaElement} */ (this.find('survey-where'));
    if (document.activeElement !== field || this.brushed) field.value = where;
    for (const [name, value] of Object.entries({ across, up, measure }))
      /** @type {HTMLSelectElement} */ (this.find(`survey-${name}`)).value = value;
    this.find('survey-clear').hidden = !where;
    this.find('survey-unbrush').hidden = !this.brushed;
    for (const chip of this.element.querySelectorAll('.vv-survey-chips .vv-chip'))
      chip.setAttribute(
        'aria-pressed',
        String(/** @type {HTMLElement} */ (chip).dataset.where === this.typed),
      );
    this.grid.mark({ layer, head }, null);
  }

  draw() {
    const { chosen } = this;
    if (!chosen) return;
    this.find('survey-count').textContent = countWords(chosen, this.survey.photos);
    this.dots.select(chosen.count === this.survey.photos ? null : readBits(chosen.bits, this.survey.photos));
    this.drawAtlas(chosen.atlas);
    this.drawLists();
    drawClasses(this.find('survey-class-table'), chosen.classes);
    this.find('survey-classes').hidden = !chosen.classes.length;
  }

  drawAtlas(/** @type {Atlas} */ atlas) {
    const { mean, spread, unit, names } = atlas;
    const ends = endsOf(mean, spread);
    const nameOf = (/** @type {{layer: number, head: number}} */ { layer, head }) =>
      names[layer * this.survey.heads + head]?.name ?? '';
    this.grid.paint(
      { values: mean, unit, signed: false, range: ends },
      { colours: this.colours, ends, order: 'head', nameOf },
    );
    this.grid.mark(this.choice, null); // before the first table no cell says which head it is of
    this.grid.cells.forEach((cells, layer) =>
      cells.forEach((cell, head) => drawSpread(cell, mean[layer][head], spread[layer][head], ends)),
    );
    const { measure } = this.choice;
    const said = this.survey.measures.find(({ name }) => name === measure);
    this.find('survey-meaning').textContent = said?.meaning ?? '';
    showBar(this.find, [short(ends[0]), short(ends[1])], unit, this.colours);
    this.find('survey-unknown').textContent = atlas.unknown;
    this.read(this.choice);
  }

  /** Says what is known of a head. */
  read(/** @type {{layer: number, head: number}} */ place) {
    if (!this.chosen) return;
    const { atlas } = this.chosen;
    this.find('survey-readout').textContent = headLine(place, atlas);
    showText(this.find('survey-named'), nameLine(atlas.names[place.layer * this.survey.heads + place.head]));
  }

  drawLists() {
    const { chosen, choice, list, survey } = this;
    if (!chosen) return;
    const label = survey.measures.find(({ name }) => name === choice.measure)?.label ?? '';
    const [named, words] = {
      high: [
        '',
        `Where the ${label} of layer ${choice.layer}, head ${choice.head} is highest, then lowest. ${this.litWords}`,
      ],
      elsewhere: [
        'outside',
        survey.has_boxes && survey.has_labels
          ? `Wrong answers, by confidence times what of the last layer's map falls outside the boxes. ${this.litWords}`
          : 'This list needs photos with labels and boxes.',
      ],
      all: ['', `The first photos that pass the filter, in the survey's order. ${this.litWords}`],
    }[list];
    this.find('survey-list-words').textContent = words;
    const groups =
      list === 'high'
        ? [
            ['highest', chosen.lists.high],
            ['lowest', chosen.lists.low],
          ]
        : [['', chosen.lists[list]]];
    if (this.picked) groups.unshift(['the dot that was clicked', [this.picked]]);
    const nodes = /** @type {[string, import('./lists.js').Card[]][]} */ (groups).map(([title, cards]) =>
      cardGroup(title, cards, named),
    );
    this.find('survey-cards').replaceChildren(...nodes);
    for (const button of this.element.querySelectorAll('[data-list]'))
      button.setAttribute('aria-pressed', String(/** @type {HTMLElement} */ (button).dataset.list === list));
    this.light();
  }

  get litWords() {
    return this.value?.lit
      ? 'Each photo is lit by what the head looks at, computed now; until then a ring marks the highest patch that the survey noted.'
      : 'The ring marks the highest patch of the head, as the survey noted it.';
  }

  light() {
    if (!this.value?.lit) return this.lighter.stop();
    const { layer, head } = this.choice;
    const theme = document.body.classList.contains('dark') ? 'dark' : 'light';
    const cards = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll('.vv-survey-card')]);
    void this.lighter.light(cards, (row) =>
      routeUrl(`/vit_viz/survey/lit/${row}?layer=${layer}&head=${head}&theme=${theme}`),
    );
  }

  open(/** @type {number} */ row) {
    this.opening = row;
    if (this.value?.image === `${this.value?.prefix}${row}`)
      document.getElementById('vv-tab-look-button')?.click();
    else this.trigger('look', { row });
  }
}

/** @param {HTMLElement} select @param {string[][]} choices */
function fillSelect(select, choices) {
  offer(
    /** @type {HTMLSelectElement} */ (select),
    choices.map(([value, label]) => ({ value, label })),
  );
}

/** A line in a cell. @param {HTMLElement} cell @param {number | null} mean @param {number | null} spread @param {[number, number]} ends */
function drawSpread(cell, mean, spread, [low, high]) {
  const at = (/** @type {number} */ value) => `${(100 * (value - low)) / (high - low || 1)}%`;
  cell.style.setProperty('--from', mean === null ? '0%' : at(mean - (spread ?? 0)));
  cell.style.setProperty('--to', mean === null ? '0%' : at(mean + (spread ?? 0)));
}
