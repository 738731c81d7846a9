// The dialog that saves a figure: its format and size, the lines that make it again, and the link that opens it. Whatever on the page
// shows a figure asks for it by the event 'vv-figure', which bubbles; where nobody takes it, as outside this page, it saves what it
// can by itself. Ctrl+S presses the first button of what is on the screen that saves (data-save).

import { offerFile } from '../../explorer/elements.js';
import { openDialog, wholeAddress } from '../../ui/visit/link.js';
import { thePage } from './page.js';
import { InApp, Problem } from './parts.js';
import { html, render, useLayoutEffect, useRef, useState } from './preact.js';
/** @import { Saved } from '../../explorer/source.js' */
/** @import { Source } from './ask.js' */

/**
 * @typedef {{question: Saved, formats?: string[], page?: string}}
 *   Asked whose answer is saved; its formats; where what is seen is served as a page of its own
 */

/** What each format is called, what it holds, and its type. @type {Record<string, [name: string, words: string, type?: string]>} */
const FORMATS = {
  png: ['PNG', 'Pixels, with caption and scale.', 'image/png'],
  svg: ['SVG', 'Scale, axes and letters as outlines; the photo embedded.', 'image/svg+xml'],
  pdf: [
    'PDF',
    'Scale and axes as lines, words as text in an embedded typeface; the photo embedded.',
    'application/pdf',
  ],
  csv: ['CSV', 'The numbers as a table, in full precision.', 'text/csv'],
  npz: ['NPZ', 'The numbers for NumPy, in full precision.', 'application/x-npz'],
  json: ['JSON', 'Numbers, facts and what was asked, as text for any program.', 'application/json'],
  gif: ['GIF', 'An animation through the layers.', 'image/gif'],
  webp: ['WebP', 'An animation through the layers, in all colours.', 'image/webp'],
  html: ['page', 'One file with this photo and every layer and head, live; it opens without a network.'],
};
/** @type {Record<string, string>} */
const TITLES = {
  gif: 'Through the layers of an attention map',
  webp: 'Through the layers of an attention map',
  html: 'One HTML file with this photo and every layer and head, live; it opens without a network',
};
const MOVING = ['gif', 'webp'];
const STILL = ['png', 'svg', 'pdf', 'csv', 'npz'];
const UNWRITTEN = ['json', 'html']; // no lines of code make them
const RECIPES = { python: 'text/x-python', command: 'text/x-shellscript' };
const SIZED = ['png', 'svg', 'pdf', ...MOVING];
export const LINKED = 'Link copied. It opens this view; a photo of your own stays with you.';
const UNSAID = 'No command says this: the method has options of its own here. The lines of Python do.';
const FAILED = 'This figure could not be fetched; please try again.';

/** @param {HTMLElement} element @param {{source?: Source}} props */
export function mount(element, { source = thePage().source }) {
  render(html`<${FigureDialog} source=${source} />`, element);
}

/** The button that saves what somebody looks at: in the dialog that is open behind the palette, else on the page. */
export function savingButton() {
  const open = document.querySelector('dialog[open]:not(.vv-palette)') ?? document;
  const buttons = /** @type {HTMLElement[]} */ ([...open.querySelectorAll('[data-save]')]);
  return buttons.find((button) => button.checkVisibility());
}

/** Opens where somebody asks for a figure. @param {{source: Source}} props */
function FigureDialog({ source }) {
  const dialog = useRef(/** @type {any} */ (null));
  const [{ question, formats, page = '' }, ask] = useState(/** @type {Asked} */ ({ question: ['', {}] }));
  const [wanted, choose] = useState({ format: 'png', width: '12', dpi: '300' });
  const [{ words, error = '' }, say] = useState(
    /** @type {{words: string, error?: string}} */ ({ words: '' }),
  );
  const [lines, showLines] = useState('');
  const [isBusy, setBusy] = useState(false);
  const drawn = formats ?? [...STILL, ...(question[0] === 'look' ? MOVING : [])];
  const isMade = (/** @type {string} */ one) => source.makes(FORMATS[one][2] ?? '');
  const there = page ? [...drawn.filter(isMade), 'html'] : drawn.filter(isMade);
  const hasRecipes = source.makes(RECIPES.python);
  const inApp = drawn.filter((one) => !isMade(one)).map((one) => FORMATS[one][0]);
  const format = there.includes(wanted.format) ? wanted.format : there[0];

  useLayoutEffect(() => {
    const open = (/** @type {Event} */ event) => {
      event.preventDefault();
      ask(/** @type {CustomEvent<Asked>} */ (event).detail);
      say({ words: '' });
      showLines('');
      openDialog(dialog.current);
    };
    const save = (/** @type {KeyboardEvent} */ event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      if (event.key.toLowerCase() !== 's') return;
      const button = savingButton();
      if (!button) return;
      event.preventDefault();
      button.click();
    };
    window.addEventListener('vv-figure', open);
    window.addEventListener('keydown', save);
    return () => {
      window.removeEventListener('vv-figure', open);
      window.removeEventListener('keydown', save);
    };
  }, []);

  /** The file, or the lines that make it. @param {string} type @param {{format?: string}} [file] that they make */
  const fetchAs = (type, file) => {
    const [name, body] = question;
    const size = { width_cm: Number(wanted.width), dpi: Number(wanted.dpi) };
    return source.file(name, { ...body, figure: { ...body.figure, ...size, ...file } }, type);
  };
  /** Says why something failed. @param {() => Promise<void>} work */
  const trying = (work) =>
    work().catch((/** @type {Error} */ why) =>
      say({ words: '', error: why instanceof TypeError ? FAILED : why.message }),
    );
  const save = async () => {
    if (isBusy) return;
    setBusy(true);
    say({ words: 'Drawing …' });
    await trying(async () => {
      const type = FORMATS[format][2];
      const answer = await (type ? fetchAs(type) : source.at(page, undefined, Infinity));
      const name = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '')?.[1];
      offerFile(await answer.blob(), name ?? 'figure');
      say({ words: `Saved ${name ?? ''}.` });
    });
    setBusy(false);
  };
  /** Copies a text, and shows it: not every page may write to the clipboard. @param {string} text @param {string} done what is said where it may */
  const copy = async (text, done) => {
    showLines(text);
    await navigator.clipboard.writeText(text).then(
      () => say({ words: done }),
      () => say({ words: 'Please select this text to copy it.' }),
    );
  };
  /** @param {'python' | 'command'} which */
  const copyLines = (which) =>
    trying(async () => {
      const text = await (await fetchAs(RECIPES[which], { format })).text();
      await (text ? copy(text, 'Copied.') : say({ words: '', error: UNSAID }));
    });
  const set = (/** @type {Partial<typeof wanted>} */ change) => {
    choose({ ...wanted, ...change });
    showLines(''); // lines that were copied before are of another choice
  };
  const isUnwritten = UNWRITTEN.includes(format);

  return html`<dialog class="vv-figure vv-room" aria-labelledby="vv-figure-title" ref=${dialog}>
    <h2 class="vv-title" id="vv-figure-title">Save this figure</h2>
    <${Radios}
      ...${{ name: 'format', legend: 'format', look: 'vv-figure-formats', value: format }}
      choose=${(/** @type {string} */ one) => set({ format: one })}
      choices=${Object.entries(FORMATS)
        .filter(([one]) => there.includes(one) || (isMade(one) && !UNWRITTEN.includes(one)))
        .map(([one, [name]]) => ({ value: one, name, title: TITLES[one], disabled: !there.includes(one) }))}
    />
    <p class="vv-figure-words vv-small" aria-live="polite">${FORMATS[format]?.[1]}</p>
    <div class="vv-figure-size vv-row" hidden=${!SIZED.includes(format)}>
      <${Radios}
        ...${{ name: 'width', legend: 'width', value: wanted.width }}
        choose=${(/** @type {string} */ width) => set({ width })}
        choices=${['8', '12', '17'].map((value) => ({ value, name: `${value} cm` }))}
      />
      <${Radios}
        ...${{ name: 'dpi', legend: 'dots per inch', value: wanted.dpi }}
        choose=${(/** @type {string} */ dpi) => set({ dpi })}
        choices=${['150', '300', '600'].map((value) => ({ value, name: value }))}
      />
    </div>
    <div class="vv-figure-tools vv-row">
      <button
        type="button"
        class="vv-button vv-figure-save"
        data-on
        data-save
        aria-disabled=${String(isBusy) /* the focus stays on it */}
        onClick=${save}
      >
        Save
      </button>
      ${
        hasRecipes &&
        html`<button
            type="button"
            class="vv-button vv-figure-python"
            disabled=${isUnwritten}
            onClick=${() => copyLines('python')}
          >
            copy Python
          </button>
          <button
            type="button"
            class="vv-button vv-figure-command"
            disabled=${isUnwritten}
            onClick=${() => copyLines('command')}
          >
            copy command
          </button>`
      }
      <button type="button" class="vv-button vv-figure-link" onClick=${() => copy(wholeAddress(), LINKED)}>
        copy link
      </button>
      <button
        type="button"
        class="vv-button vv-plain vv-figure-close"
        onClick=${() => dialog.current.close()}
      >
        close
      </button>
    </div>
    <pre class="vv-figure-code" tabindex="0" hidden=${!lines}>${lines}</pre>
    <${InApp} names=${hasRecipes ? inApp : [...inApp, 'lines of Python', 'the command']} />
    <p class="vv-figure-status vv-small" role="status">${words}</p>
    <${Problem} look="vv-figure-error vv-error" words=${error} />
  </dialog>`;
}

/**
 * Radio buttons as a toggle.
 * @param {{name: string, legend: string, look?: string, value: string, choose: (value: string) => void,
 *   choices: {value: string, name: string, title?: string, disabled?: boolean}[]}} props
 */
function Radios({ name, legend, look = '', value: chosen, choose, choices }) {
  return html`<fieldset class=${`vv-toggle ${look}`}>
    <legend>${legend}</legend>
    ${choices.map(
      ({ value, name: words, title, disabled }) =>
        html`<label key=${value} title=${title}
          ><input
            type="radio"
            name=${`vv-figure-${name}`}
            checked=${value === chosen}
            ...${{ value, disabled }}
            onChange=${() => choose(value)}
          />${words}</label
        >`,
    )}
  </fieldset>`;
}
