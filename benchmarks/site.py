"""A site of mini in Chromium: its bytes, its first view, hovering, what photos leave behind; and its engine's time.

    python -m benchmarks.site [--onnxruntime FOLDER [--model tiny]]

First view: from the navigation of a new visitor until heads are drawn. Hover: script time of a whole repaint. Photos: by how much
the heaps of the page and of its worker, with the memory of their arrays, have grown after 21, once the kept passes are there;
garbage is collected before each look. Engine: benchmarks/browser.py on one thread, beside ONNX Runtime Web. The agreed bounds stand
beside what is printed; they hold on an idle machine of two cores.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks import browser as engines
from benchmarks.explorer import FLAGS, hovers, report
from vit_viz.checkpoints import load
from vit_viz.samples import sample_names
from vit_viz.site import write_site

VISITS, MOVES, PHOTOS = (
    9,
    200,
    21,
)  # so many photos that the same are kept before and after: three rounds of the samples
KEPT = 4
"""Passes that a site keeps (vit_viz/site/source.js)."""

DRAWN = """() => {
  const { explorer } = document.querySelector('#vv-explorer') ?? {};
  return explorer?.version > 0 && explorer.computed.endsWith(`|${explorer.version}`);
}"""
SEEN = f"""const seen = () => ({DRAWN})() ? (window.drawn = performance.getEntriesByName('vit_viz:paint').at(-1))
  : setTimeout(seen, 2); seen();"""
WHOLE = """(name) => {
  const { trace, store } = document.querySelector('#vv-explorer').explorer;
  return trace?.image === name && store.isComplete && !document.querySelector('.vv-part-top.vv-busy');
}"""


class _Silent(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""

    def handle(self) -> None:
        """A browser that is closed hangs up, which is no error."""
        with suppress(ConnectionError):
            super().handle()


@contextmanager
def served(folder: str) -> Iterator[str]:
    """The address of a folder while it is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


class Heaps:
    """The heaps of a page and of its workers."""

    def __init__(self, page: Any) -> None:
        self.page, self.session = page, page.context.new_cdp_session(page)
        self.workers: list[str] = []
        self.replies: dict[int, Any] = {}
        self.session.on("Target.attachedToTarget", lambda event: self.workers.append(event["sessionId"]))
        self.session.on("Target.receivedMessageFromTarget", self._receive)
        watched = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        self.session.send("Target.setAutoAttach", watched)

    def _receive(self, event: Any) -> None:
        reply = json.loads(event["message"])
        self.replies[reply.get("id", -1)] = reply

    def _of_worker(self, worker: str, method: str) -> Any:
        number = len(self.replies)
        message = json.dumps({"id": number, "method": method})
        self.session.send("Target.sendMessageToTarget", {"sessionId": worker, "message": message})
        while number not in self.replies:
            self.page.wait_for_timeout(10)
        return self.replies[number]["result"]

    def megabytes(self) -> float:
        """What is in use after all garbage was collected."""
        uses = []
        for ask in (self.session.send, *(partial(self._of_worker, worker) for worker in self.workers)):
            ask("HeapProfiler.collectGarbage")
            use = ask("Runtime.getHeapUsage")
            uses += [use[name] for name in ("usedSize", "embedderHeapUsedSize", "backingStorageSize")]
        return sum(uses) / 1e6


def first_view(browser: Any, url: str) -> float:
    """Milliseconds from the navigation of a new visitor to the first heads."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(SEEN)
    page.goto(url)
    drawn = page.wait_for_function("() => window.drawn && window.drawn.startTime + window.drawn.duration")
    milliseconds: float = drawn.json_value()
    context.close()
    return milliseconds


def growth(page: Any, heaps: Heaps) -> float:
    """Megabytes that photos leave behind, once as many passes are there as are kept."""
    before, names = 0.0, sample_names()
    for count in range(KEPT + PHOTOS + 1):
        if count == KEPT:
            before = heaps.megabytes()
        name = names[count % len(names)]
        page.get_by_role("button", name=f"Sample image {name}").click()
        page.wait_for_function(WHOLE, arg=name)
    return heaps.megabytes() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of the browser")
    parser.add_argument(
        "--model", default="tiny", help="of the engine's passes, as benchmarks.browser has it"
    )
    parser.add_argument("--onnxruntime", metavar="FOLDER", help="where onnxruntime-web is installed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        size = write_site([load("mini", device="cpu")], folder)
        print(f"site: {size / 1e6:.2f} MB (<= 4.2)", flush=True)
        chromium = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        with served(folder) as url:
            views = [first_view(chromium, url) for _ in range(VISITS)]
            print(
                f"first view: median {statistics.median(views):.0f} ms (<= 1000), {min(views):.0f} to {max(views):.0f}",
                flush=True,
            )
            page = chromium.new_page(viewport={"width": 1440, "height": 900})
            heaps = Heaps(page)
            page.goto(url)
            page.wait_for_function(WHOLE, arg="lion")
            report("hover to painted (<= 5 ms)", hovers(page, MOVES))
            print(f"{PHOTOS} photos: the heap grows by {growth(page, heaps):.1f} MB (< 2)", flush=True)
        chromium.close()
    engines.measure(options.model, [1], options.onnxruntime)


if __name__ == "__main__":
    main()
