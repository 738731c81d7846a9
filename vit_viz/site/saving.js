// Answers as the files that a visitor keeps, under the names that the app's have (vit_viz/figures/files.py).

import { cropBox } from '../browser/answers/layout.js';
import { csvOf, npzOf } from '../browser/files.js';
import { capital, figureOf, pixelsOf } from './figure.js';
import { pngOf } from './photos.js';
/** @import { Answer } from '../browser/answers/form.js' */
/** @import { Option } from '../explorer/options.js' */
/** @import { Pass, Shown } from './passes.js' */

/** Types of the files that are made here, and how their names end; others are made in the app. @type {Record<string, string>} */
const ENDINGS = {
  ...{ 'image/png': 'png', 'image/svg+xml': 'svg', 'text/csv': 'csv', 'application/x-npz': 'npz' },
};
const CM = 2.54; // of an inch
const POINTS = 72;

export const makes = (/** @type {string} */ type) => type in ENDINGS;

/** What an answer is about; of a picture that picture and its pass. @typedef {{model: string, shown?: Shown} & Partial<Pass>} Subject */

/**
 * @param {Answer} answer @param {Subject} subject @param {string} type @param {Record<string, any>} figure how it is drawn, as bodies have it
 * @param {{options: Option[], tables: Record<string, Uint32Array>}} usual how it is drawn else, and the tables of colours
 */
export async function fileOf(answer, subject, type, { width_cm: width = 12, dpi = 300, ...figure }, usual) {
  const { question, parameters } = answer.request;
  const { model, shown, about } = subject;
  const of = shown ? { ...about, image: shown.own ? '' : shown.id } : { model };
  const record = JSON.stringify({
    software: 'vit_viz',
    computed: 'in a page',
    request: { ...of, ...answer.request },
  });
  const places = ['layer', 'head'].map((one) => (one in parameters ? `${one}-${parameters[one]}` : ''));
  const names = [shown?.name ?? '', question, model, ...places].map(slug).filter(Boolean);
  const file = `${['vit_viz', ...names].join('_')}.${ENDINGS[type]}`;
  /** @type {BodyInit} */
  let bytes;
  if (type === 'text/csv') bytes = csvOf(answer, record);
  else if (type === 'application/x-npz') bytes = await npzOf(answer, record);
  else {
    const svg = await drawn(answer, subject, { ...figure, width: (width / CM) * POINTS, record }, usual);
    bytes = type === 'image/png' ? await pixelsOf(svg, Math.round((width / CM) * dpi)) : svg;
  }
  const headers = { 'Content-Disposition': `attachment; filename="${file}"`, 'Content-Type': type };
  return new Response(bytes, { headers });
}

/** @param {Answer} answer @param {Subject} subject @param {Record<string, any>} figure @param {Parameters<typeof fileOf>[4]} usual */
async function drawn(
  answer,
  subject,
  { title, table = 'viridis', width, record, ...how },
  { options, tables },
) {
  const { model, shown, about, photo, traced } = subject;
  const address = photo && URL.createObjectURL(await pngOf(photo.picture));
  try {
    const image = address ? Object.assign(new Image(), { src: address }) : null;
    await image?.decode();
    const { method, faithfulness } = answer.facts; // a test of a map is named by itself
    const what = capital((!faithfulness && method) || answer.question.replaceAll('_', ' '));
    const edits = about?.edits ? `, edited: ${about.edits}` : '';
    return figureOf(answer, {
      title: title || (shown ? `${shown.name}: ${what}` : what),
      caption: `${shown ? `Photo: ${shown.name}. ` : ''}Model ${model}${edits}, computed in a page of vit_viz.`,
      ...{ photo: image, unlit: photo?.unlit, crop_box: traced && cropBox(traced), tables, width, record },
      drawing: /** @type {any} */ ({
        ...Object.fromEntries(options.map(({ name, default: value }) => [name, value])),
        ...{ ...how, colors: table },
      }),
    });
  } finally {
    if (address) URL.revokeObjectURL(address);
  }
}

/** A name in characters that every system takes in the name of a file. @param {string} name */
function slug(name) {
  return name.replace(/[^A-Za-z0-9]/g, '-').slice(0, 60).replace(/^-+|-+$/g, ''); // prettier-ignore
}
