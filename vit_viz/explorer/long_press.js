// A finger on a picture: it taps, it swipes and the page scrolls, or it rests and then draws.
//
// The browser decides at a finger's first movement whether to scroll, and asks only the listeners that are there before; so whether
// the finger has rested is known here, and the movement is kept from the browser from then on. The mouse is not listened to.

export const REST = 450; // milliseconds after which a finger that stays where it is begins to draw
export const STILL = 10; // pixels by which a resting finger may tremble

/**
 * What a finger does. Each is told the pointer's event, whose clientX and clientY are the place.
 * @typedef {object} FingerActions
 * @property {(event: PointerEvent) => void} tap down and up again at one place
 * @property {(event: PointerEvent) => void} begin it has rested: from here on it draws, and the page does not scroll
 * @property {(event: PointerEvent) => void} draw it moves after `begin`
 * @property {(event: PointerEvent) => void} end it lifts after `begin`
 * @property {(event: PointerEvent) => void} [slide] it moves sideways without having rested, which scrolls nothing
 * @property {() => void} [cancel] what was begun or slid is off: it slid and lifts, the page scrolls, or a second finger came
 *
 * @typedef {{event: PointerEvent, timer: number, doing: 'waits' | 'slides' | 'draws'}} Press
 */

/** Whether a pointer is a finger or a pen, which scroll the page where they swipe. */
export function isFinger(/** @type {Pick<PointerEvent, 'pointerType'>} */ { pointerType }) {
  return pointerType === 'touch' || pointerType === 'pen';
}

/**
 * Listens to fingers on an element. A swipe up or down scrolls the page, and two fingers enlarge it, as everywhere else.
 * @param {HTMLElement | SVGElement} element @param {FingerActions} actions
 */
export function attachFinger(element, actions) {
  const finger = new Finger(actions);
  /** @type {[string, (event: any) => void][]} */
  const listeners = [
    ['pointerdown', (event) => finger.down(event)],
    ['pointermove', (event) => finger.move(event)],
    ['pointerup', (event) => finger.up(event)],
    ['pointercancel', (event) => finger.is(event) && finger.off()],
    ['contextmenu', (event) => (finger.press || isFinger(event)) && event.preventDefault()],
  ];
  for (const [name, listener] of listeners) element.addEventListener(name, listener);
  const keep = (/** @type {Event} */ event) => finger.draws() && event.cancelable && event.preventDefault();
  element.addEventListener('touchmove', keep, { passive: false });
  element.style.touchAction = 'pan-y pinch-zoom';
  element.style.setProperty('-webkit-touch-callout', 'none'); // Safari's own menu of a long press
}

class Finger {
  /** @type {Press | null} */ press = null;

  /** @param {FingerActions} actions */
  constructor(actions) {
    this.actions = actions;
  }

  /** Whether an event is of the finger that is down. */
  is(/** @type {PointerEvent} */ event) {
    return this.press !== null && event.pointerId === this.press.event.pointerId;
  }

  draws() {
    return this.press?.doing === 'draws';
  }

  down(/** @type {PointerEvent} */ event) {
    if (!isFinger(event) || event.button) return;
    if (this.press) {
      this.off(); // a second finger: the two enlarge the page
      return;
    }
    this.press = { event, timer: window.setTimeout(() => this.rested(), REST), doing: 'waits' };
  }

  rested() {
    if (!this.press) return;
    this.press.doing = 'draws';
    this.actions.begin(this.press.event);
  }

  move(/** @type {PointerEvent} */ event) {
    const { press } = this;
    if (!press || !this.is(event)) return;
    if (press.doing === 'draws') this.actions.draw(event);
    else if (press.doing === 'slides' || distance(press.event, event) > STILL) this.slide(press, event);
  }

  slide(/** @type {Press} */ press, /** @type {PointerEvent} */ event) {
    clearTimeout(press.timer);
    press.doing = 'slides';
    const across = Math.abs(event.clientX - press.event.clientX);
    if (across > Math.abs(event.clientY - press.event.clientY)) this.actions.slide?.(event);
  }

  up(/** @type {PointerEvent} */ event) {
    const { press } = this;
    if (!press || !this.is(event)) return;
    if (press.doing === 'slides') return void this.off();
    clearTimeout(press.timer);
    this.press = null;
    if (press.doing === 'draws') this.actions.end(event);
    else this.actions.tap(event);
  }

  off() {
    const { press } = this;
    if (!press) return;
    clearTimeout(press.timer);
    this.press = null;
    if (press.doing !== 'waits') this.actions.cancel?.();
  }
}

/** How far apart two places are, in pixels of the page. */
function distance(/** @type {PointerEvent} */ a, /** @type {PointerEvent} */ b) {
  return Math.hypot(b.clientX - a.clientX, b.clientY - a.clientY);
}
