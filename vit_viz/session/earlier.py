"""Requests in files that were saved before questions had one name everywhere, read as those of today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]


def as_today(fields: Mapping[str, Any]) -> Fields:
    """A request whose question is called "analysis", and whose parameters have other names, as it is written now.

    What it does not know stays as it is, and is refused by whoever reads it.
    """
    said = dict(fields)
    name, parameters = said.pop("analysis"), said.get("parameters")
    if isinstance(parameters, dict) and isinstance(name, str):
        parameters = dict(parameters)
        today = parameters.pop("method", "") if name == "explain" else _NAMES.get(name, name)
        read = _PARAMETERS.get(name)
        name, said["parameters"] = today, parameters if read is None else read(parameters)
    return said | {"question": name}


def _look(parameters: Fields) -> Fields:
    if "norm_weighted" in parameters:
        parameters["norm"] = parameters.pop("norm_weighted")
    return _links(parameters)


def _explain(parameters: Fields) -> Fields:
    options = parameters.pop("options", ())
    pairs = options if isinstance(options, list) else []
    return parameters | {pair[0]: pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2}


def _positions(parameters: Fields) -> Fields:
    return {key: _text(value) for key, value in parameters.items() if value is not None}


def _on_a_grid(parameters: Fields) -> Fields:
    grid = parameters.pop("grid", None)
    rows, cols = grid if isinstance(grid, list) and len(grid) == 2 else (0, 0)
    return parameters | {"rows": rows, "cols": cols}


def _layer_similarity(parameters: Fields) -> Fields:
    form = {True: "without bias", False: "biased"}.get(parameters.pop("debiased", None), "as patches need")
    return parameters | {"form": form}


def _links(parameters: Fields) -> Fields:
    return parameters | {"head": str(parameters.get("head", "mean"))}


def _segments(parameters: Fields) -> Fields:
    boxes = parameters.pop("boxes", None)
    return parameters | ({"box": _text(boxes[0])} if isinstance(boxes, list) and boxes else {})


def _text(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


_WITH_SPACES = (
    *("head names", "head importance", "token similarity", "token change", "token components", "token norms"),
    *("filter components", "rotary similarity", "position components", "layer similarity"),
)
_NAMES = {
    "attention": "look",
    "received image": "sequence",
    "lens": "logit_lens",
    "register": "added_register",
    **{name: name.replace(" ", "_") for name in _WITH_SPACES},
}
_PARAMETERS: dict[str, Callable[[Fields], Fields]] = {
    "attention": _look,
    "explain": _explain,
    "positions": _positions,
    "resampling": _on_a_grid,
    "rotary similarity": _on_a_grid,
    "position components": _on_a_grid,
    "layer similarity": _layer_similarity,
    "links": _links,
    "segments": _segments,
}
