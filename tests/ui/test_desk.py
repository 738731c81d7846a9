"""The cards and the stage of the Explain tab, on a model and a picture of which no two sizes are equal."""

from __future__ import annotations

import pytest

from tests.ui.desk import OWNER, Desk, arrived, cards_of, make_map, stage_of
from vit_viz.analyses.methods import METHODS
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain.answers import cost_words


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
        assert card["slow"] == method.is_slow
        assert (card["kept"], card["aimed"]) == (False, method.takes_target)
        assert card["label"] == method.words.label
        assert card["blind"] == method.words.class_blind
        assert card["options"] == "()"
        assert (card["shows"], card["hides"]) == (method.words.shows, method.words.hides)
        if method.name in METHODS.quick:
            caption = make_map(session, desk.view(), method.name).caption
            assert (
                caption.endswith(f"towards the logit of class {best} (animal {best})")
                or method.words.class_blind
            )
            assert card["words"] == ""
        else:
            subject = Subject("odd", image, "crop", OWNER)
            seconds = session.pass_seconds(subject)
            assert seconds is not None
            rows, cols = session.trace_of(subject).layout.grid
            assert card["words"] == cost_words(method, rows * cols, seconds)
            assert (card["words"] == method.words.runs) == (method.passes is None)


def test_a_slow_method_gives_way_until_it_was_made(session: Session, image: str, desk: Desk) -> None:
    desk.follow(method="occlusion")
    assert "Relevance is shown instead" in stage_of(session, desk)["note"]
    assert stage_of(session, desk)["method"] == "Relevance"
    assert stage_of(session, desk)["shows"] == "relevance"
    make_map(session, desk.view(), "occlusion")
    assert stage_of(session, desk)["method"] == "Occlusion"  # the same view, but now it is there
    assert stage_of(session, desk)["shows"] == "occlusion"
    assert "instead" not in stage_of(session, desk)["note"]
    assert cards_of(session, desk)["occlusion"]["kept"]
    desk.follow(ruler="share")
    assert cards_of(session, desk)["occlusion"]["kept"]
    assert "instead" not in stage_of(session, desk)["note"]
