// How a picture comes to the page: pasted, dropped anywhere, or by the button that reads the clipboard.

import assert from 'node:assert/strict';
import { Blob } from 'node:buffer';
import { test } from 'node:test';

import { Browser, Element } from './browser.js';
import { headerPage } from './header_page.js';
import { settle } from './room.js';

const picture = () => new File(['x'], 'lion.png', { type: 'image/png' });

/** The page; every upload is answered at once. */
function page({ read = /** @type {any} */ (null) } = {}) {
  const browser = new Browser();
  /** @type {string[]} */
  const sent = [];
  const fetch = async (/** @type {string} */ url, /** @type {any} */ { body, method }) => {
    sent.push(`${method} ${url} ${body.name}`);
    const image = `u${sent.length}`;
    return { ok: true, json: async () => ({ image, kept: [image, 'u1'] }) };
  };
  if (read) /** @type {any} */ (browser.globals.navigator).clipboard = { read };
  const { find, store } = headerPage({ browser, globals: { fetch } });
  const paste = async (/** @type {any} */ details) => {
    const event = /** @type {any} */ (browser.globals.document).fire('paste', details);
    await settle();
    return event;
  };
  const [note, drop, button] = ['bring-note', 'drop-here', 'paste'].map(find);
  return { browser, sent, image: store.view.image, find, note, drop, button, paste, window: browser.window };
}

const dragged = (/** @type {string[]} */ types, /** @type {File[]} */ files = []) => ({
  dataTransfer: { types, files, dropEffect: 'none' },
});

test('a note waits unseen for something to say, and the place for what is dropped for something to be dragged', () => {
  const { note, drop } = page();
  assert.deepEqual([note.hidden, drop.hidden], [true, true]);
  assert.equal(note.getAttribute('role'), 'status');
  assert.equal(drop.textContent, 'Drop pictures to look at them');
});

test('what is pasted is brought', async () => {
  const { paste, sent, image } = page();
  const event = await paste({ target: new Element('div'), clipboardData: { files: [picture()] } });
  assert.equal(event.prevented, true);
  assert.deepEqual([sent, image.value], [['POST /vit_viz/bring lion.png'], 'u1']);
});

test('files that are chosen together are brought together, and the same may be chosen again', async () => {
  const { find, sent, image } = page();
  const files = find('files');
  let opened = 0;
  files.click = () => (opened += 1);
  find('choose-file').click();
  assert.equal(opened, 1);
  Object.defineProperties(files, {
    files: { value: [picture(), picture()] },
    value: { value: 'C:\\fakepath\\lion.png', writable: true },
  });
  files.fire('change');
  await settle();
  assert.deepEqual([sent.length, image.value, files.value], [2, 'u1', '']);
});

test('what opens to bring a picture closes when it is there, and not before', async () => {
  const { find, paste, image } = page();
  const panel = find('bring').parentNode;
  for (const brought of ['u1', 'u2']) {
    panel.parentNode.querySelector('.vv-opener').click();
    await settle();
    assert.equal(panel.hidden, false);
    await paste({ target: panel, clipboardData: { files: [] } }); // nothing came, and another way may
    assert.equal(panel.hidden, false);
    await paste({ target: panel, clipboardData: { files: [picture()] } });
    assert.deepEqual([image.value, panel.hidden], [brought, true]);
  }
});

test('a paste into a field is text and left alone; a button or a slider takes no text', async () => {
  const { paste, sent } = page();
  const clipboardData = { files: [picture()] };
  const field = (/** @type {string} */ tag, more = {}) =>
    Object.assign(/** @type {any} */ (new Element(tag)), more);
  for (const target of [
    field('input', { type: 'text' }),
    field('input', { type: 'search' }),
    field('textarea'),
    field('div', { contentEditable: 'true' }),
  ])
    assert.equal((await paste({ target, clipboardData })).prevented, false);
  assert.equal((await paste({ target: field('div'), clipboardData: null })).prevented, false);
  assert.deepEqual(sent, []);
  for (const type of ['checkbox', 'radio', 'range', 'button', 'submit', 'file'])
    assert.equal((await paste({ target: field('input', { type }), clipboardData })).prevented, true);
  assert.equal(sent.length, 6);
});

test('a file that is dragged over the page shows where it can be dropped', async () => {
  const { window, drop, sent, image } = page();
  for (const name of ['dragenter', 'dragover']) {
    drop.hidden = true;
    const carried = dragged(['Files']);
    const event = window.fire(name, carried);
    assert.deepEqual([event.prevented, event.stopped, drop.hidden], [true, true, false]);
    assert.equal(carried.dataTransfer.dropEffect, 'copy');
  }
  window.fire('dragleave', { relatedTarget: new Element('p') }); // on to another part of the page
  assert.equal(drop.hidden, false);
  window.fire('dragleave', { relatedTarget: null });
  assert.equal(drop.hidden, true);
  window.fire('dragover', dragged(['Files']));
  assert.equal(window.fire('drop', dragged(['Files'], [picture()])).prevented, true);
  await settle();
  assert.equal(drop.hidden, true);
  assert.deepEqual([sent, image.value], [['POST /vit_viz/bring lion.png'], 'u1']);
});

test('text and parts of the page are no files', async () => {
  const { window, drop, sent } = page();
  for (const carried of [dragged(['text/plain'], [picture()]), { dataTransfer: null }]) {
    assert.equal(window.fire('dragover', carried).prevented, false);
    assert.equal(window.fire('drop', carried).prevented, false);
  }
  window.fire('dragstart');
  assert.equal(window.fire('dragover', dragged(['Files'])).prevented, false);
  assert.equal(drop.hidden, true);
  window.fire('dragend');
  assert.equal(window.fire('dragover', dragged(['Files'])).prevented, true);
  await settle();
  assert.deepEqual(sent, []);
});

test('the button brings the picture in the clipboard, as a file of its type', async () => {
  const read = async () => [
    { types: ['text/plain'], getType: async () => new Blob(['words']) },
    {
      types: ['text/html', 'image/png'],
      getType: async (/** @type {string} */ type) => new Blob([type], { type }),
    },
  ];
  const { button, sent } = page({ read });
  assert.equal(button.hidden, false);
  button.click();
  await settle();
  assert.deepEqual(sent, ['POST /vit_viz/bring pasted.png']);
});

test('a clipboard that cannot be read says so', async () => {
  const { button, note, browser } = page({ read: async () => Promise.reject(new Error('no')) });
  button.click();
  await settle();
  assert.equal(
    note.textContent,
    'The browser does not let this page read the clipboard; press Ctrl+V instead.',
  );
  assert.equal(note.hidden, false);
  browser.pass(8000);
  await settle();
  assert.equal(note.hidden, true);
});

test('without a clipboard there is no button for it', () => {
  assert.equal(page().button.hidden, true);
});
