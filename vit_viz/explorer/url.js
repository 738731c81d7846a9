// Where the server's routes are.

/** Address of a route, also behind a path prefix. */
export function routeUrl(/** @type {string} */ path) {
  const root = /** @type {any} */ (window).gradio_config?.root ?? '';
  return path.startsWith('/') ? `${String(root).replace(/[/]$/, '')}${path}` : path;
}
