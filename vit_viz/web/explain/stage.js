// The chosen map on the photo, and on the same photo the patches that are taken away. Which patches are gone is known here; the server
// says what the model makes of the rest. What is taken by the slider is told to whoever draws the curve, by the event 'vv-taken' of the
// window; its event 'vv-map-made' says that there is a map now which took long.

import { centreOf, clamp, movedPatch, patchQuery, patchRect } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { finder, having, make, makeSvg, showText } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { Picture, showTip } from '../../ui/kit/picture.js';
import { cellUnder } from '../../ui/kit/stage.js';
import { asked } from '../kit/ask.js';
import { thePage } from '../kit/page.js';
import { computed, effect, signal } from '../kit/preact.js';
import { listenToFingers, listenToKeys, listenToMouse, stroke } from './brush.js';
import { controlsIn } from './controls.js';
import { Lead } from './lead.js';
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Page } from '../kit/page.js' */
/** @import { Cell } from './brush.js' */

/**
 * @typedef {{words: string, top: AnswerLine[], error?: undefined}} Answer what the model says of the photo, or of what is left of it
 *
 * @typedef {object} Map
 * @property {string} view the link that it was asked for with
 * @property {string} subject the part of it that says what it is of
 * @property {string} key of the picture and the model; another one begins anew
 * @property {string} target what is explained: another one is asked about again
 * @property {string} method what it is called
 * @property {string} shows its name: another one than the chosen, while that one's map is not made
 * @property {[number, number]} grid rows, cols
 * @property {[number, number, number, number]} region of the photo that the model received: top, left, height, width
 * @property {[number, number]} photo_size height, width
 * @property {string} [order] patches, the best first, as "7,3,20"
 * @property {string} [said] what two classes' maps say when they are subtracted
 * @property {boolean} [is_own] whether the map is the one of the card, whose curve is drawn
 * @property {Side[]} [sides] the maps of two classes that can be chosen
 * @property {import('./lead.js').Known | null} [lead] how far the difference of two maps can be trusted
 * @property {Answer} whole what the model says of the whole photo
 *
 * @typedef {{side: string, label: string, chosen: boolean, src: string}} Side
 * @typedef {import('../../ui/kit/picture.js').Drawn & Map} Photo
 * @typedef {'erase' | 'restore' | 'choose'} Tool
 *
 * What the stage asks and tells.
 * @typedef {object} Actions
 * @property {(photo: Photo, gone: string, stop: AbortSignal) => Promise<Answer>} without
 * @property {(photo: Photo, stop: AbortSignal, tell: import('../kit/ask.js').Tell) => Promise<import('./card.js').Trust>} lead
 * @property {(side: string) => void} side one of two classes' maps is chosen
 * @property {(photo: Photo, patch: number) => void} pick a patch is chosen as the query
 * @property {(photo: Photo, step: [number, number]) => void} move the query moves down and to the right
 */

const PATIENCE = 10_000; // milliseconds after which an answer counts as lost
const TOOLS = /** @type {const} */ (['erase', 'restore', 'choose']);

/** Names in links that say nothing of the map. */
const ELSEWHERE = new Set(['tab', 'explain', 'layer', 'head']);

/** @type {Mount<{}>} */
export function mount(element) {
  stageIn(element, thePage());
}

/** The stage as the link has it. @param {HTMLElement} element @param {Page} one */
export function stageIn(element, { store, ask, turn }) {
  const names = [...store.fields.keys()].filter((name) => !ELSEWHERE.has(name));
  const isOf = (/** @type {Photo} */ { subject }) => subject === store.subject();
  const stage = new Stage(element, {
    without: ({ view }, gone, stop) => ask('without', { view, gone }, stop),
    lead: ({ view }, stop, tell) => ask('lead', { view }, stop, tell),
    side: (sides) => store.set({ sides }),
    pick(photo, patch) {
      if (isOf(photo)) store.set({ q: patchQuery([patch], photo.grid[1]) });
    },
    move(photo, step) {
      const { grid } = photo;
      const patch = patchIn(store.view.q.peek(), grid);
      this.pick(photo, patch === null ? centreOf(grid) : movedPatch(patch, step, grid));
    },
  });
  const showControls = controlsIn(element, store);
  const isShown = () => store.view.tab.value === 'explain' && store.view.explain.value === 'why';
  const made = signal(0); // maps that took long
  const again = computed(() => turn.value + made.value);
  const map = asked(
    async (name, { view, subject }, stop) => ({ ...(await ask(name, { view }, stop)), view, subject }),
    () => (isShown() ? ['stage', { view: store.linkOf(names), subject: store.subject() }] : null),
    again,
  );
  window.addEventListener('vv-map-made', () => {
    const { state, value } = map.peek();
    if (state !== 'done' || value.shows !== store.view.method.peek()) made.value += 1;
  });
  effect(() => {
    const { state, value, error } = map.value;
    if (state === 'pending') stage.wait();
    if (state === 'failed') stage.refuse(error ?? '');
    if (state !== 'done') return;
    stage.show(value);
    showControls(value);
  });
  return stage;
}

/** The patch that a query is; null where it is none, or more than one. @param {string} query @param {[number, number]} grid */
function patchIn(query, [rows, cols]) {
  const [, row, col] = (/^(\d+),(\d+)$/.exec(query) ?? []).map(Number);
  return row < rows && col < cols ? row * cols + col : null;
}

/** What the model makes of the rest: one question is under way at a time; of those that come up meanwhile the last one is asked. */
class Rest {
  stop = new AbortController(); // of the one that is under way
  isUnderWay = false;
  again = false;
  since = 0;

  /** @param {(stop: AbortSignal) => Promise<Answer>} send @param {(answer: Answer | {error: string}, isLast: boolean) => void} tell */
  constructor(send, tell) {
    this.send = send;
    this.tell = tell;
  }

  async ask() {
    const now = window.performance.now();
    this.again = this.isUnderWay && now - this.since < PATIENCE;
    if (this.again) return;
    this.drop();
    const stop = (this.stop = new AbortController());
    this.isUnderWay = true;
    this.since = now;
    const answer = await this.send(stop.signal).catch((/** @type {Error} */ { message }) => ({
      error: message,
    }));
    if (stop.signal.aborted) return;
    this.isUnderWay = false;
    const isLast = !this.again;
    if (this.again) void this.ask();
    this.tell(answer, isLast);
  }

  /** Nothing is asked any more: an answer that is under way is of no use. */
  drop() {
    this.stop.abort();
    this.isUnderWay = false;
    this.again = false;
  }
}

/** The map, which patches are gone, and what is shown of that. */
export class Stage {
  /** @type {Photo | null} */ photo = null;
  /** @type {number[]} */ order = [];
  /** @type {Set<number>} */ gone = new Set();
  /** @type {number | null} patch that the keys would take */ cursor = null;
  /** @type {Tool} */ tool = 'erase';

  /** @param {HTMLElement} element @param {Actions} actions */
  constructor(element, actions) {
    this.element = element;
    this.actions = actions;
    this.find = finder(element);
    this.picture = new Picture(this.find('play-picture'));
    this.slider = /** @type {HTMLInputElement} */ (this.find('most'));
    this.lead = new Lead(this.find('lead'), (stop, tell) =>
      actions.lead(/** @type {Photo} */ (this.photo), stop, tell),
    );
    this.rest = new Rest(
      (stop) => actions.without(/** @type {Photo} */ (this.photo), [...this.gone].join(','), stop),
      (answer, isLast) => {
        if (isLast) this.await(false);
        this.say(answer);
      },
    );
    listenToMouse(this);
    listenToFingers(this);
    listenToKeys(this);
    for (const name of TOOLS) this.find(name).addEventListener('click', () => this.choose(name));
    this.find('all').addEventListener('click', () => this.putAllBack());
    this.slider.addEventListener('input', () => this.takeMost());
  }

  /** What the answers are about: the picture, the model and the target. */
  get about() {
    return this.photo ? `${this.photo.key}|${this.photo.target}` : '';
  }

  /** Another map is on its way. */
  wait() {
    this.picture.wait();
    this.find('play-below').hidden = !this.photo;
  }

  /** Says in a sentence why there is no map. @param {string} error */
  refuse(error) {
    this.picture.fail(error);
    this.find('play-below').hidden = true;
    this.find('play-marks').toggleAttribute('hidden', true);
  }

  /** @param {Photo} value */
  show(value) {
    this.picture.show(value);
    this.find('play-below').hidden = false;
    this.find('play-marks').toggleAttribute('hidden', false);
    const [before, about] = [this.photo, this.about];
    this.photo = value;
    const isOther = about !== this.about;
    if (isOther) {
      this.rest.drop();
      this.lead.end();
    }
    this.order = value.order ? value.order.split(',').map(Number) : [];
    this.dress(value);
    if (value.key !== before?.key) this.putAllBack();
    else if (Number(this.slider.value) > 0) this.takeMost();
    else this.changed({ isAsked: isOther });
  }

  /** What depends on the map and not on the patches that are gone. */
  dress(/** @type {Photo} */ { photo_size: [height, width], method, alt, pick, said, sides = [], lead }) {
    this.lead.show(lead);
    showText(this.find('sides-words'), said);
    this.find('sides').hidden = !sides.length;
    drawSides(this.find('sides'), sides, width / height, this.actions.side);
    this.find('play-marks').setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.find('choose').hidden = !pick;
    if (!pick && this.tool === 'choose') this.choose('erase');
    this.find('play-stage').setAttribute(
      'aria-label',
      `${alt} Arrow keys move over the patches, space takes one away or puts it back.`,
    );
    this.slider.max = String(Math.max(0, this.order.length - 1));
    this.slider.setAttribute('aria-label', `How many of the best patches are taken away, by ${method}`);
  }

  /** Marks what is gone, and the patch that the keys would take. */
  paint() {
    if (!this.photo) return;
    const { grid } = this.photo;
    const marks = [...this.gone].map((patch) => mark(patch, 'vv-gone', this.photo));
    if (this.cursor !== null) marks.push(mark(this.cursor, 'vv-cursor', this.photo));
    this.find('play-marks').replaceChildren(...marks);
    const words = goneWords(this.gone.size, grid[0] * grid[1], Number(this.slider.value) > 0);
    this.find('slider-words').textContent = words;
    this.slider.setAttribute('aria-valuetext', words);
    const share = this.order.length ? Number(this.slider.value) / this.order.length : 0;
    this.lead.fall.mark(share);
    this.slider.style.setProperty(
      '--share',
      `${(100 * Number(this.slider.value)) / Math.max(1, this.order.length - 1)}%`,
    );
    /** @type {HTMLButtonElement} */ (this.find('all')).disabled = !this.gone.size;
    const detail = this.photo.is_own === false ? 0 : share; // the curve there is of the card's map
    window.dispatchEvent(new window.CustomEvent('vv-taken', { detail }));
  }

  /** Paints, and asks about the rest; of the whole photo it is known what the model says. */
  changed({ isAsked = true } = {}) {
    this.paint();
    if (!this.photo) return;
    if (this.gone.size) {
      if (isAsked) this.askRest();
      return;
    }
    this.rest.drop();
    this.await(false);
    this.say(this.photo.whole);
  }

  /** As many of the best patches as the slider says. */
  takeMost() {
    this.gone = new Set(this.order.slice(0, Number(this.slider.value)));
    this.changed();
  }

  putAllBack() {
    this.gone = new Set();
    this.cursor = null;
    this.slider.value = '0';
    this.changed();
  }

  /** Takes or puts back what lies on the straight way between two patches. */
  brush(/** @type {Cell} */ from, /** @type {Cell} */ to) {
    if (!this.photo) return;
    const before = this.gone.size;
    for (const patch of stroke(from, to, this.photo.grid)) {
      if (this.tool === 'erase') this.gone.add(patch);
      else this.gone.delete(patch);
    }
    if (this.gone.size === before) return;
    this.slider.value = '0';
    this.changed();
  }

  toggle(/** @type {number} */ patch) {
    if (!this.gone.delete(patch)) this.gone.add(patch);
    this.slider.value = '0';
    this.changed();
  }

  /** The patch that the keys would take moves on, from the centre where there was none. */
  moveCursor(/** @type {[number, number] | undefined} */ step) {
    if (!this.photo) return;
    const { grid } = this.photo;
    this.cursor = this.cursor === null ? centreOf(grid) : movedPatch(this.cursor, step ?? [0, 0], grid);
    if (step) this.paint();
    else this.toggle(this.cursor);
  }

  choose(/** @type {Tool} */ tool) {
    this.tool = tool;
    for (const name of TOOLS) this.find(name).setAttribute('aria-pressed', String(name === tool));
  }

  askRest() {
    this.await(true);
    void this.rest.ask();
  }

  /** Whether what is said is about other patches than those that are gone. */
  await(/** @type {boolean} */ isWaiting) {
    this.find('play-top').setAttribute('aria-busy', String(isWaiting));
  }

  /** @param {Answer | {error: string}} answer */
  say(answer) {
    showError(this.find('play-error'), ''); // another answer
    showError(this.find('play-error'), answer.error);
    if (answer.error !== undefined) return;
    showText(this.find('play-words'), answer.words);
    this.find('play-top').replaceChildren(...answerLines(answer.top));
  }

  /** Says the number under a pointer; null: none. */
  read(/** @type {PointerEvent | null} */ event) {
    this.find('tip').hidden = true;
    const isThere = this.photo?.cells && !this.find('play-picture').classList.contains('vv-busy');
    if (event && isThere && this.photo) showTip(this.find, event, this.photo);
  }

  /** The row and column of the patch under a pointer; null outside what the model received. */
  patchAt(/** @type {PointerEvent} */ event) {
    if (!this.photo) return null;
    const { photo_size: size, region, grid } = this.photo;
    return cellUnder(event, this.find('image'), [0, 0, ...size], region, grid);
  }
}

/**
 * The maps of two classes as small pictures, which choose what lies on the photo. The buttons stay, so that the focus does.
 * @param {HTMLElement} box @param {Side[]} sides @param {number} ratio @param {(side: string) => void} choose
 */
function drawSides(box, sides, ratio, choose) {
  while (box.children.length > sides.length) box.lastElementChild?.remove();
  sides.forEach(({ side, label, chosen, src }, i) => {
    const button = /** @type {HTMLButtonElement} */ (box.children[i] ?? makeSide(choose));
    if (!button.parentElement) box.append(button);
    having(button, { type: 'button', 'data-side': side, 'aria-pressed': String(chosen) });
    const [image, words] = /** @type {[HTMLImageElement, HTMLElement]} */ ([...button.children]);
    if (image.getAttribute('src') !== routeUrl(src)) image.setAttribute('src', routeUrl(src));
    image.style.aspectRatio = String(ratio);
    words.textContent = label;
  });
}

/** A button of a small map. @param {(side: string) => void} choose */
function makeSide(choose) {
  const image = having(make('img', 'vv-card-image'), { alt: '' });
  const button = make('button', 'vv-side vv-bare', image, make('span', 'vv-small'));
  button.addEventListener('click', () => choose(button.dataset.side ?? ''));
  return button;
}

/** How many patches are gone, in words. */
function goneWords(/** @type {number} */ gone, /** @type {number} */ all, /** @type {boolean} */ best) {
  const share = Math.round((100 * gone) / all) || '< 1';
  if (!gone) return 'drag to take the best patches away, or brush over the photo';
  if (best)
    return `the best ${share}% of the patches are gone (${gone} of ${all}): drag, or brush over the photo`;
  return `${share}% of the patches are gone (${gone} of ${all})`;
}

/** @param {number} patch @param {string} kind @param {Photo | null} photo */
function mark(patch, kind, photo) {
  if (!photo) return makeSvg('rect', {});
  const cols = photo.grid[1];
  const [top, left, bottom, right] = patchRect(photo, Math.floor(patch / cols), patch % cols, photo.grid);
  return makeSvg('rect', { x: left, y: top, width: right - left, height: bottom - top, class: kind });
}

/**
 * @typedef {object} AnswerLine
 * @property {string} name
 * @property {number} [now] share of the bar, from 0 to 1; absent where the answer is a value
 * @property {number} [before] with all patches; absent where all are there
 * @property {string} text
 * @property {boolean} [target] whether it is what the maps explain
 */

/** The lines of an answer. */
export function answerLines(/** @type {AnswerLine[]} */ top) {
  return top.map(({ name, now, before, text, target }) => {
    const words = having(make('span', 'vv-class', name), { title: name });
    const bar = make('span', 'vv-answer-bar');
    bar.style.width = `${100 * clamp(now ?? 0)}%`;
    const tick = make('span', 'vv-answer-tick');
    if (before !== undefined) tick.style.left = `${100 * clamp(before)}%`;
    const track = make('span', 'vv-answer-track', bar, before === undefined ? '' : tick);
    const kind = target ? 'vv-answer vv-target-answer' : 'vv-answer';
    return make('li', kind, words, track, make('span', 'vv-number', text));
  });
}
