// Every head over the photos of a survey that pass the filter: a table painted by its mean, and what is known of one head.

import { decodeTable, tableIndex } from '../../explorer/paint.js';
import { percent, short } from '../../ui/kit/numbers.js';
import { amountOf, cellText, headWords, unitWords, valueWords } from '../heads/words.js';
import { Grid } from '../kit/grid.js';
import { ColourBar } from '../kit/parts.js';
import { html, useMemo, useSignal } from '../kit/preact.js';
import { Chooser } from './controls.js';
import { many } from './words.js';
/** @import { Signal } from '../kit/preact.js' */
/** @import { Place } from '../heads/words.js' */
/** @import { Atlas, State } from './state.js' */

/** @param {{state: State, tables: Record<string, string>}} props */
export function Heads({ state: { survey, store, choice, chosen, head: choose }, tables }) {
  const colours = useMemo(() => decodeTable(tables.viridis), []);
  const pointed = useSignal(/** @type {Place | null} */ (null));
  const { layer = 0, head = 0, measure = '' } = choice.value ?? {};
  const atlas = chosen.value?.value.atlas;
  const ends = useMemo(() => atlas && endsOf(atlas), [atlas]);
  const { measures } = survey;
  return html`<section class="vv-survey-atlas vv-stack" aria-label="Heads">
    <div class="vv-row">
      <h3 class="vv-title">Every head, over these photos</h3>
      <${Chooser}
        ...${{ words: 'measure', look: 'measure', value: measure }}
        options=${measures.map(({ name, label }) => [name, label])}
        choose=${(/** @type {string} */ name) => store.set({ of_heads: name })}
      />
    </div>
    ${
      atlas &&
      ends &&
      html`<p class="vv-small">${measures.find(({ name }) => name === atlas.measure)?.meaning}</p>
        <div class="vv-scroll">
          <${Table} ...${{ atlas, ends, colours, choose, pointed, chosen: { layer, head } }} />
        </div>
        <${ColourBar}
          ...${{ low: amountOf(ends[0], atlas.unit), high: amountOf(ends[1], atlas.unit), unit: unitWords(atlas.unit), colours }}
        />
        <p class="vv-small">
          Colour and number: mean over the photos. The line in a cell: one standard deviation to each side, on
          the same scale.
        </p>
        <${Readout} ...${{ atlas, pointed, chosen: { layer, head } }} />
        <p class="vv-small">${atlas.unknown}</p>`
    }
  </section>`;
}

/** Smallest and largest mean with its spread. @param {Atlas} atlas @returns {[number, number]} */
export function endsOf({ mean, spread }) {
  const around = spread.flat();
  const known = mean
    .flat()
    .flatMap((value, at) => (value === null ? [] : [value - (around[at] ?? 0), value + (around[at] ?? 0)]));
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
}

/**
 * A row per layer, a cell per head, painted by its mean; the line in a cell is its spread.
 * @param {object} props
 * @param {Atlas} props.atlas
 * @param {[number, number]} props.ends of the colours
 * @param {Uint32Array} props.colours
 * @param {Place} props.chosen
 * @param {(place: Place) => void} props.choose
 * @param {Signal<Place | null>} props.pointed the head under the pointer or with the focus
 */
function Table({ atlas: { mean, spread, unit, names }, ends, colours, chosen, choose, pointed }) {
  const heads = mean[0].length;
  const at = (/** @type {number} */ value) => `${(100 * (value - ends[0])) / (ends[1] - ends[0] || 1)}%`;
  const cell = (
    /** @type {number | null} */ value,
    /** @type {number} */ layer,
    /** @type {number} */ head,
  ) => {
    const [place, around] = [{ layer, head }, spread[layer][head] ?? 0];
    const isChosen = layer === chosen.layer && head === chosen.head;
    const { ground = '', ink = '' } = value === null ? {} : inkOn(colours, tableIndex(value, ...ends));
    // what can be seen is part of what is heard, so that it can be spoken to
    const heard = [
      cellText(value, unit),
      `${headWords(place)}: ${valueWords(value, unit)}`,
      names[layer * heads + head]?.name,
    ];
    const [from, to] = value === null ? ['0%', '0%'] : [at(value - around), at(value + around)];
    return html`<td
      ...${{ role: 'gridcell', tabindex: isChosen ? 0 : -1, 'data-layer': layer, 'data-head': head }}
      class=${`vv-face ${value === null ? 'vv-unknown' : ''}`}
      aria-selected=${String(isChosen)}
      aria-label=${heard.filter(Boolean).join('; ')}
      style=${{ backgroundColor: ground, color: ink, '--from': from, '--to': to }}
      onClick=${() => choose(place)}
      onPointerEnter=${() => (pointed.value = place)}
      onFocusIn=${() => (pointed.value = place)}
    >
      ${cellText(value, unit)}
    </td>`;
  };
  const leave = () => (pointed.value = null);
  return html`<${Grid}
    look="vv-survey-heads"
    label="Mean of each head over the photos that pass the filter; rows are layers"
    columns=${mean[0].map((_, head) => [head, `head ${head}`])}
    rows=${mean.map((row, layer) => ({
      ...{ key: layer, head: layer, said: `layer ${layer}` },
      cells: row.map((value, head) => cell(value, layer, head)),
    }))}
    more=${{ style: { '--vv-count': heads }, onPointerLeave: leave, onFocusOut: leave }}
  />`;
}

/** What is known of the head under the pointer, or of the chosen one. @param {{atlas: Atlas, pointed: Signal<Place | null>, chosen: Place}} props */
function Readout({ atlas: { mean, spread, unit, photos, names }, pointed, chosen }) {
  const { layer, head } = pointed.value ?? chosen;
  const value = mean[layer][head];
  const words =
    value === null
      ? 'not known of these photos.'
      : `${short(value)} ± ${short(spread[layer][head] ?? 0)} ${unit}, over ${many(photos)} photos.`;
  const named = names[layer * mean[0].length + head];
  const share =
    typeof named?.evidence !== 'number'
      ? ''
      : ` It holds in ${percent(named.evidence)} of these photos alone.`;
  return html`<p class="vv-survey-readout" aria-live="polite">Layer ${layer}, head ${head}: ${words}</p>
    ${
      named &&
      html`<p class="vv-survey-named">
        ${named.name}: ${named.sentence}${share}${named.is_thin && ' The evidence is thin.'}
      </p>`
    }`;
}

/** A colour of a table, and black or white, whichever stands out more on it. @param {Uint32Array} colours @param {number} at */
export function inkOn(colours, at) {
  const [red, green, blue] = new Uint8ClampedArray(colours.buffer, colours.byteOffset + 4 * at, 3);
  const light = (/** @type {number} */ byte) => {
    const share = byte / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue);
  return { ground: `rgb(${red} ${green} ${blue})`, ink: luminance > 0.179 ? '#000' : '#fff' };
}
