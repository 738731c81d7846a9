// When the page opens, and on Back and Forward, it says what its address holds ('arrive'); the rooms begin with it.

import { keepConnected } from './connection.js';
import { identity, isHeardOf, leaveDialogs, onReturn, reopen, visit, write } from './link.js';
/** @import { Change } from './link.js' */

const JOIN = '/queue/join';
const SETTLED = 20; // milliseconds in which a browser hands over what has come on another connection

/**
 * Lets the questions of a window wait for what came before them; what the visitor did is told in the order in which it was done, for
 * requests beside each other overtake each other.
 * @param {{fetch: any}} scope
 */
export function settleJoins(scope) {
  const { fetch } = scope;
  /** @type {Promise<unknown>} */
  let told = Promise.resolve();
  scope.fetch = async (/** @type {any} */ target, /** @type {any} */ options) => {
    const ask = () => fetch.call(scope, target, options);
    if (!String(target?.url ?? target).includes(JOIN)) return ask();
    const { event_data: act, session_hash: page } = said(options);
    identity.page = page ?? identity.page;
    const waits = Boolean(act);
    const asked = waits ? told.then(ask) : ask();
    if (waits) told = asked.catch(() => {}); // whoever asked hears of it
    const answer = await asked;
    isHeardOf();
    await new Promise((done) => setTimeout(done, SETTLED));
    return answer;
  };
}

/** What a question says: with event_data what the visitor did, else one that the page has of its own. @param {any} options */
function said(options) {
  return typeof options?.body === 'string' ? JSON.parse(options.body) : {};
}

const PATIENCE = 8000; // milliseconds without an answer after which the page says again what its address holds
const MOST_TRIES = 4;

/**
 * Opens the page at its address. On a busy machine an event can get lost while the page is being built: it is told again, each time
 * after twice as long. Answers that come after Back was pressed, to what was done before it, leave the address as it is.
 * @type {import('../kit/elements.js').Mount<{value: Change | null}>}
 */
export function mount(_element, trigger, props, watch) {
  settleJoins(window);
  visit().trigger = trigger;
  keepConnected(reopen);
  let timer = 0;
  let arrivals = 0;
  let isReturning = false;
  const arrive = (tries = 1) => {
    arrivals += 1;
    trigger('arrive', { ...visit().arriving(), arrival: arrivals });
    clearTimeout(timer);
    if (tries < MOST_TRIES) timer = window.setTimeout(() => arrive(tries + 1), PATIENCE * 2 ** (tries - 1));
    else isReturning = false;
  };
  onReturn(() => {
    isReturning = true;
    arrive();
  });
  watch('value', () => {
    if (isReturning && props.value?.arrival !== arrivals) return;
    isReturning = false;
    clearTimeout(timer); // every answer says what the address holds now
    write(props.value);
    visit().arrived();
  });
  write(props.value); // of what was done before this module was there
  leaveDialogs();
  timer = window.setTimeout(arrive, 0);
}
