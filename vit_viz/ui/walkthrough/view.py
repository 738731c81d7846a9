"""The Walkthrough tab: from pixels to a class in eight steps, with the numbers of this photo and this model.

What it shows is vit_viz/web/walkthrough.
"""

from __future__ import annotations

from vit_viz.figures.request import DrawingOptions
from vit_viz.ui.kit import web_room, words
from vit_viz.ui.page import Page, Tab
from vit_viz.ui.walkthrough.screen import STEPS


def build(_page: Page) -> None:
    """Lay out the tab."""
    web_room("walkthrough", steps=STEPS, drawing=[field.option.link for field in DrawingOptions.schema()])
    words.explain(
        shows="how this photo becomes the answer above, one step at a time: every number and picture is computed by the "
        "chosen model from this photo.",
        hides="how the model was trained: its weights are taken as they are.",
    )


TAB = Tab(
    "walkthrough",
    "Walkthrough",
    build,
    about="The whole model, step by step, with the numbers of this photo.",
)
