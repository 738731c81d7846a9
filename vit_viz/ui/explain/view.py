"""The Explain tab: why the model said this, by all methods side by side, and how far each map can be trusted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import gradio as gr

from vit_viz.analyses.methods import METHODS
from vit_viz.ui.explain import gallery, sanity, stage
from vit_viz.ui.explain.gallery import Cards
from vit_viz.ui.explain.sanity import Sanity
from vit_viz.ui.explain.stage import Staged
from vit_viz.ui.kit import words
from vit_viz.ui.page import Page, Tab, subject_in
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class Explain:
    """The parts of the tab."""

    cards: Cards
    stage: Staged
    sanity: Sanity


def build() -> Explain:
    """Lay out the tab: the question above, the stage at the left, the cards and what is known of them at the right."""
    targeted = gallery.build_target()
    with gr.Row(elem_classes="vv-view", elem_id="vv-explain-columns"):
        with gr.Column(scale=2, min_width=320):
            staged = stage.build()
        with gr.Column(scale=3, min_width=320):
            cards = Cards(targeted, gallery.build_gallery())
            _how_trust_is_measured()
            checked = sanity.build()
    return Explain(cards, staged, checked)


def wire(tab: Explain, page: Page) -> None:
    """Wire the parts."""
    gallery.wire(tab.cards, page)
    stage.wire(tab.stage, page)
    sanity.wire(tab.sanity, tab.cards.gallery, page)


def _how_trust_is_measured() -> None:
    words.formula(
        (
            r"deletion: area under $p(\mathrm{target})$ while the map's best patches are painted over, the lower the better;  "
            "insertion: while they are put back into a blurred photo, the higher the better",
            "20 steps; gray marks where 95% of random orders lie (10 orders: mean ± 2.37 standard deviations of their log-odds). "
            "A card's “x faster” is the mean area of random orders over that of the map, in deletion. "
            "Petsiuk et al. 2018, arXiv:1806.07421, on patches.",
        ),
        (
            r"changes with the class: $1 - \rho(m_1, m_2)$, the maps $m_1$ and $m_2$ for two classes; mirrored photo, mirrored "
            r"map: $\rho(m, m')$, with $m'$ the map of the mirrored photo, mirrored back",
            r"$\rho$: Spearman's rank correlation. Class 0: the map is the same whatever the class. Mirror 1: the map does not "
            "mind a mirror.",
        ),
        title="How this is measured",
    )


def _shows(view: ViewState) -> Hashable:
    # a slow map may have been computed since the view was drawn: with it each action draws anew, from what is kept
    method = METHODS.get(view.method)
    since = view.revision if method and method.is_slow else 0
    return subject_in(view), view.query, view.method, since, view.target, view.options


TAB = Tab("explain", "Explain", build, wire, shows=_shows)
