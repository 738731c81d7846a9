// The Survey tab: a filter, every head over the photos that pass, and those photos in lists. Numbers are fetched; the view holds choices.

import { decodeTable } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { fetched, fillRows, finder, having, make, optionOf, press, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { Grid } from '../heads/grid.js';
import { showBar, short } from '../../ui/kit/numbers.js';
import { Comparison } from './compared.js';
import { groupsOf, listWords, NAMED } from './groups.js';
import { listen } from './listen.js';
import {
  cardGroup,
  drawClasses,
  drawMethods,
  drawSpread,
  Lighter,
  columnWords,
  countWords,
  endsOf,
  growGroup,
  headLine,
  joined,
  nameLine,
  OFTEN,
  readBits,
} from './lists.js';
import { Dots } from './scatter.js';
import { Job } from '../kit/job.js';
import { thePage } from '../kit/page.js';
import { effect } from '../kit/preact.js';
/** @import { GroupName, ListName } from './groups.js' */
/** @import { Card, ClassLine, Methods } from './lists.js' */
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Store } from '../kit/store.js' */

/**
 * @typedef {{name: string, label: string, unit: string, meaning: string}} Measure
 * @typedef {{name: string, kind: string, unit: string, meaning: string, words: string[]}} Column words: its names on the screen
 * @typedef {{photos: number, model: string, layers: number, heads: number, has_boxes: boolean, has_labels:
 *   boolean, measures: Measure[], numbers: string[], columns: Column[], others: string[]}} Opened others: can be compared with
 *
 * @typedef {{layer: number, head: number, where: string, across: string, up: string, measure: string,
 *   list: ListName, second: string}} Choice second: the survey that this one is compared with
 * @typedef {{lit: boolean, note: string, jump: string}} Beside whether photos are lit by the head, or why not; jump: what a photo
 *   opens through, where the page shows another model
 *
 * @typedef {{measure: string, unit: string, mean: (number | null)[][], spread: (number | null)[][], photos:
 *   number, names: {name: string, sentence: string, evidence: number | null, thin: boolean}[], unknown:
 *   string}} Atlas
 *
 * @typedef {{count: number, labelled: number, accuracy: number | null, bits: string, atlas: Atlas, lists:
 *   Record<GroupName, Card[]>, totals: Record<GroupName | ListName, number>,
 *   classes: ClassLine[]}} Chosen
 *
 * @typedef {{survey: Opened, tables: Record<string, string>}} Props
 */

const METHODS_WAIT = 250; // milliseconds that a filter stands before the methods are resampled

/** @type {Mount<Props>} */
export function mount(element, _trigger, props) {
  survey(element, thePage().store, props);
}

/** @param {HTMLElement} element @param {Store} store @param {Props} props */
export function survey(element, store, props) {
  const { view } = store;
  const room = new SurveyRoom(element, store, props);
  listen(room);
  effect(() => {
    if (view.tab.value === 'survey') room.show(room.linked());
  });
  effect(() => {
    if (view.tab.value === 'survey') void room.askBeside(view.model.value, view.edits.value);
  });
  return room;
}

/** What the component shows. */
export class SurveyRoom {
  lighter = new Lighter();
  /** @type {Choice} */ choice = {
    layer: 0,
    head: 0,
    where: '',
    across: '',
    up: '',
    measure: '',
    list: 'high',
    second: '',
  };
  typed = '';
  brushed = '';
  isShown = false;
  /** @type {Beside} */ beside = { lit: false, note: '', jump: '' };
  /** @type {Chosen | null} */ chosen = null;
  /** @type {Card | null} the photo whose dot was clicked */ picked = null;
  timer = 0;
  job = new Job(() => {
    if (this.job.isRunning) return void (this.element.dataset.waits = 'true');
    delete this.element.dataset.waits;
    this.say(this.job.error);
  });

  /** @param {HTMLElement} element @param {Store} store @param {Props} props */
  constructor(element, store, { survey: opened, tables }) {
    this.find = finder(element);
    this.element = element;
    this.store = store;
    this.survey = opened;
    /** What is chosen, by the names of links. @type {Record<string, string>} */
    this.links = Object.fromEntries(
      [...store.fields.values()].flatMap(({ name, link }) =>
        name.startsWith('survey_') ? [[name.slice('survey_'.length), link]] : [],
      ),
    );
    this.colours = decodeTable(tables.viridis);
    this.grid = new Grid(this.find('survey-heads'));
    this.dots = new Dots('vv-survey-dots', {
      brush: (filter) => this.filter({ brushed: filter }),
      pick: (row) => void this.pick(row),
    });
    this.dots.beside = this.find('survey-atlas');
    this.comparison = new Comparison(this.find, opened.others);
    this.lay();
  }

  /** What never changes. */
  lay() {
    const { photos, model, measures, numbers, columns } = this.survey;
    this.find('survey-what').textContent = `${photos.toLocaleString('en')} photos through ${model}`;
    this.find('survey-measure').replaceChildren(...measures.map(({ name, label }) => optionOf(name, label)));
    for (const axis of ['across', 'up'])
      this.find(`survey-${axis}`).replaceChildren(
        ...numbers.map((name) => optionOf(name, columnWords(name))),
      );
    const often = OFTEN.filter(([, , needs]) =>
      needs === 'labels' ? this.survey.has_labels : this.survey.has_boxes,
    );
    const chips = often.map(([words, where]) =>
      having(make('button', 'vv-chip', words), { 'data-where': where }),
    );
    this.find('survey-chips').replaceChildren(...chips);
    fillRows(
      this.find('survey-names'),
      columns.map(({ name, unit, meaning, words }) => [
        having(make('th', '', words.join(', '), ...(words[0] === name ? [] : [make('code', '', name)])), {
          scope: 'row',
        }),
        unit ? `${meaning} (${unit})` : meaning,
      ]),
    );
    this.grid.lay(this.survey.layers, this.survey.heads);
  }

  /** What the link says is chosen, as this survey has it. @returns {Choice} */
  linked() {
    const { view } = this.store;
    const { layers, heads, measures } = this.survey;
    const [layer, head] = [view.layer.value, view.head.value];
    const named = Object.entries(this.links).map(([name, link]) => [name, view[link].value]);
    const { measure, ...others } = Object.fromEntries(named);
    return {
      ...others,
      layer: layer === null ? layers - 1 : Math.min(layer, layers - 1),
      head: typeof head === 'number' ? Math.min(head, heads - 1) : 0,
      measure: measures.some(({ name }) => name === measure) ? measure : measures[0].name,
    };
  }

  /** What the link says is chosen. */
  show(/** @type {Choice} */ choice) {
    const isFirst = !this.isShown;
    this.isShown = true;
    if (choice.where !== this.choice.where) Object.assign(this, { typed: choice.where, brushed: '' });
    this.change(choice, { isFirst });
  }

  /** What depends on the model that the page shows. @param {string} model @param {string} edits */
  async askBeside(model, edits) {
    try {
      const answer = await fetched(`/vit_viz/survey/beside?${new URLSearchParams({ model, edits })}`);
      const { view } = this.store;
      if (view.model.peek() !== model || view.edits.peek() !== edits) return;
      this.beside = /** @type {Beside} */ (await answer.json());
    } catch (error) {
      this.beside = { lit: false, note: /** @type {Error} */ (error).message, jump: '' };
    }
    showText(this.find('survey-note'), this.beside.note);
    showText(this.find('survey-jump'), this.beside.jump);
    this.drawLists();
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
    if (isNew(['second'])) void this.compare();
    if (ofHead || isNew(['where', 'measure', 'second'])) this.ask();
    else if (isNew(['list'])) this.drawLists();
  }

  /** A choice of the user. @param {Partial<Choice>} choice */
  choose(choice) {
    this.change(choice);
    const named = Object.entries(choice).map(([name, value]) => [this.links[name] ?? name, value]);
    this.store.set(Object.fromEntries(named));
  }

  /** Another filter: what was written, what was brushed, or both. @param {{typed?: string, brushed?: string}} parts */
  filter({ typed = this.typed, brushed = this.brushed }) {
    Object.assign(this, { typed, brushed, picked: null });
    const where = joined(typed, brushed);
    if (where !== this.choice.where) this.choose({ where });
  }

  get search() {
    const { where, layer, head, measure } = this.choice;
    const { second } = this.comparison;
    const search = new URLSearchParams({ where, layer: String(layer), head: String(head), measure });
    if (second) search.set('second', second);
    return search.toString();
  }

  /** The second survey, which takes a while: all else is there before. */
  async compare() {
    if (await this.comparison.show(this.choice.second)) this.ask();
  }

  /** Everything that depends on the filter. */
  ask() {
    clearTimeout(this.timer);
    this.lighter.stop(); // photos of the answer before would keep the server from this one
    const ask = async (/** @type {AbortSignal} */ stop) => {
      const answer = await fetched(`/vit_viz/survey/chosen?${this.search}`, stop, 400);
      const chosen = /** @type {Chosen & {refused?: string}} */ (await answer.json());
      if (chosen.refused) throw new Error(chosen.refused);
      return chosen;
    };
    const whole = (/** @type {Chosen} */ chosen) => {
      this.chosen = chosen;
      this.draw();
      const { signal } = this.job.stop;
      this.timer = window.setTimeout(() => void this.askMethods(signal), METHODS_WAIT);
    };
    void this.job.follow(ask, { whole });
  }

  /** Says why the filter was refused: what is shown of the one before is dimmed. */
  say(/** @type {string} */ refusal) {
    showError(this.find('survey-error'), refusal);
    this.element.toggleAttribute('data-stale', Boolean(refusal));
    this.find('survey-where').setAttribute('aria-invalid', String(Boolean(refusal)));
  }

  async askMethods(/** @type {AbortSignal} */ signal) {
    try {
      const answer = await fetched(`/vit_viz/survey/methods?${this.search}`, signal);
      const methods = /** @type {Methods} */ (await answer.json());
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
      showError(this.find('survey-error'), /** @type {Error} */ (error).message);
    }
  }

  /** The photo of a dot, first of the list. */
  async pick(/** @type {number} */ row) {
    const { layer, head } = this.choice;
    const answer = await fetched(`/vit_viz/survey/photo/${row}?layer=${layer}&head=${head}`);
    this.picked = /** @type {Card} */ (await answer.json());
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
    press(this.find('survey-chips'), 'where', this.typed);
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
    this.dots.fit();
  }

  drawAtlas(/** @type {Atlas} */ atlas) {
    const { mean, spread, unit, names } = atlas;
    const ends = endsOf(mean, spread);
    const nameOf = (/** @type {{layer: number, head: number}} */ { layer, head }) =>
      names[layer * this.survey.heads + head]?.name ?? '';
    this.grid.paint(
      { values: mean, unit, signed: false },
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
    const { chosen, choice } = this;
    const { list } = choice;
    if (!chosen) return;
    const label = this.survey.measures.find(({ name }) => name === choice.measure)?.label ?? '';
    const isKnown = this.survey.has_boxes && this.survey.has_labels;
    this.find('survey-list-words').textContent = listWords(
      list,
      { ...choice, label, isKnown, second: this.comparison.second },
      this.litWords,
    );
    const nodes = groupsOf(list, chosen.totals).map(([title, name]) =>
      cardGroup(title, chosen.lists[name], NAMED[name] ?? '', { name, total: chosen.totals[name] }),
    );
    if (this.picked) nodes.unshift(cardGroup('the dot that was chosen', [this.picked], ''));
    this.find('survey-cards').replaceChildren(...nodes);
    const file = /** @type {HTMLAnchorElement} */ (this.find('survey-csv'));
    file.href = routeUrl(`/vit_viz/survey/photos.csv?${this.search}&list=${list}`);
    file.textContent = `Save ${chosen.totals[list].toLocaleString('en')} paths (CSV)`;
    file.hidden = !chosen.totals[list];
    press(this.element, 'list', list);
    this.light();
  }

  get litWords() {
    return this.beside.lit
      ? 'Each photo is lit by what the head looks at, computed now; until then a ring marks the highest patch that the survey noted.'
      : 'The ring marks the highest patch of the head, as the survey noted it.';
  }

  light() {
    if (!this.beside.lit) return this.lighter.stop();
    const { layer, head } = this.choice;
    const cards = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll('.vv-survey-card')]);
    void this.lighter.light(cards, (row) =>
      routeUrl(`/vit_viz/survey/lit/${row}?layer=${layer}&head=${head}`),
    );
  }

  /** The next photos of a list. */
  async more(/** @type {GroupName} */ name) {
    const { chosen } = this;
    if (!chosen) return;
    const cards = chosen.lists[name];
    const from = cards.length;
    try {
      const path = `/vit_viz/survey/cards?${this.search}&list=${name}&from=${from}`;
      const more = /** @type {Card[]} */ (await (await fetched(path, this.job.stop.signal)).json());
      if (chosen !== this.chosen || cards.length !== from) return;
      cards.push(...more);
      const groups = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll('[data-group]')]);
      const group = groups.find(({ dataset }) => dataset.group === name);
      if (group) growGroup(group, more, NAMED[name] ?? '', cards.length, chosen.totals[name]);
      this.light();
    } catch (error) {
      if (chosen === this.chosen) showError(this.find('survey-error'), /** @type {Error} */ (error).message);
    }
  }

  /** A photo in Look, as the survey's model received it, with the head under the outline. */
  async open(/** @type {number} */ row) {
    const { layer, head } = this.choice;
    const { store } = this;
    const now = (/** @type {string} */ name) => {
      const value = store.view[name].peek();
      return value || (store.fields.get(name)?.usual ?? value);
    };
    const path = `/vit_viz/survey/look/${row}?model=${encodeURIComponent(now('model'))}`;
    try {
      const { refused, ...subject } = await (await fetched(path)).json();
      if (refused) throw new Error(refused);
      if (Object.entries(subject).some(([name, value]) => now(name) !== value)) store.look(subject);
      store.set({ layer, head });
      document.getElementById('vv-tab-look-button')?.click();
    } catch (error) {
      showError(this.find('survey-error'), /** @type {Error} */ (error).message);
    }
  }
}
