"""What a page consists of: tabs, each declared once, and answers to what its parts ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.routing import BaseRoute

from vit_viz.explorer import colour_tables
from vit_viz.ui.kit import part
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


_CONTROLS = {
    "vv-palette": "Finds everything that can be asked of the model, by its words.",
    "vv-model": "The model whose attention is seen; an id of the Hub brings another one.",
    "vv-samples": "Makes this picture the one that is looked at.",
}
"""What parts of the header are for, by their elem_id."""


def page_value(
    tabs: Sequence[Tab], *, questions: str, help_listing: str, parts: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """What vit_viz/web/page/page.js is told, wherever the page stands.

    Args:
        questions, help_listing: addresses of what the palette finds, and of what each option is for.
        parts: what stands in front of the tabs, beside the panel, the dialog that saves, tour and help.
    """
    known = {"tabs": {tab.name: tab.about for tab in tabs}, "controls": _CONTROLS}
    return {
        "questions": questions,
        "tables": colour_tables(),
        "tabs": [{**tab.build(), "name": tab.name, "label": tab.label} for tab in tabs],
        "parts": [
            *parts,
            part("web/palette/panel", questions=questions),
            part("web/kit/figure_dialog"),
            part("ui/tour/tour"),
            part("ui/help/help", value=known, listing=help_listing),
        ],
    }
