"""What an engine answers, and how much memory that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.ablation import CausalMap
from vit_viz.analyses.attention import (
    Direction,
    check_layer,
    mosaic_maps,
    weighted_columns,
    weighted_rows,
)
from vit_viz.analyses.components import TokenComponents
from vit_viz.analyses.faithfulness import RandomBand
from vit_viz.analyses.head_names import HeadNames
from vit_viz.analyses.heads import HeadTables
from vit_viz.analyses.lens import Lens
from vit_viz.analyses.links import Links
from vit_viz.analyses.norms import TokenNorms
from vit_viz.analyses.position_tables import (
    FilterComponents,
    PositionComponents,
    Resampling,
    RotarySimilarity,
)
from vit_viz.analyses.registers import AddedRegister
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.images import Mode
from vit_viz.results import (
    Curve,
    HeadTable,
    PatchMap,
    Ranking,
    Segments,
    StateMatrix,
    TokenMaps,
    TokenMatrix,
)
from vit_viz.session.explanations import Explanations, Trust, WithoutPatches
from vit_viz.session.walkthrough import LearnedInput, Step

__all__ = [
    "Answer",
    "HeadMaps",
    "HeadRows",
    "PatchPlaces",
    "ReceivedImage",
    "Result",
    "answer_bytes",
    "answers_classes",
    "arrays_of",
    "model_bytes",
    "top_classes",
    "trace_bytes",
]

OfTokens = TokenMaps | StateMatrix | Segments | TokenNorms | TokenComponents | Lens | AddedRegister
OfHeads = HeadTables | HeadNames | CausalMap
OfPositions = Resampling | RotarySimilarity | PositionComponents | FilterComponents
Result = (
    PatchMap
    | HeadTable
    | TokenMatrix
    | Ranking
    | Curve
    | Links
    | Explanations
    | RandomBand
    | Trust
    | WithoutPatches
    | OfTokens
    | OfHeads
    | OfPositions
)
"""What a visitor sees and saves."""


@dataclass(frozen=True, eq=False)
class HeadMaps:
    """The same query in every head of every layer: raw attention weights, [layers, heads, rows, cols]."""

    values: NDArray[np.float32]

    @classmethod
    def of(cls, trace: Trace, *, query: Query, direction: Direction) -> HeadMaps:
        """Read out of a trace."""
        return cls(mosaic_maps(trace, query=query, direction=direction))


@dataclass(frozen=True, eq=False)
class HeadRows:
    """One query in every head of one layer, over all tokens: raw attention weights, [heads, tokens]."""

    values: NDArray[np.float32]

    @classmethod
    def of(cls, trace: Trace, *, layer: int, query: Query, direction: Direction) -> HeadRows:
        """Read out of a trace."""
        gather = weighted_rows if direction == "row" else weighted_columns
        rows = gather(trace, check_layer(trace, layer), trace.query_weights(query))
        return cls(rows.float().cpu().numpy())


@dataclass(frozen=True, eq=False)
class PatchPlaces:
    """Where each patch lies on the photo: (top, left, bottom, right), [rows, cols, 4]; beyond its edges where it was padded."""

    values: NDArray[np.float32]
    unit: str = "pixels of the photo"

    @classmethod
    def of(cls, trace: Trace, *, numbers: bool = False) -> PatchPlaces:  # noqa: ARG003 - `numbers` are of the picture
        """Of a recorded photo.

        Raises:
            ParameterError: the trace does not know its photo.
        """
        if trace.crop_box is None:
            raise ParameterError("This trace is of pixels, not of a photo: it does not know where they lie.")
        rows, cols = grid = trace.layout.grid
        places = [[trace.crop_box.patch_rect(row, col, grid) for col in range(cols)] for row in range(rows)]
        return cls(np.array(places, np.float32))


@dataclass(frozen=True, eq=False)
class ReceivedImage:
    """The input of a model as a picture, its normalisation undone: bytes [height, width] or [height, width, 3]."""

    values: NDArray[np.uint8]

    @classmethod
    def of(
        cls, loaded: Model, picture: Image.Image, *, mode: Mode, size: int, max_patches: int | None
    ) -> ReceivedImage:
        """What a model receives of a picture; see `Preprocess.apply`."""
        recipe = loaded.preprocess
        prepared = recipe.apply(picture, mode=mode, size=size, max_patches=max_patches)
        return cls(np.asarray(recipe.reverse(prepared.pixels)))

    @property
    def picture(self) -> Image.Image:
        """As a picture, mode RGB or L."""
        return Image.fromarray(self.values)


def answers_classes(loaded: Model, recorded: Trace) -> bool:
    """Whether what a model said in a recorded pass are scores of classes."""
    return recorded.logits is not None and loaded.has_classes


def top_classes(loaded: Model, recorded: Trace, *, count: int = 5) -> Ranking:
    """The most probable classes with their probability.

    Raises:
        ParameterError: the model has no classes.
    """
    if recorded.logits is None or not loaded.has_classes:
        raise ParameterError(f"{loaded.name} has no classes: what it returns is no answer in words.")
    shares = torch.softmax(recorded.logits.float(), dim=-1)
    scores, indices = shares.topk(min(count, shares.numel()))
    best = tuple(int(index) for index in indices)
    names = tuple(loaded.labels.name(index) if loaded.labels else f"class {index}" for index in best)
    edits = dict(recorded.provenance.parameters).get("edits")
    provenance = loaded.provenance.with_parameters(edits=edits) if edits else loaded.provenance
    return Ranking(names, scores.cpu().numpy(), "probability", "top classes", provenance, best)


def arrays_of(answer: object) -> dict[str, NDArray[np.float32]]:
    """Every array of an answer by its name: "values", or "faithfulness.deletion.y" where results stand within results."""
    if isinstance(answer, np.ndarray):
        return {"": answer}
    if is_dataclass(answer):
        parts: Mapping[str, object] = {field.name: getattr(answer, field.name) for field in fields(answer)}
    elif isinstance(answer, Mapping):
        parts = answer
    else:
        parts = {str(place): part for place, part in enumerate(answer)} if isinstance(answer, tuple) else {}
    return {
        f"{name}.{inner}".rstrip("."): array
        for name, part in parts.items()
        for inner, array in arrays_of(part).items()
    }


Answer = Result | Trace | HeadMaps | HeadRows | PatchPlaces | ReceivedImage | LearnedInput | Step
"""A result, or what pictures and the walkthrough are drawn from."""


def model_bytes(loaded: Model) -> int:
    """What a model holds."""
    return sum(t.nbytes for t in [*loaded.model.parameters(), *loaded.model.buffers()])


def trace_bytes(recorded: Trace) -> int:
    """What a trace holds, with the normalisers of its rows, which it forms and keeps when they are first needed."""
    return recorded.nbytes + 4 * recorded.num_layers * recorded.num_heads * recorded.num_tokens


def answer_bytes(answer: Answer) -> int:
    """What an answer holds: a trace all that it records, a result its arrays, and some for its words."""
    return (
        trace_bytes(answer)
        if isinstance(answer, Trace)
        else 4096 + sum(int(array.nbytes) for array in arrays_of(answer).values())
    )
