// The list of models: what a text finds, in which groups, and which of them Enter chooses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupsOf } from '../../vit_viz/web/header/model.js';

/** @param {string} name @param {string} title @param {string} hub @param {boolean} here @param {string[]} facts */
const offer = (name, title, hub, here, facts = []) => ({ name, title, hub, about: '', facts, here });
const MINI = offer('mini', 'mini', '', true, ['2.8 M parameters']);
const DINO = offer('dino-s16', 'DINO ViT-S/16', 'timm/vit_small_patch16_224.dino', false, ['87 MB']);
const CLIP = offer('clip-b16', 'CLIP ViT-B/16', 'openai/clip-vit-base-patch16', true, ['mit']);
const offered = [MINI, DINO, CLIP];
const models = { chosen: 'clip-b16', title: 'CLIP ViT-B/16', offered, own_ids: true };

/**
 * Labels and names of what a text finds, and the name that Enter chooses.
 * @param {string} text @param {Partial<typeof models>} more
 * @returns {[string[][], string | undefined]}
 */
function found(text, more = {}) {
  const { groups, place } = groupsOf(text, { ...models, ...more });
  const all = groups.flatMap((group) => group.offers.map(({ name }) => name));
  return [groups.map(({ label, offers }) => [label, ...offers.map(({ name }) => name)]), all[place]];
}

test('without a text all are listed, those on this disk first, and the shown one is chosen', () => {
  const groups = [
    ['On this disk', 'mini', 'clip-b16'],
    ['On the Hub', 'dino-s16'],
  ];
  assert.deepEqual(found(''), [groups, 'clip-b16']);
  assert.deepEqual(found('', { chosen: 'mini' }), [groups, 'mini']);
});

test('a text finds models by title, id and facts, and Enter chooses the best', () => {
  assert.deepEqual(found('dino'), [[['On the Hub', 'dino-s16']], 'dino-s16']);
  assert.deepEqual(found('openai'), [[['On this disk', 'clip-b16']], 'clip-b16']);
  assert.deepEqual(found('87 MB')[1], 'dino-s16');
  assert.deepEqual(groupsOf('nothing like it', models), { groups: [], place: 0 });
});

test('an id of the Hub that is not listed is offered where such are taken', () => {
  const id = 'someone/their-vit@main';
  assert.deepEqual(found(id), [[['By its Hub id', id]], id]);
  assert.deepEqual(found(` ${id} `)[1], id);
  assert.deepEqual(groupsOf(id, { ...models, own_ids: false }).groups, []);
  assert.deepEqual(found('openai/clip-vit-base-patch16')[0], [['On this disk', 'clip-b16']]);
});

test('an id of an owner whose models are listed is chosen before those that its letters find', () => {
  const [groups, chosen] = found('timm/vit_small_patch16_224');
  assert.deepEqual(groups[groups.length - 1], ['By its Hub id', 'timm/vit_small_patch16_224']);
  assert.equal(chosen, 'timm/vit_small_patch16_224');
  assert.equal(found('vit-b/16')[1], 'clip-b16'); // looks like an id, and is the end of a title
});
