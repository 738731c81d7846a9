// The page as a static site: the app's own, whose source is the model that runs in it.

import { bytesOf } from '../explorer/paint.js';
import { followTheme } from '../explorer/theme.js';
import { begin } from '../web/look/room.js';
import { mount } from '../web/page/page.js';
import { siteSource } from './source.js';
/** @import { Files } from './running.js' */

const KEPT = 'The page itself, with the model, is kept by your browser, so that it opens without a network.';
const NOT_KEPT = 'Your browser does not keep the page: it opens with a network only.';

/** What stands in an element of the page, as bytes. */
function heldIn(/** @type {string} */ id) {
  return bytesOf(document.getElementById(id)?.textContent ?? '');
}

/**
 * Shows the page that Python describes.
 * @param {(facts: any) => Files} filesOf @param {(files: string[]) => void} [used] hears which files beside the page it needs again
 */
async function open(filesOf, used = () => {}) {
  followTheme(document.body);
  const facts = JSON.parse(document.getElementById('vt-facts')?.textContent ?? '');
  const source = siteSource(facts, filesOf(facts), used);
  void begin(source);
  await new Promise((resume) => setTimeout(resume)); // what has come of the engine and the photo meanwhile goes first
  const samples = JSON.stringify(source.stated('samples'));
  mount(/** @type {HTMLElement} */ (document.getElementById('vv-page')), { page: facts.page, samples });
}

/** Shows the site whose files lie beside the page, and lets the browser keep them. */
export function start() {
  const workers = navigator.serviceWorker; // none where the page came without encryption
  workers?.register('offline.js').catch(() => {}); // without it the page needs its server
  const needed = new Set(/** @type {string[]} */ ([]));
  const keep = async () => {
    const isKept = Boolean(workers) && (await keptBy(workers, [...needed]));
    const words = document.querySelector('[data-site=keeping]');
    if (words) words.textContent = isKept ? KEPT : NOT_KEPT;
  };
  void open(
    (facts) => ({
      start: () => startedEarly() ?? new Worker(facts.worker),
      helper: facts.helper,
      weights: (model) => model.file,
    }),
    (files) => {
      files.forEach((file) => needed.add(file));
      void keep();
    },
  );
  // another version has files of its own
  workers?.addEventListener('controllerchange', () => void (needed.size && keep()));
}

/** The worker that the head of the page has started, unless that failed; once. @returns {Worker | undefined} */
function startedEarly() {
  const page = /** @type {any} */ (window);
  const { vit_viz_worker: worker } = page;
  delete page.vit_viz_worker;
  return worker;
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
  void open(() => ({
    start: () =>
      new Worker(URL.createObjectURL(new Blob([heldIn('vv-worker')], { type: 'text/javascript' }))),
    weights: (model) => heldIn(model.file),
  }));
}
