"""The Positions tab: what the model knows of where a patch is; what it shows is vit_viz/web/positions."""

from __future__ import annotations

from vit_viz.explorer import colour_tables
from vit_viz.ui.kit import web_room, words
from vit_viz.ui.page import Page, Tab


def build(_page: Page) -> None:
    """Lay out the tab."""
    web_room("positions", tables=colour_tables())
    words.explain(
        shows="how alike the positions of any two patches are: one small map per place, laid out like the photo; point at one, or "
        "tap it, to enlarge it; choose it to make that patch the query. Then, where the model has them: what its table becomes on "
        "another grid, what each rotary period tells apart, and by what positions and patch filters differ most.",
        hides="the photo itself: positions are the same for every image of this size. Nor does it show how much the layers use "
        "them.",
    )
    words.formula(
        (
            r"$\cos(p_i, p_j) = \frac{p_i \cdot p_j}{\lVert p_i \rVert \lVert p_j \rVert}$",
            r"$p_i$: the position embedding of patch $i$, resampled to the grid by the model family's own rule. Rotary "
            r"positions: the "
            "mean cosine of the angles between two places. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 centre.",
        ),
        (
            r"on another grid: $\lVert p_i - p_i^{\mathrm{own}} \rVert / \mathrm{mean}_j \lVert p_j^{\mathrm{own}} \rVert$",
            "Families of models interpolate the table in ways of their own; loading a model with another's way changes its input.",
        ),
        (
            r"rotary periods: $\cos(2 \pi \cdot 2 d / (g T))$",
            "$d$: patches apart of $g$ on an axis; $T$: the period, in half sides of the picture. DINOv3, arXiv:2508.10104.",
        ),
        (
            "in colours, patch filters: principal components of the table, and of the filters of the patch embedding",
            "Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 left.",
        ),
    )


TAB = Tab(
    "positions",
    "Positions",
    build,
    about="What the model's position embeddings know of where a patch lies.",
)
