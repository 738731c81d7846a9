// The look of a page that stands alone.

/** Light or dark, as the reader's system is, also where that changes. */
export function followTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => document.documentElement.classList.toggle('dark', dark.matches);
  dark.addEventListener('change', follow);
  follow();
}
