// The model in the page as the source of the page: pictures and models of the site and of its visitor, passes of the engine, and
// answers to questions about them.

import { NAMES } from '../browser/answers/names.js';
import { unitVectors } from '../browser/answers/vectors.js';
import { trainedGrid } from '../browser/config.js';
import { highest } from '../browser/outputs.js';
import { traceValue } from '../browser/source.js';
import { decodeTable } from '../explorer/paint.js';
import { fetched } from '../ui/kit/elements.js';
import { picturesIn } from '../ui/kit/carried.js';
import { Refused } from '../web/kit/ask.js';
import { editsIn } from '../web/kit/edits.js';
import { thePage } from '../web/kit/page.js';
import { saidOf } from './edited.js';
import { checkpointIn, modelOf } from './models.js';
import { opening } from './opening.js';
import { Passes } from './passes.js';
import { pngOf, readPhoto, thumbnailOf } from './photos.js';
import { positionsOf } from './positions.js';
import { fileOf, makes } from './saving.js';
import { sizesOf } from './sizes.js';
import { targetValue } from './target.js';
/** @import { Role } from '../browser/answers/vectors.js' */
/** @import { Told } from '../browser/serving.js' */
/** @import { Mode } from '../browser/preprocess.js' */
/** @import { Option } from '../explorer/options.js' */
/** @import { Source, Tell } from '../web/kit/ask.js' */
/** @import { Field } from '../web/kit/store.js' */
/** @import { Published } from './models.js' */
/** @import { About, Pass, Shown } from './passes.js' */
/** @import { Limits, Lighting, Photo } from './photos.js' */
/** @import { ModelFacts, Files } from './running.js' */

/**
 * @typedef {object} Facts what Python says of the site (vit_viz/site/page.py)
 * @property {ModelFacts[]} models
 * @property {Shown[]} pictures
 * @property {string} first the picture to begin with
 * @property {string} page what the page's script is told
 * @property {Field[]} fields of links
 * @property {Option[]} options of a view
 * @property {Published} published
 * @property {Lighting} lighting
 * @property {Limits} limits
 */

const TOP = 5;
const OF_PAGE = ['open', 'offered', 'load', 'target', 'edited'];
const FORMATS = 'Pictures are JPEG, PNG, WebP, GIF, BMP and AVIF files.'; // what browsers read
const GONE =
  'The picture of this link is on the machine of whoever made the link: bring it, and the link is followed.';

/**
 * @param {Facts} facts @param {Files} files @param {(files: string[]) => void} used hears which files beside the page were used
 * @returns {Source}
 */
export function siteSource(
  { models, published, fields, options, limits, lighting, first, ...facts },
  files,
  used,
) {
  const pictures = new Map(facts.pictures.map((picture) => [picture.id, picture]));
  const passes = new Passes(files, models, pictures, { limits, lighting });

  /** What can be opened. */
  const offered = () => ({
    models: { offered: models.map(offerOf), own_ids: false },
    pictures: [...pictures.values()].map(({ id, name, thumbnail, own }) => ({
      id,
      name,
      thumbnail,
      own: Boolean(own),
    })),
    chosen: '',
    aspects: Object.fromEntries([...pictures.values()].map(({ id, aspect }) => [id, aspect])),
  });

  /** What a link asks about, as a question takes it. @param {URLSearchParams} link @param {string} model @param {Shown} shown @returns {About} */
  const aboutOf = (link, model, { id }) => ({
    ...{ model, image: imageNamed(id) },
    mode: /** @type {Mode} */ (link.get('mode') || fields.find((one) => one.link === 'mode')?.default),
    ...{ size: Number(link.get('size') ?? 0), part: link.get('part') ?? '', edits: link.get('edits') ?? '' },
  });

  /** What a view is of. @param {string} view @param {AbortSignal} stop @param {Tell} [tell] */
  async function opened(view, stop, tell) {
    const link = new URLSearchParams(view);
    const [model, wanted] = [link.get('model') || models[0].name, link.get('image') || first];
    if (!passes.modelNamed(model)) {
      const refused = await passes.load(model).catch(({ message }) => message);
      return { refused, instead: { model: models[0].name } };
    }
    const shown = /** @type {Shown} */ (pictures.get(wanted) ?? pictures.get(first));
    const subject = aboutOf(link, model, shown);
    const { size, part, edits } = subject;
    let pass;
    try {
      pass = await passes.of(subject, tell);
    } catch (error) {
      if (!size && !part && !edits) throw error;
      return { refused: /** @type {Error} */ (error).message, instead: { size: 0, part: '', edits: '' } };
    }
    stop.throwIfAborted();
    const value = await valueOf(pass, shown, pictures.has(wanted) ? '' : GONE);
    stop.throwIfAborted();
    const { own, file } = /** @type {ModelFacts} */ (passes.modelNamed(model));
    used([...(own ? [] : [file]), ...facts.pictures.map((one) => one.file)]);
    return value;
  }

  /** What the rooms and the header are told of a pass. @param {Pass} pass @param {Shown} shown @param {string} awaits why it is of another picture */
  async function valueOf(pass, shown, awaits) {
    const { trace, about: subject, traced: of, loaded, photo, explored } = pass;
    const model = /** @type {ModelFacts} */ (passes.modelNamed(subject.model));
    const shape = /** @type {any} */ (traceValue(of, loaded.config));
    const { layer, head, tour } = await opening(shape, explored);
    const { picture, whole } = photo;
    const seen = { photo: shown.file, photo_size: [picture.height, picture.width] };
    const [rows, cols] = shape.grid;
    const patch = loaded.config.patch_size;
    if (whole) pass.cut ??= URL.createObjectURL(await pngOf(picture));
    return {
      ...{
        trace,
        model: subject.model,
        image: shown.id,
        mode: subject.mode,
        size: subject.size,
        part: subject.part,
      },
      ...{
        ...shape,
        ...seen,
        ...(pass.cut && { photo: pass.cut }),
        options,
        about: subject,
        name: shown.name,
        unlit: photo.unlit,
      },
      whole: whole
        ? { part: whole.part, crop: within(shape.crop, whole), photo: shown.file, photo_size: whole.size }
        : null,
      opening: { layer, head, patch: tour[0] ?? null },
      ...{ tour: shown.own ? [] : tour, proof: null, note: '' },
      top: highest(of.logits, loaded.labels, loaded.output, TOP),
      short: `${shape.layers} layers x ${shape.heads} heads, patch ${patch[0] === patch[1] ? patch[0] : patch.join(' x ')}`,
      own: Boolean(shown.own),
      card: `${model.card} · this image: ${rows} x ${cols} patches · computed in this page`,
      badge: { state: 'open', text: 'computed in this page', title: model.storage },
      notes: [awaits, model.notes].filter(Boolean),
      sizes: sizesOf(loaded, photo.picture, subject.size),
      awaits: Boolean(awaits),
      output_query: shape.default_query,
      positions: positionsOf(loaded.config),
      pictures: [...pictures.values()].map(({ id, name }) => ({ id, name })),
    };
  }

  /** The classes that a view may be explained for. @param {any} body @param {AbortSignal} stop */
  async function target({ view, find }, stop) {
    const opens = await opened(view, stop);
    const { traced: of, loaded } = await passes.of(opens.about);
    return targetValue(of.logits, loaded, new URLSearchParams(view).get('target') ?? '', find);
  }

  /** What is changed inside the model, see vit_viz/ui/header/routes.py. @param {{view: string, edits?: string}} body @param {AbortSignal} stop */
  async function edited({ view, edits }, stop) {
    const link = new URLSearchParams(view);
    if (edits !== undefined) link.set('edits', edits);
    const opens = await opened(link.toString(), stop);
    if (opens.refused) throw new Error(opens.refused);
    if (edits !== undefined) return { edits };
    const [before, after] = await Promise.all([
      passes.of({ ...opens.about, edits: '' }),
      passes.of(opens.about),
    ]);
    const top = (/** @type {Pass} */ { traced: of, loaded }) =>
      highest(of.logits, loaded.labels, loaded.output, TOP);
    return { ...saidOf(editsIn(opens.about.edits, opens)), before: top(before), after: top(after) };
  }

  /** A picture as a question takes it. @param {string} name */
  function imageNamed(name) {
    const shown = pictures.get(name);
    if (!shown) throw new Error(`This page does not have the picture ${name.slice(0, 60)}: please bring it.`);
    return { [shown.own ? 'upload' : 'sample']: name };
  }

  /** A body as the engine takes it, and the pass that it is about, where it is about one. @param {any} body @returns {Promise<[any, Pass | undefined]>} */
  async function subjectOf(body) {
    const { model, edits } = body;
    const pass = body.image ? await passes.of(about(body)) : passes.ofModel(model);
    if (!pass) await passes.load(model);
    const asked = Object.entries(body).filter(
      ([key]) => !['image', 'mode', 'size', 'part', 'edits'].includes(key),
    );
    return [{ ...Object.fromEntries(asked), ...(edits && { edits }) }, pass];
  }

  /** @type {Source} */
  const source = {
    accepts: 'image/jpeg,image/png,image/webp,image/gif,image/bmp,image/avif,.safetensors,.json',
    stated: (name) => (name === 'fields' ? fields : name === 'samples' ? offered() : null),
    answers: (name) => OF_PAGE.includes(name) || NAMES.includes(name),
    keeps: (name) => !OF_PAGE.includes(name),
    async answer(name, body, stop, tell) {
      if (name === 'open') return opened(body.view, stop, tell);
      if (name === 'offered') return offered();
      if (name === 'load') return (await passes.load(body.name, tell), {});
      if (name === 'target') return target(body, stop);
      if (name === 'edited') return edited(body, stop);
      const [asked, pass] = await subjectOf(body);
      /** @type {Told | undefined} */
      const told = tell && ((share, _, preview) => tell({ share, left: '', ...(preview && { preview }) }));
      const other = asked.second
        ? await passes.of({ ...about(body), image: imageNamed(asked.second), part: '' })
        : null;
      return passes.running.answer(name, asked, pass?.traced.pass ?? 0, stop, told, other?.traced.pass);
    },
    async kept(name, body, _stop, hear) {
      const [asked, pass] = await subjectOf(body);
      hear?.({ request: await passes.running.read(name, asked, pass?.traced.pass ?? 0) });
      return null;
    },
    at: fetched,
    makes,
    async file(name, { figure = {}, ...body }, type, stop) {
      const answer = await thePage().ask(name, body, stop); // which the page has where it is seen
      const [, pass] = await subjectOf(body);
      const shown = pictures.get(Object.values(body.image ?? {})[0]);
      const colours = Object.entries(JSON.parse(facts.page).tables);
      const tables = Object.fromEntries(colours.map(([one, text]) => [one, decodeTable(text)]));
      return fileOf(answer, { model: body.model, shown, ...(shown && pass) }, type, figure, {
        options,
        tables,
      });
    },
    async received(carried) {
      const { checkpoint, problem, others } = await checkpointIn(carried);
      const model = checkpoint ? modelOf(checkpoint, models, published) : null;
      if (model) models.push(model);
      if ((problem || model) && !others.length)
        return { pictures: [], problems: [problem].filter(Boolean), model: model?.name };
      const { pictures: found, problems } = picturesIn({ files: others }, FORMATS);
      return { pictures: found, problems: [problem, ...problems].filter(Boolean), model: model?.name };
    },
    async bring(file) {
      const id = await nameOf(file, pictures.size);
      const name = file.name || 'your picture';
      if (!pictures.has(id)) {
        const { picture } = await readPhoto(file, name, limits, lighting).catch(({ message }) => {
          throw new Refused(message);
        });
        const aspect = picture.width / picture.height;
        const thumbnail = thumbnailOf(picture);
        pictures.set(id, { id, name, thumbnail, aspect, file: URL.createObjectURL(file), own: file });
      }
      return { image: id, kept: [...pictures.keys()] };
    },
    proof: async () => null,
    photo: (address) => address,
    layer: async (trace, ...asked) => passes.named(trace.trace).explored.layer(trace, ...asked),
    rows: async (trace, ...asked) => passes.named(trace.trace).explored.rows(trace, ...asked),
    exact: async () => null,
    page: () => '',
    vectors: async (trace, state, role) =>
      unitVectors(passes.named(trace), /** @type {Role} */ (role), state),
    async places(trace, which, stop) {
      const { about: { model }, traced: of, loaded } = passes.named(trace); // prettier-ignore
      const [rows, cols] = which === 'image' ? of.grid : trainedGrid(loaded.config);
      const body = { model, grid: which === 'image' ? `${rows},${cols}` : '' };
      const { arrays } = await passes.running.answer('positions', body, of.pass, stop);
      return thinned(/** @type {Float32Array} */ (arrays.values.data), rows, cols);
    },
  };
  return source;
}

/** What a question is about, of its body. @param {any} body @returns {About} */
const about = ({ model, image, mode = 'fit', size = 0, part = '', edits = '' }) => ({
  model,
  image,
  mode,
  size,
  part,
  edits,
});

/** A model as the list of the header has it. @param {ModelFacts} model */
function offerOf({ name, card, bytes }) {
  const facts = [`${(bytes / 1e6).toFixed(1)} MB`];
  return { name, title: name, hub: '', about: card, facts, here: true };
}

/** A picture's name in links: a digest of its bytes where the browser makes one. @param {File} file @param {number} count of pictures */
async function nameOf(file, count) {
  const digest =
    globalThis.crypto?.subtle && (await crypto.subtle.digest('SHA-256', await file.arrayBuffer()));
  const bytes = digest && [...new Uint8Array(digest.slice(0, 8))];
  return `own-${bytes ? bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('') : count}`;
}

/** Where the input of a part lies on its whole photo. @param {{original: number[], input: number[], region: number[]}} crop @param {NonNullable<Photo['whole']>} whole */
function within({ input, region: [top, left, height, width] }, { part, size }) {
  return { original: size, input, region: [top + part[0], left + part[1], height, width] };
}

const MOST_CELLS = 400_000; // numbers of small maps of positions, as vit_viz/ui/positions/routes.py has it

/** Of all pairs of places those whose first one has a small map. @param {Float32Array} values [rows * cols, rows * cols] @param {number} rows @param {number} cols */
function thinned(values, rows, cols) {
  const [patches, count] = [rows * cols, (/** @type {number} */ side) => Math.ceil(side / step)];
  let step = 1;
  while (count(rows) * count(cols) * patches > MOST_CELLS) step += 1;
  const kept = new Float32Array(count(rows) * count(cols) * patches);
  for (let row = 0, at = 0; row < rows; row += step)
    for (let col = 0; col < cols; col += step, at += patches) {
      const from = (row * cols + col) * patches;
      kept.set(values.subarray(from, from + patches), at);
    }
  return kept;
}
