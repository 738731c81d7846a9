// The engine in a worker of its own, so that the page stays awake: `new Worker(address, { type: 'module' })`.

import { serve } from './serving.js';

serve(/** @type {any} */ (self), {
  startHelper: () => new Worker(new URL('./helper.js', import.meta.url), { type: 'module' }),
});
