"""What a page consists of: tabs, each declared once, and what the controls around them are for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import gradio as gr
from starlette.routing import BaseRoute

from vit_viz.session.session import Session


@dataclass(frozen=True)
class Tab:
    """A tab of the page, declared once in its room.

    Args:
        name: as it stands in links.
        label: as it stands on the screen.
        build: lays it out; called inside `gr.Blocks`.
        about: one sentence, on what it is for.
    """

    name: str
    label: str
    build: Callable[[Page], object]
    about: str = ""


@dataclass(frozen=True)
class Room:
    """A tab that only some pages have, with the routes by which it fetches what it shows."""

    tab: Tab
    routes: Sequence[BaseRoute]


@dataclass(frozen=True)
class Page:
    """What the parts of a page are built for; `controls` says in a sentence what one is for, by its elem_id."""

    session: Session
    tabs: tuple[Tab, ...]
    controls: dict[str, str] = field(default_factory=dict)

    def explain(self, control: gr.HTML, words: str) -> None:
        """Say what a part of the page is for, in a sentence."""
        self.controls[str(control.elem_id)] = words
