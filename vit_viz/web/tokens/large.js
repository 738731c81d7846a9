// The large photo: the chosen cell of the table over it, the scale of that, rings, and a box that is drawn; what is said of it; and a
// second photo that shares its colours.

import { clamp, pointerIn } from '../../explorer/geometry.js';
import { Picture } from '../../explorer/paint.js';
import { sharpness } from '../../explorer/screen.js';
import { STRENGTHS } from '../../explorer/styles.js';
import { gradient } from '../../ui/kit/elements.js';
import { short, stopsOf } from '../../ui/kit/numbers.js';
import { Found, PhotoStage, Toggle, placeOfRect } from '../kit/parts.js';
import { effect, html, useLayoutEffect, useMemo, useRef } from '../kit/preact.js';
import { coloursOf } from './colours.js';
import { Plate } from './plate.js';
import { QUESTIONS, litSegment } from './questions.js';
import { WORDS } from './table.js';
/** @import { Parts, Ready } from './room.js' */
/** @import { Scene } from './scene.js' */

/** @param {Parts} parts */
export function Large(parts) {
  const { scene, options, choose } = parts;
  const size = scene?.subject.photo_size;
  const isUnlit = scene && scene.style !== options.style;
  return html`<div class="vv-tokens-left vv-stack" style=${size && { '--vv-aspect': size[1] / size[0] }}>
    ${scene ? html`<${Stage} ...${parts} />` : html`<div class="vv-stage vv-tokens-main-stage"></div>`}
    <div class="vv-tokens-under vv-row">
      <${Scale} scene=${scene} />
      ${isUnlit && html`<span class="vv-tokens-unlit vv-small">tint, as this photo is ${scene.subject.unlit}</span>`}
      <${Toggle}
        ...${{ name: 'value', option: 'style', label: 'How values change the photo', value: options.style }}
        choices=${Object.keys(STRENGTHS).map((style) => [style, style])}
        choose=${(/** @type {any} */ style) => choose({ style })}
      />
    </div>
    <${Said} scene=${scene} />
  </div>`;
}

/** @param {{scene: Scene | null}} props */
function Said({ scene }) {
  const title = scene?.say('title');
  const pending = scene && !title && !scene.held.errorOf(scene.measure) && WORDS[scene.measure].row;
  return html`<${Found} look="vv-tokens-caption" words=${title} pending=${pending} />
    <p class="vv-tokens-readout vv-readout vv-quiet">${scene?.say('readout')}</p>`;
}

/** The scale; its place stays where there is none, so that nothing jumps. @param {{scene: Scene | null}} props */
function Scale({ scene }) {
  const background = useMemo(() => scene && gradient(stopsOf(scene.bar)), [scene]);
  const drawing = scene?.drawing();
  const [low, high] = drawing && 'range' in drawing ? drawing.range.map(short) : [];
  return html`<div class="vv-tokens-bar vv-bar" data-none=${low ? undefined : ''}>
    <span class="vv-low">${low}</span><span class="vv-strip" aria-hidden="true" style=${{ background }}></span
    ><span class="vv-high">${high}</span>
    <span class="vv-unit">${scene && low && QUESTIONS[scene.measure].unit(scene)}</span>
  </div>`;
}

/** @param {Parts & {scene: Scene}} parts */
function Stage({ scene, ready, boxing, choose, pin }) {
  const { held, measure, options, patch, state, subject } = scene;
  const image = useRef(/** @type {HTMLImageElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const plate = useMemo(() => new Plate(), []);
  const drawn = useRef(''); // what is shown
  useLayoutEffect(() => {
    const { current } = image;
    const loaded = () => (ready.value = { image: current });
    current?.addEventListener('load', loaded);
    loaded();
    return () => current?.removeEventListener('load', loaded);
  }, [subject.photo]);
  const paint = () => {
    const sheet = /** @type {HTMLCanvasElement} */ (canvas.current);
    const drawing = scene.drawing();
    const lit = measure === 'segments' && drawing && litSegment(scene, scene.told(measure, state));
    const isReady = prepare(sheet, plate, ready.value, subject);
    const key = scene.keyOf(measure, state);
    const full = key && [key, lit, sheet.width, isReady].join('|');
    if (full && full === drawn.current) return;
    drawn.current = full;
    if (!drawing) sheet.getContext('2d')?.clearRect(0, 0, sheet.width, sheet.height);
    else if (isReady) scene.drawOn(sheet, plate, drawing);
  };
  useLayoutEffect(() => effect(paint), [scene]);
  /** @type {[number, string][]} */
  const rings = scene.outliers().map((/** @type {number} */ outlier) => [outlier, 'vv-ring vv-outlier']);
  if (patch !== undefined) rings.push([patch, 'vv-ring']);
  const box = measure === 'segments' ? readBox(held.drawing.value || options.token_box) : null;
  const { isBox, listening } = useBox({ scene, boxing, choose });
  return html`<${PhotoStage}
    ...${{ photo: subject, rings, image, map: canvas, label: 'The photo, with the chosen cell of the table over it', more: listening, pinned: scene.patchOf(scene.pinned) }}
    point=${(/** @type {number | null} */ pointed) => held.point(pointed)}
    look=${`vv-tokens-main-stage ${boxing.value ? 'vv-drawing' : ''}`}
    choose=${(/** @type {number | null} */ chosen, /** @type {Event} */ { type }) => {
      if (type === 'keydown' || !isBox.current) pin(chosen ?? '');
    }}
  >
    ${box && html`<span class="vv-ring vv-object" aria-hidden="true" style=${placeOfRect(subject.crop, box)}></span>`}
  <//>`;
}

/**
 * Lets the pointer ask about patches, and draw a box while the button for it is on.
 * @param {Pick<Parts, 'boxing' | 'choose'> & {scene: Scene}} props
 * @returns {{isBox: {current: boolean}, listening: Record<string, (event: PointerEvent) => void>}} isBox: whether the last press on the
 *     photo began a box: its click chooses no patch
 */
function useBox({ scene: { held, subject }, boxing, choose }) {
  const isBox = useRef(false);
  const from = useRef(/** @type {[number, number] | null} */ (null)); // where the box begins
  const pointAt = (/** @type {PointerEvent} */ event) => {
    const [height, width] = subject.crop.original;
    const [down, across] = pointerIn(event, /** @type {Element} */ (event.currentTarget));
    return /** @type {[number, number]} */ ([down * height, across * width]);
  };
  const boxTo = (/** @type {PointerEvent} */ event) =>
    from.current ? boxText(from.current, pointAt(event), subject.crop.original) : '';
  const ended = (/** @type {PointerEvent} */ event) => {
    const text = event.type === 'pointerup' ? boxTo(event) : '';
    from.current = null;
    held.drawing.value = '';
    if (!text) return;
    boxing.value = false;
    choose({ token_box: text });
  };
  const listening = {
    onPointerDown(/** @type {PointerEvent} */ event) {
      isBox.current = boxing.value;
      if (!isBox.current) return;
      event.preventDefault();
      /** @type {Element} */ (event.currentTarget).setPointerCapture(event.pointerId);
      from.current = pointAt(event);
    },
    onPointerMove(/** @type {PointerEvent} */ event) {
      held.drawing.value = boxTo(event);
    },
    onPointerUp: ended,
    onPointerCancel: ended,
  };
  return { isBox, listening };
}

/** Whether a map can be drawn on a photo; then the canvas has as many pixels as it takes on the screen. @param {HTMLCanvasElement} canvas @param {Plate} plate @param {Ready} ready @param {import('../kit/parts.js').Photo} photo */
function prepare(canvas, plate, { image }, { crop }) {
  const { offsetWidth: width = 0, offsetHeight: height = 0 } = canvas.parentElement ?? {}; // also while it is shown smaller
  const scale = sharpness({ width, height }, window.devicePixelRatio || 1);
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) };
  if (!image || !plate.prepare(image, crop, size)) return false;
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
  return true;
}

/** The photo that shares the colours. @param {{scene: Scene, ready: Parts['ready']}} props */
export function Second({ scene, ready }) {
  const image = useRef(/** @type {HTMLImageElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const plate = useMemo(() => new Plate(), []);
  const told = scene.measure === 'components' && scene.told('components', scene.state);
  const photo = told?.second;
  void ready.value; // drawn anew where the window has another size
  useLayoutEffect(() => {
    const paint = () => {
      if (!canvas.current || !prepare(canvas.current, plate, { image: image.current }, photo)) return;
      const map = new Picture(undefined, photo.grid[1], photo.grid[0]);
      map.set(coloursOf(told)[1][scene.state]);
      plate.draw(canvas.current, map.canvas, 'colours', scene.options.smooth);
    };
    paint();
    const { current } = image;
    current?.addEventListener('load', paint);
    return () => current?.removeEventListener('load', paint);
  });
  return photo && html`<${PhotoStage} ...${{ photo, image, map: canvas, look: 'vv-tokens-second-stage' }} />`;
}

// --- the box, on the photo or typed as left,top,right,bottom

const TEXT = /^\d{1,6}(,\d{1,6}){3}$/;

/** The box of a text, top, left, bottom, right; null where it is none. @param {string} text */
export function readBox(text) {
  if (!TEXT.test(text)) return null;
  const [left, top, right, bottom] = text.split(',').map(Number);
  return left < right && top < bottom ? [top, left, bottom, right] : null;
}

/** The text of a box between two points, y and x in pixels of the original, within the photo. @param {[number, number]} from @param {[number, number]} to @param {[number, number]} size height, width */
function boxText(from, to, size) {
  const ends = (/** @type {0 | 1} */ axis) =>
    [from[axis], to[axis]].sort((a, b) => a - b).map((at) => Math.round(clamp(at, size[axis])));
  const [[top, bottom], [left, right]] = [ends(0), ends(1)];
  return left < right && top < bottom ? [left, top, right, bottom].join(',') : '';
}
