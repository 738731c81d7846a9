"""The page's panel, which shows one question: its name, its options, and whether a slow one has been started.

The browser reads it from a link itself (vit_viz/web/kit/store.js). Here links to answers are written, and what a link asks for that
is not possible is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vit_viz.analyses.options import Options
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import ParameterError

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
        runs: whether it is computed though it costs many passes.
    """

    name: str
    options: Options
    runs: bool = False

    @classmethod
    def from_link(cls, link: Mapping[str, str]) -> tuple[Panel | None, tuple[str, ...]]:
        """The panel of a link, None where it has none, and what of it is not possible, in sentences."""
        name = link.get("ask", "")
        if not name:
            return None, ()
        values = {key.removeprefix(OPTION): text for key, text in link.items() if key.startswith(OPTION)}
        try:
            question = QUESTIONS.titled(name)
        except ParameterError as error:
            return None, (str(error),)
        try:
            options = question.read(values, in_words=True)
        except ParameterError as error:
            return cls(question.name, question.options()), (str(error),)
        return cls(question.name, options, link.get("run") in ("1", "True")), ()

    def to_link(self) -> dict[str, Any]:
        """By the names that links have for it; options at their defaults are left out."""
        options = {OPTION + name: value for name, value in self.options.changed()}
        return {"ask": self.name} | options | ({"run": True} if self.runs else {})


def is_of_panel(name: str) -> bool:
    """Whether a name in links is about the panel."""
    return name in ("ask", "run") or name.startswith(OPTION)
