"""The arrays of answers, and how much memory answers hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.capture import Trace
from vit_viz.checkpoints import Model


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


def model_bytes(loaded: Model) -> int:
    """What a model holds."""
    return sum(t.nbytes for t in [*loaded.model.parameters(), *loaded.model.buffers()])


def trace_bytes(recorded: Trace) -> int:
    """What a trace holds, with the normalisers of its rows, which it forms and keeps when they are first needed."""
    return recorded.nbytes + 4 * recorded.num_layers * recorded.num_heads * recorded.num_tokens


def answer_bytes(answer: object) -> int:
    """What an answer holds: a trace all that it records, a result its arrays, and some for its words."""
    return (
        trace_bytes(answer)
        if isinstance(answer, Trace)
        else 4096 + sum(int(array.nbytes) for array in arrays_of(answer).values())
    )
