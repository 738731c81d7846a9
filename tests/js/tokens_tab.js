// The Tokens tab on a page of its own, for its tests: a photo of 2 x 3 patches in a model of four layers, and a server whose vectors
// have dot products that are easy to work out.

import { defaultsOf } from '../../vit_viz/explorer/options.js';
import { Plate } from '../../vit_viz/ui/tokens/plate.js';
import { mount as mountRoom } from '../../vit_viz/ui/tokens/room.js';
import { Browser, component, mount, OPTIONS } from './browser.js';

const ROOM = component(mountRoom, 'ui/tokens/room.html');
const BITS = [0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800]; // 0 to 8 in fp16
const GRAYS = Buffer.from(Uint8Array.from({ length: 768 }, (_, i) => Math.floor(i / 3))).toString('base64');

export const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent);
export const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');
export const settle = async () => {
  for (let i = 0; i < 20; i++) await new Promise((done) => setImmediate(done));
};

/** What the Tokens tab starts with, drawn flat in three quarters of gray, so that the tones can be read. */
export const usual = { ...defaultsOf(OPTIONS.tokens), style: 'heat', alpha: 0.75, smooth: false };

/** The pixels that each canvas shows, one for each patch, and how they lie on the photo. @type {Map<any, {bytes: number[], how: string, smooth: boolean}>} */
const shown = new Map();
const { draw } = Plate.prototype;
Plate.prototype.draw = function drawn(
  /** @type {any} */ canvas,
  /** @type {any} */ map,
  /** @type {any} */ how,
  /** @type {any} */ smooth,
) {
  shown.set(canvas, { bytes: [.../** @type {any} */ (map).canvas.data.data], how, smooth });
  draw.call(this, canvas, map, how, smooth);
};

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
  roles: ['tokens', 'queries', 'keys'],
  chosen: usual,
  target: '',
  classes: null,
  pictures: [],
  second: null,
  unlit: '',
  note: '',
};

/** Token t of state s is (t, s), so that tokens t and u have the product t u + s². */
function vectors(/** @type {number} */ state) {
  return Uint16Array.from({ length: 18 }, (_, i) => BITS[i % 2 ? state : i / 2]).buffer;
}

/**
 * The tab with a server; `slow`: milliseconds that pass whenever the clock is read; `answer` says what it tells for an address: the numbers, an Error whose words it refuses with, or a promise
 * of one of them. Without it all vectors are there and nothing else.
 */
export async function open(
  changes = {},
  { answer = /** @type {(path: string) => any} */ (() => null), matches = null, slow = 0 } = {},
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
  let late = 0; // the clock stands still within a frame, unless every look at it takes a while
  const clock = {
    now: () => browser.now + (late += slow),
    measure: performance.measure.bind(performance),
    getEntriesByName: performance.getEntriesByName.bind(performance),
    clearMeasures: performance.clearMeasures.bind(performance),
  };
  Object.assign(browser.globals, { fetch, performance: clock });
  const props = { tables: { viridis: GRAYS }, options: OPTIONS.tokens, job: null, matches };
  const value = { ...subject, ...changes, chosen: { ...usual, .../** @type {any} */ (changes).chosen } };
  const part = mount(ROOM, value, { browser, props });
  const stage = part.find('room-main-stage');
  stage.box = { left: 100, top: 50, width: 200, height: 80 };
  part.find('box').box = { left: 160, top: 70, width: 120, height: 40 };
  for (const small of part.element.querySelectorAll('.vv-room-small'))
    small.box = { left: 0, top: 0, width: 30, height: 10 };
  browser.window.fire('resize');
  await settle();
  browser.pass(16);
  /** The small photos of a question, by state. */
  const cells = (measure = 'similarity') =>
    part.element.querySelectorAll('[data-cell]').filter((/** @type {any} */ node) => node.dataset.cell.split(' ')[0] === measure); // prettier-ignore
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
    big: () => shown.get(stage.querySelector('canvas'))?.bytes ?? [],
    shownBy: (/** @type {any} */ element) => shown.get(element.querySelector('canvas')),
    how: () => shown.get(stage.querySelector('canvas')),
    cells,
    /** What stands under the small photos of a question. */
    under: (/** @type {string} */ measure) => texts(cells(measure).map((/** @type {any} */ cell) => cell.children[1])), // prettier-ignore
    /** The red of every pixel of a small photo; none before it was drawn. */
    small: (/** @type {number} */ state, measure = 'similarity') =>
      (shown.get(cells(measure)[state].querySelector('canvas'))?.bytes ?? []).filter((_, i) => i % 4 === 0),
    /** Which small photo is the large one. */
    chosenCell: () => part.element.querySelectorAll('[data-cell][aria-pressed=true]').map((/** @type {any} */ node) => node.dataset.cell), // prettier-ignore
    frame: () => browser.pass(16),
    /** The marks over the photo: class, top and left. */
    marks: () =>
      part.find('rings').children.map(({ className, style }) => [className, style.top, style.left].join(' ')),
    words: (/** @type {string} */ name) => part.find(name).textContent,
    /** Chooses by a button. */
    press: async (/** @type {string} */ option, /** @type {string} */ choice) => {
      part.element.querySelector(`[data-option=${option}] [data-value=${choice}]`)?.click();
      await settle();
      browser.pass(16);
    },
    chosen: () => part.told.filter(([name]) => name === 'choose').map(([, data]) => data),
    show: async (/** @type {any} */ more) => {
      part.set({ ...value, ...more, chosen: { ...value.chosen, ...more.chosen } });
      await settle();
      browser.pass(16);
    },
  };
}
