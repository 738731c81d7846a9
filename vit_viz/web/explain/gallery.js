// The maps of all methods side by side, and how far to believe the chosen one. What takes long, a slow method or the test of all maps, runs
// as long as the cards are about the same; what was tested for another class of the same photo is shown as that class's until this one is
// tested.

import { finder, onPress, press, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { asked } from '../kit/ask.js';
import { Job, JobBar, Places, STOPPED } from '../kit/job.js';
import { thePage } from '../kit/page.js';
import { computed, effect, signal } from '../kit/preact.js';
import { drawAgreement, firstChoice } from './agree.js';
import { Belief } from './belief.js';
import { Card, endOfStrips } from './card.js';
import { sanityIn } from './sanity.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Ask } from '../kit/ask.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Method, Slow, Trust } from './card.js' */
/** @import { Weights } from './sanity.js' */

/**
 * An answer to what the page asks by /vit_viz/gallery.
 * @typedef {object} Base
 * @property {string} link with which it was asked for
 * @property {string} key of the picture, the model and the class
 * @property {string} about of the picture and the model
 * @property {string} target the class in words; empty for an embedding
 * @property {Method[]} cards
 * @property {string} [rule] what the cards show, while that is not their own map
 * @property {import('./agree.js').Agreement | null} [agreement]
 *
 * What the test of all maps says: how far each can be trusted; order: methods, the most trusted first, in the end.
 * @typedef {{cards: Record<string, Trust>, words?: string, order?: string[]}} TestNews
 *
 * What a test found of the maps for one class: how far each can be trusted, and which comes first.
 * @typedef {{target: string, trust: Record<string, Trust>, order: string[]}} Tested
 *
 * A slow method that was asked for, with the options of its map.
 * @typedef {Slow & {job: Job, options: string}} Started
 */

const QUESTION = 'Which are the most faithful?';
const UNSORTED = 'Compares each with random orders of patches.';
const NUMBERS =
  'No One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen'.split(' ');

/** Names in links that say nothing of the cards. */
const ELSEWHERE = new Set(['tab', 'explain', 'method', 'q', 'layer', 'head', 'ask', 'run', 'ask.*']);

const MOST_AT_A_TIME = 2; // a browser has six connections to a server, and the page needs some

/** @type {Mount<{}>} */
export function mount(element) {
  galleryIn(element, thePage());
}

/** The cards as the link has them. @param {HTMLElement} element @param {Page} one */
export function galleryIn(element, one) {
  const { store, ask, turn } = one;
  const names = [...store.fields.keys()].filter((name) => !ELSEWHERE.has(name));
  const isShown = () => store.view.tab.value === 'explain' && store.view.explain.value === 'why';
  const made = signal(0); // maps that took long
  const again = computed(() => turn.value + made.value);
  const base = asked(
    async (name, body, stop) => ({ link: body.view, ...(await ask(name, body, stop)) }),
    () => (isShown() ? ['gallery', { view: store.linkOf(names) }] : null),
    again,
  );
  const gallery = new Gallery(element, ask, {
    choose: (change) => store.set(change),
    made() {
      made.value += 1; // it is compared with the others
      window.dispatchEvent(new window.CustomEvent('vv-map-made'));
    },
  });
  effect(() => {
    press(element, 'map-scale', store.view.ruler.value);
    gallery.choose(store.view.method.value);
  });
  const subject = computed(() => store.subject());
  effect(() => {
    void subject.value;
    gallery.leave();
  });
  effect(() => {
    const { state, value, error } = base.value;
    element.classList.toggle('vv-busy', state === 'pending');
    if (state === 'failed') gallery.refuse(error ?? '');
    if (state === 'done') gallery.show(value);
  });
  const hear = (/** @type {Weights} */ weights) => gallery.hear(weights);
  sanityIn(gallery.find('sanity'), one, { places: gallery.places, isShown, hear });
  return gallery;
}

/** What is known of the methods, and their cards. */
export class Gallery {
  chosen = ''; // the method that is looked at closely
  link = '';
  key = '';
  about = '';
  target = '';
  /** @type {Record<string, Method>} */ methods = {};
  /** @type {Record<string, Started>} what is known of slow methods */ slow = {};
  /** @type {Record<string, Trust>} */ trust = {};
  /** @type {string[]} methods, the most trusted first */ order = [];
  /** @type {Map<string, Tested>} other classes of the same photo, by their keys, the last tested last */ others =
    new Map();
  /** @type {Weights | null} */ weights = null;
  places = new Places(MOST_AT_A_TIME);
  /** @type {Record<string, Card>} */ cards = {};

  /**
   * @param {HTMLElement} element @param {Ask} ask
   * @param {{choose: (change: Record<string, string>) => void, made: () => void}} actions names in links; a slow map is there
   */
  constructor(element, ask, actions) {
    this.element = element;
    this.ask = ask;
    this.actions = actions;
    this.find = finder(element);
    this.belief = new Belief(element);
    this.test = this.newJob();
    this.bar = new JobBar(/** @type {HTMLElement} */ (element.querySelector('[data-job=trust]')), {
      begin: () => this.testAll(),
      end: () => this.test.end(STOPPED),
    });
    onPress(element, 'map-scale', (ruler) => actions.choose({ ruler }));
  }

  newJob() {
    return new Job(() => this.draw(), this.places);
  }

  /** Another method is looked at closely. @param {string} name */
  choose(name) {
    this.chosen = name;
    this.draw();
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
    this.link = base.link;
    this.methods = Object.fromEntries(base.cards.map((method) => [method.name, method]));
    this.forgetOtherOptions();
    this.draw();
    drawAgreement(this.element, base.agreement);
    showText(this.find('rule-words'), base.rule);
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
    this.trust = known?.trust ?? {};
    this.order = known?.order ?? [];
    this.end();
    Object.assign(this, { key, about, target });
  }

  /** Another picture or model is looked at, whose cards are still to come. */
  leave() {
    this.end();
    this.draw();
  }

  /** Ends what runs. */
  end() {
    for (const { job } of [...Object.values(this.slow), { job: this.test }]) job.end();
    this.slow = {};
  }

  /** What was last tested of another class, while nothing is known of this one. */
  earlier() {
    return Object.keys(this.trust).length ? undefined : [...this.others.values()].at(-1);
  }

  forgetOtherOptions() {
    const isOther = (/** @type {string} */ name, /** @type {string} */ options) =>
      this.methods[name]?.options !== options;
    for (const [name, { options }] of Object.entries(this.trust))
      if (this.methods[name] && isOther(name, options)) delete this.trust[name];
    for (const [name, { job, options }] of Object.entries(this.slow)) {
      if (!isOther(name, options)) continue;
      job.end();
      delete this.slow[name];
    }
  }

  /** Computes the map of a slow method. */
  compute(/** @type {string} */ name) {
    /** @type {Started} */
    const started = (this.slow[name] = { job: this.newJob(), options: this.methods[name].options });
    const body = { view: this.link, method: name };
    void started.job.follow((stop, tell) => this.ask('map', body, stop, tell), {
      whole: (map) => {
        started.map = map;
        this.actions.made();
      },
    });
  }

  /** Tests all maps that are there; those that were tested are known, and take their places in the order. */
  testAll() {
    const methods = [...Object.keys(this.trust), ...this.untested()];
    const body = { view: this.link, methods };
    const learn = (/** @type {TestNews} */ news) => this.learn(news);
    void this.test.follow((stop, tell) => this.ask('trust', body, stop, tell), { part: learn, whole: learn });
  }

  /** News of the test of all maps. */
  learn(/** @type {TestNews} */ { cards, order }) {
    for (const [name, trust] of Object.entries(cards))
      if (this.methods[name]?.options === trust.options) this.trust[name] = trust;
    this.order = order ?? this.order;
  }

  /** What became of a map when the weights were re-initialised. */
  hear(/** @type {Weights} */ weights) {
    this.weights = weights;
    this.draw();
  }

  /** Methods whose map is there and was not tested. */
  untested() {
    const names = Object.keys(this.methods);
    return names.filter((name) => (this.methods[name].map || this.slow[name]?.map) && !this.trust[name]);
  }

  draw() {
    const names = Object.keys(this.methods);
    if (!names.length) return;
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
    const { words, error } = this.test;
    const hasSome = Object.keys(this.trust).length > 0;
    const [go, cost] = hasSome ? ['Test the new maps too', ''] : [QUESTION, UNSORTED];
    const isNeeded = this.untested().length > 0;
    this.bar.show(this.test, { words: words || error || (isNeeded ? cost : ''), go: isNeeded ? go : '' });
  }

  /** @param {string} name @param {Trust | undefined} trust @param {number} end of all strips @param {string} of which class else */
  drawCard(name, trust, end, of) {
    const card = (this.cards[name] ??= this.newCard(name));
    card.draw(this.methods[name], this.slow[name] ?? {}, { trust, end, of, chosen: name === this.chosen });
    return card.element;
  }

  newCard(/** @type {string} */ name) {
    return new Card(name, {
      open: (method) => {
        this.actions.choose({ method });
        scrollToStage();
      },
      compute: (method) => this.compute(method),
      stop: (method) => this.slow[method]?.job.end(STOPPED),
    });
  }
}

/** Brings the stage onto the screen where it has scrolled out, as on a phone. */
function scrollToStage() {
  document
    .querySelector('#vv-explain-picture .vv-play-stage')
    ?.scrollIntoView({ block: 'nearest', behavior: 'smooth' });
}
