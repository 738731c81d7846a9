// The browser's history: what Back leads to, dialogs as entries, and what is written when.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  PLACE,
  leaveDialogs,
  onReturn,
  openDialog,
  visit,
  wholeAddress,
} from '../../vit_viz/ui/visit/link.js';
import { Browser, parse } from './browser.js';

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

/** A page that was opened at a link, and the links that its visitor returns to. */
function begin(search = '?tab=heads') {
  const browser = new Browser(search);
  browser.install();
  /** @type {string[]} */ const returned = [];
  onReturn((link) => returned.push(link));
  return { browser, history: /** @type {any} */ (browser.globals.history), returned };
}

test('Back closes a dialog and stays on the view; Forward opens it again', () => {
  const { browser, history, returned } = begin();
  const dialog = makeDialog();
  openDialog(dialog);
  openDialog(dialog);
  assert.deepEqual([history.length, dialog.open], [2, true]);
  history.back();
  assert.deepEqual([dialog.open, returned, browser.location.search], [false, [], '?tab=heads']);
  history.go(1);
  assert.deepEqual([dialog.open, returned], [true, []]);
  dialog.close(); // in another way
  assert.equal(history.state, null);
  history.go(1);
  assert.deepEqual([dialog.open, returned], [true, []]);
});

test('a dialog that is closed in another way leaves no entry, and what was written beside it stays', () => {
  const { browser, history, returned } = begin();
  const dialog = makeDialog();
  openDialog(dialog);
  visit().write('?tab=heads&layer=3', false);
  dialog.close();
  assert.deepEqual([browser.location.search, history.state, returned], ['?tab=heads&layer=3', {}, []]);
  visit().write('?tab=look', true);
  assert.equal(history.length, 2);
  history.back();
  assert.deepEqual(returned, ['?tab=heads&layer=3']);
});

test('another view that comes while dialogs are open lies below them', () => {
  const { browser, history, returned } = begin();
  const [under, over] = [makeDialog(), makeDialog()];
  openDialog(under);
  openDialog(over);
  assert.equal(history.length, 3);
  history.back();
  assert.deepEqual([under.open, over.open], [true, false]);
  visit().write('?tab=look', true);
  assert.deepEqual([history.length, under.open], [3, true]);
  history.back();
  assert.deepEqual([under.open, browser.location.search, returned], [false, '?tab=look', []]);
  history.back();
  assert.deepEqual(returned, ['?tab=heads']);
});

test('what was written beside a dialog stays after Back, and a jump over it leads to that view', () => {
  const { browser, history, returned } = begin();
  visit().write('?tab=look', true);
  const dialog = makeDialog();
  openDialog(dialog);
  visit().write('?tab=look&head=2', false);
  history.back();
  assert.deepEqual([browser.location.search, returned], ['?tab=look&head=2', []]);
  history.go(1);
  history.go(-2);
  assert.deepEqual([dialog.open, returned], [false, ['?tab=heads']]);
});

test('after a reload the entry of a dialog that is not open any more is left', () => {
  const browser = new Browser('?tab=heads');
  browser.install();
  const history = /** @type {any} */ (browser.globals.history);
  history.pushState({ vvDialogs: 1, theirs: 4 }, '', '?tab=heads');
  leaveDialogs();
  browser.pass(0);
  assert.deepEqual(history.state, null);
  history.go(1);
  assert.deepEqual(history.state, null);
});

test('a step back that the browser lost is asked for again, and what waited for it is written', () => {
  const { browser, history } = begin();
  const { go } = history;
  let lost = 1;
  history.go = (/** @type {number} */ by) => (lost-- > 0 ? undefined : go(by));
  history.pushState({ vvDialogs: 1 }, '', '?tab=heads');
  leaveDialogs();
  visit().write('?tab=look', false);
  assert.deepEqual([history.state, browser.location.search], [{ vvDialogs: 1 }, '?tab=heads']);
  browser.pass(5000);
  assert.deepEqual([history.state, browser.location.search], [{}, '?tab=look']);
  browser.pass(50000); // it is asked for once
  assert.deepEqual([lost, history.length], [-1, 2]);
});

test('a dialog that opens before the browser has said that another is closed stays, and Back closes it', () => {
  const { browser, history, returned } = begin();
  const [first, second] = [makeDialog(), makeDialog()];
  openDialog(first);
  visit().write('?tab=heads&layer=3', false);
  first.open = false; // the event comes later
  openDialog(second);
  first.fire('close');
  assert.deepEqual([second.open, history.state], [true, { vvDialogs: 1 }]);
  history.back();
  assert.deepEqual([second.open, browser.location.search, returned], [false, '?tab=heads&layer=3', []]);
  history.go(1);
  assert.deepEqual([first.open, second.open], [false, true]);
});

test('two dialogs that are closed at once are left one after the other', () => {
  const { browser, history, returned } = begin();
  const { go } = history;
  const steps = /** @type {number[]} */ ([]);
  history.go = (/** @type {number} */ by) => void steps.push(by);
  const [under, over] = [makeDialog(), makeDialog()];
  openDialog(under);
  openDialog(over);
  under.close();
  over.close();
  for (const by of steps) go(by); // as a browser does, later
  assert.deepEqual([steps, history.state, returned], [[-1, -1], null, []]);
  browser.pass(50000);
  assert.deepEqual(steps, [-1, -1]);
});

test('what a room writes is in the address and told to whoever listens; what is there already is not written', () => {
  const { browser } = begin('?tab=patches&q=class');
  /** @type {string[]} */ const links = [];
  PLACE.listen(() => links.push(PLACE.search()));
  PLACE.write({ q: '3,4' }, { push: true });
  PLACE.write({ q: '3,5', layer: null }, { push: false });
  PLACE.write({ q: '3,5' }, { push: true }); // it says so already
  assert.deepEqual(links, ['?tab=patches&q=3,4', '?tab=patches&q=3,5']);
  assert.deepEqual(browser.visited, [
    { how: 'push', address: '?tab=patches&q=3,4#here' },
    { how: 'replace', address: '?tab=patches&q=3,5#here' },
  ]);
});

test('commas and semicolons stay legible in an address, and an empty one is no address', () => {
  const { browser } = begin('?model=mini&q=1%2C2');
  PLACE.write({ q: '1,2' }, { push: true }); // as somebody wrote it by hand
  assert.deepEqual(browser.visited, []);
  PLACE.write({ q: '1,2;1,3', layer: '4' }, { push: true });
  PLACE.write({ q: null, layer: null, model: null }, { push: false });
  assert.deepEqual(browser.visited, [
    { how: 'push', address: '?model=mini&q=1,2;1,3&layer=4#here' },
    { how: 'replace', address: '/app#here' },
  ]);
});

test('what a slider says is written once the hand rests, or with whatever is chosen next', () => {
  const { browser } = begin('?tab=look');
  const more = { push: false, soon: true };
  PLACE.write({ alpha: '0.5' }, more);
  browser.pass(199);
  PLACE.write({ alpha: '0.4' }, more);
  assert.deepEqual([browser.location.search, PLACE.search()], ['?tab=look', '?tab=look&alpha=0.4']);
  browser.pass(199);
  assert.equal(browser.location.search, '?tab=look');
  browser.pass(1);
  assert.equal(browser.location.search, '?tab=look&alpha=0.4');
  PLACE.write({ alpha: '0.3' }, more);
  PLACE.write({ q: '1,2' }, { push: true, soon: true }); // a place of its own: at once
  assert.equal(browser.location.search, '?tab=look&alpha=0.3&q=1,2');
  PLACE.write({ alpha: '0.2' }, more);
  PLACE.write({ tab: 'heads' }, { push: true });
  assert.equal(browser.location.search, '?tab=heads&alpha=0.2&q=1,2');
  PLACE.write({ alpha: '0.1' }, more);
  assert.match(wholeAddress(), /^http/);
  assert.match(browser.location.search, /alpha=0.1/); // what is sent to somebody is what is seen
});

test('on Back what was to be written is not', () => {
  const { browser, history } = begin('?layer=1');
  PLACE.write({ q: '1,2' }, { push: true });
  PLACE.write({ q: '3,4' }, { push: true });
  PLACE.write({ alpha: '0.5' }, { push: false, soon: true });
  history.back();
  browser.pass(1000);
  assert.equal(browser.location.search, '?layer=1&q=1,2');
});

test('what is written while a dialog is being left is written after that, all of it', () => {
  const { browser, history } = begin();
  const dialog = makeDialog();
  openDialog(dialog);
  const go = history.go.bind(history);
  /** @type {(() => void)[]} */ const later = [];
  history.go = (/** @type {number} */ by) => void later.push(() => go(by)); // a browser takes its time
  dialog.close();
  PLACE.write({ layer: '3' }, { push: false });
  PLACE.write({ head: '2' }, { push: true });
  later.forEach((run) => run());
  assert.equal(browser.location.search, '?tab=heads&layer=3&head=2');
});

test('a dialog that leads to another view shows none between, also where the link changed below it', () => {
  const { browser, history } = begin();
  const dialog = makeDialog();
  openDialog(dialog);
  const go = history.go.bind(history);
  /** @type {(() => void)[]} */ const later = [];
  history.go = (/** @type {number} */ by) => void later.push(() => go(by));
  PLACE.write({ layer: '3' }, { push: false }); // by a room, while the dialog is open
  /** @type {string[]} */ const links = [];
  PLACE.listen(() => links.push(PLACE.search()));
  dialog.close();
  PLACE.write({ tab: 'tokens' }, { push: true });
  later.forEach((run) => run());
  assert.deepEqual([links, browser.location.search], [['?tab=tokens&layer=3'], '?tab=tokens&layer=3']);
});
