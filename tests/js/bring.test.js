// What is brought to the page: which file of many, one at a time, and what is said meanwhile.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { picturesIn } from '../../vit_viz/ui/kit/carried.js';
import { Bringer } from '../../vit_viz/web/header/upload.js';
import { Browser, Element } from './browser.js';
import { later } from './header_page.js';
import { settle } from './visit.js';

const file = (/** @type {string} */ name, /** @type {string} */ type) => new File(['x'], name, { type });

test('of several files every picture is taken, and each that is none is told by its name', () => {
  const [text, picture, unknown] = [file('a.txt', 'text/plain'), file('b.webp', 'image/webp'), file('c', '')];
  const { pictures, problems } = picturesIn({ files: [text, unknown, picture] });
  assert.deepEqual(pictures, [unknown, picture]);
  assert.match(problems.join(' '), /^a[.]txt is no picture[.] Pictures are /);
  assert.deepEqual(picturesIn({ files: [picture] }).problems, []);
  assert.match(picturesIn({ files: [] }).problems.join(' '), /^There is no picture in the clipboard[.]/);
});

/** A page to which pictures are brought; a test answers each upload. */
function page(/** @type {any} */ t) {
  const browser = new Browser();
  /** @type {{url: string, name: string, stopped: boolean, answer: (text: string, ok?: boolean) => Promise<void>}[]} */
  const uploads = [];
  const fetch = (/** @type {string} */ url, /** @type {any} */ { body, signal }) =>
    new Promise((resolve, reject) => {
      const upload = {
        url,
        name: body.get('files').name,
        stopped: false,
        answer: async (/** @type {string} */ text, ok = true) => {
          resolve({ ok, text: async () => text, json: async () => [text] });
          await settle();
        },
      };
      signal.addEventListener('abort', () => {
        upload.stopped = true;
        reject(signal.reason);
      });
      uploads.push(upload);
    });
  browser.install(t, { fetch });
  const note = new Element('p');
  const told = /** @type {any[]} */ ([]);
  const take = (/** @type {string[]} */ paths, /** @type {() => boolean} */ isWanted) => {
    const { promise, give } = later();
    told.push({
      uploads: paths,
      isWanted,
      answer: (problems = /** @type {string[]} */ ([])) => give(problems),
    });
    return promise;
  };
  const bringer = new Bringer(take, /** @type {any} */ (note));
  return { browser, uploads, told, bringer, note };
}

test('a newer picture ends the upload of the one before, which is never told', async (t) => {
  const { uploads, told, bringer, note, browser } = page(t);
  void bringer.bring([file('one.png', 'image/png')]);
  void bringer.bring([file('two.png', 'image/png')]);
  await settle();
  assert.deepEqual(
    uploads.map(({ name, stopped }) => [name, stopped]),
    [
      ['one.png', true],
      ['two.png', false],
    ],
  );
  assert.match(uploads[1].url, /^[/]gradio_api[/]upload[?]upload_id=[a-z0-9]+$/);
  assert.equal(note.textContent, '');
  browser.pass(300);
  assert.equal(note.textContent, 'Bringing two.png …');
  await uploads[1].answer('/kept/two.png');
  assert.deepEqual(
    told.map(({ uploads: paths }) => paths),
    [['/kept/two.png']],
  );
  await told[0].answer();
  assert.ok(note.hidden);
});

test('a picture waits until the server has taken the one before, and only the newest is looked at', async (t) => {
  const { uploads, told, bringer, note } = page(t);
  for (const name of ['a', 'b']) {
    void bringer.bring([file(name, 'image/png')]);
    await uploads.at(-1)?.answer(`/${name}`);
  }
  assert.deepEqual(
    told.map(({ uploads: paths, isWanted }) => [paths, isWanted()]),
    [[['/a'], false]],
  );
  await told[0].answer(['a is too small.']); // nobody waits for that any more
  assert.equal(note.textContent, '');
  assert.deepEqual([told[1].uploads, told[1].isWanted()], [['/b'], true]);
  await told[1].answer(['b is too small.']);
  assert.equal(note.textContent, 'b is too small.');
});

test('what the server refuses is said in its words, and goes away by itself', async (t) => {
  const { browser, uploads, told, bringer, note } = page(t);
  void bringer.bring([file('a', 'image/png')]);
  await uploads[0].answer('This is more than 20 MB.', false);
  assert.deepEqual([note.textContent, note.hidden], ['This is more than 20 MB.', false]);
  browser.pass(8000);
  assert.ok(note.hidden);
  void bringer.bring([file('b', 'image/png')]);
  await uploads[1].answer('', false);
  assert.equal(note.textContent, 'The picture could not be sent; please try again.');
  assert.deepEqual(told, []);
});

test('what is no picture is said and leaves the upload under way alone', async (t) => {
  const { uploads, told, bringer, note } = page(t);
  void bringer.bring([file('a', 'image/png')]);
  await bringer.take({ files: [] });
  assert.match(note.textContent, /^There is no picture/);
  await uploads[0].answer('/a');
  assert.equal(told.length, 1);
});

test('several pictures are told together, and one that the server refuses is told by its name', async (t) => {
  const { uploads, told, bringer, note } = page(t);
  void bringer.bring(['a', 'b', 'c'].map((name) => file(name, 'image/png')));
  await uploads[0].answer('/a');
  await uploads[1].answer('This is more than 20 MB.', false);
  assert.equal(told.length, 0);
  await uploads[2].answer('/c');
  assert.deepEqual(told[0].uploads, ['/a', '/c']);
  await told[0].answer();
  assert.equal(note.textContent, 'b: This is more than 20 MB.');
});
