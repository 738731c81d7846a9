// A model on its way and a pass through it: how far they are, and what ends them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { STOPPED } from '../../vit_viz/web/kit/job.js';
import { headerPage, later } from './header_page.js';

const shown = (/** @type {(name: string) => any} */ find) => [
  find('job').hidden,
  find('job-words').textContent,
  find('job-amount').textContent,
];
const DONE = { top: [] };

test('a pass is followed once it takes a while, and not at all where it is quick', async () => {
  const answer = later();
  /** @type {any} */
  let tell;
  const { find, browser, store, settle } = headerPage({
    answers: { open: (_body, _stop, told) => ((tell = told), answer.promise) },
  });
  tell({ share: 0, left: '', preview: { words: 'Running mini …' } });
  tell({ share: 0.25, left: 'about 3 s left' });
  browser.pass(699);
  await settle();
  assert.equal(find('job').hidden, true);
  browser.pass(1);
  await settle();
  assert.deepEqual(shown(find), [false, 'Running mini …', '25%, about 3 s left']);
  assert.equal(find('progress').value, 0.25);
  const said = find('job-words').firstChild;
  tell({ share: 0.5, left: '' });
  await settle();
  assert.equal(find('job-words').firstChild, said); // what is the same is not said again
  await answer.give(DONE);
  assert.equal(find('job').hidden, true);
  store.look({ image: 'tower' }); // answered at once
  await settle();
  browser.pass(700);
  await settle();
  assert.equal(find('job').hidden, true);
});

test('a pass that is ended leads back to the view before, as it was left; the first one is ended everywhere', async () => {
  let answer = later();
  /** @type {any} */
  let tell;
  const page = headerPage({
    answers: { open: (_body, _stop, told) => ((tell = told), answer.promise) },
  });
  const { find, browser, store, place, settle } = page;
  const runs = () => {
    tell({ share: 0.1, left: '', preview: { words: 'Running mini …' } });
    browser.pass(700);
    return settle();
  };
  await runs();
  find('stop').click();
  await settle();
  assert.deepEqual([page.header.facts.value.state, page.header.facts.value.error], ['failed', STOPPED]);
  page.turn.value += 1; // it is tried again
  await answer.give(DONE);
  store.set({ q: '2,3', layer: 1 });
  answer = later();
  store.look({ image: 'tower' });
  store.set({ tab: 'heads' });
  await runs();
  find('stop').click();
  await settle();
  const { image, q, layer, tab } = store.view;
  assert.deepEqual([image.value, q.value, layer.value, tab.value], ['', '2,3', 1, 'heads']);
  assert.equal(place.written.at(-1)?.[1], false); // Back does not lead to what was ended
  assert.equal(find('job').hidden, true);
});

test('a link whose model is fetched says so at once; where that is ended the page shows its own, and why', async () => {
  /** @type {any} */
  let tell;
  const { find, header, store, place, settle } = headerPage({
    search: '?model=someone/never&image=tower',
    answers: {
      open: ({ view }, _stop, told) => {
        tell = told;
        return view.includes('never') ? new Promise(() => {}) : DONE;
      },
    },
  });
  tell({
    share: 0,
    left: '',
    preview: { words: 'Downloading x', amount: '3 of 9 MB', of: 0.3, loads: true },
  });
  await settle();
  assert.deepEqual([...shown(find), find('progress').value], [false, 'Downloading x', '3 of 9 MB', 0.3]);
  find('stop').click();
  await settle();
  assert.deepEqual([store.view.model.value, store.view.image.value], ['mini', 'tower']);
  assert.equal(place.written.at(-1)?.[1], false);
  assert.match(
    header.note.value,
    /^The download of someone[/]never was cancelled; nothing of it was kept[.]$/,
  );
  store.look({ image: 'lion' });
  assert.equal(header.note.value, ''); // it was about that view
});

test('a model that cannot be had gives way to the one before, or to the page’s own', async () => {
  const { header, store, settle } = headerPage({
    search: '?model=gone',
    answers: {
      open: ({ view }) =>
        view.includes('gone')
          ? { refused: 'No such model.', instead: { model: 'mini' } }
          : view.includes('size=7')
            ? { refused: 'Too small.', instead: { size: 0, part: '', edits: '' } }
            : DONE,
    },
  });
  await settle();
  assert.deepEqual([store.view.model.value, header.note.value], ['mini', 'No such model.']);
  store.look({ image: 'tower' });
  await settle();
  store.look({ model: 'gone' });
  await settle();
  assert.deepEqual(
    [store.view.model.value, store.view.image.value, header.note.value],
    ['mini', 'tower', 'No such model.'],
  );
  store.set({ edits: 'off 1.0' });
  await settle();
  store.look({ size: 7 });
  await settle();
  const { size, image, edits } = store.view;
  assert.deepEqual([size.value, image.value, edits.value], [0, 'tower', 'off 1.0']); // as it was
  assert.equal(header.note.value, 'Too small.');
});

test('of a link to what is not possible the rest is shown', async () => {
  const { header, store, settle } = headerPage({
    search: '?image=tower&size=7&layer=3',
    answers: {
      open: ({ view }) =>
        view.includes('size=7') ? { refused: 'Too small.', instead: { size: 0, part: '', edits: '' } } : DONE,
    },
  });
  await settle();
  const { size, image, layer } = store.view;
  assert.deepEqual([size.value, image.value, layer.value], [0, 'tower', 3]);
  assert.equal(header.note.value, 'Too small.');
});

test('a view that was possible and is not any more gives way to what is', async () => {
  let isGone = false;
  const { header, store, turn, settle } = headerPage({
    search: '?image=tower&edits=off 1.0',
    answers: {
      open: ({ view }) =>
        isGone && view.includes('edits')
          ? { refused: 'No such head.', instead: { size: 0, part: '', edits: '' } }
          : DONE,
    },
  });
  await settle();
  isGone = true;
  turn.value += 1;
  await settle();
  assert.deepEqual([store.view.edits.value, store.view.image.value, header.note.value], ['', 'tower', 'No such head.']); // prettier-ignore
});

test('a model is chosen: nothing is asked of what is here, and the page stays as it is until the model has come', async () => {
  const load = later();
  /** @type {any} */
  let tell;
  const { find, header, place, settle } = headerPage({
    answers: { load: (_body, _stop, told) => ((tell = told), load.promise) },
  });
  await settle();
  void header.choose('other', async () => assert.fail('it is here'));
  await settle();
  assert.deepEqual(shown(find), [false, 'Looking for other …', '']);
  tell({ share: 0, left: '', preview: { words: 'Loading other …', of: 1, loads: true } });
  await settle();
  assert.equal(find('job-words').textContent, 'Loading other …');
  assert.deepEqual(place.written, []);
  await load.give({});
  assert.deepEqual([place.written, find('job').hidden], [[[{ model: 'other' }, true]], true]);
});

test('before a download the visitor is asked; who says no stays, and a download that is ended says so', async () => {
  const { all, find, header, place, bodies, settle } = headerPage({
    answers: {
      load: ({ agreed }) => (agreed ? new Promise(() => {}) : { hub: 'a/b', title: 'A B' }),
    },
  });
  await settle();
  await header.choose('a/b', async (question) => question.hub !== 'a/b');
  const agreed = () => bodies('load').filter((body) => body.agreed).length;
  assert.deepEqual([agreed(), find('job').hidden, header.problem.value], [0, true, '']);
  void header.choose('a/b', async () => true);
  await settle();
  find('stop').click();
  await settle();
  assert.equal(
    all('#vv-loading .vv-error')[0].firstChild.textContent,
    'The download of a/b was cancelled; nothing of it was kept.',
  );
  assert.deepEqual([place.written, find('job').hidden], [[], true]);
});

test('of two choices the later counts, and the earlier says nothing any more', async () => {
  const waits = new Map(['slow', 'quick'].map((name) => [name, later()]));
  const { header, store, settle } = headerPage({
    answers: { load: ({ name }) => waits.get(name)?.promise },
  });
  await settle();
  const yes = async () => true;
  void header.choose('slow', yes);
  await settle();
  void header.choose('quick', yes);
  await settle();
  await waits.get('slow')?.refuse('The Hub went away.');
  assert.deepEqual([header.problem.value, header.far.value?.words], ['', 'Looking for quick …']);
  await waits.get('quick')?.give({});
  assert.deepEqual([store.view.model.value, header.far.value], ['quick', null]);
});

test('Back ends the wait for a model; a refusal is said, and gone with the next choice', async () => {
  let load = later();
  const { header, store, browser, settle } = headerPage({ answers: { load: () => load.promise } });
  await settle();
  void header.choose('other', async () => true);
  await settle();
  browser.window.fire('popstate', {});
  await settle();
  await load.give({});
  assert.deepEqual([store.view.model.value, header.far.value], ['', null]);
  load = later();
  void header.choose('other', async () => true);
  await settle();
  await load.refuse('No such model.');
  assert.deepEqual([header.problem.value, header.far.value], ['No such model.', null]);
  void header.choose('third', async () => true);
  assert.equal(header.problem.value, '');
});
