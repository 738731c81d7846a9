// The Look tab: the explorer, showing what the store of the page says, and keeping there what is chosen in it.

import { Explorer } from '../../explorer/explorer.js';
import { opened, page } from '../kit/page.js';
import { effect, untracked } from '../kit/preact.js';
import { follow, keeperOf } from './keeper.js';
import { SERVER } from './server_source.js';

/** @type {import('../../ui/kit/elements.js').Mount<{tables: Record<string, string>}>} */
export function mount(element, _trigger, { tables }) {
  void page.then((one) => look(element, one, tables));
}

/**
 * @param {HTMLElement} element with the explorer's parts @param {import('../kit/page.js').Page} one
 * @param {Record<string, string>} tables of colours
 */
export function look(element, one, tables) {
  const { store, turn } = one;
  const answer = opened(one, 'look');
  let subject = ''; // of what is shown, as the store said it
  const isPresent = () => subject === store.subject();
  const host = {
    ...keeperOf(store, isPresent),
    closer: (/** @type {string} */ part) => store.look({ part }),
    again: () => void (turn.value += 1),
  };
  const explorer = new Explorer(element, host, tables, SERVER);
  explorer.clear('');
  effect(() => {
    const { state, value, error } = answer.value;
    untracked(() => {
      const model = store.view.model.peek() || value?.model || 'the model';
      explorer.setBusy(state === 'pending' ? `Running ${model} …` : '');
      if (state === 'failed') explorer.clear(error ?? '');
      if (state !== 'done') return;
      subject = store.subject();
      explorer.show(value);
    });
  });
  follow(store, explorer, () => (isPresent() ? answer.value.value : null));
  return explorer;
}
