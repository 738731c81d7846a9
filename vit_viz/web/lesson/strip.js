// The model as a strip, part by part, true to its configuration: where the lesson is glows, and a click goes there.

import { clamp } from '../../explorer/geometry.js';
import { routeUrl } from '../../explorer/source.js';
import { amountWords, counted, percent } from '../../ui/kit/numbers.js';
import { html, useLayoutEffect, useRef } from '../kit/preact.js';
import { Piece } from './say.js';
import { kindsInWords } from './timeline.js';
/** @import { Numbers } from './timeline.js' */

const SLICE = 8; // patches that stand for all of them
const ROW = 12; // blocks beside each other
const MLPS = /** @type {Record<string, string>} */ ({
  swiglu: 'gated MLP (SwiGLU)',
  swiglu_packed: 'gated MLP (SwiGLU)',
});

/** What is drawn until the model's shape is known. @type {any} */
const UNKNOWN = { classes: 1, final_norm: true, position: 'learned' };

/** How the model is told of places. @param {any} shape */
function placesInWords({ position, rotary, relative }) {
  const ways = [
    !['none', 'rotary'].includes(position) && '+ place',
    rotary && 'places turn queries and keys',
    relative && 'distances are added to scores',
  ].filter(Boolean);
  return ways.join(', ') || 'no places';
}

/** How far the residual stream has come at a part, in [0, 1]. @param {string} part @param {number} layers */
export function reachOf(part, layers) {
  const [, kind, layer] = /^(attn|mlp)(\d+)$/.exec(part) ?? [];
  if (kind) return (Number(layer) + (kind === 'mlp' ? 1 : 0.5)) / layers;
  return ['norm', 'head', 'answer'].includes(part) ? 1 : 0;
}

/** @param {{n: Numbers, part: string, one: boolean, go: (part: string) => void}} props one: whether it is about one head alone */
export function Strip({ n, part, one, go }) {
  const { trace } = n;
  const shape = n.tokens?.facts.shape ?? UNKNOWN;
  const strip = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    const here = strip.current.querySelector('[aria-current]');
    if (here) strip.current.scrollLeft = here.offsetLeft - (strip.current.clientWidth - here.offsetWidth) / 2;
  }, [part]);
  const { grid, prefix, layers, heads, photo, photo_size: size } = trace;
  const count = grid[0] * grid[1];
  const others = kindsInWords(prefix);
  const place = placesInWords(shape);
  const col = n.patch % grid[1];
  const first = n.patch - col + clamp(col - SLICE / 2, Math.max(0, grid[1] - SLICE));
  const shown = Array.from({ length: Math.min(SLICE, grid[1]) }, (_, i) => first + i);
  const box = (/** @type {string} */ name, /** @type {any} */ glyph, /** @type {any} */ label, look = '') =>
    html`<button
      type="button"
      class=${`vv-bare vv-lesson-part ${look}`}
      data-part=${name}
      aria-current=${name === part ? 'step' : undefined}
      aria-label=${typeof label === 'string' ? label : undefined}
      title="Goes to where the lesson tells of this part."
      onClick=${() => go(name)}
    >
      ${glyph && html`<span class="vv-lesson-glyph" aria-hidden="true">${glyph}</span>`}<span>${label}</span>
    </button>`;
  const arrow = html`<i class="vv-lesson-arrow" aria-hidden="true">→</i>`;
  const across = Math.ceil(layers / Math.ceil(layers / ROW));
  const mlp = MLPS[shape.mlp] ?? 'MLP';
  const wide = shape.hidden ? ` (${shape.hidden} numbers wide)` : '';
  return html`<nav
    class="vv-lesson-strip"
    ref=${strip}
    aria-label="The model, part by part: choose one to go there"
  >
    ${box('photo', html`<img src=${routeUrl(photo)} alt="" style=${{ aspectRatio: `${size[1]} / ${size[0]}` }} />`, 'photo')}${arrow}
    ${box(
      'patches',
      shown.map(
        (patch) =>
          html`<${Piece} trace=${trace} patch=${patch} look=${patch === n.patch ? 'vv-lesson-mine' : ''} />`,
      ),
      counted(count, 'patch', 'patches'),
      'vv-lesson-patches',
    )}${arrow}
    ${box('embed', html`<i class="vv-lesson-vector"></i>`, 'embedding')}${arrow}
    ${box(
      'tokens',
      prefix
        .slice(0, 6)
        .map(
          (name) => html`<i class="vv-lesson-token" data-class=${/^class/.test(name) ? '' : undefined}></i>`,
        ),
      others ? `${place}, ${others}` : place,
    )}${arrow}
    ${shape.pre_norm && html`${box('tokens', html`<i class="vv-lesson-vector vv-lesson-even"></i>`, 'norm')}${arrow}`}
    <div class="vv-lesson-blocks">
      <div style=${{ '--across': across }}>
        ${Array.from({ length: layers }, (_, l) => html`<${Block} ...${{ l, heads, mlp, part, head: one ? n.head : null, go }} />`)}
      </div>
      <div class="vv-lesson-band" style=${{ '--reach': `${100 * reachOf(part, layers)}%` }}></div>
      <span
        >${`${counted(layers, 'block')}: attention (${counted(heads, 'head')}), ${mlp}${wide}; each adds to this band`}</span
      >
    </div>
    ${arrow}
    ${
      shape.final_norm !== false &&
      html`${box('norm', html`<i class="vv-lesson-vector vv-lesson-even"></i>`, shape.norm === 'rms' ? 'RMS norm' : 'norm')}${arrow}`
    }
    ${shape.classes !== 0 && html`${box('head', html`<i class="vv-lesson-vector"></i>`, 'classifier')}${arrow}`}
    ${box('answer', null, html`<${Top} ...${/** @type {any} */ (trace)} />`, 'vv-lesson-answer')}
  </nav>`;
}

/** The first classes, each with its probability or its value. @param {{top: any[]}} props */
function Top({ top }) {
  if (!top.length) return 'the vector of the photo';
  const [first, ...more] = top.slice(0, 3).map((one) => `${one.name} ${amountWords(one, percent)}`);
  return html`<b>${first}</b>${more.map((words) => html`<span>${words}</span>`)}`;
}

/**
 * A block: its heads, and its MLP below them.
 * @param {{l: number, heads: number, mlp: string, part: string, head: number | null, go: (part: string) => void}} props head: the one that
 *   glows where not all do
 */
function Block({ l, heads, mlp, part, head, go }) {
  const isIn = (/** @type {string} */ kind) => part === `${kind}${l}`;
  const glows = (/** @type {number} */ h) => isIn('attn') && (head === null || h === head);
  const button = (/** @type {string} */ kind, /** @type {string} */ what, /** @type {any} */ inside) =>
    html`<button
      type="button"
      class=${`vv-bare vv-lesson-${kind}`}
      data-part=${`${kind}${l}`}
      aria-current=${isIn(kind) ? 'step' : undefined}
      aria-label=${`${what} of block ${l}`}
      title=${`Goes to block ${l} in the lesson: ${what}.`}
      onClick=${() => go(`${kind}${l}`)}
    >
      ${inside}
    </button>`;
  const each = Array.from({ length: heads }, (_, h) => html`<i data-on=${glows(h) ? '' : undefined}></i>`);
  return html`<div class="vv-lesson-block" data-on=${isIn('attn') || isIn('mlp') ? '' : undefined}>
    ${button('attn', `attention, ${counted(heads, 'head')}`, each)}${button('mlp', mlp, html`<i data-on=${isIn('mlp') ? '' : undefined}></i><span>${l}</span>`)}
  </div>`;
}
