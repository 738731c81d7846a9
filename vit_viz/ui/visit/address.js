// The page and its server: whether that still answers is asked now and then, so that nobody finds out by a question.

import { keepConnected } from './connection.js';
import { leaveDialogs, reopen } from './link.js';

const EVERY = 10_000; // milliseconds

/** @type {import('../kit/elements.js').Mount<{}>} */
export function mount() {
  const connection = keepConnected(reopen);
  window.setInterval(() => document.hidden || void connection.answers(), EVERY);
  leaveDialogs();
}
