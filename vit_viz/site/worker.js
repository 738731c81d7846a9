// The engine of a site in a worker, as one script that has the kernels; a message that loads a model says where that of its helpers lies.

import { serve } from '../browser/serving.js';

/** @param {Record<string, string>} kernels plain and relaxed, as base64 */
export function start({ plain, relaxed }) {
  const bytesOf = (/** @type {string} */ text) =>
    Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  serve(/** @type {any} */ (self), { plain: bytesOf(plain), relaxed: bytesOf(relaxed) });
}
