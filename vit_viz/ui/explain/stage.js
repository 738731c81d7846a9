// The chosen map on the photo, and on the same photo the patches that are taken away. Which patches are gone is known here; the server
// answers 'remove' with the classes. One question is under way at a time; of those that wait, the last one is asked. What is taken by
// the slider is told to whoever draws the curve, by the event 'vv-taken' of the window.

import {
  cellAt,
  centreOf,
  clamp,
  movedPatch,
  patchRect,
  pointerIn,
  shareOf,
} from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { drawValue, finder, having, make, makeSvg, showText } from '../kit/elements.js';
import { showError } from '../kit/notes.js';
import { Picture, showTip } from '../kit/picture.js';
import { listenToFingers, listenToKeys, listenToMouse, stroke } from './brush.js';
import { Lead } from './lead.js';
/** @import { Mount, Trigger } from '../kit/elements.js' */
/** @import { Cell } from './brush.js' */

/**
 * @typedef {{key?: string, seq?: number, error?: string, words: string, top: import('./stage.js').AnswerLine[]}}
 *   Answer key: of the picture, the model and the target; seq: of the question
 *
 * @typedef {object} Map
 * @property {string} key of the picture and the model; another one begins anew
 * @property {string} target what is explained: another one is asked about again
 * @property {string} method
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
 * @typedef {import('../kit/picture.js').Drawn & Map} Photo
 * @typedef {'erase' | 'restore' | 'choose'} Tool
 */

const PATIENCE = 10_000; // milliseconds after which an answer counts as lost
const TOOLS = /** @type {const} */ (['erase', 'restore', 'choose']);

/** @type {Mount<{value: Photo | null, answer: Answer | null, lead: import('./lead.js').News | null}>} */
export function mount(element, trigger, props, watch) {
  const stage = new Stage(element, trigger);
  listenToMouse(stage);
  listenToFingers(stage);
  listenToKeys(stage);
  for (const name of TOOLS) stage.find(name).addEventListener('click', () => stage.choose(name));
  stage.find('all').addEventListener('click', () => stage.putAllBack());
  stage.slider.addEventListener('input', () => stage.takeMost());
  watch('answer', () => stage.answered(props.answer));
  watch('lead', () => stage.lead.hear(props.lead));
  drawValue(watch, () => stage.show(props.value));
}

/** Asks the server what the model makes of the rest, one question at a time. */
class Questions {
  seq = 0;
  answered = 0;
  again = false;
  since = 0;

  /** @param {(seq: number) => void} send */
  constructor(send) {
    this.send = send;
  }

  ask() {
    const now = window.performance.now();
    this.again = this.answered < this.seq && now - this.since < PATIENCE;
    if (this.again) return;
    this.since = now;
    this.seq += 1;
    this.send(this.seq);
  }

  /** Takes an answer; asks what came up meanwhile. Returns whether nothing waits any more. */
  take(/** @type {number} */ seq) {
    this.answered = seq;
    if (!this.again) return true;
    this.ask();
    return false;
  }

  /** Nothing is asked any more: an answer that is under way is of no use. */
  drop() {
    this.answered = this.seq;
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

  /** @param {HTMLElement} element @param {Trigger} trigger */
  constructor(element, trigger) {
    this.element = element;
    this.trigger = trigger;
    this.find = finder(element);
    this.picture = new Picture(this.find('play-picture'));
    this.slider = /** @type {HTMLInputElement} */ (this.find('most'));
    this.lead = new Lead(this.find('lead'), trigger);
    this.questions = new Questions((seq) => {
      this.wait(true);
      trigger('remove', { gone: [...this.gone].join(','), seq, key: this.about });
    });
  }

  /** What the answers are about: the picture, the model and the target. */
  get about() {
    return this.photo ? `${this.photo.key}|${this.photo.target}` : '';
  }

  show(/** @type {Photo | null} */ value) {
    if (!value || value.revision === null || value.revision === undefined) return;
    if (value.revision < this.picture.revision) return;
    this.picture.show(value);
    this.find('play-below').hidden = Boolean(value.error) || (Boolean(value.busy) && !this.photo);
    this.find('play-marks').toggleAttribute('hidden', Boolean(value.error));
    if (value.busy || value.error || !value.grid) return;
    const [before, about] = [this.photo, this.about];
    this.photo = value;
    const isOther = about !== this.about;
    if (isOther) this.questions.drop();
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
    drawSides(this.find('sides'), sides, width / height, (side) => this.trigger('sides', { sides: side }));
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
      if (isAsked) this.questions.ask();
      return;
    }
    this.questions.drop();
    this.wait(false);
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

  /** Whether what is said is about other patches than those that are gone. */
  wait(/** @type {boolean} */ isWaiting) {
    this.find('play-top').setAttribute('aria-busy', String(isWaiting));
  }

  /** What the server says of the rest. */
  answered(/** @type {Answer | null} */ answer) {
    if (!answer || answer.key !== this.about || (answer.seq ?? 0) <= this.questions.answered) return;
    if (this.questions.take(answer.seq ?? 0)) this.wait(false);
    if (this.gone.size) this.say(answer);
  }

  say(/** @type {Answer} */ { error, words, top }) {
    showError(this.find('play-error'), ''); // another answer
    showError(this.find('play-error'), error);
    if (error) return;
    showText(this.find('play-words'), words);
    this.find('play-top').replaceChildren(...answerLines(top));
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
    const [down, across] = pointerIn(event, this.find('image'));
    return cellAt(shareOf([down * size[0], across * size[1]], region), grid);
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
