"""Which function answers what can be read out of a trace or out of a model, by the name of the analysis in a request."""

from __future__ import annotations

from collections.abc import Callable

from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.components import token_components
from vit_viz.analyses.key_segments import key_segments
from vit_viz.analyses.links import links
from vit_viz.analyses.norms import token_norms
from vit_viz.analyses.position_tables import (
    filter_components,
    position_components,
    resampling,
    rotary_similarity,
)
from vit_viz.analyses.positions import place_similarity, position_similarity
from vit_viz.analyses.rollout import rollout
from vit_viz.analyses.tokens import token_change, token_similarity
from vit_viz.checkpoints import Model
from vit_viz.geometry import Grid
from vit_viz.session.answers import Answer, HeadMaps, HeadRows, PatchPlaces, top_classes
from vit_viz.session.explanations import LONG_ANALYSES
from vit_viz.session.walkthrough import LearnedInput

LOOK_UPS: dict[str, Callable[..., Answer]] = {
    "attention": attention_map,
    "rollout": rollout,
    "mosaic": HeadMaps.of,
    "rows": HeadRows.of,
    "patches": PatchPlaces.of,
    "links": links,
}
FIRST_LOOKS = frozenset({"rows"})
"""What the first picture is drawn from: it does not wait until it is known whether the layers are all of a model's attention."""

OF_TOKENS: dict[str, Callable[..., Answer]] = {
    "token similarity": token_similarity,
    "token change": token_change,
    "token components": token_components,
    "token norms": token_norms,
    "segments": key_segments,
}
"""What is read out of a trace that kept the residual stream."""


def _positions(loaded: Model, *, grid: Grid | None = None, place: str | Grid | None = None) -> Answer:
    """All pairs of positions, or those of one place."""
    matrix = position_similarity(loaded, grid=grid)
    return matrix if place is None else place_similarity(matrix, place)


OF_THE_MODEL: dict[str, Callable[..., Answer]] = {
    "positions": _positions,
    "resampling": resampling,
    "rotary similarity": rotary_similarity,
    "position components": position_components,
    "filter components": filter_components,
    "learned input": lambda loaded: LearnedInput.of(loaded.model),
}
OF_BOTH: dict[str, Callable[..., Answer]] = {"classes": top_classes}

FROM_THE_TRACE = (*LOOK_UPS, *OF_BOTH, "walkthrough")
"""What is read out of a trace, beside which it costs next to nothing."""

ANALYSES = (
    *("trace", "token trace", "received image"),
    *(*FROM_THE_TRACE, *OF_TOKENS, *OF_THE_MODEL, *LONG_ANALYSES),
)
"""Everything that can be asked of an engine."""
