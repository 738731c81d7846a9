// What the tests of all rooms share: the fields of a link, where a link is kept, colours, and how a test reads elements and waits.

import { read } from './browser.js';

/** The fields of a link, as Python declares them. @type {any[]} */
export const fields = JSON.parse(read('./links.json')).fields;
/** The same on a page whose model is mini and whose picture is the lion. */
export const usualFields = fields.map((field) => ({
  ...field,
  usual: { model: 'mini', image: 'lion' }[/** @type {string} */ (field.link)] ?? field.usual,
}));

/** A table whose place i has the tone `of(i)` in all channels, as the page has it. */
export const toned = (/** @type {(i: number) => number} */ of) =>
  Buffer.from(Uint8Array.from({ length: 768 }, (_, i) => of(Math.floor(i / 3)))).toString('base64');
export const GRAYS = toned((i) => i);

export const texts = (/** @type {any[]} */ nodes) => nodes.map((node) => node.textContent.trim());
export const pressed = (/** @type {any} */ node) => node.getAttribute('aria-pressed');
/** Waits until what was answered is drawn. */
export const settle = async () => {
  for (let i = 0; i < 40; i++) await new Promise((done) => setImmediate(done));
};

/** Where a link is kept, in no browser; it tells what was written. */
export function placeAt(search = '') {
  /** @type {[Record<string, string | null>, boolean][]} */
  const written = [];
  let changed = () => {};
  return {
    written,
    search: () => search,
    write(/** @type {Record<string, string | null>} */ change, /** @type {{push: boolean}} */ { push }) {
      written.push([change, push]);
      const link = new URLSearchParams(search);
      for (const [name, text] of Object.entries(change))
        text === null ? link.delete(name) : link.set(name, text);
      search = `?${link}`;
      changed();
    },
    listen: (/** @type {() => void} */ call) => void (changed = call),
    /** Somebody else has written the link, or Back was pressed. */
    go(/** @type {string} */ to) {
      search = to;
      changed();
    },
  };
}
