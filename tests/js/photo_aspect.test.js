// The shape with which stages begin: of the link when the page opens, of the picture that is chosen from then on.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { expectPhoto, openWithPhoto } from '../../vit_viz/ui/visit/photo_aspect.js';
import { Browser } from './browser.js';

const SAMPLES = { '': 1.5, tower: 0.625 };

/** A page at a link, in a browser that keeps things, or refuses to. */
function opened(search = '', kept = /** @type {Map<string, string> | null} */ (new Map())) {
  const browser = new Browser(search);
  const refuse = () => {
    throw new Error('refused');
  };
  const localStorage = kept
    ? { getItem: (/** @type {string} */ key) => kept.get(key) ?? null, setItem: kept.set.bind(kept) }
    : { getItem: refuse, setItem: refuse };
  browser.install({ localStorage });
  const { style, dataset } = browser.globals.document.documentElement;
  return { browser, aspect: () => style.getPropertyValue('--vv-aspect'), shape: () => dataset.shape };
}

test('a page opens with the shape of the picture in its link', () => {
  for (const [search, expected] of [
    ['', '1.5'],
    ['?image=tower', '0.625'],
    ['?image=tower&part=10,20,30,60', '2'],
    ['?image=gone&part=1,2,40,90', '2.25'],
    ['?image=tower&part=10,20', '0.625'],
    ['?image=gone', ''],
  ]) {
    const { aspect } = opened(search);
    openWithPhoto(SAMPLES);
    assert.equal(aspect(), expected, search);
  }
});

test('the shape of the picture that is chosen, and of its part, is expected from then on', () => {
  const { browser, aspect } = opened();
  openWithPhoto(SAMPLES);
  expectPhoto('tower', { tower: 0.625 });
  assert.equal(aspect(), '0.625');
  browser.location.search = '?image=u1&part=0,0,50,40';
  expectPhoto('u1', { tower: 0.625, u1: 3 });
  assert.equal(aspect(), '0.8');
  browser.location.search = '?image=u1';
  expectPhoto('u1', { tower: 0.625, u1: 3 });
  assert.equal(aspect(), '3');
  expectPhoto('gone', { tower: 0.625 });
  assert.equal(aspect(), '3'); // the nearest that is known
});

test('the rooms are told of a panorama and of a tower, also where these are parts', () => {
  const { browser, shape } = opened();
  openWithPhoto({ '': 6 });
  assert.equal(shape(), 'flat');
  expectPhoto('tower', { tower: 1 / 6 });
  assert.equal(shape(), 'narrow');
  browser.location.search = '?image=tower&part=0,0,50,40';
  expectPhoto('tower', { tower: 1 / 6 });
  assert.equal(shape(), 'usual');
});

test('a picture of this visit has its shape when the page opens again, where the browser keeps it', () => {
  const kept = new Map();
  opened('?image=u1', kept);
  expectPhoto('u1', { u1: 3, u2: 2 });
  for (const image of ['u1', 'u2']) {
    const { aspect } = opened(`?image=${image}`, kept);
    openWithPhoto(SAMPLES);
    assert.equal(aspect(), image === 'u1' ? '3' : '2');
  }
  const { aspect } = opened('?image=u1', null);
  openWithPhoto(SAMPLES);
  expectPhoto('u1', { u1: 3 });
  assert.equal(aspect(), '3');
});
