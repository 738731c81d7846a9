"""How fast the explorer answers in a real browser: hover to painted, sample to complete mosaic, click to the server's numbers.

    python benchmarks/explorer.py [--chromium /usr/bin/chromium] [--only mini]

Hover times are script time of a whole repaint (the explorer's own "vit_viz:paint" measures); the other two are wall time in the
page. The large models have random weights: only their shapes matter here. `node benchmarks/explorer.js` times the arithmetic alone,
in processor time, where other work on the machine would drown these numbers.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from benchmarks.shapes import random_model
from vit_viz.checkpoints import load
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS, build_app, launch_options
from vit_viz.ui.survey.view import survey_room

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
ROOT = "#vv-explorer [data-vv=root]"
SHAPES: dict[str, dict[str, Any]] = {
    "197 tokens, 12 x 3 heads": {"embed_dim": 192, "num_heads": 3},
    "197 tokens, 12 x 12 heads": {"embed_dim": 768, "num_heads": 12},
    "785 tokens, 12 x 12 heads": {"embed_dim": 768, "num_heads": 12, "img_size": (448, 448)},
    "3601 tokens, one layer of 6 heads": {
        "embed_dim": 384,
        "num_heads": 6,
        "img_size": (480, 480),
        "patch_size": (8, 8),
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the explorer answers in a real browser.")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of the browser")
    parser.add_argument("--only", default="", help="a part of the name of the cases to run")
    parser.add_argument("--moves", type=int, default=200, help="pointer moves per case")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=FLAGS)
        for name in ("mini", *SHAPES):
            if arguments.only in name:
                with served(name) as url:
                    measure(browser, name, url, arguments.moves)
        browser.close()


@contextmanager
def served(name: str, *, has_survey: bool = False) -> Iterator[str]:
    """The app with one model, on a free port: of a shape, with random weights, or of a name or file that can be loaded.

    Args:
        has_survey: whether it has the tab of the bundled survey.
    """
    loaded = random_model(name, **SHAPES[name]) if name in SHAPES else load(name)
    session = Session(model=loaded.name, device="cpu")
    session.add_model(loaded)
    rooms = [survey_room(session, "example")] if has_survey else []
    app = build_app(session, tabs=(*TABS, *(room.tab for room in rooms)))
    _, url, _ = app.launch(**launch_options(session, rooms=rooms), prevent_thread_lock=True, quiet=True)
    yield url
    app.close()


def measure(browser: Any, name: str, url: str, moves: int) -> None:
    """Print the figures of one case."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(f"{url}?image=lion&mode=stretch")
    settle(page)
    report(f"{name}: hover to painted, script time", hovers(page, moves))
    report(f"{name}: click to the server's numbers", [click(page, i) for i in range(20)])
    if name == "mini":
        report(f"{name}: sample to complete mosaic", [choose(page, i % 6) for i in range(2, 20)])
    page.close()


def settle(page: Any) -> None:
    """Wait until every layer that travels is there and the pinned query is answered."""
    page.wait_for_selector(f"{ROOT}[data-state=ready]")
    page.wait_for_function(
        "!document.querySelector('#vv-explorer [data-vv=progress]').textContent.includes('Fetching')"
    )
    page.wait_for_function(
        "/Most/.test(document.querySelector('#vv-explorer [data-vv=readout]').textContent)"
    )
    page.wait_for_timeout(5000)  # rows of layers that do not travel


def hovers(page: Any, moves: int) -> list[float]:
    """Script time of each repaint while the pointer wanders over the photo, in milliseconds."""
    wander(page, page.locator("#vv-explorer [data-vv=stage]"), moves)
    times: list[float] = page.evaluate(
        "performance.getEntriesByName('vit_viz:paint').filter((e) => e.detail === 'hover').map((e) => e.duration)"
    )
    return times


def wander(page: Any, photo: Any, moves: int) -> None:
    """Move the pointer over a photo; what the browser measured before is forgotten."""
    box = photo.bounding_box()
    page.evaluate("performance.clearMeasures()")
    places = random.Random(1)
    for _ in range(moves):
        x, y = (places.uniform(0.01, 0.99) for _ in range(2))
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        page.wait_for_timeout(25)


def click(page: Any, step: int) -> float:
    """From a click on a patch to the arrival of its numbers, in milliseconds."""
    box = page.locator("#vv-explorer [data-vv=stage]").bounding_box()
    across, down = (0.03 + 0.047 * (step * 7 % 20), 0.03 + 0.047 * (step * 3 % 20))  # another patch each time
    x, y = box["x"] + across * box["width"], box["y"] + down * box["height"]
    page.mouse.move(x, y)
    page.wait_for_timeout(300)
    with page.expect_response(lambda answer: "/vit_viz/numbers/" in answer.url):
        start = time.perf_counter()
        page.mouse.click(x, y)
    return 1000 * (time.perf_counter() - start)


def choose(page: Any, sample: int) -> float:
    """From a click on a sample to its complete mosaic, in milliseconds."""
    before = page.locator("#vv-explorer [data-vv=photo]").get_attribute("src")
    start = time.perf_counter()
    page.locator(".vv-sample").nth(sample).click()
    page.wait_for_function(
        "(before) => document.querySelector('#vv-explorer [data-vv=photo]').src !== new URL(before, location).href"
        " && document.querySelector('#vv-explorer [data-vv=progress]').textContent === ''",
        arg=before,
    )
    taken = 1000 * (time.perf_counter() - start)
    page.wait_for_timeout(500)
    return taken


def report(what: str, times: list[float]) -> None:
    median, p95 = np.percentile(times, [50, 95])
    print(f"{what}: median {median:.1f} ms, p95 {p95:.1f} ms (n = {len(times)})", flush=True)


if __name__ == "__main__":
    main()
