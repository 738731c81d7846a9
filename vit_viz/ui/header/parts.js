// The parts of the header: what the model says, a model on its way, the pictures, the row of tabs, and the badge of an edited model.
// Names come from strangers and are written as plain text.

import { classLine, finder, make, opens, showText } from '../kit/elements.js';

const LONGEST_BAR = 112; // pixels

/**
 * @typedef {object} Top
 * @property {string} [busy] what is being done
 * @property {string[]} [notes]
 * @property {string} [error]
 * @property {{name: string, probability: number}[]} [top]
 */

/** @type {import('../kit/elements.js').Mount<{value: Top | null}>} */
export function mountTop(element, _trigger, props, watch) {
  watch('value', () => drawTop(element, props.value));
  drawTop(element, props.value);
}

/** @param {HTMLElement} element @param {Top | null} value */
function drawTop(element, value) {
  if (!value) return;
  const find = finder(element);
  element.classList.toggle('vv-busy', Boolean(value.busy));
  showText(find('status'), value.busy || (value.notes || []).join(' '));
  showText(find('error'), value.error);
  if (value.busy) return;
  const top = value.top || [];
  find('says').hidden = !top.length;
  find('top').replaceChildren(
    ...top.map(({ name, probability }) => {
      const line = classLine(name, probability, percent(probability));
      line.style.setProperty('--bar', `${Math.max(2, LONGEST_BAR * probability)}px`);
      return line;
    }),
  );
  const isHeadless = !value.error && !top.length;
  showText(find('nothing'), isHeadless ? 'This model has no class head: it names nothing.' : '');
}

/** A probability as people say it: 96%, 3%, 0.3%; never 100% or 0% where it is not. */
export function percent(/** @type {number} */ probability) {
  const share = 100 * probability;
  if (share > 99.9 && share < 100) return '>99.9%';
  if (share > 0 && share < 0.1) return '<0.1%';
  return `${share >= 1 && share < 99.5 ? share.toFixed(0) : Number(share.toFixed(1))}%`;
}

/**
 * @typedef {import('../kit/elements.js').Job & {amount?: string, stop?: boolean}} Loading
 */

/** @type {import('../kit/elements.js').Mount<{value: Loading | null}>} */
export function mountLoading(element, trigger, props, watch) {
  const stop = /** @type {HTMLButtonElement} */ (finder(element)('stop'));
  stop.addEventListener('click', () => {
    stop.disabled = true;
    trigger('stop', {});
  });
  watch('value', () => drawLoading(element, props.value || {}));
  drawLoading(element, props.value || {});
}

/** @param {HTMLElement} element @param {Loading} value */
function drawLoading(element, { words, amount, share, stop, error }) {
  const find = finder(element);
  const said = find('job-words');
  find('job').hidden = !words;
  if (said.textContent !== (words || '')) said.textContent = words || ''; // what is the same is not said again
  find('job-amount').textContent = amount || '';
  const progress = /** @type {HTMLProgressElement} */ (find('progress'));
  progress.hidden = share === null || share === undefined;
  progress.value = share || 0;
  const button = /** @type {HTMLButtonElement} */ (find('stop'));
  button.hidden = !stop;
  button.disabled = false;
  showText(find('error'), error);
}

/**
 * @typedef {{id: string, name: string, thumbnail: string, own?: boolean}} Picture
 * @typedef {{pictures: Picture[], chosen: string}} Pictures
 */

/** @type {import('../kit/elements.js').Mount<{value: Pictures | null}>} */
export function mountSamples(element, trigger, props, watch) {
  const box = finder(element)('samples');
  /** @type {Map<string, HTMLElement>} */ const buttons = new Map();
  let shown = '';
  const draw = () => {
    if (!props.value) return;
    const { pictures, chosen } = props.value;
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
  };
  watch('value', draw);
  draw();
}

/** @param {Picture} picture @param {import('../kit/elements.js').Trigger} trigger */
function sampleButton({ id, name, thumbnail, own }, trigger) {
  const node = make('button', 'vv-sample');
  node.title = name;
  node.setAttribute('aria-label', own ? `Your picture ${name}` : `Sample image ${name}`);
  const image = make('img');
  image.src = thumbnail;
  image.alt = '';
  node.append(image);
  node.addEventListener('click', () => trigger('choose', { id }));
  return node;
}

export function mountTabRow() {
  const row = document.querySelector('#vv-tabs > .tab-wrapper');
  if (!row) return;
  new MutationObserver(() => showTab(row)).observe(row, {
    attributeFilter: ['aria-selected'],
    subtree: true,
  });
  showTab(row);
}

/** Moves the row, and never the page, until the chosen tab is whole. */
export function showTab(/** @type {Element} */ row) {
  const tab = row.querySelector('[aria-selected=true]');
  if (!tab) return;
  const [own, all] = [tab, row].map((one) => one.getBoundingClientRect());
  if (own.right > all.right) row.scrollLeft += own.right - all.right;
  if (own.left < all.left) row.scrollLeft += own.left - all.left;
}

/**
 * @typedef {{name: string, probability: number}} Line
 * @typedef {object} Edited
 * @property {string} words in short, "" where nothing is changed
 * @property {{words: string, said: string}[]} each
 * @property {Line[]} [before]
 * @property {Line[]} [after]
 * @property {string} [moved] of a model without classes
 * @property {string} [error]
 */

/** @type {import('../kit/elements.js').Mount<{value: Edited | null}>} */
export function mountEdited(element, trigger, props, watch) {
  const find = finder(element);
  const close = opens(find('edited-badge'), () => find('edited-panel'));
  find('edited-undo').addEventListener('click', () => trigger('undo', { words: '' }));
  find('edited-each').addEventListener('click', (event) => {
    const { words } = /** @type {HTMLElement} */ (event.target).dataset;
    if (words) trigger('undo', { words });
  });
  const show = () => {
    drawEdited(find, props.value);
    if (!props.value?.words) close();
  };
  watch('value', show);
  show();
}

/** @param {(name: string) => HTMLElement} find @param {Edited | null} value */
function drawEdited(find, value) {
  find('edited').hidden = !value?.words;
  if (!value?.words) return;
  find('edited-words').textContent = value.words;
  showText(find('edited-error'), value.error);
  showText(find('edited-moved'), value.moved);
  find('edited-answers').hidden = !value.before;
  find('edited-before').replaceChildren(...lines(value.before));
  find('edited-after').replaceChildren(...lines(value.after));
  find('edited-each').replaceChildren(
    ...value.each.map(({ words, said }) => {
      const [line, undo] = [make('li', '', said), make('button', 'vv-button vv-plain', 'Undo')];
      undo.dataset.words = words;
      undo.setAttribute('aria-label', `Undo: ${said}`);
      line.append(undo);
      return line;
    }),
  );
}

function lines(/** @type {Line[]} */ top = []) {
  return top.map(({ name, probability }) => classLine(name, probability, percent(probability)));
}
