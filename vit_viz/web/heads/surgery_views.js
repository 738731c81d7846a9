// Views that are forbidden: which tokens, chosen by name, typed, or drawn on the photo, no longer see which others, in which layers.

import { patchRect } from '../../explorer/geometry.js';
import { offer, tidy } from '../../ui/kit/controls.js';
import { having, make, onPress } from '../../ui/kit/elements.js';
import { Stage } from '../../ui/kit/stage.js';
/** @import { Panel } from './surgery.js' */

/** The choice that means patches by their place. */
const PLACES = 'some patches';
const SIDES = /** @type {const} */ (['seeing', 'seen']);

export class Views {
  /**
   * @param {(name: string) => HTMLElement} find
   * @param {(change: {forbid?: string, allow?: string, error?: string}) => void} changed
   */
  constructor(find, changed) {
    this.find = find;
    this.changed = changed;
    /** @type {Panel | null} */ this.panel = null;
    this.choices = '';
    /** @type {'seeing' | 'seen'} the side that a rectangle on the photo is for */ this.side = 'seeing';
    /** @type {[number, number] | null} */ this.corner = null;
    this.stage = new Stage(find('surgery-stage'));
    this.listen();
  }

  take(/** @type {Panel} */ panel) {
    this.panel = panel;
    const choices = JSON.stringify(panel.tokens);
    if (choices !== this.choices) this.offer(panel.tokens);
    this.choices = choices;
    this.stage.place(panel);
    this.show();
  }

  listen() {
    for (const side of SIDES) {
      this.select(side).addEventListener('change', () => {
        this.side = side;
        this.show();
      });
      this.typed(side).addEventListener('focus', () => (this.side = side));
      this.typed(side).addEventListener('input', () => this.show());
    }
    this.find('surgery-forbid').addEventListener('click', () => this.forbid());
    onPress(this.find('surgery-forbidden'), 'view', (view) => this.changed({ allow: view }));
    const stage = this.find('surgery-stage');
    stage.addEventListener('pointerdown', (event) => {
      this.corner = this.stage.cellAt(event);
      if (!this.corner) return;
      event.preventDefault();
      stage.setPointerCapture(event.pointerId);
      this.stretch(event);
    });
    stage.addEventListener('pointermove', (event) => this.stretch(event));
    for (const end of ['pointerup', 'pointercancel']) stage.addEventListener(end, () => (this.corner = null));
  }

  offer(/** @type {{value: string, label: string}[]} */ tokens) {
    for (const [side, usual] of [
      ['seeing', tokens[0].value],
      ['seen', PLACES],
    ]) {
      const select = this.select(side);
      offer(select, [...tokens, { value: PLACES, label: PLACES }]);
      select.value = usual;
    }
    this.side = 'seen';
  }

  /** The fields and the photo that the choices need, and the rectangle of the side that is drawn. */
  show() {
    const byPlace = SIDES.filter((side) => this.select(side).value === PLACES);
    for (const side of SIDES) this.typed(side).hidden = !byPlace.includes(side);
    if (byPlace.length && !byPlace.includes(this.side)) this.side = byPlace[0];
    for (const part of ['surgery-stage', 'surgery-hint']) this.find(part).hidden = !byPlace.length;
    this.outline();
  }

  outline() {
    const { panel } = this;
    const box = this.find('surgery-box');
    const match = /^(\d+)(?:-(\d+))?,(\d+)(?:-(\d+))?$/.exec(tidy(this.typed(this.side).value));
    box.hidden = !match || !panel;
    if (!match || !panel) return;
    const [first, last, left, right] = [match[1], match[2] ?? match[1], match[3], match[4] ?? match[3]].map(
      Number,
    );
    const corner = patchRect(panel.crop, first, left, panel.grid);
    const [, , bottom, end] = patchRect(panel.crop, last, right, panel.grid);
    Object.assign(box.style, this.stage.placeOf([corner[0], corner[1], bottom, end]));
  }

  /** The rectangle from where the pointer went down to where it is. */
  stretch(/** @type {PointerEvent} */ event) {
    const cell = this.corner && this.stage.cellAt(event);
    if (!this.corner || !cell) return;
    const [first, last] = [this.corner, cell];
    const span = (/** @type {number} */ axis) => {
      const [low, high] = [Math.min(first[axis], last[axis]), Math.max(first[axis], last[axis])];
      return low === high ? `${low}` : `${low}-${high}`;
    };
    this.typed(this.side).value = `${span(0)},${span(1)}`;
    this.outline();
  }

  forbid() {
    const regions = SIDES.map((side) => {
      const { value } = this.select(side);
      return value === PLACES ? tidy(this.typed(side).value) : value;
    });
    const layers = /** @type {HTMLInputElement} */ (this.find('surgery-layers')).value
      .trim()
      .replaceAll(' ', '')
      .replaceAll(',', '+');
    if (regions.includes('')) this.changed({ error: 'Which patches? Draw them on the photo, or type them.' });
    else
      this.changed({
        forbid: regions.join('>') + (layers && layers !== 'all' ? `@${layers}` : ''),
        error: '',
      });
  }

  /** What is forbidden, each with a button that allows it again. */
  list(/** @type {string[]} */ forbidden) {
    this.find('surgery-forbidden').replaceChildren(
      ...forbidden.map((view) => {
        const [regions, layers] = view.split('@');
        const [seeing, seen] = regions.split('>');
        const words = `${seeing} no longer sees ${seen}${layers ? `, in layers ${layers}` : ''}`;
        const said = { 'data-view': view, 'aria-label': `Allow again: ${words}` };
        return make('li', '', words, having(make('button', 'vv-button vv-plain', 'Allow'), said));
      }),
    );
  }

  /** @returns {HTMLSelectElement} */
  select(/** @type {string} */ side) {
    return /** @type {HTMLSelectElement} */ (this.find(`surgery-${side}`));
  }

  /** @returns {HTMLInputElement} */
  typed(/** @type {string} */ side) {
    return /** @type {HTMLInputElement} */ (this.find(`surgery-${side}-patches`));
  }
}
