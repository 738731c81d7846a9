"""The sanity check of a method that takes too long says so, and for which view it says it."""

from __future__ import annotations

import threading
from typing import Any

from vit_viz.analyses.methods import METHODS
from vit_viz.ui.explain import trust
from vit_viz.views.state import ViewState


def test_a_method_that_takes_long_is_refused_for_the_view_that_asked() -> None:
    page: Any = None  # it is not asked
    slow = [method for method in METHODS.cards if method.is_slow]
    assert slow
    for revision, method in enumerate(slow, 3):
        view = ViewState(method=method.name, revision=revision)
        ((meter, *_),) = list(trust._checked(page, view, "", threading.Event()))
        assert meter["revision"] == revision
        assert meter["error"].startswith(f"{method.words.label} would have to be recomputed")


def test_a_check_that_fails_is_told_for_the_view_that_asked() -> None:
    page: Any = None  # which has no session
    view = ViewState(method=next(method.name for method in METHODS.cards if not method.is_slow), revision=5)
    *_, (meter, _, _, _) = trust._checked(page, view, "", threading.Event())
    assert meter["revision"] == 5
    assert meter["error"]
