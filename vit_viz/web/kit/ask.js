// Asking questions. Equal ones share an answer; what nobody waits for any more is ended, and never arrives.

import { computed, effect, signal } from './preact.js';
/** @import { Carried } from '../../ui/kit/carried.js' */
/** @import { Vectors } from '../../ui/kit/numbers.js' */

/** What a source says of what it does not take, in a sentence. */
export class Refused extends Error {}

/**
 * Who answers questions.
 * @typedef {object} Answers
 * @property {(name: string, body: any, signal: AbortSignal, tell?: Tell) => Promise<any>} answer raises an error whose message is a
 *     sentence
 * @property {(name: string, body: any, signal?: AbortSignal, hear?: (said: any) => void) => Promise<any>} [kept] the answer where it is at
 *     hand, else null; then it hears how the question was understood, and what it costs where it needs many passes
 * @property {(name: string) => boolean} keeps whether an answer may be given again to an equal question
 *
 * All that a page has from elsewhere: from a server, a packed file, a model in the page. What fails raises an error whose message is a
 * sentence; addresses are those of its answers.
 * @typedef {object} OfPage
 * @property {(name: string) => boolean} answers whether it answers a question; the app answers those that it does not
 * @property {string} accepts types of the files that it takes, as a file input has them
 * @property {(carried: Carried) => Promise<{pictures: File[], problems: string[], model?: string}>} received what it takes of files:
 *     pictures, and a model by its name, which is still to be loaded; and a sentence for each that it does not take
 * @property {(name: string) => any} stated what it says from the beginning: the "fields" of links, the "samples" of the tray; else null
 * @property {(address: string, signal?: AbortSignal, letters?: number) => Promise<Response>} at what lies at an address; letters: at
 *     most so many of a refusal are told
 * @property {(type: string) => boolean} makes whether it makes files of a type; the app makes those that it does not
 * @property {(name: string, body: any, type: string, signal?: AbortSignal) => Promise<Response>} file an answer as a file of a type
 * @property {(file: File, signal: AbortSignal) => Promise<{image: string, kept: string[]}>} bring makes a file a picture of this visit:
 *     its id, and those of all that are kept, as many large ones push out the first; raises `Refused` of a file that is none
 * @property {(trace: string, signal: AbortSignal) => Promise<any>} proof the badge of a pass; null where that is not known now; raises
 *     `Refused` where its pictures mislead
 * @property {(trace: string, state: number, role: string, tokens: number, signal: AbortSignal) => Promise<Vectors>} vectors of all
 *     tokens in a state of the pass
 * @property {(trace: string, grid: 'trained' | 'image', signal: AbortSignal) => Promise<Float32Array>} places how alike positions are:
 *     for every place of a grid, or every other, one of all places
 *
 * @typedef {Answers & OfPage & import('../../explorer/source.js').Source} Source
 *
 * Hears how far an answer is; left: the time that is left, in words; preview: what there is of it so far, where that is new.
 * @typedef {(far: {share: number, left: string, preview?: any}) => void} Tell
 * @typedef {(name: string, body: any, stop?: AbortSignal, tell?: Tell) => Promise<any>} Ask
 *
 * What came of a question: the value stays while the next one is on its way.
 * @typedef {{state: 'none' | 'pending' | 'done' | 'failed', value?: any, error?: string}} Answer
 */

const MOST_BYTES = 64 * 2 ** 20; // of answers that are kept

/**
 * @param {Answers} source
 * @param {number} [mostBytes] of what is kept
 * @returns {Ask & {endAll: (why: string) => void, kept: NonNullable<Answers['kept']>}} endAll: ends whatever is being answered, for a
 *     reason in a sentence; kept: the answer where it need not be computed
 */
export function asker(source, mostBytes = MOST_BYTES) {
  /** @type {Map<string, {answer: Promise<any>, end: AbortController, waiting: number, bytes: number, tells: Set<Tell>}>} */
  const known = new Map(); // the one that was asked for longest ago first
  const kept = () => [...known.values()].reduce((sum, { bytes }) => sum + bytes, 0);

  /** @param {string} key @param {string} name @param {any} body @param {boolean} isTold */
  function begin(key, name, body, isTold) {
    const [end, tells] = [new AbortController(), /** @type {Set<Tell>} */ (new Set())];
    const tell = isTold
      ? (/** @type {Parameters<Tell>[0]} */ far) => tells.forEach((one) => one(far))
      : undefined;
    const one = { end, tells, waiting: 0, bytes: 0, answer: source.answer(name, body, end.signal, tell) };
    const forget = () => void (known.get(key) === one && known.delete(key));
    one.answer.then((value) => {
      one.bytes = bytesOf(value);
      if (!source.keeps(name)) forget();
      for (const oldest of known.keys()) if (kept() > mostBytes) known.delete(oldest);
    }, forget);
    end.signal.addEventListener('abort', forget);
    return one;
  }

  /** @type {Ask} */
  const ask = (name, body, stop, tell) => {
    const key = `${name} ${JSON.stringify(body)}`;
    const one = known.get(key) ?? begin(key, name, body, Boolean(tell));
    known.delete(key);
    known.set(key, one);
    one.waiting += 1;
    if (tell) one.tells.add(tell);
    const leave = () => {
      if (tell) one.tells.delete(tell);
      one.waiting -= 1;
      if (!one.waiting) one.end.abort();
    };
    stop?.addEventListener('abort', leave);
    return one.answer.finally(() => stop?.removeEventListener('abort', leave));
  };
  /** @type {NonNullable<Answers['kept']>} */
  const atHand = async (name, body, stop, hear) => {
    const key = `${name} ${JSON.stringify(body)}`;
    const one = known.get(key);
    if (one?.bytes) return one.answer;
    const value = (await source.kept?.(name, body, stop, hear)) ?? null;
    if (value && !known.has(key)) {
      const answer = Promise.resolve(value);
      const [end, tells] = [new AbortController(), /** @type {Set<Tell>} */ (new Set())];
      known.set(key, { end, tells, answer, waiting: 0, bytes: bytesOf(value) });
    }
    return value;
  };
  /** @param {string} why */
  const endAll = (why) => [...known.values()].forEach(({ end }) => end.abort(new Error(why)));
  return Object.assign(ask, { endAll, kept: atHand });
}

/** What an answer takes: its arrays, and a little for the rest. @param {any} value */
function bytesOf(value) {
  const arrays = Object.values(value?.arrays ?? {});
  return arrays.reduce((sum, { data }) => sum + data.byteLength, 2048);
}

/**
 * The answer to a question that changes with the values that it reads.
 * @param {(name: string, body: any, stop: AbortSignal) => Promise<any>} ask
 * @param {() => [name: string, body: any] | null} question null: none now, and the last answer stays
 * @param {import('./preact.js').Signal<unknown>} [again] with each new value the same question is asked again
 * @returns {import('./preact.js').Signal<Answer>}
 */
export function asked(ask, question, again) {
  const answer = signal(/** @type {Answer} */ ({ state: 'none' }));
  const written = computed(() => JSON.stringify(question())); // so that an equal question is the same one
  effect(() => {
    void again?.value;
    const now = JSON.parse(written.value);
    if (!now) return;
    const stop = new AbortController();
    const tell = (/** @type {Answer} */ next) => void (stop.signal.aborted || (answer.value = next));
    tell({ ...answer.peek(), state: 'pending', error: undefined });
    ask(now[0], now[1], stop.signal).then(
      (value) => tell({ state: 'done', value }),
      (error) => tell({ state: 'failed', error: error.message }),
    );
    return () => stop.abort();
  });
  return answer;
}
