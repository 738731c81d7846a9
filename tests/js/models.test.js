// The list of models: what a text finds, in which groups, and which of them Enter chooses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupsOf } from '../../vit_viz/web/header/model.js';
import { SAMPLES, headerPage, later } from './header_page.js';

/** @param {string} name @param {string} title @param {string} hub @param {boolean} here @param {string[]} facts */
const offer = (name, title, hub, here, facts = []) => ({ name, title, hub, about: '', facts, here });
const MINI = offer('mini', 'mini', '', true, ['2.8 M parameters']);
const DINO = offer('dino-s16', 'DINO ViT-S/16', 'timm/vit_small_patch16_224.dino', false, ['87 MB']);
const CLIP = offer('clip-b16', 'CLIP ViT-B/16', 'openai/clip-vit-base-patch16', true, ['mit']);
const offered = [MINI, DINO, CLIP];
const models = { offered, own_ids: true };

/**
 * Labels and names of what a text finds, and the name that Enter chooses.
 * @param {string} text
 * @returns {[string[][], string | undefined]}
 */
function found(text, chosen = 'clip-b16') {
  const { groups, place } = groupsOf(text, models, chosen);
  const all = groups.flatMap((group) => group.offers.map(({ name }) => name));
  return [groups.map(({ label, offers }) => [label, ...offers.map(({ name }) => name)]), all[place]];
}

test('without a text all are listed, those on this disk first, and the shown one is chosen', () => {
  const groups = [
    ['On this disk', 'mini', 'clip-b16'],
    ['On the Hub', 'dino-s16'],
  ];
  assert.deepEqual(found(''), [groups, 'clip-b16']);
  assert.deepEqual(found('', 'mini'), [groups, 'mini']);
});

test('a text finds models by title, id and facts, and Enter chooses the best', () => {
  assert.deepEqual(found('dino'), [[['On the Hub', 'dino-s16']], 'dino-s16']);
  assert.deepEqual(found('openai'), [[['On this disk', 'clip-b16']], 'clip-b16']);
  assert.deepEqual(found('87 MB')[1], 'dino-s16');
  assert.deepEqual(groupsOf('nothing like it', models, 'mini'), { groups: [], place: 0 });
});

test('an id of the Hub that is not listed is offered where such are taken', () => {
  const id = 'someone/their-vit@main';
  assert.deepEqual(found(id), [[['By its Hub id', id]], id]);
  assert.deepEqual(found(` ${id} `)[1], id);
  assert.deepEqual(groupsOf(id, { offered }, 'mini').groups, []);
  assert.deepEqual(found('openai/clip-vit-base-patch16')[0], [['On this disk', 'clip-b16']]);
});

test('an id of an owner whose models are listed is chosen before those that its letters find', () => {
  const [groups, chosen] = found('timm/vit_small_patch16_224');
  assert.deepEqual(groups[groups.length - 1], ['By its Hub id', 'timm/vit_small_patch16_224']);
  assert.equal(chosen, 'timm/vit_small_patch16_224');
  assert.equal(found('vit-b/16')[1], 'clip-b16'); // looks like an id, and is the end of a title
});

/** A dialog as a browser has it. @param {any} dialog */
function withDialog(dialog) {
  dialog.showModal = () => void (dialog.open = true);
  dialog.close = () => {
    dialog.open = false;
    dialog.fire('close');
  };
  return dialog;
}

test('the list opens with what is on this disk now, is looked through by letters, and Enter chooses', async () => {
  let asked = 0;
  const { find, all, browser, settle, store } = headerPage({
    answers: { offered: () => ((asked += 1), { ...SAMPLES, models }) },
  });
  await settle();
  assert.equal(asked, 1);
  find('model-open').click();
  await settle();
  assert.deepEqual([asked, find('model-panel').hidden, find('model-text').focused], [2, false, true]);
  const options = () => all('[role=option]').map(({ dataset }) => dataset.name);
  const active = () => all('[aria-selected=true]').map(({ dataset }) => dataset.name);
  assert.deepEqual([options(), active()], [['mini', 'clip-b16', 'dino-s16'], ['mini']]);
  assert.deepEqual(
    all('#vv-model-list .vv-small').map((one) => one.textContent),
    [
      'shown now · 2.8 M parameters · on this disk',
      'mit · on this disk',
      CLIP.hub,
      '87 MB · to download',
      DINO.hub,
    ],
  );
  const type = async (/** @type {string} */ text) => {
    Object.assign(find('model-text'), { value: text }).fire('input');
    await settle();
    return find('model-words').textContent.trim();
  };
  assert.equal(await type('nothing'), 'No model here is found by “nothing”. Any other model of the Hub is found by its id, owner/name.'); // prettier-ignore
  assert.equal(await type('vit'), '2 models');
  assert.deepEqual(active(), ['dino-s16']);
  find('model-text').fire('keydown', { key: 'ArrowDown' });
  await settle();
  assert.deepEqual(active(), ['clip-b16']);
  find('model-text').fire('keydown', { key: 'Enter' });
  await settle();
  assert.deepEqual([store.view.model.value, find('model-panel').hidden], ['clip-b16', true]);
  assert.deepEqual([find('model-open').focused, find('model-name').textContent], [true, 'CLIP ViT-B/16']);
  find('model-open').click();
  await settle();
  assert.equal(find('model-text').value, ''); // it begins anew
  browser.window.fire('keydown', { key: 'Escape' });
  await settle();
  assert.deepEqual([options(), find('model-open').focused], [[], true]);
});

test('what the arrows have reached stays chosen where the list comes anew, also at another place of it', async () => {
  const renewed = later();
  const lists = [models, renewed.promise, { ...models, offered: [MINI, DINO] }];
  const { find, all, settle, store } = headerPage({
    answers: {
      offered: async () => ({ ...SAMPLES, models: await lists.shift() }),
    },
  });
  await settle();
  const active = () => all('[aria-selected=true]').map(({ dataset }) => dataset.name);
  const press = async (/** @type {string} */ key) => {
    find('model-text').fire('keydown', { key });
    await settle();
  };
  find('model-open').click();
  await settle();
  await press('ArrowDown');
  assert.deepEqual(active(), ['clip-b16']);
  await renewed.give({ ...models, offered: [{ ...MINI, name: 'own', title: 'own' }, ...offered] });
  await settle();
  assert.deepEqual(active(), ['clip-b16']);
  await press('Enter');
  assert.equal(store.view.model.value, 'clip-b16');
  find('model-open').click(); // and now it is not there any more
  await settle();
  assert.deepEqual(active(), ['mini']);
});

test('a download is asked about with its size and licence; it begins when that is agreed, and not where it is closed', async () => {
  const wanted = { title: 'A <b>', hub: 'a/b', size: '87 MB', licence: '' };
  const load = later();
  const { find, all, bodies, header, settle } = headerPage({
    answers: {
      offered: () => ({ ...SAMPLES, models }),
      load: ({ agreed }) => (agreed ? load.promise : wanted),
    },
  });
  const dialog = withDialog(find('model-question'));
  const agreed = () => bodies('load').filter((body) => body.agreed).length;
  const choose = async () => {
    find('model-open').click();
    await settle();
    all('[data-name=dino-s16]')[0].click();
    await settle();
  };
  await choose();
  assert.deepEqual([dialog.open, find('model-download').focused, find('model-question-title').textContent.trim()], [true, true, 'Download A <b>?']); // prettier-ignore
  assert.equal(find('model-question-facts').textContent, 'From the Huba/bSize87 MB');
  dialog.close();
  await settle();
  assert.deepEqual([agreed(), header.far.value], [0, null]);
  await choose();
  find('model-download').click();
  await settle();
  assert.deepEqual([agreed(), dialog.open, header.far.value?.words], [1, false, 'Looking for dino-s16 …']); // prettier-ignore
  await load.give({});
  assert.equal(header.model.value, 'dino-s16');
});
