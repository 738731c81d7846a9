// Names of classes, as vit_viz/labels.py searches them.

/** How well a class fits a text, 0 the best; 4 where it does not. @param {string} label @param {number} index @param {string} wanted */
function rankOf(label, index, wanted) {
  const name = label.toLowerCase();
  if (name === wanted || String(index) === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  return ` ${name.replaceAll('-', ' ')}`.includes(` ${wanted}`) ? 2 : name.includes(wanted) ? 3 : 4;
}

const plain = (/** @type {string} */ text) => text.toLowerCase().trim().replace(/\s+/g, ' ');

/** Classes that a text means, the best first: by number, or words of the name. @param {string[]} labels @param {string} text @param {number} limit */
export function matching(labels, text, limit) {
  const wanted = plain(text);
  if (!wanted) return [];
  const ranks = labels.map((label, index) => rankOf(label, index, wanted));
  const hits = [...labels.keys()].filter((index) => ranks[index] < 4);
  return hits.sort((a, b) => ranks[a] - ranks[b] || a - b).slice(0, limit);
}

/** The one class of this name; a sentence says which names are like it where there is none, or more than one. @param {string[] | null} labels @param {string} name */
export function classNamed(labels, name) {
  const called = quoted(name.slice(0, 60));
  if (!labels)
    throw new Error(
      `The class ${called} cannot be found, since this model came without names of classes: pass its index.`,
    );
  const hits = [...labels.keys()].filter((index) => rankOf(labels[index], index, plain(name)) === 0);
  if (hits.length === 1) return hits[0];
  const near = (hits.length ? hits : matching(labels, name, 5)).slice(0, 5);
  const similar = near.map((index) => `${quoted(labels[index])} (${index})`).join(', ');
  const count = hits.length ? `${hits.length} classes are` : 'No class is';
  const what = hits.length ? 'pass one index of' : similar ? 'similar names:' : 'pass its index';
  throw new Error(`${count} called ${called}: ${what} ${similar}`.trimEnd() + '.');
}

/** As Python writes a text. @param {string} text */
function quoted(text) {
  return text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replaceAll("'", "\\'")}'`;
}
