// What went wrong: it is closed by its button, goes with the next success, and offers to try again.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { showError } from '../../vit_viz/ui/kit/notes.js';
import { Browser } from './browser.js';
import { Element } from './document.js';

const placed = (/** @type {any} */ context) => {
  new Browser().install(context);
  return /** @type {any} */ (new Element('p'));
};

test('a note that was closed stays closed however often it is drawn, until it went well', (context) => {
  const place = placed(context);
  showError(place, 'No room.');
  assert.deepEqual([place.hidden, place.textContent], [false, 'No room.']);
  const close = place.querySelector('.vv-close');
  assert.equal(close.getAttribute('aria-label'), 'Close this message');
  close.click();
  assert.equal(place.hidden, true);
  showError(place, 'No room.');
  assert.equal(place.hidden, true);
  showError(place, 'No photo.'); // something else went wrong
  assert.deepEqual([place.hidden, place.textContent], [false, 'No photo.']);
  showError(place, '');
  assert.deepEqual([place.hidden, place.textContent], [true, '']);
  showError(place, 'No room.');
  assert.equal(place.hidden, false);
});

test('it offers to try again, and what stands in place of a picture cannot be closed', (context) => {
  const place = placed(context);
  let tries = 0;
  showError(place, 'No room.', { again: () => void (tries += 1) });
  place.querySelector('.vv-again').click();
  assert.equal(tries, 1);
  showError(place, 'No model.', { stays: true });
  assert.deepEqual([place.querySelector('.vv-close'), place.querySelector('.vv-again')], [null, null]);
});
