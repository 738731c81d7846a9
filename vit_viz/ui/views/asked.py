"""What the Explain tab is asked on one visit, and the requests that answer it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vit_viz.capture import Trace
from vit_viz.handles import Subject
from vit_viz.session import Request
from vit_viz.ui import pictures
from vit_viz.ui.aims import Aimed, aimed
from vit_viz.ui.choices import subject_of
from vit_viz.ui.methods import Method, aim_of
from vit_viz.ui.page import Page
from vit_viz.ui.state import ViewState


@dataclass(frozen=True)
class Asked:
    """One picture of a visit as the gallery sees it: its subject, and its view with the target fixed."""

    page: Page
    subject: Subject
    aim: Aimed

    @classmethod
    def of(cls, page: Page, view: ViewState, owner: str) -> Asked:
        """From what a handler is given."""
        subject = subject_of(page.session, view, owner)
        return cls(page, subject, aimed(page.session, subject, view))

    @property
    def key(self) -> str:
        """What the maps are about: equal for equal image, model, mode and target."""
        view = self.aim.view
        return f"{view.model}|{view.image}|{view.mode}|{view.target}"

    @property
    def trace(self) -> Trace:
        """The recorded forward pass."""
        return pictures.trace_of(self.page.session, self.subject)

    def view(self, method: Method) -> ViewState:
        """The view of one card: every card explains the output, whatever token is pinned."""
        return replace(self.aim.view, method=method.name, query="")

    def request(self, method: Method) -> Request:
        """What is asked for the map of a card."""
        return pictures.explanation_request(self.page.session, self.subject, self.view(method))

    def options(self, method: Method) -> tuple[tuple[str, Any], ...]:
        """The options of rollout where they are not the usual ones; other methods have none."""
        view, usual = self.aim.view, ViewState()
        last = view.last in (-1, self.trace.num_layers - 1)
        changed = any(
            getattr(view, name) != getattr(usual, name) for name in ("share", "fusion", "discard", "first")
        )
        is_usual = method.analysis != "rollout" or (last and not changed)
        return () if is_usual else self.request(method).parameters

    def trust_request(self, method: Method) -> Request:
        """What is asked for the trust of a card."""
        target = aim_of(self.aim.view)
        return self._request("trust", method=method.name, target=target, options=self.options(method))

    def band_request(self) -> Request:
        """What is asked for the random orders that all cards are compared with."""
        return self._request("random band", target=aim_of(self.aim.view))

    def _request(self, analysis: str, **parameters: Any) -> Request:
        s = self.subject
        return Request.of(s.model, s.image, analysis, mode=s.mode, owner=s.owner, **parameters)
