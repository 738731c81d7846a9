"""The Explain tab: why the model said this, by all methods side by side, and how far each map can be trusted."""

from __future__ import annotations

import gradio as gr

from vit_viz.ui.kit import web_room
from vit_viz.ui.page import Page, Tab


def build(_page: Page) -> None:
    """Lay out the tab: the question above, the stage at the left, the cards and what is known of them at the right."""
    web_room("explain")
    with gr.Row(elem_classes="vv-view", elem_id="vv-explain-columns"):
        with gr.Column(scale=2, min_width=320):
            web_room("explain", piece="stage")
        with gr.Column(scale=3, min_width=320):
            web_room("explain", piece="gallery")


TAB = Tab(
    "explain",
    "Explain",
    build,
    about="Which patches made the model say a class, by many methods, and which of them deserve trust.",
)
