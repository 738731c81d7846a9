// What rooms share: the store of the page, and what its view is of.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asker } from '../../vit_viz/web/kit/ask.js';
import { begin, opened } from '../../vit_viz/web/kit/page.js';
import { signal } from '../../vit_viz/web/kit/preact.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { Browser } from './browser.js';
import { placeAt, settle, usualFields } from './room.js';

/** A page at a link; `asked` are its questions what that is to, which are answered at once. */
function pageAt(/** @type {string} */ search) {
  const store = new Store(usualFields, placeAt(search));
  /** @type {{view: string, signal: AbortSignal}[]} */
  const asked = [];
  const ask = asker({
    keeps: () => false,
    async answer(name, { view }, stop) {
      assert.equal(name, 'open');
      asked.push({ view, signal: stop });
      return view.includes('gone') ? { refused: 'It is gone.' } : { trace: `trace of ${view}` };
    },
  });
  return { page: { store, source: SERVER, ask, turn: signal(0) }, store, asked };
}

test('what a view is of is asked for once for all of the page; one that gives way fails in the tab that is seen', async () => {
  const { page, store, asked } = pageAt('?layer=3&tab=patches');
  const [patches, heads] = ['patches', 'heads'].map((tab) => opened(page, tab));
  await settle();
  const trace = 'trace of ?layer=3&tab=patches';
  const { state, value } = patches.value;
  assert.deepEqual([state, value], ['done', { trace, view: 'model=mini&image=lion' }]);
  assert.equal(heads.value.state, 'none');
  store.set({ tab: 'heads' });
  assert.deepEqual([heads.value.state, asked.length], ['done', 1]);
  page.turn.value += 1;
  store.set({ image: 'tower' }); // before anybody has heard of the one before
  assert.deepEqual(
    asked.map(({ signal: stop }) => stop.aborted),
    [false, true, false],
  );
  await settle();
  assert.deepEqual([heads.value.value.view, patches.value.value.trace], ['model=mini&image=tower', trace]);
  store.set({ image: 'gone' });
  await settle();
  const { state: now, error, value: last } = heads.value;
  assert.deepEqual([now, error, last.view], ['failed', 'It is gone.', 'model=mini&image=tower']);
});

test('what was opened long ago is opened again for another tab, as its addresses expire', async (t) => {
  const { page, store, asked } = pageAt('');
  opened(page, 'look');
  await settle();
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 1_700_000 });
  store.set({ tab: 'patches' });
  assert.equal(asked.length, 1);
  t.mock.timers.tick(200_000);
  store.set({ tab: 'heads' });
  assert.equal(asked.length, 2);
});

test('a page without links opens nothing', async () => {
  new Browser().install({ gradio_config: { components: [] } });
  assert.equal(await begin(SERVER), null);
});
