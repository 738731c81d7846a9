"""What the Explain tab is told of its methods, on a model and a picture of which no two sizes are equal."""

from __future__ import annotations

import pytest

from tests.ui.desk import OWNER, arrived, make_map
from vit_viz.analyses.methods import METHODS
from vit_viz.explorer.value import link_fields
from vit_viz.session.session import Session
from vit_viz.ui.explain import declared
from vit_viz.ui.help import listing


def test_every_method_has_a_card_and_every_quick_one_a_map_for_the_first_class(
    session: Session, image: str
) -> None:
    view = arrived(image, "explain", "&layer=1&head=3&q=2,5").view()
    logits = session.trace("odd", image, mode="crop", owner=OWNER).logits
    assert logits is not None
    best = int(logits.argmax())
    cards = {card["name"]: card for card in declared.methods()}
    assert list(cards) == [method.name for method in METHODS.cards]
    for method in METHODS.cards:
        card, words = cards[method.name], method.words
        assert [
            card[name] for name in ("slow", "aimed", "pick", "label", "blind", "shows", "hides", "runs")
        ] == [
            *(method.is_slow, method.takes_target, method.follows_pin),
            *(words.label, words.class_blind, words.shows, words.hides, words.runs),
        ]
        if method.name in METHODS.quick:
            caption = make_map(session, view, method.name).caption
            assert caption.endswith(f"towards the logit of class {best} (animal {best})") or words.class_blind


@pytest.mark.parametrize("method", [method.name for method in METHODS.cards])
def test_every_control_has_a_name_in_links_that_the_page_knows_and_no_two_have_one_name(method: str) -> None:
    known = {field["link"]: field for field in link_fields()}
    card = next(card for card in declared.methods() if card["name"] == method)
    controls = [*card["controls"], *declared.drawing()]
    for control in controls:
        assert known[control["link"]]["default"] == control["default"]
        assert f'"{control["name"]}"' in listing().decode()
        assert control["sentence"].endswith(".")
    names = [*(control["name"] for control in controls), "query", "suffix"]
    assert len(set(names)) == len(names)
    assert {control["name"] for control in controls if control.get("is_layer")} == (
        {"first", "last"} if method == "rollout" else set()
    )
