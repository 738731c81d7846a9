// What is brought to the page: which file of many, one at a time, and what is said meanwhile.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { picturesIn } from '../../vit_viz/ui/kit/carried.js';
import { Bringer } from '../../vit_viz/web/header/upload.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser } from './browser.js';
import { settle } from './room.js';

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
function page() {
  const browser = new Browser();
  /** @type {{url: string, name: string, size: number, stopped: boolean, answer: (value: any, status?: number) => Promise<void>}[]} */
  const uploads = [];
  const fetch = (/** @type {string} */ url, /** @type {any} */ { body, signal, headers }) =>
    new Promise((resolve, reject) => {
      const upload = {
        url,
        name: decodeURIComponent(headers['X-Vit-Viz-File']),
        size: body.size,
        stopped: false,
        answer: async (/** @type {any} */ value, status = 200) => {
          const text = async () => JSON.stringify(value);
          resolve({ ok: status === 200, status, text, json: async () => value });
          await settle();
        },
      };
      signal.addEventListener('abort', () => {
        upload.stopped = true;
        reject(signal.reason);
      });
      uploads.push(upload);
    });
  browser.install({ fetch });
  const seen = /** @type {string[]} */ ([]);
  const header = {
    source: SERVER,
    choose: async () => true,
    lookAt: (/** @type {string} */ image) => void seen.push(image),
    renew: () => void seen.push('tray'),
  };
  const bringer = new Bringer(header);
  return { browser, uploads, seen, bringer, said: bringer.said };
}

const brought = (/** @type {string} */ image, kept = [image]) => ({ image, kept });
const refused = (/** @type {string} */ error) => ({ error });

test('a file is sent as it is, with its name beside it, and what it became is looked at', async () => {
  const { uploads, seen, bringer, said, browser } = page();
  void bringer.bring([file('Löwe.png', 'image/png')]);
  const [{ url, name, size }] = uploads;
  assert.deepEqual([url, name, size], ['/vit_viz/bring', 'Löwe.png', 1]);
  assert.equal(said.value, '');
  browser.pass(300);
  assert.equal(said.value, 'Bringing Löwe.png …');
  await uploads[0].answer(brought('u1'));
  assert.deepEqual(seen, ['tray', 'u1']);
  assert.equal(said.value, '');
});

test('a newer picture ends the upload of the one before, which is never looked at', async () => {
  const { uploads, seen, bringer } = page();
  void bringer.bring([file('one.png', 'image/png'), file('more.png', 'image/png')]);
  void bringer.bring([file('two.png', 'image/png')]);
  await settle();
  assert.deepEqual(
    uploads.map(({ name, stopped }) => [name, stopped]),
    [
      ['one.png', true],
      ['two.png', false],
    ],
  );
  await uploads[1].answer(brought('u2'));
  assert.deepEqual(seen, ['tray', 'u2']);
});

test('what was brought before something newer stays among the pictures', async () => {
  const { uploads, seen, bringer, said } = page();
  void bringer.bring(['a', 'b'].map((name) => file(name, 'image/png')));
  await uploads[0].answer(brought('u1'));
  void bringer.bring([file('c', 'image/png')]);
  await settle();
  assert.deepEqual(seen, ['tray']);
  await uploads[2].answer(refused('c is too small.'), 400);
  assert.deepEqual(seen, ['tray']);
  assert.equal(said.value, 'c is too small.');
});

test('what the server refuses is said in its words, and goes away by itself', async () => {
  const { browser, uploads, seen, bringer, said } = page();
  void bringer.bring([file('a', 'image/png')]);
  await uploads[0].answer(refused('This is more than 20 MB.'), 413);
  assert.equal(said.value, 'This is more than 20 MB.');
  browser.pass(8000);
  assert.equal(said.value, '');
  void bringer.bring([file('b', 'image/png')]);
  await uploads[1].answer({ problem: 'This file is a text file.' });
  assert.equal(said.value, 'This file is a text file.');
  void bringer.bring([file('c', 'image/png')]);
  await uploads[2].answer(null); // no answer of ours
  assert.equal(said.value, 'The picture could not be sent; please try again.');
  assert.deepEqual(seen, []);
});

test('what is no picture is said and leaves the upload under way alone', async () => {
  const { uploads, seen, bringer, said } = page();
  void bringer.bring([file('a', 'image/png')]);
  await bringer.take({ files: [] });
  assert.match(said.value, /^There is no picture/);
  await uploads[0].answer(brought('u1'));
  assert.deepEqual(seen, ['tray', 'u1']);
});

test('of several pictures the first that is kept is looked at, and one that is refused is told by its name', async () => {
  const { uploads, seen, bringer, said } = page();
  void bringer.bring(['a', 'b', 'c', 'd'].map((name) => file(name, 'image/png')));
  await uploads[0].answer(brought('u1'));
  await uploads[1].answer(refused('This is more than 20 MB.'), 413);
  await uploads[2].answer(brought('u3', ['u1', 'u3']));
  assert.deepEqual(seen, []);
  await uploads[3].answer(brought('u4', ['u3', 'u4'])); // the first had to make room
  assert.deepEqual(seen, ['tray', 'u3']);
  assert.equal(said.value, 'b: This is more than 20 MB.');
});

test('of very many files the first are brought, and that is said', async () => {
  const { uploads, seen, bringer, said } = page();
  const files = Array.from({ length: 26 }, (_, place) => file(`${place}`, 'image/png'));
  void bringer.bring(files);
  for (let place = 0; place < 24; place += 1) await uploads[place].answer(brought(`u${place}`, ['u0']));
  assert.equal(uploads.length, 24);
  assert.deepEqual(seen, ['tray', 'u0']);
  assert.equal(said.value, 'The first 24 of 26 pictures were brought.');
});
