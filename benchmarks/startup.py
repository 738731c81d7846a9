"""How long a visitor waits: from `python app.py` to the first answer, and from the opened page to the first pictures.

    python -m benchmarks.startup [--repeat 3] [--browser /usr/bin/chromium]

Prints wall and processor seconds and the load of the machine; judge wall times on an idle machine only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PAINTED = """() => { const c = document.querySelector('#vv-explorer [data-vv=atlas]');
    return c && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x > 0); }"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--browser", default=shutil.which("chromium"))
    flags = parser.parse_args()
    for _ in range(flags.repeat):
        measure(flags.browser)


def measure(browser: str | None) -> None:
    """One start and one visit."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, start = f"http://127.0.0.1:{port}/", time.monotonic()
    command = [sys.executable, str(ROOT / "app.py"), "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait(url, process)
        used = psutil.Process(process.pid).cpu_times()
        busy = f"{used.user + used.system:.1f} s of processor, load {os.getloadavg()[0]:.1f}"
        print(f"first HTTP 200: {time.monotonic() - start:.1f} s ({busy})")
        print(f"first pictures: {first_pictures(url, browser):.1f} s after the page had loaded")
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


def first_pictures(url: str, browser: str | None) -> float:
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
