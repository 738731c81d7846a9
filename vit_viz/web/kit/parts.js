// What the rooms are made of, as components: buttons of which one is pressed, what went wrong, how far a question is, a colour bar, a
// photo with rings, and which class is meant. Texts may come from strangers: Preact writes them as text.

import {
  cellAt,
  movedPatch,
  patchRect,
  placeIn,
  placeWords,
  pointerIn,
  shareOf,
} from '../../explorer/geometry.js';
import { computing } from '../../explorer/labels.js';
import { Picture } from '../../explorer/paint.js';
import { routeUrl } from '../../explorer/source.js';
import { byKeys, gradient, KEY_WORDS, unfolds } from '../../ui/kit/elements.js';
import { amountWords, percent, short, stopsOf } from '../../ui/kit/numbers.js';
import { asked } from './ask.js';
import { usePointing } from './grid.js';
import { Job } from './job.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal, useState } from './preact.js';
/** @import { Answer } from './ask.js' */
/** @import { Places } from './job.js' */
/** @import { Signal } from './preact.js' */

/**
 * A photo, and where the model's patches lie on it.
 * @typedef {{grid: [number, number], crop: import('../../explorer/geometry.js').Trace['crop'], photo:
 *   string, photo_size: [number, number], name?: string}} Photo
 */

/**
 * Buttons of which one is pressed.
 * @template {string} Value
 * @param {object} props
 * @param {string} props.name of what they choose: each has its value as data-NAME
 * @param {[value: Value, words: string, title?: string][]} props.choices
 * @param {Value} props.value
 * @param {(value: Value) => void} props.choose
 * @param {string} props.label
 * @param {string} [props.look] more classes
 * @param {string} [props.option] of the view, as the help knows it
 * @param {Record<string, any>} [props.more] attributes
 */
export function Toggle({ name, choices, value, choose, label, look = '', option, more }) {
  return html`<div
    class=${`vv-toggle ${look}`}
    role="group"
    aria-label=${label}
    data-option=${option}
    ...${more}
  >
    ${choices.map(
      ([one, words, title]) =>
        html`<button
          key=${one}
          type="button"
          title=${title}
          aria-pressed=${String(one === value)}
          ...${{ [`data-${name}`]: one }}
          onClick=${() => choose(one)}
        >
          ${words}
        </button>`,
    )}
  </div>`;
}

/**
 * What went wrong, in a sentence, until it goes well or is closed; what was closed stays closed however often it is drawn.
 * @param {{words?: string | null, again?: () => void, stays?: boolean, look?: string, role?: string}} props again: tries it once more;
 *     stays: it stands in place of what cannot be shown, and cannot be closed
 */
export function Problem({ words, again, stays = false, look = 'vv-error', role = 'alert' }) {
  const [closed, setClosed] = useState('');
  const before = useRef(/** @type {Element | null} */ (null)); // where the keyboard was
  if (closed && closed !== words) setClosed('');
  const isSaid = Boolean(words) && closed !== words;
  useLayoutEffect(() => {
    if (isSaid) before.current = document.activeElement;
  }, [isSaid]);
  const close = () => {
    setClosed(words ?? '');
    if (before.current instanceof HTMLElement && before.current.isConnected) before.current.focus();
  };
  const named = { 'aria-label': 'Close this message', title: 'Close this message' };
  return html`<p class=${look} role=${role} hidden=${!isSaid}>
    ${isSaid && words}
    ${isSaid && again && html` <button type="button" class="vv-again" onClick=${again}>Try again</button>`}
    ${isSaid && !stays && html`<button type="button" class="vv-close" ...${named} onClick=${close}></button>`}
  </p>`;
}

/** What the source of this page does not answer, by its names. @param {{names: string[]}} props */
export function InApp({ names }) {
  return names.length > 0 && html`<p class="vv-in-app vv-small">In the app: ${names.join(', ')}.</p>`;
}

/**
 * A title that says what was found. While that is on its way it is dimmed, and says of what.
 * @param {{words?: string | null, pending?: string | false | null, look?: string}} props pending: of what it is on its way
 */
export function Found({ words, pending, look = '' }) {
  return html`<h2
    class=${`vv-title vv-caption ${look}`}
    aria-busy=${String(Boolean(pending))}
    hidden=${!pending && !words}
  >
    ${pending ? computing(pending) : words}
  </h2>`;
}

/**
 * A button and the panel that it opens. A press or the focus elsewhere closes it, and so does Escape, which gives the focus back.
 * @returns what the two are given; whether it is open; what closes it, and what gives the focus back to the button, too
 */
export function usePopover() {
  const [isOpen, setOpen] = useState(false);
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  const panel = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => setOpen(false);
  const leave = () => {
    close();
    button.current?.focus();
  };
  useLayoutEffect(() => unfolds(button.current, panel.current), []);
  useLayoutEffect(() => {
    if (!isOpen) return;
    const elsewhere = (/** @type {any} */ { target }) => {
      if (!button.current?.contains(target) && !panel.current?.contains(target)) close();
    };
    const typed = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      if (panel.current?.querySelector('button[aria-expanded=true]')) return; // what is open in it closes first
      event.preventDefault();
      leave();
    };
    window.addEventListener('pointerdown', elsewhere);
    window.addEventListener('focusin', elsewhere);
    window.addEventListener('keydown', typed);
    return () => {
      window.removeEventListener('pointerdown', elsewhere);
      window.removeEventListener('focusin', elsewhere);
      window.removeEventListener('keydown', typed);
    };
  }, [isOpen]);
  return {
    ...{ isOpen, close, leave },
    button: { ref: button, 'aria-expanded': String(isOpen), onClick: () => setOpen(!isOpen) },
    panel: { ref: panel, hidden: !isOpen },
  };
}

/**
 * The answer to a question of a component. Where the question has changed it is pending at once, so that no answer is taken for another's.
 * @param {(name: string, body: any, stop: AbortSignal) => Promise<any>} ask that of the first time
 * @param {[name: string, body: any] | null | undefined | false} question none: none now, and the last answer stays
 * @param {Signal<unknown>} [again] with each new value the same question is asked again
 * @returns {Answer}
 */
export function useAsked(ask, question, again) {
  const wanted = useSignal(/** @type {[string, any] | null} */ (null));
  const answer = useMemo(() => asked(ask, () => wanted.value, again), []);
  useLayoutEffect(() => {
    if (question) wanted.value = question;
  });
  const isOther = question && JSON.stringify(question) !== JSON.stringify(wanted.peek());
  return isOther ? { ...answer.value, state: 'pending', error: undefined } : answer.value;
}

const PATIENCE = 300; // ms before what is on its way is said, and what is of before dimmed

/** Whether something has been on its way for long. @param {string} what it is, each time anew; '' nothing */
export function useLate(what) {
  const [late, setLate] = useState('');
  useLayoutEffect(() => {
    const timer = window.setTimeout(() => setLate(what), what ? PATIENCE : 0);
    return () => clearTimeout(timer);
  }, [what]);
  return what !== '' && late === what;
}

const PAUSE = 200; // ms: while a slider is moved, what it asks for is asked once it rests

/**
 * A slider that says its number at once and tells it once the hand rests.
 * @param {number} value @param {(value: number) => void} choose
 */
export function useSlider(value, choose) {
  const [moved, setMoved] = useState(/** @type {number | null} */ (null));
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const tell = (/** @type {number} */ chosen) => {
    clearTimeout(timer.current);
    setMoved(null);
    choose(chosen);
  };
  return {
    said: moved ?? value,
    tell,
    listening: {
      onInput(/** @type {any} */ { target }) {
        const number = Number(target.value);
        setMoved(number);
        clearTimeout(timer.current);
        timer.current = window.setTimeout(() => tell(number), PAUSE);
      },
      onChange: (/** @type {any} */ { target }) => tell(Number(target.value)),
    },
  };
}

/** Closes the dialog that is pressed beside what stands in it. */
export function closeBeside(/** @type {MouseEvent} */ { target, currentTarget }) {
  if (target === currentTarget) /** @type {HTMLDialogElement} */ (target).close();
}

/** A job whose news draw the component again; it ends with the component. @param {Places} [places] */
export function useJob(places) {
  const [, draw] = useState(0);
  const job = useMemo(() => new Job(() => draw((count) => count + 1), places), []);
  useEffect(() => () => job.end(), []);
  return job;
}

/**
 * How far a question is, with a button that ends it; before, the button that begins it. Nothing where there is nothing to say.
 * @param {object} props
 * @param {Pick<Job, 'isRunning' | 'words' | 'share' | 'left'>} props.job
 * @param {() => void} props.end
 * @param {() => void} [props.begin]
 * @param {string} [props.go] what the button says that begins it; '' or none: there is none now
 * @param {string} [props.words] in place of what is done
 * @param {string} [props.amount] in place of the share and the time that is left
 * @param {string} [props.look] more classes
 * @param {Record<string, unknown>} [props.button] more attributes of the button that begins it
 * @param {string} [props.cancel] what the button that ends it is called
 */
export function JobLine({
  job,
  end,
  begin,
  go = '',
  words = job.words,
  amount,
  look = '',
  button,
  cancel = 'Cancel',
}) {
  const { isRunning, share, left } = job;
  const far = amount ?? (share > 0 ? `${Math.round(100 * share)}%${left && `, ${left}`}` : '');
  return html`<div class=${`vv-job ${look}`} hidden=${!isRunning && !words && !go}>
    ${
      begin &&
      html`<button type="button" class="vv-button" hidden=${isRunning || !go} onClick=${begin} ...${button}>
        ${go}
      </button>`
    }
    <span class="vv-job-words vv-quiet" role="status">${words}</span>
    <span class="vv-job-amount vv-number">${isRunning ? far : ''}</span>
    ${
      isRunning &&
      html`<progress
          class="vv-progress"
          max="1"
          aria-label="How far it is"
          ...${share > 0 ? { value: share } : {}}
        /><button type="button" class="vv-button vv-stop" aria-label=${cancel} onClick=${end}>Cancel</button>`
    }
  </div>`;
}

/**
 * A colour bar.
 * @param {{low: string, high: string, unit?: string, colours: string[] | Uint32Array, look?: string, ends?: [string, string?]}} props
 *     ends: what its two colours say
 */
export function ColourBar({ low, high, unit = '', colours, look = 'vv-small', ends }) {
  const background = gradient(Array.isArray(colours) ? colours : stopsOf(colours));
  return html`<div class=${`vv-bar ${look}`}>
    ${ends && html`<span>${ends[0]}</span>`}
    <span class="vv-low">${low}</span><span class="vv-strip" aria-hidden="true" style=${{ background }}></span
    ><span class="vv-high">${high}</span>
    ${ends?.[1] && html`<span>${ends[1]}</span>`}
    <span class="vv-unit">${unit}</span>
  </div>`;
}

/**
 * The row and column of the patch under a pointer; null outside, unless `find` is nearestCell.
 * @param {MouseEvent} event @param {Element} picture @param {number[]} area of the photo that it shows: top, left, bottom, right
 * @param {import('../../explorer/geometry.js').Trace['crop']['region']} region @param {[number, number]} grid
 */
export function cellUnder(event, picture, [top, left, bottom, right], region, grid, find = cellAt) {
  const [down, across] = pointerIn(event, picture);
  return find(shareOf([top + down * (bottom - top), left + across * (right - left)], region), grid);
}

/** Where a patch lies on the photo, as CSS. @param {Photo} photo @param {number} patch */
export function placeOfPatch({ crop, grid }, patch) {
  return placeOfRect(crop, patchRect(crop, Math.floor(patch / grid[1]), patch % grid[1], grid));
}

/** Where a rectangle of the original lies on the photo, as CSS. @param {Photo['crop']} crop @param {number[]} rect */
export function placeOfRect({ original }, rect) {
  return placeIn(rect, [0, 0, original[0], original[1]]);
}

/** The patch under a pointer over a photo; null outside of what the model sees. @param {Photo} photo @param {MouseEvent} event */
export function patchUnder({ crop, grid }, event) {
  const element = /** @type {Element} */ (event.currentTarget);
  const cell = cellUnder(event, element, [0, 0, ...crop.original], crop.region, grid);
  return cell && cell[0] * grid[1] + cell[1];
}

/**
 * A photo with layers over it. A pointer or keys point at a patch and choose it.
 * @param {object} props
 * @param {Photo} props.photo
 * @param {[number, string][]} [props.rings] patches, with the classes of their rings
 * @param {(patch: number | null, event: Event) => void} [props.choose] null: none any more
 * @param {number} [props.pinned] the patch that the arrow keys begin at
 * @param {(patch: number | null) => void} [props.point] told the patch under the pointer
 * @param {string} [props.label]
 * @param {string} [props.look] more classes
 * @param {any} [props.map] reference to a canvas over what the model sees; none without it
 * @param {any} [props.image] reference to the photo
 * @param {any} [props.under] a layer below the rings
 * @param {any} [props.children] more layers
 * @param {Record<string, any>} [props.more] attributes and listeners
 */
export function PhotoStage({
  photo,
  rings = [],
  choose,
  pinned,
  point,
  label,
  look = '',
  map,
  image,
  under,
  children,
  more = {},
}) {
  const { crop, photo_size: size, grid, name = '' } = photo;
  const [top, left, height, width] = crop.region;
  const { at, leave, keys } = usePointing({ grid, pinned, point, choose: choose ?? (() => false) });
  const clicked = (/** @type {MouseEvent} */ event) => {
    const patch = patchUnder(photo, event);
    if (patch !== null) choose?.(patch, event);
  };
  const listening = {
    ...(choose && { ...keys, tabindex: 0, role: 'application', 'data-photo': '', onClick: clicked }),
    ...(point && { onPointerLeave: () => point(null) }),
    ...(label && { 'aria-label': `${label}. ${KEY_WORDS}` }),
    ...more,
    onPointerMove(/** @type {PointerEvent} */ event) {
      leave();
      point?.(patchUnder(photo, event));
      more.onPointerMove?.(event);
    },
  };
  return html`<div class=${`vv-stage ${look}`} style=${{ '--vv-aspect': size[1] / size[0] }} ...${listening}>
    <img class="vv-photo vv-layer" ref=${image} src=${routeUrl(photo.photo)} alt=${name} draggable=${false} />
    ${
      map &&
      html`<div class="vv-box" style=${placeOfRect(crop, [top, left, top + height, left + width])}>
        <canvas class="vv-map vv-layer" ref=${map} width=${grid[1]} height=${grid[0]}></canvas>
      </div>`
    }
    ${under}
    <div class="vv-rings vv-layer" aria-hidden="true">
      ${rings.map(([patch, kind]) => html`<span class=${kind} style=${placeOfPatch(photo, patch)}></span>`)}
    </div>
    ${choose && html`<${Pointed} ...${{ at, cols: grid[1] }} placeOf=${(/** @type {number} */ patch) => placeOfPatch(photo, patch)} />`}
    ${children}
  </div>`;
}

/** The patch that the keys point at, also for those who listen. @param {{at: Signal<number | null>, cols: number, placeOf: (patch: number) => any}} props */
export function Pointed({ at: { value: patch }, cols, placeOf }) {
  return html`${patch !== null && html`<span class="vv-ring vv-at" aria-hidden="true" style=${placeOf(patch)}></span>`}
    <span class="vv-unseen" role="status">${patch !== null && `patch ${placeWords(patch, cols)}`}</span>`;
}

/**
 * A picture of which each cell can be read, by pointer or arrow keys; a ring shows which one is meant.
 * @param {object} props
 * @param {[number, number]} props.grid rows, cols
 * @param {(picture: Picture) => void} [props.paint] a pixel for each cell; a picture without has children
 * @param {string} [props.label] what the picture is
 * @param {(row: number, col: number) => void} [props.read] none where cells say nothing
 * @param {number | string} [props.aspect] width by height
 * @param {string} [props.look] more classes
 * @param {any} [props.children]
 */
export function Cells({ grid, paint, label, read, aspect, look = '', children }) {
  const [rows, cols] = grid;
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  useLayoutEffect(() => {
    if (paint && canvas.current) paint(new Picture(canvas.current, cols, rows));
  }, [paint, rows, cols]);
  const show = (/** @type {number | null} */ cell) => {
    setAt(cell);
    if (cell !== null) read?.(Math.floor(cell / cols), cell % cols);
  };
  const listening = read && {
    ...{ tabindex: 0, role: 'application', 'aria-label': label },
    onPointerMove(/** @type {PointerEvent} */ event) {
      const cell = cellAt(pointerIn(event, /** @type {Element} */ (event.currentTarget)), grid);
      if (cell) show(cell[0] * cols + cell[1]);
    },
    onKeyDown: byKeys({ at: () => at, beside: (step) => movedPatch(at ?? 0, step, grid), point: show }),
  };
  const [row, col] = [Math.floor((at ?? 0) / cols), (at ?? 0) % cols];
  const place = placeIn([row, col, row + 1, col + 1], [0, 0, rows, cols]);
  return html`<div class=${`vv-cells ${look}`} style=${{ aspectRatio: String(aspect ?? '') }} ...${listening}>
    ${paint && html`<canvas ref=${canvas}></canvas>`}${children}
    ${read && html`<span class="vv-ring" hidden=${at === null} style=${place}></span>`}
  </div>`;
}

// --- which class is meant

/**
 * @typedef {{name: string, index?: number, probability?: number | null, value?: number, cosine?: number}} Entry cosine: of a sentence
 * @typedef {{classes?: Entry[], chosen?: number | null, other?: number | null, words?: string, name?: string, single?: boolean,
 *   reads?: boolean, examples?: string[], shares?: string}} Target single: whether a class is chosen alone, with nothing to set against it;
 *   reads: whether the model is asked in sentences, with some to try and what their shares mean, or by other photos alone; of a model with
 *   classes nothing
 * @typedef {{name: string, index: number}[]} Hits
 *
 * What is done with a choice.
 * @typedef {object} Choices
 * @property {(index: number | null) => void} why
 * @property {(index: number | null) => void} [unlike] null: nothing
 * @property {(text: string, stop: AbortSignal) => Promise<Hits>} find
 */

/**
 * Which class is meant: among the first by chips, or by its name; and another that it is set against, or none.
 * @param {{target: Target, why: Choices['why'], unlike?: Choices['unlike'], find: Choices['find'], label: string, title?: any}} props
 *     target: `single` where a class is chosen alone; title: what stands before the chips, also while it is not known which there are
 */
export function Classes({ target, why, unlike, find, label, title }) {
  const { classes = [], chosen, other = null, words = '', single = false } = target;
  const [isOpen, setOpen] = useState(false); // on a phone the chips that are not chosen are folded
  const rest = classes.filter(({ index }, place) => place && index !== chosen && index !== other).length;
  const isNone = title ? target.classes?.length === 0 : !classes.length;
  return html`<div class="vv-target vv-row" data-folded=${isOpen ? undefined : ''}>
    <div class="vv-target-row vv-row" role="group" aria-label=${label} hidden=${isNone}>
      ${title}
      <span class="vv-why">
        ${classes.map((entry) => html`<${Chip} entry=${entry} on=${entry.index === chosen} choose=${why} />`)}
      </span>
      <${ClassSearch}
        ...${{ find, why, unlike: single ? undefined : unlike, noun: target.reads ? 'sentence' : 'class' }}
      />
    </div>
    ${!single && unlike && html`<${Unlike} ...${{ classes, chosen, other, unlike, isNone }} />`}
    <button
      type="button"
      class="vv-chip vv-more-classes"
      aria-expanded=${String(isOpen)}
      hidden=${isNone || !classes.length}
      onClick=${() => setOpen(!isOpen)}
    >
      ${isOpen ? 'fewer' : rest ? `and ${rest} more` : 'another class…'}
    </button>
    <p class="vv-target-words" hidden=${!words}>${words}</p>
  </div>`;
}

/**
 * What is set against the class that is explained: one of the others, or nothing.
 * @param {{classes: Entry[], chosen?: number | null, other: number | null, unlike: NonNullable<Choices['unlike']>, isNone?: boolean}} props
 */
export function Unlike({ classes, chosen, other, unlike, isNone = false }) {
  return html`<div
    class="vv-target-row vv-row"
    role="group"
    aria-label="What it is compared with"
    hidden=${isNone}
  >
    <span class="vv-quiet">and not</span>
    <span class="vv-unlike">
      ${classes
        .filter(({ index }) => index !== chosen)
        .map(
          ({ name, index }) =>
            html`<${Chip} entry=${{ name, index }} on=${index === other} choose=${unlike} />`,
        )}
      ${classes.length > 0 && html`<${Chip} entry=${{ name: 'compared with nothing' }} on=${other === null} choose=${unlike} />`}
    </span>
  </div>`;
}

/** @param {{entry: Entry, on: boolean, choose: (index: number | null) => void}} props */
function Chip({ entry, on, choose }) {
  const { name, index, probability, value, cosine } = entry;
  const hasAmount = typeof (value ?? probability) === 'number';
  const exact =
    value === undefined
      ? `probability ${probability?.toFixed(4)}`
      : cosine === undefined
        ? `value ${short(value)}`
        : `cosine ${cosine.toFixed(4)}`;
  return html`<button
    type="button"
    class="vv-chip"
    aria-pressed=${String(on)}
    title=${hasAmount ? `${name}, ${exact}` : name}
    onClick=${() => choose(index ?? null)}
  >
    <span class="vv-class">${name}</span>${
      hasAmount &&
      html`<span class="vv-number"
        >${amountWords({ ...entry, probability: probability ?? 0 }, percent)}</span
      >`
    }
  </button>`;
}

/**
 * A search for a class by its name: asks once the hand rests, and shows the answer to the newest question only.
 * @param {{find: Choices['find'], why: Choices['why'], unlike?: Choices['unlike'], noun: string}} props noun: what the model's classes are
 */
function ClassSearch({ find, why, unlike, noun }) {
  const [hits, setHits] = useState(/** @type {Hits | null} */ (null));
  const job = useJob();
  const timer = useRef(0);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => {
    clearTimeout(timer.current);
    job.end();
    setHits(null);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const typed = (/** @type {string} */ written) => {
    clearTimeout(timer.current);
    const text = written.trim().slice(0, 100);
    if (!text) return close();
    timer.current = window.setTimeout(() => {
      void job.follow((stop) => find(text, stop), { whole: setHits });
    }, 150);
  };
  const input = () => /** @type {HTMLInputElement} */ (box.current?.querySelector('input'));
  const chosen = (/** @type {() => void} */ choose) => () => {
    choose();
    input().value = '';
    close();
  };
  const keyed = (/** @type {KeyboardEvent} */ { key }) => {
    if (key === 'Escape') close();
    if (key === 'Enter') box.current?.querySelector('button')?.click();
  };
  const left = (/** @type {FocusEvent} */ { relatedTarget }) => {
    if (!box.current?.contains(/** @type {Node | null} */ (relatedTarget))) close();
  };
  return html`<span class="vv-search-box" ref=${box} onFocusOut=${left}>
    <input
      class="vv-search vv-control"
      type="search"
      placeholder="another …"
      autocomplete="off"
      aria-label=${`Search a ${noun} by name or number`}
      onInput=${(/** @type {any} */ { target }) => typed(target.value)}
      onKeyDown=${keyed}
    />
    <ul
      class="vv-hits"
      hidden=${!hits && !job.error}
      onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()}
    >
      ${job.error ? html`<li>${job.error}</li>` : hits && !hits.length && html`<li>No ${noun} has this name.</li>`}
      ${hits?.map(
        ({ name, index }) =>
          html`<li key=${index}>
            <span class="vv-class" title=${`${noun} ${index}`}>${name}</span>
            <${Chip}
              entry=${{ name: unlike ? 'why' : 'show' }}
              on=${false}
              choose=${chosen(() => why(index))}
            />
            ${unlike && html`<${Chip} entry=${{ name: 'and not' }} on=${false} choose=${chosen(() => unlike(index))} />`}
          </li>`,
      )}
    </ul>
  </span>`;
}
