"""What the views share: the state of a visit, and how an action of the user becomes a new view that wakes what shows it.

Two kinds of handlers. An ACTION reads the newest view, returns the next one, and wakes the parts of the page that now show
something else; where another action came first meanwhile, it is applied again to what that one made (vit_viz.ui.latest), so actions
cannot undo each other. A DRAWING is started by being woken, reads the newest view, and never writes it; of several that wait only
the last one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import gradio as gr

from vit_viz.session import Session
from vit_viz.ui.boundary import guarded
from vit_viz.ui.latest import Latest
from vit_viz.ui.parts import Address
from vit_viz.ui.state import Tab, ViewState
from vit_viz.ui.watching import Pages

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


@dataclass(frozen=True)
class Page:
    """One visit: its view, its owner (the random identity of the tab), and a state per part that wakes it when it changes.

    `arrival` changes when the page opens and when Back or Forward was pressed, and at no other time.
    """

    session: Session
    view: gr.State
    owner: gr.State
    arrival: gr.State
    address: Address
    wake: dict[str, gr.State]
    latest: Latest = field(default_factory=Latest)
    pages: Pages = field(default_factory=Pages)

    @classmethod
    def create(cls, session: Session) -> Page:
        """The states of a visit; call inside `gr.Blocks`."""
        wake = {part: gr.State(None) for part in ("subject", *get_args(Tab))}
        return cls(session, gr.State(ViewState()), gr.State(""), gr.State(0), Address(), wake)

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
        return view, {"set": _link(before, view), "push": push, "turn": view.turn}, *_wakes(view)

    def changed(
        self, request: gr.Request, seen: ViewState, change: Callable[[ViewState], ViewState]
    ) -> tuple[Any, ...]:
        """The values for `outputs` once the newest view of this page was changed, whatever happened since it was `seen`."""
        before, view = self.latest.apply(request.session_hash or "", seen, change)
        return self.after(before, view)

    def action(self, listener: Listener, reduce: Reducer, *, inputs: Sequence[Any] = ()) -> None:
        """Let an event with inputs lead to a new view: reduce(view, *values) -> view."""

        @guarded
        def handle(request: gr.Request, view: ViewState, *values: Any) -> tuple[Any, ...]:
            return self.changed(request, view, lambda newest: reduce(newest, *values))

        listener(handle, [self.view, *inputs], self.outputs, **QUICK)

    def gesture(self, listener: Listener, reduce: Reducer) -> None:
        """Let an event of one of our own components lead to a new view: reduce(view, owner, data) -> view."""

        @guarded
        def handle(request: gr.Request, view: ViewState, owner: str, event: gr.EventData) -> tuple[Any, ...]:
            data = dict(event._data or {})
            return self.changed(request, view, lambda newest: reduce(newest, owner, data))

        listener(handle, [self.view, self.owner], self.outputs, **QUICK)

    def drawing(self, part: str, draw: Drawing, outputs: Sequence[Any]) -> None:
        """Draw a part whenever it is woken: draw(page, view, owner) yields values for `outputs`, once or more."""

        @guarded
        def steps(view: ViewState, owner: str) -> Iterator[Any]:
            yield from draw(self, view, owner)

        self.wake[part].change(steps, [self.view, self.owner], list(outputs), **DRAWING)


def _place(view: ViewState) -> Hashable:
    return view.model, view.image, view.mode, view.query, view.step


def _link(before: ViewState, view: ViewState) -> dict[str, str | None]:
    """The part of the link that changed; the explorer keeps its own options there by itself."""
    old, new = before.to_link(), view.to_link()
    return {name: text for name, text in new.items() if text != old.get(name)}


def _wakes(view: ViewState) -> tuple[Any, ...]:
    """The keys of all parts: a part that is not on the screen sleeps on."""
    subject = (view.model, view.image, view.mode)
    drawing = (view.alpha, view.table, view.smooth, view.ruler)
    explain = (view.method, view.target, view.share, view.fusion, view.discard, view.first, view.last)
    keys: dict[Tab, Hashable] = {
        "look": ("look", view.turn),
        "explain": (subject, view.query, drawing, explain),
        "positions": (subject, view.query, view.places),
        "patches": (subject, view.query, view.numbers),
        "walkthrough": (subject, view.query, view.step, view.play, view.layer, view.head, view.table),
    }
    return (subject, *(keys[tab] if tab == view.tab else gr.skip() for tab in keys))
