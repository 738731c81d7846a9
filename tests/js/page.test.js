// What rooms share: the store of the page, and what was opened while the page was still being built.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { begin, opened, thePage } from '../../vit_viz/web/kit/page.js';
import { Browser, read } from './browser.js';

const fields = JSON.parse(read('./links.json')).fields.map((/** @type {any} */ field) => ({
  ...field,
  ...(field.link === 'model' && { usual: 'mini' }),
  ...(field.link === 'image' && { usual: 'lion' }),
}));
const settled = () => new Promise((done) => setImmediate(done));

test('what a link is to is opened before there is a room for it, and once', async (t) => {
  const browser = new Browser('?layer=3&tab=patches');
  /** @type {{body: any, signal: AbortSignal}[]} */
  const asked = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { body, signal }) => {
    assert.equal(path, '/vit_viz/open');
    asked.push({ body: JSON.parse(body).view, signal });
    return new Response(body);
  };
  const address = { props: { fields: JSON.stringify(fields) } };
  const components = [{ props: {} }, { props: address }];
  browser.install(t, { fetch, gradio_config: { components } });
  thePage().store.read(); // other tests have used it
  void begin();
  assert.equal(asked[0].body, 'model=mini&image=lion');
  const { store } = thePage();
  assert.equal(store.view.layer.value, 3);
  const answer = opened(thePage(), 'patches');
  await settled();
  await settled();
  assert.deepEqual(
    [answer.value.state, answer.value.value, asked.length],
    ['done', { view: 'model=mini&image=lion' }, 1],
  );
  thePage().turn.value += 1;
  assert.deepEqual(
    asked.map(({ body }) => body),
    ['model=mini&image=lion', 'model=mini&image=lion'],
  );
  await settled();
  void begin(); // and then another picture is chosen, before anybody has asked for this one
  store.set({ image: 'tower' });
  assert.deepEqual(
    asked.slice(2).map(({ body, signal }) => [body, signal.aborted]),
    [
      ['model=mini&image=lion', true],
      ['model=mini&image=tower', false],
    ],
  );
});

test('what was opened for the tab of the link is not for another one, for which it may be too old', async (t) => {
  const browser = new Browser('?tab=heads');
  let asked = 0;
  const fetch = async () => {
    asked += 1;
    return new Response('{}');
  };
  const address = { props: { fields: JSON.stringify(fields) } };
  browser.install(t, { fetch, gradio_config: { components: [{ props: address }] } });
  const { store } = thePage();
  store.read();
  void begin();
  opened(thePage(), 'patches');
  assert.equal(asked, 1);
  store.set({ tab: 'patches' });
  assert.equal(asked, 2);
});

test('a page without links opens nothing', async (t) => {
  new Browser().install(t, { gradio_config: { components: [] } });
  assert.equal(await begin(), null);
});
