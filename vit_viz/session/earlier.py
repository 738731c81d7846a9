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
        name, said["parameters"] = _TODAY.get(name, _as_it_is)(name, dict(parameters))
    return said | {"question": name}


def _as_it_is(name: str, parameters: Fields) -> tuple[str, Fields]:
    return _NAMES.get(name, name.replace(" ", "_") if name in _WITH_SPACES else name), parameters


def _look(_name: str, parameters: Fields) -> tuple[str, Fields]:
    if "norm_weighted" in parameters:
        parameters["norm"] = parameters.pop("norm_weighted")
    return "look", parameters | {"head": str(parameters.get("head", "mean"))}


def _explain(_name: str, parameters: Fields) -> tuple[str, Fields]:
    name, options = parameters.pop("method", ""), parameters.pop("options", ())
    pairs = options if isinstance(options, list) else []
    return name, parameters | {
        pair[0]: pair[1] for pair in pairs if isinstance(pair, list) and len(pair) == 2
    }


def _positions(_name: str, parameters: Fields) -> tuple[str, Fields]:
    return "positions", {key: _text(value) for key, value in parameters.items() if value is not None}


def _on_a_grid(name: str, parameters: Fields) -> tuple[str, Fields]:
    grid = parameters.pop("grid", None)
    rows, cols = grid if isinstance(grid, list) and len(grid) == 2 else (0, 0)
    return name.replace(" ", "_"), parameters | {"rows": rows, "cols": cols}


def _layer_similarity(_name: str, parameters: Fields) -> tuple[str, Fields]:
    form = {True: "without bias", False: "biased"}.get(parameters.pop("debiased", None), "as patches need")
    return "layer_similarity", parameters | {"form": form}


def _links(_name: str, parameters: Fields) -> tuple[str, Fields]:
    return "links", parameters | {"head": str(parameters.get("head", "mean"))}


def _segments(_name: str, parameters: Fields) -> tuple[str, Fields]:
    boxes = parameters.pop("boxes", None)
    return "segments", parameters | ({"box": _text(boxes[0])} if isinstance(boxes, list) and boxes else {})


def _text(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


_NAMES = {"received image": "sequence", "lens": "logit_lens", "register": "added_register"}
_WITH_SPACES = (
    *("head names", "head importance", "token similarity", "token change", "token components", "token norms"),
    "filter components",
)
_TODAY: dict[str, Callable[[str, Fields], tuple[str, Fields]]] = {
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
