"""Questions inside `vit_viz.edit`: the answer is the edited model's, and nothing of it is found afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import vit_viz as vv
from vit_viz.answer import arrays_of
from vit_viz.checkpoints import LoadedModel
from vit_viz.session.request import Request
from vit_viz.session.run import session_of
from vit_viz.session.session import Session

PHOTO = "lion"
SHARP = {2: 0.5}


@pytest.fixture
def loaded() -> Iterator[LoadedModel]:
    yield vv.load("mini")
    session_of.cache_clear()


def fresh(loaded: LoadedModel, name: str, *, edits: str = "") -> list[np.ndarray]:
    """The numbers of a session that has answered nothing before."""
    session_of.cache_clear()
    return numbers(loaded, name, edits=edits)


def numbers(loaded: LoadedModel, name: str, *, edits: str = "") -> list[np.ndarray]:
    return [np.asarray(one) for one in arrays_of(vv.run(loaded, PHOTO, name, edits=edits)).values()]


def alike(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return all(np.array_equal(one, other, equal_nan=True) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("name", ["rollout", "heads", "relevance"])
def test_an_answer_inside_an_edit_is_the_edited_models_and_the_one_of_before_is_found_again(
    loaded: LoadedModel, name: str
) -> None:
    edited, plain = fresh(loaded, name, edits="temperature 2=0.5"), fresh(loaded, name)
    kept = vv.run(loaded, PHOTO, name)
    with vv.edit(temperature=SHARP):
        inside = numbers(loaded, name)
    assert alike(inside, edited)
    assert not alike(inside, plain)
    assert vv.run(loaded, PHOTO, name) is kept


def test_an_edit_within_an_edit_has_answers_of_its_own(loaded: LoadedModel) -> None:
    both = fresh(loaded, "rollout", edits="temperature 1=2 2=0.5")
    with vv.edit(temperature=SHARP):
        outer = vv.run(loaded, PHOTO, "rollout")
        with vv.edit(temperature={1: 2.0}):
            assert alike(numbers(loaded, "rollout"), both)
        assert vv.run(loaded, PHOTO, "rollout") is outer, "computed once while the edit lasts"


def test_an_edit_keeps_nothing_in_the_session(loaded: LoadedModel) -> None:
    session = session_of(loaded)
    before = session.cache.stats
    with vv.edit(temperature=SHARP):
        vv.run(loaded, PHOTO, "rollout")
        assert session.keeps(trace_request(session))
    after = session.cache.stats
    assert (after.entries, after.used_bytes) == (before.entries, before.used_bytes)
    assert not session.keeps(trace_request(session))


def trace_request(session: Session) -> Request:
    return Request.of(session.default_model, PHOTO, "trace")


def test_a_picture_that_is_forgotten_inside_an_edit_leaves_nothing(loaded: LoadedModel) -> None:
    session = session_of(loaded)
    with vv.edit(temperature=SHARP):
        vv.run(loaded, PHOTO, "rollout")
        session.forget_picture(session.digest(PHOTO))
        assert not session.keeps(trace_request(session))
