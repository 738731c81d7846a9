"""The worker in Chromium: the bundled model, read by ranges from a server, computes in the page what torch computes."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.oracle import PARITY, differences, oracle
from vit_viz.browser import write_weights
from vit_viz.checkpoints import load
from vit_viz.samples import sample

PACKAGE = Path(__file__).resolve().parents[2] / "vit_viz"
PAGE = """<!doctype html><title>engine</title><script type="module">
import { EngineClient } from '/browser/client.js';
const client = new EngineClient(new Worker('/browser/worker.js', { type: 'module' }));
const wasm = { plain: '/browser/kernels.wasm', relaxed: '/browser/kernels-relaxed.wasm' };
window.progress = [];
const told = (...bytes) => window.progress.push(bytes);
const loaded = await client.load('/mini.safetensors', wasm, told);
window.how = [loaded.threads, Math.min(4, navigator.hardwareConcurrency), loaded.relaxed, crossOriginIsolated];
const about = await (await fetch('/picture.json')).json();
const levels = new Uint8ClampedArray(await (await fetch('/picture.bin')).arrayBuffer());
const traced = await client.trace({ ...about, levels }, { mode: 'fit' });
const plain = (numbers) => numbers && { numbers: Array.from(numbers) };
window.result = {
  logits: plain(traced.logits), residual: traced.residual.map(plain), pool: null, top: loaded.labels[traced.logits.indexOf(
  Math.max(...traced.logits))], layers: traced.layers.map(({ layer, q, k, lse }) => (
    { q: plain(q), k: plain(k), lse: plain(lse), norms: plain(layer.norms) })),
};
document.title = 'done';
</script>"""


@dataclass
class Served:
    """A server of the package, of the weights and of one picture; which ranges were asked for."""

    url: str
    ranges: list[tuple[int, int]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    ranges: list[tuple[int, int]] = []

    class Handler(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            name = path.split("?")[0].lstrip("/")
            own = tmp_path / name
            return str(own if own.is_file() else PACKAGE / name)

        def do_GET(self) -> None:
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if match is None:
                return super().do_GET()
            first, last = int(match[1]), int(match[2])
            ranges.append((first, last))
            part = Path(self.translate_path(self.path)).read_bytes()[first : last + 1]
            self.send_response(206)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)
            return None

        def end_headers(self) -> None:  # an isolated page, in which threads may share memory
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Served(f"http://127.0.0.1:{server.server_port}", ranges)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
@pytest.mark.browser
def test_mini_computes_in_the_page_what_torch_computes(served: Served, tmp_path: Path, browser: Any) -> None:
    mini, image = load("mini", device="cpu"), sample("tower")
    path = tmp_path / "mini.safetensors"
    write_weights(mini, path)
    (tmp_path / "page.html").write_text(PAGE)
    (tmp_path / "picture.bin").write_bytes(np.array(image.convert("RGBA")).tobytes())
    about = {"height": image.height, "width": image.width, "channels": 4}
    (tmp_path / "picture.json").write_text(json.dumps(about))
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{served.url}/page.html")
    page.wait_for_function("document.title === 'done'", timeout=60_000)
    result = _arrays(page.evaluate("window.result"))
    progress = page.evaluate("window.progress")
    threads, wanted, relaxed, isolated = page.evaluate("window.how")
    page.close()
    assert problems == []
    assert (isolated, relaxed, threads) == (True, True, wanted)
    expected = oracle(mini.model, mini.preprocess.apply(image, mode="fit").pixels)
    apart = differences(result, expected)
    assert {name: value for name, value in apart.items() if value > PARITY} == {}
    assert mini.labels is not None
    assert result["top"] == mini.labels.names[int(expected.logits.argmax())]
    size = path.stat().st_size
    assert progress[-1][0] == progress[-1][1] < size
    assert served.ranges[0] == (0, 7)
    assert (
        2 < len(served.ranges) < 10
    )  # the header, then neighbours together: not one request for each of the 81 parameters
    assert served.ranges[-1][1] == size - 1


def _arrays(value: Any) -> Any:
    """A result whose {"numbers": [...]} are arrays."""
    if isinstance(value, list):
        return [_arrays(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"numbers"}:
        return np.array(value["numbers"], np.float32)
    return {name: _arrays(item) for name, item in value.items()}
