// The row of tabs, what each shows once it is opened, and a part in front of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PLACE } from '../../vit_viz/ui/visit/link.js';
import { html, render } from '../../vit_viz/web/kit/preact.js';
import { Filled, Tabs, showTab } from '../../vit_viz/web/page/tabs.js';
import { Browser, parse, ending } from './browser.js';
import { storeAt } from './header_page.js';
import { settle } from './room.js';

/** Two tabs at a link, and a part in front of them; `filled` tells which module was given which place. */
async function open(search = '?tab=heads') {
  const browser = new Browser(search);
  browser.install();
  const filled = /** @type {string[]} */ ([]);
  Object.assign(browser.window, {
    vit_viz: (/** @type {string} */ module) => ({
      mount(/** @type {any} */ element, /** @type {any} */ props) {
        filled.push(`${module} ${element.id} ${props.of}`);
        element.append('filled');
      },
    }),
  });
  const tabs = ['look', 'heads'].map((name) => ({
    ...{ name, label: name.toUpperCase(), html: `<i id="room-${name}" data-room></i><p>words</p>` },
    ...{ module: `web/${name}/room.js`, props: { of: name } },
  }));
  const part = {
    ...{ id: 'vv-tour', name: 'tour', html: '<b></b>' },
    module: 'tour.js',
    props: { of: 'all' },
  };
  const store = storeAt(PLACE);
  const root = /** @type {any} */ (parse('<div></div>'));
  render(html`<${Tabs} ...${{ store, tabs }} /><${Filled} ...${part} />`, root);
  ending.after(() => render(null, root));
  await settle();
  const seen = () =>
    root
      .querySelectorAll('[role=tabpanel]')
      .filter((/** @type {any} */ one) => !one.hidden)
      .map((/** @type {any} */ one) => one.id);
  const chosen = () => root.querySelector('[aria-selected=true]').id;
  return { browser, root, store, filled, seen, chosen };
}

test('the tab of the link is open, and filled with its room; the parts in front of it are filled as a whole', async () => {
  const { filled, seen, chosen, browser, root } = await open();
  assert.deepEqual([seen(), chosen()], [['vv-tab-heads'], 'vv-tab-heads-button']);
  assert.deepEqual(filled, ['web/heads/room.js room-heads heads', 'tour.js vv-tour all']);
  assert.equal(root.querySelector('#vv-tab-heads').textContent.trim(), 'filledwords');
  assert.deepEqual(browser.visited, []);
});

test('another tab is filled when it is opened first, stays as it is, and has a place in the history', async () => {
  const { filled, seen, browser, root, store } = await open();
  root.querySelector('#vv-tab-look-button').click();
  await settle();
  assert.deepEqual(browser.visited, [{ how: 'push', address: '/app#here' }]);
  assert.deepEqual([seen(), filled.at(-1)], [['vv-tab-look'], 'web/look/room.js room-look look']);
  /** @type {any} */ (browser.globals.history).back();
  await settle();
  assert.deepEqual(seen(), ['vv-tab-heads']);
  store.set({ tab: 'look' });
  await settle();
  assert.deepEqual([seen(), filled.length], [['vv-tab-look'], 3]);
  assert.equal(root.querySelector('#room-look').textContent, 'filled');
});

test('Tab reaches the open tab alone; arrows, Home and End go along the row, and Enter opens', async () => {
  const { root, chosen } = await open();
  const [look, heads] = root.querySelectorAll('[role=tab]');
  assert.deepEqual([look, heads].map((tab) => tab.getAttribute('tabindex')), ['-1', '0']); // prettier-ignore
  const focused = (/** @type {any} */ from, /** @type {string} */ key) => {
    from.focus();
    const { prevented } = from.fire('keydown', { key });
    return [prevented, /** @type {any} */ (globalThis).document.activeElement.id];
  };
  for (const [from, key, to] of [
    [heads, 'ArrowRight', look], // round
    [look, 'ArrowLeft', heads],
    [heads, 'ArrowLeft', look],
    [heads, 'Home', look],
    [look, 'End', heads],
    [look, 'ArrowDown', look],
  ])
    assert.deepEqual(focused(from, key), [true, to.id], key);
  assert.deepEqual([focused(look, 'Enter')[0], chosen()], [false, heads.id]); // a button opens by itself
  look.click();
  await settle();
  assert.deepEqual([look, heads].map((tab) => tab.getAttribute('tabindex')), ['0', '-1']); // prettier-ignore
});

test('the chosen tab is moved into sight, and the row no further than that', async () => {
  const row = /** @type {any} */ (
    parse('<div><b aria-selected="false"></b><i aria-selected="true"></i></div>')
  );
  const tab = row.querySelector('i');
  row.box = { left: 10, top: 0, width: 300, height: 40 };
  row.scrollLeft = 50;
  const shownAt = (/** @type {number} */ left) => {
    tab.box = { left, top: 0, width: 80, height: 40 };
    showTab(row);
    return row.scrollLeft;
  };
  assert.deepEqual([10, 230, 290, -20].map(shownAt), [50, 50, 138, 80]); // 28 more, so that the next one is seen
  tab.setAttribute('aria-selected', 'false');
  assert.equal(shownAt(900), 80);
  const page = await open();
  const [wrapper, look] = ['.tab-wrapper', '#vv-tab-look-button'].map((one) => page.root.querySelector(one));
  wrapper.box = { left: 10, top: 0, width: 300, height: 40 };
  look.box = { left: 290, top: 0, width: 80, height: 40 };
  page.store.set({ tab: 'look' });
  await settle();
  assert.equal(wrapper.scrollLeft, 88);
});
