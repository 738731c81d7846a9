"""What a page consists of: tabs, each declared once, and answers to what its parts ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.routing import BaseRoute

from vit_viz.ui.opened import PageCall

Answers = dict[str, Callable[[PageCall], dict[str, Any]]]
"""What a part of the page asks of a view, by the name of its route, and what answers it."""


@dataclass(frozen=True)
class Tab:
    """A tab of the page.

    Args:
        name: as it stands in links.
        label: as it stands on the screen.
        build: what it shows, as `vit_viz.ui.kit.part` returns it.
        about: one sentence, on what it is for.
    """

    name: str
    label: str
    build: Callable[[], dict[str, Any]]
    about: str = ""


@dataclass(frozen=True)
class Room:
    """A tab that only some pages have, with the routes by which it fetches what it shows."""

    tab: Tab
    routes: Sequence[BaseRoute]
