"""The sanity check: how the chosen map changes while the weights are re-initialised, as the page is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ui.desk import OWNER, call_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.progress import stop_if
from vit_viz.results import Curve
from vit_viz.service import QuestionCall, answered
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.ui.explain.trust import checked, sanity, trust_of_all
from vit_viz.ui.opened import PageCall
from vit_viz.views.state import ViewState

LINK = "model=odd&mode=crop&target=4&share=0.25"


def view_of(image: str, method: str = "relevance") -> ViewState:
    return ViewState.from_address(f"?{LINK}&image={image}&method={method}")[0]


def test_a_curve_is_at_hand_once_it_was_computed_for_this_map_and_class(session: Session, image: str) -> None:
    view = view_of(image)
    slow = view_of(image, "occlusion")
    expected = {"key": f"{slow.about}|4", "method": "occlusion", "label": "Occlusion"}
    assert checked(call_of(session, slow)[0]) == expected  # of a slow method there is none
    nothing = {"key": f"{view.about}|4", "method": "relevance", "label": "Relevance"}
    assert checked(call_of(session, view)[0]) == nothing
    asked, said = call_of(session, view)
    answer = sanity(asked)
    assert {name: answer[name] for name in nothing} == nothing
    shares = [value for name, value in said if name == "share"]
    assert (shares, shares[-1]) == (sorted(shares), 1.0)
    request = Request.of(
        "odd", image, "randomisation", mode="crop", owner=OWNER, method="relevance", target=4
    )
    curve = session.run(request)
    assert isinstance(curve, Curve)
    assert answer["correlations"] == pytest.approx(curve.y.tolist(), rel=1e-4)
    assert answer["correlations"][0] == 1
    assert len(answer["correlations"]) == 3 + 2  # the head, and the blocks
    assert answer["labels"] == [curve.x_label, curve.y_label]
    assert answer["title"] == "Relevance, weights re-initialised"
    assert re.fullmatch(r"odd · .+ · for animal 4", answer["caption"])
    assert answer["words"].startswith(
        f"With all weights re-initialised, the map's rank correlation with the original is {curve.y[-1]:.2f}: "
    )
    assert checked(call_of(session, view)[0])["correlations"] == answer["correlations"]
    for other in (view_of(image, "attention"), replace(view, target="3")):
        assert "correlations" not in checked(call_of(session, other)[0])


def test_what_is_saved_is_the_curve_that_is_shown(session: Session, image: str) -> None:
    name, body = sanity(call_of(session, view_of(image, "rollout"))[0])["figure"]
    call = QuestionCall.of(QUESTIONS[name], body)
    with answered(session, call, owner=OWNER) as given:
        wanted = Request.of(
            "odd", image, "randomisation", mode="crop", owner=OWNER, method="rollout", target=4
        )
        assert given.request == wanted


def test_a_method_that_takes_long_is_refused_before_anything_is_computed() -> None:
    session: Any = None  # it is not asked
    slow = [method for method in METHODS.cards if method.is_slow]
    assert slow
    for method in slow:
        with pytest.raises(ParameterError, match=f"{method.words.label} would have to be recomputed"):
            sanity(call_of(session, ViewState(method=method.name))[0])


@pytest.mark.parametrize(
    ("question", "answer", "body"),
    [
        ("randomisation", sanity, {}),
        ("random band", trust_of_all, {"methods": ["relevance", "rollout"]}),
        ("trust", trust_of_all, {"methods": ["relevance", "rollout"]}),
    ],
)
def test_what_takes_long_ends_when_its_page_waits_no_more(
    session: Session,
    image: str,
    monkeypatch: pytest.MonkeyPatch,
    question: str,
    answer: Callable[[PageCall], Any],
    body: dict[str, Any],
) -> None:
    run, begun = session.run, list[str]()

    def watched(request: Request, **watch: Any) -> Any:
        begun.append(request.question)
        if request.question == question:
            stop_if(watch["cancelled"])
        return run(request, **(watch | {"cancelled": None}))

    monkeypatch.setattr(session, "run", watched)
    with pytest.raises(Cancelled):
        answer(call_of(session, view_of(image), cancelled=lambda: True, **body)[0])
    assert begun[-1] == question


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        (0.49, "it depends on what the model learned"),
        (-0.49, "it depends on what the model learned"),
        (0.5, "much of it does not depend on what the model learned"),
        (-0.5, "much of it does not depend on what the model learned"),
    ],
)
def test_the_verdict_is_that_of_the_last_correlation(
    session: Session, image: str, monkeypatch: pytest.MonkeyPatch, last: float, verdict: str
) -> None:
    run, x = session.run, np.arange(2, dtype=np.float32)

    def answered(request: Request, **watch: Any) -> Any:
        answer = run(request, **watch)
        return (
            replace(answer, x=x, y=np.array([1, last], np.float32))
            if request.question == "randomisation"
            else answer
        )

    monkeypatch.setattr(session, "run", answered)
    assert sanity(call_of(session, view_of(image))[0])["words"].endswith(f" is {last:.2f}: {verdict}.")
