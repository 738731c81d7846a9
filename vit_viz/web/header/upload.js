// What brings pictures: files that are chosen, dropped or pasted anywhere on the page, and the camera. They become pictures of this
// visit, of which the first is looked at.

import { listenToButton } from '../../ui/kit/carried.js';
import { Refused } from '../kit/ask.js';
import { html, signal, useLayoutEffect, useRef } from '../kit/preact.js';
import { Camera } from './camera.js';
import { Folded } from './opener.js';
/** @import { Carried } from '../../ui/kit/carried.js' */
/** @import { Header } from './header.js' */

const READING_TIME = 8_000; // milliseconds for which a sentence stays
const QUICK = 300; // milliseconds in which nothing needs to be said of an upload
const MOST = 24; // pictures at once
const UNREACHED = 'The picture could not be sent; please try again.';

/** What opens beside the tray, to bring a picture. @param {{bringer: Bringer}} props */
export function Bring({ bringer }) {
  const paste = useRef(/** @type {any} */ (null));
  const files = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => listenToButton(bringer, paste.current), []);
  const chosen = (/** @type {any} */ { target }) => {
    const taken = [...target.files]; // the box is empty again for the next ones
    target.value = '';
    if (taken.length) void bringer.take({ files: taken });
  };
  return html`<${Folded}
    id="vv-bring"
    words="+"
    label="Bring a picture: a file, the clipboard, or the camera"
    done=${bringer.arrived.value}
  >
    <div id="vv-upload" class="vv-bring vv-stack">
      <button
        type="button"
        class="vv-choose-file"
        title="Opens a file of this machine, or several; nobody else sees them."
        onClick=${() => files.current.click()}
      >
        <span class="vv-to-point">Drop or choose a file</span><span class="vv-to-tap">Choose a photo</span>
      </button>
      <input
        class="vv-files"
        type="file"
        accept=${bringer.header.source.accepts}
        multiple
        hidden
        ref=${files}
        onChange=${chosen}
      />
      <${Camera} bringer=${bringer}>
        <button
          type="button"
          class="vv-button vv-paste"
          title="Takes the picture that was copied last."
          ref=${paste}
        >
          Paste a picture
        </button>
      <//>
      <p class="vv-small vv-to-point">or Ctrl+V, or drop pictures anywhere on the page</p>
    </div>
  <//>`;
}

/** Sends the pictures of one gesture: a newer one ends what is left of the one before. */
export class Bringer {
  said = signal('');
  arrived = signal(0); // how many times what was brought came to be looked at
  upload = new AbortController();
  timer = 0;

  /** @param {Pick<Header, 'source' | 'choose' | 'lookAt' | 'renew'>} header */
  constructor(header) {
    this.header = header;
  }

  /** Takes what a paste or a drop carries. */
  async take(/** @type {Carried} */ carried) {
    const { pictures, problems, model } = await this.header.source.received(carried);
    if (model) await this.header.choose(model, async () => true);
    if (pictures.length) await this.bring(pictures, problems);
    else this.say(problems.join(' '));
  }

  /** @param {File[]} files @param {string[]} [problems] of those that came with them */
  async bring(files, problems = []) {
    this.upload.abort();
    const { signal: stop } = (this.upload = new AbortController());
    const [images, refused] = [/** @type {string[]} */ ([]), [...problems]];
    let kept = images;
    if (files.length > MOST) refused.push(`The first ${MOST} of ${files.length} pictures were brought.`);
    for (const [place, file] of files.slice(0, MOST).entries()) {
      const one = file.name || 'your picture';
      const words = files.length > 1 ? `${one}, ${place + 1} of ${files.length}` : one;
      this.say(`Bringing ${words} …`, QUICK);
      try {
        const brought = await this.header.source.bring(file, stop);
        images.push(brought.image);
        kept = brought.kept;
      } catch (error) {
        const said = error instanceof Refused ? error.message : UNREACHED;
        refused.unshift(files.length > 1 ? `${one}: ${said}` : said);
      }
      if (stop.aborted) break;
    }
    if (images.length) this.header.renew();
    if (stop.aborted) return;
    const first = images.find((image) => kept.includes(image));
    if (first) {
      this.header.lookAt(first);
      this.arrived.value += 1;
    }
    this.say(refused.join(' '));
  }

  /** Shows a sentence for a while, after a pause of milliseconds; "" takes it away. */
  say(/** @type {string} */ words, pause = 0) {
    clearTimeout(this.timer);
    this.said.value = pause ? '' : words;
    if (words) this.timer = window.setTimeout(() => this.say(pause ? words : ''), pause || READING_TIME);
  }
}
