"""A question is declared once: a look-up that stands in this file alone is offered by every surface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import vit_viz as vv
from tests.surfaces.test_mcp import asked
from vit_viz import mcp, rest
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import Job, Question, Words
from vit_viz.cli import main
from vit_viz.errors import ParameterError
from vit_viz.figures.files import formats_of
from vit_viz.results import HeadTable
from vit_viz.session.session import Session
from vit_viz.ui.palette.view import listing
from vit_viz.views.panel import Panel
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class DepthOptions(Options):
    power: Annotated[int, Option("power", "Of the number of the layer.", low=1, high=3)] = 1


def _depth(job: Job, options: DepthOptions) -> HeadTable:
    depth = np.arange(job.trace.num_layers, dtype=np.float32)[:, None] ** options.power
    values = np.repeat(depth, job.trace.num_heads, axis=1)
    provenance = job.trace.provenance.with_parameters(method="depth", power=options.power)
    return HeadTable(values, "layers", (0.0, 1e6), False, "depth", provenance=provenance)


DEPTH = Question(
    name="depth",
    words=Words(
        "Depth", "how deep each head lies.", "anything else.", "$l^p$", "Toy & Test 2026", class_blind=True
    ),
    options=DepthOptions,
    run=_depth,
    reads="trace",
)


@pytest.fixture(scope="module", autouse=True)
def _offered() -> Iterator[None]:
    with QUESTIONS.including(DEPTH):
        yield
    assert "depth" not in QUESTIONS


@pytest.fixture(scope="module")
def expected() -> Any:
    trace = vv.trace(vv.load("mini"), "lion")
    return np.repeat(np.arange(trace.num_layers, dtype=np.float32)[:, None] ** 2, trace.num_heads, axis=1)


def test_python_answers_it_with_its_options(expected: Any) -> None:
    assert np.array_equal(vv.run("mini", "lion", "depth", power=2).values, expected)
    with pytest.raises(ParameterError, match="power is a whole number from 1 to 3"):
        vv.run("mini", "lion", "depth", power=9)


@pytest.mark.parametrize("form", ["png", "svg", "pdf", "csv", "npz"])
def test_it_is_saved_in_every_format_of_a_figure(form: str) -> None:
    assert form in formats_of("depth")
    saved = vv.figure("mini", "lion", "depth", power=2, format=form)
    assert (saved.file_name, len(saved.data) > 500) == (f"vit_viz_lion_depth_mini.{form}", True)


def test_the_command_line_answers_it(
    expected: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["depth", "lion", "--power", "2", "--json", "-o", str(tmp_path / "depth.csv")]) == 0
    assert np.array_equal(json.loads(capsys.readouterr().out)["numbers"]["values"], expected)
    assert main(["replay", str(tmp_path / "depth.csv"), "-o", str(tmp_path / "again.csv")]) == 0
    assert main(["depth", "--help"]) == 0
    assert "how deep each head lies." in capsys.readouterr().out


def test_rest_lists_and_answers_it(api: TestClient, session: Session) -> None:
    listed = {one["name"]: one for one in api.get(rest.PREFIX).json()["questions"]}
    assert listed["depth"]["body"]["properties"]["power"]["maximum"] == 3
    assert f"{rest.PREFIX}/depth" in api.get(f"{rest.PREFIX}/openapi.json").json()["paths"]
    said = api.post(f"{rest.PREFIX}/depth", json={"image": {"sample": "twins"}, "power": 3}).json()
    assert said["numbers"]["values"][2][0] == 8.0
    view, problems = ViewState.from_address(said["link"].partition("?")[2])
    assert (view.panel, view.image, problems) == (Panel("depth", DepthOptions(power=3)), "twins", ())


def test_the_page_finds_it_and_its_panel_asks_it() -> None:
    listed = {one["name"]: one for one in json.loads(listing())}
    assert (listed["depth"]["label"], listed["depth"]["tab"]) == ("Depth", "")
    assert listed["depth"]["link"] == {"ask": "depth"}
    assert [(one["name"], one["high"]) for one in listed["depth"]["controls"]] == [("power", 3)]


def test_mcp_lists_and_answers_it(session: Session) -> None:
    listed = asked(mcp.server(session), lambda client: client.list_tools()).tools
    assert "depth" in [tool.name for tool in listed]
    arguments = {"image": {"sample": "twins"}, "power": 2}
    found = asked(mcp.server(session), lambda client: client.call_tool("depth", arguments))
    assert found.structured_content["numbers"]["values"][2][0] == 4.0


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ParameterError, match="question 'depth' already"), QUESTIONS.including(DEPTH):
        pass
    with pytest.raises(ParameterError, match="a_name_like_this"):
        Question(**{**vars(DEPTH), "name": "Depth of"})
