// What the Heads tab edits, by itself on its part of the page: the switches are pressed through it, as the grid does.

import { finder } from '../../vit_viz/ui/kit/elements.js';
import { Surgery } from '../../vit_viz/web/heads/surgery.js';
import { component, mount } from './browser.js';

export const PANEL = {
  of: 'edited',
  layers: 3,
  heads: 5,
  grid: [4, 6],
  crop: { original: [40, 90], input: [32, 48], region: [0, 15, 40, 60] },
  photo: '/vit_viz/photo/x',
  photo_size: [40, 90],
  name: 'a photo',
  tokens: [
    { value: 'class', label: 'class token' },
    { value: 'patches', label: 'all patches' },
  ],
  off: [[1, 2, 'off']],
  temperatures: [[2, 0.5]],
  forbidden: ['class>1,2@0'],
  trace: 'unedited',
  before: [],
  now: [],
};

/**
 * The part with what is edited. `told` are the edits that were chosen, in words; `answer` says whether they are possible: a text is a
 * refusal, a promise is waited for.
 */
export function mountSurgery(
  /** @type {any} */ panel,
  answer = /** @type {(words: string) => any} */ (() => ''),
) {
  /** @type {string[]} */
  const told = [];
  /** @type {Surgery[]} */
  const made = [];
  const now = { panel };
  const edit = async (/** @type {string} */ words) => {
    told.push(words);
    const refused = await answer(words);
    if (refused) throw new Error(refused);
  };
  const template = component((element) => {
    made.push(new Surgery(finder(element), edit, () => now.panel, () => {}));
  }, 'web/heads/room.html'); // prettier-ignore
  const part = mount(template, null);
  const [surgery] = made;
  surgery.take();
  return {
    ...part,
    surgery,
    told,
    press: (/** @type {string[]} */ ...places) => surgery.toggle(places),
    state: (/** @type {string} */ place) => surgery.heads.get(place) ?? 'on',
    /** What is edited now; null: it is on its way. */
    set(/** @type {any} */ next) {
      now.panel = next;
      surgery.take();
    },
  };
}
