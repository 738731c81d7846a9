"""The page's JavaScript: how a component finds its module, and that none is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

import gradio as gr
import pytest

import vit_viz
from tests.ui.desk import app_of
from vit_viz.session.session import Session
from vit_viz.ui import scripts
from vit_viz.ui.app import TABS

PACKAGE = Path(vit_viz.__file__).parent
OTHER_HOSTS = {
    "offline/page.js",
    "offline/start.js",
    "notebook/widget.js",
    "browser/worker.js",
    "browser/helper.js",
    "site/worker.js",
    "site/site.js",
    "site/offline.js",
}
"""Where a module is bundled into a file, or is one of a site, instead of being loaded by the page."""
RUN_FIRST = {"ui/visit/photo_aspect.js", "web/look/room.js", "web/kit/server.js"}
"""Modules of which the page runs something before Gradio's (vit_viz.ui.edge.documents)."""


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """The modules that the page mounts, with the tab of a survey."""
    pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")
    from vit_viz.ui.survey.view import survey_room

    session = Session(model="mini", device="cpu")
    app = app_of(session, tabs=(*TABS, survey_room(session, "example").tab))
    (only,) = (block for block in app.blocks.values() if isinstance(block, gr.HTML))
    found = re.match(r'window[.]vit_viz[(]"([\w/]+[.]js)"[)][.]mount[(]element, props[)];', only.js_on_load)
    assert found is not None
    told = json.loads(only.props["page"])
    return [found[1], *(part["module"] for part in told["tabs"] + told["parts"])]


def imports(name: str) -> list[str]:
    """The modules that one imports, by their path in the package."""
    text = (PACKAGE / name).read_text("utf-8")
    found = re.findall(r"^(?:import|export)\b[^;]*?from '([^']+)';", text, re.MULTILINE)
    return [normpath((PurePosixPath(name).parent / path).as_posix()) for path in found]


def test_a_module_that_does_not_exist_cannot_be_mounted() -> None:
    with pytest.raises(KeyError):
        scripts.known_module("ui/look/nothing.js")


def test_every_module_is_loaded_by_a_component_or_by_another_module(loaded: list[str]) -> None:
    waiting = [*loaded, *OTHER_HOSTS, *RUN_FIRST]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    assert {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.js")} - found == set()


def test_every_module_that_the_page_mounts_can_be_mounted(loaded: list[str]) -> None:
    assert len(set(loaded)) > 10
    for name in loaded:
        text = (PACKAGE / name).read_text("utf-8")
        assert re.search(r"^export function mount\(", text, re.MULTILINE), name
