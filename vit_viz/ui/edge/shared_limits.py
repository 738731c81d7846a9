"""Limits that requests to one app share: how it is reached, the page behind it, and the places, turns and paces of its visitors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp

from vit_viz.errors import BusyError
from vit_viz.ui.edge.addresses import Kind
from vit_viz.ui.edge.admission import LANES, Buckets, lane_of
from vit_viz.ui.edge.answer_turns import AnswerTurns
from vit_viz.ui.edge.documents import Documents
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.pages import OpenPage
from vit_viz.ui.edge.uploads import Progresses
from vit_viz.ui.edge.user_errors import GuardedBlocks

REFUSALS_AT_ONCE = 32
REFUSALS_PER_SECOND = 8
"""How many refusals one visitor hears at full speed, and how many a second after that."""

PAGES_AT_ONCE = 16
PAGES_PER_SECOND = 1
"""How many pages one visitor opens at full speed, and how many a second after that; from one network address that is known:"""
PAGES_AT_ONCE_FROM_ADDRESS = 200
PAGES_PER_SECOND_FROM_ADDRESS = 8

TOO_QUICKLY = (
    "Pages of this app were opened too quickly one after the other; please reload this one in a few seconds."
)


class SharedLimits:
    """How one app is reached, and what its visitors share.

    Args:
        app: what stands behind it.
        gradio_app: the app of Gradio itself, with its blocks and their queue.
        exposure: how the app is reached.
        offered: kinds of addresses beside those of the page.
    """

    def __init__(
        self, app: ASGIApp, gradio_app: Any, exposure: Exposure, offered: frozenset[Kind] = frozenset()
    ) -> None:
        self.app = app
        self.gradio_app = gradio_app
        self.exposure = exposure
        self.offered = offered
        self.documents = Documents(exposure)
        self.progresses = Progresses()
        self.answer_turns = AnswerTurns()
        self.refusals = Buckets(burst=REFUSALS_AT_ONCE, per_second=REFUSALS_PER_SECOND)
        self.openings = Buckets(burst=PAGES_AT_ONCE, per_second=PAGES_PER_SECOND)
        self.openings_from = Buckets(
            burst=PAGES_AT_ONCE_FROM_ADDRESS, per_second=PAGES_PER_SECOND_FROM_ADDRESS
        )
        self._joining: list[tuple[str, OpenPage]] = []  # let in, and not yet in Gradio's queue

    @property
    def blocks(self) -> GuardedBlocks:
        """The page, with its files, its pages and its queue."""
        blocks: GuardedBlocks = self.gradio_app.get_blocks()
        return blocks

    def has_quick_questions(self) -> bool:
        """Whether a visitor waits for a page, a file, a number or another quick answer; asked from any thread."""
        events = list(self.blocks.questions.event_ids_to_events.values())
        asked = [lane for lane, _ in list(self._joining)] + [lane_of(event.fn) for event in events]
        return self.answer_turns.is_busy or any(lane == "quick" for lane in asked)

    def _questions(self, lane: str) -> list[OpenPage]:
        """The page of each question that waits in a lane or is being answered."""
        events = list(self.blocks.questions.event_ids_to_events.values())
        pages = [
            self.blocks.open_pages.find(event.session_hash) for event in events if lane_of(event.fn) == lane
        ]
        return [page for page in pages if page] + [page for kind, page in self._joining if kind == lane]

    def page(self, name: str, visitor: str, owner: str, address: str) -> OpenPage:
        """The page of a name, for its visitor; one that is new costs more than a question, so they come only so fast.

        Raises:
            ParameterError: the name is another visitor's.
            BusyError: the visitor opens pages too quickly; too many are open or wait for answers.
        """
        pages = self.blocks.open_pages
        if pages.find(name) is None and not (
            self.openings.passes(visitor, 1) and (not address or self.openings_from.passes(address, 1))
        ):
            raise BusyError(TOO_QUICKLY)
        return pages.admit(name, visitor, owner, address)

    @contextmanager
    def place(self, lane: str, page: OpenPage) -> Iterator[None]:
        """Let one more question in; inside it counts, though it is not in Gradio's queue, or not yet.

        Raises:
            BusyError: too many wait already.
        """
        waiting = self._questions(lane)
        LANES[lane].check(
            waiting=len(waiting),
            mine=sum(other.visitor == page.visitor for other in waiting),
            of_address=sum(bool(page.address) and other.address == page.address for other in waiting),
        )
        self._joining.append((lane, page))
        try:
            yield
        finally:
            self._joining.remove((lane, page))
