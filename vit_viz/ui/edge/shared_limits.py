"""Limits that requests to one app share: how it is reached, the page behind it, and the places, turns and paces of its visitors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp

from vit_viz.ui.edge.addresses import Kind
from vit_viz.ui.edge.admission import LANES, Buckets
from vit_viz.ui.edge.answer_turns import AnswerTurns
from vit_viz.ui.edge.arrivals import Arrivals
from vit_viz.ui.edge.documents import Documents
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.pages import Pages

REFUSALS_AT_ONCE = 32
REFUSALS_PER_SECOND = 8
"""How many refusals one visitor hears at full speed, and how many a second after that."""


class SharedLimits:
    """How one app is reached, and what its visitors share.

    Args:
        app: what stands behind it.
        gradio_app: the app of Gradio itself.
        exposure: how the app is reached.
        offered: kinds of addresses beside those of the page.
        on_left: called with the owner when the last page of a visitor was closed.
    """

    def __init__(
        self,
        app: ASGIApp,
        gradio_app: Any,
        exposure: Exposure,
        offered: frozenset[Kind] = frozenset(),
        on_left: Callable[[str], object] = lambda _owner: None,
    ) -> None:
        self.app = app
        self.gradio_app = gradio_app
        self.exposure = exposure
        self.offered = offered
        self.documents = Documents(exposure)
        self.pages = Pages(on_left=on_left)
        self.arrivals = Arrivals()
        self.answer_turns = AnswerTurns()
        self.refusals = Buckets(burst=REFUSALS_AT_ONCE, per_second=REFUSALS_PER_SECOND)
        self._waiting: list[tuple[str, str, str]] = []  # lane, visitor and address of each question

    def has_quick_questions(self) -> bool:
        """Whether a visitor waits for a page, a number or another quick answer; asked from any thread."""
        return self.answer_turns.is_busy or any(lane == "quick" for lane, _, _ in list(self._waiting))

    @contextmanager
    def place(self, lane: str, visitor: str, address: str) -> Iterator[None]:
        """Let one more question in; inside it waits or is being answered.

        Raises:
            BusyError: too many do already.
        """
        others = [(who, where) for kind, who, where in self._waiting if kind == lane]
        LANES[lane].check(
            waiting=len(others),
            mine=sum(who == visitor for who, _ in others),
            of_address=sum(bool(address) and where == address for _, where in others),
        )
        one = lane, visitor, address
        self._waiting.append(one)
        try:
            yield
        finally:
            self._waiting.remove(one)
