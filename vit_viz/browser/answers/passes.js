// Questions for which the model runs again: with other heads or other patches.

import { ABLATION } from './ablation.js';
import { PAINTING } from './painting.js';
import { REMOVAL } from './removal.js';
import { TRUST } from './trust.js';

/** @type {import('./index.js').Table} */
export const PASSES = { ...ABLATION, ...PAINTING, ...REMOVAL, ...TRUST };
