// The tour: five stops on the page itself. Each opens its tab, frames what it is about, does one thing there as a visitor would,
// and says what that shows. Nothing is covered or blocked meanwhile; it remembers where somebody left.

import { finder, giveFocus } from '../kit/elements.js';

export const START = 'vv-tour'; // the event of the window that begins it
const KEPT = 'vit_viz-tour'; // in the browser's storage: the stop that was left, or DONE
const DONE = 'done';
const AGAIN = 1000; // milliseconds until a tab that did not open is pressed again
const SOON = 12_000; // milliseconds until a stop goes on without what it is about, which a model may not have

/**
 * @typedef {object} Stop
 * @property {string} tab
 * @property {string} about what it frames, as a selector
 * @property {string} [folded] what it frames where that is folded away
 * @property {string} [face] the button of the face of the tab that shows it
 * @property {string} title
 * @property {string} words
 * @property {(framed: Element) => void} [act] what it does there, once
 */

/** @type {Stop[]} */
export const STOPS = [
  {
    tab: 'look',
    about: '#vv-explorer [data-vv=stage]',
    title: 'One patch asks',
    words:
      'The model cuts the photo into patches. Point at one, or tap it: bright is where the model looks from there. ' +
      'A click or a tap keeps the patch as the one that asks.',
  },
  {
    tab: 'look',
    about: '#vv-explorer [data-vv=mosaic]',
    title: 'Every head of every layer answers',
    words:
      'Rows are layers, columns are heads: each small photo is one of them looking from your patch. ' +
      'Choose one to see it large. Early heads often look nearby, late ones at what the photo is about.',
    act: (mosaic) => key(mosaic, 'ArrowUp'),
  },
  {
    tab: 'explain',
    about: '#vv-explain-picture input[type=range]',
    face: '#vv-target [data-face=why]',
    title: 'What made it say this class?',
    words:
      'Attention is not yet a reason. Here a method marks the patches that speak for the answer, and the slider takes the best of ' +
      'them away: if the answer falls, the map was right about them. “Test this map, then the others” measures that for each method.',
    act: (slider) => slide(/** @type {HTMLInputElement} */ (slider), 0.2),
  },
  {
    tab: 'heads',
    about: '#vv-heads',
    title: 'What is each head for?',
    words:
      'One number or name for each head, measured on this photo: how far it looks, what the answer loses without it. ' +
      'Switch heads off, and the whole page shows the model without them.',
  },
  {
    tab: 'look',
    about: '#vv-palette .vv-ask',
    folded: '#vv-menu .vv-opener',
    title: 'Ask anything, and take it with you',
    words:
      '“Find a question” (Ctrl+K) finds every question by its words. Save, beside each picture, makes files and the lines of Python ' +
      'that draw it again; Copy link opens exactly this view elsewhere. For the whole machine step by step, see Walkthrough.',
  },
];

/** @type {import('../kit/elements.js').Mount<object>} */
export function mount(element) {
  const tour = new Tour(element);
  const begin = () => (element.isConnected ? tour.begin() : window.removeEventListener(START, begin));
  window.addEventListener(START, begin);
}

/** Whether somebody has seen the tour to its end, or has left it for good. */
export function isSeen() {
  return kept() === DONE;
}

class Tour {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.find = finder(element);
    this.card = this.find('tour');
    this.ring = this.find('tour-ring');
    this.at = 0;
    /** @type {Element | null} */ this.framed = null;
    /** @type {HTMLElement | null} */ this.before = null;
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
    const left = Number(kept());
    this.before = /** @type {HTMLElement | null} */ (document.activeElement);
    this.go(left > 0 && left < STOPS.length ? left : 0);
  }

  /** Goes to a stop; behind the last one the tour ends. @param {number} stop */
  go(stop) {
    if (stop >= STOPS.length) return this.end();
    this.at = Math.max(stop, 0);
    keep(String(this.at));
    this.framed = null;
    this.say();
    void this.open(STOPS[this.at]);
  }

  say() {
    const { title, words } = STOPS[this.at];
    this.find('tour-place').textContent = `${this.at + 1} of ${STOPS.length}`;
    this.find('tour-title').textContent = title;
    this.find('tour-words').textContent = words;
    /** @type {HTMLButtonElement} */ (this.find('tour-back')).disabled = this.at === 0;
    this.find('tour-next').textContent = this.at + 1 < STOPS.length ? 'Next' : 'Done';
    this.card.dataset.state = 'opening';
    this.card.hidden = false;
    this.find('tour-title').focus();
  }

  /** Opens the tab of a stop, waits for what it is about, frames it and acts. @param {Stop} stop */
  async open(stop) {
    const isWanted = () => !this.card.hidden && STOPS[this.at] === stop;
    const framed = await shown(stop, isWanted);
    if (!isWanted()) return;
    this.framed = framed;
    const isSmall = (framed?.clientHeight ?? 0) < window.innerHeight / 3;
    framed?.scrollIntoView({ block: isSmall ? 'center' : 'nearest' });
    if (framed) stop.act?.(framed);
    this.card.dataset.state = framed ? 'open' : 'missing';
    this.frame();
  }

  /** Keeps the ring around what it frames, wherever that moves, and the card in the corner that hides least of it. */
  frame() {
    const box = this.framed?.isConnected ? this.framed.getBoundingClientRect() : null;
    this.ring.hidden = !box?.width;
    if (this.card.hidden) return;
    if (box?.width) {
      Object.assign(this.ring.style, {
        left: `${box.left}px`,
        top: `${box.top}px`,
        width: `${box.width}px`,
        height: `${box.height}px`,
      });
      this.card.dataset.side = box.left + box.width / 2 > window.innerWidth / 2 ? 'left' : 'right';
      this.card.dataset.end = box.top > window.innerHeight / 2 ? 'top' : 'bottom';
    }
    cancelAnimationFrame(this.next); // of the stop before
    this.next = requestAnimationFrame(this.follow);
  }

  end() {
    keep(this.at + 1 < STOPS.length ? String(this.at) : DONE);
    this.card.hidden = true;
    this.ring.hidden = true;
    this.framed = null;
    giveFocus(this.before);
  }
}

/**
 * Opens the tab of a stop and finds what it is about, once that is on the screen; null where that takes too long, or nobody waits
 * any more. The tab, or its face, is pressed again where a page that is just opening goes to another one.
 * @param {Stop} stop @param {() => boolean} isWanted
 */
async function shown({ tab, about, folded, face }, isWanted) {
  const since = performance.now();
  for (let pressed = -Infinity; isWanted() && performance.now() - since < SOON;) {
    const button = document.getElementById(`vv-tab-${tab}-button`);
    const isOpen = button?.getAttribute('aria-selected') === 'true';
    const found = (isOpen ? [about, folded] : []).map((one) => one && document.querySelector(one));
    const seen = found.find((part) => part && part.getBoundingClientRect().width);
    if (seen) return seen;
    const other = isOpen ? face && document.querySelector(`${face}[aria-pressed=false]`) : button;
    if (other && performance.now() - pressed > AGAIN) {
      /** @type {HTMLElement} */ (other).click();
      pressed = performance.now();
    }
    await new Promise((next) => requestAnimationFrame(next));
  }
  return null;
}

/** @param {Element} target @param {string} name */
function key(target, name) {
  target.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true }));
}

/** Moves a slider as a hand does, to a share of its way. @param {HTMLInputElement} slider @param {number} share */
function slide(slider, share) {
  const [low, high] = [Number(slider.min), Number(slider.max)];
  slider.value = String(Math.round(low + share * (high - low)));
  for (const event of ['input', 'change']) slider.dispatchEvent(new Event(event, { bubbles: true }));
}

/** What is remembered; null where nothing is, or the browser keeps nothing. */
function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

/** @param {string} value */
function keep(value) {
  try {
    localStorage.setItem(KEPT, value);
  } catch {
    // a browser that keeps nothing begins anew
  }
}
