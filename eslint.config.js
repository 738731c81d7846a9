import js from '@eslint/js';

const browser = [
  'AbortController',
  'Blob',
  'CSS',
  'DOMException',
  'Event',
  'HTMLButtonElement',
  'HTMLCanvasElement',
  'HTMLElement',
  'HTMLInputElement',
  'HTMLSelectElement',
  'Image',
  'ImageData',
  'KeyboardEvent',
  'MouseEvent',
  'Node',
  'PointerEvent',
  'ResizeObserver',
  'URL',
  'URLSearchParams',
  'atob',
  'cancelAnimationFrame',
  'clearTimeout',
  'document',
  'fetch',
  'getComputedStyle',
  'history',
  'location',
  'matchMedia',
  'performance',
  'requestAnimationFrame',
  'setTimeout',
  'window',
];
const node = [
  'AbortController',
  'Buffer',
  'URL',
  'URLSearchParams',
  'console',
  'performance',
  'process',
  'setImmediate',
];
const readonly = (names) => Object.fromEntries(names.map((name) => [name, 'readonly']));

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: 'module' },
    rules: {
      complexity: ['error', 16],
      eqeqeq: 'error',
      'max-lines': ['error', 400],
      'max-lines-per-function': ['error', { max: 60, skipComments: true }],
      'no-shadow': 'error',
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  { files: ['vit_viz/ui/explorer/*.js'], languageOptions: { globals: readonly(browser) } },
  {
    files: ['tests/js/*.js', 'benchmarks/*.js'],
    languageOptions: { globals: readonly(node) },
    rules: { 'max-lines-per-function': 'off' },
  },
];
