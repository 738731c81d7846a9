"""The stage says what went wrong, and for which view."""

from __future__ import annotations

from typing import Any

import pytest

from vit_viz.errors import ParameterError
from vit_viz.ui.explain import stage
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.jobs import Stops
from vit_viz.views.state import ViewState


def test_a_picture_that_cannot_be_shown_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise ParameterError("The picture is gone.")

    monkeypatch.setattr(Questions, "of", gone)
    page: Any = None
    (dimmed, *_), (failed, *_) = list(stage._draw(Stops(), (), page, ViewState(revision=7), ""))
    assert dimmed == {"revision": 7, "busy": True}
    assert failed == {"revision": 7, "error": "The picture is gone."}
