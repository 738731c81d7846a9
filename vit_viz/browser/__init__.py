"""A model that runs in the page: a forward pass in JavaScript and WebAssembly, and the files that it reads (docs/BROWSER.md).

`write_weights` writes such a file. The engine is `worker.js`; its arithmetic is `kernels.ts`, compiled to `kernels.wasm`.
"""

from vit_viz.browser.weights import Storage, as_stored, write_weights

__all__ = ["Storage", "as_stored", "write_weights"]
