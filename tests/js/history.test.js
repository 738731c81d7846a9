// The browser's history: what Back leads to, dialogs as entries, and answers that come too late.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { followTabs } from '../../vit_viz/web/header/tab_row.js';
import { mount as mountAddress } from '../../vit_viz/ui/visit/address.js';
import { PLACE, onReturn, openDialog, wholeAddress, writeLink } from '../../vit_viz/ui/visit/link.js';
import { Browser, component, mount, parse } from './browser.js';
import { storeAt } from './header_page.js';

const ADDRESS = component(mountAddress, 'ui/kit/__init__.py#Address');

/** A dialog as a browser has it. @returns {any} */
function makeDialog() {
  const dialog = /** @type {any} */ (parse('<div></div>'));
  const close = () => {
    if (!dialog.open) return;
    dialog.open = false;
    dialog.fire('close');
  };
  return Object.assign(dialog, { open: false, showModal: () => void (dialog.open = true), close });
}

/** A page that was opened at a link, and the links that its visitor returns to. @param {any} context */
function begin(context, search = '?tab=heads') {
  const browser = new Browser(search);
  browser.install(context);
  /** @type {string[]} */ const returned = [];
  onReturn((link) => returned.push(link));
  return { browser, history: /** @type {any} */ (browser.globals.history), returned };
}

test('Back closes a dialog and stays on the view; Forward opens it again', (t) => {
  const { browser, history, returned } = begin(t);
  const dialog = makeDialog();
  openDialog(dialog);
  openDialog(dialog);
  assert.deepEqual([history.length, dialog.open], [2, true]);
  history.back();
  assert.deepEqual([dialog.open, returned, browser.location.search], [false, [], '?tab=heads']);
  history.go(1);
  assert.deepEqual([dialog.open, returned], [true, []]);
});

test('a dialog that is closed in another way leaves no entry, and what was written beside it stays', (t) => {
  const { browser, history, returned } = begin(t);
  const dialog = makeDialog();
  openDialog(dialog);
  writeLink('?tab=heads&layer=3', { push: false });
  dialog.close();
  assert.deepEqual([browser.location.search, history.state, returned], ['?tab=heads&layer=3', {}, []]);
  writeLink('?tab=look', { push: true });
  assert.equal(history.length, 2);
  history.back();
  assert.deepEqual(returned, ['?tab=heads&layer=3']);
});

test('another view that comes while dialogs are open lies below them', (t) => {
  const { browser, history, returned } = begin(t);
  const [under, over] = [makeDialog(), makeDialog()];
  openDialog(under);
  openDialog(over);
  assert.equal(history.length, 3);
  history.back();
  assert.deepEqual([under.open, over.open], [true, false]);
  writeLink('?tab=look', { push: true });
  assert.deepEqual([history.length, under.open], [3, true]);
  history.back();
  assert.deepEqual([under.open, browser.location.search, returned], [false, '?tab=look', []]);
  history.back();
  assert.deepEqual(returned, ['?tab=heads']);
});

test('what was written beside a dialog stays after Back, and a jump over it leads to that view', (t) => {
  const { browser, history, returned } = begin(t);
  writeLink('?tab=look', { push: true });
  const dialog = makeDialog();
  openDialog(dialog);
  writeLink('?tab=look&head=2', { push: false });
  history.back();
  assert.deepEqual([browser.location.search, returned], ['?tab=look&head=2', []]);
  history.go(1);
  history.go(-2);
  assert.deepEqual([dialog.open, returned], [false, ['?tab=heads']]);
});

test('after a reload the entry of a dialog that is not open any more is left', (t) => {
  const browser = new Browser('?tab=heads');
  browser.install(t);
  const history = /** @type {any} */ (browser.globals.history);
  history.pushState({ vvDialogs: 1, theirs: 4 }, '', '?tab=heads');
  const { told } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(0);
  assert.deepEqual(history.state, null);
  assert.deepEqual(told, [['arrive', { search: '?tab=heads', told: 0, arrival: 1 }]]);
  history.go(1);
  assert.deepEqual([history.state, told.length], [null, 1]);
});

test('an answer to what was done before Back was pressed leaves the address as it is', () => {
  const browser = new Browser('?tab=heads');
  const { told, set } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  const history = /** @type {any} */ (browser.globals.history);
  browser.pass(0);
  set({ set: {}, push: false, arrival: 1 });
  set({ set: { tab: 'look' }, push: true });
  history.back();
  history.go(1);
  set({ set: { tab: 'tokens' }, push: true }); // of before
  set({ set: {}, push: false, arrival: 2 }); // of the Back that Forward has overtaken
  assert.equal(browser.location.search, '?tab=look');
  assert.deepEqual(told.at(-1), ['arrive', { search: '?tab=look', told: 0, arrival: 3 }]);
  set({ set: { layer: '2' }, push: false, arrival: 3 });
  set({ set: { tab: 'tokens' }, push: true });
  assert.equal(browser.location.search, '?tab=tokens&layer=2');
});

test('an answer that a later one has overtaken leaves what that wrote, and writes the rest', () => {
  const browser = new Browser('?tab=walkthrough');
  const { set } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(0);
  set({ set: {}, push: false, revision: 3 });
  set({ set: { q: '9,8' }, push: false, revision: 5 });
  set({ set: { q: '8,8', layer: '2' }, push: false, revision: 4 }); // asked before, answered after
  assert.equal(browser.location.search, '?tab=walkthrough&q=9,8&layer=2');
  set({ set: { q: null }, push: false, revision: 6 });
  set({ set: { q: '8,8' }, push: false, revision: 4 });
  assert.equal(browser.location.search, '?tab=walkthrough&layer=2');
  set({ set: { q: '7,7' }, push: true }); // of the page itself
  assert.equal(browser.location.search, '?tab=walkthrough&layer=2&q=7,7');
});

/** A page whose arrival was answered: what it tells from there on, and its later arrivals. @param {string} search */
function visited(search) {
  const browser = new Browser(search);
  const { told, set } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(0);
  set({ set: {}, push: false, arrival: 1 });
  const after = (/** @type {string} */ event) =>
    told
      .slice(1)
      .filter(([name]) => name === event)
      .map(([, data]) => data);
  return { browser, set, follows: () => after('follow'), arrivals: () => after('arrive') };
}

test('what a room writes is told, and answers to what was done before leave it as it is', () => {
  const { browser, follows, set } = visited('?tab=patches&q=class');
  /** @type {string[]} */ const links = [];
  PLACE.listen(() => links.push(PLACE.search()));
  PLACE.write({ q: '3,4' }, { push: true });
  PLACE.write({ q: '3,5', layer: null }, { push: false });
  PLACE.write({ q: '3,5' }, { push: true }); // it says so already
  assert.deepEqual(follows(), [
    { set: { q: '3,4' }, told: 1 },
    { set: { q: '3,5', layer: null }, told: 2 },
  ]);
  set({ set: { q: '9,9', tab: null }, push: false, revision: 4, heard: 0 }); // before both
  set({ set: { q: '3,4' }, push: true, revision: 5, heard: 1 });
  assert.equal(browser.location.search, '?q=3,5');
  set({ set: { q: '3,5' }, push: true, revision: 6, heard: 2 });
  assert.equal(/** @type {any} */ (browser.globals.history).length, 2);
  set({ set: { q: 'class' }, push: false, revision: 7, heard: 2 }); // and this is of after
  assert.deepEqual(links, ['?tab=patches&q=3,4', '?tab=patches&q=3,5', '?q=3,5', '?q=class']);
});

test('what a slider says is written and told once the hand rests, or with whatever is chosen next', () => {
  const { browser, follows, set } = visited('?tab=look');
  const more = { push: false, soon: true };
  PLACE.write({ alpha: '0.5' }, more);
  browser.pass(199);
  PLACE.write({ alpha: '0.4' }, more);
  assert.deepEqual([browser.location.search, PLACE.search()], ['?tab=look', '?tab=look&alpha=0.4']);
  set({ set: { alpha: '0.9', layer: '1' }, push: false, revision: 3, heard: 0 }); // of before
  browser.pass(199);
  assert.deepEqual([browser.location.search, follows()], ['?tab=look&layer=1', []]);
  browser.pass(1);
  assert.equal(browser.location.search, '?tab=look&layer=1&alpha=0.4');
  assert.deepEqual(follows(), [{ set: { alpha: '0.4' }, told: 1 }]);
  PLACE.write({ alpha: '0.3' }, more);
  PLACE.write({ q: '1,2' }, { push: true, soon: true }); // a place of its own: at once
  PLACE.write({ q: '1,3' }, { push: true, soon: true });
  assert.equal(browser.location.search, '?tab=look&layer=1&alpha=0.3&q=1,3');
  browser.pass(49);
  assert.equal(follows().length, 1);
  browser.pass(1);
  assert.deepEqual(follows()[1], { set: { alpha: '0.3', q: '1,3' }, told: 4 });
  PLACE.write({ alpha: '0.2' }, more);
  PLACE.write({ tab: 'heads' }, { push: true });
  assert.deepEqual(follows()[2], { set: { alpha: '0.2', tab: 'heads' }, told: 6 });
  PLACE.write({ alpha: '0.1' }, more);
  assert.match(wholeAddress(), /^http/);
  assert.match(browser.location.search, /alpha=0.1/); // what is sent to somebody is what is seen
});

test('on Back what was to be written is not; Python reads the address, and follows once it has', () => {
  const { browser, follows, arrivals, set } = visited('?layer=1');
  PLACE.write({ q: '1,2' }, { push: true });
  PLACE.write({ alpha: '0.5' }, { push: false, soon: true });
  PLACE.write({ q: '3,4' }, { push: true, soon: true }); // Python has not heard of it yet
  /** @type {any} */ (browser.globals.history).back();
  browser.pass(1000);
  assert.equal(browser.location.search, '?layer=1&q=1,2&alpha=0.5');
  assert.deepEqual(arrivals().at(-1), { search: '?layer=1&q=1,2&alpha=0.5', told: 3, arrival: 2 });
  const before = follows().length;
  PLACE.write({ head: '3' }, { push: false });
  assert.equal(follows().length, before);
  set({ set: {}, push: false, revision: 9, arrival: 2, heard: 3 }); // the address is right as it is
  assert.deepEqual(follows().slice(before), [{ set: { head: '3' }, told: 4 }]);
  set({ set: { q: '3,4' }, push: true, revision: 8, heard: 4 }); // of what was done before Back, and comes after its answer
  assert.match(browser.location.search, /q=1,2/);
  set({ set: { q: 'class' }, push: false, revision: 10, heard: 4 });
  assert.match(browser.location.search, /q=class/);
});

test('a tab that is pressed is told, one that the page has opened is not', (t) => {
  const row = parse(
    '<button role="tab" id="vv-tab-look-button" aria-selected="true">Look</button>' +
      '<button role="tab" id="vv-tab-heads-button"><b>Heads</b></button><button role="tab" id="other">x</button>',
  );
  const document = { querySelector: () => row };
  const browser = new Browser();
  class MutationObserver {
    observe() {}
  }
  browser.install(t, { document, MutationObserver });
  followTabs(storeAt(PLACE));
  assert.deepEqual(browser.visited, []);
  const [look, heads, other] = row.children;
  for (const target of [heads.children[0], other, row]) row.fire('click', { target });
  look.setAttribute('aria-selected', 'false');
  heads.setAttribute('aria-selected', 'true');
  assert.deepEqual(browser.visited, [{ how: 'push', address: '?tab=heads#here' }]);
});

test('a row of tabs that comes after its script is listened to once it is there', (t) => {
  const row = parse(
    '<button role="tab" id="vv-tab-look-button">Look</button><button role="tab" id="vv-tab-heads-button">Heads</button>',
  );
  const page = { row: /** @type {any} */ (null) };
  /** @type {{call: () => void, isOver: boolean}[]} */
  const watching = [];
  class MutationObserver {
    constructor(/** @type {() => void} */ call) {
      this.one = { call, isOver: false };
      watching.push(this.one);
    }
    observe() {}
    disconnect() {
      this.one.isOver = true;
    }
  }
  const browser = new Browser();
  browser.install(t, { document: { querySelector: () => page.row }, MutationObserver });
  followTabs(storeAt(PLACE));
  watching[0].call();
  assert.equal(watching[0].isOver, false);
  page.row = row;
  watching[0].call();
  assert.ok(watching[0].isOver);
  row.fire('click', { target: row.children[1] });
  assert.deepEqual(browser.visited, [{ how: 'push', address: '?tab=heads#here' }]);
});

test('a tab that was pressed before its script was there is told with the arrival', (t) => {
  const row = parse(
    '<button role="tab" id="vv-tab-look-button">Look</button>' +
      '<button role="tab" id="vv-tab-heads-button" aria-selected="true">Heads</button>',
  );
  const browser = new Browser();
  class MutationObserver {
    observe() {}
  }
  browser.install(t, { document: { querySelector: () => row }, MutationObserver });
  followTabs(storeAt(PLACE));
  const { told, set } = mount(ADDRESS, null, { browser, props: { fields: '[]' } });
  browser.pass(0);
  assert.deepEqual(told, [['arrive', { search: '?tab=heads', told: 1, arrival: 1 }]]);
  set({ set: { tab: 'tokens' }, push: true, revision: 2, heard: 1, arrival: 1 });
  assert.equal(browser.location.search, '?tab=tokens');
});
