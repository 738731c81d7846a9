// The head that is looked at: the photo as it sees it, the numbers that named it against their thresholds, what it is for the answer, its
// matrix, its kin.

import { patchQuery, queryPatches } from '../../explorer/geometry.js';
import { finding, headOf } from '../../explorer/labels.js';
import { endsOf, shareOnScale } from '../../explorer/matrix.js';
import { Picture } from '../../explorer/paint.js';
import { LIGHT } from '../../explorer/styles.js';
import { fixed, short } from '../../ui/kit/numbers.js';
import { Bar } from '../kit/bar.js';
import { withHeads } from '../kit/edits.js';
import { Found, PhotoStage } from '../kit/parts.js';
import { html, useLayoutEffect, useRef } from '../kit/preact.js';
import { useFilling } from './filling.js';
import { Lit, LitBox } from './maps.js';
import { Dot, evidenceOf, nameWords, numberWords, thinWords } from './names.js';
import {
  capital,
  correlation,
  everyHead,
  headWords,
  isSame,
  keyOf,
  scaleWords,
  valueWords,
} from './words.js';
import { Written } from './written.js';
/** @import { LayerStore } from '../../explorer/layers.js' */
/** @import { Rows } from './maps.js' */
/** @import { Named } from './names.js' */
/** @import { Seen } from './room.js' */
/** @import { Place } from './words.js' */

const KIN = 4; // heads that are shown as most alike

/** @param {{seen: Seen}} props */
export function Detail({ seen }) {
  const { subject, photo, rows, layers, numbers, rules, margin } = seen; // what there is
  const { page, marks, edits, choose, go, edit } = seen; // what is done with it
  void rows.arrived.value; // with each layer that comes there is more to see
  const place = marks.hovered.value ?? marks.chosen.value;
  useLayoutEffect(() => void rows.want(place.layer));
  const map = rows.mapOf(place);
  const named = numbers.names.known.get(keyOf(place));
  const patches = queryPatches(subject.query, subject);
  const role = roleWords(numbers, place);
  const lit = { subject, photo };
  const pin = (/** @type {number | null} */ patch) =>
    page.store.set({ q: patchQuery(patch === null ? [] : [patch], subject.grid[1]) }, { push: true });
  const isOn = !edits.heads.has(keyOf(marks.chosen.value));
  const change = () => {
    edit((before) => withHeads(before, [keyOf(marks.chosen.peek())], isOn ? 'off' : 'on'), {
      isPlace: false,
    });
    go('surgery'); // from which Back leads here, with the head as it was
  };
  return html`<div class="vv-heads-right vv-stack">
    <div class="vv-heads-look">
      <${PhotoStage}
        key=${subject.photo}
        photo=${subject}
        look="vv-heads-stage"
        label="The photo, lit by the head"
        rings=${patches.map((patch) => [patch, 'vv-ring'])}
        pinned=${patches[0]}
        choose=${pin}
        under=${html`<${LitBox} ...${{ ...lit, values: map?.values ?? null, top: map?.lit ?? 0, look: 'vv-heads-lit vv-layer' }} />`}
      />
      <div class="vv-stack">
        <${Caption} ...${{ rows, place, map }} />
        <p class="vv-heads-readout vv-readout">${readoutOf(seen, place)}</p>
        <div class="vv-row">
          <button
            type="button"
            class="vv-button vv-heads-switch"
            title="Switches this head off, or on again: the whole page shows the model without it."
            hidden=${!page.source.answers('edited')}
            onClick=${change}
          >
            ${isOn ? 'switch off' : 'switch on'}
          </button>
          <button
            type="button"
            class="vv-button vv-heads-open"
            title="Opens Look with this layer and head."
            onClick=${() => document.getElementById('vv-tab-look-button')?.click()}
          >
            open in Look
          </button>
        </div>
        <p class="vv-heads-scale vv-small">${map ? scaleWords(map) : rows.error}</p>
        ${named && html`<${Name} ...${{ named, margin }} />`}
        <p class="vv-heads-role" hidden=${!role}>${role}</p>
      </div>
    </div>
    ${
      named &&
      html`<div class="vv-heads-evidence-part vv-stack">
        <h3 class="vv-heads-sub">What named it: its numbers, and the thresholds (lines) of the names</h3>
        <ul class="vv-heads-evidence">
          ${evidenceOf(named, rules).map((evidence) => html`<${Evidence} ...${evidence} />`)}
        </ul>
      </div>`
    }
    ${page.source.answers('head_words') && html`<${Written} seen=${seen} />`}
    <div class="vv-heads-pair">
      <${MiniMatrix} ...${{ layers, place: marks.chosen.value, enlarge: () => go('matrix') }} />
      ${map && html`<${Kin} ...${{ rows, place, lit, choose }} />`}
    </div>
  </div>`;
}

/** The measure of the table, of a head; "" where it is not known. @param {Seen} seen @param {Place} place */
function readoutOf({ numbers, table, label }, { layer, head }) {
  const value = numbers.table && !numbers.isOld ? table.values[layer]?.[head] : undefined;
  if (value === undefined) return '';
  return `${label}: ${valueWords(value, table.unit).replace(' of the attention', '')}`; // which the label says
}

/** Where the query looks. @param {{rows: Rows, place: Place, map: ReturnType<Rows['mapOf']>}} props */
function Caption({ rows: { subject, error }, place, map }) {
  const view = { ...place, query: subject.query, direction: /** @type {const} */ ('row'), norm: false };
  return html`<${Found}
    look="vv-heads-caption"
    words=${map ? finding(map.values, view, subject) : headOf(place)}
    pending=${!map && !error && headOf(place)}
  />`;
}

/** What the head is called, and why. @param {{named: Named, margin: number}} props */
function Name({ named, margin }) {
  return html`<p class="vv-heads-name"><${Dot} kind=${named.name} />${nameWords(named)}</p>
    <p class="vv-heads-name-words vv-quiet">${`${named.sentence} ${thinWords(named, margin)}`}</p>`;
}

/** What switching a head off does, where that was measured or estimated. @param {Seen['numbers']} numbers @param {Place} place */
function roleWords({ target, effect, estimate }, { layer, head }) {
  const [measured, guessed] = [effect?.table?.values[layer]?.[head], estimate?.[layer]?.[head]];
  const [first] = target?.classes ?? [];
  const amount = first?.value === undefined || first.cosine !== undefined ? 'logit' : 'value';
  const of = target?.name ? `${amount} of ${target.name}` : 'answer';
  if (typeof measured === 'number') return `Switched off, the ${of} changes by ${short(measured)}.`;
  return typeof guessed === 'number'
    ? `Switched off, the ${of} would change by about ${short(guessed)}: an estimate from one gradient.`
    : '';
}

/** A number of a rule as a bar with a line at its threshold. @param {ReturnType<typeof evidenceOf>[number]} props */
function Evidence({ number, value, text, bound, limit, passes, name }) {
  return html`<li class=${passes ? 'vv-passes' : ''}>
    <span>${capital(numberWords(number)).replace(/,$/, '')}</span><${Bar} value=${value} tick=${limit} /><span
      class="vv-number"
      >${text}</span
    ><span class="vv-small">${name}: ${bound}${passes ? ', passes' : ''}</span>
  </li>`;
}

/**
 * The heads whose maps of this query are most like this one's.
 * @param {{rows: Rows, place: Place, lit: {subject: any, photo: HTMLImageElement | null}, choose: (place: Place) => void}} props
 */
function Kin({ rows, place, lit, choose }) {
  const own = /** @type {import('./maps.js').HeadMap} */ (rows.mapOf(place));
  const { layers, heads } = rows.subject;
  const others = everyHead(layers, heads, (one) => one)
    .flat()
    .filter((one) => !isSame(one, place));
  const known = others.flatMap((one) => {
    const map = rows.mapOf(one);
    return map ? [{ ...one, map, like: correlation(own.values, map.values) }] : [];
  });
  const kin = known.sort((a, b) => b.like - a.like).slice(0, KIN);
  // heads of layers that are on their way may be more like it
  return html`<div class="vv-heads-kin-part vv-stack" aria-busy=${String(known.length < others.length)}>
    <h3 class="vv-heads-sub">Most like it</h3>
    <div class="vv-heads-kin">
      ${kin.map(({ layer, head, like, map }, i) => {
        const seen = `${layer} \u00b7 ${head}, ${fixed(like, 2)}`;
        return html`<button
          key=${i}
          type="button"
          class="vv-bare vv-heads-kin-tile"
          aria-label=${`${seen}; ${headWords({ layer, head })}, correlation ${fixed(like, 2)}`}
          onClick=${() => choose({ layer, head })}
        >
          <${Lit} ...${{ ...lit, values: map.values, top: map.lit, isAlone: true, look: '' }} />
          <span class="vv-small">${seen}</span>
        </button>`;
      })}
    </div>
    <p class="vv-small">correlation of the maps of this query</p>
  </div>`;
}

/**
 * The matrix of the chosen head, small: rows are queries, columns keys, on a logarithmic scale. The matrix itself says why it cannot be shown.
 * @param {{layers: LayerStore, place: Place, enlarge: () => void}} props
 */
function MiniMatrix({ layers, place, enlarge }) {
  const { filling, error } = useFilling(layers, place.layer, place.head, 1);
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const isDone = Boolean(filling?.isDone);
  useLayoutEffect(() => {
    if (!filling || !isDone || !canvas.current) return;
    const { cells } = filling.axis;
    const picture = new Picture(canvas.current);
    const ends = endsOf(filling, true);
    picture.resize(cells, cells);
    for (let i = 0; i < filling.values.length; i++)
      picture.pixels[i] = LIGHT[Math.round(255 * shareOnScale(filling.values[i], ends, true))];
    picture.show();
  }, [filling, isDone]);
  return html`<div
    class="vv-heads-mini-part vv-stack"
    hidden=${Boolean(error)}
    data-ready=${isDone ? keyOf(place) : undefined}
  >
    <button
      type="button"
      class="vv-bare vv-heads-enlarge"
      aria-label="Enlarge the matrix"
      title="Opens the matrix of all tokens of this head."
      onClick=${enlarge}
    >
      <canvas class="vv-heads-mini" ref=${canvas}></canvas>
    </button>
    <p class="vv-heads-mini-words vv-small">
      ${capital(headWords(place))}: every token against every token, rows are queries, columns keys.
    </p>
  </div>`;
}
