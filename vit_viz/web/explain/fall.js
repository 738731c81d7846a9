// The curve of what is followed while the patches of a map go or come, beside random orders of patches.

import { clamp, pointerIn } from '../../explorer/geometry.js';
import { finder, having, make, makeSvg, onPress, press, showText } from '../../ui/kit/elements.js';
/** @import { Trust } from './card.js' */

/**
 * @typedef {object} Curve a curve, and between which values 95% of random orders lie
 * @property {number[]} x share of the patches, from 0 to 1
 * @property {number[]} y
 * @property {number[]} low
 * @property {number[]} high
 * @property {[number, number]} ends of the axis of y
 * @property {[string, string]} labels of these ends
 * @property {string[]} texts of y
 *
 * @typedef {keyof typeof TESTS} Test
 */

const GONE = /** @type {const} */ (['no patch gone', 'all gone']);
const PAINTED = 'Here patches are painted over, in steps; on the photo they are gone for the model.';
const TESTS = {
  deletion: { words: 'taking away', of: 'orange away', ends: GONE, how: PAINTED, done: 'gone' },
  insertion: {
    words: 'putting back',
    of: 'orange back',
    ends: /** @type {const} */ (['no patch there', 'all back']),
    how: 'Patches are put back into a blurred photo, in steps.',
    done: 'back',
  },
  reverse: { words: '', of: 'blue away', ends: GONE, how: PAINTED, done: 'gone' },
};

/** A curve with its axes, its key, and the tests that there are. */
export class Fall {
  /** @type {Test} */ test = 'deletion';
  taken = 0; // share of the patches that the slider of the stage took away
  /** @type {Trust | undefined} */ trust;
  name = '';
  isMarked = true;

  /** @param {HTMLElement} box where it is built */
  constructor(box) {
    this.box = box;
    this.find = finder(box);
    box.replaceChildren(...parts());
    onPress(box, 'test', (test) => this.choose(/** @type {Test} */ (test)));
    this.find('plot').addEventListener('pointermove', (event) => this.read(event));
    this.find('plot').addEventListener('pointerleave', () => this.read(null));
  }

  /**
   * @param {Trust | undefined} trust nothing is drawn without a curve
   * @param {string} name of the map
   * @param {boolean} isMarked whether the slider of the stage is about this map
   */
  draw(trust, name, isMarked = true) {
    Object.assign(this, { trust, name, isMarked });
    if (!trust?.curves?.[this.test]) this.test = 'deletion';
    const curve = trust?.curves?.[this.test];
    this.box.hidden = !curve;
    if (!curve) return;
    this.offer();
    press(this.box, 'test', this.test);
    this.find('fall-title').textContent = this.title();
    this.find('curve').setAttribute('aria-label', `${this.title()}. ${trust?.title ?? ''}`);
    showText(this.find('axis'), trust?.axis);
    this.find('key-words').textContent = this.order();
    this.trace(curve);
    this.read(null);
    this.mark(this.taken);
  }

  /** Names the tests that there are, and hides the others. */
  offer() {
    const { curves = {}, names } = this.trust ?? {};
    for (const [test, { words, of }] of Object.entries(TESTS)) {
      const button = /** @type {HTMLElement} */ (this.box.querySelector(`[data-test=${test}]`));
      showText(button, curves[test] && (names ? of : words));
    }
  }

  /** What is seen, in words. */
  title() {
    const { what = 'the answer', better, grows, names } = this.trust ?? {};
    const verbs = { deletion: better && 'falls', reverse: grows && 'first grows', insertion: 'rises' };
    const verb = verbs[this.test] ? ` ${verbs[this.test]}` : '';
    const hue = names ? (this.test === 'reverse' ? 'blue ' : 'orange ') : '';
    const way = this.test === 'insertion' ? 'come back' : 'go';
    return `${this.name}: ${what}${verb} as its ${hue}patches ${way}`;
  }

  /** Which patches are the first. */
  order() {
    const { names } = this.trust ?? {};
    return names ? `most for ${names[this.test === 'reverse' ? 1 : 0]} first` : 'best first, by this map';
  }

  trace(/** @type {Curve} */ { x, y, low, high, ends, labels }) {
    const line = (/** @type {number[]} */ values) => values.map((value, i) => point(x[i], value, ends));
    this.find('line').setAttribute('d', `M${line(y).join('L')}`);
    this.find('random').setAttribute('d', `M${[...line(high), ...line(low).reverse()].join('L')}Z`);
    const crosses = ends[0] < 0 && ends[1] > 0;
    this.find('zero').setAttribute('d', crosses ? `M${point(0, 0, ends)}L${point(1, 0, ends)}` : '');
    [this.find('bottom').textContent, this.find('top').textContent] = labels;
    [this.find('first').textContent, this.find('last').textContent] = TESTS[this.test].ends;
  }

  choose(/** @type {Test} */ test) {
    this.test = test;
    this.draw(this.trust, this.name, this.isMarked);
  }

  /** Marks how far the slider of the stage is. */
  mark(/** @type {number} */ share) {
    this.taken = share;
    const now = this.find('now');
    now.hidden = !share || this.test !== 'deletion' || !this.isMarked;
    now.style.left = `${100 * share}%`;
  }

  /** Says the numbers under the pointer; else how the curve was made. */
  read(/** @type {PointerEvent | null} */ event) {
    const curve = this.trust?.curves?.[this.test];
    if (!curve) return;
    const { how, done } = TESTS[this.test];
    const words = this.find('curve-words');
    if (!event) return void (words.textContent = how);
    const last = curve.x.length - 1;
    const i = clamp(Math.round(pointerIn(event, this.find('plot'))[1] * last), last);
    words.textContent = `${Math.round(100 * curve.x[i])}% ${done}: ${curve.texts[i]}`;
  }
}

/** What a curve is built of. */
function parts() {
  const lines = ['random', 'zero', 'line'].map((name) => makeSvg('path', { class: `vv-${name}` }));
  const shape = { viewBox: '0 0 100 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' };
  const drawing = makeSvg('svg', { class: 'vv-layer', ...shape });
  drawing.append(...lines);
  const now = make('span', 'vv-now');
  now.hidden = true;
  const small = (/** @type {string} */ name) => make('span', `vv-${name} vv-small`);
  const plot = make('div', 'vv-plot', drawing, now);
  const curve = make('div', 'vv-curve', small('top'), small('bottom'), plot, small('first'), small('last'));
  const mine = [make('span', 'vv-key-line'), make('span', 'vv-key-words')];
  const key = make('p', 'vv-curve-key vv-small', ...mine, make('span', 'vv-key-band'), KEY);
  const buttons = Object.keys(TESTS).map((test) =>
    having(make('button', ''), { type: 'button', 'data-test': test }),
  );
  const tests = having(make('div', 'vv-toggle vv-tests', ...buttons), {
    role: 'group',
    'aria-label': 'What happens to the patches',
  });
  return [
    make('h3', 'vv-title vv-fall-title'),
    make('p', 'vv-axis vv-small'),
    having(curve, { role: 'img' }),
    having(key, { 'aria-hidden': 'true' }),
    make('p', 'vv-curve-words vv-small'),
    tests,
  ];
}

const KEY = 'taken at random (95% of orders)';

/** A point of the curve in a picture of 100 by 100. */
function point(
  /** @type {number} */ x,
  /** @type {number} */ y,
  /** @type {[number, number]} */ [bottom, top],
) {
  const height = 100 - (100 * (y - bottom)) / (top - bottom);
  return `${(100 * x).toFixed(2)} ${height.toFixed(2)}`;
}
