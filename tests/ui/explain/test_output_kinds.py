"""The page of a model whose answers are no shares of a softmax: numbers, words and axes are of what an output is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ui.desk import odd_picture, odd_session
from tests.ui.views import view_with
from vit_viz.outputs import Output
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import opened, target
from vit_viz.ui.header.routes import _compared
from vit_viz.ui.opened import PageCall
from vit_viz.ui.payload import facts_value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

KINDS: list[tuple[int, Output | None]] = [(1, None), (1, "sigmoid"), (2, "value"), (3, "sigmoid"), (3, None)]


def visit(outputs: int, told: Output | None) -> tuple[Session, ViewState]:
    """A visit of a photo; the model's outputs have no names."""
    session = odd_session(num_classes=outputs)
    model = replace(session.model(), labels=None, output=told)
    own = Session(model=model.name, device="cpu")
    own.add_model(model)
    return own, view_with(model="odd", image=own.add_upload(odd_picture()))


def expected(
    session: Session, subject: Subject, told: Output | None
) -> tuple[np.ndarray[Any, Any], str, str]:
    """What is shown of the outputs, the largest first; under which name; what an output is called."""
    logits = session.trace_of(subject).logits
    assert logits is not None
    if told == "value" or (told is None and len(logits) == 1):
        return logits.sort(descending=True).values.numpy(), "value", "output"
    shares = logits.sigmoid() if told == "sigmoid" else logits.softmax(-1)
    return shares.sort(descending=True).values.numpy(), "probability", "class"


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_every_list_of_answers_is_of_what_an_output_is(outputs: int, told: Output | None) -> None:
    session, view = visit(outputs, told)
    subject = subject_of(session, view, "")
    numbers, amount, noun = expected(session, subject, told)
    header = facts_value(session, view, "")["top"]
    chips = target.value(session, subject, view)["classes"]
    edited = _compared(session, replace(subject, edits=subject.edits))["before"]
    for lines in (header, chips, edited):
        np.testing.assert_allclose([one[amount] for one in lines], numbers, rtol=1e-5)
        assert all(one["name"].startswith(noun) for one in lines)
    assert all(one.get("alone", False) == (told == "sigmoid") for one in (*header, *edited))
    for lines in (header, chips, edited):
        assert not any({"value": "probability", "probability": "value"}[amount] in one for one in lines)


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_playground_says_what_an_output_is(outputs: int, told: Output | None) -> None:
    session, view = visit(outputs, told)
    subject = subject_of(session, view, "")
    _, amount, noun = expected(session, subject, told)
    whole, some = (
        subject.request("without_patches", target=None, gone=gone) for gone in ("", "0,3;0,4;0,5;1,3")
    )
    for words in (session.run(one).to_words() for one in (whole, some)):
        assert f" {noun} " in words
        assert ("%" in words.partition(noun)[2]) == (amount == "probability")
    assert ("comes first" in words) == (amount == "probability")


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_curves_of_trust_say_what_they_follow(outputs: int, told: Output | None) -> None:
    session, view = visit(outputs, told)
    subject = subject_of(session, view, "")
    _, amount, _ = expected(session, subject, told)
    trust = session.run(subject.request("trust", method="rollout", target=0))
    followed = {"value": "output ", "sigmoid": "sigmoid of class "}.get(
        told or amount, "probability of class "
    )
    assert trust.faithfulness.deletion.y_label.startswith(followed)
    assert np.isfinite(trust.faithfulness.band.value_range).all() == (amount == "probability")


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_lens_of_the_tokens_tab_names_what_it_shows(outputs: int, told: Output | None) -> None:
    session, view = visit(outputs, told)
    subject = subject_of(session, view, "")
    _, amount, noun = expected(session, subject, told)
    lens = session.run(subject.request("logit_lens"))
    called = opened._target(PageCall(session, "", view, (), {"view": ""}, lambda: False))
    assert called["name"].startswith(noun)
    assert lens.maps.unit.startswith(amount)
    assert (lens.top is not None) == (amount == "probability")
