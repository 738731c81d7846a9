// What `npm run preact` bundles into preact.js: components (Preact), values that tell who reads them (signals), and tags without a
// compiler (htm). Types come from the packages: preact.d.ts.

export { Fragment, h, render } from 'preact';
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
export {
  batch,
  computed,
  effect,
  signal,
  untracked,
  useComputed,
  useSignal,
  useSignalEffect,
} from '@preact/signals';
import htm from 'htm';
import { h } from 'preact';

export const html = htm.bind(h);
