// The elements that our scripts touch, so that Node can run them: those of happy-dom, which lays nothing out. A test says what boxes
// they have, lets events happen to them, and finds what was drawn in a canvas that writes it down. (linkedom loads in a third of the
// time, but knows no focus, no capture of events, and no choice in a select.)

import { afterEach } from 'node:test';
import { inspect } from 'node:util';

import { Window } from 'happy-dom';

const navigation = { disableMainFrameNavigation: true, disableFallbackToSetURL: true };
const settings = /** @type {any} */ ({ errorCapture: 'disabled', navigation }); // a test hears of errors
export const page = /** @type {any} */ (new Window({ url: 'http://page/', settings }));
afterEach(() => page.document.body.replaceChildren());

/** Events that happen to an element alone. */
const ALONE = /^(focus|blur|load|error|scroll|toggle|close|cancel|(mouse|pointer)(enter|leave))$/;

/** Gives elements what a test needs of them, in the place of what happy-dom knows. */
function extend(/** @type {any} */ kind, /** @type {ThisType<any>} */ more) {
  Object.defineProperties(kind.prototype, Object.getOwnPropertyDescriptors(more));
}

const { children } = Object.getOwnPropertyDescriptors(page.Element.prototype);
const { querySelectorAll } = page.Element.prototype;

extend(page.Element, {
  captured: 0,
  scrolled: false,
  canvas: null,

  // lists of elements are arrays for tests
  get children() {
    return [...(children.get?.call(this) ?? [])];
  },

  querySelectorAll(/** @type {string} */ selector) {
    return [...querySelectorAll.call(this, selector)];
  },

  /** How a test that fails shows it. */
  [inspect.custom]() {
    return this.outerHTML;
  },

  get focused() {
    return page.document.activeElement === this;
  },

  /** Where the test says that it is. */
  get box() {
    return (this.placed ??= { left: 0, top: 0, width: 0, height: 0 });
  },

  set box(box) {
    this.placed = box;
  },

  getBoundingClientRect() {
    const { left, top, width, height } = this.box;
    return { ...this.box, right: left + width, bottom: top + height, x: left, y: top };
  },

  setPointerCapture(/** @type {number} */ id) {
    this.captured = id;
  },

  scrollIntoView() {
    this.scrolled = true;
  },

  /** Lets an event happen here, and above unless somebody stops it; returns it. */
  fire(/** @type {string} */ name, details = {}) {
    const event = new page.Event(name, { bubbles: !ALONE.test(name), cancelable: true, ...details });
    for (const [key, value] of Object.entries({ button: 0, ...details }))
      Object.defineProperty(event, key, { value });
    this.dispatchEvent(event);
    return Object.assign(event, { prevented: event.defaultPrevented, stopped: event.cancelBubble });
  },
});

for (const name of ['offsetLeft', 'offsetTop', 'offsetWidth', 'offsetHeight', 'clientWidth', 'clientHeight'])
  Object.defineProperty(page.HTMLElement.prototype, name, {
    get() {
      return this.box[name.slice(6).toLowerCase()];
    },
  });

extend(page.HTMLDialogElement, {
  showModal() {
    this.setAttribute('open', '');
  },

  /** The browser says a little later that it was closed. */
  close() {
    if (!this.open) return;
    this.removeAttribute('open');
    setImmediate(() => this.fire('close'));
  },
});

extend(page.HTMLSelectElement, {
  get options() {
    return this.querySelectorAll('option');
  },
});

extend(page.HTMLImageElement, {
  complete: true,
  naturalWidth: 300,
  naturalHeight: 200,

  /** The address as it was given. */
  get src() {
    return this.getAttribute('src') ?? '';
  },

  set src(address) {
    this.setAttribute('src', address);
  },
});

extend(page.HTMLCanvasElement, {
  getContext() {
    return (this.canvas ??= new Canvas(this));
  },

  toBlob(/** @type {(blob: object) => void} */ callback) {
    callback({ of: this });
  },
});

/**
 * @typedef {{
 *   [name: string]: any,
 *   children: Element[],
 *   querySelectorAll: (selector: string) => Element[],
 *   canvas: Canvas | null,
 *   getContext: () => Canvas,
 * }} Element
 */

/** Makes an element that stands nowhere yet. */
export const Element = /** @type {new (tag: string) => Element} */ (
  new Proxy(page.Element, { construct: (_, [tag]) => page.document.createElement(tag) })
);

/** Writes down what is drawn; text is half as wide as it is high. */
export class Canvas {
  constructor(/** @type {Element} */ canvas) {
    this.canvas = canvas;
    /** @type {any[][]} */ this.calls = [];
    /** @type {any} */ this.data = null;
    this.font = '';
    return new Proxy(this, {
      get: (target, name) => {
        if (name in target || typeof name === 'symbol') return /** @type {any} */ (target)[name];
        return (/** @type {any[]} */ ...args) => void target.calls.push([String(name), ...args]);
      },
      set: (target, name, value) => {
        if (name !== 'data') target.calls.push([`${String(name)} =`, value]);
        /** @type {any} */ (target)[name] = value;
        return true;
      },
    });
  }

  /** What was put here; where only drawings were made, pixels of one gray. */
  getImageData(/** @type {number[]} */ ...[, , width, height]) {
    const { data } = this;
    if (data?.width === width && data.height === height) return data;
    return { width, height, data: new Uint8ClampedArray(4 * width * height).fill(200) };
  }

  createImageData(/** @type {number} */ width, /** @type {number} */ height) {
    return { width, height, data: new Uint8ClampedArray(4 * width * height) };
  }

  putImageData(/** @type {any} */ data) {
    this.data = data;
  }

  measureText(/** @type {string} */ text) {
    return { width: (text.length * parseInt(this.font, 10)) / 2 };
  }
}

/** The elements of a template on the page, without the space around words. */
export function parse(/** @type {string} */ html) {
  const root = new Element('div');
  root.innerHTML = html.replace(/[$]\{[^}]*\}/g, '').replace(/>\s+|\s+</g, (space) => space.trim());
  page.document.body.append(root);
  return root;
}
