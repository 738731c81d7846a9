// What is chosen in the Tokens tab: the controls say by data-option which option of the view they set, and by data-for which measures
// have them.

/**
 * @typedef {object} Options
 * @property {'similarity' | 'components' | 'norms' | 'lens' | 'layers' | 'segments'} token_measure
 * @property {import('./store.js').Role} token_role
 * @property {number} token_state
 * @property {'layer' | 'shared'} token_scale
 * @property {boolean} token_foreground
 * @property {boolean} token_whitened
 * @property {string} token_second
 * @property {number} token_factor
 * @property {boolean} token_register
 * @property {import('./store.js').Role} token_segment_role
 * @property {'k-means' | 'cut'} token_method
 * @property {number} token_count
 * @property {string} token_box
 */

/** @type {Readonly<Options>} */
export const USUAL = Object.freeze({
  token_measure: 'similarity',
  token_role: 'tokens',
  token_state: -1,
  token_scale: 'layer',
  token_foreground: false,
  token_whitened: false,
  token_second: '',
  token_factor: 5,
  token_register: false,
  token_segment_role: 'keys',
  token_method: 'k-means',
  token_count: 4,
  token_box: '',
});

const PAUSE = 200; // ms: while a slider is moved, what it asks for is asked once it rests

/** Shows what is chosen. @param {HTMLElement} element @param {Options} options @param {(control: HTMLElement) => boolean} fits */
export function showOptions(element, options, fits) {
  for (const part of element.querySelectorAll('[data-for]')) {
    if (part instanceof HTMLElement)
      part.hidden = !(part.dataset.for ?? '').split(' ').includes(options.token_measure) || !fits(part);
  }
  for (const control of element.querySelectorAll('[data-option]')) {
    if (!(control instanceof HTMLElement)) continue;
    const value = /** @type {any} */ (options)[control.dataset.option ?? ''];
    if (control instanceof HTMLInputElement || control instanceof HTMLSelectElement)
      showValue(control, value);
    else if (control instanceof HTMLButtonElement) control.setAttribute('aria-pressed', String(value));
    for (const button of control.querySelectorAll('[data-value]'))
      button.setAttribute(
        'aria-pressed',
        String(/** @type {HTMLElement} */ (button).dataset.value === value),
      );
  }
}

/** @param {HTMLInputElement | HTMLSelectElement} control @param {unknown} value */
function showValue(control, value) {
  if (control === document.activeElement && control instanceof HTMLInputElement) return; // it is being changed
  control.value = String(value);
  showOutput(control);
}

function showOutput(/** @type {HTMLElement} */ control) {
  const output = control.parentElement?.querySelector('output');
  if (output && control instanceof HTMLInputElement) output.textContent = control.value;
}

/** What a control says was chosen; null where the event is of none. @returns {Partial<Options> | null} */
export function chosenBy(/** @type {Event} */ event) {
  const target = event.target instanceof Element ? event.target.closest('[data-option], [data-value]') : null;
  if (!(target instanceof HTMLElement)) return null;
  const name = /** @type {HTMLElement | null} */ (target.closest('[data-option]'))?.dataset.option ?? '';
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) {
    if (event.type === 'click') return null;
    const number = target instanceof HTMLInputElement && target.type === 'range';
    return { [name]: number ? Number(target.value) : target.value.replace(/\s/g, '') };
  }
  if (event.type !== 'click') return null;
  if (target.dataset.value) return { [name]: target.dataset.value };
  return target instanceof HTMLButtonElement
    ? { [name]: target.getAttribute('aria-pressed') !== 'true' }
    : null;
}

/** Tells of every choice; of a slider that is moved once it rests. @param {HTMLElement} element @param {(chosen: Partial<Options>) => void} tell */
export function listenToOptions(element, tell) {
  let timer = 0;
  const told = (/** @type {Event} */ event) => {
    const chosen = chosenBy(event);
    clearTimeout(timer);
    if (chosen && event.type !== 'input') tell(chosen);
    else if (chosen) timer = window.setTimeout(() => tell(chosen), PAUSE);
  };
  element.addEventListener('click', (event) => {
    if (chosenBy(event)) told(event);
  });
  element.addEventListener('change', told);
  element.addEventListener('input', (event) => {
    if (!(event.target instanceof HTMLInputElement) || event.target.type !== 'range') return;
    showOutput(event.target);
    told(event);
  });
}

/** What is chosen, as a model can show it. @param {Options} chosen @param {Options['token_role'][]} roles that the model has */
export function possible(chosen, roles) {
  const role = (/** @type {Options['token_role']} */ wanted) => (roles.includes(wanted) ? wanted : 'tokens');
  return {
    ...chosen,
    token_role: role(chosen.token_role),
    token_segment_role: role(chosen.token_segment_role),
  };
}

/** Offers the pictures that can share the colours. @param {HTMLElement} element @param {{id: string, name: string}[]} pictures */
export function offer(element, pictures) {
  const select = /** @type {HTMLSelectElement} */ (element.querySelector('[data-option=token_second]'));
  const wanted = [{ id: '', name: 'no other photo' }, ...pictures];
  const here = [...select.options].map(({ value, text }) => `${value} ${text}`).join();
  if (here === wanted.map(({ id, name }) => `${id} ${name}`).join()) return; // it may be open
  const options = wanted.map(({ id, name }) => {
    const option = document.createElement('option');
    option.value = id;
    option.textContent = name;
    return option;
  });
  select.replaceChildren(...options);
}
