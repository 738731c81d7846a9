"""What the Explain tab is asked on one visit, and the requests that answer it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.without import WithoutPatches
from vit_viz.capture import Trace
from vit_viz.session.handles import Subject
from vit_viz.session.request import Request
from vit_viz.ui import pictures
from vit_viz.ui.explain.methods import changed_options, target_of
from vit_viz.ui.explain.target import TargetedView, matching_classes, with_target
from vit_viz.ui.page import Page
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class Questions:
    """One picture of a visit as the tab sees it: its subject, and its view with the target fixed."""

    page: Page
    subject: Subject
    targeted: TargetedView

    @classmethod
    def of(cls, page: Page, view: ViewState, owner: str) -> Questions:
        """From what a handler is given."""
        subject = subject_of(page.session, view, owner)
        return cls(page, subject, with_target(page.session, subject, view))

    @property
    def key(self) -> str:
        """What the maps are about: equal for equal image, model, mode and target."""
        view = self.targeted.view
        return f"{view.about}|{view.target}"

    @property
    def trace(self) -> Trace:
        """The recorded forward pass."""
        return self.page.session.trace_of(self.subject)

    def view(self, method: AnyMethod) -> ViewState:
        """The view of one card: every card explains the output, whatever token is pinned."""
        return replace(self.targeted.view, method=method.name, query="")

    def request(self, method: AnyMethod) -> Request:
        """What is asked for the map of a card."""
        return pictures.explanation_request(self.page.session, self.subject, self.view(method))

    def options(self, method: AnyMethod) -> tuple[tuple[str, Any], ...]:
        """The options of a method that are not at their defaults."""
        return changed_options(method, self.targeted.view, self.trace)

    def trust_request(self, method: AnyMethod) -> Request:
        """What is asked for the trust of a card."""
        options = self.options(method)
        follows = {"query": self.view(method).query_of(self.trace.layout)} if method.takes_query else {}
        target = target_of(self.targeted.view)
        return self._request(
            "trust", method=method.name, target=target, options=options, **(follows if options else {})
        )

    def band_request(self) -> Request:
        """What is asked for the random orders that all cards are compared with."""
        return self._request("random band", target=target_of(self.targeted.view))

    def randomised_request(self, method: AnyMethod) -> Request:
        """What is asked for the map of a model that unlearns, block by block."""
        return self._request("randomisation", method=method.name, target=target_of(self.targeted.view))

    def without(self, gone: list[tuple[int, int]], *, asked: tuple[int, ...] = ()) -> WithoutPatches:
        """What the model says without patches (row, col): of the classes that are asked for, and of the best ones."""
        about = {"asked": asked} if asked else {}
        answer: WithoutPatches = self.page.session.run(self._request("without patches", gone=gone, **about))
        return answer

    def _request(self, analysis: str, **parameters: Any) -> Request:
        return self.subject.request(analysis, **parameters)


def found_classes(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> dict[str, Any]:
    """The classes that the text of a search means, under the number of its question."""
    targeted = Questions.of(page, view, owner).targeted
    hits = matching_classes(targeted.labels, targeted.classes, str(data.get("text", ""))[:100])
    return {"seq": data.get("seq"), "hits": hits}
