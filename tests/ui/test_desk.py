"""The cards and the stage of the Explain tab, on a model and a picture of which no two sizes are equal."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.ui.desk import HEIGHT, OWNER, WIDTH, Desk, arrived, call_of, cards_of, stage_of
from vit_viz.analyses.methods import METHODS
from vit_viz.figures.lettering import number
from vit_viz.results import PatchMap
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain.answers import cost_words, slow_map


@pytest.fixture
def desk(image: str) -> Desk:
    return arrived(image, "explain", "&layer=1&head=3&q=2,5")


def test_every_quick_method_has_a_map_for_the_first_class(session: Session, image: str, desk: Desk) -> None:
    logits = session.trace("odd", image, mode="crop", owner=OWNER).logits
    assert logits is not None
    best = int(logits.argmax())
    cards = cards_of(session, desk)
    assert list(cards) == [method.name for method in METHODS.cards]
    for method in METHODS.cards:
        card = cards[method.name]
        assert ("map" in card) == (method.name in METHODS.quick)
        assert card["slow"] == method.is_slow
        assert card["ratio"] == pytest.approx(WIDTH / HEIGHT)
        assert card["label"] == method.words.label
        assert card["blind"] == method.words.class_blind
        assert card["options"] == "()"
        source = urlsplit(card["src"])
        assert parse_qs(source.query)["kind"] == ["card"]
        assert parse_qs(source.query)["bare"] == ["1"]
        assert (card["shows"], card["hides"]) == (method.words.shows, method.words.hides)
        assert parse_qs(source.query).get("method", ["relevance"]) == [method.name]
        if method.name in METHODS.quick:
            assert f"for animal {best}" in card["map"]["caption"] or method.words.class_blind
            assert card["words"] == ""
        else:
            subject = Subject("odd", image, "crop", OWNER)
            seconds = session.pass_seconds(subject)
            assert seconds is not None
            rows, cols = session.trace_of(subject).layout.grid
            assert card["words"] == cost_words(method, rows * cols, seconds)
            assert (card["words"] == method.words.runs) == (method.passes is None)
    found = session.run(Request.of("odd", image, "relevance", mode="crop", owner=OWNER, target=best))
    assert isinstance(found, PatchMap)
    ends = f"from {number(float(found.values.min()))} to {number(float(found.values.max()))}"
    assert cards["relevance"]["map"]["caption"].endswith(f"Scale: {found.unit} {ends}.")


def test_a_slow_method_gives_way_until_it_was_made(session: Session, image: str, desk: Desk) -> None:
    desk.follow(method="occlusion")
    assert "Relevance is shown instead" in stage_of(session, desk)["note"]
    assert stage_of(session, desk)["method"] == "Relevance"
    assert stage_of(session, desk)["shows"] == "relevance"
    slow_map(call_of(session, desk.view(), method="occlusion")[0])
    assert stage_of(session, desk)["method"] == "Occlusion"  # the same view, but now it is there
    assert stage_of(session, desk)["shows"] == "occlusion"
    assert "instead" not in stage_of(session, desk)["note"]
    assert "map" in cards_of(session, desk)["occlusion"]
    desk.follow(ruler="share")
    assert "map" in cards_of(session, desk)["occlusion"]
    assert "instead" not in stage_of(session, desk)["note"]
    quick = [
        card["map"]["caption"]
        .split(" to ")[-1]
        .split(". Its largest value")[0]
        .rstrip(".")  # a peak, which is clipped
        for card in cards_of(session, desk).values()
        if not card["slow"]
    ]
    assert len(set(quick)) == 1
