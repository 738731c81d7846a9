"""A method is declared in one place: here stands one that the package does not have, and every surface has it all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pytest

from tests.ui.desk import COLS, OWNER, ROWS, arrived
from vit_viz.analyses.explain import explain
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Method, Words
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import link_fields
from vit_viz.results import PatchMap
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain import declared
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class ToyOptions(Options):
    stripes: Annotated[int, Option("number of stripes", "How many stripes there are.", low=1, high=9)] = 2
    along: Annotated[Literal["rows", "cols"], Option("direction of stripes", "Where they run.")] = "rows"


def stripes(given: MethodInput, options: ToyOptions) -> PatchMap:
    grid, watch = given.subject.layout.grid, given.watch(4)
    watch.advance(2)
    watch.advance(2)
    places = np.indices(grid)[0 if options.along == "rows" else 1]
    return PatchMap(
        (places % options.stripes).astype(np.float32),
        unit="stripes",
        value_range=(0.0, 8.0),
        signed=False,
        method="toy",
        class_blind=False,
        provenance=given.subject.provenance.with_parameters(method="toy", stripes=options.stripes),
        crop_box=given.subject.crop_box,
        caption=f"{options.stripes} stripes",
    )


TOY = Method(
    name="toy",
    options=ToyOptions,
    run=stripes,
    cost="many passes",
    words=Words(
        label="Stripes",
        shows="stripes that no model has seen.",
        hides="anything about the photo.",
        formula="i mod n",
        source="Toy & Test 2026",
        runs="four strokes",
    ),
)


@pytest.fixture(scope="module", autouse=True)
def _offered() -> Iterator[None]:
    with METHODS.including(TOY):
        yield
    assert "toy" not in METHODS


def test_a_method_of_one_declaration_has_a_card_with_its_words_and_its_controls() -> None:
    one = declared.methods()[-1]
    assert (one["name"], one["label"], one["slow"], one["blind"]) == ("toy", "Stripes", True, False)
    assert (one["runs"], one["shows"], one["hides"]) == ("four strokes", TOY.words.shows, TOY.words.hides)
    for words in (TOY.words.formula, "Toy &amp; Test 2026"):
        assert words in one["formula"]
    stripes, along = one["controls"]
    assert (stripes["link"], stripes["default"], stripes["low"], stripes["high"]) == ("toy.stripes", 2, 1, 9)
    assert (stripes["label"], stripes["sentence"]) == ("number of stripes", "How many stripes there are.")
    assert along["choices"] == ["rows", "cols"]


def test_its_options_stand_in_links(session: Session, image: str) -> None:
    view = arrived(image, "explain", "&method=toy&toy.stripes=3&toy.along=cols").view()
    assert (view.method, view.options_of("toy")) == ("toy", ToyOptions(3, "cols"))
    assert "toy.stripes=3" in view.to_address()
    owned = {field["name"]: field["link"] for field in link_fields() if field.get("of") == "toy"}
    assert owned == {
        "stripes": "toy.stripes",
        "along": "toy.along",
    }  # from which the page makes the body of its question
    view, problems = ViewState.from_address("?method=toy&toy.stripes=99")
    assert view.options == ()
    assert problems == (
        "The option “number of stripes” of “Stripes” is a whole number from 1 to 9, not '99'.",
    )


def test_it_says_how_far_it_is_and_then_has_its_map(session: Session, image: str) -> None:
    subject, shares = Subject("odd", image, "crop", OWNER), list[float]()
    request = request_for(session, subject, "toy", stripes=4)
    found: PatchMap = session.run(request, progress=shares.append)
    assert shares == [0.5, 1.0]
    assert found.caption.startswith("4 stripes, towards the ")
    assert found.to_words().startswith("Half of the map lies on ")


def test_the_library_knows_it_by_name(session: Session, image: str) -> None:
    picture = session.image(image, owner=OWNER)
    found = explain(session.model("odd"), picture, methods=["toy", "relevance"], mode="crop")
    assert list(found) == ["toy", "relevance"]
    assert found["toy"].values.shape == (ROWS, COLS)
    assert found["toy"].caption.startswith("2 stripes, towards the logit of class ")


def test_a_name_is_offered_once() -> None:
    with pytest.raises(ParameterError, match="'toy' already"), METHODS.including(TOY):
        pass
    assert METHODS["toy"] is TOY
