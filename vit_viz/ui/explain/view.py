"""The Explain tab: why the model said this, by all methods side by side, and how far each map can be trusted."""

from __future__ import annotations

from vit_viz.ui.kit import web_room
from vit_viz.ui.kit.words import formulas
from vit_viz.ui.page import Page, Tab

_HOW = (
    (
        r"deletion: area under $p(\mathrm{target})$ while the map's best patches are painted over, the lower the better;  "
        "insertion: while they are put back into a blurred photo, the higher the better",
        "20 steps; gray marks where 95% of random orders lie (10 orders: mean ± 2.37 standard deviations of their log-odds). "
        "A card's “x faster” is the mean area of random orders over that of the map, in deletion. Of two classes, the lead "
        "$z_a - z_b$ takes the place of the probability, in logits, and its band is that of the areas themselves, as is that "
        "of an output that is a value. Petsiuk et al. 2018, arXiv:1806.07421, on patches.",
    ),
    (
        r"changes with the class: $1 - \rho(m_1, m_2)$, the maps $m_1$ and $m_2$ for two classes; mirrored photo, mirrored map: "
        r"$\rho(m, m^{\prime})$, with $m^{\prime}$ the map of the mirrored photo, mirrored back",
        r"$\rho$: Spearman's rank correlation. Class 0: the map is the same whatever the class. Mirror 1: the map does not mind "
        "a mirror.",
    ),
)
"""How all is measured, as pairs of a formula and what it means."""


def build(_page: Page) -> None:
    """Lay out the tab: the question above, the stage at the left, the cards and what is known of them at the right."""
    web_room("explain", how=formulas(*_HOW))


TAB = Tab(
    "explain",
    "Explain",
    build,
    about="Which patches made the model say a class, by many methods, and which of them deserve trust.",
)
