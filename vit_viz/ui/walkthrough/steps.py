"""Which module draws which step."""

from __future__ import annotations

from collections.abc import Callable

from vit_viz.ui.walkthrough import (
    attention,
    block,
    classes,
    embedding,
    heads,
    patches,
    positions,
    prefix_tokens,
)
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Screen

_SCREENS: tuple[Callable[[Scene], Screen], ...] = (
    patches.screen,
    embedding.screen,
    prefix_tokens.screen,
    positions.screen,
    attention.screen,
    heads.screen,
    block.screen,
    classes.screen,
)


def screen_of(scene: Scene, step: int) -> Screen:
    """The screen of a step; steps count from 1."""
    return _SCREENS[step - 1](scene)
