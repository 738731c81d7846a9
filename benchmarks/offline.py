"""How large the explorer is as a file, how fast it opens from the disk without a network, and how fast it follows the pointer.

    python benchmarks/offline.py [--chromium /usr/bin/chromium] [--only mini]

The models but the first have random weights: their shapes decide the size. Megabytes are of 10^6 bytes. The gate of the file of
ViT-S/16 at 224 px is 5.5 MB, that of a hover at 197 tokens 16.7 ms (p95, script time of a whole repaint).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from benchmarks.explorer import FLAGS, hovers, report
from benchmarks.shapes import random_model
from vit_viz.checkpoints import load
from vit_viz.offline.explored import Explored
from vit_viz.offline.page import fp16_bytes
from vit_viz.samples import sample

SHAPES: dict[str, dict[str, Any]] = {
    "ViT-Ti/16": {"embed_dim": 192, "num_heads": 3},
    "ViT-S/16": {"embed_dim": 384, "num_heads": 6},
    "ViT-B/16": {"embed_dim": 768, "num_heads": 12},
    "ViT-B/16 at 448 px": {"embed_dim": 768, "num_heads": 12, "img_size": (448, 448)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The explorer as a file: size, opening, hovering.")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of the browser")
    parser.add_argument("--only", default="", help="a part of the name of the cases to run")
    parser.add_argument("--moves", type=int, default=200, help="pointer moves per case; 0: sizes alone")
    arguments = parser.parse_args()
    names = [name for name in ("mini", *SHAPES) if arguments.only in name]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=FLAGS)
        for name in names:
            file = written(name, Path(folder) / "page.html")
            if arguments.moves:
                opened(browser, name, file, arguments.moves)
        browser.close()


def written(name: str, file: Path) -> Path:
    """Write the page of a model, and print its size and how long it took."""
    loaded = load("mini") if name == "mini" else random_model(name, **SHAPES[name])
    explored = Explored.of(loaded, sample("lion"), mode="stretch", name="lion")
    start = time.perf_counter()
    page = explored.page(explored.selection())
    taken = time.perf_counter() - start
    file.write_bytes(page)
    tokens, size = explored.trace.num_tokens, fp16_bytes(explored.trace)
    print(
        f"{name}, {tokens} tokens: {len(page) / 1e6:.2f} MB ({size / 1e6:.2f} MB of fp16 before compression), written in "
        f"{taken:.1f} s",
        flush=True,
    )
    return file


def opened(browser: Any, name: str, file: Path, moves: int) -> None:
    """Print how long it takes until every layer answers, and how fast the explorer follows the pointer."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = context.new_page()
    start = time.perf_counter()
    page.goto(file.as_uri())
    page.locator("#vv-explorer [data-state=ready]").wait_for()
    while page.locator("#vv-explorer [data-vv=progress]").inner_text():
        page.wait_for_timeout(20)
    print(f"{name}: every layer answers after {time.perf_counter() - start:.1f} s", flush=True)
    report(f"{name}: hover to painted, script time", hovers(page, moves))
    context.close()


if __name__ == "__main__":
    main()
