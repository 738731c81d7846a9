"""What the Heads tab is told beside the answers to its questions: what a causal map costs, which are there, and what is edited."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args

import pytest

from vit_viz.analyses.head_statistics import Measure
from vit_viz.errors import ParameterError
from vit_viz.session.questions import request_for
from vit_viz.session.session import Session
from vit_viz.ui.heads.routes import _causal, _surgery
from vit_viz.ui.opened import PageCall
from vit_viz.views.choices import arrived
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HEAD_MEASURES, HeadMeasure

PHOTO = "image=shapes"


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


Call = Callable[..., PageCall]


@pytest.fixture(scope="module")
def call(session: Session) -> Call:
    def asked(link: str, **body: Any) -> PageCall:
        view, problems = arrived(session, link, "ada")
        return PageCall(session, "ada", view, problems, {"view": link} | body, lambda: False)

    return asked


def test_every_measure_has_words_of_its_own() -> None:
    assert set(HEAD_MEASURES) == {*get_args(HeadMeasure)} == {*get_args(Measure), "estimate", "effect"}
    assert len({said.label for said in HEAD_MEASURES.values()}) == len(HEAD_MEASURES)
    for said in HEAD_MEASURES.values():
        assert said.sentence.endswith(".")
        assert len(said.sentence) < 140
    groups = [said.group for said in HEAD_MEASURES.values()]
    assert len(set(groups)) == 1 + sum(a != b for a, b in pairwise(groups))


def test_a_causal_map_has_its_cost_and_is_at_hand_once_it_was_computed(session: Session, call: Call) -> None:
    asked = call(f"{PHOTO}&target=5")
    told = _causal(asked)
    assert told["cost"].startswith("switches off 36 heads, one after the other, at about half a pass each")
    assert told["kept"] == []
    session.run(request_for(session, asked.subject, "ablation", target="5", how="mean"))
    assert _causal(asked)["kept"] == ["mean"]
    assert "about" in _causal(asked)["cost"]
    for other in (f"{PHOTO}&target=6", "image=twins&target=5", f"{PHOTO}&target=5&edits=off 1.3"):
        assert _causal(call(other))["kept"] == []


def test_what_is_edited_is_told_in_parts_and_in_one_order(call: Call) -> None:
    told = _surgery(call(f"{PHOTO}&edits=off 2.0 1.3;temperature 2%3D0.5;forbid class>1-2,3@0"))
    assert told["edits"] == "off 1.3 2.0;temperature 2=0.5;forbid class>1-2,3@0"
    assert told["off"] == [[1, 3, "off"], [2, 0, "off"]]
    assert (told["temperatures"], told["forbidden"]) == ([[2, 0.5]], ["class>1-2,3@0"])
    assert told["trace"] == _surgery(call(PHOTO))["trace"]  # the model without edits
    assert told["tokens"][0] == {"value": "class", "label": "class token"}
    assert [one["value"] for one in told["tokens"]][-3:] == ["patches", "registers", "everything"]


def test_edits_are_told_before_they_are_made(call: Call) -> None:
    told = _surgery(call(f"{PHOTO}&edits=off 1.3", edits="mean 2.0;off 1.3"))
    assert (told["edits"], told["off"]) == ("off 1.3;mean 2.0", [[1, 3, "off"], [2, 0, "mean"]])
    assert _surgery(call(f"{PHOTO}&edits=off 1.3", edits=""))["off"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("off 1.9", "Head 9 does not exist: this model has heads 0-5."),
        ("forbid class>99,9", "Patch (99, 9) does not exist: rows are 0-15 and columns 0-15."),
        ("forbid everything>everything", "Every token has to see at least one, but class would see none in layer 0"),
        ("off <b>", "A head is layer.head, such as 3.1, not '<b>'."),
        (None, "Edits are words such as"),
    ],
)  # fmt: skip
def test_edits_that_the_model_cannot_have_are_refused(call: Call, words: object, said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        _surgery(call(f"{PHOTO}&edits=off 1.3", edits=words))
    assert str(refused.value).startswith(said)


def test_the_matrix_is_in_the_link_and_a_zoom_that_is_none_is_refused() -> None:
    view, problems = ViewState.from_address("?matrix_scale=linear&links=head&strongest=7&zoom=4.5,0.25,0.5")
    assert problems == ()
    assert (view.matrix.matrix_scale, view.matrix.matrix_links) == ("linear", "head")
    assert (view.matrix.matrix_count, view.matrix.matrix_zoom) == (7, "4.5,0.25,0.5")
    changed = view.with_options({"matrix_zoom": "", "matrix_count": 8})
    assert changed.to_address() == "matrix_scale=linear&links=head&strongest=8"
    for zoom in ("0,0,0", "2,0", "12345,0,0", "2,0,0,0", "1e3,0,0", "2,-0.1,0"):
        view, problems = ViewState.from_address(f"?zoom={zoom}")
        assert (view.matrix.matrix_zoom, len(problems)) == ("", 1), zoom
