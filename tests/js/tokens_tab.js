// The Tokens tab on a page of its own, for its tests: a photo of 2 x 3 patches in a model of four layers, and a server whose vectors
// have dot products that are easy to work out.

import { defaultsOf } from '../../vit_viz/explorer/state.js';
import { mount as mountRoom } from '../../vit_viz/ui/tokens/room.js';
import { Browser, component, kinds, mount, OPTIONS } from './browser.js';

const ROOM = component(mountRoom, 'ui/tokens/room.html');
const BITS = [0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800]; // 0 to 8 in fp16
const GRAYS = Buffer.from(Uint8Array.from({ length: 768 }, (_, i) => Math.floor(i / 3))).toString('base64');

export const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
export const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');
export const settle = async () => {
  for (let i = 0; i < 20; i++) await new Promise((done) => setImmediate(done));
};

/** What the Tokens tab starts with. */
export const usual = defaultsOf(OPTIONS.tokens);

/** Nine tokens: the class token, a register, six patches and a detection token; a patch is 10 pixels high and 20 wide. */
export const subject = {
  revision: 1,
  handle: 'h4',
  layers: 4,
  prefix: ['class', 'register 0'],
  suffix: ['detection 0'],
  query: '',
  grid: [2, 3],
  photo: '/photo/h4',
  photo_size: [12, 30],
  crop: { region: [10, 30, 20, 60], original: [40, 100] },
  name: 'a lion',
  travels: true,
  roles: ['tokens', 'queries', 'keys'],
  chosen: usual,
  target: '',
  classes: null,
  pictures: [],
  second: null,
  note: '',
};

/** Token t of state s is (t, s), so that tokens t and u have the product t u + s². */
function vectors(/** @type {number} */ state) {
  return Uint16Array.from({ length: 18 }, (_, i) => BITS[i % 2 ? state : i / 2]).buffer;
}

/**
 * The tab with a server; `answer` says what it tells for an address: the numbers, an Error whose words it refuses with, or a promise
 * of one of them. Without it all vectors are there and nothing else.
 */
export async function open(
  changes = {},
  { answer = /** @type {(path: string) => any} */ (() => null), matches = null } = {},
) {
  const browser = new Browser();
  /** @type {string[]} */
  const asked = [];
  /** @type {AbortSignal[]} */
  const signals = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { signal, credentials }) => {
    asked.push(path);
    signals.push(signal);
    if (credentials !== 'same-origin') throw new Error('Nobody knows who asks.');
    const told = await answer(path);
    if (told instanceof Error) return { ok: false, text: async () => told.message };
    const state = /^[/]vit_viz[/]tokens[/]\w+[/](\d+)/.exec(path)?.[1];
    return { ok: true, json: async () => told, arrayBuffer: async () => told ?? vectors(Number(state)) };
  };
  Object.assign(browser.globals, { fetch, ...kinds });
  const props = { tables: { viridis: GRAYS }, options: OPTIONS.tokens, job: null, matches };
  const value = { ...subject, ...changes, chosen: { ...usual, .../** @type {any} */ (changes).chosen } };
  Object.defineProperty(kinds.Element.prototype, 'options', {
    configurable: true,
    get() {
      return this.children.map((/** @type {any} */ one) => ({ value: one.value, text: one.textContent }));
    },
  });
  const part = mount(ROOM, value, { browser, props });
  const stage = part.find('room-main-stage');
  stage.box = { left: 100, top: 50, width: 200, height: 80 };
  await settle();
  /** Where a point of the photo is in the window: the photo is drawn twice as large as it is. */
  const at = (/** @type {number} */ y, /** @type {number} */ x) => ({
    clientX: 100 + 2 * x,
    clientY: 50 + 2 * y,
    pointerId: 7,
  });
  return {
    ...part,
    asked,
    signals,
    stage,
    at,
    /** The middle of a patch. */
    patch: (/** @type {number} */ row, /** @type {number} */ col) => at(15 + 10 * row, 40 + 20 * col),
    /** Bytes of the map over the photo, red, green, blue and opacity of each patch. */
    big: () => [.../** @type {any} */ (stage.querySelector('canvas')).canvas.data.data],
    tiles: () => part.find('room-strip').children,
    /** The red of every pixel of a small map; none before it was painted. */
    small: (/** @type {number} */ state) => {
      const { data } = part.find('room-strip').querySelectorAll('canvas')[state].canvas?.data ?? { data: [] };
      return [...data].filter((_, i) => i % 4 === 0);
    },
    /** The marks over the photo: class, top and left. */
    marks: () =>
      part.find('rings').children.map(({ className, style }) => [className, style.top, style.left].join(' ')),
    words: (/** @type {string} */ name) => part.find(name).textContent,
    /** Chooses by a button of the head. */
    press: async (/** @type {string} */ option, /** @type {string} */ choice) => {
      part.element.querySelector(`[data-option=${option}] [data-value=${choice}]`)?.click();
      await settle();
    },
    chosen: () => part.told.filter(([name]) => name === 'choose').map(([, data]) => data),
    show: async (/** @type {any} */ more) => {
      part.set({ ...value, ...more, chosen: { ...value.chosen, ...more.chosen } });
      await settle();
    },
  };
}
