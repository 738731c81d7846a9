"""The explorer in JupyterLab, in a real browser: both sides know the selection, and the saved notebook has a picture of it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving import ROOT, free_port
from tests.ui.test_access import axe
from tests.ui.test_offline_page import FAULTS
from tests.ui.waits import expect
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.slow, pytest.mark.browser]

CELLS = (
    "import vit_viz as vv\nfrom vit_viz.samples import sample\n"
    "explorer = vv.explore('mini', sample('shapes'), layer=3, head=1, query=(2, 5))\nexplorer",
    "explorer.query, explorer.head = (4, 4), 'mean'",
    "print('now', explorer.layer, explorer.head, explorer.query)",
)
WIDGET = "[data-lm-suppress-shortcuts]"
CELL = ".jp-Notebook .jp-CodeCell"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Address of a JupyterLab whose folder is `tmp_path`."""
    for package in ("jupyterlab", "anywidget"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install anywidget jupyterlab")
    port, own = free_port(), tmp_path / ".jupyter"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [f"--port={port}", "--IdentityProvider.token=", f"--ServerApp.root_dir={tmp_path}"]
    folders = {f"JUPYTER_{name}_DIR": str(own / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = os.environ | folders | {"PYTHONPATH": paths, "IPYTHONDIR": str(own / "ipython")}
    with (tmp_path / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}/"
    try:
        answers(f"{address}api", process)
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE)


def answers(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server does."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not answer at {address}")


def written(folder: Path) -> Path:
    """A notebook of our cells."""
    empty: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [empty | {"id": f"c{i}", "source": source} for i, source in enumerate(CELLS)]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    file = folder / "look.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    return file


def exact_numbers(tab: Any) -> None:
    """Wait until the numbers on the screen are those of the kernel, in fp32: until then they begin with "about"."""
    tab.wait_for_function(
        "() => { const said = document.querySelector('[data-lm-suppress-shortcuts]').shadowRoot"
        ".querySelector('[data-vv=readout]').textContent; return said.startsWith('Most on patch') && !said.includes('\u2248'); }"
    )


def test_the_explorer_lives_in_a_notebook(lab: str, browser: Any, tmp_path: Path) -> None:
    file = written(tmp_path)
    tab = browser.new_page(viewport={"width": 1440, "height": 1000})
    tab.set_default_timeout(90_000)
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"{lab}lab/tree/{file.name}")
    tab.locator(CELL).nth(2).wait_for()
    tab.get_by_text(
        "| Idle"
    ).wait_for()  # before its kernel is there JupyterLab runs nothing, and says nothing

    def run(cell: int) -> None:
        tab.locator(CELL).nth(cell).locator(".cm-content").click()
        tab.keyboard.press("Control+Enter")

    def shows(words: str) -> None:
        tab.locator("[data-vv=caption]", has_text=words).wait_for()

    run(0)
    tab.locator("[data-vv=root][data-state=ready]").wait_for()
    shows("Layer 3, head 1: patch (2, 5) looks ")
    tab.wait_for_function(
        "() => document.querySelector('[data-lm-suppress-shortcuts]').shadowRoot.querySelector('[data-vv=progress]')"
        ".textContent === ''"
    )
    exact_numbers(tab)
    tab.evaluate(axe())
    for is_light, look in (("false", "vv-host dark"), ("true", "vv-host")):  # as JupyterLab's themes tell
        tab.evaluate("is_light => (document.body.dataset.jpThemeLight = is_light)", is_light)
        expect(tab.locator(f"{WIDGET} .vv-host")).to_have_class(look)
        assert tab.evaluate(FAULTS.replace("document", f"'{WIDGET}'", 1)) == []
    run(1)
    shows("Layer 3, all heads: patch (4, 4) looks ")
    exact_numbers(tab)
    tab.get_by_role("button", name="register 0").click()
    tab.locator("[data-vv=mosaic]").focus()
    for key in (
        "ArrowUp",
        "Enter",
        "Escape",
    ):  # with which JupyterLab goes to other cells, and edits one or leaves it
        tab.keyboard.press(key)
    shows("Layer 2, all heads")
    tab.wait_for_timeout(500)
    run(2)
    tab.locator(".jp-OutputArea-output", has_text="now 2 mean ").wait_for()
    expect(tab.locator(CELL)).to_have_count(len(CELLS))
    tab.keyboard.press("Control+s")
    until(lambda: tab.evaluate("true") and '"image/jpeg"' in file.read_text(), what="a saved picture")
    (kept,) = json.loads(file.read_text())["cells"][0]["outputs"]
    assert {"text/html", "image/jpeg", "text/plain", "application/vnd.jupyter.widget-view+json"} <= set(
        kept["data"]
    )
    assert errors == []
    tab.close()
