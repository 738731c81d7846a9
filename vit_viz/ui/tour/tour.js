// The tour: stops on the page itself. Each opens its tab, frames what it is about, does one thing there as a visitor would,
// and says what that shows. Nothing is blocked meanwhile; it remembers where somebody left, and leaves the view as it was.

import { thePage } from '../../web/kit/page.js';
import { finder, giveFocus, remember, remembered } from '../kit/elements.js';
/** @import { Store } from '../../web/kit/store.js' */

export const START = 'vv-tour'; // the event of the window that begins it
const KEPT = 'vit_viz-tour'; // in the browser's storage: the stop that was left, or DONE
const DONE = 'done';
const SOON = 12_000; // milliseconds until a stop goes on without what it is about, which a model may not have

/**
 * @typedef {object} Stop
 * @property {Record<string, string>} view what it opens, by names in links
 * @property {string} about what it frames, as a selector
 * @property {string} [folded] what it frames where that is folded away
 * @property {string} title
 * @property {string} words
 * @property {{tab: string, words: string}} [beside] what is said, too, where the page has a tab
 * @property {(framed: Element) => void} [act] what it does there, once
 */

/** @type {Stop[]} */
export const STOPS = [
  {
    view: { tab: 'look' },
    about: '#vv-explorer [data-vv=stage]',
    title: 'One patch asks',
    words:
      'The model cuts the photo into patches. Point at one, or tap it: bright is where the model looks from there. ' +
      'A click or a tap keeps the patch as the one that asks.',
  },
  {
    view: { tab: 'look' },
    about: '#vv-explorer [data-vv=mosaic]',
    title: 'Every head of every layer answers',
    words:
      'Rows are layers, columns are heads: each small photo is one of them looking from your patch. ' +
      'Choose one to see it large. Early heads often look nearby, late ones at what the photo is about.',
    act: (mosaic) => mosaic.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true })),
  },
  {
    view: { tab: 'explain', explain: 'why' },
    about: '#vv-explain-picture input[type=range]',
    title: 'What made it say this class?',
    words:
      'Attention is not yet a reason. Here a method marks the patches that speak for the answer, and the slider takes the best of ' +
      'them away: if the answer falls, the map was right about them. “Test this map, then the others” measures that for each method.',
    act: (slider) => slide(/** @type {HTMLInputElement} */ (slider), 0.2),
  },
  {
    view: { tab: 'heads' },
    about: '#vv-heads',
    title: 'What is each head for?',
    words:
      'One number or name for each head, measured on this photo: how far it looks, what the answer loses without it. ' +
      'Switch heads off, and the whole page shows the model without them.',
  },
  {
    view: { tab: 'look' },
    about: '#vv-palette .vv-ask',
    folded: '#vv-menu .vv-opener',
    title: 'Ask anything, and take it with you',
    words:
      '“Find a question” (Ctrl+K) finds every question, class and action by its words. Save, beside each picture, makes files of it; ' +
      'Copy link opens exactly this view elsewhere.',
    beside: { tab: 'lesson', words: 'To see the whole machine at work, part by part, play the Lesson.' },
  },
];

/** Corners of the screen in which the card may stand: the end that CSS calls top or bottom, and the side. */
const CORNERS = ['bottom', 'top'].flatMap((end) => ['right', 'left'].map((side) => [end, side]));
const SHARES = [0.02, 0.2, 0.4, 0.6, 0.8, 0.98]; // of the card's width and height, at which is looked what lies behind it

/** @type {import('../kit/elements.js').Mount<{store?: Store}>} */
export function mount(element, { store = thePage().store }) {
  const tour = new Tour(element, store);
  const begin = () => (element.isConnected ? tour.begin() : window.removeEventListener(START, begin));
  window.addEventListener(START, begin);
}

/** Whether somebody has seen the tour to its end, or has left it for good. */
export function isSeen() {
  return remembered(KEPT) === DONE;
}

class Tour {
  /** @param {HTMLElement} element @param {Store} store */
  constructor(element, store) {
    this.store = store;
    const tabs = store.fields.get('tab')?.choices;
    this.has = (/** @type {string} */ tab) => tabs?.includes(tab) ?? true;
    this.stops = STOPS.filter(({ view }) => this.has(view.tab));
    this.find = finder(element);
    this.card = this.find('tour');
    this.ring = this.find('tour-ring');
    this.at = 0;
    /** @type {Element | null} */ this.framed = null;
    /** @type {{focus: HTMLElement | null, view: Record<string, any>, subject: string, scroll: number} | null} */
    this.before = null; // as the page was
    this.around = ''; // where the ring is
    this.follow = () => this.frame();
    this.next = 0; // the frame of the screen that follows
    this.find('tour-back').addEventListener('click', () => this.go(this.at - 1));
    this.find('tour-next').addEventListener('click', () => this.go(this.at + 1));
    this.find('tour-end').addEventListener('click', () => this.end());
    this.card.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.end();
    });
  }

  begin() {
    const left = Number(remembered(KEPT));
    const { view } = this.store;
    this.before ??= {
      focus: /** @type {HTMLElement | null} */ (document.activeElement),
      view: Object.fromEntries(Object.entries(view).map(([name, value]) => [name, value.peek()])),
      subject: this.store.subject(),
      scroll: window.scrollY,
    };
    this.go(left > 0 && left < this.stops.length ? left : 0);
  }

  /** Goes to a stop; behind the last one the tour ends. @param {number} stop */
  go(stop) {
    if (stop >= this.stops.length) return this.end();
    this.at = Math.max(stop, 0);
    remember(KEPT, String(this.at));
    this.framed = null;
    this.say();
    this.store.set(this.stops[this.at].view, { push: false });
    void this.open(this.stops[this.at]);
  }

  say() {
    const { title, words, beside } = this.stops[this.at];
    this.find('tour-place').textContent = `${this.at + 1} of ${this.stops.length}`;
    this.find('tour-title').textContent = title;
    this.find('tour-words').textContent = beside && this.has(beside.tab) ? `${words} ${beside.words}` : words;
    /** @type {HTMLButtonElement} */ (this.find('tour-back')).disabled = this.at === 0;
    this.find('tour-next').textContent = this.at + 1 < this.stops.length ? 'Next' : 'Done';
    this.card.dataset.state = 'opening';
    this.card.hidden = false;
    this.find('tour-title').focus();
  }

  /** Waits for what a stop is about, frames it and acts. @param {Stop} stop */
  async open(stop) {
    const isWanted = () => !this.card.hidden && this.stops[this.at] === stop;
    const framed = await shown(stop, isWanted);
    if (!isWanted()) return;
    this.framed = framed;
    const isSmall = (framed?.clientHeight ?? 0) < window.innerHeight / 3;
    framed?.scrollIntoView({ block: isSmall ? 'center' : 'nearest' });
    if (framed) stop.act?.(framed);
    this.card.dataset.state = framed ? 'open' : 'missing';
    this.frame();
  }

  /** Keeps the ring around what it frames, wherever that moves, and the card in the corner where it hides least. */
  frame() {
    const box = this.framed?.isConnected ? this.framed.getBoundingClientRect() : null;
    this.ring.hidden = !box?.width;
    if (this.card.hidden) return;
    if (box?.width) {
      const { left, top, width, height } = box;
      Object.assign(this.ring.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` }); // prettier-ignore
      const around = [left, top, width, height, this.at].join();
      if (around !== this.around) this.settle(box);
      this.around = around;
    }
    cancelAnimationFrame(this.next); // of the stop before
    this.next = requestAnimationFrame(this.follow);
  }

  /** Puts the card where it hides the least: of what is framed, of words, and of pictures. @param {DOMRect} framed */
  settle(framed) {
    const costs = CORNERS.map(([end, side]) => {
      Object.assign(this.card.dataset, { end, side });
      const { left, top, right, bottom, width, height } = this.card.getBoundingClientRect();
      const across = Math.max(0, Math.min(right, framed.right) - Math.max(left, framed.left));
      const down = Math.max(0, Math.min(bottom, framed.bottom) - Math.max(top, framed.top));
      const lost = SHARES.flatMap((x) =>
        SHARES.map((y) => lossAt(left + x * width, top + y * height, this.card)),
      );
      return (
        (across * down) / (framed.width * framed.height) +
        lost.reduce((all, one) => all + one, 0) / lost.length
      );
    });
    const [end, side] = CORNERS[costs.indexOf(Math.min(...costs))];
    Object.assign(this.card.dataset, { end, side });
  }

  end() {
    remember(KEPT, this.at + 1 < this.stops.length ? String(this.at) : DONE);
    this.card.hidden = true;
    this.ring.hidden = true;
    this.framed = null;
    const { focus = null, view = {}, subject, scroll } = this.before ?? {};
    this.before = null;
    if (this.store.subject() !== subject) return giveFocus(focus); // somebody looks at something else by now
    this.store.set(view, { push: false });
    requestAnimationFrame(() => {
      giveFocus(focus);
      window.scrollTo({ top: scroll });
    });
  }
}

/** How much is lost, up to 1, where the card lies over a point of the screen. @param {number} x @param {number} y @param {Element} card @returns {number} */
function lossAt(x, y, card) {
  const seen = document.elementsFromPoint(x, y).find((part) => !card.contains(part));
  const isRead = [...(seen?.childNodes ?? [])].some(
    (node) => node.nodeType === Node.TEXT_NODE && node.nodeValue?.trim(),
  );
  return isRead ? 1 : seen?.matches('canvas, img, svg, input, select, button') ? 0.3 : 0;
}

/**
 * What a stop is about, once that is on the screen; null where that takes too long, or nobody waits any more.
 * @param {Stop} stop @param {() => boolean} isWanted
 */
async function shown({ view, about, folded }, isWanted) {
  const since = performance.now();
  while (isWanted() && performance.now() - since < SOON) {
    const isOpen =
      document.getElementById(`vv-tab-${view.tab}-button`)?.getAttribute('aria-selected') === 'true';
    const found = (isOpen ? [about, folded] : []).map((one) => one && document.querySelector(one));
    const seen = found.find((part) => part && part.getBoundingClientRect().width);
    if (seen) return seen;
    await new Promise((next) => requestAnimationFrame(next));
  }
  return null;
}

/** Moves a slider as a hand does, to a share of its way. @param {HTMLInputElement} slider @param {number} share */
function slide(slider, share) {
  const [low, high] = [Number(slider.min), Number(slider.max)];
  slider.value = String(Math.round(low + share * (high - low)));
  for (const event of ['input', 'change']) slider.dispatchEvent(new Event(event, { bubbles: true }));
}
