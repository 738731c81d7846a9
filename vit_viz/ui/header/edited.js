// The badge of an edited model: what was changed, the answers before and after, and buttons that undo one edit or all. Plain text.

import { classLine, finder, make, showText } from '../kit/elements.js';
import { opens } from '../kit/popover.js';
import { percent } from './top.js';

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
export function mount(element, trigger, props, watch) {
  const find = finder(element);
  const close = opens(find('edited-badge'), () => find('edited-panel'));
  find('edited-undo').addEventListener('click', () => trigger('undo', { words: '' }));
  find('edited-each').addEventListener('click', (event) => {
    const { words } = /** @type {HTMLElement} */ (event.target).dataset;
    if (words) trigger('undo', { words });
  });
  const show = () => {
    draw(find, props.value);
    if (!props.value?.words) close();
  };
  watch('value', show);
  show();
}

/** @param {(name: string) => HTMLElement} find @param {Edited | null} value */
function draw(find, value) {
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
