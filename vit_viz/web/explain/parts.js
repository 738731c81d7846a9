// What the answer is made of: the photo with what each patch gave, a small one for each head, and bars (parts_table.js). What is under
// the pointer is drawn from the maps of all heads, which came with their sums. A click on a head switches it off or on.

import { askForFigure } from '../../explorer/source.js';
import { finder, make } from '../../ui/kit/elements.js';
import { showError } from '../../ui/kit/notes.js';
import { showBar } from '../../ui/kit/numbers.js';
import { Stage } from '../../ui/kit/stage.js';
import { HeadsTable, Terms, nameOf } from './parts_table.js';
import { endOf, paintSigned, signed, signedStops } from './signed.js';
/** @import { Photo } from '../../ui/kit/stage.js' */
/** @import { Made } from './made.js' */

/** @typedef {Made & Photo} Value */

export class Parts {
  /** @type {Value | null} */ value = null;
  /** @type {Terms | null} */ terms = null;
  /** @type {string | null} the head on the photo, as "4.3", or the layer, as "4"; null: all heads */ shown =
    null;
  /** @type {number | null} the patch that is read */ at = null;

  /**
   * @param {HTMLElement} element
   * @param {{switch: (place: string) => void, figure: () => string}} actions figure: the address of what is saved
   */
  constructor(element, actions) {
    this.actions = actions;
    this.find = finder(element);
    this.root = this.find('parts');
    this.stage = new Stage(this.find('stage'));
    this.table = new HeadsTable(this.find('parts-table'), {
      show: (place) => this.show(place),
      press: (place) => this.switch(place),
    });
    this.find('parts-switch').addEventListener('click', () => this.switch(this.named));
    this.find('parts-all').addEventListener('click', () => this.show(null));
    this.find('parts-save').addEventListener('click', () => askForFigure(element, actions.figure()));
    const stage = this.find('stage');
    stage.addEventListener('pointermove', (event) => this.read(this.stage.patchAt(event)));
    stage.addEventListener('pointerleave', () => this.read(null));
    this.stage.onChoice(
      (patch) => this.read(patch),
      () => this.at ?? undefined,
    );
    showBar(this.find, ['', ''], '', signedStops());
  }

  /** Says how far it is, and in a sentence what went wrong. @param {'hidden' | 'busy' | 'error' | 'ready'} state */
  tell(state, error = '') {
    this.root.hidden = state === 'hidden';
    this.root.dataset.state = state;
    this.root.setAttribute('aria-busy', String(state === 'busy'));
    showError(this.find('parts-error'), error, { stays: true });
    for (const part of ['parts-photo', 'parts-sum', 'parts-heads'])
      this.find(part).hidden = state === 'error' || !this.value;
    if (state === 'error') this.find('parts-effect').hidden = true;
  }

  draw(/** @type {Value} */ value) {
    const terms = new Terms(value);
    Object.assign(this, { value, terms, at: null });
    this.stage.place(value);
    this.stage.rings.replaceChildren();
    this.find('parts-title').textContent = value.title;
    this.find('parts-hint').textContent =
      `Rows are layers, columns heads; one scale for all of them: ±${terms.most.toFixed(value.decimals)}. ` +
      (value.whyNot || 'Choose a head, or the bar of its layer, to switch it off.');
    this.table.fill(value, terms);
    this.drawSum(value);
    this.drawEffect(value);
    this.show(this.shown !== null && terms.has(this.shown) ? this.shown : null);
  }

  drawSum(/** @type {Value} */ { now, sum, decimals, unit, note, outside }) {
    const total = now.total.toFixed(decimals);
    const output = now.output.toFixed(decimals);
    this.find('sum-title').textContent =
      total === output
        ? `Exactly ${total}: the parts sum to the number that the model returned`
        : `The parts sum to ${total}; the model returned ${output}`;
    const parts = sum.map(([name, value]) => `${name} ${signed(value, decimals)}`);
    this.find('sum-words').textContent = `${parts.join(', ')}. In units of the ${unit}.`;
    const other = Object.entries(outside).map(([name, value]) => `${name} ${signed(value, decimals)}`);
    const beside = other.length ? ` Heads took from outside the photo: ${other.join(', ')}.` : '';
    this.find('sum-note').textContent = `${note}${beside}`;
  }

  drawEffect(/** @type {Value} */ { effect, decimals }) {
    this.find('parts-effect').hidden = !effect;
    if (!effect) return;
    const most = Math.max(Math.abs(effect.promised), Math.abs(effect.did), 1e-12);
    const line = (/** @type {string} */ label, /** @type {number} */ value) => {
      const bar = make('span', `vv-parts-bar ${value < 0 ? 'vv-is-against' : 'vv-is-for'}`);
      bar.style.setProperty('--share', `${(100 * Math.abs(value)) / most}%`);
      const track = make('span', 'vv-parts-track', bar);
      return make(
        'li',
        '',
        make('span', '', label),
        track,
        make('span', 'vv-number', signed(value, decimals)),
      );
    };
    this.find('effect-bars').replaceChildren(
      line('promised', effect.promised),
      line('what it did', effect.did),
    );
    this.find('effect-words').textContent = effect.words;
  }

  /** The head that the button is about: the one on the photo, else the one that gives most. */
  get named() {
    if (this.shown !== null || !this.value) return this.shown ?? '';
    const { heads } = this.value.now;
    const best = Math.max(...heads.flat());
    const layer = heads.findIndex((row) => row.includes(best));
    return `${layer}.${heads[layer].indexOf(best)}`;
  }

  /** Puts a head, all of a layer, or all heads on the photo. */
  show(/** @type {string | null} */ place) {
    this.shown = place;
    const { value, terms } = this;
    if (!value || !terms) return;
    const map = terms.map(place);
    const most = place?.includes('.') ? terms.most : endOf(map);
    paintSigned(this.stage.picture, map, most);
    this.find('low').textContent = `−${most.toPrecision(2)}`;
    this.find('high').textContent = `+${most.toPrecision(2)}`;
    this.find('parts-all').hidden = place === null;
    this.table.choose(place);
    this.offer(value, terms);
    this.read(this.at);
  }

  /** The button that switches the head off, with what its part promises. */
  offer(/** @type {Value} */ { now, decimals, whyNot }, /** @type {Terms} */ terms) {
    const button = this.find('parts-switch');
    const { named } = this;
    button.hidden = Boolean(whyNot) || !named;
    const name = nameOf(named, now.layers);
    button.textContent = terms.isOff(named)
      ? `switch ${name} on again`
      : `switch off ${name} (promised ${signed(-terms.sum(named), decimals)})`;
  }

  switch(/** @type {string} */ place) {
    if (!this.value || this.value.whyNot || !place) return;
    this.shown = place;
    this.actions.switch(place);
  }

  /** Says what a patch gave, through what is on the photo and through the head that took most; null: nothing is read. */
  read(/** @type {number | null} */ patch) {
    const { value, terms } = this;
    if (!value || !terms) return;
    this.at = patch;
    this.stage.ring(patch === null ? [] : [[patch, 'vv-ring']]);
    this.table.read(patch);
    this.find('parts-caption').textContent =
      patch === null ? captionOf(value, terms, this.shown) : wordsOf(value, terms, patch, this.shown);
  }
}

/** What is on the photo, and its scale. @param {Value} value @param {Terms} terms @param {string | null} shown */
function captionOf({ name = '', now, target, decimals }, terms, shown) {
  const whose = shown === null ? 'all heads together' : nameOf(shown, now.layers);
  const was = shown !== null && terms.isOff(shown) ? ', before it was switched off' : '';
  const scale = shown?.includes('.') ? 'The scale of all heads' : 'A scale of its own';
  const gave = signed(terms.sum(shown), decimals);
  return (
    `${name} · what each patch gave to ${target} through ${whose}${was}, ${gave} in all. ` +
    `${scale}; peaks clipped, smooth between patch centres.`
  );
}

/** @param {Value} value @param {Terms} terms @param {number} patch @param {string | null} shown */
function wordsOf({ now, grid, decimals }, terms, patch, shown) {
  const digits = decimals + 1;
  const where = `Patch (${Math.floor(patch / grid[1])}, ${patch % grid[1]})`;
  const all = terms.map(null)[patch];
  const one =
    shown === null ? '' : `${signed(terms.map(shown)[patch], digits)} through ${nameOf(shown, now.layers)}, `;
  const most = terms.strongestAt(patch, Math.sign(all) || 1);
  const by = most ? `, most of it by ${nameOf(most.place, now.layers)} (${signed(most.value, digits)})` : '';
  return `${where}: ${one}${signed(all, digits)} through all heads${by}`;
}
