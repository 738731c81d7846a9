// What can be chosen in the Tokens tab: the controls of the chosen row, the tokens that are no patches, pictures that share colours.

import { offer, showOptions } from '../../ui/kit/controls.js';
import { having, make, showText } from '../../ui/kit/elements.js';
import { namedToken } from './measures.js';
/** @import { Room, Subject } from './room.js' */

/** Shows which controls there are, and what they say. @param {Room} room @param {Subject} subject */
export function showControls(room, subject) {
  const { element, options, find, large } = room;
  offerPictures(element, subject);
  offerTokens(find('room-named'), subject.prefix);
  const classes = subject.classes?.classes ?? [];
  const areValues = classes.some(({ value }) => value !== undefined);
  const hasClasses = classes.length > 0 && !areValues; // probabilities have one scale in all layers
  showOptions(element, options, options.token_measure, (part) => {
    if (part.dataset.needs === 'roles') return subject.roles.length > 1;
    if (part.dataset.needs === 'scale') return options.token_measure !== 'lens' || !hasClasses;
    if (part.dataset.needs === 'count') return options.token_method !== 'cut';
    return true;
  });
  find('room-no-box').hidden ||= !options.token_box;
  find('room-likeliest').hidden = areValues; // no class is the likeliest
  find('room-likeliest').setAttribute('aria-pressed', String(!subject.target));
  const asked = large.style === options.style;
  showText(find('room-unlit'), asked ? '' : `tint, as this photo is ${subject.unlit}`);
}

/** The other pictures of the visit. @param {HTMLElement} element @param {Subject} subject */
function offerPictures(element, { pictures }) {
  const select = /** @type {HTMLSelectElement} */ (element.querySelector('[data-option=token_second]'));
  const others = pictures.map(({ id, name }) => ({ value: id, label: name }));
  offer(select, [{ value: '', label: 'no other photo' }, ...others]);
}

/** A button for each token before the patches; detection tokens, which may be a hundred, are left to links. @param {HTMLElement} place @param {string[]} names */
function offerTokens(place, names) {
  if (place.dataset.laid === names.join()) return; // so that the focus stays where it is
  place.dataset.laid = names.join();
  const chips = names.map((name) =>
    having(make('button', 'vv-chip', namedToken(name)), { 'data-token': name }),
  );
  place.replaceChildren(...chips);
}
