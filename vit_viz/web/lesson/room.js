// The Lesson tab: scenes from pixels to the answer, which play, stop and step. The strip of the model stays in sight, and one patch, which
// anybody may choose, is followed from start to end.

import { clamp } from '../../explorer/geometry.js';
import { thePage } from '../kit/page.js';
import { Problem } from '../kit/parts.js';
import {
  computed,
  effect,
  html,
  render,
  signal,
  untracked,
  useLayoutEffect,
  useMemo,
  useRef,
} from '../kit/preact.js';
import { Film } from './film.js';
import { Folds } from './folds.js';
import { Guessing } from './guess.js';
import { numbersOf } from './numbers.js';
import { Player, SPEEDS } from './player.js';
import { ANSWER } from './scenes/answer.js';
import { ASK } from './scenes/ask.js';
import { CUT } from './scenes/cut.js';
import { DEPTH } from './scenes/depth.js';
import { HEADS } from './scenes/heads.js';
import { Strip } from './strip.js';
import { beatAt, endOf, isGray, isMissing, moved, partAt, placed } from './timeline.js';
import { Choice, WhatIfs } from './what_if.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Part } from './folds.js' */
/** @import { AnswerName, Numbers, Placed, Scene } from './timeline.js' */

const TAB = 'lesson';
/** In the order in which they play. @type {Scene[]} */
export const SCENES = [CUT, ASK, HEADS, DEPTH, ANSWER];
/** What took the places of the Walkthrough's steps, which links of earlier versions name from 1. */
const OF_STEPS = Object.freeze([
  ...['', 'cut-grid', 'cut-embed', 'cut-join', 'cut-place'],
  ...['ask-query', 'heads-all', 'heads-mlp', 'answer-top'],
]);
const WAITS = 0.02; // seconds before its end at which a beat waits for a guess
const OF = /** @type {const} */ (['trace', 'patch', 'layer', 'head']); // what numbers are of

/** @type {import('../../ui/kit/elements.js').Mount<{parts: Record<string, Part>}>} parts: what Python says of each, by its name */
export function mount(element, { parts }) {
  render(html`<${Lesson} ...${{ page: thePage(), scenes: SCENES, parts }} />`, element);
}

/**
 * What plays, and on what numbers. While those of another patch are on their way, the ones before stay, all of one patch.
 * @param {Page} page @param {Scene[]} scenes
 */
function lessonOf(page, scenes) {
  const { store } = page;
  const near = signal(/** @type {AnswerName[]} */ (['tokens']));
  const { numbers, error } = numbersOf(page, TAB, near);
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  const shown = signal(/** @type {{n: Numbers, beats: Placed[]} | null} */ (null));
  const guesses = signal(/** @type {Record<string, number | null>} */ ({})); // by the scene; null: passed over
  const beats = () => shown.peek()?.beats ?? [];
  const now = () => /** @type {Numbers} */ (shown.peek()?.n);
  /** Whether a beat waits for a guess. @param {Placed} beat */
  const asks = (beat) => {
    const next = beats()[beats().indexOf(beat) + 1];
    const isIt = next && next.id === beat.scene.guess?.before;
    if (!isIt || isMissing(now(), next) || beat.scene.guess?.isFor?.(now()) === false) return false;
    return guesses.peek()[beat.scene.id] === undefined;
  };
  const player = new Player(beats, (from, to) => {
    const [before, after] = [from, to].map((t) => beatAt(beats(), t));
    if (asks(before) && to > before.end - WAITS) return { at: before.end - WAITS, stops: true };
    if (isMissing(now(), before)) return { at: from, stops: false };
    return before !== after && isMissing(now(), after) ? { at: endOf(before), stops: false } : null;
  });
  const { t } = player;
  const beat = computed(() => shown.value && beatAt(shown.value.beats, t.value));
  const id = computed(() => beat.value?.id ?? '');
  const part = computed(
    () => beat.value && partAt(beat.value, clamp((t.value - beat.value.start) / beat.value.seconds, 0.999)),
  );
  const linkOf = (/** @type {string} */ one) => (one === beats()[0]?.id ? '' : one);

  /** @param {Numbers} n */
  function take(n) {
    const before = shown.peek();
    const all = placed(scenes, n);
    if (!before) {
      const named = store.view.beat.peek() || OF_STEPS[store.view.step.peek()];
      const link = all.find((one) => one.id === named);
      if (link) t.value = endOf(link);
      shown.value = { n, beats: all };
      if (!link && !still.matches) player.play();
      return;
    }
    const moment = moved(before.beats, all, t.peek());
    const isOther = OF.some((name) => before.n[name] !== n[name]);
    if (isOther && !error.value && isMissing(n, beatAt(all, moment))) return;
    if (isOther) guesses.value = {};
    shown.value = { n, beats: all };
    t.value = moment;
  }
  /** Goes to a part of the strip; Back leads to where it was before. @param {string} name */
  function go(name) {
    const [, kind, layer] = /^(attn|mlp)(\d+)$/.exec(name) ?? [];
    const sought = kind ? kind + now().layer : name;
    const there = beats().find((one) => [0, 0.5, 0.99].some((u) => partAt(one, u) === sought));
    store.set(
      { ...(kind && { layer: Number(layer) }), ...(there && { beat: linkOf(there.id) }) },
      { push: true },
    );
    if (there) player.go(there, still.matches);
  }
  function toggle() {
    if (player.isPlaying.peek()) return player.pause();
    const at = /** @type {Placed} */ (beat.peek());
    if (asks(at) && t.peek() >= at.end - 2 * WAITS)
      guesses.value = { ...guesses.peek(), [at.scene.id]: null };
    player.play();
  }

  effect(() => {
    const [scene] = (store.view.beat.value || OF_STEPS[store.view.step.value] || '').split('-');
    const at = Math.max(0, scenes.findIndex(({ id: one }) => one === scene)); // prettier-ignore
    const needed = scenes.slice(Math.max(0, at - 1), at + 2).flatMap(({ needs = [] }) => needs);
    untracked(() => (near.value = [...new Set([...near.value, ...needed])]));
  });
  effect(() => {
    const n = numbers.value;
    if (n) untracked(() => take(n));
  });
  effect(() => {
    const chosen = store.view.beat.value; // by Back, or by a link
    untracked(() => {
      const there = beats().find((one) => linkOf(one.id) === chosen);
      if (there && there.id !== id.peek()) player.seek(endOf(there));
    });
  });
  effect(() => {
    const link = id.value && linkOf(id.value);
    if (id.value && store.view.tab.peek() === TAB)
      untracked(() => store.set({ beat: link }, { push: false }));
  });
  effect(() => {
    if (store.view.tab.value !== TAB) untracked(() => player.pause());
  });
  return { store, numbers, error, shown, player, beat, part, beats, still, guesses, go, toggle };
}

/** @typedef {ReturnType<typeof lessonOf>} Playing */

/** @param {{page: Page, scenes: Scene[], parts?: Record<string, Part>}} props */
export function Lesson({ page, scenes, parts = {} }) {
  const lesson = useMemo(() => lessonOf(page, scenes), [page]);
  const { store, shown, error, player, beat, part, go } = lesson;
  const place = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => listening(lesson), [lesson]);
  if (!shown.value)
    return html`<${Problem} words=${error.value} stays look="vv-notice" />
      <div class="vv-lesson" aria-busy=${!error.value}></div>`;
  const { n } = shown.value;
  const now = /** @type {Placed} */ (beat.value);
  const { id } = now.scene;
  const isFull = store.view.full.value;
  const fill = () => {
    store.set({ full: !isFull }, { push: false });
    const change = isFull
      ? document.fullscreenElement && document.exitFullscreen()
      : place.current.requestFullscreen?.();
    change?.catch?.(() => {}); // then it fills the window alone
  };
  return html`<div
    class="vv-lesson"
    ref=${place}
    data-beat=${now.id}
    data-playing=${player.isPlaying.value ? '' : undefined}
    data-full=${isFull ? '' : undefined}
    data-gray=${isGray(n) ? '' : undefined}
    aria-busy=${lesson.numbers.value !== n}
  >
    <div class="vv-lesson-top">
      <${Strip} ...${{ n, part: part.value, one: id === 'ask', go }} />
      <div class="vv-lesson-controls">
        <${Buttons} ...${{ lesson, now }} />
        <${Scrub} ...${{ lesson }} />
      </div>
      <div class="vv-lesson-options">
        <${Choice} ...${{ store, name: 'layer', value: n.layer, count: n.trace.layers }} />
        <${Choice} ...${{ store, name: 'head', value: n.head, count: n.trace.heads }} />
        <button
          type="button"
          class="vv-button"
          data-option="full"
          aria-pressed=${String(isFull)}
          onClick=${fill}
        >
          ${isFull ? 'Leave full screen' : 'Full screen'}
        </button>
      </div>
    </div>
    <${Problem} words=${error.value} look="vv-notice" />
    <${Film} ...${{ lesson, n, now }} />
    <${Guessing} key=${id} ...${{ lesson, n, now }} />
    <${WhatIfs} key=${`if-${id}`} ...${{ page, n, whatIf: now.scene.whatIf }} />
    <${Folds} key=${`fold-${id}`} ...${{ n, parts, fold: now.scene.fold }} />
    <p class="vv-small vv-quiet">
      Choose a patch on the photo to follow it. Space plays and stops, ← and → step, Home and End go to the
      ends. Every number is from this model and this photo.
    </p>
  </div>`;
}

/** @param {{lesson: Playing, now: Placed}} props */
function Buttons({ lesson: { player, still, toggle }, now }) {
  const [beats, isPlaying, speed] = [player.beats(), player.isPlaying.value, player.speed.value];
  const at = beats.indexOf(now);
  const step = (/** @type {number} */ by, /** @type {string} */ sign, /** @type {string} */ label) =>
    html`<button
      type="button"
      class="vv-button"
      aria-label=${label}
      title=${`Goes to the beat ${by < 0 ? 'before' : 'after'} this one.`}
      disabled=${!beats[at + by]}
      onClick=${() => player.step(by, still.matches)}
    >
      ${sign}
    </button>`;
  const next = SPEEDS[(SPEEDS.indexOf(speed) + 1) % SPEEDS.length];
  return html`<button
      type="button"
      class="vv-bare vv-lesson-play"
      data-on=${isPlaying ? '' : undefined}
      aria-label=${isPlaying ? 'Pause' : 'Play'}
      title=${isPlaying ? 'Stops the lesson where it is.' : 'Plays the lesson from here on.'}
      onClick=${toggle}
    ></button>
    ${step(-1, '‹', 'One beat back')}${step(1, '›', 'One beat on')}
    <span class="vv-number vv-quiet">${`${at + 1} of ${beats.length}`}</span>
    <button
      type="button"
      class="vv-button vv-lesson-speed vv-number"
      aria-label=${`Speed ${speed}×`}
      title="Changes how fast the lesson plays."
      onClick=${() => void (player.speed.value = next)}
    >
      ${`${speed}×`}
    </button>`;
}

/** The time, with a tick where each beat begins. @param {{lesson: Playing}} props */
function Scrub({ lesson: { player, shown, beat } }) {
  const { n, beats } = /** @type {{n: Numbers, beats: Placed[]}} */ (shown.value);
  const { scene } = /** @type {Placed} */ (beat.value);
  const tick = (/** @type {Placed} */ one, /** @type {number} */ before) =>
    html`<i
      style=${{ left: `${(100 * one.start) / player.end}%` }}
      data-scene=${one.scene === beats[before].scene ? undefined : ''}
    ></i>`;
  return html`<span class="vv-lesson-scrub">
    <input
      type="range"
      aria-label="Time"
      title="Moves through the lesson, back and forth."
      aria-valuetext=${scene.title(n)}
      min="0"
      max=${player.end}
      step="any"
      value=${player.t.value}
      onInput=${(/** @type {any} */ { target }) => player.seek(target.valueAsNumber)}
    />
    <span class="vv-lesson-ticks" aria-hidden="true">${beats.slice(1).map(tick)}</span>
  </span>`;
}

/** Keys play and step wherever they mean nothing else, and it stops while nobody sees it. @param {Playing} lesson @returns what ends that */
function listening({ store, player, still, toggle }) {
  /** @type {Record<string, () => void>} */
  const keys = {
    ' ': toggle,
    ArrowRight: () => player.step(1, still.matches),
    ArrowLeft: () => player.step(-1, still.matches),
    Home: () => player.seek(0),
    End: () => player.seek(player.end),
  };
  const typed = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {Element} */ (event.target);
    const isTaken = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
    const isHere = target === document.body || target.closest('.vv-lesson');
    const others = `select, input:not([type=range]), pre, [role=application]${event.key === ' ' ? ', button, summary, a' : ''}`;
    if (store.view.tab.peek() !== TAB || !keys[event.key] || isTaken) return;
    if (!isHere || target.closest(others)) return;
    event.preventDefault();
    keys[event.key]();
  };
  const hidden = () => document.hidden && player.pause();
  const left = () => document.fullscreenElement || store.set({ full: false }, { push: false });
  window.addEventListener('keydown', typed);
  document.addEventListener('visibilitychange', hidden);
  document.addEventListener('fullscreenchange', left);
  return () => {
    window.removeEventListener('keydown', typed);
    document.removeEventListener('visibilitychange', hidden);
    document.removeEventListener('fullscreenchange', left);
    player.pause();
  };
}
