"""The pictures of the README, taken from the running app: screenshots, a hovering pointer, and scenes of the lesson that play.

    python docs/pictures.py [--chromium /usr/bin/chromium]

They are written into assets/, each smaller than 3 MB.
"""

from __future__ import annotations

import argparse
import io
import math
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run from a checkout that is not installed

from vit_viz.session.session import Session
from vit_viz.ui.app import build_app, launch_options

ASSETS = ROOT / "assets"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
MOST_BYTES = 3_000_000
WIDTH, HEIGHT = 1440, 960
FRAMES, FRAME_MS, SCALE = 40, 100, 0.6
EXPLORER = "#vv-explorer [data-vv=root][data-state=ready]"
SENTENCES = "a red circle | a yellow triangle | a blue square | a green star | the background"
SCREENS = {
    "look": ("?image=lion", EXPLORER),
    "explain": ("?image=lion&tab=explain", "#vv-explain-picture .vv-image:not([hidden])"),
    "heads": ("?image=lion&tab=heads", "[data-ready=distance]"),
    "words": (
        f"?model=mini-clip&image=shapes&tab=explain&sentences={quote(SENTENCES)}&target=0",
        ".vv-best canvas",
    ),
}

PLAYED = (("cut-see", "cut-row", 26), ("ask-query", "ask-look", 30), ("depth-read", "depth-end", 16))
"""Beats of the lesson: from the end of one to that of another, in so many frames."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the README from the running app.")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of the browser")
    arguments = parser.parse_args()
    with sync_playwright() as playwright, served() as url:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        for name, (address, ready) in SCREENS.items():
            opened(page, url + address, ready)
            if name == "explain":
                page.locator(".vv-test").click()
                page.locator(".vv-first-choice:visible").wait_for(
                    timeout=900_000
                )  # how far to believe each map
            keep(ASSETS / f"{name}.webp", [shot(page)])
        opened(page, url + SCREENS["look"][0], EXPLORER)
        keep(ASSETS / "hover.webp", list(hovering(page)))
        keep(ASSETS / "lesson.webp", [frame for beats in PLAYED for frame in playing(page, url, *beats)])
        browser.close()


@contextmanager
def served() -> Iterator[str]:
    """The app with the bundled model, on a free port of this machine."""
    session = Session(device="cpu")
    app = build_app(session)
    _, url, _ = app.launch(**launch_options(session), prevent_thread_lock=True, quiet=True)
    yield url
    app.close()


def opened(page: Page, address: str, ready: str) -> None:
    """Open an address and wait until it stands still."""
    page.goto(address)
    page.locator(ready).first.wait_for()
    page.wait_for_timeout(6000)  # its streams stay open, so that the network is never idle


def shot(page: Page) -> Image.Image:
    """What the window shows."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def hovering(page: Page) -> Iterator[Image.Image]:
    """The pointer goes round over the photo."""
    box = page.locator("#vv-explorer [data-vv=stage]").bounding_box()
    assert box is not None
    for frame in range(FRAMES):
        angle = 2 * math.pi * frame / FRAMES
        x = box["x"] + box["width"] * (0.5 + 0.28 * math.cos(angle))
        y = box["y"] + box["height"] * (0.42 + 0.25 * math.sin(angle))
        page.mouse.move(x, y)
        page.wait_for_timeout(60)
        whole = shot(page)
        yield smaller(whole)


def playing(page: Page, url: str, first: str, last: str, frames: int) -> Iterator[Image.Image]:
    """The lesson plays, from the end of one beat to that of another."""
    page.emulate_media(reduced_motion="no-preference")
    ends = []
    for beat in (first, last):
        opened(page, f"{url}?image=lion&tab=lesson&beat={beat}", f".vv-lesson-stage[data-drawn={beat}]")
        ends.append(float(page.locator(".vv-lesson-scrub input").input_value()))
    for frame in range(frames):
        at = ends[0] + (ends[1] - ends[0]) * frame / (frames - 1)
        page.locator(".vv-lesson-scrub input").evaluate(
            "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input', { bubbles: true })); }",
            at,
        )
        page.wait_for_timeout(60)
        yield smaller(shot(page))


def smaller(whole: Image.Image) -> Image.Image:
    """A frame of an animation."""
    return whole.resize((int(WIDTH * SCALE), int(HEIGHT * SCALE)), Image.Resampling.LANCZOS)


def keep(path: Path, frames: list[Image.Image]) -> None:
    """Write a picture, or an animation that goes on for ever, in the best quality that is small enough."""
    options: dict[str, Any] = {"method": 6}
    if len(frames) > 1:
        options |= {"save_all": True, "append_images": frames[1:], "duration": FRAME_MS, "loop": 0}
    for quality in range(85, 25, -10):
        frames[0].save(path, quality=quality, **options)
        if path.stat().st_size < MOST_BYTES:
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes at quality {quality}")
            return
    raise SystemExit(f"{path.name} is larger than {MOST_BYTES:,} bytes at any quality that shows something.")


if __name__ == "__main__":
    main()
