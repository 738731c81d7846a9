// A dot for every head: a measure against depth with the mean of each layer (Dosovitskiy et al. 2021, Fig. 7), or estimate against truth.

import { byKeys, KEY_WORDS } from '../../ui/kit/elements.js';
import { heightOf, Plot as Lines } from '../kit/plot.js';
import { html, useComputed } from '../kit/preact.js';
import { amountOf, capital, endsOf, headWords, isSame, layerMeans, placeOf } from './words.js';
/** @import { Seen } from './room.js' */
/** @import { Marks } from './table.js' */
/** @import { Place, Table } from './words.js' */

/** @typedef {Place & {x: number, y: number}} Dot in shares of the width and height of the plot */

/** Every known head by layer and value. @param {Table} table @param {[number, number]} ends of the values @returns {Dot[]} */
export function depthDots({ values }, ends) {
  const deepest = Math.max(1, values.length - 1);
  return values.flatMap((row, layer) =>
    row.flatMap((value, head) =>
      value === null ? [] : [{ layer, head, x: layer / deepest, y: heightOf(value, ends) }],
    ),
  );
}

/**
 * Every known head by what was estimated and what is true, on one scale for both.
 * @param {(number | null)[][]} estimate @param {Table} truth @param {[number, number]} ends @returns {Dot[]}
 */
export function agreementDots(estimate, truth, ends) {
  return depthDots(truth, ends).map((dot) => ({
    ...dot,
    x: heightOf(estimate[dot.layer][dot.head] ?? 0, ends),
  }));
}

/** The mean of each layer. @param {Table} table @param {[number, number]} ends @returns {[number, number][]} */
export function meanLine(table, ends) {
  const deepest = Math.max(1, table.values.length - 1);
  return layerMeans(table).flatMap((mean, layer) =>
    mean === null ? [] : [[layer / deepest, heightOf(mean, ends)]],
  );
}

/** The head that an arrow leads to: up and down the next one of its layer, to the sides the nearest one of the next layer. @param {Dot[]} dots @param {Place} from @param {[number, number]} step */
export function besideIn(dots, from, [down, right]) {
  const here = dots.find((dot) => isSame(dot, from));
  const wanted = dots.filter(({ layer }) => layer === from.layer + right).sort((a, b) => a.y - b.y);
  if (!here || !right) return wanted[here ? wanted.indexOf(here) - down : 0];
  const far = (/** @type {Dot} */ { y }) => Math.abs(y - here.y);
  return wanted.sort((a, b) => far(a) - far(b))[0];
}

/** The plot with its axes. @param {{seen: Seen}} props */
export function Plot({ seen: { table, label, look, numbers, marks, choose } }) {
  const estimate = look.measure === 'effect' ? numbers.effect?.estimate : undefined; // which the table is compared with
  const ends = endsOf(estimate ? { ...table, values: [...table.values, ...estimate] } : table);
  const [low, high] = ends;
  const short = (/** @type {number} */ value) => amountOf(value, table.unit);
  const dots = estimate ? agreementDots(estimate, table, ends) : depthDots(table, ends);
  const means = layerMeans(table).map((mean) => (mean === null ? 'unknown' : short(mean)));
  const words = estimate
    ? {
        title: 'What was estimated, and what is true',
        across: [short(low), 'estimate', short(high)],
        below:
          'A dot for each head: to the right what one gradient foretold, upwards what changed. On the line both are equal.',
        label: numbers.foretold || 'Estimate against causal effect',
      }
    : {
        title: `${capital(label)} by depth`,
        across: ['0', 'layer', String(table.values.length - 1)],
        below: 'A dot for each head; the line is the mean of each layer.',
        label: `${label} by layer, mean over the heads: ${means.join(', ')}`,
      };
  const typed = byKeys({
    at: () => marks.hovered.peek(),
    beside: (step) => besideIn(dots, marks.hovered.peek() ?? marks.chosen.peek(), step),
    point: (place) => void (marks.hovered.value = place && { layer: place.layer, head: place.head }),
    choose: (place) => place !== null && choose(place),
  });
  const clicked = (/** @type {MouseEvent} */ { target }) => {
    const place = placeOf(target);
    if (place) choose(place);
  };
  return html`<figure class=${`vv-heads-plot vv-stack ${estimate ? 'vv-square' : ''}`}>
    <figcaption class="vv-heads-plot-title vv-strong">${words.title}</figcaption>
    <${Lines}
      line=${
        estimate
          ? [
              [0, 0],
              [1, 1],
            ]
          : meanLine(table, ends)
      }
      rules=${low < 0 && high > 0 ? [heightOf(0, ends)] : []}
      left=${[
        [1, short(high)],
        [0, short(low)],
      ]}
      below=${words.across.map((one, i) => [i / 2, one])}
      more=${{
        ...{ role: 'application', tabindex: 0, 'aria-label': words.label, onKeyDown: typed },
        'aria-description': `Left and right go through the layers, up and down through the heads of one. ${KEY_WORDS}`,
      }}
    >
      <div class="vv-heads-dots" onClick=${clicked}>
        ${dots.map((dot) => html`<${HeadDot} key=${`${dot.layer}.${dot.head}`} dot=${dot} marks=${marks} />`)}
      </div>
    <//>
    <p class="vv-heads-plot-words vv-small">${words.below}</p>
  </figure>`;
}

/** A head. Where it is marked it is drawn again by itself. @param {{dot: Dot, marks: Marks}} props */
function HeadDot({ dot, marks: { chosen, hovered } }) {
  const { layer, head, x, y } = dot;
  const isChosen = useComputed(() => isSame(chosen.value, { layer, head })).value;
  const isHovered = useComputed(() => isSame(hovered.value, { layer, head })).value;
  return html`<span
    class=${`vv-heads-dot${isChosen ? ' vv-chosen' : ''}${isHovered ? ' vv-hovered' : ''}`}
    data-layer=${layer}
    data-head=${head}
    title=${headWords(dot)}
    style=${{ left: `${100 * x}%`, bottom: `${100 * y}%` }}
  ></span>`;
}
