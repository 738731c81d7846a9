"""How edits are written: tokens and layers in words ("class", "2-4,3-5+7,1"; "3-5+8"), and arguments of `vit_viz.edit` as words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch

GROUPS = ("patches", "registers", "everything")
"""Words for many tokens at once."""

MOST = 4096
"""Of patches in a region, and of heads or layers that are named at once."""


def region_of(text: str) -> str:
    """Tokens in words, in one way of writing them."""
    text = text.strip()
    if text in GROUPS or re.fullmatch(r"[a-z]+( \d{1,4})?", text):
        return text
    return _region_words(places_of(text))


def places_of(text: str) -> list[tuple[int, int]]:
    """The patches (row, col) of "2-4,3-5+7,1"."""
    places: set[tuple[int, int]] = set()
    for part in text.split("+"):
        match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?,(\d{1,3})(?:-(\d{1,3}))?", part.strip())
        if match is None:
            raise ParameterError(
                f"Tokens are a name such as class, or patches such as 2,3 or 2-4,3-5, not {text.strip()[:40]!r}."
            )
        rows, cols = (range(int(a), int(b or a) + 1) for a, b in ((match[1], match[2]), (match[3], match[4])))
        if not rows or not cols or len(rows) * len(cols) > MOST:
            raise ParameterError(f"A region has 1 to {MOST} patches; {part.strip()[:40]!r} has not.")
        places |= {(row, col) for row in rows for col in cols}
    if len(places) > MOST:
        raise ParameterError(f"A region has 1 to {MOST} patches, not {len(places)}.")
    return sorted(places)


def _region_words(places: list[tuple[int, int]]) -> str:
    """Patches as `places_of` reads them: runs of columns, over as many rows as they go on."""
    columns: dict[int, list[int]] = defaultdict(list)
    for row, col in places:
        columns[row].append(col)
    parts: list[tuple[int, int, str]] = []  # first row, last row, columns
    for row in sorted(columns):
        cols = ranges_of(columns[row])
        if parts and parts[-1][1:] == (row - 1, cols):
            parts[-1] = (parts[-1][0], row, cols)
        else:
            parts.append((row, row, cols))
    return "+".join(
        f"{first}-{last},{run}" if last > first else f"{first},{run}"
        for first, last, cols in parts
        for run in cols.split("+")
    )


def numbers_of(text: str) -> list[int]:
    """Layers of "3-5+8", sorted."""
    layers: set[int] = set()
    for part in text.split("+"):
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ParameterError(f"Layers are numbers such as 3-5 or 3+8, not {text[:40]!r}.")
        layers |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return sorted(layers)


def ranges_of(numbers: Iterable[int]) -> str:
    """Sorted numbers as `numbers_of` reads them."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "+".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


# --- arguments of edit

_EXAMPLE = "{'heads': {(3, 1): 0, (5, 2): 'mean'}, 'temperature': {7: 0.5}}"


def words_of(arguments: Mapping[str, Any]) -> list[str]:
    """The words for arguments of `edit`: heads, temperature, knockout, and mask_keys by layer.

    Raises:
        ParameterError: there is no such argument, or words cannot say it: another factor of a head, values that differ between
            images, or tokens that are removed from the pooling, too.
    """
    told: list[str] = []
    for name, value in arguments.items():
        if name not in _WORDS:
            raise ParameterError(
                f"Edits as a dict have {', '.join(_WORDS)}, such as {_EXAMPLE}, not {name!r:.40}."
            )
        try:
            told += _WORDS[name]({} if value is None else value)
        except ParameterError:
            raise
        except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise ParameterError(
                f"Edits as a dict are as vit_viz.edit takes them for one image, such as {_EXAMPLE}; {name!r} is not."
            ) from error
    return told


def _heads(heads: Mapping[tuple[int, int], Any]) -> Iterator[str]:
    for (layer, head), value in heads.items():
        state = value if isinstance(value, str) else {0.0: "off", 1.0: ""}.get(float(value))
        if state not in ("off", "mean", "uniform", ""):
            raise ParameterError(
                f"Edits turn a head off (0) or make it 'mean' or 'uniform', not {value!r:.40}; any factor can be set by "
                "`with vit_viz.edit(...)` around the call."
            )
        if state:
            yield f"{state} {layer}.{head}"


def _temperature(temperature: Mapping[int, Any]) -> Iterator[str]:
    return (f"temperature {layer}={float(value):g}" for layer, value in temperature.items())


def _knockout(knockout: Mapping[int, Any]) -> Iterator[str]:
    layers: dict[tuple[int, int], list[str]] = defaultdict(list)
    for layer, edges in knockout.items():
        for i, j in edges.nonzero().tolist() if isinstance(edges, Tensor) else edges:
            layers[int(i), int(j)].append(str(layer))
    return (f"forbid token {i}>token {j}@{'+'.join(where)}" for (i, j), where in layers.items())


def _mask_keys(masked: Any) -> Iterator[str]:
    if not isinstance(masked, Mapping):
        raise ParameterError(
            "Edits mask keys by layer, such as {'mask_keys': {3: [5, 6]}}; tokens that are removed everywhere, and from the "
            "pooling, are for `with vit_viz.edit(...)` around the call."
        )
    for layer, tokens in masked.items():
        chosen = np.asarray(torch.as_tensor(tokens).cpu())
        for token in np.flatnonzero(chosen) if chosen.dtype == bool else chosen.tolist():
            yield f"forbid everything>token {int(token)}@{layer}"


_WORDS: dict[str, Callable[[Any], Iterator[str]]] = {
    "heads": _heads,
    "temperature": _temperature,
    "knockout": _knockout,
    "mask_keys": _mask_keys,
}
