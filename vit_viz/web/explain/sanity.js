// Whether the chosen map depends on what the model has learned: how it changes while the weights are re-initialised, as a curve.

import { clamp, pointerIn } from '../../explorer/geometry.js';
import { askForFigure, routeUrl } from '../../explorer/source.js';
import { finder, having, make, showText } from '../../ui/kit/elements.js';
import { asked } from '../kit/ask.js';
import { Job, JobBar, STOPPED } from '../kit/job.js';
import { computed, effect, signal } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Places } from '../kit/job.js' */

/**
 * What became of a map when the weights were re-initialised.
 * @typedef {{key: string, method: string, words: string}} Weights
 *
 * An answer to what the page asks by /vit_viz/checked and /vit_viz/sanity; without a curve as long as nobody had it computed.
 * @typedef {Weights & {link: string, label: string, title: string, caption: string, correlations?: number[], labels: [string, string],
 *   figure: string}} Checked
 */

const MOST_LABELS = 14; // below the curve

/**
 * @param {HTMLElement} element @param {Page} one
 * @param {{places: Places, isShown: () => boolean, hear: (weights: Weights) => void}} gallery
 */
export function sanityIn(element, { store, ask, turn }, { places, isShown, hear }) {
  const find = finder(element);
  const link = computed(() => store.linkOf([...TARGETED, 'method']));
  const checked = signal(/** @type {Checked | null} */ (null));
  const changed = signal(0);
  const job = new Job(() => void (changed.value = changed.peek() + 1), places);
  const kept = asked(
    async (name, body, stop) => ({ link: body.view, ...(await ask(name, body, stop)) }),
    () => (isShown() ? ['checked', { view: link.value }] : null),
    turn,
  );
  const curve = new WeightsCurve(element);
  const bar = new JobBar(find('job'), {
    begin() {
      const view = link.peek();
      void job.follow((stop, tell) => ask('sanity', { view }, stop, tell), {
        whole: (value) => void (checked.value = { link: view, ...value }),
      });
    },
    end: () => job.end(STOPPED),
  });
  effect(() => {
    void link.value;
    job.end(); // it is about another map
  });
  effect(() => {
    void changed.value;
    const known = [checked.value, kept.value.value].find((one) => one?.link === link.value);
    const { label } = known ?? {};
    const first = job.share > 0 ? '' : ' the trained model …';
    const words = !label ? '' : job.isRunning ? `${label}:${first}` : `For ${label}.`;
    bar.show(job, {
      words: job.error || kept.value.error || words,
      go: 'Re-initialise the weights, step by step',
    });
    curve.draw(known);
    if (known?.correlations) hear(known);
  });
}

/** The correlations with the map of the trained model, from one part re-initialised to the next. */
class WeightsCurve {
  /** @type {number[]} */ correlations = [];
  figure = ''; // its address

  /** @param {HTMLElement} element */
  constructor(element) {
    this.find = finder(element);
    const [plot, save] = [this.find('weights-plot'), this.find('save')];
    plot.addEventListener('pointermove', (event) => this.read(event));
    plot.addEventListener('pointerleave', () => this.read(null));
    save.addEventListener('click', (event) => {
      if (askForFigure(save, this.figure)) event.preventDefault();
    });
  }

  /** @param {Checked | undefined} checked */
  draw(checked) {
    const { find } = this;
    const {
      correlations = [],
      label,
      words,
      title = '',
      caption = '',
      labels = ['', ''],
      figure = '',
    } = checked ?? {};
    Object.assign(this, { correlations, figure });
    find('weights-curve').hidden = !correlations.length;
    showText(find('weights-words'), words && `${label}: ${words}`);
    if (!correlations.length) return;
    const last = correlations.length - 1;
    const ticks = [1, 0.5, 0, -0.5, -1].filter((tick) => tick >= 0 || tick > Math.min(...correlations) - 0.5);
    const bottom = ticks[ticks.length - 1];
    const height = (/** @type {number} */ value) => (100 * (1 - value)) / (1 - bottom);
    const points = correlations.map(
      (value, i) => `${((100 * i) / last).toFixed(2)} ${height(value).toFixed(2)}`,
    );
    find('weights-line').setAttribute('d', `M${points.join('L')}`);
    find('weights-grid').setAttribute('d', ticks.map((tick) => `M0 ${height(tick).toFixed(2)}H100`).join(''));
    find('weights-heights').replaceChildren(
      ...ticks.map((tick) => at('top', height(tick), String(tick).replace('-', '−'))),
    );
    const step = Math.ceil(correlations.length / MOST_LABELS);
    const parts = correlations.flatMap((_, i) => (i % step ? [] : [at('left', (100 * i) / last, String(i))]));
    find('weights-parts').replaceChildren(...parts);
    find('weights-title').textContent = title;
    [find('weights-axis').textContent, find('weights-what').textContent] = labels;
    find('weights-plot').setAttribute('aria-label', `${title}: ${correlations.map(written).join(', ')}`);
    find('caption').textContent = caption;
    having(find('save'), { href: routeUrl(figure) });
    this.read(null);
  }

  /** Says the number under the pointer. @param {PointerEvent | null} event */
  read(event) {
    const last = this.correlations.length - 1;
    const i = event ? clamp(Math.round(pointerIn(event, this.find('weights-plot'))[1] * last), last) : 0;
    this.find('weights-read').textContent = event
      ? `${i} of ${last} re-initialised: ${written(this.correlations[i])}`
      : '';
  }
}

/** A number beside an axis. @param {'top' | 'left'} side @param {number} share in percent @param {string} words */
function at(side, share, words) {
  const node = make('span', '', words);
  node.style[side] = `${share}%`;
  return node;
}

function written(/** @type {number} */ correlation) {
  return correlation.toFixed(2).replace('-', '−');
}
