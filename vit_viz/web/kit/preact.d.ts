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
export type { ReadonlySignal, Signal } from '@preact/signals';
import type { VNode } from 'preact';
export function html(strings: TemplateStringsArray, ...values: any[]): VNode;
