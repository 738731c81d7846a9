// The stage of the lesson: what is said, the picture, and the photo in it, on which a patch is chosen.

import { cellAt, patchQuery, pointerIn } from '../../explorer/geometry.js';
import { computing } from '../../explorer/labels.js';
import { routeUrl } from '../../explorer/source.js';
import { KEY_WORDS } from '../../ui/kit/elements.js';
import { usePointing } from '../kit/grid.js';
import { Pointed } from '../kit/parts.js';
import { effect, html, signal, untracked, useLayoutEffect, useMemo, useRef } from '../kit/preact.js';
import { NARROW, Pen } from './pen.js';
import { Said } from './say.js';
import { beatAt, ease, endOf, isGray, isMissing, values, wordsOf } from './timeline.js';
/** @import { Signal } from '../kit/preact.js' */
/** @import { Area } from './pen.js' */
/** @import { Playing } from './room.js' */
/** @import { Numbers, Placed } from './timeline.js' */

const WORDS = [136, 170]; // units that the words beside the photo take, and where they have less room
const BELOW = 134; // pixels that they take below it
const LOW = 500; // pixels of a window so low that header and tabs are scrolled away
const FADES = 500; // milliseconds in which one still becomes the next

/** @param {{lesson: Playing, n: Numbers, now: Placed}} props */
export function Film({ lesson, n, now }) {
  const { trace } = n;
  const missing = isMissing(n, now);
  const title = now.scene.title(n);
  const say = missing ? [computing(title)] : now.say(n);
  const place = useRef(/** @type {any} */ (null));
  const photo = useMemo(() => signal(/** @type {Area} */ ({ x: 0, y: 0, w: 0, h: 0 })), []);
  useLayoutEffect(() => drawing(lesson, place.current, photo), [lesson]);
  return html`<div class="vv-lesson-stage" ref=${place} data-waits=${missing}>
    <section class="vv-lesson-words">
      <h2 class="vv-title">${title}</h2>
      <p class="vv-lesson-say" aria-live="polite"><${Said} ...${{ say, trace }} /></p>
    </section>
    <div class="vv-lesson-film">
      <canvas role="img" aria-label=${wordsOf(say, trace.grid[1])}></canvas>
      <canvas class="vv-layer" style=${{ opacity: 0 }} aria-hidden="true"></canvas>
      <${Chooser} ...${{ lesson, n, area: photo.value }} />
    </div>
    <ul class="vv-unseen" data-numbers></ul>
  </div>`;
}

/** What lies over the photo, and takes the patch that is chosen. @param {{lesson: Playing, n: Numbers, area: Area}} props */
function Chooser({ lesson: { store }, n: { trace, patch }, area: { x, y, w, h } }) {
  const { grid } = trace;
  const [rows, cols] = grid;
  const choose = (/** @type {number | null} */ one) =>
    store.set({ q: one === null ? '' : patchQuery([one], cols) });
  const { at, leave, keys } = usePointing({ grid, pinned: patch, choose });
  const placeOf = (/** @type {number} */ one) => ({
    left: `${(100 * (one % cols)) / cols}%`,
    top: `${(100 * Math.floor(one / cols)) / rows}%`,
    width: `${100 / cols}%`,
    height: `${100 / rows}%`,
  });
  const clicked = (/** @type {MouseEvent} */ event) => {
    const cell = cellAt(pointerIn(event, /** @type {Element} */ (event.currentTarget)), grid);
    if (cell) choose(cell[0] * cols + cell[1]);
  };
  return html`<div
    class="vv-lesson-photo"
    data-photo
    tabindex="0"
    role="application"
    aria-label=${`The photo: choose a patch to follow it. ${KEY_WORDS}`}
    style=${{ left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${h}px` }}
    ...${keys}
    onPointerMove=${() => leave()}
    onClick=${clicked}
  >
    <${Pointed} ...${{ at, cols, placeOf }} />
  </div>`;
}

/**
 * Draws whatever changes: the time, the numbers, the size, the colours, the photo.
 * @param {Playing} lesson @param {HTMLElement} place @param {Signal<Area>} photo told where it lies @returns what ends that
 */
function drawing({ shown, player, store, still }, place, photo) {
  const canvas = /** @type {HTMLCanvasElement} */ (place.querySelector('canvas'));
  const loaded = signal(/** @type {HTMLImageElement | null} */ (null));
  const measured = signal('');
  const numbers = () => /** @type {{n: Numbers, beats: Placed[]}} */ (shown.value);
  /** @type {Pen | null} */
  let pen = null;
  let [made, before] = ['', ''];
  const list = /** @type {HTMLElement} */ (place.querySelector('[data-numbers]'));
  /** @type {Numbers | null} whose numbers it has */
  let toldOf = null;
  const load = () => {
    const src = routeUrl(numbers().n.trace.photo);
    if (untracked(() => loaded.value)?.getAttribute('src') === src) return;
    const image = Object.assign(new Image(), { src });
    const done = () => {
      if (routeUrl(shown.peek()?.n.trace.photo ?? '') === src) loaded.value = image; // not one that came late
    };
    image.decode().then(done, () => {}); // of a photo that cannot be fetched the page tells
  };
  const make = () => {
    const { n } = numbers();
    const { trace } = n;
    const image = loaded.value;
    const { clientWidth: width } = place;
    if (!width || image?.getAttribute('src') !== routeUrl(trace.photo)) return null;
    const isFull = store.view.full.value;
    const key = [measured.value, trace.photo, trace.crop.region, trace.grid, isGray(n), isFull].join();
    if (key === made) return pen;
    made = key;
    const top = place.getBoundingClientRect().top + (isFull ? 0 : window.scrollY);
    const lesson = /** @type {HTMLElement} */ (place.parentElement);
    const [strip, controls] = lesson.querySelectorAll('.vv-lesson-strip, .vv-lesson-controls');
    const isFoot = getComputedStyle(controls).position !== 'static';
    const tallest =
      Math.max(window.innerHeight - top, Math.min(LOW, window.innerHeight) - strip.clientHeight) -
      (isFoot ? controls.clientHeight : 0);
    pen = new Pen(canvas, {
      trace,
      image,
      tallest,
      words: width > NARROW ? WORDS[width < 1000 ? 1 : 0] : BELOW,
      gray: isGray(n),
    });
    lesson.style.setProperty('--vv-lesson-unit', String(pen.unit));
    place.style.setProperty('--vv-lesson-beside', `${pen.work.x}px`);
    place.toggleAttribute('data-wide', pen.wide);
    photo.value = pen.photo;
    return pen;
  };
  const paint = () => {
    const { n, beats } = numbers();
    const ready = make();
    let at = beatAt(beats, player.t.value);
    let moment = still.matches ? endOf(at) : player.t.value;
    for (; isMissing(n, at) && at !== beats[0]; moment = endOf(at)) at = beats[beats.indexOf(at) - 1];
    if (!ready) return;
    if (still.matches && before && before !== at.id) crossfade(canvas);
    before = at.id;
    const v = values(beats, moment);
    ready.clear();
    picture(ready, beats, at, v, n);
    if (v[at.id] === 1 && !(list.dataset.numbers === at.id && toldOf === n)) {
      tell(list, at.id, ready);
      toldOf = n;
    }
    place.dataset.drawn = at.id;
  };
  let frame = 0;
  /** However much changes, it is drawn once before it is seen. */
  const draw = () => {
    void [shown.value, player.t.value, loaded.value, measured.value, store.view.full.value];
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      paint();
    });
  };
  const again = () => {
    measured.value = [place.clientWidth, window.innerHeight, document.body.className].join();
  };
  again();
  const ends = [effect(load), effect(draw)];
  const fit = new ResizeObserver(again);
  fit.observe(place);
  const theme = new MutationObserver(again);
  theme.observe(document.body, { attributes: true, attributeFilter: ['class'] });
  return () => {
    for (const end of ends) end();
    cancelAnimationFrame(frame);
    fit.disconnect();
    theme.disconnect();
  };
}

/**
 * The scene of a beat; at its beginning the one before it goes, and only then it comes.
 * @param {Pen} pen @param {Placed[]} beats @param {Placed} at @param {Record<string, number>} v @param {Numbers} n
 */
function picture(pen, beats, at, v, n) {
  const first = beats.findIndex(({ scene }) => scene === at.scene);
  const last = beats[first - 1];
  const share = last && !isMissing(n, last) ? ease(v[beats[first].id]) : 1;
  if (share < 1) {
    pen.lit(null, pen.photo, share * 2.5);
    pen.within(1 - share * 2.5, () => last.scene.draw(pen, v, n, last.id));
  }
  pen.within(share * 2 - 1, () => at.scene.draw(pen, v, n, at.id));
}

/** Tells the numbers of a picture that stands, with all their digits, to whoever listens. @param {HTMLElement} list @param {string} beat @param {Pen} pen */
function tell(list, beat, { numbers }) {
  const items = [...numbers].map(([id, { value, text }]) => {
    const item = Object.assign(document.createElement('li'), { textContent: `${id}: ${text}` });
    Object.assign(item.dataset, { number: id, value });
    return item;
  });
  list.dataset.numbers = beat;
  list.replaceChildren(...items);
}

/** The last still lies over the new one, and fades. @param {HTMLCanvasElement} canvas */
function crossfade(canvas) {
  const ghost = /** @type {HTMLCanvasElement} */ (canvas.nextElementSibling);
  Object.assign(ghost, { width: canvas.width, height: canvas.height });
  ghost.style.height = canvas.style.height;
  ghost.getContext('2d')?.drawImage(canvas, 0, 0);
  ghost.animate([{ opacity: 1 }, { opacity: 0 }], FADES);
}
