// The store: its values are the link, read as Python reads it, and written as Python writes it.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { writeOption } from '../../vit_viz/explorer/options.js';
import { effect } from '../../vit_viz/web/kit/preact.js';
import { Store } from '../../vit_viz/web/kit/store.js';
import { read } from './browser.js';
import { placeAt } from './room.js';

const { fields, links, looks } = JSON.parse(read('./links.json'));

/** What a store holds, as a link says it. @param {Store} store */
function said(store) {
  const pairs = [...store.fields].flatMap(([name, field]) =>
    field.many
      ? [...new URLSearchParams(store.view[name].value)]
      : [[name, writeOption(field, store.view[name].value)]],
  );
  return Object.fromEntries(pairs.filter(([, text]) => text !== null));
}

test('a link is read as Python reads it', () => {
  assert.ok(links.length > 90);
  for (const [search, expected] of links)
    assert.deepEqual(said(new Store(fields, placeAt(search))), expected, search);
});

test('what is chosen is written, as the link of what is at its default without it, and is there at once', () => {
  const place = placeAt('?image=tower&numbers=1&ask=rollout&ask.discard=0.5');
  const store = new Store(fields, place);
  store.set({ numbers: false, q: '3,4', layer: 2 }, { push: true });
  assert.deepEqual(place.written, [[{ numbers: null, q: '3,4', layer: '2' }, true]]);
  assert.equal(place.search(), '?image=tower&ask=rollout&ask.discard=0.5&q=3%2C4&layer=2');
  assert.deepEqual([store.view.numbers.value, store.view.layer.value], [false, 2]);
  store.set({ layer: null });
  assert.deepEqual(place.written.at(-1), [{ layer: null }, false]);
});

test('whoever reads a value hears of it once, by whomever the link was written, and of nothing else', () => {
  const place = placeAt('?q=class');
  const store = new Store(fields, place);
  /** @type {string[]} */
  const heard = [];
  effect(() => void heard.push(store.view.q.value));
  store.set({ q: '1,2' });
  place.go('?q=1%2C2&layer=3&style=tint');
  assert.equal(store.view.style.value, 'tint');
  place.go('');
  assert.deepEqual(heard, ['class', '1,2', '']);
});

test('what a view is of is a link of its own, without what is shown of it', () => {
  const store = new Store(fields, placeAt('?tab=patches&q=3,4&image=a b&size=24&edits=off 1.3&model=mini'));
  assert.equal(store.subject(), 'model=mini&image=a+b&size=24&edits=off+1.3');
  assert.equal(new Store(fields, placeAt('')).subject(), '');
  assert.equal(store.linkOf(['q', 'size', 'numbers']), 'q=3%2C4&size=24');
});

test('what is looked at changes as Python has it: what meant something there alone goes, and Back leads there', () => {
  assert.ok(looks.length > 20);
  for (const [search, change, expected] of looks) {
    const place = placeAt(search);
    const store = new Store(fields, place);
    store.look(change);
    assert.deepEqual(Object.fromEntries(new URLSearchParams(place.search())), expected, search);
    assert.deepEqual(said(store), expected);
    assert.deepEqual(
      place.written.map(([, push]) => push),
      [true],
    );
  }
});

test('names that depend on what is asked have one place, in which their order says nothing', () => {
  const place = placeAt('?ask=segments&ask.count=7&numbers=1&ask.box=1%2C2%2C3%2C4');
  const store = new Store(fields, place);
  /** @type {string[]} */
  const heard = [];
  effect(() => void heard.push(store.view['ask.*'].value));
  place.go('?ask.box=1,2,3,4&ask=segments&ask.count=7');
  assert.deepEqual(heard, ['ask.box=1%2C2%2C3%2C4&ask.count=7']);
  assert.equal(store.linkOf(['ask', 'ask.*', 'run']), 'ask=segments&ask.box=1%2C2%2C3%2C4&ask.count=7');
  store.set({ 'ask.*': 'ask.count=8' });
  assert.deepEqual(place.written, [[{ 'ask.box': null, 'ask.count': '8' }, false]]);
  store.set({ ask: '', 'ask.*': '' });
  assert.deepEqual(place.written.at(-1), [{ ask: null, 'ask.count': null }, true]);
  assert.deepEqual([place.search(), heard.at(-1)], ['?', '']);
});

test('a part of a link is taken as it would be read', () => {
  const place = placeAt('?layer=3&alpha=0.5&ask.count=7&q=1,2&run=1');
  const store = new Store(fields, place);
  store.take({
    layer: '4',
    alpha: null,
    run: null,
    'ask.*': 'ask.own=1&ask.box=2',
    mode: 'oblique',
    q: '1,2',
  });
  assert.deepEqual(place.written, [
    [{ layer: '4', alpha: null, run: null, 'ask.count': null, 'ask.own': '1', 'ask.box': '2' }, false],
  ]);
  assert.deepEqual([store.view.layer.value, store.view.alpha.value, store.view.run.value], [4, 1, false]);
  assert.equal(store.view['ask.*'].value, 'ask.box=2&ask.own=1');
  store.take({ layer: '4' }, { push: true });
  assert.equal(place.written.length, 1);
  store.take({ layer: '5' }, { push: true });
  assert.deepEqual(place.written.at(-1), [{ layer: '5' }, true]);
});

test('what is as it was is not written', () => {
  const place = placeAt('?layer=3&image=tower');
  const store = new Store(fields, place);
  store.set({ layer: 3, image: 'tower', head: 'mean' }, { push: true });
  assert.deepEqual(place.written, []);
  store.set({ layer: 3, head: 2 });
  assert.deepEqual(place.written, [[{ head: '2' }, false]]);
});

test('what nothing in a link stands for is part of what a view is of, and not of the link', () => {
  const usual = /** @type {Record<string, string>} */ ({ model: 'mini', image: 'lion' });
  const known = fields.map((/** @type {any} */ field) => ({ ...field, usual: usual[field.link] }));
  const place = placeAt('?mode=crop');
  const store = new Store(known, place);
  assert.equal(store.subject(), 'model=mini&image=lion&mode=crop');
  store.set({ model: 'mini', image: 'tower' });
  assert.equal(store.subject(), 'model=mini&image=tower&mode=crop');
});
