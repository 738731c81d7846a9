"""The walkthrough: from the pixels of the visitor's photo to a class, eight steps, each with the numbers of this photo and model.

One module per step; each turns a `Scene` into a `Screen`. `vit_viz.ui.walkthrough.view` lays them out.
"""

from __future__ import annotations

from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import STEPS, Screen
from vit_viz.ui.walkthrough.steps import screen_of

__all__ = ["STEPS", "Scene", "Screen", "screen_of"]
