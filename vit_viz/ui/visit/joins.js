// Questions whose answers cannot get lost.
//
// Gradio's server ends the stream of answers with the last answer that is outstanding, and its client opens one for the next question
// unless it believes that one is open. A question that is on its way while the stream ends can thus be accepted, find the stream open,
// lose it a moment later, and wait for ever: rare, and likeliest where a page opens on a busy machine. So the client hears that its
// question was accepted only after the tasks that were waiting then, the end of the stream among them.

const JOIN = '/queue/join';
const SETTLED = 20; // milliseconds in which a browser hands over what has come on another connection

/** Lets the questions of a window wait for what came before them. @param {{fetch: any}} scope */
export function settleJoins(scope) {
  const { fetch } = scope;
  scope.fetch = async (/** @type {any} */ target, /** @type {any} */ options) => {
    const answer = await fetch.call(scope, target, options);
    if (String(target?.url ?? target).includes(JOIN)) await new Promise((done) => setTimeout(done, SETTLED));
    return answer;
  };
}
