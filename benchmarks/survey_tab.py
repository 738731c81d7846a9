"""How fast the Survey tab is with many photos: opening, a brush, and what the browser holds.

    python benchmarks/survey_tab.py [--photos 10000] [--brushes 40] [--folder SURVEY] [--chromium /usr/bin/chromium]

Without --folder a survey of random numbers is written by the package's own writer. Server times are of the addresses that the tab
fetches, asked in this process: on the clock, and of the processor, which other work on the machine does not lengthen. With a
browser: from the request for the page until the tab's numbers and dots are there; from the end of a drag until they are those of
the brush; and the heap of the page after all brushes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from tests.surveys.made import made_survey
from vit_viz.surveys import trust
from vit_viz.surveys.opened import open_survey
from vit_viz.surveys.photo_files import PhotoFiles
from vit_viz.ui.survey import routes

ROOT = Path(__file__).resolve().parents[1]
LAYERS = HEADS = 6  # as the bundled model
BRUSH = "(confidence BETWEEN {0} AND {1} AND mean_entropy BETWEEN {2} AND {3})"
LASSO = "inside(confidence, mean_entropy, '{0}')"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=int, default=10_000)
    parser.add_argument("--brushes", type=int, default=40)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--server-only", action="store_true")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = flags.folder or made_survey(
            Path(place) / "made", photos=flags.photos, layers=LAYERS, heads=HEADS, batch=128
        )
        _server(folder, flags.brushes)
        if not flags.server_only:
            _browser(folder, flags.brushes, flags.chromium)


def _server(folder: Path, brushes: int) -> None:
    before = resident_bytes()
    survey, opened = _timed(lambda: open_survey(folder))
    files = PhotoFiles(survey)
    print(f"{survey.num_photos:,} photos, {survey.num_layers} x {survey.num_heads} heads")
    _told("open the survey, once", [opened])
    print(f"memory of it: {(resident_bytes() - before) / 2**20:.0f} MiB")
    expressions = [*_boxes(survey.numbers, brushes), *_lassos(survey.numbers, brushes)]
    for name, part in (("box", expressions[:brushes]), ("lasso of 40 corners", expressions[brushes:])):
        times = [
            _timed(
                lambda where=where: routes.chosen_value(
                    files, where, layer=1, head=2, measure="entropy", patch_size=(8, 8)
                )
            )[1]
            for where in part
        ]
        _told(f"answer to a {name}", times)
    _told("table of methods", [_timed(lambda: trust.method_table(survey, survey.select()))[1]])


def _boxes(numbers: dict[str, Any], count: int) -> list[str]:
    chance = random.Random(0)
    found = []
    for _ in range(count):
        ends = [
            sorted(chance.uniform(*np.nanpercentile(numbers[name], (0, 100))) for _ in range(2))
            for name in ("confidence", "mean_entropy")
        ]
        found.append(BRUSH.format(*(f"{end:.5g}" for pair in ends for end in pair)))
    return found


def _lassos(numbers: dict[str, Any], count: int) -> list[str]:
    chance = random.Random(1)
    around = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    (left, right), (low, high) = (
        np.nanpercentile(numbers[name], (0, 100)) for name in ("confidence", "mean_entropy")
    )
    found = []
    for _ in range(count):
        size = chance.uniform(0.1, 0.5)
        x = (left + right) / 2 + size * (right - left) * np.cos(around)
        y = (low + high) / 2 + size * (high - low) * np.sin(around)
        found.append(LASSO.format(", ".join(f"{a:.5g} {b:.5g}" for a, b in zip(x, y, strict=True))))
    return found


def _browser(folder: Path, brushes: int, chromium: str | None) -> None:
    from playwright.sync_api import sync_playwright

    port = 7941
    command = [
        sys.executable,
        str(ROOT / "app.py"),
        "--survey",
        str(folder),
        "--model",
        "mini",
        "--port",
        str(port),
    ]
    app = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/", app)
        with sync_playwright() as playwright:
            flags = [
                "--no-sandbox",
                "--disable-gpu",
                "--enable-precise-memory-info",
                "--js-flags=--expose-gc",
            ]
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            opens = [_timed(lambda: _open(page, port))[1] for _ in range(5)]
            _told("open the tab (the first of five is cold)", opens)
            heap = _heap(page)
            _told("a brush, from the end of the drag", [_brush(page) for _ in range(brushes)])
            print(
                f"heap of the page: {heap:.0f} MiB when opened, {_heap(page):.0f} MiB after {brushes} brushes"
            )
            browser.close()
    finally:
        app.terminate()
        app.wait()


def _open(page: Any, port: int) -> None:
    page.goto(f"http://127.0.0.1:{port}/?tab=survey")
    page.wait_for_function(
        "document.querySelector('.vv-survey-count')?.textContent && "
        "document.querySelector('#vv-survey-dots canvas')?.dataset.dots",
        timeout=120_000,
    )


_DRAGGED = """
() => {
  const count = document.querySelector('.vv-survey-count');
  const before = count.textContent;
  window.dragged = new Promise((done, failed) => window.addEventListener('pointerup', async () => {
    const began = performance.now();
    while (count.textContent === before) {
      if (performance.now() - began > 20000) return failed(new Error('no answer'));
      await new Promise((next) => setTimeout(next, 1));
    }
    await new Promise((next) => requestAnimationFrame(() => setTimeout(next))); // painted
    done((performance.now() - began) / 1000);
  }, { once: true, capture: true }));
}
"""


def _brush(page: Any) -> tuple[float, float]:
    chance = random.Random(page.locator(".vv-survey-where").input_value())
    begin, end = ([chance.uniform(low, high) for _ in range(2)] for low, high in ((0.05, 0.4), (0.5, 0.95)))
    box = page.locator("#vv-survey-dots canvas").bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (begin, end)]
    page.evaluate(_DRAGGED)
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=3)
    page.wait_for_timeout(200)
    page.mouse.up()
    seconds = float(page.evaluate("window.dragged"))
    page.wait_for_timeout(1000)
    return seconds, seconds


def _heap(page: Any) -> float:
    return float(page.evaluate("(window.gc?.(), performance.memory.usedJSHeapSize)")) / 2**20


def _wait(url: str, app: subprocess.Popen[bytes]) -> None:
    while app.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("the app did not start")


def resident_bytes() -> int:
    """Memory that this process holds (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _timed(work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What it gives, and the seconds that it took: on the clock, of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    given = work()
    return given, (time.perf_counter() - clock, time.process_time() - processor)


def _told(name: str, times: list[tuple[float, float]]) -> None:
    clock, processor = (sorted(one) for one in zip(*times, strict=True))
    last = min(len(clock) - 1, int(0.95 * len(clock)))
    middle = len(clock) // 2
    print(
        f"{name}: median {1000 * clock[middle]:.0f} ms, p95 {1000 * clock[last]:.0f} ms on the clock; "
        f"{1000 * processor[middle]:.0f} and {1000 * processor[last]:.0f} ms of the processor"
    )


if __name__ == "__main__":
    main()
