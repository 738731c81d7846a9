// A list that is looked through by letters: the arrows go through what is found, Enter or a click chooses.

import { useRef, useState } from './preact.js';

const STEPS = /** @type {Record<string, number>} */ ({
  ...{ ArrowDown: 1, ArrowUp: -1 },
  ...{ PageDown: 5, PageUp: -5 },
});

/**
 * A list that is looked through by letters: attributes of its field, of the list and of its options.
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
    active,
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
