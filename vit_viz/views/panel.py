"""The page's panel, which shows one question: its name, its options, and whether a slow one has been started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vit_viz.analyses.options import Options
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion

OPTION = "ask."
"""Before the name of an option, in links."""

OPTIONS = f"{OPTION}*"
"""Its options together, for those who have one place for all of them."""


@dataclass(frozen=True)
class Panel:
    """What the panel shows; the query and the target are those of the view around it.

    Args:
        name: of the question.
        options: its own.
        runs: whether it is computed though it costs many passes; another option takes that back.
    """

    name: str
    options: Options
    runs: bool = False

    @classmethod
    def of(cls, name: str, values: Mapping[str, object] | None = None) -> Panel:
        """The panel of a question; an option without a value has its default."""
        question = QUESTIONS.titled(name)
        return cls(question.name, question.read(values or {}, in_words=True))

    @property
    def question(self) -> AnyQuestion:
        """The question itself."""
        return QUESTIONS.named(self.name)

    def with_options(self, values: Mapping[str, object]) -> Panel:
        """The panel with some options changed; refused as `of` says."""
        return Panel.of(self.name, dict(self.options.changed()) | dict(values))

    def to_link(self) -> dict[str, Any]:
        """By the names that links have for it; options at their defaults are left out."""
        options = {OPTION + name: value for name, value in self.options.changed()}
        return {"ask": self.name} | options | ({"run": True} if self.runs else {})


def is_of_panel(name: str) -> bool:
    """Whether a name in links is about the panel."""
    return name in ("ask", "run") or name.startswith(OPTION)


def panel_after(panel: Panel | None, link: Mapping[str, Any]) -> Panel | None:
    """The panel as these parts of a link change it; refused as `Panel.of` says."""
    name = str(link["ask"] or "") if "ask" in link else panel.name if panel else ""
    if not name:
        return None
    if panel is None or panel.name != name:
        panel = Panel.of(name)
    values = {key.removeprefix(OPTION): value for key, value in link.items() if key.startswith(OPTION)}
    if values:
        panel = panel.with_options(values)
    return replace(panel, runs=str(link["run"]) in ("1", "True")) if "run" in link else panel
