// The app's tabs in a file of their own: everything that they need stands in the page (vit_viz/offline/page.py).

import { inflated } from '../explorer/packed.js';
import { followTheme } from '../explorer/theme.js';
import { thePage } from '../web/kit/page.js';
import { html, render } from '../web/kit/preact.js';
import { unpacked } from '../web/kit/safetensors.js';
import { begin } from '../web/look/room.js';
import { Tabs } from '../web/page/tabs.js';
import { pageSource } from './source.js';
import { bytesIn } from './start.js';

/** @typedef {{question: string, options: Record<string, unknown>, refused?: string}} Kept why it is not in the page, where it is not */

/** Shows the tabs of this page. @param {import('../web/page/tabs.js').Tab[]} tabs @param {Record<string, string>} tables of colours @param {string} css their rules */
export function start(tabs, tables, css) {
  followTheme();
  document.head.append(Object.assign(document.createElement('style'), { textContent: css }));
  const { answers, ...facts } = JSON.parse(document.getElementById('vv-facts')?.textContent ?? '');
  const source = pageSource(facts, {
    layer: async (layer) => bytesIn(`vv-layer-${layer}`),
    answers: (name) =>
      answers.some((/** @type {Kept} */ { question, refused }) => question === name && !refused),
    answer: (name, body) => kept(answers, name, body),
  });
  void begin(source);
  render(
    html`<${Tabs} ...${{ store: thePage().store, tabs, tables }} />`,
    /** @type {HTMLElement} */ (document.getElementById('vv-page')),
  );
}

/**
 * The answer to a question with these options, if it stands in the page.
 * @param {Kept[]} answers @param {string} name @param {Record<string, unknown>} body
 */
async function kept(answers, name, body) {
  const wanted = Object.entries(body).filter(([, value]) => value !== null);
  const at = answers.findIndex(
    ({ question, options }) =>
      question === name && wanted.every(([option, value]) => value === options[option]),
  );
  if (at < 0) throw new Error('This answer is not in the file: it is in the app.');
  const { refused } = answers[at];
  if (refused) throw new Error(refused);
  return unpacked(await inflated(bytesIn(`vv-answer-${at}`)));
}
