// A component of the app's page on a page without Gradio.

/** @import { Mount, Trigger } from '../ui/kit/elements.js' */

/**
 * Mounts a component; returns what gives it another value.
 * @template Value
 * @param {HTMLElement} element @param {Mount<{value: Value}>} mount @param {Value} value @param {Trigger} [trigger]
 * @returns {(value: Value) => void}
 */
export function hosted(element, mount, value, trigger = () => {}) {
  const props = { value };
  /** @type {(() => void)[]} */
  const watchers = [];
  mount(element, trigger, props, (_names, callback) => void watchers.push(callback));
  return (next) => {
    props.value = next;
    for (const tell of watchers) tell();
  };
}
