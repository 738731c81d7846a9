"""Answers as arrays and as JSON, every number exactly, and how much memory they hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.answer import Provenance, arrays_of, parts_of
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model


def model_bytes(loaded: Model) -> int:
    """What a model holds."""
    return sum(t.nbytes for t in [*loaded.model.parameters(), *loaded.model.buffers()])


def answer_bytes(answer: object) -> int:
    """The memory of an answer: of a trace all that it records, of a result its arrays, and some for its words."""
    if isinstance(
        answer, Trace
    ):  # with the normalisers of its rows, which it forms and keeps when they are first needed
        return answer.nbytes + 4 * answer.num_layers * answer.num_heads * answer.num_tokens
    return 4096 + sum(int(array.nbytes) for array in arrays_of(answer).values())


def as_safetensors(answer: object, beside: Mapping[str, Any]) -> bytes:
    """The arrays of an answer, and what is said beside them, for `unpacked` in vit_viz/web/kit."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays_of(answer).items()}
    return save(arrays, {"vit_viz": json.dumps(beside, allow_nan=False)})


_TOP = 5  # places of an array that a summary names


def numbers_of(answer: object) -> dict[str, Any]:
    """Every array of an answer as nested lists; what fp32 holds, JSON's numbers hold to the last bit.

    Infinite numbers, which JSON does not have, are the texts "inf" and "-inf".
    """
    return {name: _listed(array) for name, array in arrays_of(answer).items()}


def facts_of(value: object) -> Any:
    """What of an answer is no array: units, names, captions, single numbers; arrays are left out."""
    if isinstance(value, Provenance):
        return value.to_dict()
    parts: Mapping[Any, object]
    if is_dataclass(value):
        parts = parts_of(value)
    elif isinstance(value, Mapping):
        parts = value
    elif isinstance(value, tuple | list):
        return [facts_of(one) for one in value if not isinstance(one, np.ndarray)]
    elif isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(value)
    else:
        return value if value is None or isinstance(value, bool | int | str) else str(value)
    return {str(name): facts_of(part) for name, part in parts.items() if not isinstance(part, np.ndarray)}


def summary_of(array: NDArray[Any]) -> dict[str, Any]:
    """An array in a few numbers: its shape, its ends, its sum, and where its largest values are."""
    values = np.asarray(array, np.float64)
    numbers = values[~np.isnan(values)] if not np.isnan(values).all() else values
    order = np.argsort(-values, axis=None, kind="stable")[:_TOP]
    places = [[int(i) for i in np.unravel_index(int(at), values.shape)] for at in order]
    return {
        "shape": list(values.shape),
        "min": facts_of(float(numbers.min())),
        "max": facts_of(float(numbers.max())),
        "total": facts_of(float(numbers.sum())),
        "top": [{"at": place, "value": facts_of(float(values[tuple(place)]))} for place in places],
    }


def provenance_in(answer: object) -> Provenance | None:
    """Where the numbers of an answer came from, as far as it says so itself."""
    if isinstance(answer, Provenance):
        return answer
    parts = () if isinstance(answer, tuple) else parts_of(answer).values()
    return next((provenance for part in parts if (provenance := provenance_in(part)) is not None), None)


def _listed(array: NDArray[Any]) -> Any:
    if np.isfinite(array).all():
        return array.tolist()
    return [_listed(row) for row in array] if array.ndim else facts_of(float(array))
