// The service worker of a site: what the page consists of is kept, so that it opens without a network.
//
// `vitVizSite`, which stands before this text (vit_viz/site/folder.py), names the files. All but the page have a digest in their
// name: what is kept under it is what a server would send. Photos of visitors never come here.

const scope = /** @type {any} */ (self);
/** @type {{digest: string, start: string[], later: string[]}} start: what the page opens with; later: models and pictures; all are named in the page */
const { digest, start, later } = scope.vitVizSite;
const home = scope.registration.scope;
const mine = `vit_viz ${home} `; // stores are those of all sites under one host
const store = mine + digest;
const fileOf = (/** @type {string} */ name) => new URL(name, home).href;
const names = [...start, ...later];
const files = new Set(names.map(fileOf));

scope.addEventListener('install', (/** @type {any} */ event) => event.waitUntil(install()));
scope.addEventListener('activate', (/** @type {any} */ event) => event.waitUntil(activate()));
scope.addEventListener('message', (/** @type {any} */ event) => {
  event.waitUntil(keep(event.data?.keep ?? []).then((kept) => event.ports[0]?.postMessage({ kept })));
});
scope.addEventListener('fetch', (/** @type {any} */ event) => {
  const { method, mode, url } = event.request;
  if (method !== 'GET') return;
  if (mode === 'navigate' && url.startsWith(home)) event.respondWith(page(event.request).then(isolated));
  else if (files.has(url)) event.respondWith(file(event.request).then(isolated));
});

/** A host may let browsers hold on to the page for hours: it is asked for anew, and has to be the one that names these files. */
async function install() {
  const kept = await caches.open(store);
  const answer = await fetch(home, { cache: 'reload' });
  const text = await answer.clone().text();
  if (!answer.ok || !names.every((name) => text.includes(name)))
    throw new Error('The page that this host sends is of another version.');
  await kept.put(home, answer);
  await kept.addAll(start.map(fileOf));
  await scope.skipWaiting();
}

/** Files that this page and the one before it share stay; the rest of the one before goes. */
async function activate() {
  const kept = await caches.open(store);
  for (const name of await caches.keys()) {
    if (!name.startsWith(mine) || name === store) continue;
    const before = await caches.open(name);
    for (const request of await before.keys()) {
      const answer = files.has(request.url) && !(await kept.match(request)) && (await before.match(request));
      if (answer) await kept.put(request, answer);
    }
    await caches.delete(name);
  }
  await scope.clients.claim();
}

/** Keeps files that the page has used already: the browser has them still. Returns those that are kept; others are of another version. */
async function keep(/** @type {string[]} */ wanted) {
  const kept = await caches.open(store);
  const own = wanted.filter((name) => later.includes(name));
  const isKept = async (/** @type {string} */ name) => {
    if (await kept.match(fileOf(name))) return true;
    const answer = await fetch(fileOf(name), { cache: 'force-cache' });
    if (answer.ok) await kept.put(fileOf(name), answer);
    return answer.ok;
  };
  const results = await Promise.all(own.map((name) => isKept(name).catch(() => false))); // no network, or no room
  return own.filter((_, i) => results[i]);
}

/** The newest page where there is a network, whatever the browser holds of it, else the one that is kept. */
async function page(/** @type {Request} */ request) {
  try {
    return await fetch(request, { cache: 'no-cache' });
  } catch (error) {
    const answer = await (await caches.open(store)).match(home);
    if (!answer) throw error;
    return answer;
  }
}

/** An answer in whose page threads may share memory, whatever headers its host can send. @param {Response} answer */
function isolated(answer) {
  if (!answer.ok) return answer; // also of a redirection, which nobody may look into
  const copy = new Response(answer.body, answer);
  copy.headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  copy.headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  return copy;
}

async function file(/** @type {Request} */ request) {
  const kept = await caches.open(store);
  const answer = await kept.match(request.url);
  if (answer) return answer;
  const fresh = await fetch(request);
  if (fresh.status === 200) await kept.put(request.url, fresh.clone());
  return fresh;
}
