// A button beside a figure that the server does not draw as a picture: it saves it by the dialog (figure_dialog.js).

import { askForFigure } from '../../explorer/save.js';
import { finder } from './elements.js';

/** @type {import('./elements.js').Mount<{value: string | null}>} */
export function mount(element, _trigger, props, watch) {
  const button = finder(element)('figure-button');
  const draw = () => (button.hidden = !props.value);
  button.addEventListener('click', () => askForFigure(element, props.value ?? ''));
  watch('value', draw);
  draw();
}
