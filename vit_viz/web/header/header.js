// What the parts of the header share: what is known of the view, how far its pass or its model is, and what ends that. A view that
// cannot be had gives way to the one before it.

import { onReturn } from '../../ui/visit/link.js';
import { asked } from '../kit/ask.js';
import { stated, thePage } from '../kit/page.js';
import { computed, effect, signal } from '../kit/preact.js';
import { STOPPED, farWords } from '../kit/job.js';
/** @import { Pictures } from './pictures.js' */
/** @import { Page } from '../kit/page.js' */

/**
 * What takes a while: what is done, how far, in words and as a share where that is known; loads: whether a model is fetched.
 * @typedef {{words: string, amount?: string, share?: number | null, loads?: boolean, stop: () => void}} Far
 *
 * @typedef {ReturnType<typeof headerOf>} Header
 */

const QUIET = 700; // milliseconds: a pass that is done sooner shows no bar

/** @type {Header | null} */
let made = null;

/** That of this page. */
export function theHeader() {
  return (made ??= headerOf(thePage(), stated('samples')));
}

/** @param {Page} one @param {Pictures} samples */
export function headerOf({ store, ask, turn }, samples) {
  const pass = signal(/** @type {Far | null} */ (null));
  const load = signal(/** @type {Far | null} */ (null)); // of a model that was chosen and is not there yet
  const problem = signal(''); // what became of that, in a sentence
  const note = signal({ subject: '', words: '' }); // why the view gave way to another one
  /** The last view whose pass was there, value by value. @type {Record<string, any> | null} */
  let shown = null;

  /** @type {import('../kit/ask.js').Ask} */
  const follow = async (name, body, stop) => {
    let [isOver, isLate] = [false, false];
    let far = /** @type {{share: number, left: string, preview?: any}} */ ({ share: 0, left: '' });
    let doing = far.preview;
    const show = () => {
      if (stop.aborted || isOver || !doing || !(isLate || doing.loads)) return;
      pass.value = { ...farOf(doing, far), loads: Boolean(doing.loads), stop: cancel };
    };
    const timer = window.setTimeout(() => {
      isLate = true;
      show();
    }, QUIET);
    try {
      const link = store.place.search(); // with what is shown of the subject: not all of it may be possible there
      const value = await ask(name, { view: link }, stop, (next) => {
        far = next;
        doing = next.preview ?? doing;
        show();
      });
      return { ...value, subject: body.subject };
    } finally {
      isOver = true;
      clearTimeout(timer);
      if (!stop.aborted) pass.value = null;
    }
  };
  const facts = asked(follow, () => ['facts', { subject: store.subject() }], turn);
  const isThere = () => facts.value.state === 'done' && facts.value.value.subject === store.subject();

  effect(() => {
    const names = [...store.fields.keys()].filter((name) => name !== 'tab');
    const values = Object.fromEntries(names.map((name) => [name, store.view[name].value]));
    if (isThere() && !facts.value.value.unloaded) shown = values;
  });
  effect(() => {
    if (isThere() && facts.value.value.unloaded) giveWay(facts.value.value.unloaded);
  });

  /** Shows the view that was there before this one, or what the page begins with, and says why. @param {string} words */
  function giveWay(words) {
    pass.value = null;
    if (shown) store.set(shown, { push: false });
    else store.look({ model: usual('model') }, { push: false });
    note.value = { subject: store.subject(), words };
  }

  /** Ends what the page waits for: it goes back to the view before; where there was none, what waits for the pass is told. */
  function cancel() {
    const model = store.view.model.peek();
    const loads = pass.value?.loads;
    if (shown || loads) giveWay(loads ? cancelledWords(model) : '');
    else ask.endAll(STOPPED);
  }

  // --- the pictures of this visit

  const usual = (/** @type {string} */ name) => store.fields.get(name)?.usual ?? '';
  const brought = signal(0);
  let known = samples; // to the tray, with their shapes
  const unknown = () => (store.view.image.value in (known.aspects ?? {}) ? '' : store.view.image.value);
  const newest = asked(
    ask,
    () => ['tray', { view: new URLSearchParams({ image: unknown() }).toString() }],
    brought,
  );
  const tray = computed(() => /** @type {Pictures} */ (newest.value.value ?? samples));
  effect(() => void (known = tray.value));
  /** The picture that is looked at: of a link to one that is not here, the one in its place. */
  const image = computed(
    () => (isThere() && facts.value.value.awaits ? '' : store.view.image.value) || usual('image'),
  );

  /** A picture was brought, and is looked at. */
  function lookAt(/** @type {string} */ id) {
    // what a link says of a picture that is not here holds for the one that is brought in its place
    const isAwaited = isThere() && facts.value.value.awaits;
    isAwaited ? store.set({ image: id }, { push: true }) : store.look({ image: id });
  }

  // --- another model

  let choosing = new AbortController();
  onReturn(() => {
    choosing.abort();
    load.value = null;
  });

  /**
   * Shows a model once it is there; until then the page stays as it is.
   * @param {string} name @param {(question: any) => Promise<boolean>} agreed asks before a download
   */
  async function choose(name, agreed) {
    choosing.abort();
    const mine = (choosing = new AbortController());
    const view = store.subject();
    const stop = () => {
      mine.abort();
      load.value = null;
      if (isAgreed) problem.value = cancelledWords(name);
    };
    let isAgreed = false;
    problem.value = '';
    load.value = { words: `Looking for ${name} …`, share: null, stop };
    try {
      const question = await ask('wanted', { view, name }, mine.signal);
      if (question.hub) {
        load.value = null;
        if (!(await agreed(question)) || mine.signal.aborted) return;
        load.value = { words: `Looking for ${name} …`, share: null, stop };
      }
      isAgreed = true;
      await ask('load', { view, name }, mine.signal, (far) => {
        if (!mine.signal.aborted && far.preview) load.value = { ...farOf(far.preview, far), stop };
      });
      if (!mine.signal.aborted) store.look({ model: name });
    } catch (error) {
      if (!mine.signal.aborted) problem.value = /** @type {Error} */ (error).message;
    } finally {
      if (mine === choosing && !mine.signal.aborted) load.value = null;
    }
  }

  return {
    store,
    ask,
    turn,
    facts,
    isThere,
    choose,
    lookAt,
    problem,
    tray,
    image,
    imageWords: computed(() => {
      const picture = tray.value.pictures.find(({ id }) => id === image.value);
      return !picture ? 'your image' : picture.own ? picture.name : `the sample ${picture.name}`;
    }),
    /** Asks for the tray again. */
    renewTray: () => void (brought.value += 1),
    /** What takes a while now. */ far: computed(() => load.value ?? pass.value),
    /** Why this is another view than was asked for. */
    note: computed(() => (note.value.subject === store.subject() ? note.value.words : '')),
  };
}

/** @param {{words: string, amount?: string, of?: number}} doing @param {{share: number, left: string}} far */
function farOf({ words, amount, of }, { share, left }) {
  return { words, amount: amount ?? farWords(share, left).trim(), share: of ?? (share || null) };
}

/** @param {string} model */
function cancelledWords(model) {
  return `The download of ${model} was cancelled; nothing of it was kept.`;
}
