"""The Explain tab: why the model said this, by all methods side by side, and how far each map can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from vit_viz.ui.page import Page
from vit_viz.ui.parts.explanation import Playground
from vit_viz.ui.views import closely, gallery, playground, sanity, words
from vit_viz.ui.views.closely import Closely
from vit_viz.ui.views.gallery import Cards
from vit_viz.ui.views.sanity import Sanity


@dataclass(frozen=True)
class Explain:
    """The parts of the tab."""

    cards: Cards
    closely: Closely
    playground: Playground
    sanity: Sanity


def build() -> Explain:
    """Lay out the tab."""
    cards = gallery.build()
    words.formula(
        (
            "deletion: area under p(target) while the map's best patches are painted over, the lower the better;  insertion: while "
            "they are put back into a blurred photo, the higher the better",
            "20 steps; gray marks where 95% of random orders lie (10 orders: mean ± 2.37 standard deviations of their log-odds). "
            "Petsiuk et al. 2018, arXiv:1806.07421, on patches.",
        ),
        (
            "class sensitivity = 1 − ρ(map for the first class, map for the second);  mirror stability = ρ(map, map of the "
            "mirrored photo mirrored back)",
            "ρ: Spearman's rank correlation. Sensitivity 0: the map is the same whatever the class. Stability 1: the map does not "
            "mind a mirror.",
        ),
        title="? how trust is measured",
    )
    return Explain(cards, closely.build(), playground.build(), sanity.build())


def wire(tab: Explain, page: Page) -> None:
    """Wire the parts."""
    gallery.wire(tab.cards, page)
    closely.wire(tab.closely, page)
    playground.wire(tab.playground, page)
    sanity.wire(tab.sanity, page)
