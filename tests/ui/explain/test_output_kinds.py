"""The page of a model whose answers are no shares of a softmax: numbers, words and axes are of what an output is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.ui.desk import odd_picture, odd_session
from tests.ui.views import view_with
from vit_viz.analyses.methods import METHODS
from vit_viz.outputs import Output
from vit_viz.session.session import Session
from vit_viz.ui import opened
from vit_viz.ui.explain.questions import Questions, target_value
from vit_viz.ui.explain.trust import followed, trust_value
from vit_viz.ui.header.routes import _compared
from vit_viz.ui.opened import PageCall
from vit_viz.ui.payload import facts_value
from vit_viz.ui.walkthrough import classes
from vit_viz.ui.walkthrough.scene import StepInput

KINDS: list[tuple[int, Output | None]] = [(1, None), (1, "sigmoid"), (2, "value"), (3, "sigmoid"), (3, None)]


def visit(outputs: int, told: Output | None) -> Questions:
    """A visit of a photo; the model's outputs have no names."""
    session = odd_session(num_classes=outputs)
    model = replace(session.model(), labels=None, output=told)
    own = Session(model=model.name, device="cpu")
    own.add_model(model)
    image = own.add_upload(odd_picture())
    page: Any = SimpleNamespace(session=own)
    return Questions.of(page, view_with(model="odd", image=image), "")


def expected(questions: Questions, told: Output | None) -> tuple[np.ndarray[Any, Any], str, str]:
    """What is shown of the outputs, the largest first; under which name; what an output is called."""
    logits = questions.trace.logits
    assert logits is not None
    if told == "value" or (told is None and len(logits) == 1):
        return logits.sort(descending=True).values.numpy(), "value", "output"
    shares = logits.sigmoid() if told == "sigmoid" else logits.softmax(-1)
    return shares.sort(descending=True).values.numpy(), "probability", "class"


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_every_list_of_answers_is_of_what_an_output_is(outputs: int, told: Output | None) -> None:
    questions = visit(outputs, told)
    session, view = questions.page.session, questions.targeted.view
    numbers, amount, noun = expected(questions, told)
    header = facts_value(session, view, "")["top"]
    chips = target_value(session, questions.subject, questions.targeted)["classes"]
    edited = _compared(session, replace(questions.subject, edits=questions.subject.edits))["before"]
    for lines in (header, chips, edited):
        np.testing.assert_allclose([one[amount] for one in lines], numbers, rtol=1e-5)
        assert all(one["name"].startswith(noun) for one in lines)
    assert all(one.get("alone", False) == (told == "sigmoid") for one in (*header, *edited))
    for lines in (header, chips, edited):
        assert not any({"value": "probability", "probability": "value"}[amount] in one for one in lines)


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_playground_says_what_an_output_is(outputs: int, told: Output | None) -> None:
    questions = visit(outputs, told)
    _, amount, noun = expected(questions, told)
    subject = questions.subject
    whole, some = (
        subject.request("without_patches", target=None, gone=gone) for gone in ("", "0,3;0,4;0,5;1,3")
    )
    for words in (questions.page.session.run(one).to_words() for one in (whole, some)):
        assert f" {noun} " in words
        assert ("%" in words.partition(noun)[2]) == (amount == "probability")
    assert ("comes first" in words) == (amount == "probability")


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_curves_of_trust_have_the_axis_of_what_they_follow(outputs: int, told: Output | None) -> None:
    questions = visit(outputs, told)
    _, amount, noun = expected(questions, told)
    is_value, method = amount == "value", METHODS["rollout"]
    kind = "value" if is_value else told or "probability"
    assert followed(questions)["axis"].startswith(f"{kind} of {noun} ")
    curve = trust_value(questions, method, questions.page.session.run(questions.trust_request(method)))[
        "curves"
    ]["deletion"]
    low, high = curve["ends"]
    assert (low == 0.0, "%" in curve["labels"][1]) == (not is_value, not is_value)
    reach = max(*curve["y"], *curve["high"]) - min(*curve["y"], *curve["low"])
    assert high - low == pytest.approx(reach, rel=1e-3) if is_value else low == 0.0


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_lens_of_the_tokens_tab_names_what_it_shows(outputs: int, told: Output | None) -> None:
    questions = visit(outputs, told)
    session, subject = questions.page.session, questions.subject
    _, amount, noun = expected(questions, told)
    lens = session.run(subject.request("logit_lens"))
    called = opened._target(PageCall(session, "", questions.targeted.view, (), {"view": ""}, lambda: False))
    assert called["name"].startswith(noun)
    assert lens.maps.unit.startswith(amount)
    assert (lens.top is not None) == (amount == "probability")


@pytest.mark.parametrize(("outputs", "told"), KINDS)
def test_the_last_step_of_the_walkthrough_ends_in_what_the_model_returns(
    outputs: int, told: Output | None
) -> None:
    questions = visit(outputs, told)
    _, amount, _ = expected(questions, told)
    scene = StepInput.of(questions.page.session, questions.targeted.view, "")
    screen = classes.screen(scene)
    kind = "value" if amount == "value" else told or "softmax"
    assert screen.shapes[2][2] == ("values" if kind == "value" else "classes")
    assert ("softmax" in screen.formula, "sigmoid" in screen.formula) == (
        kind == "softmax",
        kind == "sigmoid",
    )
    assert ("sum to 1" in screen.letters) == (kind == "softmax")
    text = " ".join([*screen.words, screen.figures, screen.reveals, screen.answer, screen.letters])
    assert ("probab" in text) == (kind != "value")
    assert ("embedding" in text, "wins" in text) == (False, kind == "softmax")


def test_values_far_from_0_are_not_flat_on_the_page() -> None:
    questions = visit(1, None)
    model = questions.page.session.model().model
    with torch.no_grad():
        model.head.bias.add_(1000)
    own = Session(model="odd", device="cpu")
    own.add_model(replace(questions.page.session.model(), model=model))
    page: Any = SimpleNamespace(session=own)
    there = Questions.of(page, view_with(model="odd", image=own.add_upload(odd_picture())), "")
    method = METHODS["rollout"]
    curve = trust_value(there, method, own.run(there.trust_request(method)))["curves"]["deletion"]
    assert curve["ends"][0] > 900
    assert max(curve["y"]) - min(curve["y"]) > 0.2 * (curve["ends"][1] - curve["ends"][0])
