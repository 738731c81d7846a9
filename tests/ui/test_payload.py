"""Where a first look begins is worked out once for each subject, and forgotten with its picture."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.session.test_session import Counted, picture
from vit_viz.analyses.opening import Opening, opening
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import payload
from vit_viz.ui.payload import opening_of

OWNER = "ada"


@pytest.fixture
def session() -> Session:
    return Counted().session


def subjects_of(session: Session) -> list[Subject]:
    """Two pictures that have not the shape of the input, in two models and two modes."""
    images = [session.add_upload(picture(seed).crop((0, 0, 37, 40)), owner=OWNER) for seed in range(2)]
    choices: Any = itertools.product(("tiny", "other"), images, ("crop", "stretch"))
    return [Subject(model, image, mode, OWNER) for model, image, mode in choices]


def begins(session: Session, subject: Subject) -> Opening:
    return opening_of(session, subject, session.trace_of(subject))


def test_each_subject_has_a_first_look_of_its_own(session: Session) -> None:
    subjects = subjects_of(session)
    looks = [begins(session, subject) for subject in subjects]
    assert looks == [opening(session.trace_of(subject)) for subject in subjects]
    assert len({one.score for one in looks}) == len(subjects)


def test_a_first_look_is_worked_out_once_and_forgotten_with_its_picture(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(payload, "opening", lambda trace: asked.append(trace) or len(asked))
    session.trace_of(Subject("tiny", "shapes"))  # which nobody owns
    before = session.cache.stats.entries
    subjects = subjects_of(session)
    for _ in range(2):
        assert [begins(session, subject) for subject in subjects] == [*range(1, len(subjects) + 1)]
    assert session.cache.stats.entries >= before + 2 * len(subjects)  # traces, and where they begin
    session.uploads.forget(OWNER)
    assert session.cache.stats.entries == before
