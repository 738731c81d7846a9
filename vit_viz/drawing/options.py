"""How a map is drawn, whatever was computed: the same options for the explorer, the pictures of the page and saved files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from vit_viz.analyses.options import Option, Options
from vit_viz.render.styles import Style

Scale = Literal["shared", "layer", "own"]
Table = Literal["viridis", "magma", "cividis", "gray"]

BEFORE_STYLES = {"style": "heat", "scale": "shared", "alpha": "0.55", "smooth": "0"}
"""How maps were drawn before there were styles: what a link means that names a colour table (`colors`) and no style."""


@dataclass(frozen=True)
class DrawingOptions(Options):
    """From numbers to pixels."""

    style: Annotated[
        Style,
        Option(
            "style",
            "How values change the photo: it is lit where they are large, tinted, or covered with flat colours.",
            link="style",
        ),
    ] = "light"
    scale: Annotated[
        Scale,
        Option("scale", "Which cells share the numbers at the ends of the scale.", link="scale"),
    ] = "layer"
    clip: Annotated[
        bool,
        Option(
            "clip peaks",
            "The brightest hundredth of the values shares the top of the scale, so that a few peaks do not hide the rest.",
            link="clip",
        ),
    ] = True
    alpha: Annotated[
        float,
        Option(
            "strength", "How much of the style is applied; 0: the photo as it is.", step=0.05, link="alpha"
        ),
    ] = 1.0
    table: Annotated[Table, Option("colours", "The colour table of heat.", link="colors")] = "viridis"
    smooth: Annotated[
        bool,
        Option(
            "smooth",
            "In the large photo, interpolate between patches instead of showing each.",
            link="smooth",
        ),
    ] = True
    mask: Annotated[
        float,
        Option(
            "keep the top",
            "Show only the smallest set of patches that holds this share of the patches' attention (DINO); 0: all.",
            step=0.05,
            link="mask",
        ),
    ] = 0.0
