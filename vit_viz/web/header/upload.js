// What brings pictures: files that are chosen, dropped or pasted anywhere on the page, and the camera. They are uploaded and become
// pictures of this visit, of which the first is looked at.

import { routeUrl } from '../../explorer/source.js';
import {
  listenToButton,
  listenToDrops,
  listenToPastes,
  makeDropHere,
  picturesIn,
} from '../../ui/kit/carried.js';
import { finder, make, showText } from '../../ui/kit/elements.js';
import { listenToCamera } from './camera.js';
import { theHeader } from './header.js';
/** @import { Carried } from '../../ui/kit/carried.js' */
/** @import { Mount } from '../../ui/kit/elements.js' */
/** @import { Header } from './header.js' */

const READING_TIME = 8_000; // milliseconds for which a sentence stays
const QUICK = 300; // milliseconds in which nothing needs to be said of an upload
const UNREACHED = 'The picture could not be sent; please try again.';

/** @type {Mount<{}>} */
export function mount(element) {
  takePictures(element, theHeader());
}

/** @param {HTMLElement} element @param {Header} header */
export function takePictures(element, { take }) {
  const find = finder(element);
  const place = document.querySelector('.gradio-container') ?? document.body;
  const note = make('p', 'vv-bring-note');
  note.setAttribute('role', 'status');
  note.hidden = true;
  const drop = makeDropHere();
  place.append(note, drop);
  const bringer = new Bringer(take, note);
  listenToPastes(bringer);
  listenToDrops(bringer, drop);
  listenToButton(bringer, find('paste'));
  const files = /** @type {HTMLInputElement} */ (find('files'));
  find('choose-file').addEventListener('click', () => files.click());
  files.addEventListener('change', () => {
    const chosen = [...(files.files ?? [])]; // the box is empty again for the next ones
    files.value = '';
    if (chosen.length) void bringer.take({ files: chosen });
  });
  listenToCamera(find, bringer);
}

/** Sends the pictures of one gesture: a newer one ends the uploads before it. */
export class Bringer {
  /** @type {Promise<unknown>} that the pictures before were taken */ taken = Promise.resolve();
  /** @type {AbortController | null} of the upload that is under way */ upload = null;
  timer = 0;

  /** @param {Header['take']} tell answers with a sentence for each file that was not taken @param {HTMLElement} note */
  constructor(tell, note) {
    this.tell = tell;
    this.note = note;
  }

  /** Takes what a paste or a drop carries. */
  async take(/** @type {Carried} */ carried) {
    const { pictures, problems } = picturesIn(carried);
    if (pictures.length) await this.bring(pictures, problems);
    else this.say(problems.join(' '));
  }

  /** @param {File[]} files @param {string[]} [problems] of those that came with them */
  async bring(files, problems = []) {
    this.upload?.abort();
    const upload = (this.upload = new AbortController());
    const [paths, refused] = [/** @type {string[]} */ ([]), [...problems]];
    for (const [place, file] of files.entries()) {
      const one = file.name || 'your picture';
      this.say(
        files.length > 1 ? `Bringing ${one}, ${place + 1} of ${files.length} …` : `Bringing ${one} …`,
        QUICK,
      );
      try {
        paths.push(await send(file, upload.signal));
      } catch (error) {
        if (upload.signal.aborted) return;
        const words = error instanceof Refused ? error.message : UNREACHED;
        refused.unshift(files.length > 1 ? `${one}: ${words}` : words);
      }
      if (this.upload !== upload) return;
    }
    if (paths.length) {
      const isWanted = () => this.upload === upload;
      const taken = this.taken.then(() => this.tell(paths, isWanted));
      this.taken = taken.catch(() => {});
      try {
        refused.unshift(...(await taken));
      } catch (error) {
        refused.unshift(/** @type {Error} */ (error).message);
      }
    }
    if (this.upload === upload) this.say(refused.join(' '));
  }

  /** Shows a sentence for a while, after a pause of milliseconds; "" takes it away. */
  say(/** @type {string} */ words, pause = 0) {
    clearTimeout(this.timer);
    showText(this.note, pause ? '' : words);
    const next = pause ? () => this.say(words) : () => showText(this.note, '');
    if (words) this.timer = window.setTimeout(next, pause || READING_TIME);
  }
}

/** What the server says of an upload that it does not take. */
class Refused extends Error {}

/** Uploads a file as Gradio does; returns the path under which the server keeps it. */
async function send(/** @type {File} */ file, /** @type {AbortSignal} */ signal) {
  const body = new FormData();
  body.append('files', file, file.name || 'picture');
  const id = Math.random().toString(36).slice(2, 14);
  const answer = await fetch(routeUrl(`/gradio_api/upload?upload_id=${id}`), {
    method: 'POST',
    body,
    signal,
  });
  if (!answer.ok) throw new Refused((await answer.text()).slice(0, 400) || UNREACHED);
  const paths = /** @type {string[]} */ (await answer.json());
  return paths[0];
}
