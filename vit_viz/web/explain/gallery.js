// The maps of all methods side by side, and how far to believe the chosen one. The cards are asked for in the browser; what takes long is
// run by Python as yet: the prop 'progress' follows the slow methods, by their names, and 'trust' the test of all maps. Each says in 'key'
// what it is about; what is about something else is not shown, but for a test of the same photo towards another class, which is shown as
// that class's until this one is tested.

import { finder, onPress, press, showJob, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { asked } from '../kit/ask.js';
import { thePage } from '../kit/page.js';
import { computed, effect, signal } from '../kit/preact.js';
import { drawAgreement, firstChoice } from './agree.js';
import { Belief } from './belief.js';
import { Card, endOfStrips } from './card.js';
/** @import { Mount, Trigger } from '../../ui/kit/elements.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Method, Slow, Trust } from './card.js' */

/**
 * An answer to what the page asks by /vit_viz/gallery.
 * @typedef {object} Base
 * @property {string} key of the picture, the model and the class
 * @property {string} about of the picture and the model
 * @property {string} target the class in words; empty for an embedding
 * @property {Method[]} cards
 * @property {string} [rule] what the cards show, while that is not their own map
 * @property {import('./agree.js').Agreement | null} [agreement]
 *
 * @typedef {Slow & {seq: number}} SlowNews
 *
 * @typedef {{key: string, of: Record<string, SlowNews>}} Progress
 *
 * @typedef {{key: string, running?: boolean, words?: string, share?: number, error?: string, order?: string[],
 *   cards?: Record<string, Trust>}} TestNews order: methods, the most trusted first
 *
 * What a test found of the maps for one class: how far each can be trusted, and which comes first.
 * @typedef {{target: string, trust: Record<string, Trust>, order: string[]}} Tested
 *
 * What became of a map when the weights were re-initialised.
 * @typedef {{key: string, method: string, words: string}} Weights
 *
 * @typedef {{progress: Progress | null, trust: TestNews | null, weights: Weights | null}} Props
 */

const QUESTION = 'Which are the most faithful?';
const UNSORTED = 'Compares each with random orders of patches.';
const NUMBERS =
  'No One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen'.split(' ');

/** Names in links that say nothing of the cards. */
const ELSEWHERE = new Set(['tab', 'explain', 'method', 'q', 'layer', 'head']);

/** @type {Mount<Props>} */
export function mount(element, trigger, props, watch) {
  const gallery = galleryIn(element, thePage(), trigger);
  const follow = () => gallery.follow(props.progress);
  const followTest = () => gallery.followTest(props.trust);
  const hear = () => gallery.hear(props.weights);
  for (const [name, run] of /** @type {const} */ ([
    ['progress', follow],
    ['trust', followTest],
    ['weights', hear],
  ]))
    watch(name, run);
  gallery.shown = () => [follow, followTest, hear].forEach((run) => run());
}

/** The cards as the link has them; what runs long is told Python by `trigger`. @param {HTMLElement} element @param {Page} one @param {Trigger} trigger */
export function galleryIn(element, { store, ask, turn }, trigger) {
  const names = [...store.fields.keys()].filter((name) => !ELSEWHERE.has(name));
  const gallery = new Gallery(element, trigger, (change) => store.set(change));
  const isShown = () => store.view.tab.value === 'explain' && store.view.explain.value === 'why';
  const made = signal(0); // maps that took long
  const again = computed(() => turn.value + made.value);
  const base = asked(ask, () => (isShown() ? ['gallery', { view: store.linkOf(names) }] : null), again);
  gallery.renew = () => void (made.value += 1);
  effect(() => {
    press(element, 'map-scale', store.view.ruler.value);
    gallery.choose(store.view.method.value);
  });
  effect(() => {
    const { state, value, error } = base.value;
    element.classList.toggle('vv-busy', state === 'pending');
    if (state === 'failed') gallery.refuse(error ?? '');
    if (state === 'done') gallery.show(value);
  });
  return gallery;
}

/** What is known of the methods, and their cards. */
export class Gallery {
  chosen = ''; // the method that is looked at closely
  key = '';
  about = '';
  target = '';
  /** @type {Record<string, Method>} */ methods = {};
  /** @type {Record<string, SlowNews>} what is known of slow methods */ slow = {};
  /** @type {Record<string, Trust>} */ trust = {};
  /** @type {string[]} methods, the most trusted first */ order = [];
  /** @type {Map<string, Tested>} other classes of the same photo, by their keys, the last tested last */ others =
    new Map();
  /** @type {TestNews | null} */ test = null;
  /** @type {Weights | null} */ weights = null;
  tested = ''; // key of a test that was just asked for
  /** @type {Record<string, Card>} */ cards = {};

  shown = () => {}; // called with new cards
  renew = () => {}; // asks for the cards again

  /** @param {HTMLElement} element @param {Trigger} trigger @param {(change: Record<string, string>) => void} choose names in links */
  constructor(element, trigger, choose) {
    this.element = element;
    this.trigger = trigger;
    this.set = choose;
    this.find = finder(element);
    this.job = /** @type {HTMLElement} */ (element.querySelector('[data-job=trust]'));
    this.belief = new Belief(element);
    onPress(element, 'map-scale', (ruler) => choose({ ruler }));
    const find = finder(this.job);
    find('test').addEventListener('click', () => this.askForTest());
    find('stop').addEventListener('click', () => trigger('stop', { name: 'trust' }));
  }

  /** Another method is looked at closely. @param {string} name */
  choose(name) {
    this.chosen = name;
    if (Object.keys(this.methods).length) this.draw();
  }

  /** Says in a sentence why there are no cards. @param {string} error */
  refuse(error) {
    this.clear(error);
    this.belief.draw(undefined, undefined);
    drawAgreement(this.element, null);
    for (const part of ['rule-words', 'first-choice']) this.find(part).hidden = true;
  }

  clear(error = '') {
    this.find('gallery-wait').hidden = true;
    showError(this.find('gallery-error'), error, { stays: true });
    for (const part of ['cards', 'gallery-head', 'rule']) this.find(part).hidden = Boolean(error);
  }

  /** Takes a new base. @param {Base} base */
  show(base) {
    this.clear();
    if (base.key !== this.key) this.begin(base);
    this.methods = Object.fromEntries(base.cards.map((method) => [method.name, method]));
    this.forgetOtherOptions();
    this.draw();
    drawAgreement(this.element, base.agreement);
    showText(this.find('rule-words'), base.rule);
    this.shown();
  }

  /** Another picture, model or class: nothing that was known holds, but for what was tested of other classes of the same photo. */
  begin(/** @type {Base} */ { key = '', about = '', target = '' }) {
    if (Object.values(this.trust).some((trust) => trust.place)) {
      this.others.delete(this.key);
      this.others.set(this.key, { target: this.target, trust: this.trust, order: this.order });
    }
    if (about !== this.about) this.others.clear();
    const known = this.others.get(key);
    this.others.delete(key);
    this.slow = {};
    this.trust = known?.trust ?? {};
    this.order = known?.order ?? [];
    this.test = null;
    this.tested = '';
    Object.assign(this, { key, about, target });
  }

  /** What was last tested of another class, while nothing is known of this one. */
  earlier() {
    return Object.keys(this.trust).length ? undefined : [...this.others.values()].at(-1);
  }

  forgetOtherOptions() {
    for (const [name, { options }] of Object.entries(this.trust)) {
      const method = this.methods[name];
      if (method && method.options !== options) delete this.trust[name];
    }
  }

  /** News of the slow methods. */
  follow(/** @type {Progress | null} */ progress) {
    if (!progress || progress.key !== this.key) return;
    for (const [name, news] of Object.entries(progress.of)) {
      const isNewer = news.seq > (this.slow[name]?.seq ?? 0); // older news may come later
      if (!this.methods[name] || !isNewer) continue;
      this.slow[name] = news;
      if (!news.map || this.methods[name].map) continue;
      this.renew(); // it is compared with the others
      if (name === this.chosen) this.trigger('made', {}); // the stage shows another map as long as this one is not there
    }
    this.draw();
  }

  /** News of the test of all maps. */
  followTest(/** @type {TestNews | null} */ news) {
    if (!news || news.key !== this.key) return;
    this.test = news;
    this.tested = '';
    for (const [name, trust] of Object.entries(news.cards || {})) {
      const method = this.methods[name];
      if (method && method.options === trust.options) this.trust[name] = trust;
    }
    this.order = news.order ?? this.order;
    this.draw();
  }

  /** What became of a map when the weights were re-initialised. */
  hear(/** @type {Weights | null} */ weights) {
    if (!weights) return;
    this.weights = weights;
    this.draw();
  }

  askForTest() {
    this.tested = this.key;
    this.trigger('trust', { methods: this.untested(), known: Object.keys(this.trust), key: this.key });
    this.draw();
  }

  /** Methods whose map is there and was not tested. */
  untested() {
    const names = Object.keys(this.methods);
    return names.filter((name) => (this.methods[name].map || this.slow[name]?.map) && !this.trust[name]);
  }

  draw() {
    const names = Object.keys(this.methods);
    const earlier = this.earlier();
    const { trust, order } = earlier ?? this;
    const sorted = [...order.filter((n) => this.methods[n]), ...names.filter((n) => !order.includes(n))];
    const end = endOfStrips(Object.values(trust));
    const of = earlier?.target ?? '';
    const cards = sorted.map((name) => this.drawCard(name, this.trustIn(trust, name), end, of));
    const box = this.find('cards');
    const same = cards.length === box.children.length && cards.every((card, i) => card === box.children[i]);
    if (!same) box.replaceChildren(...cards);
    const count = NUMBERS[names.length] ?? String(names.length);
    const sortedFor = order.some((name) => trust[name])
      ? `, the most faithful ${of && `for ${of} `}first`
      : '';
    this.find('gallery-title').textContent = `${count} ways to ask${sortedFor}`;
    this.find('legend').hidden = !end;
    const ranked = order.flatMap((name) => this.methods[name] ?? []);
    const known = ranked.map(({ name, label }) => ({ label, trust: this.trustIn(trust, name) }));
    showText(this.find('first-choice'), firstChoice(known, of));
    this.drawTest();
    const { chosen } = this;
    const isAbout = this.weights?.key === this.key && this.weights?.method === chosen;
    const weights = isAbout ? this.weights?.words : '';
    this.belief.draw(this.methods[chosen], this.trustIn(trust, chosen), { weights, of, target: this.target });
  }

  /** How far a map can be trusted, where it was tested with the options that it has now. */
  trustIn(/** @type {Record<string, Trust>} */ trust, /** @type {string} */ name) {
    return trust[name]?.options === this.methods[name]?.options ? trust[name] : undefined;
  }

  /** The button that tests all maps, how far that is, and a button that ends it. */
  drawTest() {
    const find = finder(this.job);
    const button = /** @type {HTMLButtonElement} */ (find('test'));
    const { running = false, words, share, error } = this.test ?? {};
    const isNeeded = this.untested().length > 0;
    const hasSome = Object.keys(this.trust).length > 0;
    button.hidden = running || !isNeeded;
    button.disabled = this.tested === this.key && !running && !error;
    button.textContent = hasSome ? 'Test the new maps too' : QUESTION;
    this.job.hidden = !running && !isNeeded && !error;
    if (running) showJob(find, { words, error, share: share ?? 0 });
    else showJob(find, { words: hasSome ? '' : UNSORTED, error });
  }

  /** @param {string} name @param {Trust | undefined} trust @param {number} end of all strips @param {string} of which class else */
  drawCard(name, trust, end, of) {
    const card = (this.cards[name] ??= this.newCard(name));
    card.draw(this.methods[name], this.slow[name] ?? {}, { trust, end, of, chosen: name === this.chosen });
    return card.element;
  }

  newCard(/** @type {string} */ name) {
    const { trigger } = this;
    return new Card(name, {
      open: (method) => {
        this.set({ method });
        scrollToStage();
      },
      compute: (method) => trigger('compute', { method, key: this.key }),
      stop: (method) => trigger('stop', { name: method }),
    });
  }
}

/** Brings the stage onto the screen where it has scrolled out, as on a phone. */
function scrollToStage() {
  document
    .querySelector('#vv-explain-picture .vv-play-stage')
    ?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
}
