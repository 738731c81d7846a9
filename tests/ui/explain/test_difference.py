"""Two classes on the Explain tab, what only a method says, and which methods agree: as sentences, pictures and files."""

from __future__ import annotations

import numpy as np
import pytest

from tests.session.test_session import picture
from tests.ui.desk import odd_session
from vit_viz.analyses.share_maps import class_difference
from vit_viz.session.questions import ask
from vit_viz.session.request import Subject
from vit_viz.session.session import Session


def visit() -> tuple[Session, Subject]:
    """A photo that is no square, before a model with a class token and three registers."""
    session = odd_session(reg_tokens=3)
    return session, Subject("odd", session.add_upload(picture(0)))


@pytest.mark.parametrize(("pair", "method"), [("1-4", "relevance"), ("5-0", "legrad")])
def test_two_classes_subtracted_say_where_each_has_the_most(pair: str, method: str) -> None:
    session, subject = visit()
    found = ask(session, subject, "class_difference", method=method, target=pair)
    values = found.values
    assert values.sum() == pytest.approx(0, abs=1e-6)
    first, other = pair.split("-")
    most, least = np.argwhere(values == values.max())[0], np.argwhere(values == values.min())[0]
    assert found.to_words() == (
        f"Most for animal {first} on patch ({most[0]}, {most[1]}); most for animal {other} on patch ({least[0]}, "
        f"{least[1]}). {np.abs(values).sum() / 2:.1%} of the map lies elsewhere."
    )
    alike = class_difference(found, found, names=("a", "b"))
    assert alike.to_words().startswith("The two maps are alike: ")


def test_the_difference_of_two_classes_has_a_test_of_its_own_that_says_how_far_it_is() -> None:
    session, subject = visit()
    request = subject.request("trust", method="legrad", target=(5, 0), sides="difference")
    shares, previews = list[float](), list[dict[str, object]]()
    trust = session.run(request, progress=shares.append, preview=previews.append)
    assert [preview["names"] for preview in previews] == [("animal 5", "animal 0")]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert {0.45, 0.95} <= {
        *np.round(shares, 6)
    }  # where the random orders are made, as patches go and as they come
    logits = session.trace_of(subject).logits
    assert logits is not None
    of_the_photo = float(logits.flatten()[5] - logits.flatten()[0])
    found = trust.faithfulness
    for curve, at in ((found.deletion, 0), (found.reverse, 0), (found.insertion, -1)):
        assert curve.y[at] == pytest.approx(of_the_photo, abs=1e-3)
    assert found.deletion.y[-1] == found.reverse.y[-1]
    assert (trust.names, trust.unit) == (("animal 5", "animal 0"), "logits")
    assert trust.random == found.band.interval("deletion")
