"""The Patches tab: how the photo becomes the sequence of tokens that the model receives; what it shows is vit_viz/web/patches."""

from __future__ import annotations

from vit_viz.ui.kit import web_room, words
from vit_viz.ui.page import Page, Tab


def build(_page: Page) -> None:
    """Lay out the tab."""
    web_room("patches")
    words.explain(
        shows="where the model cuts the photo, what it leaves out (hatched), and the patches in the order in which it "
        "receives them.",
        hides="what the model makes of a patch: a single linear map turns each patch into one vector, and everything else happens "
        "in the layers.",
    )
    words.formula(
        (
            r"image $[C, H, W]$ → patches $[n, P^2 C]$ → tokens $[p + n, D]$ with $n = \frac{H}{P} \cdot \frac{W}{P}$",
            r"$C$ channels; $P$: side of a patch; $D$ numbers per token. $p$ prefix tokens (class, registers) come first, "
            r"suffix tokens (detection) last where the model has them; a position "
            "embedding is added where the model has one. "
            "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929, section 3.1.",
        )
    )


TAB = Tab(
    "patches",
    "Patches",
    build,
    about="How the photo becomes the sequence of tokens that the model receives.",
)
