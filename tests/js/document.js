// A stand-in for the elements that our scripts touch, so that Node can run them: events, boxes, and a canvas that writes down what is
// drawn. It lays nothing out: boxes are what a test says they are.

const VOID = ['img', 'input', 'br', 'progress'];

class Style {
  setProperty(/** @type {string} */ name, /** @type {string} */ value) {
    /** @type {any} */ (this)[name] = value;
  }
}

class ClassList {
  constructor(/** @type {Element} */ owner) {
    this.owner = owner;
  }

  get names() {
    return this.owner.className.split(' ').filter(Boolean);
  }

  contains(/** @type {string} */ name) {
    return this.names.includes(name);
  }

  add(/** @type {string} */ name) {
    this.toggle(name, true);
  }

  remove(/** @type {string} */ name) {
    this.toggle(name, false);
  }

  toggle(/** @type {string} */ name, on = !this.contains(name)) {
    const others = this.names.filter((one) => one !== name);
    this.owner.className = [...others, ...(on ? [name] : [])].join(' ');
  }
}

export class Element {
  constructor(/** @type {string} */ tag) {
    this.tagName = tag.toUpperCase();
    this.className = '';
    this.classList = new ClassList(this);
    /** @type {Record<string, string>} */ this.dataset = {};
    /** @type {Record<string, string>} */ this.attributes = {};
    /** @type {any} */ this.style = new Style();
    /** @type {(Element | string)[]} */ this.nodes = [];
    /** @type {Record<string, ((event: any) => void)[]>} */ this.listeners = {};
    /** @type {Element | null} */ this.parentElement = null;
    this.hidden = false;
    this.disabled = false;
    this.checked = false;
    /** @type {string | null} */ this.written = null;
    this.type = tag === 'select' ? 'select-one' : '';
    this.isConnected = true;
    this.captured = 0;
    this.focused = false;
    this.scrolled = false;
    this.box = { left: 0, top: 0, width: 0, height: 0 };
    /** @type {Canvas | null} */ this.canvas = null;
    this.complete = true; // of a picture: it has been loaded
    this.naturalWidth = 300;
  }

  get children() {
    return /** @type {Element[]} */ (this.nodes.filter((node) => node instanceof Element));
  }

  get childElementCount() {
    return this.children.length;
  }

  get textContent() {
    return this.nodes.map((node) => (node instanceof Element ? node.textContent : node)).join('');
  }

  set textContent(/** @type {string} */ text) {
    this.nodes = text ? [String(text)] : [];
  }

  append(/** @type {(Element | string)[]} */ ...nodes) {
    for (const node of nodes) if (node instanceof Element) node.parentElement = this;
    this.nodes.push(...nodes);
  }

  replaceChildren(/** @type {(Element | string)[]} */ ...nodes) {
    this.nodes = [];
    this.append(...nodes);
  }

  setAttribute(/** @type {string} */ name, /** @type {unknown} */ value) {
    if (name === 'class') this.className = String(value);
    else if (name.startsWith('data-')) this.dataset[camel(name.slice(5))] = String(value);
    else this.attributes[name] = String(value);
  }

  getAttribute(/** @type {string} */ name) {
    if (name.startsWith('data-')) return this.dataset[camel(name.slice(5))] ?? null;
    return this.attributes[name] ?? null;
  }

  hasAttribute(/** @type {string} */ name) {
    return this.getAttribute(name) !== null;
  }

  toggleAttribute(/** @type {string} */ name, on = !this.hasAttribute(name)) {
    if (on) this.setAttribute(name, '');
    else if (name.startsWith('data-')) delete this.dataset[camel(name.slice(5))];
    else delete this.attributes[name];
  }

  /** Without its value, a progress bar says that nobody knows how far it is. */
  removeAttribute(/** @type {string} */ name) {
    if (name === 'value') this.value = '';
    this.toggleAttribute(name, false);
  }

  get src() {
    return this.attributes.src ?? '';
  }

  set src(/** @type {string} */ address) {
    this.setAttribute('src', address);
  }

  /** What was typed or chosen; of an option without a value its text. */
  get value() {
    return this.written ?? (this.tagName === 'OPTION' ? this.textContent : '');
  }

  set value(/** @type {string} */ text) {
    this.written = text;
  }

  get options() {
    return this.querySelectorAll('option');
  }

  get nextElementSibling() {
    const beside = this.parentElement?.children ?? [];
    return beside[beside.indexOf(this) + 1] ?? null;
  }

  get offsetHeight() {
    return this.box.height;
  }

  get offsetWidth() {
    return this.box.width;
  }

  get offsetLeft() {
    return this.box.left;
  }

  get offsetTop() {
    return this.box.top;
  }

  get clientWidth() {
    return this.box.width;
  }

  get clientHeight() {
    return this.box.height;
  }

  getBoundingClientRect() {
    const { left, top, width, height } = this.box;
    return { ...this.box, right: left + width, bottom: top + height, x: left, y: top };
  }

  /** Those that capture hear an event before all others here. */
  addEventListener(
    /** @type {string} */ name,
    /** @type {(event: any) => void} */ listener,
    /** @type {{capture?: boolean, once?: boolean}} */ { capture = false, once = false } = {},
  ) {
    const heard = (this.listeners[name] ??= []);
    const hear = (/** @type {any} */ event) => {
      this.removeEventListener(name, hear);
      listener(event);
    };
    if (capture) heard.unshift(once ? hear : listener);
    else heard.push(once ? hear : listener);
  }

  removeEventListener(/** @type {string} */ name, /** @type {(event: any) => void} */ listener) {
    this.listeners[name] = (this.listeners[name] ?? []).filter((one) => one !== listener);
  }

  /** Lets an event happen here, and above unless somebody stops it; returns it. */
  fire(/** @type {string} */ name, details = {}) {
    const event = {
      type: name,
      target: this,
      button: 0,
      prevented: false,
      stopped: false,
      preventDefault() {
        this.prevented = true;
      },
      stopPropagation() {
        this.stopped = true;
      },
      silenced: false,
      stopImmediatePropagation() {
        this.stopped = true;
        this.silenced = true;
      },
      ...details,
    };
    for (let at = /** @type {Element | null} */ (this); at && !event.stopped; at = at.parentElement) {
      for (const listener of at.listeners[name] ?? []) if (!event.silenced) listener(event);
    }
    return event;
  }

  click() {
    this.fire('click');
  }

  dispatchEvent(/** @type {any} */ event) {
    this.fire(event.type, { detail: event.detail });
  }

  focus() {
    this.focused = true;
  }

  setPointerCapture(/** @type {number} */ id) {
    this.captured = id;
  }

  scrollIntoView() {
    this.scrolled = true;
  }

  getContext() {
    this.canvas ??= new Canvas(this);
    return this.canvas;
  }

  toBlob(/** @type {(blob: object) => void} */ callback) {
    callback({ of: this });
  }

  /** Every element below. */
  get all() {
    /** @type {Element[]} */
    const found = [];
    for (const child of this.children) found.push(child, ...child.all);
    return found;
  }

  querySelectorAll(/** @type {string} */ selector) {
    const [first, ...rest] = selector.split(' ');
    let found = this.all.filter((node) => matches(node, first));
    for (const part of rest) found = found.flatMap((node) => node.all.filter((one) => matches(one, part)));
    return found;
  }

  /** The nearest of this element and those around it that fits. */
  closest(/** @type {string} */ selector) {
    let at = /** @type {Element | null} */ (this);
    while (at && !matches(at, selector)) at = at.parentElement;
    return at;
  }

  /** Whether another element is this one or stands in it. */
  contains(/** @type {unknown} */ other) {
    let at = other instanceof Element ? other : null;
    while (at && at !== this) at = at.parentElement;
    return at === this;
  }

  querySelector(/** @type {string} */ selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }
}

/** Writes down what is drawn; text is half as wide as it is high. */
export class Canvas {
  constructor(/** @type {Element} */ owner) {
    this.owner = owner;
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

  get canvas() {
    return this.owner;
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

function camel(/** @type {string} */ name) {
  return name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
}

/**
 * Reads "tag", ".class", "[name]", "[name=value]" and "[name$=value]", one of each at most; several of these with ", " between.
 * @param {Element} node
 * @param {string} selector
 * @returns {boolean}
 */
function matches(node, selector) {
  if (selector.includes(', ')) return selector.split(', ').some((one) => matches(node, one));
  const parts = /^([a-z]+\d?)?([.][\w-]+)?(?:\[([\w-]+)(?:([$]?=)"?([^"\]]*)"?)?\])?$/.exec(selector);
  if (!parts) throw new Error(`This document does not understand ${selector}.`);
  const [, tag, name, attribute, how, value] = parts;
  if (tag && node.tagName !== tag.toUpperCase()) return false;
  if (name && !node.classList.contains(name.slice(1))) return false;
  if (!attribute) return true;
  const has = attribute === 'name' ? (node.attributes.name ?? null) : node.getAttribute(attribute);
  if (has === null) return false;
  return !how || (how === '=' ? has === value : has.endsWith(value));
}

/** The elements of a template. */
export function parse(/** @type {string} */ html) {
  const root = new Element('div');
  const open = [root];
  const text = html.replace(/<!--.*?-->/gs, '').replace(/[$]\{[^}]*\}/g, '');
  for (const match of text.matchAll(/<(\/?)([a-z0-9]+)((?:"[^"]*"|[^>"])*)>|([^<]+)/gi)) {
    const [, closing, tag, attributes, words] = match;
    const top = open[open.length - 1];
    if (words !== undefined) {
      if (words.trim()) top.append(words.trim());
    } else if (closing) {
      if (open.length > 1 && top.tagName === tag.toUpperCase()) open.pop();
    } else {
      const node = new Element(tag);
      for (const [, name, value] of attributes.matchAll(/([\w:-]+)(?:="([^"]*)")?/g)) {
        if (name === 'hidden' || name === 'disabled' || name === 'checked')
          /** @type {any} */ (node)[name] = true;
        else if (name === 'value' || name === 'type') node[name] = value;
        else node.setAttribute(name, value ?? '');
      }
      top.append(node);
      if (!VOID.includes(tag) && !attributes.endsWith('/')) open.push(node);
    }
  }
  return root;
}
