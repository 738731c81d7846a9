// The head that is looked at: the numbers that named it against their thresholds, what it is for the answer, its matrix, its kin.

import { clamp } from '../../explorer/geometry.js';
import { LayerStore } from '../../explorer/layers.js';
import { Axis, Filling, endsOf, shareOnScale } from '../../explorer/matrix.js';
import { Picture } from '../../explorer/paint.js';
import { having, make, showText } from '../../ui/kit/elements.js';
import { short } from '../../ui/kit/numbers.js';
import { SERVER } from '../look/server_source.js';
import { layerOf } from './matrix.js';
import { evidenceOf, nameWords, numberWords, thinWords } from './names.js';
import { capital, headWords } from './words.js';
/** @import { HeadRoom } from './room.js' */
/** @import { Place } from './words.js' */

const KIN = 4; // heads that are shown as most alike
const BUDGET = 6; // milliseconds of a frame in which rows of the matrix are computed

/** How alike two maps are: their correlation over the patches; 0 where one is constant. @param {Float32Array} a @param {Float32Array} b */
export function correlation(a, b) {
  const mean = (/** @type {Float32Array} */ x) => x.reduce((sum, value) => sum + value, 0) / x.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [both, one, two] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    both += (a[i] - ma) * (b[i] - mb);
    one += (a[i] - ma) ** 2;
    two += (b[i] - mb) ** 2;
  }
  return one && two ? both / Math.sqrt(one * two) : 0;
}

export class Detail {
  /** @type {LayerStore | null} */ store = null;
  filled = ''; // the matrix that is shown
  evidenced = ''; // the head whose numbers are shown

  /** @param {HeadRoom} room */
  constructor(room) {
    this.room = room;
    this.find = room.find;
    this.picture = new Picture(/** @type {HTMLCanvasElement} */ (this.find('heads-mini')));
  }

  /** Another photo or model. */
  begin() {
    this.store?.close();
    this.store = null;
    this.filled = this.evidenced = '';
  }

  /** Everything about the head that is looked at. */
  show() {
    const { place, names } = this.room;
    const named = names.of(place);
    const key = `${place.layer}.${place.head}|${named ? names.known.size : ''}`;
    if (key !== this.evidenced) {
      this.evidenced = key;
      this.showEvidence();
    }
    this.showRole();
    this.showKin();
    void this.showMatrix();
  }

  /** The numbers of the rules, each as a bar with a line at its threshold. */
  showEvidence() {
    const { place, names } = this.room;
    const named = names.of(place);
    const thin = named ? thinWords(named, names.margin) : '';
    this.find('heads-name').hidden = !named;
    if (named) {
      const dot = having(make('i', 'vv-heads-kind-dot'), { 'data-kind': named.name });
      this.find('heads-name').replaceChildren(dot, nameWords(named));
    }
    showText(this.find('heads-name-words'), named ? [named.sentence, thin].filter(Boolean).join(' ') : '');
    const rows = named ? evidenceOf(named, names.rules).map(evidenceRow) : [];
    this.find('heads-evidence').replaceChildren(...rows);
    this.find('heads-evidence-part').hidden = !rows.length;
  }

  /** What switching it off does, where that is known, and the button that does it. */
  showRole() {
    const { room } = this;
    const { place, surgery, target } = room;
    const { layer, head } = place;
    const { truth, estimate } = this.effectOf(place);
    const name = target?.name ?? '';
    const isValue = target?.classes[0]?.value !== undefined;
    const logit = name ? `${isValue ? 'value' : 'logit'} of ${name}` : 'answer';
    const words =
      typeof truth === 'number'
        ? `Switched off, the ${logit} changes by ${short(truth)}.`
        : typeof estimate === 'number'
          ? `Switched off, the ${logit} would change by about ${short(estimate)}: an estimate from one gradient.`
          : '';
    showText(this.find('heads-role'), words);
    const state = surgery.heads.get(`${layer}.${head}`) ?? 'on';
    this.find('heads-switch').textContent = state === 'on' ? 'switch off' : 'switch on';
  }

  /** By how much the answer changes without a head, where that was measured or estimated. */
  effectOf(/** @type {Place} */ { layer, head }) {
    const { effect } = this.room;
    const { estimate } = this.room.numbers;
    return {
      truth: effect?.table?.values[layer]?.[head],
      estimate: effect?.estimate?.[layer]?.[head] ?? estimate?.values[layer]?.[head],
    };
  }

  /** The heads whose maps of this query are most like this one's. */
  showKin() {
    const { room } = this;
    const { subject, place, lit } = room;
    const own = lit.mapOf(place);
    const part = this.find('heads-kin-part');
    part.hidden = !own || !subject;
    if (!own || !subject) return;
    /** @type {(Place & {like: number})[]} */
    const kin = [];
    let misses = false;
    for (let layer = 0; layer < subject.layers; layer++) {
      for (let head = 0; head < subject.heads; head++) {
        if (layer === place.layer && head === place.head) continue;
        const map = lit.mapOf({ layer, head });
        if (!map) misses = true;
        else kin.push({ layer, head, like: correlation(own.values, map.values) });
      }
    }
    part.setAttribute('aria-busy', String(misses)); // heads of layers that are on their way may be more like it
    kin.sort((a, b) => b.like - a.like);
    this.find('heads-kin').replaceChildren(...kin.slice(0, KIN).map((one) => this.kinTile(one)));
  }

  kinTile(/** @type {Place & {like: number}} */ one) {
    const canvas = make('canvas');
    this.room.tiles.copy(canvas, one, this.room.grid.orders);
    const seen = `${one.layer} \u00b7 ${one.head}, ${one.like.toFixed(2)}`;
    const said = {
      type: 'button',
      'data-kin': `${one.layer}.${one.head}`,
      'aria-label': `${seen}; ${headWords(one)}, correlation ${one.like.toFixed(2)}`,
    };
    const words = make('span', 'vv-small', seen);
    return having(make('button', 'vv-bare vv-heads-kin-tile', canvas, words), said);
  }

  /** The matrix of the chosen head, small: rows are queries, columns keys, on a logarithmic scale. */
  async showMatrix() {
    const { subject, chosen, hovered } = this.room;
    const wanted = `${subject?.trace}|${chosen.layer}|${chosen.head}`;
    if (!subject || hovered || wanted === this.filled || !this.room.isShown('atlas', 'depth')) return;
    this.filled = wanted;
    this.store ??= new LayerStore(subject, SERVER, { ready: () => {}, failed: () => {} });
    const part = this.find('heads-mini-part');
    try {
      const layer = await layerOf(this.store, chosen.layer);
      if (wanted !== this.filled) return;
      const filling = new Filling(layer, chosen.head, new Axis(subject), 1);
      part.hidden = false;
      this.find('heads-mini-words').textContent =
        `${capital(headWords(chosen))}: every token against every token, rows are queries, columns keys.`;
      this.fill(filling, wanted);
    } catch {
      part.hidden = true; // the matrix itself says why it cannot be shown
    }
  }

  /** Computes some rows, and the others with the next frames. @param {Filling} filling @param {string} wanted */
  fill(filling, wanted) {
    if (wanted !== this.filled) return;
    const end = performance.now() + BUDGET;
    while (!filling.isDone && performance.now() < end) filling.step();
    if (!filling.isDone) return void requestAnimationFrame(() => this.fill(filling, wanted));
    const { cells } = filling.axis;
    const ends = endsOf(filling, true);
    this.picture.resize(cells, cells);
    const { plain } = this.room.colours;
    for (let i = 0; i < filling.values.length; i++)
      this.picture.pixels[i] = plain[Math.round(255 * shareOnScale(filling.values[i], ends, true))];
    this.picture.show();
    this.find('heads-mini-part').dataset.ready = wanted;
  }
}

/** A number of a rule as a bar with a line at its threshold. @param {ReturnType<typeof evidenceOf>[number]} evidence */
function evidenceRow({ number, value, bound, limit, passes, name }) {
  const share = (/** @type {number} */ x) => `${(100 * clamp(x)).toFixed(1)}%`;
  const bar = make('span', 'vv-heads-evidence-bar');
  bar.style.setProperty('--long', share(value));
  bar.style.setProperty('--at', share(limit));
  const words = capital(numberWords(number)).replace(/,$/, '');
  const row = make(
    'li',
    passes ? 'vv-passes' : '',
    make('span', '', words),
    bar,
    make('span', 'vv-number', short(value)),
    make('span', 'vv-small', `${name}: ${bound}${passes ? ', passes' : ''}`),
  );
  return row;
}
