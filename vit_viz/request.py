"""What is asked of a session, and how much memory an answer takes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args

import numpy as np

from vit_viz.analyses.faithfulness import RandomBand
from vit_viz.capture import Trace
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.explaining import Explanations, Trust, WithoutPatches
from vit_viz.images import Mode
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix

Result = (
    PatchMap | HeadTable | TokenMatrix | Ranking | Curve | Explanations | RandomBand | Trust | WithoutPatches
)

MOST_PATCHES = 4096
"""Of an input whose size the checkpoint sets; mode "fit" has a bound of its own."""


@dataclass(frozen=True)
class Request:
    """What is asked, completely: the cache key and, in words, the provenance of the answer.

    Args:
        model: name of a model as `load` takes it.
        image: name of a sample, or the id of an upload.
        mode: how the image becomes the model's input.
        analysis: name of the analysis, one of `Session.analyses`.
        parameters: pairs (name, value), sorted; every value hashable.
        owner: whose uploads may be read; not part of the result.
    """

    model: str
    image: str
    mode: Mode = "fit"
    analysis: str = "attention"
    parameters: tuple[tuple[str, Hashable], ...] = ()
    owner: str = ""

    @classmethod
    def of(
        cls, model: str, image: str, analysis: str, *, mode: Mode = "fit", owner: str = "", **parameters: Any
    ) -> Request:
        """Build a request from keyword parameters; lists become tuples, so that it can be a key."""
        pairs = tuple(sorted((name, _hashable(value)) for name, value in parameters.items()))
        return cls(model, image, mode, analysis, pairs, owner)


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if not isinstance(value, Hashable):
        raise ParameterError(f"A parameter cannot be of type {type(value).__name__}.")
    return value


def check_mode(loaded: LoadedModel, mode: Mode) -> None:
    """Refuse a mode that does not exist, or an input of a size that a stranger's checkpoint sets without measure."""
    if mode not in get_args(Mode):
        raise ParameterError(f"A mode is one of {', '.join(get_args(Mode))}, not {mode!r}.")
    (height, width), (tall, wide) = loaded.preprocess.input_size, loaded.preprocess.patch_size
    count = -(-height // tall) * -(-width // wide)
    if mode != "fit" and count > MOST_PATCHES:
        raise ParameterError(
            f"The input of this model, {height} x {width} pixels, has {count} patches, more than the {MOST_PATCHES} that are "
            "computed here; choose the size 'fit'."
        )


def is_about(key: Hashable, digest: str) -> bool:
    """Whether what is kept under a key was made from a picture."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(part == digest or (isinstance(part, Request) and part.image == digest) for part in parts)


def model_bytes(loaded: LoadedModel) -> int:
    """What a model holds."""
    return sum(t.nbytes for t in [*loaded.model.parameters(), *loaded.model.buffers()])


def trace_bytes(recorded: Trace) -> int:
    """What a trace holds, with the normalisers of its rows, which it forms and keeps when they are first needed."""
    return recorded.nbytes + 4 * recorded.num_layers * recorded.num_heads * recorded.num_tokens


def result_bytes(result: Result) -> int:
    """What a result holds: its arrays, and some for its words."""
    return 4096 + _array_bytes(result)


def _array_bytes(value: object) -> int:
    """Bytes of all arrays in a value, its fields and its entries."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, Mapping):
        return sum(_array_bytes(part) for part in value.values())
    if is_dataclass(value):
        return sum(_array_bytes(getattr(value, field.name)) for field in fields(value))
    return sum(_array_bytes(part) for part in value) if isinstance(value, tuple) else 0
