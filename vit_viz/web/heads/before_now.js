// Before and after an edit, beside the switches: the answer, where the query looks in the last layer, and the difference.

import { topOf } from '../../explorer/frame.js';
import { queryWords } from '../../explorer/geometry.js';
import { Picture } from '../../explorer/paint.js';
import { PhotoScreen } from '../../explorer/screen.js';
import { having, make, showText } from '../../ui/kit/elements.js';
import { short } from '../../ui/kit/numbers.js';
import { newStage } from '../../ui/kit/stage.js';
import { Job } from '../kit/job.js';
import { SERVER } from '../look/server_source.js';
import { saidWords } from './findings.js';
import { lightPhoto } from './lit.js';
/** @import { Answer } from './findings.js' */
/** @import { HeadRoom, Subject } from './room.js' */
/** @import { Panel } from './surgery.js' */

const ANSWERS = 3; // of each, before and now, that are shown

/** The classes that are compared: the first of either. @param {Answer[]} before @param {Answer[]} now */
export function comparedNames(before, now) {
  const first = [...before.slice(0, ANSWERS), ...now.slice(0, ANSWERS)];
  return [...new Set(first.map(({ name }) => name))];
}

/**
 * The mean over heads of what each patch gets; null where there is none to take it over.
 * @param {Float32Array} rows [heads, tokens] @param {Subject} subject @param {Set<number>} left out of it
 */
export function meanMap(rows, { heads, tokens, prefix, grid }, left) {
  const patches = grid[0] * grid[1];
  const map = new Float32Array(patches);
  for (let head = 0; head < heads; head++) {
    if (left.has(head)) continue;
    const from = head * tokens + prefix.length;
    for (let i = 0; i < patches; i++) map[i] += rows[from + i] / (heads - left.size);
  }
  return left.size < heads ? map : null;
}

export class BeforeNow {
  shown = ''; // what the maps are of
  /** @type {{subject: Subject, before: Float32Array | null, now: Float32Array | null} | null} */ maps = null;

  /** @param {(name: string) => HTMLElement} find @param {{plain: Uint32Array, signed: Uint32Array}} colours */
  constructor(find, colours) {
    this.find = find;
    this.colours = colours;
    this.job = new Job(() => {
      const { isRunning, error } = this.job;
      find('surgery-maps-part').setAttribute('aria-busy', String(isRunning));
      if (error) showText(find('surgery-maps-words'), error);
    });
    this.views = ['before', 'now', 'difference'].map((words) => {
      const { figure, stage } = newStage(words);
      return { figure, stage, map: new Picture(), screen: new PhotoScreen(stage.picture.canvas) };
    });
    this.find('surgery-maps').append(...this.views.map(({ figure }) => figure));
    this.views[2].figure.classList.add('vv-surgery-difference');
  }

  /** The answers and maps before and after the edits. @param {HeadRoom} room */
  show({ surgery, subject }) {
    const { panel } = surgery;
    if (!subject || !panel) return;
    this.find('surgery-answers').setAttribute('aria-busy', String(surgery.isWaiting));
    this.drawAnswers(panel);
    if (panel.of !== subject.trace) return; // the maps are of one state of the model
    const last = `${subject.layers - 1}.`;
    const left = [...surgery.heads.keys()].filter((place) => place.startsWith(last));
    this.drawMaps(panel, subject, new Set(left.map((place) => Number(place.slice(last.length)))));
  }

  /** @param {Panel} panel */
  drawAnswers({ before, now }) {
    const list = this.find('surgery-answers');
    list.hidden = !before.length;
    list.replaceChildren(...comparedNames(before, now).map((name) => answerRow(name, before, now)));
  }

  /**
   * The maps of the last layer, over the heads that are on there.
   * @param {Panel} panel @param {Subject} subject @param {Set<number>} left heads of the last layer that are switched off or replaced
   */
  drawMaps(panel, subject, left) {
    const key = [panel.trace, subject.trace, subject.query, ...left].join('|');
    if (key === this.shown) return this.paint();
    this.shown = key;
    const layer = subject.layers - 1;
    const view = /** @type {any} */ ({ query: subject.query, direction: 'row' });
    const ask = async (/** @type {AbortSignal} */ stop) => {
      const before = await SERVER.rows({ ...subject, trace: panel.trace }, layer, view, stop);
      return { before, now: await SERVER.rows(subject, layer, view, stop) };
    };
    const whole = (/** @type {Record<'before' | 'now', Float32Array>} */ { before, now }) => {
      this.maps = { subject, before: meanMap(before, subject, new Set()), now: meanMap(now, subject, left) };
      const on = left.size
        ? `the ${subject.heads - left.size} heads that are on`
        : `all ${subject.heads} heads`;
      this.find('surgery-maps-title').textContent =
        `Where the ${queryWords(subject.query, subject)} looks in layer ${layer}, mean of ${on}`;
      this.paint();
    };
    void this.job.follow(ask, { whole });
  }

  /** Draws what was fetched, at the size that there is. */
  paint() {
    if (!this.maps) return;
    const { subject, before, now } = this.maps;
    const [first, second, third] = this.views;
    for (const { stage } of this.views) stage.place(subject);
    for (const { stage } of this.views) stage.image.onload = () => this.paint();
    const all = Float32Array.from([...(before ?? []), ...(now ?? [])]).sort();
    const top = topOf(all) || 1;
    const empty = new Float32Array(subject.grid[0] * subject.grid[1]);
    lightPhoto(first, before ?? empty, top, subject, this.colours.plain);
    lightPhoto(second, now ?? empty, top, subject, this.colours.plain);
    const change = empty.map((_, i) => (now?.[i] ?? 0) - (before?.[i] ?? 0));
    const most = change.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    this.tint(third, change, most, subject);
    showText(this.find('surgery-maps-words'), changeWords(most, top, now === null));
  }

  /** @param {BeforeNow['views'][number]} view @param {Float32Array} change @param {number} most @param {Subject} subject */
  tint({ stage, map, screen }, change, most, subject) {
    const [rows, cols] = subject.grid;
    map.resize(cols, rows);
    for (let i = 0; i < change.length; i++) {
      const share = most ? change[i] / most : 0;
      const colour = this.colours.signed[Math.round(127.5 + 127.5 * share)] & 0xffffff;
      map.pixels[i] = (Math.round(230 * Math.abs(share)) << 24) | colour;
    }
    map.show();
    const { offsetWidth: width, offsetHeight: height } = stage.box;
    if (width < 1) return;
    screen.fit({ width, height }, window.devicePixelRatio || 1);
    screen.show(map.canvas, stage.image, subject, { style: 'tint', smooth: true });
  }
}

/** What the difference shows, in numbers. */
export function changeWords(/** @type {number} */ most, /** @type {number} */ top, areOff = false) {
  if (areOff) return 'No head of this layer is on: nothing is looked at.';
  if (most < 1e-6) return 'The map is the same: an edit changes where later layers look, not its own.';
  return (
    `Before and now share one scale, fully lit from ${short(100 * top)}% of the attention on a patch. Red: more attention now, ` +
    `blue: less, by at most ${short(100 * most)}% of it.`
  );
}

/** @param {string} name @param {Answer[]} before @param {Answer[]} now */
function answerRow(name, before, now) {
  const said = [before, now].map((answers) => answers.find((one) => one.name === name));
  const bars = said.map((one, i) => {
    const bar = make('i', i ? 'vv-surgery-now' : 'vv-surgery-was');
    bar.style.setProperty('--long', `${(100 * (one?.probability ?? 0)).toFixed(1)}%`);
    return bar;
  });
  const [was, is] = said.map(saidWords);
  return make(
    'li',
    '',
    having(make('span', 'vv-class', name), { title: name }),
    make('span', 'vv-surgery-bars', ...bars),
    make('span', 'vv-number', `${was} → `, make('b', '', is)),
  );
}
