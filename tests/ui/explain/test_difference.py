"""Two classes on the Explain tab, what only a method says, and which methods agree: as sentences, pictures and files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.session.test_session import picture
from tests.ui.desk import call_of, odd_session
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.share_maps import class_difference
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.ui.explain import agree, lead
from vit_viz.ui.explain.questions import Questions, with_target
from vit_viz.views.state import ViewState


def asked(**options: Any) -> Questions:
    """A photo that is no square, before a model with a class token and three registers."""
    session = odd_session(reg_tokens=3)
    image = session.add_upload(picture(0))
    subject = Subject("odd", image)
    page: Any = SimpleNamespace(session=session)
    view = ViewState(model="odd", image=image).with_options(options)
    return Questions(page, subject, with_target(session, subject, view))


@pytest.mark.parametrize(("pair", "method"), [("1-4", "relevance"), ("5-0", "legrad")])
def test_two_classes_subtracted_say_where_each_has_the_most(pair: str, method: str) -> None:
    questions = asked(target=pair, sides="difference", method=method)
    session = questions.page.session
    found = session.run(
        request_for(session, questions.subject, "class_difference", method=method, target=pair)
    )
    values = found.values
    assert values.sum() == pytest.approx(0, abs=1e-6)
    first, other = pair.split("-")
    most, least = np.argwhere(values == values.max())[0], np.argwhere(values == values.min())[0]
    assert found.to_words() == (
        f"Most for animal {first} at row {most[0]}, column {most[1]}; most for animal {other} at row {least[0]}, "
        f"column {least[1]}. {np.abs(values).sum() / 2:.1%} of the map lies elsewhere."
    )
    alike = class_difference(found, found, names=("a", "b"))
    assert alike.to_words().startswith("The two maps are alike: ")


def shown_of(questions: Questions) -> lead.Shown:
    view = questions.targeted.view
    return lead.Shown(questions, view, METHODS[view.method])


def known(questions: Questions) -> dict[str, Any]:
    found = lead.value(shown_of(questions))
    assert found is not None
    return found


def scores(deletion: list[float], reverse: list[float], chance: list[float]) -> Any:
    """What was measured, in the shape of `Faithfulness`: curves at 0, 50 and 100%, one of them for all random orders."""
    shares = np.array([0, 0.5, 1])
    curves = [SimpleNamespace(x=shares, y=np.array(y)) for y in (deletion, reverse)]
    band = SimpleNamespace(
        fractions=shares, deletion=np.array([chance]), interval=lambda _test: (1.5, -0.25, 2.0)
    )
    return SimpleNamespace(
        deletion=curves[0], reverse=curves[1], band=band, deletion_auc=-0.5, reverse_auc=2.25
    )


MEAN = (
    "In the mean over the curve the lead is −0.50, with dog's patches first 2.25; in random orders 1.50, 95% of them from −0.25 to "
    "2.00."
)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (
            scores([3, -1, 0.2], [3, 4, 0.2], [3, 1, 0.2]),
            [
                "On the whole photo cat leads dog by 3.00 logits; with every patch painted over it is 0.20.",
                "With cat's patches first, the lead is lost when 50% are gone; in random orders, in the mean, it is never lost.",
                MEAN,
                "With dog's patches first it grows to 4.00, when 50% are gone.",
            ],
        ),
        (
            scores([-2, -3, -1], [-2, -2.5, -3], [-2, -2, -1]),
            [
                "On the whole photo cat does not lead dog: the lead is −2.00 logits; with every patch painted over it is −1.00.",
                MEAN,
                "With dog's patches first it never grows.",
            ],
        ),
    ],
)
def test_what_becomes_of_a_lead_is_said_with_its_numbers(measured: Any, words: list[str]) -> None:
    assert lead.sentences("cat", "dog", measured) == words


def test_the_difference_on_the_stage_has_a_test_of_its_own() -> None:
    pair = "5-0"
    questions = asked(target=pair, sides="difference", method="legrad")
    shown = shown_of(questions)
    before = known(questions)
    assert "curves" not in before
    call, heard = call_of(questions.page.session, questions.targeted.view, "")
    last = lead.measured(shown, call)
    shares = [value for name, value in heard if name == "share"]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    doing = [value["words"] for name, value in heard if name == "preview"]
    assert doing == ["Random orders of patches …", "The order of this map …"]
    after = known(questions)
    assert before["key"] == after["key"]
    assert after["curves"] == last["curves"]
    logits, (one, other) = questions.trace.logits, map(int, pair.split("-"))
    assert logits is not None
    of_the_photo = float(logits.flatten()[one] - logits.flatten()[other])
    for name, at in (("deletion", 0), ("reverse", 0), ("insertion", -1)):
        assert after["curves"][name]["y"][at] == pytest.approx(of_the_photo, abs=1e-3)
    assert after["curves"]["deletion"]["y"][-1] == after["curves"]["reverse"]["y"][-1]
    assert after["axis"] == f"lead of animal {one} over animal {other}, in logits"
    assert after["names"] == [f"animal {one}", f"animal {other}"]


def test_before_the_lead_is_tested_its_time_is_said_and_less_where_the_random_orders_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions = asked(target="1-4", sides="difference", method="relevance")
    session = questions.page.session
    monkeypatch.setattr(session, "pass_seconds", {questions.subject: 0.1}.__getitem__)
    whole = known(questions)["cost"]
    assert whole.endswith("; some hundred passes: at most about 43\N{NO-BREAK SPACE}s.")
    session.run(questions.band_request())
    rest = known(questions)["cost"]
    assert rest.endswith("; the random orders are known: at most about 5\N{NO-BREAK SPACE}s.")
    assert rest.startswith("Takes them away, beside random orders of patches; ")
    monkeypatch.setattr(session, "pass_seconds", lambda _subject: None)
    assert known(questions)["cost"].endswith("; the random orders are known.")


def test_what_is_no_difference_has_no_such_test_and_what_stops_says_so() -> None:
    for options in (
        {"target": "1-4"},
        {"target": "1", "sides": "difference"},
        {"target": "1-4", "sides": "one"},
    ):
        assert lead.value(shown_of(asked(**options))) is None
    single = asked(target="3", sides="difference")
    with pytest.raises(ParameterError, match="two classes whose maps are subtracted"):
        lead.measured(shown_of(single), call_of(single.page.session, single.targeted.view, "")[0])
    pair = asked(target="2-3", sides="difference")
    with pytest.raises(Cancelled):
        lead.measured(
            shown_of(pair),
            call_of(pair.page.session, pair.targeted.view, "", cancelled=lambda: True)[0],
        )
    assert "curves" not in known(pair)


def test_the_table_of_agreement_is_that_of_the_question_for_the_quick_maps() -> None:
    questions = asked()
    got = agree.value(questions)
    assert got is not None
    matrix = questions.page.session.run(
        questions.subject.request("agreement", methods="quick", target=int(questions.targeted.view.target))
    )
    assert got["names"] == [METHODS[name].words.label for name in METHODS.quick]
    assert got["names"] == list(matrix.names)
    np.testing.assert_allclose(got["values"], matrix.values, atol=1e-3)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            [[1, 0.95, 0.92, 0.1], [0.95, 1, 0.94, 0.2], [0.92, 0.94, 1, 0.3], [0.1, 0.2, 0.3, 1]],
            "A, B and C look alike (0.92 or more); D agrees least with the others (0.20 in the mean).",
        ),
        ([[1, 0.93], [0.93, 1]], "A and B look alike (0.93)."),
        (
            [[1, 0.4, -0.5], [0.4, 1, 0.3], [-0.5, 0.3, 1]],
            "No two maps look alike: the closest are A and B (0.40); C agrees least with the others (-0.10 in the mean).",
        ),
    ],
)
def test_which_maps_look_alike_is_said_with_numbers(values: list[list[float]], words: str) -> None:
    assert agree.sentence(list("ABCD")[: len(values)], np.array(values, np.float32)) == words
