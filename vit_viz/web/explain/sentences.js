// The sentences that a picture is asked about, of a model with a text tower: written, chosen, taken away, and how they are read. The link
// holds them as the server has cleaned them, so that a number in the link means the same sentence on both sides.

import { Picture } from '../../explorer/paint.js';
import { fixed, number } from '../../ui/kit/numbers.js';
import { SaveLink } from '../kit/figure.js';
import { MapOnPhoto, endsOf, mapIn } from '../kit/map.js';
import { PhotoStage, Problem, Unlike, useAsked, useJob } from '../kit/parts.js';
import { html, useMemo } from '../kit/preact.js';
import { TARGETED } from '../kit/store.js';
import { segmentColour, segmentPixels } from '../tokens/plate.js';
import { drawingOf, testedOf } from './maps.js';
/** @import { Page } from '../kit/page.js' */
/** @import { Choices, Entry, Target } from '../kit/parts.js' */
/** @import { Of } from './maps.js' */
/** @import { Method } from './staged.js' */

const BETWEEN = ' | ';
const OPACITY = 140; // of 255: the photo is seen below a colour
const PATCH = /^(\d+),(\d+)$/;
const WITH_PICTURE = /(^| \| )@/;
const AMONG_SENTENCES =
  'Which sentence fits each patch best is shown among sentences alone: pictures lie nearer to each other than to sentences.';

/**
 * The link with one sentence less; the others stay what they are.
 * @param {string[]} all @param {number} place of that which goes @param {number[]} pair the places of what is explained, and of what it is set against
 */
export function without(all, place, pair) {
  const left = pair[0] === place ? [] : pair.filter((one) => one !== place);
  return {
    sentences: all.filter((_, i) => i !== place).join(BETWEEN),
    target: left.map((one) => (one > place ? one - 1 : one)).join('-'),
  };
}

/**
 * @param {{page: Page, photos?: {id: string, name: string}[], target: Target, names?: Entry[], pair: number[], why: Choices['why'], unlike: NonNullable<Choices['unlike']>, title: any}} props
 *     target: what was known last; names: the sentences of this link, once they are known; pair: those that are chosen
 */
export function Sentences({ page, photos = [], target, names, pair, why, unlike, title }) {
  const { store } = page;
  const parts = store.view.sentences.value.split('|').map((/** @type {string} */ one) => one.trim());
  const written = [...new Set(parts)].filter(Boolean); // as the server reads the link, also of one that it has not cleaned
  const classes = (names ?? written.map((name) => ({ name }))).map(({ name }, index) => ({ name, index }));
  const [chosen, other = null] = pair;
  const { examples = [], words = '', reads } = target;
  const writing = useWriting(page, 'sentences');
  const chip = (/** @type {typeof classes[number]} */ { name, index }) =>
    html`<span key=${written[index]} class="vv-written" dir="auto">
      <button
        type="button"
        class="vv-chip"
        title=${name}
        aria-pressed=${String(index === chosen)}
        onClick=${() => why(index)}
      >
        <span class="vv-class">${name}</span>
      </button>
      <button
        type="button"
        class="vv-take vv-bare"
        aria-label=${`Take “${name}” away`}
        onClick=${() => store.set(without(written, index, pair), { push: true })}
      >
        ×
      </button>
    </span>`;
  return html`<div class="vv-target vv-sentences vv-row">
    <div class="vv-target-row vv-row" role="group" aria-label="What is explained">
      ${title} ${classes.map(chip)}
      ${
        reads &&
        html`<form class="vv-write" data-option="sentences" onSubmit=${writing.send}>
          <input
            class="vv-control"
            dir="auto"
            autocomplete="off"
            enterkeyhint="go"
            placeholder="write a sentence, Enter …"
            aria-label="A sentence that is asked about"
            aria-invalid=${String(Boolean(writing.error))}
          />
        </form>`
      }
    </div>
    <${Problem} words=${writing.error} look="vv-refused vv-notice" />
    ${classes.length > 1 && html`<${Unlike} ...${{ classes, chosen, other, unlike }} />`}
    <p class="vv-target-words" hidden=${!words}>
      ${words}
      ${
        !written.length &&
        examples.length > 0 &&
        html` Write one, or try:
        ${examples.map(
          (one) =>
            html` <button type="button" class="vv-chip vv-example" onClick=${() => writing.write(one)}>
              ${one}
            </button>`,
        )}`
      }
    </p>
    <${Likes} ...${{ write: writing.write, photos, view: store.view }} />
    ${reads && html`<${Templates} page=${page} />`}
  </div>`;
}

/**
 * What a picture may be compared with in place of a sentence: another photo, or the patch that is looked at.
 * @param {{write: (written: string) => void, photos: {id: string, name: string}[], view: Page['store']['view']}} props
 */
function Likes({ write, photos, view }) {
  const image = view.image.value;
  const patch = PATCH.exec(view.q.value);
  const others = photos.filter(({ id }) => id !== image);
  return html`<span class="vv-likes vv-row vv-small">
    <select
      class="vv-control"
      aria-label="More like another photo"
      value=""
      onChange=${(/** @type {any} */ { currentTarget }) => write(`@${currentTarget.value}`)}
    >
      <option value="">like another photo …</option>
      ${others.map(({ id, name }) => html`<option key=${id} value=${id}>${name}</option>`)}
    </select>
    ${
      patch &&
      html`<button
        type="button"
        class="vv-chip"
        title="The patch that Look is about"
        onClick=${() => write(`@${image} ${patch[0]}`)}
      >
        like patch (${patch[1]}, ${patch[2]})
      </button>`
    }
  </span>`;
}

/**
 * A field whose text the server cleans for the link or refuses, which is told beside it; what is refused stays in it.
 * @param {Page} page @param {'sentences' | 'templates'} name what is written there
 */
function useWriting({ store, ask }, name) {
  const job = useJob();
  const write = (/** @type {string} */ written, /** @type {HTMLInputElement | null} */ field = null) => {
    const body = { view: store.linkOf(TARGETED), [name]: written };
    const whole = (/** @type {any} */ link) => {
      if (name === 'sentences' && field?.value === written) field.value = ''; // the next one may be on its way
      store.set(link, { push: true });
    };
    void job.follow((stop) => ask('target', body, stop), { whole }).catch(() => {}); // the job says why
  };
  const send = (/** @type {any} */ event) => {
    event.preventDefault();
    const field = event.currentTarget.querySelector('input');
    write(field.value, field);
  };
  return { write, send, error: job.error };
}

/** How sentences are read. @param {{page: Page}} props */
function Templates({ page }) {
  const { value } = page.store.view.templates;
  const { send, error } = useWriting(page, 'templates');
  return html`<details class="vv-templates vv-small" data-option="templates">
    <summary>Read as ${value ? `“${value}”` : 'they are written'}</summary>
    <form class="vv-row" onSubmit=${send}>
      <input
        class="vv-control"
        dir="auto"
        autocomplete="off"
        key=${value}
        defaultValue=${value}
        placeholder="a photo of {}."
        aria-label="How sentences are read"
        aria-invalid=${String(Boolean(error))}
      />
      <button type="submit" class="vv-button">Read so</button>
    </form>
    <${Problem} words=${error} look="vv-refused vv-notice" />
    <p class="vv-quiet">
      {} is where the sentence goes. Of several, with | between them, the mean is taken. Other words around a
      sentence give other answers.
    </p>
  </details>`;
}

// --- all sentences

/**
 * The maps of all sentences by one method, on one scale; a click chooses the sentence.
 * @param {{page: Page, of: Of, methods: Method[], tables: Record<string, Uint32Array>, why: Choices['why']}} props
 */
export function EverySentence({ page: { store, ask }, of, methods, tables, why }) {
  const quick = methods.filter(({ blind, slow }) => !blind && !slow);
  const method = quick.find(({ name }) => name === store.view.method.value) ?? quick[0];
  const body = { ...testedOf(store, of, method?.name ?? ''), target: undefined }; // it is about all of them
  const { state, value, error } = useAsked(
    async (name, { body: asked, of: its }, stop) => ({ answer: await ask(name, asked, stop), of: its }),
    method && ['class_maps', { body, of }],
  );
  const maps = useMemo(() => value && mapsIn(value.answer), [value]);
  if (!method || error) return html`<p class="vv-small vv-quiet">${error}</p>`;
  const drawing = drawingOf(store);
  const ends = maps && endsOf(value.answer.arrays.values.data, maps[0].signed, drawing.clip);
  const isBusy = state === 'pending';
  const tile = (/** @type {any} */ map, /** @type {number} */ i) => {
    const { photo, target } = value.of;
    const { name, cosine } = target.classes[i];
    return html`<button
      key=${i}
      type="button"
      class="vv-side vv-bare"
      aria-pressed=${String(of.target.chosen === i)}
      onClick=${() => why(i)}
    >
      <${MapOnPhoto} ...${{ map, ends, drawing, tables, photo }} />
      <span class="vv-class" dir="auto" title=${name}>${name}</span>
      <span class="vv-small vv-quiet">cosine ${fixed(cosine, 2)}</span>
    </button>`;
  };
  return html`<section class=${`vv-every ${isBusy ? 'vv-busy' : ''}`} aria-busy=${String(isBusy)}>
    <div class="vv-gallery-head vv-row">
      <h3 class="vv-title">Every sentence, on one scale</h3>
      ${maps && html`<${SaveLink} save=${store.saved('class_maps', body)} />`}
    </div>
    <div class="vv-sides">${maps ? maps.map(tile) : 'Making the maps …'}</div>
    <p class="vv-small vv-quiet">
      ${method.label}${maps && `, from ${number(ends[0])} to ${number(ends[1])}. ${value.answer.words}`}
    </p>
  </section>`;
}

/** Which sentence fits each patch best. @param {{page: Page, of: Of}} props */
export function BestSentence({ page: { store, ask }, of }) {
  const isPictured = WITH_PICTURE.test(of.about.sentences);
  const { state, value, error } = useAsked(
    async (name, { about, photo }, stop) => ({ answer: await ask(name, about, stop), photo }),
    !isPictured && ['sentence_patches', of],
  );
  const missing = isPictured ? AMONG_SENTENCES : error;
  if (isPictured || !value)
    return html`<p class="vv-best vv-small vv-quiet" hidden=${!missing}>${missing}</p>`;
  const { words, facts, arrays } = value.answer;
  const { names, note } = facts.maps;
  const [rows, cols] = arrays.best.shape;
  const labels = Array.from(arrays.best.data, Number);
  const paint = (/** @type {HTMLCanvasElement | null} */ canvas) =>
    canvas && new Picture(canvas, cols, rows).set(segmentPixels(labels, () => OPACITY));
  return html`<section class="vv-best" aria-busy=${String(state === 'pending')}>
    <div class="vv-gallery-head vv-row">
      <h3 class="vv-title">Which sentence fits each patch best?</h3>
      <${SaveLink} save=${store.saved('sentence_patches', of.about)} />
    </div>
    <${PhotoStage} photo=${value.photo} map=${paint} look="vv-plate" />
    <ul class="vv-best-key vv-row vv-small">
      ${names.map(
        (/** @type {string} */ name, /** @type {number} */ i) =>
          labels.includes(i) &&
          html`<li key=${name} class="vv-row" dir="auto">
            <span class="vv-swatch" style=${{ background: `rgb(${segmentColour(i)})` }}></span>${name}
          </li>`,
      )}
    </ul>
    <p class="vv-small">${words}</p>
    <p class="vv-small vv-quiet">
      ${note}${' '}
      <button
        type="button"
        class="vv-link vv-bare"
        onClick=${() => store.set({ ask: 'sentence_patches' }, { push: true })}
      >
        With another attention
      </button>
    </p>
  </section>`;
}

/** The map of each class in an answer to `class_maps`. @param {any} answer */
export function mapsIn({ arrays: { values }, facts }) {
  const [count, ...shape] = values.shape;
  const size = values.data.length / count;
  return Array.from({ length: count }, (_, i) =>
    mapIn({ arrays: { values: { shape, data: values.data.subarray(i * size, (i + 1) * size) } }, facts }),
  );
}
