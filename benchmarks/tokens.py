"""What the views of tokens cost on ViT-Tiny at 224 px, beside one forward pass.

    python benchmarks/tokens.py                 random weights of the size; two threads
    python benchmarks/tokens.py --threads 4
    python benchmarks/tokens.py --chromium ""    without a browser
    python benchmarks/tokens.py --hover FILE    nothing but the hover, with a checkpoint of your own (a file or an id)

The time of each is the median of some calls after one to warm up, in milliseconds and in forward passes. Principal components of
all layers have to stay below 0.5 s on two threads; a hover of the Tokens tab, 197 tokens in 13 states, below 16.7 ms at the 95th
percentile, without a request. A hover's time is the script time of its whole repaint, in a real browser, where the table has all
its rows open; beside it stands the time from the pointer's event to the end of the frame that shows it.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vit_viz.analyses.components import colours_of, token_components
from vit_viz.analyses.key_segments import key_segments
from vit_viz.analyses.layer_similarity import layer_similarity
from vit_viz.analyses.lens import lens_of
from vit_viz.analyses.norms import token_norms
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.tokens import token_change, token_similarity
from vit_viz.model import VisionTransformer, ViTConfig


def seconds(call: Callable[[], object], rounds: int = 7) -> float:
    """Median of some calls."""
    call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="empty: no page is opened")
    parser.add_argument("--hover", default="", help="only the hover, of this checkpoint")
    arguments = parser.parse_args()
    if arguments.hover:
        told(*hovers(arguments.chromium, arguments.hover))
        return
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(embed_dim=192, num_heads=3)).eval()
    subject = PreparedImage.of(model, torch.randn(1, 3, 224, 224))
    trace = subject.trace(keep_residual=True)
    components = 0.0
    with torch.no_grad():
        forward = seconds(lambda: model(subject.pixels))
    rows: dict[str, Callable[[], object]] = {
        "forward": lambda: None,
        "trace with the residual stream": lambda: subject.trace(keep_residual=True),
        "similarity with one token": lambda: token_similarity(trace, query=(3, 4)),
        "change": lambda: token_change(trace),
        "components and colours": lambda: colours_of(token_components(trace)),
        "norms and outliers": lambda: token_norms(trace),
        "logit lens, 1000 classes": lambda: lens_of(subject, trace),
        "layers compared": lambda: layer_similarity(trace),
        "segments, k-means": lambda: key_segments(trace, count=5),
        "segments, cut": lambda: key_segments(trace, method="cut"),
    }
    print(f"{'':32} {'ms':>8} {'forwards':>9}")
    for name, call in rows.items():
        taken = forward if name == "forward" else seconds(call)
        print(f"{name:32} {1000 * taken:8.1f} {taken / forward:9.2f}", flush=True)
        if name == "components and colours":
            components = taken
    verdict("PCA of all layers", 1000 * components, 500)
    if arguments.chromium:
        told(*hovers(arguments.chromium))


def told(times: list[float], frames: list[float], requests: int) -> None:
    """Print what was found of the hover."""
    for what, some in (("script", times), ("until it is seen", frames)):
        median, p95 = np.percentile(some, [50, 95])
        print(f"hover in Tokens, {what}: median {median:.2f} ms, p95 {p95:.2f} ms (n = {len(some)})")
    print(f"{requests} requests meanwhile")
    verdict("hover in Tokens, p95", float(np.percentile(times, 95)), 16.7)


def verdict(what: str, taken: float, most: float) -> None:
    """Say whether a time is below what it may take, in milliseconds."""
    print(f"{what}: {taken:.1f} ms, {'within' if taken <= most else 'ABOVE'} {most:g} ms", flush=True)


SEEN = """() => {
  window.seen = [];
  addEventListener('pointermove', (event) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.seen.push(performance.now() - event.timeStamp);
    channel.port2.postMessage(null);
  }), true);
}"""
"""Writes down when a frame has been drawn that a movement of the pointer asked for."""


def hovers(chromium: str, checkpoint: str = "", moves: int = 300) -> tuple[list[float], list[float], int]:
    """Script time of each repaint of the Tokens tab while the pointer wanders over the photo, the time until it is seen, and the
    requests meanwhile."""
    from playwright.sync_api import sync_playwright

    from benchmarks.explorer import FLAGS, served, wander

    with sync_playwright() as playwright, served(checkpoint or "197 tokens, 12 x 3 heads") as url:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"{url}?tab=tokens&image=lion&mode=stretch")
        page.wait_for_selector("#vv-tokens [data-ready=similarity], #vv-tokens[data-ready=similarity]")
        page.wait_for_timeout(2000)
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.evaluate(SEEN)
        wander(page, page.locator("#vv-tokens .vv-tokens-main-stage"), moves)
        times = page.evaluate("performance.getEntriesByName('vit_viz:tokens').map((e) => e.duration)")
        frames = page.evaluate("window.seen")
        browser.close()
    return times, frames, sum("/vit_viz/" in url for url in requests)


if __name__ == "__main__":
    main()
