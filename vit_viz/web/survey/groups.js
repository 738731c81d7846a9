// The lists of the Survey tab: what each says of itself, and the groups of photos that it has.

/** @typedef {'high' | 'low' | 'elsewhere' | 'all' | 'lost' | 'won' | 'other'} GroupName */
/** @typedef {'high' | 'elsewhere' | 'all' | 'changed'} ListName */

/** What a card's value is called, by the list. @type {Partial<Record<GroupName, string>>} */
export const NAMED = { elsewhere: 'outside' };

/** @type {Record<ListName, [title: string, name: GroupName][]>} */
const GROUPS = {
  high: [
    ['highest', 'high'],
    ['lowest', 'low'],
  ],
  elsewhere: [['', 'elsewhere']],
  all: [['', 'all']],
  changed: [
    ['right before, wrong now', 'lost'],
    ['wrong before, right now', 'won'],
    ['still wrong, or no label', 'other'],
  ],
};

/** The groups of a list; of photos that changed their answer only those that have any. @param {ListName} list @param {Partial<Record<string, number>>} totals */
export function groupsOf(list, totals) {
  const groups = GROUPS[list];
  if (list !== 'changed') return groups;
  const there = groups.filter(([, name]) => totals[name]);
  return there.length
    ? there.map(([title, name]) => /** @type {const} */ ([`${title}: ${totals[name]}`, name]))
    : [/** @type {const} */ (['', 'other'])];
}

/**
 * What a list says of itself.
 * @param {ListName} list
 * @param {{label: string, layer: number, head: number, second: string, isKnown: boolean}} about isKnown: whether labels and boxes are
 * @param {string} lit what is drawn over the photos
 */
export function listWords(list, { label, layer, head, second, isKnown }, lit) {
  if (list === 'elsewhere' && !isKnown) return 'This list needs photos with labels and boxes.';
  if (list === 'changed' && !second) return 'This list needs a survey to compare with: choose one above.';
  const words = {
    high: `Where the ${label} of layer ${layer}, head ${head} is highest, then lowest.`,
    elsewhere: "Wrong answers, by confidence times what of the last layer's map falls outside the boxes.",
    all: "The first photos that pass the filter, in the survey's order.",
    changed: `Photos that pass the filter and have another answer in ${second}, those that changed sides first.`,
  }[list];
  return `${words} ${lit}`;
}
