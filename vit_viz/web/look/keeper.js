// The store of a page as what an explorer's choices are kept in.

import { effect, untracked } from '../kit/preact.js';
/** @import { Explorer, Host } from '../../explorer/explorer.js' */
/** @import { Trace } from '../../explorer/geometry.js' */
/** @import { View } from '../../explorer/state.js' */
/** @import { Store } from '../kit/store.js' */

/**
 * @param {Store} store
 * @param {() => boolean} isPresent whether the explorer has what the store asks for; else that is on its way
 * @returns {Pick<Host, 'chosen' | 'keep'>}
 */
export function keeperOf(store, isPresent) {
  return {
    chosen: (trace) => chosenIn(store, trace),
    keep(view, trace, { push, byUser }) {
      // what stands in for a picture that is gone becomes the picture once somebody acts on it
      if (byUser || (isPresent() && isOf(store, trace)))
        store.set(
          { ...(isPresent() && subjectOf(trace)), ...linkOf(store, view, trace) },
          { push, soon: true },
        );
    },
  };
}

/**
 * Lets an explorer follow what is chosen elsewhere.
 * @param {Store} store @param {Explorer} explorer @param {() => Trace | null} present the trace of what the store says, once it is there
 */
export function follow(store, explorer, present) {
  effect(() => {
    const trace = present();
    if (!trace) return;
    chosenIn(store, trace); // which is read here, so that a change of it is followed
    untracked(() => explorer.follow());
  });
}

/** What a store says of a trace, as a change of the view that it begins with. @param {Store} store @param {Trace} trace */
export function chosenIn({ view, fields }, trace) {
  const [layer, head, query] = [view.layer.value, view.head.value, view.q.value];
  const isFirst = layer === null && head === fields.get('head')?.default; // nobody has chosen where to look
  return {
    ...Object.fromEntries(trace.options.map(({ name, link }) => [name, view[link].value])),
    ...(layer !== null && { layer }),
    ...(!isFirst && { head }),
    ...(query && { query }),
  };
}

/** A view as a store has it; a query that nobody has chosen is none. @param {Store} store @param {View} view @param {Trace} trace */
export function linkOf({ view: held }, view, { default_query: usual, options }) {
  return {
    layer: view.layer,
    head: view.head,
    q: view.query === usual && !held.q.peek() ? '' : view.query,
    ...Object.fromEntries(options.map(({ name, link }) => [link, view[/** @type {keyof View} */ (name)]])),
  };
}

/** What a trace is of; edits are in the store already. @param {Trace} trace */
function subjectOf({ model, image, mode, size = 0, part = '' }) {
  return { model, image, mode, size, part };
}

/** Whether a trace is of what the store says. @param {Store} store @param {Trace} trace */
export function isOf({ view, fields }, trace) {
  return Object.entries(subjectOf(trace)).every(
    ([name, value]) => value === (view[name].peek() || (fields.get(name)?.usual ?? value)),
  );
}
