// The chooser of measures.

import { having, make, optionOf } from '../../ui/kit/elements.js';
/** @import { MeasureWords } from './room.js' */

/** Offers the measures in their groups. @param {HTMLSelectElement} select @param {MeasureWords[]} measures */
export function fillChooser(select, measures) {
  const groups = new Map(measures.map(({ group }) => [group, having(make('optgroup'), { label: group })]));
  for (const { name, group, label } of measures) groups.get(group)?.append(optionOf(name, label));
  select.append(...groups.values());
}

/**
 * Shows which measure is chosen, and lets none be chosen that this model does not give.
 * @param {HTMLSelectElement} select @param {string} chosen
 * @param {string[] | null} known null: not known yet
 */
export function markChooser(select, chosen, known) {
  select.value = chosen;
  for (const option of select.querySelectorAll('option'))
    option.disabled = Boolean(known) && !known?.includes(option.value);
}
