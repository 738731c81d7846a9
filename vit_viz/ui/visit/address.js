// The page's connection to its server: as long as it is open the server keeps what is this visitor's.

import { routeUrl } from '../../explorer/source.js';
import { keepConnected } from './connection.js';
import { PAGE_NAME, isHeardOf, leaveDialogs, reopen } from './link.js';

/** @type {import('../kit/elements.js').Mount<{}>} */
export function mount() {
  const connection = keepConnected(reopen);
  const open = new window.EventSource(routeUrl(`/gradio_api/heartbeat/${PAGE_NAME}`), {
    withCredentials: true,
  });
  open.addEventListener('open', isHeardOf);
  open.addEventListener('error', () => void connection.answers()); // the first sign of a server that is gone
  leaveDialogs();
}
