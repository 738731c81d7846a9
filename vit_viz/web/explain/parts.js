// What the answer is made of: the photo with what each patch gave, a small one for each head, and bars. What is under the pointer is
// drawn from the maps of all heads, which came with their sums. A click on a head switches it off or on.

import { placeWords } from '../../explorer/geometry.js';
import { isFinger } from '../../explorer/long_press.js';
import { Picture } from '../../explorer/paint.js';
import { askForFigure, routeUrl } from '../../explorer/source.js';
import { dataAt } from '../../ui/kit/elements.js';
import { fixed } from '../../ui/kit/numbers.js';
import { Bar, lookOf } from '../kit/bar.js';
import { Grid } from '../kit/grid.js';
import { ColourBar, PhotoStage, Problem, placeOfRect, useLate } from '../kit/parts.js';
import { html, useComputed, useLayoutEffect, useMemo, useRef, useSignal } from '../kit/preact.js';
import { endOf, largestOf, paintSigned, signed, signedStops } from '../kit/signed.js';
import { nameOf, total } from './terms.js';
/** @import { Saved } from '../../explorer/source.js' */
/** @import { Photo } from '../kit/parts.js' */
/** @import { Signal } from '../kit/preact.js' */
/** @import { Made } from './made.js' */
/** @import { Terms } from './terms.js' */

/**
 * @typedef {Made & Photo & {terms: Terms}} Value
 *
 * What is looked at: `shown` is the head on the photo, as "4.3", or the layer, as "4"; null: all heads. `at` is the patch that is read.
 * Both change under the pointer, so only small parts read them.
 * @typedef {{value: Value, shown: Signal<string | null>, at: Signal<number | null>, press: (place: string) => void}} Looked
 *
 * @typedef {{press: (places: string[]) => void, figure: () => Saved}} Actions press: switches heads; figure: what is saved
 */

const STOPS = signedStops();
const EXACT = 'the parts sum to the number that the model returned';
const CHOOSE = 'Choose a head, or the bar of its layer, to switch it off.';

/**
 * The face of the tab. While another value is on its way the last one stays, dimmed.
 * @param {{state: 'hidden' | 'busy' | 'error' | 'ready', error: string, value: Value | null} & Actions} props
 */
export function Parts({ state, error, value, press, figure }) {
  const isBusy = state === 'busy';
  const isLate = useLate(isBusy ? state : '');
  const parts = useMemo(() => value && html`<${Sum} ...${{ value, press, figure }} />`, [value]); // drawn for another value only
  return html`<div id="vv-parts">
    <div
      class=${`vv-parts vv-columns vv-room ${isLate ? 'vv-late' : ''}`}
      data-state=${state}
      hidden=${state === 'hidden'}
      aria-busy=${String(isBusy)}
    >
      <p class="vv-asking vv-small" role="status" hidden=${!isLate}>Working out the sum …</p>
      <${Problem} words=${error} stays look="vv-parts-error vv-notice" />
      ${state !== 'error' && parts}
    </div>
  </div>`;
}

/** @param {{value: Value} & Actions} props */
function Sum({ value, press, figure }) {
  const shown = useSignal(/** @type {string | null} */ (null));
  const at = useSignal(/** @type {number | null} */ (null));
  const { terms, title, now, sum, decimals, unit, note, outside, effect, whyNot } = value;
  useMemo(() => {
    if (shown.peek() !== null && !terms.has(shown.peek() ?? '')) shown.value = null;
    at.value = null;
  }, [value]);
  const switched = (/** @type {string} */ place) => {
    if (whyNot) return;
    shown.value = place;
    press(terms.places(place));
  };
  const looked = { value, shown, at, press: switched };
  const [made, output] = [now.total, now.output].map((one) => fixed(one, decimals));
  const written = (/** @type {[string, number][]} */ parts) =>
    parts.map(([name, one]) => `${name} ${signed(one, decimals)}`).join(', ');
  const beside = written(Object.entries(outside));
  return html`
    <${Photograph} ...${looked} figure=${figure} />
    <div class="vv-parts-effect" hidden=${!effect}>
      <h3 class="vv-title">What switching off did</h3>
      <ul class="vv-effect-bars">
        ${effect && html`<${Effect} ...${{ ...effect, decimals }} />`}
      </ul>
      <p class="vv-effect-words" aria-live="polite">${effect?.words}</p>
    </div>
    <div class="vv-parts-sum">
      <h3 class="vv-title vv-sum-title">
        ${made === output ? `Exactly ${made}: ${EXACT}` : `The parts sum to ${made}; the model returned ${output}`}
      </h3>
      <p class="vv-sum-words">${written(sum)}. In units of the ${unit}.</p>
      <p class="vv-sum-note vv-small">${note}${beside && ` Heads took from outside the photo: ${beside}.`}</p>
    </div>
    <div class="vv-parts-heads">
      <h2 class="vv-title vv-parts-title">${title}</h2>
      <p class="vv-parts-hint vv-small">
        ${`Rows are layers, columns heads; one scale for all of them: ±${terms.most.toFixed(decimals)}. ${whyNot || CHOOSE}`}
      </p>
      <${Reading} ...${{ at, grid: value.grid }}><${Heads} ...${looked} /><//>
    </div>
  `;
}

/** What the parts that are off promised, and what switching them off did. @param {{promised: number, did: number, decimals: number}} props */
function Effect({ promised, did, decimals }) {
  const most = Math.max(Math.abs(promised), Math.abs(did), 1e-12);
  const line = (/** @type {string} */ label, /** @type {number} */ value) =>
    html`<li>
      <span>${label}</span><${Bar} value=${Math.abs(value)} ends=${[0, most]} sign=${value} />
      <span class="vv-number">${signed(value, decimals)}</span>
    </li>`;
  return html`${line('promised', promised)}${line('what it did', did)}`;
}

// --- the photo

/** @param {Looked & {figure: () => Saved}} props */
function Photograph({ value, shown, at, press, figure }) {
  const { terms, now, decimals, whyNot, grid } = value;
  const canvas = useRef(/** @type {any} */ (null));
  const place = shown.value;
  const map = terms.map(place);
  const most = place?.includes('.') ? terms.most : endOf(map);
  useLayoutEffect(() => paintSigned(new Picture(canvas.current, grid[1], grid[0]), map, most), [map, most]);
  const named = place ?? terms.best();
  const name = named && nameOf(named, now.layers);
  const switches =
    named &&
    (terms.isOff(named)
      ? `switch ${name} on again`
      : `switch off ${name} (promised ${signed(-terms.sum(named), decimals)})`);
  const button = (/** @type {string} */ look, /** @type {string} */ words, /** @type {object} */ more) =>
    html`<button type="button" class=${`vv-button vv-parts-${look}`} ...${more}>${words}</button>`;
  const save = (/** @type {any} */ event) => askForFigure(event.currentTarget, figure());
  const ends = { low: `−${most.toPrecision(2)}`, high: `+${most.toPrecision(2)}`, ends: ['against', 'for'] };
  return html`<div class="vv-parts-photo">
    <${Stage} ...${{ value, at, canvas }} />
    <${ColourBar} ...${{ ...ends, colours: STOPS, look: '' }} />
    <${Caption} ...${{ value, place, at }} />
    <div class="vv-parts-tools vv-row">
      ${button('switch', switches ?? '', { hidden: !named || Boolean(whyNot), onClick: () => named && press(named) })}
      ${button('all', 'all heads on the photo', { hidden: place === null, onClick: () => (shown.value = null) })}
      ${button('save', 'Save', { 'data-save': '', onClick: save })}
    </div>
  </div>`;
}

/** @param {{value: Value, at: Signal<number | null>, canvas: any}} props */
function Stage({ value, at, canvas }) {
  const read = (/** @type {number | null} */ patch) => void (at.value = patch);
  const told = { photo: value, map: canvas, point: read, choose: read, pinned: at.value ?? undefined };
  const rings = at.value === null ? [] : [[at.value, 'vv-ring']];
  return html`<${PhotoStage} ...${{ ...told, rings }} label="Photo with what each patch gave" />`;
}

/** Says what a patch gave, or what is on the photo. @param {{value: Value, place: string | null, at: Signal<number | null>}} props */
function Caption({ value, place, at }) {
  const words = at.value === null ? captionOf(value, place) : wordsOf(value, at.value, place);
  return html`<p class="vv-parts-caption vv-small" aria-live="polite">${words}</p>`;
}

/** What is on the photo, and its scale. @param {Value} value @param {string | null} shown */
function captionOf({ name = '', now, target, decimals, terms }, shown) {
  const whose = shown === null ? 'all heads together' : nameOf(shown, now.layers);
  const was = shown !== null && terms.isOff(shown) ? ', before it was switched off' : '';
  const scale = shown?.includes('.') ? 'The scale of all heads' : 'A scale of its own';
  const gave = signed(terms.sum(shown), decimals);
  return (
    `${name} · what each patch gave to ${target} through ${whose}${was}, ${gave} in all. ` +
    `${scale}; peaks clipped, smooth between patch centres.`
  );
}

/** What a patch gave, through what is on the photo and the head that took most. @param {Value} value @param {number} patch @param {string | null} shown */
function wordsOf({ now, grid, decimals, terms }, patch, shown) {
  const digits = decimals + 1;
  const where = `Patch ${placeWords(patch, grid[1])}`;
  const all = terms.map(null)[patch];
  const one =
    shown === null ? '' : `${signed(terms.map(shown)[patch], digits)} through ${nameOf(shown, now.layers)}, `;
  const most = terms.strongestAt(patch, Math.sign(all) || 1);
  const by = most ? `, most of it by ${nameOf(most.place, now.layers)} (${signed(most.value, digits)})` : '';
  return `${where}: ${one}${signed(all, digits)} through all heads${by}`;
}

// --- the heads

/** Marks the patch that is read in each small photo. @param {{at: Signal<number | null>, grid: [number, number], children?: any}} props */
function Reading({ at, grid: [rows, cols], children }) {
  const patch = at.value;
  const place = patch !== null && {
    '--at': 'block',
    '--at-top': `${(100 * Math.floor(patch / cols)) / rows}%`,
    '--at-left': `${(100 * (patch % cols)) / cols}%`,
    '--at-height': `${100 / rows}%`,
    '--at-width': `${100 / cols}%`,
  };
  return html`<div class="vv-parts-scroll" style=${place || {}}>${children}</div>`;
}

/** All heads as small photos in a table, with bars for each layer's heads and MLP. @param {Looked} props */
function Heads({ value, shown, at, press }) {
  const { terms, now, before, off, crop, photo, whyNot, decimals } = value;
  const [top, left, tall, wide] = crop.region;
  const box = placeOfRect(crop, [top, left, top + tall, left + wide]);
  const rover = useSignal('0.0'); // the one to which the tabulator key leads
  const show = (/** @type {string | null} */ place) => {
    if (place !== null) shown.value = place;
  };
  const listening = {
    onPointerOver: (/** @type {PointerEvent} */ event) => isFinger(event) || show(dataAt(event, 'place')),
    onFocusIn(/** @type {FocusEvent} */ event) {
      const place = dataAt(event, 'place');
      if (place?.includes('.')) rover.value = place;
      if (/** @type {Element} */ (event.target).matches(':focus-visible')) show(place);
    },
    onClick(/** @type {PointerEvent} */ event) {
      const place = dataAt(event, 'place');
      // a finger has not seen the head before: its first tap shows it
      if (isFinger(event) && place !== shown.value) show(place);
      else if (place !== null) press(place);
    },
  };
  const ofHeads = [now, before].map(({ heads }) => heads.map(total));
  const most = largestOf([...ofHeads.flat(), ...now.mlps, ...before.mlps]) || 1;
  const bar = (
    /** @type {string} */ words,
    /** @type {number} */ gave,
    /** @type {number} */ was,
    place = '',
  ) => {
    const label = `${words}: ${signed(gave, decimals)}${off.length ? `, before ${signed(was, decimals)}` : ''}`;
    return html`<td>
      <${SumBar} ...${{ gave, was: off.length ? was : null, most, decimals, label, place, shown }} />
    </td>`;
  };
  const head = (/** @type {string} */ place) =>
    html`<td key=${place}><${Head} ...${{ value, shown, at, rover, place }} /></td>`;
  const line = (/** @type {string} */ layer, /** @type {number} */ row) => ({
    ...{ key: row, head: layer, said: `layer ${layer}` },
    cells: [
      ...terms.places(String(row)).map(head),
      bar(`all heads of layer ${layer}`, ofHeads[0][row], ofHeads[1][row], whyNot ? '' : String(row)),
      bar(`MLP of layer ${layer}`, now.mlps[row], before.mlps[row]),
    ],
  });
  const style = {
    '--photo': `url("${routeUrl(photo)}")`,
    '--heads': String(terms.heads),
    '--vv-aspect': String(crop.original[1] / crop.original[0]),
    ...Object.fromEntries(Object.entries(box).map(([name, text]) => [`--box-${name}`, text])),
  };
  return html`<${Grid}
    look="vv-parts-table"
    label="Each head's part, rows are layers"
    columns=${[...now.heads[0].map((_, place) => [place, `head ${place}`]), ['heads'], ['MLP']]}
    rows=${now.layers.map(line)}
    more=${{ style, ...listening }}
  />`;
}

/** @param {Omit<Looked, 'press'> & {rover: Signal<string>, place: string}} props */
function Head({ value: { terms, grid, now, decimals }, shown, at, rover, place }) {
  const canvas = useRef(/** @type {any} */ (null));
  const isShown = useComputed(() => shown.value === place);
  const isNext = useComputed(() => rover.value === place);
  useLayoutEffect(() => {
    paintSigned(new Picture(canvas.current, grid[1], grid[0]), terms.map(place), terms.most);
  }, [terms]);
  const isOff = terms.off.has(place);
  const [row, head] = place.split('.');
  const gave = signed(terms.sum(place), decimals);
  const words = `layer ${now.layers[Number(row)]}, head ${head}: ${isOff ? 'off, was ' : ''}${gave}`;
  const look = `vv-bare vv-parts-cell ${isShown.value ? 'vv-chosen' : ''} ${isOff ? 'vv-parts-off' : ''}`;
  const about = { 'data-place': place, tabindex: isNext.value ? 0 : -1, 'aria-label': words, title: words };
  return html`<button type="button" class=${look} aria-pressed=${String(isOff)} ...${about}>
    <span class="vv-parts-thumb vv-face">
      <span class="vv-box"
        ><canvas class="vv-layer" ref=${canvas}></canvas><span class="vv-parts-at"></span
      ></span>
    </span>
    <${Given} ...${{ terms, at, place, decimals }} />
  </button>`;
}

/** What a head gave, or took from the patch that is read. @param {{terms: Terms, at: Looked['at'], place: string, decimals: number}} props */
function Given({ terms, at, place, decimals }) {
  const gave = at.value === null ? terms.sum(place) : terms.map(place)[at.value];
  const words = terms.off.has(place) ? 'off' : signed(gave, decimals);
  return html`<span class=${`vv-number ${lookOf(gave)}`}>${words}</span>`;
}

/**
 * A bar with its number; one that stands for all heads of a layer can be pressed.
 * @param {{gave: number, was: number | null, most: number, decimals: number, label: string, place: string, shown: Looked['shown']}} props
 *     was: before heads were switched off, a tick on the bar
 */
function SumBar({ gave, was, most, decimals, label, place, shown }) {
  const isShown = useComputed(() => place !== '' && shown.value === place);
  const kind = place ? { type: 'button', 'data-place': place, tabindex: 0 } : { role: 'img' };
  const look = `${place && 'vv-bare'} vv-parts-sumbar ${isShown.value ? 'vv-chosen' : ''}`;
  return html`<${place ? 'button' : 'span'} class=${look} aria-label=${label} title=${label} ...${kind}>
    <${Bar}
      value=${Math.abs(gave)}
      ends=${[0, most]}
      sign=${gave}
      tick=${was && Math.abs(was)}
      look="vv-face"
    />
    <span class=${`vv-number ${lookOf(gave)}`}>${signed(gave, decimals)}</span>
  <//>`;
}
