// Passes of the engine: each is computed once as long as it is kept, and belongs to the worker that computed it.

import { engineSource } from '../browser/source.js';
import { Gone } from '../explorer/source.js';
import { fetched } from '../ui/kit/elements.js';
import { describe } from './models.js';
import { partOf, readPhoto } from './photos.js';
import { Running } from './running.js';
/** @import { Traced } from '../browser/engine.js' */
/** @import { Mode } from '../browser/preprocess.js' */
/** @import { Loaded } from '../browser/serving.js' */
/** @import { Tell } from '../web/kit/ask.js' */
/** @import { Limits, Lighting, Photo } from './photos.js' */
/** @import { ModelFacts, Files } from './running.js' */

/**
 * @typedef {{id: string, name: string, thumbnail: string, aspect: number, file: string, own?: Blob}} Shown a picture of the tray; file:
 *     its address; own: what the visitor brought
 *
 * What a pass is of, as a question takes it.
 * @typedef {{model: string, image: Record<string, string>, mode: Mode, size: number, part: string, edits: string}} About
 * @typedef {{trace: string, about: About, traced: Traced & {pass: number}, loaded: Loaded, photo: Photo, explored: import('../explorer/source.js').Source,
 *     cut?: string}} Pass cut: the address of the part that is looked at
 */

const MOST = 4; // that are kept, as the worker does: a photo with and without edits, and what is on its way

export class Passes {
  /** @type {Map<string, Promise<Pass>>} by what they are of; the one that was asked for longest ago first */
  passes = new Map();
  /** @type {Map<string, Pass>} those that are there, by their names */
  there = new Map();
  held = ''; // by whom these passes are

  /**
   * @param {Files} files @param {ModelFacts[]} models @param {Map<string, Shown>} pictures by their names in links
   * @param {{limits: Limits, lighting: Lighting}} reading
   */
  constructor(files, models, pictures, reading) {
    this.running = new Running(files);
    this.models = models;
    this.pictures = pictures;
    this.reading = reading;
  }

  /** @param {string} name */
  modelNamed(name) {
    return this.models.find((one) => one.name === name);
  }

  /** Has a model here. @param {string} name @param {Tell} [tell] */
  async load(name, tell) {
    const model = this.modelNamed(name);
    if (!model)
      throw new Error(
        `This page does not have the model ${name.slice(0, 60)}: please choose one of its own, or open its file.`,
      );
    this.running.told = (words, share) =>
      tell?.({ share: 0, left: '', preview: { words, of: share, loads: true } });
    const loaded = await this.running.load(model).catch((error) => {
      if (model.own && !model.card) this.models.splice(this.models.indexOf(model), 1); // it was never here
      throw new Error(
        model.own ? `${model.own.about.name}.safetensors was not opened. ${error.message}` : error.message,
      );
    });
    if (model.own) describe(model, loaded);
    return { model, loaded };
  }

  /** @param {About} about @param {Tell} [tell] */
  of(about, tell) {
    const holder = `${this.running.lost} ${about.model}`; // a worker has passes of one model, and another one has none
    if (holder !== this.held) [...this.passes.keys()].forEach((key) => this.forget(key));
    this.held = holder;
    const key = JSON.stringify(about);
    const pass = this.passes.get(key) ?? this.compute(key, about, tell);
    this.passes.delete(key);
    this.passes.set(key, pass);
    for (const oldest of this.passes.keys()) if (this.passes.size > MOST) this.forget(oldest);
    pass.catch(() => this.passes.get(key) === pass && this.passes.delete(key));
    return pass;
  }

  /** Any pass of a model. @param {string} model */
  ofModel(model) {
    return [...this.there.values()].findLast(({ about }) => about.model === model);
  }

  /** The pass that an answer named. @param {string} trace */
  named(trace) {
    const pass = this.there.get(trace);
    if (!pass) throw new Gone('This page no longer keeps the numbers of this picture.');
    return pass;
  }

  /** @param {string} key of a pass that makes room */
  forget(key) {
    this.passes.get(key)?.then(({ traced: { pass }, cut }) => {
      this.running.drop(pass);
      if (cut) URL.revokeObjectURL(cut);
    }, () => {}); // prettier-ignore
    this.passes.delete(key);
    this.there.delete(key);
  }

  /** A pass by what it is of: whoever asks for it again has the same name. @param {string} trace @param {About} about @param {Tell} [tell] @returns {Promise<Pass>} */
  async compute(trace, about, tell) {
    const { limits, lighting } = this.reading;
    const shown = /** @type {Shown} */ (this.pictures.get(Object.values(about.image)[0]));
    const loading = this.load(about.model, tell);
    loading.catch(() => {}); // while the photo is read; whoever needs it hears what went wrong
    const file = shown.own ?? (await (await fetched(shown.file)).blob());
    const photo = partOf(await readPhoto(file, shown.name, limits, lighting), about.part, lighting);
    const { model } = await loading;
    this.running.told = (words, share) => tell?.({ share, left: '', preview: { words } });
    const { mode, size, edits } = about;
    const pass = await this.running.trace(model, photo.picture, { mode, size, edits });
    const one = { trace, about, photo, ...pass, explored: engineSource(pass.traced) };
    if (this.passes.has(trace)) this.there.set(trace, one); // else it has made room meanwhile
    return one;
  }
}
