// The small maps of the Tokens tab: one for every state of the model, with its name and a few words.

import { Picture, paintMap } from '../../explorer/paint.js';
import { make, showText } from '../kit/elements.js';
import { colourPixels } from '../kit/numbers.js';

/** @typedef {{node: HTMLElement, picture: Picture, words: HTMLElement}} Tile */

/** All small maps, in the order of the states. */
export class Strip {
  /** @param {HTMLElement} element @param {Uint32Array} table */
  constructor(element, table) {
    this.element = element;
    this.table = table;
    /** @type {Tile[]} */
    this.tiles = [];
    this.place = { at: 0, stride: 1, rows: 1, cols: 1 };
    this.laid = '';
  }

  /** @param {string[]} names @param {[number, number]} grid @param {number} aspect width of a map over its height */
  lay(names, [rows, cols], aspect) {
    const laid = `${names.join()}|${rows}|${cols}|${aspect}`;
    if (laid === this.laid) return this.clear(); // so that the focus stays where it is
    this.laid = laid;
    this.place = { at: 0, stride: cols, rows, cols };
    this.tiles = names.map((name, state) => newTile(name, state, rows, cols));
    this.element.style.setProperty('--vv-aspect', String(aspect));
    this.element.replaceChildren(...this.tiles.map(({ node }) => node));
  }

  /** @param {number} state @param {Float32Array} map @param {[number, number]} range */
  paint(state, map, [low, high]) {
    const { picture } = this.tiles[state];
    if (!picture.pixels) return;
    paintMap(picture.pixels, this.place, map, this.table, [low, high, 0]);
    picture.show();
  }

  /** Colours of each state's patches, base64. */
  paintColours(/** @type {string[]} */ colours) {
    this.tiles.forEach(({ picture }, state) => {
      picture.pixels?.set(colourPixels(colours[state]));
      picture.show();
    });
  }

  /** The pixels of one state. @param {number} state @param {Uint32Array} pixels */
  paintPixels(state, pixels) {
    const { picture } = this.tiles[state];
    picture.pixels?.set(pixels);
    picture.show();
  }

  /** Nothing in any map. */
  clear() {
    for (const { picture } of this.tiles) {
      picture.pixels?.fill(0);
      picture.show();
    }
  }

  /** @param {number} chosen @param {(state: number) => string} textOf */
  say(chosen, textOf) {
    this.tiles.forEach(({ node, words }, state) => {
      node.setAttribute('aria-pressed', String(state === chosen));
      showText(words, textOf(state));
    });
  }
}

/** @param {string} name @param {number} state @param {number} rows @param {number} cols @returns {Tile} */
function newTile(name, state, rows, cols) {
  const node = make('button', 'vv-room-tile');
  const canvas = make('canvas');
  const holder = make('span', 'vv-room-small');
  const words = make('span', 'vv-room-words');
  holder.append(canvas);
  node.append(holder, make('span', 'vv-room-name', name), words);
  node.dataset.state = String(state);
  const picture = new Picture(canvas);
  picture.resize(cols, rows);
  return { node, picture, words };
}
