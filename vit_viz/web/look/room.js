// The Look tab: the explorer, showing what the store of the page says, and keeping there what is chosen in it.

import { Explorer } from '../../explorer/explorer.js';
import { begin as beginPage, opened, thePage } from '../kit/page.js';
import { effect, signal, untracked } from '../kit/preact.js';
import { follow, keeperOf } from './keeper.js';
/** @import { Source } from '../kit/ask.js' */

/** What was fetched before there was an explorer for it. @type {{trace: string, layer: number, answer: Promise<any>, photo: HTMLImageElement} | null} */
let foreseen = null;

/** What runs first of all: the view is opened and, of this tab, the layer that it begins with fetched, and the photo. @param {Source} source */
export async function begin(source) {
  const trace = await beginPage(source);
  const { store } = thePage();
  if (!trace || store.view.tab.peek() !== 'look') return;
  const layer = store.view.layer.peek() ?? trace.opening.layer;
  if (layer >= trace.layers) return;
  const photo = Object.assign(new Image(), { src: source.photo(trace.photo) });
  const answer = source.layer(trace, layer, new AbortController().signal);
  answer.catch(() => (foreseen = null)); // whoever needs it fetches it again
  foreseen = { trace: trace.trace, layer, answer, photo };
}

/** @type {import('../../ui/kit/elements.js').Mount<{tables: Record<string, string>}>} */
export function mount(element, { tables }) {
  Object.assign(element, { explorer: look(element, thePage(), tables) }); // its numbers, for whoever opens the browser's console
}

/**
 * @param {HTMLElement} element with the explorer's parts @param {import('../kit/page.js').Page} one
 * @param {Record<string, string>} tables of colours
 */
export function look(element, one, tables) {
  const { store, source, turn } = one;
  const answer = opened(one, 'look');
  const subject = signal(''); // of what is shown, as the store said it
  const isPresent = () => subject.value === store.subject();
  const host = {
    ...keeperOf(store, isPresent),
    closer: (/** @type {string} */ part) => store.look({ part }),
    again: () => void (turn.value += 1),
  };
  /** @type {Source['layer']} */
  const layerOf = (trace, layer, stop) => {
    const first = foreseen;
    foreseen = null;
    const isIt = first?.trace === trace.trace && first.layer === layer;
    return isIt ? first.answer : source.layer(trace, layer, stop);
  };
  const explorer = new Explorer(element, host, tables, { ...source, layer: layerOf });
  explorer.clear('');
  effect(() => {
    const { state, value, error } = answer.value;
    untracked(() => {
      const model = store.view.model.peek() || value?.model || 'the model';
      explorer.setBusy(state === 'pending' ? `Running ${model} …` : '');
      if (state === 'failed') explorer.clear(error ?? '');
      if (state !== 'done') return;
      subject.value = store.subject();
      explorer.show(value);
    });
  });
  follow(store, explorer, () => (isPresent() ? answer.value.value : null));
  return explorer;
}
