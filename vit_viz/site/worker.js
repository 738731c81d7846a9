// The engine of a site in a worker, as one script; a message that loads a model says where the script of its helpers lies.

import { serve } from '../browser/serving.js';

serve(/** @type {any} */ (self));
