// The parts of the header: what the model says, a model on its way, the pictures, the row of tabs, and the badge of an edited model.
// Names come from strangers and are written as plain text.

import {
  classLine,
  drawValue,
  finder,
  having,
  make,
  onPress,
  opens,
  showShare,
  showText,
} from '../kit/elements.js';
import { showError } from '../kit/notes.js';
import { amountWords } from '../kit/numbers.js';
import { PLACE } from '../visit/link.js';
import { expectPhoto } from '../visit/photo_aspect.js';
/** @import { Job, Mount, Trigger } from '../kit/elements.js' */
/** @import { Amount } from '../kit/numbers.js' */

const LONGEST_BAR = 112; // pixels

/**
 * @typedef {{busy?: string, notes?: string[], error?: string, top?: Line[]}}
 *   Top busy: what is being done
 */

/** @type {Mount<{value: Top | null}>} */
export function mountTop(element, _trigger, props, watch) {
  drawValue(watch, () => drawTop(element, props.value));
}

/** @param {HTMLElement} element @param {Top | null} value */
function drawTop(element, value) {
  if (!value) return;
  const find = finder(element);
  element.classList.toggle('vv-busy', Boolean(value.busy));
  showError(find('status'), value.busy || (value.notes || []).join(' '), { stays: Boolean(value.busy) });
  showError(find('error'), value.error);
  if (value.busy) return;
  const top = value.top || [];
  const { says, meaning, title } = meaningOf(top[0]);
  showText(find('says'), top.length ? says : '');
  find('says').title = title;
  find('top').replaceChildren(
    ...top.map((one) => {
      const line = answerLine(one);
      const bar = one.probability === undefined ? 0 : Math.max(2, LONGEST_BAR * one.probability);
      line.style.setProperty('--bar', `${bar}px`);
      return line;
    }),
  );
  find('top').setAttribute('aria-label', meaning);
  const isHeadless = !value.error && !top.length;
  showText(find('nothing'), isHeadless ? 'This model has no class head: it names nothing.' : '');
}

/** What numbers of this kind are called, by the first of them. */
function meaningOf(/** @type {Line | undefined} */ line) {
  if (line?.value !== undefined)
    return { says: SAYS, meaning: 'Values that the model returns, the largest first', title: '' };
  if (!line?.alone) return { says: SAYS, meaning: 'Most probable classes with their probability', title: '' };
  return {
    says: 'The model says, of each by itself',
    meaning: 'Most probable classes, each with a probability of its own',
    title: 'Several classes may hold at once: each has a sigmoid of its own, and they do not sum to 100%.',
  };
}

const SAYS = 'The model says';

/** The line of a class with its probability, or of a value, which has no bar. */
function answerLine(/** @type {Line} */ one) {
  return classLine(one.name, one.probability ?? 0, amountWords(one, percent));
}

/** A probability as people say it: 96%, 3%, 0.3%; never 100% or 0% where it is not. */
export function percent(/** @type {number} */ probability) {
  const share = 100 * probability;
  if (share > 99.9 && share < 100) return '>99.9%';
  if (share > 0 && share < 0.1) return '<0.1%';
  return `${share >= 1 && share < 99.5 ? share.toFixed(0) : Number(share.toFixed(1))}%`;
}

/** @typedef {Job & {amount?: string, stop?: boolean}} Loading */

/** @type {Mount<{value: Loading | null}>} */
export function mountLoading(element, trigger, props, watch) {
  const stop = /** @type {HTMLButtonElement} */ (finder(element)('stop'));
  stop.addEventListener('click', () => {
    stop.disabled = true;
    trigger('stop', {});
  });
  drawValue(watch, () => drawLoading(element, props.value || {}));
}

/** @param {HTMLElement} element @param {Loading} value */
function drawLoading(element, { words, amount, share, stop, error }) {
  const find = finder(element);
  const said = find('job-words');
  find('job').hidden = !words;
  if (said.textContent !== (words || '')) said.textContent = words || ''; // what is the same is not said again
  find('job-amount').textContent = amount || '';
  showShare(find('progress'), share);
  const button = /** @type {HTMLButtonElement} */ (find('stop'));
  button.hidden = !stop;
  button.disabled = false;
  showError(find('error'), error);
}

/**
 * @typedef {{id: string, name: string, thumbnail: string, own?: boolean}} Picture
 * @typedef {{pictures: Picture[], chosen: string, aspects?: Record<string, number>}} Pictures aspects: width over height, by id
 */

/** @type {Mount<{value: Pictures | null}>} */
export function mountSamples(element, trigger, props, watch) {
  const box = finder(element)('samples');
  /** @type {Map<string, HTMLElement>} */ const buttons = new Map();
  let shown = '';
  drawValue(watch, () => {
    if (!props.value) return;
    const { pictures, chosen, aspects } = props.value;
    if (chosen && aspects) expectPhoto(chosen, aspects);
    const ids = pictures.map(({ id }) => id);
    for (const id of buttons.keys()) if (!ids.includes(id)) buttons.delete(id);
    for (const picture of pictures)
      if (!buttons.has(picture.id)) buttons.set(picture.id, sampleButton(picture, trigger));
    const wanted = ids.map((id) => /** @type {HTMLElement} */ (buttons.get(id)));
    if (wanted.length !== box.childElementCount || wanted.some((node, place) => box.children[place] !== node))
      box.replaceChildren(...wanted); // only then: the focus stays where it is
    for (const [id, node] of buttons) node.setAttribute('aria-pressed', String(id === chosen));
    if (shown && shown !== chosen)
      buttons.get(chosen)?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
    shown = chosen;
  });
}

/** @param {Picture} picture @param {Trigger} trigger */
function sampleButton({ id, name, thumbnail, own }, trigger) {
  const node = make('button', 'vv-sample', having(make('img'), { src: thumbnail, alt: '' }));
  having(node, { title: name, 'aria-label': own ? `Your picture ${name}` : `Sample image ${name}` });
  node.addEventListener('click', () => trigger('choose', { id }));
  return node;
}

const TAB_BUTTON = /^vv-tab-(.+)-button$/;

/** Nothing of Python's comes in, and nothing but the link goes out. */
export function mountTabRow() {
  const begin = () => {
    const [row, header] = ['#vv-tabs > .tab-wrapper', '#vv-header'].map((one) => document.querySelector(one));
    if (!row || !header) return false; // Gradio makes the parts of a page in any order
    listenToTabs(row);
    stayBelow(/** @type {HTMLElement} */ (header));
    return true;
  };
  if (begin()) return;
  const waiting = new MutationObserver(() => void (begin() && waiting.disconnect()));
  waiting.observe(document.body, { childList: true, subtree: true });
}

/** Writes the tab that is chosen into the link. @param {Element} row */
function listenToTabs(row) {
  const choose = (/** @type {Element | null | undefined} */ button) => {
    const tab = TAB_BUTTON.exec(button?.id ?? '')?.[1];
    if (!tab) return;
    PLACE.write({ tab: button === row.querySelector('[role=tab]') ? null : tab }, { push: true }); // also where no server answers
  };
  row.addEventListener('click', ({ target }) =>
    choose(/** @type {Element} */ (target).closest('[role=tab]')),
  );
  choose(row.querySelector('[aria-selected=true]:not(:first-child)')); // it was chosen before this module was there
  new MutationObserver(() => showTab(row)).observe(row, {
    attributeFilter: ['aria-selected'],
    subtree: true,
  });
  showTab(row);
}

/** Tells the page how high the header is, below which the row of tabs stays on a phone. */
function stayBelow(/** @type {HTMLElement} */ header) {
  const tell = () => document.documentElement.style.setProperty('--vv-header', `${header.offsetHeight}px`);
  new ResizeObserver(tell).observe(header);
}

/** How much of its neighbours is seen beside the chosen tab: that there is more. */
const BESIDE = 28;

/** Moves the row, and never the page, until the chosen tab is whole. */
export function showTab(/** @type {Element} */ row) {
  const tab = row.querySelector('[aria-selected=true]');
  if (!tab) return;
  const [own, all] = [tab, row].map((one) => one.getBoundingClientRect());
  if (own.right > all.right) row.scrollLeft += own.right - all.right + BESIDE;
  if (own.left < all.left) row.scrollLeft += own.left - all.left - BESIDE;
}

/**
 * @typedef {Amount & {name: string, alone?: boolean}} Line alone: whether its probability is a sigmoid of its own
 * @typedef {{words: string, each: {words: string, said: string}[], before?: Line[], after?: Line[], moved?: string,
 *   error?: string}} Edited words: in short, "" where nothing is changed; moved: of a model without classes
 */

/** @type {Mount<{value: Edited | null}>} */
export function mountEdited(element, trigger, props, watch) {
  const find = finder(element);
  const close = opens(find('edited-badge'), () => find('edited-panel'));
  find('edited-undo').addEventListener('click', () => trigger('undo', { words: '' }));
  onPress(find('edited-each'), 'words', (words) => trigger('undo', { words }));
  drawValue(watch, () => {
    drawEdited(find, props.value);
    if (!props.value?.words) close();
  });
}

/** @param {(name: string) => HTMLElement} find @param {Edited | null} value */
function drawEdited(find, value) {
  find('edited').hidden = !value?.words;
  if (!value?.words) return;
  find('edited-words').textContent = value.words;
  showError(find('edited-error'), value.error);
  showText(find('edited-moved'), value.moved);
  find('edited-answers').hidden = !value.before;
  find('edited-before').replaceChildren(...lines(value.before));
  find('edited-after').replaceChildren(...lines(value.after));
  find('edited-each').replaceChildren(
    ...value.each.map(({ words, said }) => {
      const undo = make('button', 'vv-button vv-plain', 'Undo');
      return make('li', '', said, having(undo, { 'data-words': words, 'aria-label': `Undo: ${said}` }));
    }),
  );
}

function lines(/** @type {Line[]} */ top = []) {
  return top.map(answerLine);
}
