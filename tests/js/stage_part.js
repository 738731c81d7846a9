// The stage of the Explain tab without a server: a test says which map it is answered with, hears what is asked and chosen, and answers.

import { signal } from '../../vit_viz/web/kit/preact.js';
import { asker } from '../../vit_viz/web/kit/ask.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Stage, stageIn } from '../../vit_viz/web/explain/stage.js';
import { component, mount, read } from './browser.js';
import { STAGED } from './staged.js';
import { placeAt } from './store.test.js';
import { settle } from './visit.js';

const { fields } = JSON.parse(read('./links.json'));
const HTML = 'web/explain/stage.html';

/** @typedef {{data: any, stop: AbortSignal, tell?: any, answer: (value: any) => Promise<void>}} Question an error refuses it */

/** A question that a test answers. @param {Question[]} questions @param {any} data @param {AbortSignal} stop @param {any} [tell] @returns {Promise<any>} */
function posed(questions, data, stop, tell) {
  return new Promise((done, failed) => {
    const answer = async (/** @type {any} */ value) => {
      if (value instanceof Error) failed(value);
      else done(value);
      await settle();
    };
    questions.push({ data, stop, tell, answer });
  });
}

/** With its first map. `told` is what was chosen; `rest` and `leads` what was asked; `show` another map, null: it is on its way, a text: a refusal. */
export function mountStage(/** @type {any} */ map = STAGED) {
  /** @type {Question[]} */
  const rest = [];
  /** @type {Question[]} */
  const leads = [];
  /** @type {Stage[]} */
  const made = [];
  /** @type {any} */
  const start = (/** @type {any} */ element, /** @type {any} */ trigger) =>
    made.push(
      new Stage(element, {
        without: ({ view, target }, gone, stop) => posed(rest, { view, target, gone }, stop),
        lead: ({ view }, stop, tell) => posed(leads, { view }, stop, tell),
        side: (side) => trigger('side', side),
        pick: (_photo, patch) => trigger('pick', patch),
        move: (_photo, step) => trigger('move', step),
      }),
    );
  const part = mount(component(start, HTML), null);
  const [stage] = made;
  const show = (/** @type {any} */ next) => {
    if (next === null) stage.wait();
    else if (typeof next === 'string') stage.refuse(next);
    else stage.show(next);
  };
  show(map);
  return { ...part, stage, rest, leads, show, asked: () => rest.map(({ data }) => data.gone) };
}

/** Over a store, whose questions a test answers. */
export async function openStage(search = '') {
  const place = placeAt(`?tab=explain&image=lion${search}`);
  const store = new Store(fields, place);
  const turn = signal(0);
  /** @type {Record<string, Question[]>} */
  const asked = { stage: [], without: [], lead: [] };
  const ask = asker({
    keeps: () => false,
    answer: (name, body, stop, tell) => posed(asked[name], body, stop, tell),
  });
  const part = mount(
    component((element) => void stageIn(element, { store, ask, turn }), HTML),
    null,
  );
  await settle();
  return { ...part, place, store, turn, asked };
}
