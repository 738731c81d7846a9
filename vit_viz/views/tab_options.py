"""Options of single tabs, as links hold them; those that several tabs share stand in `vit_viz.figures.request`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from vit_viz.analyses.ablation import Ablation
from vit_viz.analyses.head_statistics import DOES, MEASURES, OUTLIER_FACTOR, Measure, MeasureWords
from vit_viz.analyses.key_segments import BOX, Grouping
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.tokens import Role

HeadMeasure = Literal[Measure, "estimate", "effect"]
HEAD_MEASURES: dict[str, MeasureWords] = {
    **MEASURES,
    "estimate": MeasureWords(
        DOES,
        "gradient importance",
        "What switching the head off would change for the chosen class, estimated by one gradient; below 0 (blue) the head helps.",
    ),
    "effect": MeasureWords(
        DOES,
        "causal effect",
        "What switching the head off does change for the chosen class; below 0 (blue) the head helps.",
    ),
}
"""In words, in the order of choosers."""
NAME = r"[a-z][a-z0-9_]{0,80}"
"""Of a number in a survey."""

ZOOM = r"|[1-9]\d{0,3}(\.\d{1,2})?(,[01](\.\d{1,4})?){2}"
"""Of the matrix: nothing, or "4.5,0.25,0.5": how many times it is enlarged, and the shares of it above and left of what is seen."""

GONE = r"|best\.[1-9][0-9]{0,4}|patches\.[A-Za-z0-9_-]{1,4096}"
"""What is taken away on the Explain tab: nothing, so many of the best patches, or a bit for each patch, six in a letter."""


@dataclass(frozen=True)
class LookTabOptions(Options):
    """Of the Look tab."""

    extremes: Annotated[
        bool,
        Option(
            "max and min",
            "Whether the mosaic has columns for the largest and the smallest of all heads, beside their mean.",
            link="extremes",
        ),
    ] = False


@dataclass(frozen=True)
class ExplainTabOptions(Options):
    """Of the Explain tab."""

    map_scale: Annotated[
        Literal["own", "share", "only"],
        Option(
            "scale of the maps",
            "Whether each map has its own scale, all are shares of their sum on one scale, or each is less the mean of all.",
            link="ruler",
        ),
    ] = "own"
    sides: Annotated[
        Literal["lead", "one", "other", "difference"],
        Option(
            "of two classes",
            "Of one class set against another: the map of how far it leads, the map of either class, or the two subtracted.",
            link="sides",
        ),
    ] = "lead"
    explain_face: Annotated[
        Literal["why", "parts"],
        Option(
            "face",
            "Why the model says it, by maps, or what its number is made of.",
            link="explain",
            is_place=True,
        ),
    ] = "why"
    gone: Annotated[
        str,
        Option(
            "taken away",
            "Patches that are taken away: best.12 for the twelve best of the map, or patches. and a mask of those brushed over.",
            pattern=GONE,
            link="gone",
        ),
    ] = ""


@dataclass(frozen=True)
class HeadsTabOptions(Options):
    """Of the Heads tab."""

    face: Annotated[
        Literal["atlas", "surgery", "matrix", "depth"],
        Option(
            "face",
            "What is seen of the heads: all as pictures, all as switches, one as a matrix, or a measure by depth.",
            link="face",
            is_place=True,
        ),
    ] = "atlas"
    measure: Annotated[
        HeadMeasure,
        Option("measure", "What is measured of each head.", link="measure", is_place=True),
    ] = "distance"
    how: Annotated[
        Ablation,
        Option(
            "how",
            "What replaces the output of a head that is switched off: zero, its mean, uniform attention.",
            link="how",
        ),
    ] = "zero"
    head_order: Annotated[
        Literal["head", "value"],
        Option("order", "Whether the heads of a layer stand in their order, or the largest first.", link="order"),
    ] = "head"  # fmt: skip


@dataclass(frozen=True)
class MatrixTabOptions(Options):
    """Of the matrix and its links, on the Heads tab."""

    matrix_scale: Annotated[
        Literal["log", "linear"],
        Option("scale of the matrix", "Whether colours follow the weights or their logarithm.", link="matrix_scale"),
    ] = "log"  # fmt: skip
    matrix_links: Annotated[
        Literal["query", "head"],
        Option("links", "Whether the links of the query or those of the whole head are drawn.", link="links"),
    ] = "query"  # fmt: skip
    matrix_count: Annotated[
        int, Option("strongest", "How many links are drawn.", low=1, high=100, link="strongest")
    ] = 10
    matrix_zoom: Annotated[
        str, Option("zoom", "The part of the matrix that is seen.", pattern=ZOOM, link="zoom")
    ] = ""


@dataclass(frozen=True)
class PatchesTabOptions(Options):
    """Of the Patches tab."""

    numbers: Annotated[bool, Option("numbers", "Whether the patches are numbered.", link="numbers")] = False


@dataclass(frozen=True)
class PositionsTabOptions(Options):
    """Of the Positions tab."""

    position_grid: Annotated[
        Literal["image", "trained"],
        Option("grid", "Whether positions are shown on the grid of the image or on that of the training.", link="places"),
    ] = "image"  # fmt: skip
    position_part: Annotated[
        Literal["similarity", "resampled", "periods", "components", "filters"],
        Option("show", "What is shown of the positions.", link="positions", is_place=True),
    ] = "similarity"


@dataclass(frozen=True)
class TokensTabOptions(Options):
    """Of the Tokens tab."""

    token_measure: Annotated[
        Literal["similarity", "components", "norms", "lens", "layers", "segments"],
        Option("shown", "What is shown of the tokens.", link="tokens", is_place=True),
    ] = "similarity"
    token_role: Annotated[
        Role, Option("vectors", "Which vectors are compared: tokens, queries or keys.", link="vectors")
    ] = "tokens"
    token_state: Annotated[
        int,
        Option("state", "The map over the photo, counted from 0; -1: one in the last third.", low=-1, high=999, link="state"),
    ] = -1  # fmt: skip
    token_scale: Annotated[
        Literal["layer", "shared"],
        Option("scale", "Whether each layer has a scale of its own, or all layers one.", link="token_scale"),
    ] = "layer"
    token_foreground: Annotated[
        bool, Option("foreground", "Split at the first component, and colour the inner side.", link="foreground")
    ] = False  # fmt: skip
    token_whitened: Annotated[
        bool, Option("whitened", "Give each component the same variance.", link="whitened")
    ] = False
    token_second: Annotated[
        str,
        Option("second photo", "A picture that shares the colours.", pattern=r"[^\x00-\x1f]{0,200}", link="second"),
    ] = ""  # fmt: skip
    token_factor: Annotated[
        float,
        Option("outliers", "An outlier is longer than this many medians.", low=1.5, high=20, step=0.5, link="outliers"),
    ] = OUTLIER_FACTOR  # fmt: skip
    token_register: Annotated[
        bool, Option("register", "Whether a register is added, to compare before and after.", link="register")
    ] = False  # fmt: skip
    token_segment_role: Annotated[
        Role, Option("segments of", "Which vectors are grouped.", link="segments_of")
    ] = "keys"
    token_method: Annotated[
        Grouping, Option("segments by", "k-means, or a cut into two.", link="segments_by")
    ] = "k-means"
    token_count: Annotated[
        int, Option("segments", "How many, by k-means.", low=2, high=24, link="segments")
    ] = 4
    token_box: Annotated[
        str,
        Option("box", "An object: left,top,right,bottom in pixels of the photo.", pattern=BOX, link="box"),
    ] = ""  # fmt: skip


@dataclass(frozen=True)
class SurveyTabOptions(Options):
    """Of the Survey tab."""

    survey_where: Annotated[
        str,
        Option("filter", "Which photos: an expression as after WHERE in SQL.", pattern=r"[^\x00-\x1f]{0,4000}", link="where"),
    ] = ""  # fmt: skip
    survey_across: Annotated[
        str, Option("across", "The number on the horizontal axis of the dots.", pattern=NAME, link="across")
    ] = "confidence"  # fmt: skip
    survey_up: Annotated[
        str, Option("up", "The number on the vertical axis of the dots.", pattern=NAME, link="up")
    ] = "mean_entropy"
    survey_measure: Annotated[
        str, Option("measure", "What is measured of each head.", pattern=NAME, link="of_heads")
    ] = "concentration"
    survey_list: Annotated[
        Literal["high", "elsewhere", "all", "changed"],
        Option("list", "Which photos are listed.", link="photos"),
    ] = "high"
    survey_second: Annotated[
        str,
        Option(
            "compared with",
            "Another survey of the same photos, by its name: which heads moved, and which photos changed their answer.",
            pattern=r"[^\x00-\x1f]{0,200}",
            link="compared_with",
        ),
    ] = ""


@dataclass(frozen=True)
class LessonTabOptions(Options):
    """Of the Lesson tab."""

    beat: Annotated[
        str,
        Option("beat", "Where the lesson is; nothing: at its beginning.", pattern=r"|[a-z]+-[a-z0-9]{1,30}", link="beat"),
    ] = ""  # fmt: skip
    full: Annotated[
        bool, Option("full screen", "Whether the lesson takes all of the screen.", link="full")
    ] = False
    step: Annotated[
        int,
        Option("step", "In links of earlier versions: a step of the Walkthrough, from 1, now a beat.", low=0, high=8, link="step"),
    ] = 0  # fmt: skip
