// The header: which model, which picture at which size, what the model says of it, whether that is proven, and how far what takes a
// while is. On a phone model and facts fold behind a menu.

import { Job } from '../kit/job.js';
import { JobLine, Problem, usePopover } from '../kit/parts.js';
import { html, useMemo } from '../kit/preact.js';
import { Palette } from '../palette/palette.js';
import { Edited } from './edited.js';
import { Facts } from './facts.js';
import { Model } from './model.js';
import { BringNote } from './note.js';
import { Opener } from './opener.js';
import { Tray } from './pictures.js';
import { Top } from './said.js';
import { Size } from './sizes.js';
import { Bring, Bringer } from './upload.js';
/** @import { Header as State } from './header.js' */

/** @typedef {{tabs: Record<string, string>, questions: string}} Listing what the tabs are called, and where the questions are listed */

/** @param {{header: State} & Listing} props */
export function Header({ header, tabs, questions }) {
  const menu = usePopover();
  const bringer = useMemo(() => new Bringer(header), [header]);
  return html`<div id="vv-header">
      <h1 class="vv-mark" id="vv-brand">vit<span>_</span>viz</h1>
      <div id="vv-more" class=${`vv-panel ${menu.isOpen ? 'vv-opened' : ''}`} ref=${menu.panel.ref}>
        <${Model} header=${header} />
        <${Size} header=${header} />
        <${Facts} header=${header} leave=${menu.close} />
      </div>
      <div id="vv-tray">
        <div id="vv-samples"><${Pictures} header=${header} /></div>
        <${Bring} bringer=${bringer} />
      </div>
      <div id="vv-palette"><${Palette} page=${header} tabs=${tabs} questions=${questions} /></div>
      <${Opener}
        id="vv-menu"
        words="⋯"
        label="Menu: model, size, link, help"
        opens="vv-more"
        popover=${menu}
      />
      <p class="vv-sentence" id="vv-sentence">
        See what a Vision Transformer looks at. <span class="vv-to-point">Point at the photo.</span
        ><span class="vv-to-tap">Tap the photo.</span>
      </p>
      <${Says} header=${header} />
      <${Edited} header=${header} />
      <${Loading} header=${header} />
    </div>
    <${BringNote} taker=${bringer} said=${bringer.said} />`;
}

/** @param {{header: State}} props */
function Pictures({ header: { offered, image, see } }) {
  return html`<${Tray} pictures=${offered.value.pictures} chosen=${image.value} choose=${see} />`;
}

/** What the model says of the view, or what is being done for it. @param {{header: State}} props */
function Says({ header: { facts, known, note, model, imageWords } }) {
  const { state, error } = facts.value;
  const { top, reads, notes = [] } = known.value ?? {};
  const busy = state === 'pending' ? `Running ${model.value} on ${imageWords.value} …` : '';
  const told = [note.value, ...notes].filter(Boolean);
  return html`<${Top} id="vv-top" busy=${busy} notes=${told} error=${error} top=${top} reads=${reads} />`;
}

const NONE = new Job();

/** A model on its way, or a pass through it. @param {{header: State}} props */
function Loading({ header: { far, problem } }) {
  const job = far.value;
  return html`<div id="vv-loading">
    <${JobLine} job=${job ?? NONE} amount=${job?.amount} end=${() => far.peek()?.stop()} look="vv-row" />
    <${Problem} words=${problem.value} />
  </div>`;
}
