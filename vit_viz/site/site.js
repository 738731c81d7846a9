// The explorer as a static site: pictures come from the visitor, numbers from the engine in a worker of this page.

import { highest } from '../browser/outputs.js';
import { traceValue, engineSource } from '../browser/source.js';
import { ALONE, Explorer } from '../explorer/explorer.js';
import { bytesOf } from '../explorer/paint.js';
import { followTheme } from '../explorer/theme.js';
import { listenToButton, picturesIn } from '../ui/kit/carried.js';
import { make } from '../ui/kit/elements.js';
import { PLACE } from '../ui/visit/link.js';
import { computed, effect, html, render, signal, untracked } from '../web/kit/preact.js';
import { Store } from '../web/kit/store.js';
import { BringNote } from '../web/header/note.js';
import { Tray } from '../web/header/pictures.js';
import { Top } from '../web/header/said.js';
import { follow, isOf, keeperOf, linkOf } from '../web/look/keeper.js';
import { checkpointIn, describe, modelOf } from './models.js';
import { opening } from './opening.js';
import { readPhoto } from './photos.js';
import { Running, received } from './running.js';
/** @import { Traced } from '../browser/engine.js' */
/** @import { Mode } from '../browser/preprocess.js' */
/** @import { Loaded } from '../browser/serving.js' */
/** @import { Trace } from '../explorer/geometry.js' */
/** @import { Source } from '../explorer/source.js' */
/** @import { Option } from '../explorer/options.js' */
/** @import { Field } from '../web/kit/store.js' */
/** @import { Carried } from '../ui/kit/carried.js' */
/** @import { Picture } from '../web/header/pictures.js' */
/** @import { Said } from '../web/header/said.js' */
/** @import { Checkpoint, Published } from './models.js' */
/** @import { Limits, Lighting, Photo } from './photos.js' */
/** @import { ModelFacts, Files } from './running.js' */

/**
 * @typedef {{id: string, name: string, thumbnail: string, file: string | Blob, own?: boolean}} Shown a picture of the tray; file: an
 *     address, or what the visitor brought
 * @typedef {{model: string, image: string, mode: Mode, size: number}} Asked what the page is about
 * @typedef {{asked: Asked, file: Blob, photo: Photo, traced: Traced, loaded: Loaded, source: Source}} Answer
 *
 * @typedef {object} Facts what Python tells of the site (vit_viz/site/folder.py)
 * @property {ModelFacts[]} models
 * @property {Shown[]} pictures
 * @property {string} first the picture to begin with
 * @property {Mode} [mode] how it becomes the model's input at first
 * @property {Record<string, string>} tables
 * @property {Field[]} fields of links
 * @property {Option[]} options
 * @property {Published} published
 * @property {Lighting} lighting
 * @property {Limits} limits
 */

const TOP = 5;
const READING_TIME = 8_000; // milliseconds for which a sentence stays
const FORMATS = 'Pictures are JPEG, PNG, WebP, GIF, BMP and AVIF files.'; // what browsers read
const GONE =
  'The picture of this link is on the machine of whoever made the link: bring it, and the link is followed.';

const KEPT = 'The page itself, with the model, is kept by your browser, so that it opens without a network.';
const NOT_KEPT = 'Your browser does not keep the page: it opens with a network only.';

/** A part of the page by its name. @param {string} name @returns {any} */
const part = (name) => document.querySelector(`[data-site="${name}"]`);

export class Site {
  seq = 0; // of what was asked last
  /** @type {Map<string, Shown>} */ pictures;
  /** @type {Asked} */ asked;
  /** @type {Answer | null} */ answer = null;
  shown = signal(/** @type {Trace | null} */ (null));
  isWaiting = false; // for what its link names
  said = signal(''); // of what was brought, for a while
  following = Promise.resolve();
  timer = 0;
  used = new Set(/** @type {string[]} */ ([])); // files beside the page that it needs again

  /** @param {Facts} facts @param {Files} files */
  constructor(facts, files) {
    this.facts = facts;
    this.running = new Running(files);
    this.pictures = new Map(facts.pictures.map((picture) => [picture.id, picture]));
    this.asked = { model: facts.models[0].name, image: facts.first, mode: facts.mode ?? 'fit', size: 0 };
    this.drawTop({});
    this.drawTray();
    const element = /** @type {HTMLElement} */ (document.getElementById('vv-explorer'));
    this.store = new Store(facts.fields, PLACE);
    const keeper = keeperOf(this.store, () => this.isPresent());
    this.explorer = new Explorer(element, { ...ALONE, ...keeper }, facts.tables, this.source());
    this.explorer.parts.closer.hidden = true; // another part of the photo is another picture
    Object.assign(element, { explorer: this.explorer }); // its numbers, for whoever opens the browser's console
    this.listen();
  }

  /** The numbers of the present pass. @returns {Source} */
  source() {
    const present = () => /** @type {Answer} */ (this.answer).source;
    return {
      photo: (address) => address,
      layer: (...asked) => present().layer(...asked),
      rows: (...asked) => present().rows(...asked),
      exact: async () => null,
      page: () => '',
    };
  }

  listen() {
    const place = make('div');
    document.body.append(place);
    render(html`<${BringNote} taker=${this} said=${this.said} />`, place);
    listenToButton(this, part('paste'));
    for (const [button, input] of [
      ['bring', 'file'],
      ['camera', 'photo'],
      ['open', 'checkpoint'],
    ]) {
      part(button).addEventListener('click', () => part(input).click());
      part(input).addEventListener('change', () => {
        void this.take({ files: [...part(input).files] });
        part(input).value = ''; // the same file can be chosen again
      });
    }
    this.showModels();
    part('model').addEventListener('change', () => this.choose({ model: part('model').value }));
    part('mode').addEventListener('change', () => this.choose({ mode: part('mode').value }));
  }

  showModels() {
    const { models } = this.facts;
    part('model').replaceChildren(...models.map(({ name }) => make('option', '', name)));
    part('model-field').hidden = models.length < 2;
  }

  /** Opens the page at its address, and follows that from here. */
  open() {
    const { facts, store } = this;
    const { model, image, mode, size } = store.view;
    if (!image.peek()) store.set({ image: facts.first, mode: facts.mode ?? 'fit', size: 0 }, { soon: true });
    const asked = computed(() =>
      JSON.stringify({
        model: model.value || facts.models[0].name,
        ...{ image: image.value, mode: mode.value, size: size.value },
      }),
    );
    effect(() => {
      const now = JSON.parse(asked.value);
      untracked(() => (this.following = this.follow(now)));
    });
    follow(store, this.explorer, () => (this.shown.value && this.isPresent() ? this.shown.value : null));
  }

  /** Whether the explorer shows what the link asks for. */
  isPresent() {
    const { trace } = this.explorer;
    return trace !== null && isOf(this.store, trace);
  }

  /** Shows what the link asks for; of what is not here it says so. @param {Asked} asked */
  async follow(asked) {
    const { model, image } = asked;
    if (!this.facts.models.some(({ name }) => name === model))
      return this.refuse(
        `This page does not have the model ${model.slice(0, 60)}: please choose one of its own, or open its file.`,
      );
    this.asked = asked; // also of the picture that is brought for it
    if (!this.pictures.has(image)) return this.refuse(GONE);
    this.isWaiting = false;
    this.seq += 1;
    const seq = this.seq;
    this.show();
    if (this.explorer.trace && JSON.stringify(asked) === JSON.stringify(this.answer?.asked))
      return this.busy(''); // it is seen already
    try {
      await this.run(seq, asked);
    } catch (error) {
      if (seq !== this.seq) return;
      const { trace, view } = this.explorer;
      if (this.pictures.get(image)?.thumbnail === '') this.pictures.delete(image);
      // what is seen, and not what was asked for on the way
      if (trace && view) this.store.set({ ...this.answer?.asked, q: linkOf(this.store, view, trace).q });
      this.show();
      this.busy('');
      const words = error instanceof Error ? error.message : String(error);
      if (trace) this.say(words);
      else this.explorer.clear(words);
    }
  }

  /** There is nothing to show, and why. */
  refuse(/** @type {string} */ words) {
    this.seq += 1;
    this.isWaiting = true;
    this.explorer.setBusy('');
    this.explorer.clear(words);
    this.drawTop({});
    this.show();
  }

  /** Takes a model and pictures of the visitor: the first picture is looked at, all stay in the tray. */
  async take(/** @type {Carried} */ carried) {
    const { checkpoint, problem, others: files } = await checkpointIn(carried);
    const said = [problem, checkpoint ? await this.openModel(checkpoint) : ''];
    const say = () => this.say(said.filter(Boolean).join(' '));
    say();
    if ((problem || checkpoint) && !files.length) return;
    const { pictures, problems } = picturesIn({ files }, FORMATS);
    said.push(...problems);
    say();
    const taken = [];
    for (const file of pictures) taken.push(await this.add(file));
    if (taken.length) await this.choose({ image: taken[0] });
    const others = taken.slice(1).map((id) => this.pictures.get(id));
    for (const other of others) if (other && !other.thumbnail) said.push(await this.lookInto(other));
    if (others.length) say();
  }

  /** Looks through a model of the visitor; of one that cannot be opened it returns why, and the former stays. */
  async openModel(/** @type {Checkpoint} */ checkpoint) {
    const { models, published } = this.facts;
    const model = modelOf(checkpoint, models, published);
    const seq = ++this.seq;
    this.running.told = (words) => seq === this.seq && this.busy(words);
    try {
      describe(model, await this.running.load(model));
    } catch (error) {
      if (seq === this.seq) this.busy('');
      return `${checkpoint.file.name} was not opened. ${error instanceof Error ? error.message : String(error)}`;
    }
    models.push(model);
    this.showModels();
    if (seq === this.seq) await this.choose({ model: model.name, size: 0 });
    else this.show();
    return '';
  }

  /** Shows a picture of the visitor in the tray, or takes it away and says why. @param {Shown} shown */
  async lookInto(shown) {
    try {
      const { limits, lighting } = this.facts;
      const photo = await readPhoto(/** @type {Blob} */ (shown.file), shown.name, limits, lighting);
      shown.thumbnail = photo.thumbnail;
      this.show();
      return '';
    } catch (error) {
      this.pictures.delete(shown.id);
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Puts a picture into the tray; returns its name in links, which is a digest of its bytes where the browser makes one. */
  async add(/** @type {File} */ file) {
    const bytes = await file.arrayBuffer();
    const digest = globalThis.crypto?.subtle && (await crypto.subtle.digest('SHA-256', bytes));
    const hex =
      digest && [...new Uint8Array(digest.slice(0, 8))].map((byte) => byte.toString(16).padStart(2, '0'));
    const id = `own-${hex ? hex.join('') : this.pictures.size}`;
    const name = file.name || 'your picture';
    if (!this.pictures.has(id)) this.pictures.set(id, { id, name, thumbnail: '', file, own: true });
    return id;
  }

  /** Something else is asked for; where a link waits for it, the rest of that holds, but for a model that is not here. @param {Partial<Asked>} change */
  choose(change) {
    const { model } = this.store.view;
    const isHere = !model.peek() || this.facts.models.some(({ name }) => name === model.peek());
    const whole = isHere ? change : { model: this.asked.model, ...change };
    if (this.isWaiting) this.store.set(whole);
    else this.store.look(whole);
    if (this.isWaiting) this.following = this.follow(this.asked); // what the link names itself, which is here now
    return this.following;
  }

  /** @param {number} seq @param {Asked} asked */
  async run(seq, asked) {
    const { facts, running } = this;
    const shown = /** @type {Shown} */ (this.pictures.get(asked.image));
    const model = /** @type {ModelFacts} */ (facts.models.find(({ name }) => name === asked.model));
    const told = (/** @type {string} */ words) => seq === this.seq && this.busy(words);
    running.told = told;
    told(`Reading ${shown.name} …`);
    running.load(model).catch(() => {}); // while the photo is read; whoever needs it hears what went wrong
    const file = typeof shown.file === 'string' ? await blobAt(shown.file) : shown.file;
    const photo = await readPhoto(file, shown.name, facts.limits, facts.lighting);
    shown.thumbnail ||= photo.thumbnail;
    if (seq !== this.seq) return;
    const { mode, size } = asked;
    const { traced, loaded } = await running.trace(model, photo.picture, { mode, size });
    if (seq !== this.seq) return;
    const answer = { asked, file, photo, traced, loaded, source: engineSource(traced) };
    const value = await this.valueOf(seq, answer, shown);
    if (seq !== this.seq) return;
    this.showAnswer(answer, value, model);
  }

  /** What the explorer is told of a pass, but for the photo. */
  async valueOf(
    /** @type {number} */ seq,
    /** @type {Answer} */ { asked, traced, loaded, photo, source },
    /** @type {Shown} */ { id, name, own },
  ) {
    const { model, mode, size } = asked;
    const shape = /** @type {any} */ (traceValue(traced, loaded.config));
    const { layer, head, tour } = await opening(shape, source);
    const proof = { state: 'open', text: 'computed in this page', title: part('storage').textContent };
    return {
      ...shape,
      trace: `${seq}`,
      ...{ model, image: id, mode, size, name },
      photo_size: [photo.picture.height, photo.picture.width],
      unlit: photo.unlit,
      options: this.facts.options,
      ...{ opening: { layer, head }, tour: own ? [] : tour },
      ...{ proof, note: '' },
    };
  }

  /** @param {Answer} answer @param {Omit<Trace, 'photo'>} value @param {ModelFacts} model */
  showAnswer(answer, value, model) {
    if (this.explorer.trace) URL.revokeObjectURL(this.explorer.trace.photo);
    this.answer = answer;
    part('card').textContent = model.card;
    part('storage').textContent = model.storage;
    part('notes').textContent = model.notes ?? '';
    part('notes').hidden = !model.notes;
    if (value.proof) value.proof.title = model.storage;
    this.explorer.setBusy('');
    const trace = { ...value, photo: URL.createObjectURL(answer.file) };
    this.explorer.show(trace);
    this.shown.value = trace;
    this.drawTop({ top: topOf(answer) });
    this.show();
    const files = [...(model.own ? [] : [model]), ...this.facts.pictures];
    for (const { file } of files) this.used.add(/** @type {string} */ (file));
    void this.keep();
  }

  /** Lets the browser keep what the page has used, and says whether it opens without a network from here. */
  async keep() {
    const { keep } = this.running.files;
    if (!keep || !this.used.size) return; // all stands in the page, or nothing is shown yet
    part('keeping').textContent = (await keep([...this.used])) ? KEPT : NOT_KEPT;
  }

  busy(/** @type {string} */ words) {
    this.explorer.setBusy(words);
    this.drawTop({ busy: words, top: this.answer ? topOf(this.answer) : undefined });
  }

  /** @param {Said} said */
  drawTop(said) {
    render(html`<${Top} ...${said} look="vt-line" />`, part('top'));
  }

  /** What is chosen, in the controls. */
  show() {
    part('model').value = this.asked.model;
    part('mode').value = this.asked.mode;
    this.drawTray();
  }

  drawTray() {
    const pictures = [...this.pictures.values()].filter(({ thumbnail }) => thumbnail);
    const choose = (/** @type {Picture} */ { id }) => this.choose({ image: id });
    render(html`<${Tray} ...${{ pictures, chosen: this.asked.image, choose }} />`, part('tray'));
  }

  /** Says a sentence for a while. */
  say(/** @type {string} */ words) {
    clearTimeout(this.timer);
    this.said.value = words;
    if (words) this.timer = window.setTimeout(() => this.say(''), READING_TIME);
  }
}

/** What the model says, in the header. */
function topOf(/** @type {Answer} */ { traced, loaded }) {
  return highest(traced.logits, loaded.labels, loaded.output, TOP);
}

/** A file of the site. */
async function blobAt(/** @type {string} */ address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`A part of this page is missing (${answer.status}).`);
  return answer.blob();
}

/** What stands in an element of the page, as bytes. */
function heldIn(/** @type {string} */ id) {
  return bytesOf(document.getElementById(id)?.textContent ?? '');
}

/** @param {(facts: any) => Files} filesOf */
function open(filesOf) {
  followTheme();
  const facts = JSON.parse(document.getElementById('vv-facts')?.textContent ?? '');
  const site = new Site(facts, filesOf(facts));
  site.open();
  return site;
}

/** Shows the site whose files lie beside the page. */
export function start() {
  const workers = navigator.serviceWorker; // none where the page came without encryption
  workers?.register('offline.js').catch(() => {}); // without it the page needs its server
  const site = open((facts) => ({
    start: () => new Worker(facts.worker),
    wasm: facts.wasm,
    weights: (model, told) => received(model.file, told, model.bytes),
    keep: async (names) => !!workers && keptBy(workers, names),
  }));
  workers?.addEventListener('controllerchange', () => void site.keep()); // another version has files of its own
  return site;
}

/** Whether the service worker keeps all of these files, those that it did not have included. @param {string[]} names */
async function keptBy(/** @type {ServiceWorkerContainer} */ workers, names) {
  const registration = await workers.ready;
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data.kept)));
  const worker = registration.active;
  worker?.postMessage({ keep: names }, [port2]);
  const kept = new Set(await answer);
  return worker === registration.active && names.every((name) => kept.has(name));
}

/** Shows the site all of which stands in the page. */
export function startInFile() {
  return open(() => ({
    start: () =>
      new Worker(URL.createObjectURL(new Blob([heldIn('vv-worker')], { type: 'text/javascript' }))),
    wasm: { plain: heldIn('vv-plain'), relaxed: heldIn('vv-relaxed') },
    weights: async (model) => heldIn(model.file).buffer,
  }));
}
