// A list that is looked through by letters: the arrows go through what is found, Enter or a click chooses.

import { dataAt, having, onPress } from '../../ui/kit/elements.js';
import { useRef, useState } from './preact.js';

const STEPS = /** @type {Record<string, number>} */ ({
  ...{ ArrowDown: 1, ArrowUp: -1 },
  ...{ PageDown: 5, PageUp: -5 },
});

export class Listbox {
  /** @type {HTMLElement[]} */ options = [];
  active = 0;

  /** @param {HTMLElement} input @param {HTMLElement} list with an id @param {(place: number) => void} choose told the place of an option */
  constructor(input, list, choose) {
    this.input = input;
    this.list = list;
    this.choose = choose;
    onPress(list, 'place', (place) => choose(Number(place)));
    list.addEventListener('pointermove', (event) => this.activate(Number(dataAt(event, 'place') ?? -1)));
  }

  /** Takes what was found. @param {HTMLElement[]} options @param {number} [place] of the one that Enter chooses */
  take(options, place = 0) {
    const { id } = this.list;
    this.options = options.map((option, i) =>
      having(option, { id: `${id}-${i}`, 'data-place': i, role: 'option' }),
    );
    if (!options.length) this.input.removeAttribute('aria-activedescendant');
    this.activate(place);
  }

  /** Makes an option the one that Enter chooses; of a place where there is none, nothing changes. @param {number} place */
  activate(place) {
    const { options, input } = this;
    if (!options[place]) return;
    this.active = place;
    input.setAttribute('aria-activedescendant', options[place].id);
    options.forEach((option, i) => option.setAttribute('aria-selected', String(i === place)));
  }

  /** Goes on by a key, or chooses; a key that means something here does nothing else. @param {KeyboardEvent} event */
  key(event) {
    const step = STEPS[event.key];
    const { length } = this.options;
    const next = this.active + step;
    if (event.key === 'Enter') this.choose(this.active);
    else if (!step) return;
    else if (Math.abs(step) > 1) this.activate(Math.min(Math.max(next, 0), length - 1));
    else this.activate((next + length) % (length || 1)); // from the last to the first
    event.preventDefault();
    this.options[this.active]?.scrollIntoView?.({ block: 'nearest' });
  }
}

/**
 * A list that is looked through by letters, for a component: attributes of its field, of the list and of its options.
 * @param {string} id of the list
 * @param {number} count of options
 * @param {(place: number) => void} choose told the place of an option
 */
export function useListbox(id, count, choose) {
  const [active, activate] = useState(0); // the one that Enter chooses
  const ref = useRef(/** @type {any} */ (null));
  const nameOf = (/** @type {number} */ place) => `${id}-${place}`;
  /** Goes on by a key, or chooses; a key that means something here does nothing else. @param {KeyboardEvent} event */
  const key = (event) => {
    const step = STEPS[event.key];
    if (event.key !== 'Enter' && !step) return;
    event.preventDefault();
    if (event.key === 'Enter') return choose(active);
    const clamped = Math.min(Math.max(active + step, 0), count - 1);
    const next = Math.abs(step) > 1 ? clamped : (active + step + count) % (count || 1); // from the last to the first
    activate(next);
    ref.current.querySelectorAll('[role=option]')[next]?.scrollIntoView({ block: 'nearest' });
  };
  return {
    activate,
    list: { id, ref, role: 'listbox' },
    field: {
      ...{
        type: 'text',
        role: 'combobox',
        'aria-autocomplete': 'list',
        'aria-expanded': 'true',
        'aria-controls': id,
      },
      'aria-activedescendant': count ? nameOf(active) : undefined,
      ...{ autocomplete: 'off', spellcheck: false, enterkeyhint: 'go', onKeyDown: key },
    },
    option: (/** @type {number} */ place) => ({
      ...{ id: nameOf(place), role: 'option', 'aria-selected': String(place === active) },
      onClick: () => choose(place),
      onPointerMove: () => activate(place),
    }),
  };
}
