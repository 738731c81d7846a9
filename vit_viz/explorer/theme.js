// The look of a page that stands alone.

/** Light or dark, as the reader's system is, also where that changes. */
export function followTheme(element = document.documentElement) {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => element.classList.toggle('dark', dark.matches);
  dark.addEventListener('change', follow);
  follow();
}
