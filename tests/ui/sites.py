"""Static sites for tests in Chromium: served by a plain file server, opened, and asked what they show."""

from __future__ import annotations

import base64
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel
from vit_viz.site import write_site

WORKERS = """
const Own = Worker;
window.workers = [];
window.Worker = class extends Own {
  constructor(...given) { super(...given); window.workers.push(this); }
};
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""


def served_site(models: Sequence[LoadedModel], root: Path) -> Iterator[str]:
    """Address of a site under a path prefix of a plain file server."""
    write_site(models, root / "under" / "prefix")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/under/prefix/"
    server.shutdown()
    server.server_close()
    thread.join()


def site_opener(visit: Callable[..., Any]) -> Callable[..., Any]:
    """Opens an address and waits for a picture, unless none is to come."""

    def opened(url: str, image: str | None = "lion", **options: Any) -> Any:
        page = visit(url, ready=False, **options)
        if image is not None:
            wait_for_picture(page, image)
        return page

    return opened


def wait_for_picture(page: Any, image: str) -> None:
    """Wait until the explorer shows a picture, with all layers, and the header what the model says of it."""
    page.wait_for_function(
        """(image) => {
          const { explorer } = document.querySelector('#vv-explorer');
          const { trace, store } = explorer ?? {};
          return trace && (trace.image === image || trace.name === image) && store?.next() === null &&
            document.querySelector('.vv-samples [aria-pressed=true]') && !document.querySelector('.vv-part-top.vv-busy');
        }""",
        arg=image,
    )


def top_of(page: Any) -> list[str]:
    found: list[str] = page.locator(".vv-top .vv-class").all_text_contents()
    return found


def expected_top(mini: LoadedModel, photo: Image.Image, mode: Any = "fit") -> list[str]:
    logits = trace(mini, photo, mode=mode).logits
    assert logits is not None
    assert mini.labels is not None
    return [mini.labels.names[i] for i in logits.topk(5).indices]


def row_of(page: Any, layer: int, query: str) -> np.ndarray[Any, Any]:
    """A row of attention as the page has it, [heads, tokens]."""
    numbers = page.evaluate(
        """async ([layer, query]) => {
          const { source, trace } = document.querySelector('#vv-explorer').explorer;
          const rows = await source.rows(trace, layer, { query, direction: 'row' }, new AbortController().signal);
          return [...rows];
        }""",
        [layer, query],
    )
    return np.array(numbers)


def file_of(photo: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    photo.save(file, kind, **options)
    return file.getvalue()


def caption(page: Any) -> Any:
    return page.locator("[data-vv=caption]")


def carry(page: Any, way: str, files: list[tuple[str, str, bytes]]) -> None:
    """Drop files on the page, or paste them."""
    packed = [(name, mime, base64.b64encode(data).decode()) for name, mime, data in files]
    page.evaluate(
        """([way, files]) => {
          const data = new DataTransfer();
          for (const [name, type, text] of files)
            data.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name, { type }));
          const event = way === 'dropped' ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
          document.body.dispatchEvent(event);
        }""",
        [way, packed],
    )
