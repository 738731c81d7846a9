// Buttons of the header, and the panels that they open.

import { usePopover } from '../kit/parts.js';
import { html, useLayoutEffect } from '../kit/preact.js';

/** @param {{id: string, words: string, label: string, opens: string, popover: ReturnType<typeof usePopover>}} props opens: id of the panel */
export function Opener({ id, words, label, opens, popover }) {
  const named = { 'aria-label': label, title: label, 'aria-controls': opens };
  return html`<div id=${id}>
    <button type="button" class="vv-button vv-opener" ...${named} ...${popover.button}>${words}</button>
  </div>`;
}

/** A button, and below it the panel with this id. @param {{id: string, words: string, label: string, done?: unknown, children?: any}} props done: the panel closes when this changes */
export function Folded({ id, words, label, done, children }) {
  const popover = usePopover();
  useLayoutEffect(() => (popover.isOpen ? popover.leave() : undefined), [done]);
  return html`<div id=${`${id}-place`} class="vv-anchor">
    <${Opener} id=${`${id}-opener`} opens=${id} ...${{ words, label, popover }} />
    <div id=${id} class="vv-panel vv-popover" ...${popover.panel}>${children}</div>
  </div>`;
}

/** A button, and below it what it explains. @param {{look: string, panel: string, label: string, button: any, words: any, children?: any}} props look, panel: classes of the two; button: its attributes */
export function Popover({ look, panel, label, button, words, children }) {
  const popover = usePopover();
  return html`<div class="vv-anchor">
    <button type="button" class=${`vv-button ${look}`} ...${button} ...${popover.button}>${words}</button>
    <div class=${`vv-popover ${panel}`} role="group" aria-label=${label} ...${popover.panel}>${children}</div>
  </div>`;
}
