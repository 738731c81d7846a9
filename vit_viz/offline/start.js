// The first script of the page, which unpacks its program (vit_viz/offline/page.py) and runs it. It imports nothing, as it stands there as it is.

const TOO_OLD = 'This page needs a newer browser: Chrome or Edge 80, Firefox 113, Safari 16.4, or later.';

const LETTERS = 91; // vit_viz/offline/letters.py
const PLACES = new Uint8Array(127);
for (let code = 33, place = 0; code < 127; code++)
  if (!'&<>'.includes(String.fromCharCode(code))) PLACES[code] = place++;

/** What an element of the page holds: 13 bits in each pair of letters, 6 in one that is left. */
export function bytesIn(/** @type {string} */ id) {
  const text = document.getElementById(id)?.textContent ?? '';
  const bytes = new Uint8Array(Math.floor(((text.length >> 1) * 13 + (text.length & 1) * 6) / 8));
  let [held, bits] = [0, 0];
  for (let i = 0, at = 0; at < bytes.length; i += 2) {
    const value = PLACES[text.charCodeAt(i)] + LETTERS * (PLACES[text.charCodeAt(i + 1)] ?? 0);
    held |= value << bits;
    for (bits += 13; bits >= 8 && at < bytes.length; bits -= 8, held >>>= 8) bytes[at++] = held;
  }
  return bytes;
}

/** Runs the program; where that cannot be unpacked, says which browser can. */
export async function start() {
  const { body } = document;
  if (typeof DecompressionStream === 'undefined') {
    const place = /** @type {HTMLElement} */ (document.getElementById('vv-page'));
    place.textContent = TOO_OLD;
    return;
  }
  const program = new Blob([bytesIn('vv-program')]).stream().pipeThrough(new DecompressionStream('deflate'));
  const script = Object.assign(document.createElement('script'), { type: 'module' }); // so that its names are its own
  script.textContent = await new Response(program).text(); // whose digest the policy of the page names
  body.append(script);
}
