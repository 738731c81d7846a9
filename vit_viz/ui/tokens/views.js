// All measures of the Tokens tab by their names.

import { colours } from './colours.js';
import { layers } from './layers.js';
import { lens } from './lens.js';
import { norms } from './norms.js';
import { segments } from './segments.js';
import { similarity } from './similarity.js';

/** @type {Record<import('./options.js').Options['token_measure'], import('./room.js').View>} */
export const VIEWS = { similarity, components: colours, norms, lens, layers, segments };
