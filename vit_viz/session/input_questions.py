"""Questions about what a model receives: the patches of a photo, their sequence, and what it knows of their positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from vit_viz.analyses.options import NoOptions, Option, Options
from vit_viz.analyses.spec import Words
from vit_viz.session.question import Question


@dataclass(frozen=True)
class PatchesOptions(Options):
    """How the patches are shown."""

    numbers: Annotated[bool, Option("numbers", "In a picture, write the number of each patch.")] = False


@dataclass(frozen=True)
class PositionsOptions(Options):
    """Which positions are compared."""

    grid: Annotated[
        str,
        Option(
            "grid",
            'Patches as "rows,cols" to which positions are resampled; else the grid of the checkpoint.',
            pattern=r"(\d{1,4},\d{1,4})?",
        ),
    ] = ""
    place: Annotated[
        str,
        Option(
            "place",
            'One position alone with all: "row,col", or a token with a position of its own such as "class"; else all pairs.',
            pattern=r"(\d{1,4},\d{1,4}|[a-z]{1,20}( \d{1,4})?)?",
        ),
    ] = ""


def _patches(options: PatchesOptions, _layers: int) -> dict[str, Any]:
    return dict(options.changed())


def _nothing(_options: NoOptions, _layers: int) -> dict[str, Any]:
    return {}


def _positions(options: PositionsOptions, _layers: int) -> dict[str, Any]:
    """What is chosen, pairs of numbers as such."""
    return {
        name: tuple(map(int, str(text).split(","))) if str(text)[0].isdigit() else text
        for name, text in options.changed()
    }


_DOSOVITSKIY = "Dosovitskiy et al. 2021, arXiv:2010.11929"

OF_THE_INPUT = (
    Question(
        "patches",
        Words(
            label="Patches",
            shows="where the model cuts the photo: the rectangle of each patch in its pixels.",
            hides="what the model makes of a patch.",
            formula=r"patches $[n, P^2 C]$ with $n = \frac{H}{P} \cdot \frac{W}{P}$",
            source=f"{_DOSOVITSKIY}, section 3.1",
            class_blind=True,
        ),
        PatchesOptions,
        "look-up",
        analysis="patches",
        parameters=_patches,
    ),
    Question(
        "sequence",
        Words(
            label="Sequence",
            shows="the pixels that the model receives, cut into patches in the order of its tokens.",
            hides="what the model makes of a patch.",
            formula=r"tokens $[p + n, D]$",
            source=f"{_DOSOVITSKIY}, section 3.1",
            class_blind=True,
        ),
        NoOptions,
        "look-up",
        analysis="received image",
        parameters=_nothing,
    ),
    Question(
        "positions",
        Words(
            label="Positions",
            shows="how similar the position embeddings of any two patches are.",
            hides="what the model makes of them.",
            formula=r"$\cos(p_i, p_j)$",
            source=f"{_DOSOVITSKIY}, Fig. 7",
            class_blind=True,
        ),
        PositionsOptions,
        "look-up",
        analysis="positions",
        parameters=_positions,
        takes_image=False,
    ),
)
