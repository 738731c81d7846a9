"""What the views share: the state of a visit, and how an action of the user becomes a new view that wakes what shows it.

Two kinds of handlers. An ACTION reads the newest view, returns the next one, and wakes the parts of the page that now show
something else; where another action came first meanwhile, it is applied again to what that one made (`ViewStore`), so actions
cannot undo each other. A DRAWING is started by being woken, reads the newest view, and never writes it; of several that wait only
the last one runs.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from cachetools import LRUCache
from starlette.routing import BaseRoute

from vit_viz.explorer.value import link_fields
from vit_viz.session.handles import OWNER
from vit_viz.session.session import Session
from vit_viz.ui.edge.admission import SLOW
from vit_viz.ui.edge.uploads import UploadFiles
from vit_viz.ui.kit import Address
from vit_viz.views import choices
from vit_viz.views.state import ViewState

Reducer = Callable[..., ViewState]
Listener = Callable[..., Any]
Answer = Callable[[ViewState, str, dict[str, Any]], Any]
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

MAX_PAGES = 10_000


@dataclass(frozen=True)
class Tab:
    """A tab of the page, declared once in its room.

    Args:
        name: as it stands in links.
        label: as it stands on the screen.
        build: lays it out, and then makes its components answer; called inside `gr.Blocks`.
        shows: from a view, everything that Python draws of the tab: equal values need no new drawing.
        about: one sentence, on what it is for.
    """

    name: str
    label: str
    build: Callable[[Page], object]
    shows: Callable[[ViewState], Hashable] = lambda _view: None
    about: str = ""


@dataclass(frozen=True)
class Room:
    """A tab that only some pages have, with the routes by which it fetches what it shows."""

    tab: Tab
    routes: Sequence[BaseRoute]


class ViewStore:
    """The newest view of every open page, so that of two actions at the same moment neither undoes the other.

    Gradio hands each handler the view as it was when the event arrived. Two handlers that overlap would both start from that view,
    and the one that ends last would overwrite the other. Here each starts from what is known of its page, and one that was
    overtaken is applied again to what the other made. Of too many pages, the one that was quiet for longest is forgotten.

    Args:
        max_pages: pages that are remembered at most; one that was forgotten behaves as if it had just been opened.
    """

    def __init__(self, *, max_pages: int = MAX_PAGES) -> None:
        self._lock = threading.Lock()
        self._views: LRUCache[str, ViewState] = LRUCache(max_pages)

    def newest(self, page: str, seen: ViewState) -> ViewState:
        """The view of a page after all that was done on it; `seen` where nothing is known of it."""
        with self._lock:
            return self._views.get(page, seen)

    def apply(
        self, page: str, seen: ViewState, change: Callable[[ViewState], ViewState]
    ) -> tuple[ViewState, ViewState]:
        """Change the newest view of a page; returns what it was and what it became.

        Args:
            page: identity of one opened page.
            seen: the view that the action started from, for a page of which nothing is known.
            change: may be slow; no lock is held meanwhile. It runs again where another action came first.
        """
        while True:
            before = self.newest(page, seen)
            changed = change(before)
            with self._lock:
                if self._views.get(page, before) is before:
                    self._views[page] = changed
                    return before, changed


@dataclass(frozen=True)
class Page:
    """One visit: its view, and a state per part that wakes it when it changes.

    `arrival` changes when the page opens, when Back or Forward was pressed and when a question leads elsewhere: then the tab of the
    view is opened. `controls` says what a control of Gradio is for, by its elem_id: see `explain`.
    """

    session: Session
    files: UploadFiles
    tabs: tuple[Tab, ...]
    view: gr.State
    arrival: gr.State
    address: Address
    wake: dict[str, gr.State]
    views: ViewStore = field(default_factory=ViewStore)
    controls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, session: Session, files: UploadFiles, tabs: tuple[Tab, ...]) -> Page:
        """The states of a visit; call inside `gr.Blocks`, whose uploaded files these are."""
        of_page: dict[str, dict[str, Any]] = {
            "model": {"usual": choices.default_name(session)},
            "image": {"usual": choices.first_image()},
            "tab": {"choices": [tab.name for tab in tabs]},
        }
        wake = {part: gr.State(None) for part in ("subject", "panel", *(tab.name for tab in tabs))}
        return cls(
            session,
            files,
            tabs,
            gr.State(ViewState()),
            gr.State(0),
            Address(fields=json.dumps(link_fields(of_page))),
            wake,
        )

    @property
    def outputs(self) -> list[Any]:
        """What every action writes, in the order of `after`."""
        return [self.view, self.address, *self.wake.values()]

    def after(self, before: ViewState, view: ViewState, *, push: bool | None = None) -> tuple[Any, ...]:
        """The values for `outputs` once `view` has followed `before`.

        Args:
            push: whether Back should lead to `before`; None means where that is another place.
        """
        if view == before and push is None:
            return tuple(gr.skip() for _ in self.outputs)
        if push is None:
            push = before.place != view.place
        change = {"set": _link(before, view), "push": push, "revision": view.revision, "heard": view.told}
        return view, change, *self._wakes(view)

    def newest(self, request: gr.Request, seen: ViewState) -> ViewState:
        """The view of this page, which a slower answer may have overwritten in the page's state."""
        return self.views.newest(request.session_hash or "", seen)

    def changed(
        self, request: gr.Request, seen: ViewState, change: Callable[[ViewState], ViewState]
    ) -> tuple[Any, ...]:
        """The values for `outputs` once the newest view of this page was changed, whatever happened since it was `seen`."""
        before, view = self.views.apply(request.session_hash or "", seen, change)
        return self.after(before, view)

    def action(self, listener: Listener, reduce: Reducer, *, inputs: Sequence[Any] = ()) -> None:
        """Let an event with inputs lead to a new view: reduce(view, *values) -> view."""

        def handle(request: gr.Request, view: ViewState, *values: Any) -> tuple[Any, ...]:
            return self.changed(request, view, lambda newest: reduce(newest, *values))

        listener(handle, [self.view, *inputs], self.outputs, **QUICK)

    def explain(self, control: Any, words: str) -> None:
        """Say what a control of Gradio is for.

        Args:
            words: an option of the view or of a method, by its name, or a sentence.
        """
        control.elem_id = control.elem_id or f"vv-option-{words.replace('.', '-')}"
        self.controls[control.elem_id] = words if " " in words else words.rpartition(".")[2]

    def gesture(self, listener: Listener, reduce: Reducer) -> None:
        """Let an event of one of our own components lead to a new view: reduce(view, owner, data) -> view."""

        def handle(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
            data, owner = dict(event._data or {}), OWNER.get()
            return self.changed(request, view, lambda newest: reduce(newest, owner, data))

        listener(handle, [self.view], self.outputs, **QUICK)

    def reply(self, listener: Listener, answer: Answer, outputs: Sequence[Any] = ()) -> None:
        """Let an event of one of our own components be answered, the view as it is: answer(view, owner, data) -> `outputs`."""

        def handle(request: gr.Request, seen: ViewState, event: gr.EventData) -> Any:
            return answer(self.newest(request, seen), OWNER.get(), dict(event._data or {}))

        listener(handle, [self.view], list(outputs) or None, **QUICK)

    def job(self, listener: Listener, run: Answer, outputs: Sequence[Any]) -> None:
        """Let such an event start something long: run(view, owner, data) yields values for `outputs`, once or more."""

        def follow(request: gr.Request, seen: ViewState, event: gr.EventData) -> Iterator[Any]:
            yield from run(self.newest(request, seen), OWNER.get(), dict(event._data or {}))

        listener(follow, [self.view], list(outputs), **LONG)

    def drawing(self, part: str, draw: Drawing, outputs: Sequence[Any]) -> None:
        """Draw a part whenever it is woken: draw(page, view, owner) yields values for `outputs`, once or more."""

        def steps(request: gr.Request, seen: ViewState) -> Iterator[Any]:
            yield from draw(self, self.newest(request, seen), OWNER.get())

        self.wake[part].change(steps, [self.view], list(outputs), **DRAWING)

    def _wakes(self, view: ViewState) -> tuple[Any, ...]:
        """The keys of all parts: a part that is not on the screen sleeps on."""
        keys = (tab.shows(view) if tab.name == view.tab else gr.skip() for tab in self.tabs)
        return (view.about, _panel_in(view), *keys)


def _link(before: ViewState, view: ViewState) -> dict[str, str | None]:
    """The part of the link that changed; the explorer keeps its own options there by itself."""
    old, new = before.to_link(), view.to_link()
    return {name: new.get(name) for name in old | new if new.get(name) != old.get(name)}


def _panel_in(view: ViewState) -> Hashable:
    """Everything that the panel shows; None where there is none."""
    if view.panel is None:
        return None
    question = view.panel.question
    return (
        *(view.about, view.panel, view.drawing),
        *(question.follows_pin and view.query, question.takes_target and view.target),
    )
