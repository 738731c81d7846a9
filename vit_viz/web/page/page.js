// The page: its header, its tabs (tabs.js), and what stands in front of them.

import { headerOf } from '../header/header.js';
import { Header } from '../header/room.js';
import { thePage } from '../kit/page.js';
import { html, render } from '../kit/preact.js';
import { keepTheme } from '../kit/theme.js';
import { Filled, Tabs } from './tabs.js';
/** @import { Part, Tab } from './tabs.js' */

/**
 * Fills the one component of Gradio's, which gives it its element and what Python says; samples: the tray as it is for everybody.
 * @param {HTMLElement} element @param {{page: string, samples: string}} props
 */
export function mount(element, { page, samples }) {
  keepTheme();
  const { questions, tables, tabs, parts } = JSON.parse(page);
  const labels = Object.fromEntries(tabs.map((/** @type {Tab} */ { name, label }) => [name, label]));
  const header = headerOf(thePage(), JSON.parse(samples));
  render(
    html`<a class="vv-unseen vv-skip vv-button" href="#vv-tabs" onClick=${skip}>Go to the photo</a>
      <${Header} ...${{ header, questions, tabs: labels }} />
      <${Tabs} ...${{ store: thePage().store, tabs, tables }} />
      ${parts.map((/** @type {Part} */ part) => html`<${Filled} ...${part} id=${`vv-${part.name}`} />`)}`,
    element,
  );
  stayBelow();
}

/** The focus goes over the header to the photo of the open tab; where it has none, to its name. @param {Event} event */
function skip(event) {
  event.preventDefault();
  const photos = [...document.querySelectorAll('[role=tabpanel]:not([hidden]) [data-photo]')];
  const there = photos.find((one) => one.checkVisibility());
  const place = there ?? document.querySelector('[role=tab][aria-selected=true]');
  /** @type {HTMLElement | null} */ (place)?.focus();
}

/** Tells the page how high the header is, below which the row of tabs stays on a phone. */
function stayBelow() {
  const header = /** @type {HTMLElement | null} */ (document.querySelector('#vv-header'));
  if (!header) return;
  const tell = () => document.documentElement.style.setProperty('--vv-header', `${header.offsetHeight}px`);
  new ResizeObserver(tell).observe(header);
}
