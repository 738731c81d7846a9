// Why there is no camera, in words.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cameraWords } from '../../vit_viz/web/header/camera.js';

test('each reason that a browser gives is one sentence that says what to do', () => {
  assert.match(cameraWords('NotAllowedError'), /allow it beside the address/);
  assert.match(cameraWords('NotFoundError'), /no camera; choose a file/);
  assert.match(cameraWords('NotReadableError'), /something else uses it; choose a file/);
  assert.equal(cameraWords('AbortError'), cameraWords('NotReadableError'));
});
