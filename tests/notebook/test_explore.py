"""The explorer in Python: what is chosen, what is refused, what is saved, and what a notebook keeps of it."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load

import vit_viz as vv
from vit_viz.errors import ExportError, ParameterError
from vit_viz.explorer.packing import packed_layer
from vit_viz.notebook import MISSING, Exploration
from vit_viz.offline.explored import Explored
from vit_viz.samples import sample

HAS_WIDGET = importlib.util.find_spec("anywidget") is not None
needs_widget = pytest.mark.skipif(not HAS_WIDGET, reason="anywidget is not installed")


@pytest.fixture(scope="module")
def explored() -> Explored:
    return Explored.of(vv.load("mini"), sample("shapes"), name="shapes")


def make(kind: str, explored: Explored) -> Any:
    shown = explored.selection(layer=3, head=1, query=(2, 5))
    if kind == "still":
        return Exploration(explored, shown)
    from vit_viz.notebook.widget import ExplorerWidget

    return ExplorerWidget(explored, shown)


@pytest.fixture(params=["still", pytest.param("widget", marks=needs_widget)])
def explorer(request: pytest.FixtureRequest, explored: Explored) -> Any:
    return make(request.param, explored)


def test_explore_begins_where_a_first_look_does_or_where_it_is_told() -> None:
    loaded, picture = vv.load("mini"), sample("shapes")
    first = vv.explore(loaded, picture)
    begins = first.explored.opening
    assert (first.layer, first.head, first.query) == (begins.layer, begins.head, "class")
    told = vv.explore(loaded, picture, layer=2, head="max", query=[(1, 2), (0, 3)], name="some shapes")
    assert (told.layer, told.head, told.query) == (2, "max", [(1, 2), (0, 3)])
    assert isinstance(told, Exploration) is not HAS_WIDGET
    assert repr(told).startswith("Explorer of some shapes as mini sees it: layer 2, head max, ")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("layer", 6, "Layer 6 does not exist"),
        ("layer", "last", "layer"),
        ("head", 6, "Head 6 does not exist"),
        ("head", "median", "mean, max or min"),
        ("query", (99, 0), "99"),
        ("query", "detection 0", "detection 0"),
    ],
)
def test_a_selection_that_does_not_exist_is_refused_and_changes_nothing(
    explorer: Any, name: str, value: object, words: str
) -> None:
    with pytest.raises(
        Exception, match=words
    ) as refused:  # a TraitError of the widget, which notebooks expect
        setattr(explorer, name, value)
    assert isinstance(refused.value, ParameterError) or type(refused.value).__name__ == "TraitError"
    assert (explorer.layer, explorer.head, explorer.query) == (3, 1, (2, 5))


def test_what_is_chosen_is_what_is_saved(explorer: Any, tmp_path: Path) -> None:
    explorer.layer, explorer.head, explorer.query = 4, "mean", "register 0"
    saved = explorer.save(tmp_path / "page.html").read_text("utf-8")
    facts = json.loads(saved.partition('id="vv-facts">')[2].partition("<")[0])
    begins = {field["link"]: field["default"] for field in facts["fields"]}
    assert (begins["layer"], begins["head"], begins["q"]) == (4, "mean", "register 0")


@pytest.mark.parametrize("name", ["page.png", "page", "nowhere/page.html"])
def test_what_is_no_page_is_not_written(explorer: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError):
        explorer.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_saved_notebook_keeps_a_picture_of_the_selection(explorer: Any) -> None:
    def shown() -> Image.Image:
        bundle = explorer._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        assert "Explorer of shapes" in data["text/plain"]
        assert data["text/html"].startswith('<img alt="Explorer of shapes')
        assert f'src="data:image/jpeg;base64,{data["image/jpeg"]}"' in data["text/html"]
        with Image.open(io.BytesIO(base64.b64decode(data["image/jpeg"]))) as picture:
            assert picture.format == "JPEG"
            return picture.convert("RGB")

    before = shown()
    explorer.query = (7, 1)
    assert shown().tobytes() != before.tobytes()


def test_the_picture_in_a_saved_notebook_is_small_whatever_the_photo() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (1500, 210, 3), dtype=np.uint8)
    explored = Explored.of(vv.load("mini"), Image.fromarray(noise), name="<b> & noise")
    whole = explored.picture(explored.opening)
    bundle = explored.mime_bundle(explored.opening, explored.described(explored.opening))
    assert sum(map(len, bundle.values())) < 300_000
    assert 'alt="Explorer of &lt;b&gt; &amp; noise as mini' in bundle["text/html"]
    with Image.open(io.BytesIO(base64.b64decode(bundle["image/jpeg"]))) as picture:
        assert 0.2 * whole.width < picture.width < whole.width  # it had to be made smaller
        assert picture.height / picture.width == pytest.approx(whole.height / whole.width, rel=0.01)


def test_without_the_widget_one_sentence_says_what_to_install(explored: Explored) -> None:
    still = make("still", explored)
    assert still._repr_mimebundle_()["text/plain"].endswith(MISSING)
    with pytest.raises(ParameterError, match="pip install anywidget"):
        still.observe(print, names="query")


@needs_widget
def test_a_widget_keeps_its_picture_for_a_notebook_whose_kernel_is_gone(explored: Explored) -> None:
    widget = make("widget", explored)
    assert widget.get_state()["still"] == ""  # it is not drawn before it is shown
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert widget.get_state()["still"] == f"data:image/jpeg;base64,{data['image/jpeg']}"


@needs_widget
def test_the_selection_can_be_observed(explored: Explored) -> None:
    widget, seen = make("widget", explored), []
    widget.observe(
        lambda change: seen.append((change["name"], change["old"], change["new"])), ["layer", "query"]
    )
    widget.query = [(0, 1)]
    widget.layer = 2
    widget.head = 0
    assert seen == [("query", (2, 5), (0, 1)), ("layer", 3, 2)]


@needs_widget
def test_the_browser_reads_and_writes_the_selection_as_links_do(explored: Explored) -> None:
    widget = make("widget", explored)
    state = widget.get_state()
    assert (state["layer"], state["head"], state["query"]) == (3, 1, "2,5")
    widget.set_state({"layer": 5, "head": "max", "query": "1,2;1,3"})
    assert (widget.layer, widget.head, widget.query) == (5, "max", [(1, 2), (1, 3)])
    assert widget.facts["value"]["layers"] == 6
    assert not any(
        isinstance(value, bytes) for value in state.values()
    )  # layers travel when they are asked for


@needs_widget
def test_a_layer_travels_when_the_browser_asks_for_it(
    explored: Explored, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, sent = make("widget", explored), []
    monkeypatch.setattr(widget, "send", lambda content, buffers: sent.append((content, buffers)))
    for content in ({"layer": 4}, {"layer": "4"}, {}, None, "ask"):
        widget._answer(widget, content, [])
    assert sent == [({"layer": 4}, [packed_layer(explored.trace, 4)])]


def test_questions_begin_where_the_selection_is(explorer: Any, explored: Explored) -> None:
    photo = explored.photo
    expected = vv.run("mini", photo, "look", layer=3, head="1", query=(2, 5))
    assert explorer.run("look").values.tobytes() == expected.values.tobytes()  # type: ignore[union-attr]
    assert explorer.run("rollout").caption == vv.run("mini", photo, "rollout", query=(2, 5)).caption  # type: ignore[union-attr]
    explorer.layer, explorer.head, explorer.query = 1, "max", "class"
    expected = vv.run("mini", photo, "look", layer=1, head="max", query="class", direction="column")
    found = explorer.run("look", direction="column")
    assert (found.caption, found.values.tobytes()) == (expected.caption, expected.values.tobytes())  # type: ignore[union-attr]
    told = explorer.run("look", layer=2, query="0,1")
    assert dict(told.provenance.parameters)["layer"] == "2"
    assert explorer.run("positions").grid == (16, 16)
    with pytest.raises(ParameterError, match="There is nothing called 'astrology'"):
        explorer.run("astrology")


def test_an_explorer_of_a_trace_alone_has_no_model_to_ask(explored: Explored) -> None:
    bare = Explored(explored.trace, explored.photo, "shapes", "fit")
    with pytest.raises(ParameterError, match="need a loaded model"):
        bare.run(bare.opening, "look")


@needs_widget
def test_the_browser_is_answered_in_full_precision_or_in_one_sentence(explored: Explored) -> None:
    from tests.notebook.line import Line

    widget = make("widget", explored)
    line = Line(widget)
    said, (answer,) = line.ask({"ask": 1, "question": "look", "asked": {"norm": True}})
    expected = widget.run("look", norm=True)
    assert said == {"ask": 1}
    assert load(answer)["values"].tobytes() == expected.values.tobytes()
    head = json.loads(answer[8 : 8 + int.from_bytes(answer[:8], "little")])
    facts = json.loads(head["__metadata__"]["vit_viz"])["facts"]
    assert facts["prefix"] == dict(expected.prefix)
    assert facts["suffix_kinds"] == expected.suffix_kinds
    for asked, words in (
        ({"question": "astrology"}, "There is nothing called 'astrology'"),
        ({"question": "look", "asked": {"layer": 99}}, "Layer 99 does not exist"),
        ({"question": "look", "asked": {"colour": 1}}, "'look' takes no 'colour'"),
        ({"question": "look", "asked": {"mode": "crop"}}, "The options of a question are a JSON object"),
        ({"question": "look", "asked": [1]}, "The options of a question are a JSON object"),
        ({}, "There is nothing called 'None'"),
    ):
        said, buffers = line.ask({"ask": "b", **asked})
        assert (said["ask"], buffers) == ("b", [])
        assert said["error"].startswith(words)


@needs_widget
def test_the_widget_keeps_its_rules_to_itself(explored: Explored) -> None:
    from vit_viz.notebook.widget import ExplorerWidget

    script = str(ExplorerWidget._esm)
    assert "export default entry.widget(" in script
    assert ":root" not in script.split("export default")[1]
