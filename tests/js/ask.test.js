// Asking: equal questions share an answer, what nobody waits for is ended, and nothing that is stale arrives.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asked, asker } from '../../vit_viz/web/kit/ask.js';
import { signal } from '../../vit_viz/web/kit/preact.js';
import { unpacked } from '../../vit_viz/web/kit/safetensors.js';
import { SERVER } from '../../vit_viz/web/kit/server.js';
import { Browser } from './browser.js';

const settled = () => new Promise((done) => setImmediate(done));
const wait = () => new AbortController();

/** A source whose answers a test gives by hand. */
function waitingSource({ keeps = true } = {}) {
  /** @type {{name: string, body: any, signal: AbortSignal, done: (value: any) => void, fail: (error: Error) => void}[]} */
  const questions = [];
  const answer = (/** @type {string} */ name, /** @type {any} */ body, /** @type {AbortSignal} */ stop) =>
    new Promise((done, fail) => {
      stop.addEventListener('abort', () => fail(new Error('ended')));
      questions.push({ name, body, signal: stop, done, fail });
    });
  return { questions, source: { answer, keeps: () => keeps } };
}

test('equal questions are asked once, also after the answer is there', async () => {
  const { questions, source } = waitingSource();
  const ask = asker(source);
  const both = [ask('look', { layer: 1 }, wait().signal), ask('look', { layer: 1 }, wait().signal)];
  void ask('look', { layer: 2 }, wait().signal);
  questions[0].done('one');
  assert.deepEqual(await Promise.all(both), ['one', 'one']);
  assert.equal(await ask('look', { layer: 1 }, wait().signal), 'one');
  assert.deepEqual(
    questions.map(({ body }) => body.layer),
    [1, 2],
  );
});

test('a question ends with the last one who waits, and not before', async () => {
  const { questions, source } = waitingSource();
  const ask = asker(source);
  const [first, second] = [wait(), wait()];
  const answers = [first, second].map(({ signal: stop }) => ask('look', {}, stop).catch(() => 'ended'));
  first.abort();
  assert.equal(questions[0].signal.aborted, false);
  second.abort();
  assert.equal(questions[0].signal.aborted, true);
  assert.deepEqual(await Promise.all(answers), ['ended', 'ended']);
  void ask('look', {}, wait().signal);
  assert.equal(questions.length, 2); // what was ended is no answer
});

test('whoever leaves after the answer came ends nothing', async () => {
  const { questions, source } = waitingSource();
  const ask = asker(source);
  const one = wait();
  const answer = ask('look', {}, one.signal);
  questions[0].done('there');
  await answer;
  await settled();
  one.abort();
  assert.equal(questions[0].signal.aborted, false);
  assert.equal(await ask('look', {}, wait().signal), 'there');
});

test('a refusal is not kept, nor is what its source does not keep', async () => {
  const { questions, source } = waitingSource();
  const ask = asker(source);
  const refused = ask('look', {}, wait().signal);
  questions[0].fail(new Error('no'));
  await assert.rejects(refused, /no/);
  void ask('look', {}, wait().signal);
  assert.equal(questions.length, 2);
  const fresh = waitingSource({ keeps: false });
  const askFresh = asker(fresh.source);
  const first = askFresh('open', {}, wait().signal);
  fresh.questions[0].done('handle');
  await first;
  await settled();
  void askFresh('open', {}, wait().signal);
  assert.equal(fresh.questions.length, 2);
});

test('of too many bytes the answers go that were asked for longest ago', async () => {
  const { questions, source } = waitingSource();
  const ask = asker(source, 3 * 4096);
  const of = async (/** @type {number} */ layer) => {
    const before = questions.length;
    const answer = ask('look', { layer }, wait().signal);
    questions[before]?.done({ arrays: { values: { data: new Uint8Array(2048) } } });
    await answer;
    await settled();
    return questions.length - before;
  };
  assert.deepEqual([await of(1), await of(2), await of(3), await of(1)], [1, 1, 1, 0]);
  await of(4); // 2 goes
  assert.deepEqual([await of(1), await of(3), await of(2)], [0, 0, 1]);
});

test('the answer to a question that changes: the last one stays meanwhile, and none that is stale arrives', async () => {
  const { questions, source } = waitingSource();
  const layer = signal(/** @type {number | null} */ (1));
  const answer = asked(asker(source), () => (layer.value === null ? null : ['look', { layer: layer.value }]));
  assert.equal(answer.value.state, 'pending');
  questions[0].done('first');
  await settled();
  assert.deepEqual(answer.value, { state: 'done', value: 'first' });
  layer.value = 2;
  assert.deepEqual([answer.value.state, answer.value.value], ['pending', 'first']);
  layer.value = 3;
  assert.equal(questions[1].signal.aborted, true);
  questions[1].done('late');
  questions[2].fail(new Error('There is no layer 3.'));
  await settled();
  assert.deepEqual(answer.value, { state: 'failed', error: 'There is no layer 3.' });
  layer.value = null;
  assert.equal(answer.value.state, 'failed'); // nothing is asked, and what was said stays
  layer.value = 1;
  await settled();
  assert.deepEqual(answer.value, { state: 'done', value: 'first' });
  assert.equal(questions.length, 3);
});

test('safetensors are read with their shapes, wherever in the file they begin', () => {
  const header = JSON.stringify({
    __metadata__: { vit_viz: JSON.stringify({ facts: { unit: 'pixels' } }) },
    bytes: { dtype: 'U8', shape: [3], data_offsets: [0, 3] },
    values: { dtype: 'F32', shape: [1, 2], data_offsets: [3, 11] },
  });
  const file = new Uint8Array(8 + header.length + 11);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(new TextEncoder().encode(header), 8);
  file.set([7, 8, 9], 8 + header.length);
  file.set(new Uint8Array(Float32Array.of(0.5, -2).buffer), 8 + header.length + 3);
  const { facts, arrays } = unpacked(file.buffer);
  assert.equal(facts.unit, 'pixels');
  assert.deepEqual([...arrays.bytes.data, ...arrays.values.data], [7, 8, 9, 0.5, -2]);
  assert.deepEqual(arrays.values.shape, [1, 2]);
});

test('an equal question is the same one until it is to be asked again', async () => {
  const { questions, source } = waitingSource({ keeps: false });
  const [name, again] = [signal(''), signal(0)];
  const answer = asked(asker(source), () => ['open', { view: name.value || 'lion' }], again);
  name.value = 'lion'; // what stood for it all the time
  assert.deepEqual([questions.length, questions[0].signal.aborted], [1, false]);
  questions[0].done(1);
  await settled();
  again.value += 1;
  assert.deepEqual([questions.length, answer.value.state, answer.value.value], [2, 'pending', 1]);
  name.value = 'tower';
  assert.deepEqual(
    questions.map(({ body, signal: { aborted } }) => [body.view, aborted]),
    [
      ['lion', false],
      ['lion', true],
      ['tower', false],
    ],
  );
});

/** An answer of the form safetensors with one number. @param {number} number */
function filed(number) {
  const header = JSON.stringify({
    __metadata__: { vit_viz: '{"facts":{}}' },
    values: { dtype: 'F32', shape: [1], data_offsets: [0, 4] },
  });
  const file = Buffer.alloc(8 + header.length + 4);
  file.writeBigUInt64LE(BigInt(header.length));
  file.write(header, 8);
  file.writeFloatLE(number, 8 + header.length);
  return file;
}

test('how far an answer is, in pieces as they come; a refusal, and a line that breaks', async () => {
  /** @type {string[]} */
  let pieces = [];
  const fetch = async (/** @type {string} */ _path, /** @type {any} */ { headers }) => {
    assert.equal(headers.Accept, 'text/event-stream, application/x-safetensors');
    const read = async () => {
      const piece = pieces.shift();
      return piece === undefined ? { done: true } : { done: false, value: new TextEncoder().encode(piece) };
    };
    return { ok: true, status: 200, body: { getReader: () => ({ read }) } };
  };
  new Browser().install({ fetch });
  const event = (/** @type {string} */ kind, /** @type {string} */ data) =>
    `event: ${kind}\ndata: ${data}\n\n`;
  /** @type {any[]} */
  const heard = [];
  const told = () => SERVER.answer('look', {}, wait().signal, (far) => heard.push([far.share, far.left]));
  const first = event('progress', '{"share":0.5,"left":"about 2 s left"}');
  pieces = [
    first.slice(0, 20),
    first.slice(20) + event('progress', '{"share":0.75,"left":""}'),
    event('answer', filed(1.5).toString('base64')),
  ];
  assert.deepEqual([...(await told()).arrays.values.data], [1.5]);
  assert.deepEqual(heard, [
    [0.5, 'about 2 s left'],
    [0.75, ''],
  ]);
  pieces = [event('refused', '{"error":"There is no layer 99.","status":400}')];
  await assert.rejects(told(), /^Error: There is no layer 99\.$/);
  pieces = [first];
  await assert.rejects(told(), /broke off/);
});

test('all who wait for an answer hear how far it is, and nobody who left', async () => {
  /** @type {import('../../vit_viz/web/kit/ask.js').Tell[]} */
  const tells = [];
  const answer = (/** @type {any[]} */ ...[, , , tell]) => new Promise(() => tells.push(tell));
  const ask = asker({ answer, keeps: () => true });
  /** @type {string[]} */
  const heard = [];
  const [one, two] = [wait(), wait()];
  void ask('ablation', {}, one.signal, ({ share }) => heard.push(`one ${share}`));
  void ask('ablation', {}, two.signal, ({ share }) => heard.push(`two ${share}`));
  void ask('look', {}, wait().signal);
  tells[0]({ share: 0.5, left: '' });
  one.abort();
  tells[0]({ share: 0.75, left: '' });
  assert.deepEqual([heard, tells[1]], [['one 0.5', 'two 0.5', 'two 0.75'], undefined]);
});

test('on a Space that is lent GPUs each question says what the page of the Hub says of who asks', async () => {
  /** @type {any[]} */
  const posted = [];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { headers }) => {
    posted.push([path, headers['x-ip-token'], headers.Accept]);
    return new Response('{"trace": "x"}');
  };
  const browser = new Browser();
  browser.install({ fetch });
  let token = 0;
  /** @type {any} */ (browser.window).parent = {
    postMessage(/** @type {string} */ wanted, /** @type {string} */ origin, /** @type {any[]} */ [port]) {
      assert.deepEqual([wanted, origin], ['zerogpu-headers', 'https://huggingface.co']);
      token += 1;
      port.postMessage({ 'x-ip-token': `token ${token}`, Accept: 'nothing of ours' });
    },
  };
  const opens = () => SERVER.answer('open', { view: '' }, wait().signal);
  await opens(); // before the page around it has said that it can
  /** @type {any} */ (browser.window).supports_zerogpu_headers = true;
  await opens();
  await opens(); // a token is good for a while only
  const JSON_ONLY = 'application/json';
  assert.deepEqual(posted, [
    ['/vit_viz/open', undefined, JSON_ONLY],
    ['/vit_viz/open', 'token 1', JSON_ONLY],
    ['/vit_viz/open', 'token 2', JSON_ONLY],
  ]);
});

/** An answer without arrays, as safetensors. */
function withoutArrays(/** @type {any} */ beside) {
  const header = Buffer.from(JSON.stringify({ __metadata__: { vit_viz: JSON.stringify(beside) } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header]);
}

test('who wants it hears how far an answer is, sees what there is of it, and then has all of it', async () => {
  const packed = (/** @type {any} */ beside) => withoutArrays(beside).toString('base64');
  const events = [
    'event: progress\ndata: {"share": 0.25, "left": "about 3 s left"}\n\n',
    `event: preview\ndata: ${packed({ facts: 'half' })}\n\nevent: progress\ndata: {"share": 0.5, "left": ""}\n\n`,
    `event: answer\ndata: ${packed({ facts: 'all' })}\n\n`,
  ];
  const whole = events.join('');
  const cut = [whole.slice(0, 20), whole.slice(20, 90), whole.slice(90)]; // wherever the network cuts it
  /** @type {any} */
  let accepted = null;
  const browser = new Browser();
  const fetch = async (/** @type {string} */ _path, /** @type {any} */ { headers }) => {
    accepted = headers.Accept;
    const body = new globalThis.ReadableStream({
      start(to) {
        for (const part of cut) to.enqueue(new TextEncoder().encode(part));
        to.close();
      },
    });
    return { ok: true, status: 200, body };
  };
  browser.install({ fetch });
  /** @type {any[]} */
  const told = [];
  const answer = await SERVER.answer('ablation', {}, wait().signal, (far) => told.push(far));
  assert.equal(accepted, 'text/event-stream, application/x-safetensors');
  assert.deepEqual(told, [
    { share: 0.25, left: 'about 3 s left' },
    { share: 0.25, left: 'about 3 s left', preview: { facts: 'half', arrays: {} } },
    { share: 0.5, left: '' },
  ]);
  assert.equal(answer.facts, 'all');
});

test('what the page asks of a view is JSON, also where it is told how far that is', async () => {
  /** @type {any} */
  let sent = null;
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { headers }) => {
    sent = { path, accept: headers.Accept };
    const events = [
      'progress',
      '{"share":0.5,"left":""}',
      'preview',
      '{"words":"half"}',
      'answer',
      '{"all":1}',
    ];
    const body = new globalThis.ReadableStream({
      start(to) {
        for (let i = 0; i < events.length; i += 2)
          to.enqueue(new TextEncoder().encode(`event: ${events[i]}\ndata: ${events[i + 1]}\n\n`));
        to.close();
      },
    });
    return { ok: true, status: 200, body };
  };
  new Browser().install({ fetch });
  /** @type {any[]} */
  const told = [];
  const answer = await SERVER.answer('open', { view: '' }, wait().signal, (far) => told.push(far));
  assert.equal(sent.path, '/vit_viz/open');
  assert.equal(sent.accept, 'text/event-stream, application/json');
  assert.deepEqual(told, [
    { share: 0.5, left: '' },
    { share: 0.5, left: '', preview: { words: 'half' } },
  ]);
  assert.deepEqual(answer, { all: 1 });
});

test('what is at hand is given without asking for it, and kept; what is under way is not waited for', async () => {
  const { questions, source } = waitingSource();
  const heard = /** @type {any[]} */ ([]);
  const kept = async (/** @type {string} */ name, /** @type {any} */ body) => {
    heard.push([name, body]);
    return body.layer === 1 ? { arrays: {} } : null;
  };
  const ask = asker({ ...source, kept });
  const there = await ask.kept('look', { layer: 1 });
  assert.equal(await ask('look', { layer: 1 }, wait().signal), there);
  assert.equal(await ask.kept('look', { layer: 1 }), there);
  assert.deepEqual([questions.length, heard.length], [0, 1]);
  void ask('look', { layer: 2 }, wait().signal);
  assert.equal(await ask.kept('look', { layer: 2 }), null);
  questions[0].done('two');
  await settled();
  assert.equal(await ask.kept('look', { layer: 2 }), 'two');
  assert.equal(await asker(source).kept('look', {}), null); // a source that knows of nothing at hand
});

test('an answer is looked for where it is at hand; else it is heard how the question was understood, or why it is none', async () => {
  const browser = new Browser();
  /** @type {any[]} */
  const sent = [];
  const said = [
    { facts: {}, link: 'x' },
    { request: { parameters: { power: 2 } }, cost: 'about 5 s' },
    { question: 'depth', refused: 'No such power.' },
  ];
  const fetch = async (/** @type {string} */ path, /** @type {any} */ { headers }) => {
    sent.push([path, headers['Cache-Control']]);
    return new Response(withoutArrays(said[sent.length - 1]));
  };
  browser.install({ fetch });
  const ask = asker(SERVER);
  /** @type {any[]} */
  const heard = [];
  const look = (/** @type {number} */ power) =>
    ask.kept('depth', { power }, undefined, (told) => heard.push(told.cost));
  assert.equal((await look(1)).link, 'x');
  assert.equal((await ask('depth', { power: 1 })).link, 'x'); // and is not asked for again
  assert.deepEqual([await look(2), heard], [null, ['about 5 s']]);
  await assert.rejects(look(3), { message: 'No such power.' });
  assert.deepEqual(sent[0], ['/api/v1/depth', 'only-if-cached']);
  assert.equal(sent.length, 3);
});
