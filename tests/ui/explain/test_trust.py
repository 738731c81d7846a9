"""The test of all maps, and what is said of each in sentences: what was measured of it, and where it is no better than chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.ui.desk import OWNER, call_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.trust import Trust
from vit_viz.errors import ParameterError
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.ui.explain.trust import sentences, trust_of_all
from vit_viz.views.state import ViewState

QUICK, BLIND = METHODS["relevance"], METHODS["rollout"]
SLOW = METHODS["occlusion"]
NOT_MEASURED = "Whether it changes with the class or with a mirror is measured for the quick methods only."


def trust(
    outside: tuple[bool, bool] = (True, True), beaten: tuple[int, int] = (10, 10), **measured: float
) -> Any:
    """What was measured of a map, in the shape of `Trust`."""
    facts = {"class_sensitivity": None, "mirror": None} | measured
    return SimpleNamespace(faithfulness=SimpleNamespace(beats_random=outside, beaten=beaten), **facts)


def test_a_map_is_set_beside_random_orders_and_their_band() -> None:
    for outside, where in (
        ((False, True), "taking away"),
        ((True, False), "putting back"),
        ((False, False), "taking away and putting back"),
    ):
        said = f"Not outside the 95% band of random orders, {where}."
        assert sentences(QUICK, trust(outside))[1:] == [said]
    assert sentences(QUICK, trust()) == [
        "Better than each of 10 random orders, taking away and putting back."
    ]
    for taken, put in ((10, 9), (3, 10), (4, 4)):
        said = f"Better than {taken} of 10 random orders taking away, and than {put} putting back."
        assert sentences(QUICK, trust(beaten=(taken, put))) == [said]


def test_what_was_measured_is_said_and_nothing_else() -> None:
    assert (QUICK.is_slow, BLIND.is_slow, SLOW.is_slow) == (False, False, True)
    assert (QUICK.words.class_blind, BLIND.words.class_blind, SLOW.words.class_blind) == (False, True, False)
    changes, mirrored = "Changes with the class: 0.29 of 1.", "Mirrored photo, mirrored map: -0.83 of 1."
    both = trust(class_sensitivity=0.287, mirror=-0.834)
    assert sentences(QUICK, both)[1:] == [changes, mirrored]
    assert sentences(QUICK, trust(class_sensitivity=0.287))[1:] == [changes]
    assert sentences(QUICK, trust(mirror=-0.834))[1:] == [mirrored]
    assert sentences(BLIND, both)[1:] == ["The same for every class.", mirrored]
    assert sentences(SLOW, trust())[1:] == [NOT_MEASURED]


# --- all of them


def view_of(image: str, target: str = "") -> ViewState:
    return ViewState(model="odd", image=image, mode="crop", target=target)


def test_a_test_of_maps_sorts_them_and_has_their_curves(session: Session, image: str) -> None:
    asked, said = call_of(session, view_of(image), methods=["relevance", "attention"])
    answer = trust_of_all(asked)
    known = answer["cards"]
    assert list(known) == [name for name in METHODS if name in ("relevance", "attention")]
    assert sorted(answer["order"]) == ["attention", "relevance"]
    shares = [value for name, value in said if name == "share"]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(0.7 + 0.3 / 2)
    previews = [value for name, value in said if name == "preview"]
    first, second = (METHODS[name].words.label for name in known)
    assert [one["words"] for one in previews] == ["Random orders of patches …", f"{first} …", f"{second} …"]
    assert [list(one["cards"]) for one in previews] == [[], [], list(known)[:1]]
    assert previews[-1]["cards"][next(iter(known))] == next(iter(known.values()))
    assert "The same for every class." in known["attention"]["sentences"]
    assert any(one.startswith("Mirrored photo, mirrored map: ") for one in known["relevance"]["sentences"])
    assert any(one.startswith("Changes with the class: ") for one in known["relevance"]["sentences"])
    ranking = session.top_classes_of(asked.subject)
    assert ranking is not None
    for method, one in known.items():
        place = one["place"]
        assert 0 <= place["low"] <= place["mean"] <= place["high"]
        assert f"{place['area']:.4g}" in one["title"]
        assert "The lower, the better." in one["title"]
        assert one["better"] == (" x faster than at random" in one["falls"])
        request = Request.of(
            "odd",
            image,
            "trust",
            mode="crop",
            owner=OWNER,
            method=method,
            target=ranking.indices[0],
            options=(),
        )
        measured = session.run(request)
        assert isinstance(measured, Trust)
        for name, curve in (
            ("deletion", measured.faithfulness.deletion),
            ("insertion", measured.faithfulness.insertion),
        ):
            drawn = one["curves"][name]
            assert drawn["x"] == pytest.approx(curve.x.tolist(), rel=1e-4)
            assert drawn["y"] == pytest.approx(curve.y.tolist(), rel=1e-4)
            low, high = drawn["ends"]
            assert low <= min(*drawn["y"], *drawn["low"])
            assert high >= max(*drawn["y"], *drawn["high"]) * 0.9999
            assert drawn["labels"][0] == "0"
            assert len(drawn["texts"]) == len(drawn["x"]) == len(drawn["low"]) == len(drawn["high"])
    ranked = sorted(known, key=lambda n: known[n]["place"]["area"] / known[n]["place"]["mean"])
    assert answer["order"] == ranked


def test_a_map_that_cannot_be_tested_says_why_and_the_others_go_on(
    session: Session, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = session.run

    def refusing(request: Request, **options: Any) -> Any:
        if request.question == "trust" and dict(request.parameters)["method"] == "relevance":
            raise ParameterError("Not this one.")
        return run(request, **options)

    monkeypatch.setattr(session, "run", refusing)
    answer = trust_of_all(call_of(session, view_of(image, "2"), methods=["relevance", "attention"])[0])
    assert answer["cards"]["relevance"] == {"error": "Not this one.", "options": "()"}
    assert "falls" in answer["cards"]["attention"]
    assert answer["order"] == ["attention"]


def test_a_test_names_its_methods(session: Session, image: str) -> None:
    for methods in (None, "relevance", {"relevance": 1}):
        with pytest.raises(ParameterError, match="names their methods"):
            trust_of_all(call_of(session, view_of(image), methods=methods)[0])
