// The explorer on its page: Gradio's props go in; events, and what the link should hold, come out.

import { Explorer } from '../../explorer/explorer.js';
import { ExplorerLink } from './explorer_link.js';
import { SERVER } from './server_source.js';

/** @type {import('../kit/elements.js').Mount<import('../../explorer/explorer.js').Props>} */
export function mount(element, trigger, props, watch) {
  const explorer = new Explorer(element, trigger, props, SERVER);
  explorer.link = new ExplorerLink((link) => explorer.goTo(link));
  const alive = () => {
    if (element.isConnected) return true;
    explorer.destroy();
    return false;
  };
  watch('value', () => alive() && explorer.setValue(props.value));
  watch('busy', () => alive() && explorer.setBusy(props.busy));
  explorer.clear('');
  // what arrived before this module did; `watch` does not fire for it
  if (props.value) explorer.setValue(props.value);
  if (props.busy) explorer.setBusy(props.busy);
}
