// The maps of all methods side by side, each with how far it can be trusted (belief.js). A slow method runs as long as the cards are about the
// same.

import { clamp } from '../../explorer/geometry.js';
import { fixed } from '../../ui/kit/numbers.js';
import { Grid } from '../kit/grid.js';
import { STOPPED } from '../kit/job.js';
import { MapOnPhoto } from '../kit/map.js';
import { JobLine, Problem, Toggle, useAsked, useJob } from '../kit/parts.js';
import { html, useComputed, useLayoutEffect, useMemo } from '../kit/preact.js';
import { captionOf, drawingOf, onScale, questionOf, ruleWords } from './maps.js';
import { Sanity } from './sanity.js';
import { BestSentence, EverySentence } from './sentences.js';
import { namesOf } from './staged.js';
import { endOfStrips, firstChoice } from './trust.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Job, Places } from '../kit/job.js' */
/** @import { ReadonlySignal, Signal } from '../kit/preact.js' */
/** @import { Tests } from './belief.js' */
/** @import { Answered, Of } from './maps.js' */
/** @import { Held } from './room.js' */
/** @import { Method } from './staged.js' */
/** @import { Trust } from './trust.js' */

/** @typedef {import('./staged.js').Answer} Agreement to the question of that name: its values are rank correlations of each two maps */

const NUMBERS =
  'No One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Thirteen Fourteen Fifteen'.split(' ');

/** @type {[string, string, string][]} */
const SCALES = [
  ['own', 'each its own', 'Each map from its own smallest to its own largest value.'],
  ['share', 'one for all', "Each patch's share of its map, on one scale for all methods."],
  [
    'only',
    'what only it says',
    'Each map as shares, less the mean of the quick maps, on one signed scale: orange more, blue less.',
  ],
];

/**
 * What the room knows of its cards; costOf: what a map that takes long costs, in words; isThere: whether it is at hand; done: it was computed;
 * answers: takes what came of their questions, by the names of methods, null where there is no map; tests: what was found of the maps.
 * @typedef {object} OfCards
 * @property {Page} page
 * @property {Method[]} methods
 * @property {Places} places
 * @property {Signal<Map<string, Answered | null>>} answers
 * @property {Tests} tests
 * @property {ReadonlySignal<Agreement | null>} agreed
 * @property {(method: Method, of: Of) => string | undefined} costOf
 * @property {(method: Method, of: Of) => boolean} isThere
 * @property {(method: Method, of: Of) => void} done
 * @property {Record<string, Uint32Array>} tables of colours
 */

/**
 * @param {{base: Held<Of>, check: import('./sanity.js').Check, how: string, why: (index: number | null) => void} & OfCards} props how: all is
 *     measured, as HTML; why: chooses what is explained
 */
export function Gallery({ base, check, how, why, ...shared }) {
  const error = base.error.value;
  const now = base.value.value;
  const isBusy = base.isPending.value ? 'vv-busy' : '';
  return html`<div id="vv-gallery" class="column">
    <div class=${`vv-gallery vv-room ${isBusy}`}>
      <${Problem} words=${error} stays look="vv-gallery-error" />
      ${!now && !error && html`<p class="vv-gallery-wait vv-quiet">Making the maps …</p>`}
      ${
        now &&
        now.target.reads !== undefined &&
        (now.target.classes?.length ?? 0) > 1 &&
        !error &&
        html`<${EverySentence} ...${{ of: now, why, ...shared }} /><${BestSentence}
            ...${{ of: now, ...shared }}
          />`
      }
      <div hidden=${Boolean(error)}>${now && html`<${Cards} ...${{ of: now, ...shared }} />`}</div>
      <details class="vv-fold vv-formula">
        <summary>How this is measured</summary>
        <div dangerouslySetInnerHTML=${{ __html: how }}></div>
      </details>
      <${Sanity} check=${check} />
    </div>
  </div>`;
}

/**
 * The cards, and what is known of them.
 * @param {{of: Of} & OfCards} props
 */
function Cards({ of: looked, agreed, costOf, methods: cards, tests, ...of }) {
  const { store } = of.page;
  const { drawn, rule } = useScale(store, cards, namesOf(looked.target), of.answers.value);
  const methods = Object.fromEntries(cards.map((method) => [method.name, method]));
  const { trust, order, of: other } = tests;
  const end = endOfStrips(cards.flatMap(({ name }) => trust[name] ?? []));
  const count = NUMBERS[cards.length] ?? String(cards.length);
  const isSorted = order.some((name) => trust[name]);
  const sorted = isSorted ? `, the most faithful ${other && `for ${other} `}first` : '';
  const ranked = order.map((name) => ({ label: methods[name].label, trust: trust[name] }));
  const first = firstChoice(ranked, other);
  const shared = { ...of, looked, subject: store.subject(), end, of: other };
  const card = (/** @type {Method} */ method) => {
    const { name } = method;
    const its = { method, cost: costOf(method, looked), trust: trust[name], drawn: drawn.get(name) };
    return html`<${Card} key=${name} ...${{ ...shared, ...its }} />`;
  };
  return html`
    <div class="vv-gallery-head vv-row">
      <h3 class="vv-title vv-gallery-title">${count} ways to ask${sorted}</h3>
      <span class="vv-quiet vv-legend" hidden=${!end}>gray: what random orders reach on this photo</span>
    </div>
    <p class="vv-first-choice" aria-live="polite" hidden=${!first}>${first}</p>
    <div class="vv-rule vv-row">
      <span class="vv-small">scale</span>
      <${Toggle}
        ...${{ name: 'map-scale', choices: SCALES, value: store.view.ruler.value, label: 'Scale of the maps' }}
        choose=${(/** @type {string} */ ruler) => store.set({ ruler })}
      />
    </div>
    <p class="vv-rule-words vv-small" hidden=${!rule}>${rule}</p>
    <div class="vv-cards">
      ${[...order.map((name) => methods[name]), ...cards.filter(({ name }) => !order.includes(name))].map(card)}
    </div>
    <${Agreed} agreed=${agreed} />
  `;
}

/**
 * The maps as they are drawn, and what the cards show, where that is not plain.
 * @param {Page['store']} store @param {Method[]} cards @param {string[]} names @param {Map<string, Answered | null>} answers
 */
function useScale({ view }, cards, names, answers) {
  const { ruler, sides, clip } = view;
  const quick = cards.filter(({ slow }) => !slow).map(({ name }) => name);
  const drawn = useMemo(
    () => onScale(answers, quick, ruler.value, clip.value),
    [answers, quick.join(), ruler.value, clip.value],
  );
  return { drawn, rule: ruleWords(ruler.value, sides.value, names, drawn.values().next().value?.ends) };
}

// --- a card

/**
 * One method: its map or how to get it, and its place beside random orders of patches. It is drawn again where one of these differs.
 * @typedef {object} OneCard
 * @property {Of} looked what the maps are of
 * @property {{map: import('../kit/map.js').PatchMap, ends: [number, number]}} [drawn] its map on the scale of the cards
 * @property {string} subject what is looked at: with another one what runs ends, as with another map
 * @property {Method} method
 * @property {string} [cost] of its map, in words
 * @property {Trust} [trust]
 * @property {string} of the class of the test, where it is another one
 * @property {number} end of the strips of all cards
 *
 * @typedef {Pick<OfCards, 'page' | 'places' | 'answers' | 'isThere' | 'done' | 'tables'> & OneCard} CardOf
 */

/**
 * The map of a card: the answer to its question, which a slow method is asked once somebody wants it.
 * @param {CardOf} props
 */
function useMap({ page: { store, ask }, answers, looked, places, subject, method, isThere, done }) {
  const { name, slow } = method;
  const job = useJob(places);
  const question = questionOf(store, looked, method);
  useLayoutEffect(() => () => job.end(), [JSON.stringify(question), subject]);
  /** @type {(name: string, question: any, stop: AbortSignal, tell?: import('../kit/ask.js').Tell) => Promise<Answered>} */
  const askMap = async (_, { body, photo }, stop, tell) => ({
    ...(await ask(name, body, stop, tell)),
    photo,
  });
  const isWanted = !slow || isThere(method, looked);
  const { state, value = null, error } = useAsked(askMap, isWanted && question);
  const answer = /** @type {Answered | null} */ (isWanted ? value : null);
  const isFailed = isWanted && state === 'failed';
  const isKnown = !isWanted || isFailed || Boolean(answer);
  useLayoutEffect(() => {
    if (isKnown) answers.value = new Map(answers.peek()).set(name, answer);
  }, [answer, isKnown]);
  const begin = () =>
    void job.follow((stop, tell) => askMap(...question, stop, tell), {
      whole: () => done(method, looked),
    });
  return {
    answer,
    error,
    job,
    begin,
    isShown: isWanted && !isFailed,
    isBusy: isWanted && state === 'pending',
  };
}

/** @param {CardOf} props */
function Card(props) {
  const { page, looked, drawn, tables, method, cost, trust, of, end } = props;
  const { store } = page;
  const { name, label, blind } = method;
  const isChosen = useComputed(() => store.view.method.value === name).value;
  const { answer, error, job, begin, isShown, isBusy } = useMap(props);
  const choose = () => {
    store.set({ method: name });
    const stage = document.querySelector('#vv-explain-picture .vv-play-stage');
    stage?.scrollIntoView({ block: 'nearest', behavior: 'smooth' }); // where it has scrolled out, as on a phone
  };
  const falls = trust && (trust.error || trust.falls);
  const [tall, wide] = looked.photo.photo_size;
  const style = { aspectRatio: String(wide / tall) };
  const looks = [isChosen && 'vv-chosen', isBusy && 'vv-busy', of && 'vv-of-other'];
  const shown = answer && drawn && { ...drawn, photo: answer.photo, drawing: drawingOf(store), tables };
  const caption = shown ? captionOf(answer, drawn, store.view.ruler.value) : '';
  const open = {
    ...{ 'aria-label': `Show ${label} on the photo`, 'aria-pressed': String(isChosen), title: caption },
    ...{ hidden: !isShown, onClick: choose },
  };
  return html`<article class=${['vv-way', ...looks].filter(Boolean).join(' ')} data-method=${name}>
    <button type="button" class="vv-open vv-bare" ...${open}>
      ${isShown && (shown ? html`<${MapOnPhoto} ...${shown} label=${caption} />` : html`<span class="vv-card-image" style=${style}></span>`)}
    </button>
    ${!isShown && html`<div class="vv-blank" style=${style}><${Missing} ...${{ method, cost, job, begin, error }} /></div>`}
    <h4 class="vv-card-title">
      <span class="vv-card-name">${label}</span>
      <span class="vv-tag vv-small" hidden=${!blind}>same for every class</span>
    </h4>
    <${Strip} ...${{ trust, end }} />
    <p class="vv-falls vv-small" hidden=${!falls} data-better=${String(Boolean(trust?.better))}>
      ${of && `for ${of}: `}${falls}
    </p>
  </article>`;
}

/** What a map costs or why there is none, a button that computes it, and how far that is. @param {{method: Method, cost?: string, job: Job, begin: () => void, error?: string}} props */
function Missing({ method: { label, slow, runs }, cost, job, begin, error }) {
  const { share, left } = job;
  const amount = share > 0 ? `${Math.round(100 * share)}%${left && ` (${left})`} of ${runs}` : '';
  const title = 'Computes this map, which takes a while.';
  return html`<${JobLine}
    ...${{ job, begin, end: () => job.end(STOPPED), amount, go: slow ? 'compute' : '', cancel: `Cancel ${label}` }}
    words=${amount ? '' : job.words || job.error || error || cost || ''}
    button=${{ class: 'vv-go vv-bare', title, 'aria-label': `Compute ${label}` }}
  />`;
}

/**
 * A line that begins and ends at the same numbers for all methods: where 95% of random orders lie, and where the map is. Left is better.
 * @param {{trust: Trust | undefined, end: number}} props
 */
function Strip({ trust, end }) {
  if (!end) return null;
  const { place, title } = trust ?? {};
  const at = (/** @type {number} */ x) =>
    100 * clamp((x - (place?.floor ?? 0)) / (end - (place?.floor ?? 0)));
  const band = place && { left: `${at(place.low)}%`, width: `${at(place.high) - at(place.low)}%` };
  return html`<div class="vv-place" title=${title}>
    ${
      place &&
      html`<span class="vv-band" style=${band}></span
        ><span class="vv-dot" style=${{ left: `${at(place.area)}%` }}></span>`
    }
  </div>`;
}

// --- below the cards

/** @param {{agreed: ReadonlySignal<Agreement | null>}} props */
function Agreed({ agreed: { value: known } }) {
  return useMemo(() => known?.words && html`<${Agree} ...${known} />`, [known]);
}

/** Which methods agree on this photo; a map that is the same everywhere agrees with nothing, and has no row. @param {Agreement} props */
function Agree({ arrays, facts, words }) {
  /** @type {string[]} */
  const all = facts.names;
  const at = (/** @type {string} */ array, /** @type {number} */ row, /** @type {number} */ col) =>
    arrays[array].data[row * all.length + col];
  const shown = all.map((_, i) => i).filter((i) => !Number.isNaN(at('top_fifth', i, i)));
  const names = shown.map((i) => all[i]);
  /** @type {[any, string][]} */
  const columns = names.map((name, i) => [html`<abbr title=${name}>${i + 1}</abbr>`, name]);
  const rows = names.map((name, row) => ({
    key: name,
    head: `${row + 1} ${name}`,
    said: name,
    cells: names.map((_, col) => {
      const value = at('values', shown[row], shown[col]);
      const agrees = { '--agrees': `${Math.round(70 * Math.max(0, value))}%` };
      const isItself = row === col; // the arrows pass over it
      const tabindex = isItself ? undefined : row === 0 && col === 1 ? 0 : -1;
      return html`<td class="vv-face" role="gridcell" tabindex=${tabindex} style=${agrees}>
        ${isItself ? '' : fixed(value, 1).replace('-', '−')}
      </td>`;
    }),
  }));
  return html`<section class="vv-agree">
    <h3 class="vv-title">Do they agree?</h3>
    <p class="vv-agree-words">${words}</p>
    <div class="vv-agree-box vv-scroll">
      <${Grid}
        ...${{ label: 'Rank correlation of each two maps', corner: 'method', columns, rows, look: 'vv-agree-table' }}
      />
    </div>
    <p class="vv-small">
      Spearman's rank correlation of each two maps over the patches of this photo: 1 the same order, 0 none,
      −1 the opposite. Which of them is right it does not say.
    </p>
  </section>`;
}
