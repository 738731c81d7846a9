// The header: what it shows of a view, and what it writes into the link.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { giveFocus } from '../../vit_viz/ui/kit/elements.js';
import { percent } from '../../vit_viz/ui/kit/numbers.js';
import { PROOF, SAMPLES, headerPage, later } from './header_page.js';
import { pressed, texts } from './room.js';

const expanded = (/** @type {any} */ node) => node.getAttribute('aria-expanded');

test('the mark and the pictures that everybody has are there at once', () => {
  const { find, all } = headerPage({ answers: { open: () => new Promise(() => {}) } });
  assert.deepEqual([find('mark').textContent, texts([find('model-name')])], ['vit_viz', ['mini']]);
  assert.deepEqual(all('.vv-sample').map(pressed), ['true', 'false']);
  assert.ok(find('proof').hidden && find('says').hidden && find('nothing').hidden);
});

test('the facts stand behind the proof as plain text; while something is done the old ones stay', async () => {
  let answer = later();
  const { find, all, store } = headerPage({ answers: { open: () => answer.promise } });
  const isBusy = () => all('#vv-facts')[0].classList.contains('vv-busy');
  await answer.give({ card: 'ViT <b>', badge: PROOF, short: '2 x 3' });
  const said = () => texts(['model-facts', 'proof', 'proof-words', 'model-short'].map(find));
  assert.deepEqual(said(), ['ViT <b>', 'verified', 'why <b>', '2 x 3']);
  assert.equal(find('proof').dataset.state, 'proven');
  answer = later();
  store.look({ image: 'tower' });
  await Promise.resolve();
  assert.ok(isBusy());
  assert.equal(find('model-facts').textContent, 'ViT <b>');
  await answer.give({ card: 'other' });
  assert.ok(!isBusy());
  assert.deepEqual([find('proof').textContent, find('proof').dataset.state], ['not verified', 'open']);
  assert.match(find('proof-words').textContent, /could not be checked/);
  answer = later();
  store.look({ image: 'lion' });
  await answer.refuse('No.');
  assert.ok(find('proof').hidden);
});

test('what a button opens is closed by the button, by Escape, by a press and by the focus elsewhere', async () => {
  const { find, browser, settle } = headerPage();
  await settle();
  const [button, panel] = [find('proof'), find('details')];
  const is = async (/** @type {boolean} */ isOpen, why = '') => {
    await settle();
    assert.deepEqual([expanded(button), panel.hidden], [String(isOpen), !isOpen], why);
  };
  await is(false);
  button.click();
  await is(true);
  browser.window.fire('pointerdown', { target: find('proof-words') });
  browser.window.fire('keydown', { key: 'a' });
  await is(true);
  button.click();
  await is(false);
  for (const [event, more] of /** @type {const} */ ([
    ['keydown', { key: 'Escape' }],
    ['pointerdown', { target: find('share') }],
    ['focusin', { target: find('share') }],
  ])) {
    button.click();
    await is(true);
    browser.window.fire(event, more);
    await is(false, event);
  }
});

test('Escape closes what is open in the menu before the menu, and each gives the focus back', async () => {
  const { all, find, browser, settle } = headerPage();
  const [menu] = all('#vv-menu button');
  const more = all('#vv-more')[0].classList;
  const open = () => [expanded(menu), more.contains('vv-opened'), expanded(find('help'))];
  const escape = async () => {
    const event = browser.window.fire('keydown', { key: 'Escape' });
    await settle();
    return event.prevented;
  };
  menu.click();
  await settle();
  find('help').click();
  await settle();
  assert.deepEqual(open(), ['true', true, 'true']);
  assert.equal(await escape(), true);
  assert.deepEqual([...open(), find('help').focused], ['true', true, 'false', true]);
  assert.equal(await escape(), true);
  assert.deepEqual([...open(), menu.focused], ['false', false, 'false', true]);
  assert.equal(await escape(), false); // it means nothing here any more
  find('start').checkVisibility = () => false; // folded away
  giveFocus(find('start'));
  assert.ok(menu.focused);
});

test('a copied link says so below its button, which stays as it is; for longer where the photo stays here', async () => {
  let own = false;
  const { find, browser, turn, settle } = headerPage({ answers: { open: () => ({ card: 'ViT', own }) } });
  await settle();
  find('share').click();
  await settle();
  assert.deepEqual([browser.copied, find('share').dataset.said], ['http://page/', 'Link copied']);
  browser.pass(2500);
  assert.equal(find('share').dataset.said, undefined);
  own = true;
  turn.value += 1;
  await settle();
  find('share').click();
  await settle();
  browser.pass(5999);
  assert.equal(find('share').dataset.said, 'Copied, without your photo');
  assert.match(find('share').title, /photo stays here/);
  browser.pass(1);
  assert.equal(find('share').dataset.said, undefined);
  browser.globals.navigator.clipboard.writeText = async () => Promise.reject(new Error('no'));
  find('share').click();
  await settle();
  assert.equal(find('share').dataset.said, 'See the address bar');
  assert.equal(find('share').textContent.trim(), 'Copy link'); // a longer word would move its neighbours
});

test('a visitor who is new is shown around, one who has been may go around again, and the menu closes', async () => {
  const { find, all, browser, settle } = headerPage();
  /** @type {string[]} */
  const begun = [];
  for (const name of ['vv-tour', 'vv-what']) browser.window.addEventListener(name, () => begun.push(name));
  assert.match(find('start').textContent, /^New here[?]/);
  const [menu] = all('#vv-menu button');
  menu.click();
  await settle();
  find('start').click();
  await settle();
  find('what').click();
  assert.deepEqual([begun, expanded(menu)], [['vv-tour', 'vv-what'], 'false']);
  const again = headerPage({ globals: { localStorage: { getItem: () => 'done', setItem() {} } } });
  assert.equal(again.find('start').textContent, 'Tour');
});

test('the best classes have bars and percent, and a model without a head says so', async () => {
  /** @type {any} */
  let facts = {
    notes: ['one', 'two'],
    top: [
      { name: '<i>', probability: 0.256 },
      { name: 'b', probability: 0.004 },
    ],
  };
  let answer = later();
  const { find, all, turn } = headerPage({ answers: { open: () => answer.promise } });
  const top = () => all('#vv-top')[0];
  const seen = () =>
    ['nothing', 'says', 'status', 'error'].map((name) => !top().querySelector(`.vv-${name}`).hidden);
  const told = async () => {
    await answer.give(facts);
    answer = later();
  };
  await told();
  const [line, other] = all('#vv-top li');
  assert.deepEqual(
    [...texts(line.children), line.style.getPropertyValue('--bar')],
    ['<i>', '26%', `${112 * 0.256}px`],
  );
  assert.equal(other.style.getPropertyValue('--bar'), '2px'); // still to be seen
  assert.deepEqual(seen(), [false, true, true, false]);
  assert.equal(find('status').firstChild.textContent, 'one two');
  turn.value += 1;
  await Promise.resolve();
  assert.deepEqual([all('#vv-top li').length, top().classList.contains('vv-busy')], [2, true]);
  assert.deepEqual(texts([find('status')]), ['Running mini on the sample lion …']); // and nothing closes it
  facts = { top: [] };
  await told();
  assert.deepEqual(seen(), [true, false, false, false]);
  assert.match(find('nothing').textContent, /This model has no class head/);
  facts = { top: [], reads: true };
  turn.value += 1;
  await told();
  assert.match(find('nothing').textContent, /ask it in words on Explain/);
  turn.value += 1;
  await answer.refuse('No.');
  assert.deepEqual(seen(), [false, false, false, true]);
  assert.equal(top().querySelector('.vv-error').firstChild.textContent, 'No.');
});

test('what is said stays where another view is refused, until the one before is there again', async () => {
  const [gone, again] = [later(), later()];
  const told = { top: [{ name: 'lion', probability: 0.96 }], card: 'ViT', badge: PROOF };
  /** @type {any[]} */
  const answers = [told, gone.promise, again.promise];
  const { find, all, store, settle } = headerPage({ answers: { open: () => answers.shift() } });
  await settle();
  store.look({ model: 'gone' });
  await gone.give({ refused: 'No such model.', instead: { model: 'mini' } });
  assert.equal(find('status').textContent, 'Running mini on the sample lion …');
  assert.deepEqual([all('#vv-top li').length, find('proof').hidden, find('proof').textContent], [1, false, 'verified']); // prettier-ignore
  await again.give(told);
  assert.match(find('status').textContent, /^No such model[.]/);
});

test('of probabilities that are sigmoids it is said that each is a matter of its own', async () => {
  /** @type {any} */
  let line = { name: 'a', probability: 0.7 };
  const { find, turn, settle } = headerPage({ answers: { open: () => ({ top: [line] }) } });
  const said = async (/** @type {any} */ next) => {
    line = next;
    turn.value += 1;
    await settle();
    return [find('says').textContent, find('top').getAttribute('aria-label'), find('says').title];
  };
  const usual = ['The model says', 'Most probable classes with their probability', ''];
  assert.deepEqual(await said(line), usual);
  const [says, meaning, title] = await said({ ...line, alone: true });
  assert.equal(says, 'The model says, of each by itself');
  assert.match(meaning, /each with a probability of its own/);
  assert.match(title, /do not sum to 100%/);
  assert.deepEqual(await said({ name: 'a', value: -2 }), [usual[0], 'Values that the model returns, the largest first', '']); // prettier-ignore
  assert.deepEqual(await said({ name: 'a', value: -2, cosine: -0.07 }), [usual[0], 'Cosines with the photo, the largest first', '']); // prettier-ignore
  assert.match(find('top').textContent, /a\s*-0\.07/);
});

test('a probability is never said to be all or nothing where it is not', () => {
  const shares = [1, 0.9999, 0.996, 0.964, 0.03, 0.0034, 0.0004, 0];
  assert.deepEqual(shares.map(percent), ['100%', '>99.9%', '99.6%', '96%', '3%', '0.3%', '<0.1%', '0%']);
});

test('a picture that is in no tray is called the visitor’s', async () => {
  const { find } = headerPage({ search: '?image=u9', answers: { open: () => new Promise(() => {}) } });
  assert.equal(find('status').textContent, 'Running mini on your image …');
});

test('a picture is looked at by its button; one that is gone leaves the tray, and the page stays', async () => {
  const own = { id: 'u1', name: 'my <b>', thumbnail: 'data:u1', own: true };
  let pictures = [...SAMPLES.pictures, own];
  const { all, store, place, header, settle, find } = headerPage({
    answers: { offered: () => ({ ...SAMPLES, pictures }) },
  });
  const buttons = () => all('.vv-sample');
  assert.equal(buttons().length, 2); // what everybody has is there from the beginning
  await settle();
  const [lion, , mine] = buttons();
  assert.deepEqual(
    [lion.children[0].src, lion.title, lion.getAttribute('aria-label')],
    ['data:lion', 'lion', 'Sample image lion'],
  );
  assert.deepEqual([mine.title, mine.getAttribute('aria-label')], ['my <b>', 'Your picture my <b>']);
  buttons()[1].click();
  await settle();
  assert.deepEqual(place.written.at(-1), [{ image: 'tower' }, true]);
  assert.deepEqual(buttons().map(pressed), ['false', 'true', 'false']);
  const row = /** @type {any} */ (mine.parentElement);
  row.box = { left: 20, top: 10, width: 100, height: 44 };
  mine.box = { left: 130, top: 14, width: 36, height: 36 };
  [row.scrollLeft, row.scrollTop] = [0, 0];
  mine.click();
  await settle();
  assert.equal(store.view.image.value, 'u1');
  assert.deepEqual([row.scrollLeft, row.scrollTop], [46, 0]); // all of it is seen
  store.look({ image: 'lion' });
  await settle();
  assert.equal(buttons()[0], lion); // the same button: the focus stays
  pictures = SAMPLES.pictures;
  buttons()[2].click();
  await settle();
  assert.deepEqual([store.view.image.value, buttons().length], ['lion', 2]);
  assert.match(header.problem.value, /not here any more/);
  assert.match(all('#vv-loading .vv-error')[0].textContent, /^This picture is not here/);
  assert.ok(find('job').hidden);
});

test('of a link to a picture that is not here the first one is shown, and what is brought takes its place', async () => {
  const { store, header, place, settle } = headerPage({
    search: '?image=u7&size=9&layer=2',
    answers: {
      open: ({ view }) => ({ awaits: view.includes('u7') }),
    },
  });
  await settle();
  assert.equal(header.image.value, 'lion');
  header.lookAt('u8');
  assert.deepEqual(place.written, [[{ image: 'u8' }, true]]);
  assert.deepEqual([store.view.size.value, store.view.layer.value], [9, 2]); // the rest of the link holds
  await settle();
  store.look({ image: 'tower', size: 5 });
  await settle();
  header.lookAt('u9');
  assert.deepEqual([store.view.image.value, store.view.size.value], ['u9', 0]);
});

test('sizes are offered with their cost, in the shape that is chosen; another shape keeps the size where it can', async () => {
  const offered = {
    fit: [
      ['4 x 6 patches', '0'],
      ['8 x 12 patches', '8'],
      ['480 px; stretched', 'dino'],
    ],
    crop: [['4 x 4 patches', '0']],
    stretch: [
      ['4 x 4 patches', '0'],
      ['8 x 8 patches', '8'],
    ],
  };
  const { find, all, store, place, settle } = headerPage({
    answers: { open: () => ({ sizes: { offered, cost: 'Up to 64.' } }) },
  });
  const radios = () => all('.vv-sizes-list input');
  const listed = () => radios().map((one) => [one.value, one.checked]);
  assert.deepEqual(listed(), [['0', true]]); // as long as nothing is known
  await settle();
  assert.deepEqual(listed(), [
    ['0', true],
    ['8', false],
    ['dino', false],
  ]);
  assert.equal(find('sizes-cost').textContent, 'Up to 64.');
  const [first] = radios();
  const take = async (/** @type {any} */ control, /** @type {any} */ change = { checked: true }) => {
    Object.assign(control, change).fire('change');
    await settle();
  };
  await take(radios()[1]);
  assert.deepEqual(place.written.at(-1), [{ size: '8' }, true]);
  assert.equal(radios()[0], first); // the focus stays
  const choose = (/** @type {string} */ value) => take(all('#vv-mode')[0], { value });
  await choose('stretch');
  assert.deepEqual([store.view.mode.value, store.view.size.value], ['stretch', 8]);
  await choose('crop');
  assert.deepEqual([store.view.mode.value, store.view.size.value], ['crop', 0]);
  await choose('fit');
  await take(radios()[2]);
  assert.deepEqual([store.view.mode.value, store.view.size.value], ['stretch', 60]);
  assert.match(all('.vv-sizes-one').at(-1).textContent, /not possible here/);
});
