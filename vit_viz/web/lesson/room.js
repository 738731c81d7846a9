// The Lesson tab: one scene after another, from pixels to the answer, which play, stop and step. The strip of the model stays in sight,
// and one patch, which anybody may choose, is followed from start to end.

import { cellAt, clamp, patchQuery, pointerIn } from '../../explorer/geometry.js';
import { computing } from '../../explorer/labels.js';
import { routeUrl } from '../../explorer/source.js';
import { KEY_WORDS } from '../../ui/kit/elements.js';
import { usePointing } from '../kit/grid.js';
import { thePage } from '../kit/page.js';
import { Pointed, Problem } from '../kit/parts.js';
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
import { Folds } from './folds.js';
import { Guessing } from './guess.js';
import { numbersOf } from './numbers.js';
import { Pen } from './pen.js';
import { Player, SPEEDS } from './player.js';
import { Said } from './say.js';
import { ANSWER } from './scenes/answer.js';
import { ASK } from './scenes/ask.js';
import { CUT } from './scenes/cut.js';
import { DEPTH } from './scenes/depth.js';
import { HEADS } from './scenes/heads.js';
import { Strip } from './strip.js';
import { beatAt, ease, endOf, moved, placed, values, wordsOf } from './timeline.js';
import { WhatIfs } from './what_if.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Part } from './folds.js' */
/** @import { Area } from './pen.js' */
/** @import { Beat, Numbers, Placed, Scene } from './timeline.js' */

const TAB = 'lesson';
/** In the order in which they play. @type {Scene[]} */
export const SCENES = [CUT, ASK, HEADS, DEPTH, ANSWER];
/** What took the places of the Walkthrough's steps, which links of earlier versions name from 1. */
const OF_STEPS = Object.freeze([
  ...['', 'cut-grid', 'cut-embed', 'cut-join', 'cut-place'],
  ...['ask-query', 'heads-all', 'heads-mlp', 'answer-top'],
]);
const WAITS = 0.02; // seconds before its end at which a beat waits for a guess

/** @type {import('../../ui/kit/elements.js').Mount<{parts: Record<string, Part>}>} parts: what Python says of each, by its name */
export function mount(element, { parts }) {
  render(html`<${Lesson} ...${{ page: thePage(), scenes: SCENES, parts }} />`, element);
}

const isMissing = (/** @type {Numbers} */ n, /** @type {Beat} */ beat) =>
  beat.needs?.find((name) => !n[name]);
/** The part of the strip where a beat is. @param {Beat} beat @param {number} u how far into it, in [0, 1] */
const partAt = ({ part }, u) => (typeof part === 'string' ? part : part(u));

/**
 * What plays, and on what numbers. While those of another patch are on their way, the ones before stay, all of one patch.
 * @param {Page} page @param {Scene[]} scenes
 */
function lessonOf(page, scenes) {
  const { store } = page;
  const { numbers, error } = numbersOf(page, TAB);
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  /** @type {import('../kit/preact.js').Signal<{n: Numbers, beats: Placed[]} | null>} */
  const shown = signal(null);
  /** Which guess was made, by the scene. @type {import('../kit/preact.js').Signal<Record<string, number>>} */
  const guesses = signal({});
  const beats = () => shown.peek()?.beats ?? [];
  const player = new Player(beats, (from, to) => {
    const all = beats();
    const now = beatAt(all, from);
    const guess = openGuess(now);
    if (guess && to > now.end - WAITS) return { at: now.end - WAITS, stops: true };
    const next = beatAt(all, to);
    if (next !== now && isMissing(/** @type {any} */ (shown.peek()).n, next))
      return { at: endOf(now), stops: false };
    return null;
  });
  const beat = computed(() => (shown.value ? beatAt(shown.value.beats, player.t.value) : null));
  const id = computed(() => beat.value?.id ?? '');

  /** The guess that a beat waits for. @param {Placed} now */
  function openGuess(now) {
    const { scene } = now;
    const all = beats();
    const next = all[all.indexOf(now) + 1];
    const isOpen = scene.guess && next?.id === scene.guess.before && guesses.value[scene.id] === undefined;
    return isOpen && !isMissing(/** @type {Numbers} */ (shown.peek()?.n), next) ? scene.guess : null;
  }

  effect(() => {
    const n = numbers.value;
    if (!n) return;
    untracked(() => {
      const before = shown.peek();
      const now = placed(scenes, n);
      if (!before) {
        shown.value = { n, beats: now };
        const named = store.view.beat.peek() || OF_STEPS[store.view.step.peek()];
        const link = now.find((one) => one.id === named);
        if (link) player.t.value = endOf(link);
        else if (!still.matches) player.play();
        return;
      }
      const at = beatAt(now, moved(before.beats, now, player.t.peek()));
      const isOther =
        before.n.trace !== n.trace ||
        ['patch', 'layer', 'head'].some(
          (name) => before.n[/** @type {'patch'} */ (name)] !== n[/** @type {'patch'} */ (name)],
        );
      if (isOther && isMissing(n, at) && before.n.trace.photo === n.trace.photo) return;
      const t = moved(before.beats, now, player.t.peek());
      if (isOther) guesses.value = {};
      shown.value = { n, beats: now };
      player.t.value = t;
    });
  });
  effect(() => {
    const chosen = store.view.beat.value; // by Back, or by a link
    untracked(() => {
      const there = beats().find((one) => one.id === chosen) ?? (chosen ? undefined : beats()[0]);
      if (there && there.id !== id.peek()) player.seek(endOf(there));
    });
  });
  effect(() => {
    const now = id.value;
    const first = beats()[0]?.id;
    if (now && store.view.tab.peek() === TAB)
      untracked(() => store.set({ beat: now === first ? '' : now }, { push: false }));
  });
  effect(() => {
    if (store.view.tab.value !== TAB) untracked(() => player.pause());
  });
  /** Goes to a part of the strip, in a way that Back undoes. @param {string} part */
  const go = (part) => {
    const { n } = /** @type {{n: Numbers}} */ (shown.peek());
    const [, kind, layer] = /^(attn|mlp)(\d+)$/.exec(part) ?? [];
    const sought = kind ? `${kind}${n.layer}` : part;
    const there = beats().find((one) => [0, 0.5, 0.99].some((u) => partAt(one, u) === sought));
    if (kind) store.set({ layer: Number(layer) });
    if (!there) return;
    store.set({ beat: there === beats()[0] ? '' : there.id }, { push: true });
    jump(there);
  };
  const jump = (/** @type {Placed} */ there) => {
    player.seek(still.matches ? endOf(there) : there.start);
    if (!still.matches) player.play();
  };
  return { store, numbers, error, shown, player, beat, id, beats, still, guesses, openGuess, go };
}

/** @typedef {ReturnType<typeof lessonOf>} Playing */

/** @param {{page: Page, scenes: Scene[], parts?: Record<string, Part>}} props */
export function Lesson({ page, scenes, parts = {} }) {
  const lesson = useMemo(() => lessonOf(page, scenes), [page]);
  const { store, shown, error, player, beat, still } = lesson;
  const place = useRef(/** @type {any} */ (null));
  const isFull = store.view.full.value;
  useLayoutEffect(() => keysOf(lesson), [lesson]);
  useLayoutEffect(() => {
    const left = () => void (document.fullscreenElement || store.set({ full: false }, { push: false }));
    document.addEventListener('fullscreenchange', left);
    return () => document.removeEventListener('fullscreenchange', left);
  }, [store]);
  if (!shown.value)
    return html`<${Problem} words=${error.value} stays look="vv-notice" />
      <div class="vv-lesson" aria-busy=${!error.value}></div>`;
  const { n } = shown.value;
  const now = /** @type {Placed} */ (beat.value);
  const isBusy = lesson.numbers.value !== n;
  const full = () => {
    if (isFull)
      return void (document.fullscreenElement
        ? document.exitFullscreen()
        : store.set({ full: false }, { push: false }));
    store.set({ full: true }, { push: false });
    void place.current.requestFullscreen?.().catch(() => {}); // then it fills the window
  };
  return html`<div
    class="vv-lesson"
    ref=${place}
    data-beat=${now.id}
    data-scene=${now.scene.id}
    data-playing=${player.isPlaying.value ? '' : undefined}
    data-full=${isFull ? '' : undefined}
    aria-busy=${isBusy}
  >
    <div class="vv-lesson-top">
      <${Way} ...${{ lesson, n }} />
      <div class="vv-lesson-controls">
        <${Buttons} ...${{ player, still, now }} />
        <${Scrub} ...${{ lesson }} />
        <${Points} ...${{ n, store }} />
        <button type="button" class="vv-button vv-lesson-full" aria-pressed=${String(isFull)} onClick=${full}>
          ${isFull ? 'Leave full screen' : 'Full screen'}
        </button>
      </div>
    </div>
    <${Problem} words=${error.value} look="vv-notice" />
    <${Stage} ...${{ lesson, n, now }} />
    <${Guessing} key=${now.scene.id} ...${{ lesson, n, now }} />
    <${WhatIfs} key=${`if-${now.scene.id}`} ...${{ page, n, whatIf: now.scene.whatIf }} />
    <${Folds} key=${`fold-${now.scene.id}`} ...${{ n, parts, fold: now.scene.fold }} />
    <p class="vv-lesson-foot vv-small vv-quiet">
      Choose a patch on the photo to follow it. Space plays and stops, ← and → step, Home and End go to the
      ends. Every number is from this model and this photo.
    </p>
  </div>`;
}

/** The strip, which is drawn anew where another part glows. @param {{lesson: Playing, n: Numbers}} props */
function Way({ lesson: { player, shown, go }, n }) {
  const part = useMemo(
    () =>
      computed(() => {
        const t = player.t.value;
        const at = beatAt(/** @type {any} */ (shown.value).beats, t);
        return partAt(at, clamp((t - at.start) / at.seconds, 0.999));
      }),
    [player],
  );
  const one =
    n.layer === Number(/^attn(\d+)$/.exec(part.value)?.[1]) &&
    shown.value !== null &&
    oneHead(shown.value.beats, player.t.peek());
  return html`<${Strip} ...${{ n, part: part.value, one, go }} />`;
}

/** Whether a scene is about one head. @param {Placed[]} beats @param {number} t */
const oneHead = (beats, t) => beatAt(beats, t).scene.id === 'ask';

/** @param {{player: Player, still: MediaQueryList, now: Placed}} props */
function Buttons({ player, still, now }) {
  const isPlaying = player.isPlaying.value;
  const beats = player.beats();
  const speed = player.speed.value;
  const faster = () => void (player.speed.value = SPEEDS[(SPEEDS.indexOf(speed) + 1) % SPEEDS.length]);
  return html`<button
      type="button"
      class="vv-bare vv-lesson-play"
      data-on=${isPlaying ? '' : undefined}
      aria-label=${isPlaying ? 'Pause' : 'Play'}
      onClick=${() => (isPlaying ? player.pause() : player.play())}
    ></button>
    <button
      type="button"
      class="vv-button vv-lesson-step"
      aria-label="One beat back"
      disabled=${now === beats[0]}
      onClick=${() => player.step(-1, still.matches)}
    >
      ‹
    </button>
    <button
      type="button"
      class="vv-button vv-lesson-step"
      aria-label="One beat on"
      disabled=${now === beats[beats.length - 1]}
      onClick=${() => player.step(1, still.matches)}
    >
      ›
    </button>
    <span class="vv-lesson-count vv-number vv-quiet">${`${beats.indexOf(now) + 1} of ${beats.length}`}</span>
    <button
      type="button"
      class="vv-button vv-lesson-speed vv-number"
      aria-label=${`Speed ${speed}×`}
      onClick=${faster}
    >
      ${`${speed}×`}
    </button>`;
}

/** The time, with a tick where each beat begins. @param {{lesson: Playing}} props */
function Scrub({ lesson: { player, shown } }) {
  const { beats } = /** @type {{beats: Placed[]}} */ (shown.value);
  const all = beats[beats.length - 1].end;
  const now = beatAt(beats, player.t.value);
  return html`<span class="vv-lesson-scrub">
    <input
      type="range"
      aria-label="Time"
      aria-valuetext=${`${now.scene.id}, ${beats.indexOf(now) + 1} of ${beats.length}`}
      min="0"
      max=${player.end}
      step="any"
      value=${player.t.value}
      onInput=${(/** @type {any} */ { target }) => player.seek(target.valueAsNumber)}
    />
    <span class="vv-lesson-ticks" aria-hidden="true">
      ${beats
        .slice(1)
        .map(
          ({ start, scene }, before) =>
            html`<i
              style=${{ left: `${(100 * start) / all}%` }}
              data-scene=${scene === beats[before].scene ? undefined : ''}
            ></i>`,
        )}
    </span>
  </span>`;
}

/** Which layer and head. @param {{n: Numbers, store: Page['store']}} props */
function Points({ n: { trace, layer, head }, store }) {
  const select = (/** @type {string} */ name, /** @type {number} */ value, /** @type {number} */ count) =>
    html`<label class="vv-field"
      >${name}<select
        class="vv-control"
        data-option=${name}
        onChange=${(/** @type {any} */ { target }) => store.set({ [name]: Number(target.value) })}
      >
        ${Array.from({ length: count }, (_, i) => html`<option value=${i} selected=${i === value}>${i}</option>`)}
      </select></label
    >`;
  return html`${select('layer', layer, trace.layers)}${select('head', head, trace.heads)}`;
}

/** Keys play and step, wherever they mean nothing else. @param {Playing} lesson */
function keysOf({ store, player, still }) {
  /** @type {Record<string, () => void>} */
  const keys = {
    ' ': () => (player.isPlaying.peek() ? player.pause() : player.play()),
    ArrowRight: () => player.step(1, still.matches),
    ArrowLeft: () => player.step(-1, still.matches),
    Home: () => player.seek(0),
    End: () => player.seek(player.end),
  };
  const typed = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {Element} */ (event.target);
    const { key, ctrlKey, metaKey, altKey } = event;
    if (store.view.tab.peek() !== TAB || event.defaultPrevented || ctrlKey || metaKey || altKey || !keys[key])
      return;
    const isOurs = target === document.body || target.closest('.vv-lesson');
    const isOthers =
      target.closest('select, input:not([type=range]), [role=application]') ??
      (key === ' ' && target.closest('button, summary, a'));
    if (!isOurs || isOthers) return;
    event.preventDefault();
    keys[key]();
  };
  const hidden = () => document.hidden && player.pause();
  window.addEventListener('keydown', typed);
  document.addEventListener('visibilitychange', hidden);
  return () => {
    window.removeEventListener('keydown', typed);
    document.removeEventListener('visibilitychange', hidden);
    player.pause();
  };
}

// --- the stage

/** What is said, and the picture. @param {{lesson: Playing, n: Numbers, now: Placed}} props */
function Stage({ lesson, n, now }) {
  const { player, guesses } = lesson;
  const { trace } = n;
  const missing = isMissing(n, now);
  const say = missing ? [computing(now.scene.title(n))] : now.say(n);
  const place = useRef(/** @type {any} */ (null));
  const canvas = useRef(/** @type {any} */ (null));
  const photo = useMemo(() => signal(/** @type {Area} */ ({ x: 0, y: 0, w: 0, h: 0 })), []);
  useLayoutEffect(() => drawing(lesson, place.current, canvas.current, photo), [lesson]);
  const words = wordsOf(say, trace.grid[1]);
  void guesses.value;
  return html`<div class="vv-lesson-stage" ref=${place} data-waits=${missing}>
    <section class="vv-lesson-words">
      <h2 class="vv-title">${now.scene.title(n)}</h2>
      <p class="vv-lesson-say" aria-live=${player.isPlaying.value ? 'polite' : 'assertive'}>
        <${Said} ...${{ say, trace }} />
      </p>
    </section>
    <canvas ref=${canvas} role="img" aria-label=${words}></canvas>
    <canvas class="vv-lesson-ghost" aria-hidden="true"></canvas>
    <${Chooser} ...${{ lesson, n, area: photo.value }} />
    <ul class="vv-unseen" data-numbers></ul>
  </div>`;
}

/** What lies over the photo, and takes the patch that is chosen. @param {{lesson: Playing, n: Numbers, area: Area}} props */
function Chooser({ lesson: { store }, n: { trace, patch }, area }) {
  const [rows, cols] = trace.grid;
  const choose = (/** @type {number | null} */ one) =>
    store.set({ q: one === null ? '' : patchQuery([one], cols) });
  const { at, leave, keys } = usePointing({ grid: trace.grid, pinned: patch, choose });
  const placeOf = (/** @type {number} */ one) => ({
    left: `${(100 * (one % cols)) / cols}%`,
    top: `${(100 * Math.floor(one / cols)) / rows}%`,
    width: `${100 / cols}%`,
    height: `${100 / rows}%`,
  });
  const clicked = (/** @type {MouseEvent} */ event) => {
    const cell = cellAt(pointerIn(event, /** @type {Element} */ (event.currentTarget)), trace.grid);
    if (cell) choose(cell[0] * cols + cell[1]);
  };
  return html`<div
    class="vv-lesson-photo"
    data-photo
    tabindex="0"
    role="application"
    aria-label=${`The photo; choose a patch to follow it. ${KEY_WORDS}`}
    style=${{ left: `${area.x}px`, width: `${area.w}px`, height: `${area.h}px` }}
    ...${keys}
    onPointerMove=${() => leave()}
    onClick=${clicked}
  >
    <${Pointed} ...${{ at, cols, placeOf }} />
  </div>`;
}

/**
 * Draws whatever changes: the time, the numbers, the size, the colours, the photo.
 * @param {Playing} lesson @param {HTMLElement} place @param {HTMLCanvasElement} canvas
 * @param {import('../kit/preact.js').Signal<Area>} photo told where it lies
 */
function drawing({ shown, player, store, still }, place, canvas, photo) {
  const loaded = signal(/** @type {HTMLImageElement | null} */ (null));
  const measured = signal(0);
  /** @type {Pen | null} */
  let pen = null;
  let before = '';
  const image = effect(() => {
    const src = routeUrl(/** @type {any} */ (shown.value).n.trace.photo);
    if (untracked(() => loaded.value?.getAttribute('src')) === src) return;
    const one = Object.assign(new Image(), { src });
    one.decode().then(
      () => void (loaded.value = one),
      () => {}, // a photo that cannot be fetched is told of by the page
    );
  });
  const key = computed(() => {
    const { n } = /** @type {{n: Numbers}} */ (shown.value);
    return [
      measured.value,
      n.trace.photo,
      n.trace.crop.region,
      n.trace.grid,
      n.tokens?.facts.channels,
      store.view.full.value,
    ].join();
  });
  const made = effect(() => {
    void key.value;
    if (!loaded.value || !place.clientWidth) return;
    untracked(() => {
      const { n } = /** @type {{n: Numbers}} */ (shown.peek());
      const isFull = store.view.full.peek();
      const top = place.getBoundingClientRect().top + (isFull ? 0 : window.scrollY);
      pen = new Pen(canvas, {
        trace: n.trace,
        image: /** @type {HTMLImageElement} */ (loaded.peek()),
        tallest: window.innerHeight - top,
        words: place.clientWidth < 1000 ? 170 : 136,
        gray: n.tokens?.facts.channels === 1,
      });
      place.style.setProperty('--vv-lesson-unit', String(pen.unit));
      place.style.setProperty('--vv-lesson-beside', `${pen.work.x}px`);
      place.toggleAttribute('data-wide', pen.wide);
      photo.value = { ...pen.photo, y: canvas.offsetTop };
    });
    paint();
  });
  const paint = () => {
    if (!pen || !shown.value) return;
    const { n, beats } = shown.value;
    const t = player.t.value;
    let at = beatAt(beats, t);
    let moment = still.matches ? endOf(at) : t;
    while (isMissing(n, at) && at !== beats[0]) {
      at = beats[beats.indexOf(at) - 1];
      moment = endOf(at);
    }
    if (still.matches && before && before !== at.id) crossfade(canvas);
    before = at.id;
    const began = performance.now();
    pen.clear();
    const v = values(beats, moment);
    picture(pen, beats, at, v, n);
    if (v[at.id] === 1) list(place, pen);
    const took = performance.now() - began;
    Object.assign(place, {
      drawn: { at: at.id, took, worst: Math.max(took, /** @type {any} */ (place).drawn?.worst ?? 0) },
    });
    place.dataset.drawn = at.id;
  };
  const drawn = effect(paint);
  const again = () => void (measured.value += 1);
  const fit = new ResizeObserver(again);
  fit.observe(place);
  const theme = new MutationObserver(again);
  theme.observe(document.body, { attributes: true, attributeFilter: ['class'] });
  return () => {
    for (const end of [image, made, drawn]) end();
    fit.disconnect();
    theme.disconnect();
  };
}

/** The scene of a beat; at its beginning the one before it goes, and only then it comes. @param {Pen} pen @param {Placed[]} beats @param {Placed} at @param {Record<string, number>} v @param {Numbers} n */
function picture(pen, beats, at, v, n) {
  const first = beats.findIndex(({ scene }) => scene === at.scene);
  const last = beats[first - 1];
  const share = last && !isMissing(n, last) ? ease(v[beats[first].id]) : 1;
  if (share < 1) {
    const { x, y, w, h } = pen.photo;
    pen.lit(null, x, y, w, h, share * 2.5);
    pen.within(1 - share * 2.5, () => last.scene.draw(pen, v, n, last.id));
    pen.within(share * 2 - 1, () => at.scene.draw(pen, v, n, at.id));
  } else at.scene.draw(pen, v, n, at.id);
}

/** The numbers of the picture, for whoever listens, once they stand. @param {HTMLElement} place @param {Pen} pen */
function list(place, { numbers }) {
  const ul = place.querySelector('[data-numbers]');
  const key = [...numbers].map(([id, { value }]) => `${id} ${value}`).join();
  if (!ul || ul.getAttribute('data-numbers') === key) return;
  ul.setAttribute('data-numbers', key);
  ul.replaceChildren(
    ...[...numbers].map(([id, { value, text }]) => {
      const item = document.createElement('li');
      Object.assign(item.dataset, { number: id, value: String(value) });
      item.textContent = text;
      return item;
    }),
  );
}

/** The last still lies over the new one, and fades. @param {HTMLCanvasElement} canvas */
function crossfade(canvas) {
  const ghost = /** @type {HTMLCanvasElement} */ (canvas.nextElementSibling);
  Object.assign(ghost, { width: canvas.width, height: canvas.height });
  ghost.style.height = canvas.style.height;
  ghost.getContext('2d')?.drawImage(canvas, 0, 0);
  ghost.animate([{ opacity: 1 }, { opacity: 0 }], 500);
}
