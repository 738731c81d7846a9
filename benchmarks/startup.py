"""How long a visitor waits: from `python app.py` to the first answer, and from the opened page to the first pictures.

    python -m benchmarks.startup [--repeat 5] [--browser /usr/bin/chromium]

Each start of ours stands beside one of the smallest page that Gradio can serve, so that the ratio says what is ours; the first pair
compiles what has not been compiled and does not count. Prints medians of wall and processor seconds until the first answer, and of
their ratios; judge wall times on an idle machine only. Then what the command line takes to say what it can do.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parents[1]
OURS = [str(ROOT / "app.py"), "--port"]
GRADIO = ["-c", "import sys, gradio\nwith gradio.Blocks() as page: gradio.Markdown('.')\n"
          "page.launch(server_port=int(sys.argv[1]), ssr_mode=False)"]  # fmt: skip
PAINTED = """() => { const c = document.querySelector('#vv-explorer [data-vv=atlas]');
    return c && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x > 0); }"""


TELLING = ("--help", "--version", "completion bash", "look --help", "survey --help")
"""Commands that say what there is and compute nothing; each is to take at most half a second of a processor."""


class Start(NamedTuple):
    """Seconds from the start of a process to its first HTTP 200, and how many of a processor they took."""

    wall: float
    processor: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--browser", default=shutil.which("chromium"), help="empty: no page is opened")
    flags = parser.parse_args()
    ours, gradio, pictures = [], [], []
    for _ in range(flags.repeat + 1):
        with started(GRADIO) as (_url, start):
            gradio.append(start)
        with started(OURS) as (url, start):
            ours.append(start)
            if flags.browser:
                pictures.append(first_pictures(url, flags.browser))
    print(report(ours[1:], gradio[1:], pictures[1:]))
    for words in TELLING:
        seconds = statistics.median(command_seconds(words) for _ in range(flags.repeat))
        print(f"vit-viz {words:16s} {seconds:.2f} s of processor")


def command_seconds(words: str) -> float:
    """Processor seconds of one command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "vit_viz", *words.split()]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(ours: list[Start], gradio: list[Start], pictures: list[float]) -> str:
    """The medians in words."""
    lines = [f"medians of {len(ours)} starts; load of the machine {os.getloadavg()[0]:.1f}"]
    for name, starts in (("python app.py", ours), ("gradio alone", gradio)):
        wall, processor = (statistics.median(seconds) for seconds in zip(*starts, strict=True))
        lines.append(f"{name:14s} first HTTP 200 after {wall:.1f} s, {processor:.1f} s of processor")
    pairs = [(a.wall / b.wall, a.processor / b.processor) for a, b in zip(ours, gradio, strict=True)]
    wall, processor = (statistics.median(ratios) for ratios in zip(*pairs, strict=True))
    lines.append(f"{'ratio':14s} {wall:.2f} of wall time, {processor:.2f} of processor time")
    if pictures:
        lines.append(f"first pictures {statistics.median(pictures):.1f} s after the page had loaded")
    return "\n".join(lines)


@contextmanager
def started(command: list[str]) -> Iterator[tuple[str, Start]]:
    """A server that has answered once: its address and what that took; ended on leaving."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, begin = f"http://127.0.0.1:{port}/", time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command, str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"GRADIO_ANALYTICS_ENABLED": "False", "PYTHONDONTWRITEBYTECODE": ""},
    )
    try:
        wait(url, process)
        wall, used = time.monotonic() - begin, psutil.Process(process.pid).cpu_times()
        yield url, Start(wall, used.user + used.system)
    finally:
        process.terminate()
        process.wait()


def wait(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the app answers."""
    while process.poll() is None:
        try:
            with urllib.request.urlopen(url) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the app ended before it answered")


def first_pictures(url: str, browser: str) -> float:
    """Seconds from the load event to a painted mosaic."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        page.goto(url, wait_until="load")
        loaded = time.monotonic()
        page.wait_for_function(PAINTED)
        seconds = time.monotonic() - loaded
        chromium.close()
    return seconds


if __name__ == "__main__":
    main()
