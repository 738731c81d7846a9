// A second survey on the Survey tab: chosen where the server compares it, shown in words, and left as it was where it does not. And
// cards of photos of which there is no picture, which nobody asks for.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { comparedWords, findingWords, movedLine } from '../../vit_viz/web/survey/compared.js';
import { groupsOf, listWords } from '../../vit_viz/web/survey/groups.js';
import { changeWords, photoCard, selectionLink } from '../../vit_viz/web/survey/lists.js';
import { Browser, Element } from './browser.js';
import { card, chosen, open, settle, survey, texts, value } from './survey_page.js';

const NAMES = ['tuned', 'fewer'];
const beside = { ...survey, others: NAMES };

const moved = (/** @type {number} */ head, changes = {}) => ({
  layer: 1,
  head,
  statistic: 'entropy',
  words: 'evenness',
  unit: 'bits',
  photos: 7,
  before: 0.75,
  after: 0.5,
  difference: -0.25,
  low: -0.375,
  high: -0.125,
  effect: -1.5,
  ...changes,
});

const compared = {
  name: 'tuned',
  model: 'mini with edits (off 1.2)',
  photos: 1200,
  changed: 3,
  accuracy: 'Top-1 0.600 before, 0.500 after.',
  heads: '14 of 36 statistics of heads moved.',
  moved: Array.from({ length: 14 }, (_, at) => moved(at % 3, at === 13 ? { statistic: 'peak_in_box' } : {})),
};

const change = (/** @type {string} */ kind, /** @type {string} */ was, /** @type {string} */ now) => ({
  kind,
  was,
  now,
  confidences: /** @type {[number, number]} */ ([0.625, 0.5]),
});

const lost = card(4, { value: null, change: change('right to wrong', 'cat', 'dog') });
const other = card(2, { value: null, change: change('other class', 'wolf', 'fox') });
const withChanges = {
  ...chosen,
  lists: { ...chosen.lists, lost: [lost], other: [other] },
  totals: { ...chosen.totals, lost: 1, other: 1, changed: 2 },
};

/** A server that compares with one of the two surveys. @param {string} path */
function answer(path) {
  if (path === 'compared?second=tuned') return compared;
  if (path.startsWith('compared?')) return { refused: 'These are surveys of other photos.' };
  return path.startsWith('chosen') && path.includes('second=tuned') && withChanges;
}

const titles = (/** @type {any} */ part) => texts(part.find('survey-cards').querySelectorAll('h4'));

test('another survey is offered only where one is open', async () => {
  const alone = await open();
  assert.equal(alone.find('survey-second-field').hidden, true);
  const part = await open({ of: beside });
  assert.equal(part.find('survey-second-field').hidden, false);
  assert.deepEqual(texts(part.find('survey-second').options), ['no other survey', ...NAMES]);
  assert.equal(part.find('survey-compared').hidden, true);
  assert.equal(part.find('survey-list-changed').hidden, true);
});

test('a second survey is compared, its finding stands above, and its photos are listed by what became of them', async () => {
  const part = await open({ of: beside, answer });
  part.news();
  part.select('second', 'tuned');
  assert.deepEqual(part.news(), ['compared?second=tuned']);
  assert.equal(part.find('survey-compared').getAttribute('aria-busy'), 'true');
  assert.equal(part.text('compared-title'), 'Comparing with tuned …');
  await settle();
  assert.deepEqual(part.news(), ['chosen?where=&layer=1&head=2&measure=distance&second=tuned']);
  assert.equal(part.text('compared-title'), 'Compared with tuned: 3 of 1,200 photos changed their answer');
  assert.equal(part.text('compared-heads'), '14 of 36 statistics of heads moved.');
  assert.equal(part.find('survey-compared').getAttribute('aria-busy'), 'false');
  assert.deepEqual(titles(part), ['right before, wrong now: 1', 'still wrong, or no label: 1']);
  const answers = part.find('survey-cards').querySelectorAll('.vv-survey-answer');
  assert.deepEqual(texts(answers), ['was cat, is now dog', 'was wolf, is now fox']);
  assert.deepEqual(
    answers.map(({ dataset }) => dataset.right),
    ['false', undefined],
  );
  const file = /** @type {any} */ (part.find('survey-csv'));
  assert.ok(file.href.endsWith('&second=tuned&list=changed'));
  part.browser.pass(250);
  assert.deepEqual(part.told, [[{ compared_with: 'tuned', photos: 'changed' }, false]]);
});

test('a survey that cannot be compared is refused in words, and what was shown stays', async () => {
  const part = await open({ of: beside, answer });
  part.select('second', 'tuned');
  await settle();
  const before = [part.text('compared-title'), titles(part), part.find('survey-moved-table').textContent];
  part.browser.pass(250);
  part.news();
  part.told.length = 0;
  part.select('second', 'fewer');
  await settle();
  part.browser.pass(250);
  assert.equal(
    part.find('survey-compared-error').childNodes[0].textContent,
    'Not compared with fewer. These are surveys of other photos.',
  );
  assert.deepEqual(
    [part.text('compared-title'), titles(part), part.find('survey-moved-table').textContent],
    before,
  );
  assert.equal(part.find('survey-second').value, 'tuned');
  assert.deepEqual(part.told, []);
  assert.deepEqual(part.news(), ['compared?second=fewer']);
  part.select('second', '');
  await settle();
  assert.equal(part.find('survey-compared').hidden, true);
  assert.deepEqual(titles(part), ['highest', 'lowest']);
});

test('a link opens its second survey, and says so where it is not there', async () => {
  const now = { ...value, second: 'tuned', list: 'changed' };
  const part = await open({ of: beside, answer, now });
  assert.equal(part.find('survey-second').value, 'tuned');
  const own = 'chosen?where=&layer=1&head=2&measure=distance';
  assert.deepEqual(part.asked.slice(1), ['compared?second=tuned', own, `${own}&second=tuned`]);
  assert.deepEqual(titles(part), ['right before, wrong now: 1', 'still wrong, or no label: 1']);
  part.set({ ...now, where: 'is_right' });
  await settle();
  assert.equal(part.asked.filter((path) => path.startsWith('compared')).length, 1);
  const gone = await open({ of: beside, answer, now: { ...now, second: 'gone' } });
  assert.match(gone.find('survey-compared-error').textContent, /^Not compared with gone\. These are /);
  assert.equal(gone.text('count'), '3 of 7 photos; 66.7% are right.');
  assert.equal(gone.find('survey-list-changed').hidden, true);
});

test('heads that moved go on beyond twelve, and one of them is chosen with its measure', async () => {
  const now = { ...value, second: 'tuned', list: 'changed' };
  const part = await open({ of: beside, answer, now });
  const rows = () => part.find('survey-moved-table').querySelectorAll('[data-moved]');
  assert.equal(rows().length, 12);
  const more = part.find('survey-moved-more');
  assert.equal(more.textContent, '2 more (12 of 14 shown)');
  more.click();
  assert.equal(rows().length, 14);
  assert.equal(part.page.activeElement, rows()[12]);
  assert.equal(more.hidden, true);
  const file = /** @type {any} */ (part.find('survey-moved-csv'));
  assert.ok(file.href.endsWith('/heads.csv?second=tuned'));
  part.news();
  rows()[0].click(); // layer 1, head 0
  assert.equal(part.news().at(-1), 'chosen?where=&layer=1&head=0&measure=entropy&second=tuned');
  rows()[13].click(); // a statistic that the table of heads does not have
  assert.equal(part.news().at(-1), 'chosen?where=&layer=1&head=1&measure=entropy&second=tuned');
  await settle();
  assert.equal(part.find('survey-list-changed').getAttribute('aria-pressed'), 'true');
  part.browser.pass(250);
  assert.deepEqual(part.told.slice(0, 2), [
    [{ of_heads: 'entropy' }, false],
    [{ head: '0' }, false],
  ]);
});

test('an answer that was overtaken by another choice is left', async () => {
  /** @type {Record<string, () => void>} */
  const held = {};
  const part = await open({
    of: { ...survey, others: ['tuned', 'later'] },
    answer: (path) => {
      if (!path.startsWith('compared')) return answer(path);
      const name = path.split('=')[1];
      return new Promise((done) => (held[name] = () => done({ ...compared, name })));
    },
  });
  part.select('second', 'tuned');
  part.select('second', 'later');
  held.later();
  await settle();
  held.tuned();
  await settle();
  assert.match(part.text('compared-title'), /^Compared with later: /);
  assert.equal(part.find('survey-second').value, 'later');
  part.select('second', 'tuned');
  part.select('second', ''); // before the answer
  held.tuned();
  await settle();
  assert.equal(part.find('survey-compared').hidden, true);
  assert.equal(part.find('survey-second').value, '');
  part.browser.pass(250);
  assert.deepEqual(part.told.at(-1), [{ compared_with: null, photos: null }, false]);
});

test('numbers of a head that moved, in words', (context) => {
  new Browser().install(context);
  const text = (/** @type {any} */ one) => one.textContent ?? one;
  const line = movedLine(moved(2, { difference: 0.25, low: 0.125, high: 0.375, effect: null }));
  assert.deepEqual(line.map(text), [
    'layer 1, head 2',
    'evenness (bits)',
    '0.75 to 0.5',
    '+0.25 (+0.125 to +0.375)',
    'alike in all photos',
  ]);
  assert.equal(
    findingWords({ ...compared, changed: 1234, photos: 5678 }),
    'Compared with tuned: 1,234 of 5,678 photos changed their answer',
  );
  assert.match(comparedWords(compared), /through mini with edits \(off 1\.2\)\..* p: how likely/);
  assert.doesNotMatch(comparedWords({ ...compared, accuracy: '' }), / p: /);
});

test('what became of an answer, in words', () => {
  assert.deepEqual(changeWords(lost), ['was cat, is now dog', '63%, then 50%']);
  assert.deepEqual(changeWords(other), ['was wolf, is now fox', '63%, then 50%; neither is right: cat']);
  assert.deepEqual(changeWords({ ...other, label: '' }), ['was wolf, is now fox', '63%, then 50%']);
  assert.deepEqual(changeWords({ ...other, label: 'fox' }), ['was wolf, is now fox', '63%, then 50%']);
  assert.deepEqual(changeWords(card(1)), []);
});

test('groups of photos that changed are those that have any', () => {
  assert.deepEqual(groupsOf('changed', { lost: 0, won: 2, other: 0 }), [
    ['wrong before, right now: 2', 'won'],
  ]);
  assert.deepEqual(groupsOf('changed', { lost: 0, won: 0, other: 0 }), [['', 'other']]);
  const about = { label: 'distance', layer: 1, head: 2, second: '', isKnown: true };
  assert.match(listWords('changed', about, 'Lit.'), /needs a survey to compare with/);
  assert.match(
    listWords('changed', { ...about, second: 'tuned' }, 'Lit.'),
    /another answer in tuned, .*Lit\.$/,
  );
});

test('the link of a selection holds the second survey, and only where there is one', () => {
  const choice = { layer: 2, head: 0, where: '', across: 'margin', up: 'confidence', measure: 'entropy' };
  const link = (/** @type {string} */ second) =>
    new URL(selectionLink('http://here/?compared_with=old', { ...choice, list: 'changed', second }));
  assert.equal(link('a/b c').searchParams.get('compared_with'), 'a/b c');
  assert.equal(link('').searchParams.has('compared_with'), false);
});

test('a photo without a picture has words in its place, and no address that would be refused', (context) => {
  new Browser().install(context);
  const says = (/** @type {any} */ changes) => {
    const node = /** @type {any} */ (photoCard(card(3, changes), ''));
    return [node.querySelectorAll('img').length, node.querySelector('.vv-survey-none')?.textContent ?? ''];
  };
  assert.deepEqual(says({}), [1, '']);
  assert.deepEqual(says({ small: false }), [0, 'no small picture was kept']);
  assert.deepEqual(says({ small: false, there: false }), [0, 'no picture: its file is gone']);
  assert.deepEqual(says({ there: false }), [1, '']);
  const gone = /** @type {any} */ (photoCard(card(3, { there: false }), ''));
  assert.equal(gone.querySelectorAll('.vv-small').at(-1).textContent, 'its file is gone');
  assert.equal(gone.title, 'photo 3.jpg: its file is gone');
});

test('a photo whose file is gone is not asked for by the light', async () => {
  /** @type {string[]} */
  const lit = [];
  function Image() {
    const image = new Element('img');
    image.decode = async () => void lit.push(image.src.replace(/.*lit.|[?].*/g, ''));
    return image;
  }
  const lists = { ...chosen.lists, high: [card(4), card(1, { there: false })] };
  await open({
    now: { ...value, lit: true },
    answer: (path) => path.startsWith('chosen') && { ...chosen, lists },
    prepare: ({ browser }) => Object.assign(browser.globals, { Image }),
  });
  assert.deepEqual(lit, ['4', '2']);
});
