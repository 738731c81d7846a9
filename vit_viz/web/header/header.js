// What the parts of the header share: what is known of the view, how far its pass or its model is, and what ends that. A view that
// cannot be had gives way to the one before it.

import { onReturn } from '../../ui/visit/link.js';
import { expectPhoto } from '../../ui/visit/photo_aspect.js';
import { asked } from '../kit/ask.js';
import { Job, STOPPED } from '../kit/job.js';
import { opening } from '../kit/page.js';
import { computed, effect, signal } from '../kit/preact.js';
/** @import { Models } from './model.js' */
/** @import { Picture, Pictures } from './pictures.js' */
/** @import { Page } from '../kit/page.js' */

/** @typedef {ReturnType<typeof headerOf>} Header */

const QUIET = 700; // milliseconds: a pass that is done sooner shows no bar
const GONE = 'This picture is not here any more; please bring it again.';

/** @param {Page} page @param {Pictures} samples */
export function headerOf(page, samples) {
  const { store, source, ask, turn } = page;
  const { answer: facts, pass, told } = opening(page);
  const load = new Job(() => void (told.value = told.peek() + 1)); // of a model that was chosen and is not there yet
  const problem = signal(''); // what became of that, in a sentence
  const isLate = signal(false); // whether the pass takes so long that it is shown
  const note = signal({ subject: '', words: '' }); // why the view gave way to another one
  /** The last view whose pass was there, value by value. @type {Record<string, any> | null} */
  let shown = null;

  effect(() => {
    if (facts.value.state !== 'pending') return;
    isLate.value = false;
    const timer = window.setTimeout(() => void (isLate.value = true), QUIET);
    return () => clearTimeout(timer);
  });
  const isThere = () => facts.value.state === 'done' && facts.value.value.view === store.subject();
  /** @type {any} */
  let last;
  /** What was told last of a view that there is: it stays while another is on its way. */
  const known = computed(() => {
    const { state, value } = facts.value;
    if (state === 'failed' || (state === 'done' && !value.refused)) last = value;
    return last;
  });

  effect(() => {
    const names = [...store.fields.keys()].filter((name) => name !== 'tab');
    const values = Object.fromEntries(names.map((name) => [name, store.view[name].value]));
    if (isThere() && !facts.value.value.refused) shown = values;
  });
  effect(() => {
    const { refused, instead } = (isThere() && facts.value.value) || {};
    if (refused) giveWay(refused, instead);
  });

  /** Shows the view that was there before this one, or what is possible of it, and says why. @param {string} words @param {Record<string, any>} instead of a link */
  function giveWay(words, instead) {
    pass.end(words);
    const before = Object.entries(shown ?? {}); // which may have been this one
    if (before.some(([name, value]) => value !== store.view[name].peek()))
      store.set(shown ?? {}, { push: false });
    else store.look(instead, { push: false });
    note.value = { subject: store.subject(), words };
  }

  /** Ends what the page waits for: it goes back to the view before; where there was none, what waits for the pass is told. */
  function cancel() {
    const model = store.view.model.peek();
    const { loads } = pass.preview;
    if (shown || loads) giveWay(loads ? cancelledWords(model) : '', { model: usual('model') });
    else ask.endAll(STOPPED);
  }

  // --- what can be opened: the models, and the pictures of this visit

  const usual = (/** @type {string} */ name) => store.fields.get(name)?.usual ?? '';
  const renewed = signal(0);
  let shapes = samples.aspects ?? {}; // of the pictures in the tray
  const unknown = () => (store.view.image.value in shapes ? '' : store.view.image.value);
  const newest = asked(
    ask,
    () => ['offered', { view: new URLSearchParams({ image: unknown() }).toString() }],
    renewed,
  );
  const offered = computed(() => /** @type {Pictures & {models?: Models}} */ (newest.value.value ?? samples));
  effect(() => void (shapes = offered.value.aspects ?? {}));
  /** The picture that is looked at: of a link to one that is not here, the one in its place. */
  const image = computed(
    () => (isThere() && facts.value.value.awaits ? '' : store.view.image.value) || usual('image'),
  );

  effect(() => {
    const { aspects } = offered.value;
    if (image.value && aspects) expectPhoto(image.value, aspects);
  });

  /** Looks at a picture of the tray, if it is there still. @param {Picture} picture */
  async function see({ id, own }) {
    problem.value = '';
    const here = own ? (await ask('offered', { view: '' })).pictures : [{ id }];
    if (here.some((/** @type {Picture} */ one) => one.id === id)) return store.look({ image: id });
    problem.value = GONE;
    renew();
  }

  /** Asks again what can be opened. */
  function renew() {
    renewed.value += 1;
  }

  /** A picture was brought, and is looked at. */
  function lookAt(/** @type {string} */ id) {
    // what a link says of a picture that is not here holds for the one that is brought in its place
    const isAwaited = isThere() && facts.value.value.awaits;
    if (store.view.image.peek() === id)
      turn.value += 1; // the very one that the link names
    else isAwaited ? store.set({ image: id }, { push: true }) : store.look({ image: id });
  }

  // --- another model

  let fetched = ''; // its name, once it is agreed that it is loaded
  onReturn(() => load.isRunning && load.end());

  /**
   * Shows a model once it is there; until then the page stays as it is.
   * @param {string} name @param {(question: any) => Promise<boolean>} agreed asks before a download
   */
  function choose(name, agreed) {
    const [body, words] = [{ view: store.subject(), name }, `Looking for ${name} …`];
    fetched = problem.value = '';
    const loaded = load.follow(
      async (stop, tell) => {
        const hear = (/** @type {Parameters<typeof tell>[0]} */ far) => {
          if (far.preview) fetched = name;
          tell(far);
        };
        const question = await ask('load', body, stop, hear);
        if (!question.hub) return true;
        tell({ share: 0, left: '', preview: { words: '' } });
        if (!(await agreed(question))) return false;
        stop.throwIfAborted();
        hear({ share: 0, left: '', preview: { words } });
        await ask('load', { ...body, agreed: true }, stop, hear);
        return true;
      },
      { words, whole: (isHere) => isHere && store.look({ model: name }) },
    );
    return loaded.catch(() => void (load.error && (problem.value = load.error)));
  }

  /** What takes a while now, and what ends it; null where nothing is said of it. */
  const far = computed(() => {
    void told.value;
    if (load.isRunning && load.words) return farOf(load, () => load.end(fetched && cancelledWords(fetched)));
    const isSeen = pass.isRunning && pass.preview && (isLate.value || pass.preview.loads);
    return isSeen ? farOf(pass, cancel) : null;
  });

  return {
    store,
    source,
    ask,
    turn,
    facts,
    known,
    model: computed(() => store.view.model.value || usual('model')),
    choose,
    see,
    lookAt,
    renew,
    offered,
    image,
    imageWords: computed(() => {
      const picture = offered.value.pictures.find(({ id }) => id === image.value);
      return !picture ? 'your image' : picture.own ? picture.name : `the sample ${picture.name}`;
    }),
    far,
    problem,
    /** Why this is another view than was asked for. */
    note: computed(() => (note.value.subject === store.subject() ? note.value.words : '')),
  };
}

/** How far a job is, as the server says it. @param {Job} job @param {() => void} stop */
function farOf({ isRunning, words, left, share, preview }, stop) {
  return { isRunning, words, left, share: preview?.of ?? share, amount: preview?.amount, stop };
}

/** @param {string} model */
function cancelledWords(model) {
  return `The download of ${model} was cancelled; nothing of it was kept.`;
}
