"""What the views share: the state of a visit, and how an action of the user becomes a new view that wakes what shows it.

Two kinds of handlers. An ACTION reads the newest view, returns the next one, and wakes the parts of the page that now show
something else; where another action came first meanwhile, it is applied again to what that one made (`ViewStore`), so actions
cannot undo each other. A DRAWING is started by being woken, reads the newest view, and never writes it; of several that wait only
the last one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from starlette.routing import BaseRoute

from vit_viz.session.handles import OWNER
from vit_viz.session.session import Session
from vit_viz.ui.edge.admission import SLOW
from vit_viz.ui.edge.upload_files import UploadFiles
from vit_viz.ui.edge.user_errors import guarded
from vit_viz.ui.kit import Address
from vit_viz.ui.visit.view_store import ViewStore
from vit_viz.views.state import ViewState

Reducer = Callable[..., ViewState]
Listener = Callable[..., Any]
Drawing = Callable[["Page", ViewState, str], Iterator[Any]]

QUICK: dict[str, Any] = {  # through the queue all the same: beside it a refusal would be an HTTP 500
    "show_progress": "hidden",
    "trigger_mode": "multiple",
    "api_visibility": "private",
    "concurrency_limit": None,
}
DRAWING: dict[str, Any] = {
    "show_progress": "hidden",
    "trigger_mode": "always_last",
    "api_visibility": "private",
    "concurrency_limit": 8,
}
LONG: dict[str, Any] = DRAWING | {
    "trigger_mode": "multiple",
    "concurrency_limit": 2,  # they take turns at the device anyway
    "concurrency_id": SLOW,  # a queue of their own: see vit_viz.ui.edge.admission
}


@dataclass(frozen=True)
class Tab:
    """A tab of the page, declared once in its room.

    Args:
        name: as it stands in links.
        label: as it stands on the screen.
        build: lays it out and returns its components; called inside `gr.Blocks`.
        wire: makes the components answer.
        shows: from a view, everything that the tab draws: equal values need no new drawing.
    """

    name: str
    label: str
    build: Callable[[], Any]
    wire: Callable[[Any, Page], None]
    shows: Callable[[ViewState], Hashable]


@dataclass(frozen=True)
class Room:
    """A tab that only some pages have, with the routes by which it fetches what it shows."""

    tab: Tab
    routes: Sequence[BaseRoute]


@dataclass(frozen=True)
class Page:
    """One visit: its view, and a state per part that wakes it when it changes.

    `arrival` changes when the page opens and when Back or Forward was pressed, and at no other time.
    """

    session: Session
    files: UploadFiles
    tabs: tuple[Tab, ...]
    view: gr.State
    arrival: gr.State
    address: Address
    wake: dict[str, gr.State]
    views: ViewStore = field(default_factory=ViewStore)

    @classmethod
    def create(cls, session: Session, files: UploadFiles, tabs: tuple[Tab, ...]) -> Page:
        """The states of a visit; call inside `gr.Blocks`, whose uploaded files these are."""
        wake = {part: gr.State(None) for part in ("subject", *(tab.name for tab in tabs))}
        return cls(session, files, tabs, gr.State(ViewState()), gr.State(0), Address(), wake)

    @property
    def outputs(self) -> list[Any]:
        """What every action writes, in the order of `after`."""
        return [self.view, self.address, *self.wake.values()]

    def after(self, before: ViewState, view: ViewState, *, push: bool | None = None) -> tuple[Any, ...]:
        """The values for `outputs` once `view` has followed `before`.

        Args:
            push: whether Back should lead to `before`; None means where another query, image or model was chosen.
        """
        if view == before and push is None:
            return tuple(gr.skip() for _ in self.outputs)
        if push is None:
            push = _place(before) != _place(view)
        return view, {"set": _link(before, view), "push": push, "revision": view.revision}, *self._wakes(view)

    def changed(
        self, request: gr.Request, seen: ViewState, change: Callable[[ViewState], ViewState]
    ) -> tuple[Any, ...]:
        """The values for `outputs` once the newest view of this page was changed, whatever happened since it was `seen`."""
        before, view = self.views.apply(request.session_hash or "", seen, change)
        return self.after(before, view)

    def redrawn(self, request: gr.Request, seen: ViewState) -> tuple[Any, ...]:
        """The values for `outputs` that draw the newest view anew, all of it: what is known of its subject has changed."""
        view, address, _subject, *tabs = self.changed(request, seen, lambda newest: newest.after_action())
        return view, address, (view.about, view.revision), *tabs

    def action(self, listener: Listener, reduce: Reducer, *, inputs: Sequence[Any] = ()) -> None:
        """Let an event with inputs lead to a new view: reduce(view, *values) -> view."""

        @guarded
        def handle(request: gr.Request, view: ViewState, *values: Any) -> tuple[Any, ...]:
            return self.changed(request, view, lambda newest: reduce(newest, *values))

        listener(handle, [self.view, *inputs], self.outputs, **QUICK)

    def gesture(self, listener: Listener, reduce: Reducer) -> None:
        """Let an event of one of our own components lead to a new view: reduce(view, owner, data) -> view."""

        @guarded
        def handle(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
            data, owner = dict(event._data or {}), OWNER.get()
            return self.changed(request, view, lambda newest: reduce(newest, owner, data))

        listener(handle, [self.view], self.outputs, **QUICK)

    def drawing(self, part: str, draw: Drawing, outputs: Sequence[Any]) -> None:
        """Draw a part whenever it is woken: draw(page, view, owner) yields values for `outputs`, once or more."""

        @guarded
        def steps(view: ViewState) -> Iterator[Any]:
            yield from draw(self, view, OWNER.get())

        self.wake[part].change(steps, [self.view], list(outputs), **DRAWING)

    def _wakes(self, view: ViewState) -> tuple[Any, ...]:
        """The keys of all parts: a part that is not on the screen sleeps on."""
        keys = (tab.shows(view) if tab.name == view.tab else gr.skip() for tab in self.tabs)
        return (subject_in(view), *keys)


def _place(view: ViewState) -> Hashable:
    return view.about, view.query, view.walkthrough.step


def _link(before: ViewState, view: ViewState) -> dict[str, str | None]:
    """The part of the link that changed; the explorer keeps its own options there by itself."""
    old, new = before.to_link(), view.to_link()
    return {name: text for name, text in new.items() if text != old.get(name)}


def subject_in(view: ViewState) -> Hashable:
    """What the page is about."""
    return view.about
