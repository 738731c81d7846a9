// Questions for which the model runs again: with other heads or other patches.

import { ABLATION } from './ablation.js';
import { PAINTING } from './painting.js';
import { REMOVAL } from './removal.js';
import { TRUST } from './trust.js';
import { WHAT_IF } from './what_if.js';

/** @type {import('./index.js').Table} */
export const PASSES = { ...ABLATION, ...PAINTING, ...REMOVAL, ...TRUST, ...WHAT_IF };
