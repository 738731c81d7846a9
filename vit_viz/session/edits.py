"""Edits of a model: a value that can be part of a key, a link, a command, and a line of JSON.

As words, in statements joined by ";":

    off 3.1 4.0                 these heads (layer.head) say nothing: their output is zero
    mean 5.2                    a head says to every token the mean over tokens of what it would say
    uniform 6.0                 a head looks alike at all tokens that it may see
    temperature 7=0.5           the scores of layer 7 are divided by 0.5, which sharpens its attention
    forbid class>2-4,3-5@6-8    the class token no longer sees the patches of rows 2-4 and columns 3-5, in layers 6 to 8

Tokens are named as in a query, or "patches", "registers", "everything", or "token 5" by their number; patches are row,col with
ranges, joined by "+".
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from vit_viz.capture import Trace
from vit_viz.capture.interventions import Edits
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.indices import checked_index
from vit_viz.lazy import Tensor, torch

Head: TypeAlias = tuple[int, int]
"""(layer, head)."""

HeadState = Literal["off", "mean", "uniform"]

GROUPS = ("patches", "registers", "everything")
"""Words for many tokens at once."""
MOST = 4096
"""Of patches in a region, and of heads or layers that are named at once."""
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.01, 100.0
_LONGEST = 16_000  # characters, as of a link
_SPOKEN: dict[HeadState, tuple[str, str]] = {
    "off": ("off", "off"),
    "mean": ("at its mean", "at their mean"),
    "uniform": ("uniform", "uniform"),
}


@dataclass(frozen=True, order=True)
class Forbidden:
    """Some tokens no longer see some others.

    Args:
        seeing: the tokens that look, in words.
        seen: the tokens that they no longer see.
        layers: where; () is everywhere.
    """

    seeing: str
    seen: str
    layers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.seeing}>{self.seen}" + (f"@{ranges_of(self.layers)}" if self.layers else "")

    @property
    def is_by_place(self) -> bool:
        """Whether it names patches by their place or number, which means something on one grid only."""
        return any(region[0].isdigit() or region.startswith("token ") for region in (self.seeing, self.seen))


@dataclass(frozen=True)
class ModelEdits:
    """All changes of a model, in one order whatever order they were given in; nothing that changes nothing.

    Args:
        heads: ((layer, head), what it is now).
        temperatures: (layer, T): its scores are divided by T.
        forbidden: which tokens no longer see which.
    """

    heads: tuple[tuple[Head, HeadState], ...] = ()
    temperatures: tuple[tuple[int, float], ...] = ()
    forbidden: tuple[Forbidden, ...] = ()

    def __post_init__(self) -> None:
        _refuse_twice([f"Head {head} of layer {layer}" for (layer, head), _ in self.heads])
        _refuse_twice([f"The temperature of layer {layer}" for layer, _ in self.temperatures])
        for layer, value in self.temperatures:
            if not (math.isfinite(value) and LOWEST_TEMPERATURE <= value <= HIGHEST_TEMPERATURE):
                raise ParameterError(
                    f"The temperature of layer {layer} is a number from {LOWEST_TEMPERATURE:g} to {HIGHEST_TEMPERATURE:g}, not "
                    f"{value:g}."
                )
        changed = tuple((layer, float(f"{value:g}")) for layer, value in self.temperatures if value != 1)
        object.__setattr__(self, "heads", tuple(sorted(self.heads)))
        object.__setattr__(self, "temperatures", tuple(sorted(changed)))
        object.__setattr__(self, "forbidden", tuple(sorted(set(self.forbidden))))

    @classmethod
    def parse(cls, value: object) -> ModelEdits:
        """Read words, a list of statements as JSON has them, or arguments of `vit_viz.edit` as a dict."""
        if isinstance(value, ModelEdits):
            return value
        if isinstance(value, Mapping):
            value = _words_of(value)
        elif isinstance(value, AbstractContextManager):
            raise ParameterError(
                "What vit_viz.edit returns goes around the call, `with vit_viz.edit(...):`; edits= takes its arguments as a dict."
            )
        statements = value.split(";") if isinstance(value, str) else value
        if not isinstance(statements, list | tuple) or not all(isinstance(one, str) for one in statements):
            raise ParameterError("Edits are words such as 'off 3.1;temperature 7=0.5', or a list of them.")
        if sum(map(len, statements)) > _LONGEST:
            raise ParameterError(f"Edits have at most {_LONGEST} characters.")
        parts = [_statement(one) for one in statements if one.strip()]
        return ModelEdits(
            tuple(one for part in parts for one in part.heads),
            tuple(one for part in parts for one in part.temperatures),
            tuple(one for part in parts for one in part.forbidden),
        )

    @property
    def words(self) -> tuple[str, ...]:
        """Statements that `parse` reads as the same, in one order."""
        statements = []
        for state in get_args(HeadState):
            if chosen := [f"{layer}.{head}" for (layer, head), now in self.heads if now == state]:
                statements.append(" ".join((state, *chosen)))
        if self.temperatures:
            statements.append(
                " ".join(("temperature", *(f"{layer}={t:g}" for layer, t in self.temperatures)))
            )
        return (*statements, *(f"forbid {one}" for one in self.forbidden))

    def __str__(self) -> str:
        return ";".join(self.words)

    def __bool__(self) -> bool:
        return bool(self.heads or self.temperatures or self.forbidden)

    @property
    def sentence(self) -> str:
        """What is changed, in a few words: "3 heads off, temperature of layer 7"."""
        parts = []
        for state, (one, many) in _SPOKEN.items():
            if count := sum(now == state for _, now in self.heads):
                parts.append(f"1 head {one}" if count == 1 else f"{count} heads {many}")
        if self.temperatures:
            of = [str(layer) for layer, _ in self.temperatures]
            parts.append(f"temperature of {'layer' if len(of) == 1 else 'layers'} {', '.join(of)}")
        if self.forbidden:
            parts.append(
                "1 view forbidden" if len(self.forbidden) == 1 else f"{len(self.forbidden)} views forbidden"
            )
        return ", ".join(parts)

    @property
    def singles(self) -> tuple[ModelEdits, ...]:
        """Each change by itself."""
        heads = [ModelEdits(heads=(one,)) for one in self.heads]
        temperatures = [ModelEdits(temperatures=(one,)) for one in self.temperatures]
        return (*heads, *temperatures, *(ModelEdits(forbidden=(one,)) for one in self.forbidden))

    def without(self, other: ModelEdits) -> ModelEdits:
        """What is left when these are undone."""
        return ModelEdits(
            tuple(one for one in self.heads if one not in other.heads),
            tuple(one for one in self.temperatures if one not in other.temperatures),
            tuple(one for one in self.forbidden if one not in other.forbidden),
        )

    @property
    def on_any_grid(self) -> ModelEdits:
        """What still means the same on another grid of patches."""
        return replace(self, forbidden=tuple(one for one in self.forbidden if not one.is_by_place))

    @property
    def layers(self) -> frozenset[int] | None:
        """Layers whose attention is changed; None where all may be."""
        if any(not one.layers for one in self.forbidden):
            return None
        named = {layer for (layer, _), _ in self.heads} | {layer for layer, _ in self.temperatures}
        return frozenset(named.union(*(one.layers for one in self.forbidden)))

    def touches(self, layer: int) -> bool:
        """Whether the attention of a layer is changed, or what its heads say."""
        return bool(self) and (self.layers is None or layer in self.layers)

    def of(self, trace: Trace) -> Edits:
        """The same for the model of a trace, as its passes are changed by."""
        named = [layer for (layer, _), _ in self.heads] + [layer for layer, _ in self.temperatures]
        for layer in (*named, *(layer for one in self.forbidden for layer in one.layers)):
            checked_index("Layer", layer, trace.num_layers)
        for (_, head), _ in self.heads:
            checked_index("Head", head, trace.num_heads)
        zero_or: dict[HeadState, float | str] = {"off": 0.0, "mean": "mean", "uniform": "uniform"}
        heads = {place: zero_or[state] for place, state in self.heads}
        return Edits(heads, _masks(self.forbidden, trace), None, dict(self.temperatures))


EditsLike: TypeAlias = ModelEdits | str | Sequence[str] | Mapping[str, Any]
"""Edits, their words, a list of statements, or arguments of `vit_viz.edit` as a dict: {"heads": {(3, 1): 0}}."""


# --- for a model


def _masks(forbidden: Iterable[Forbidden], trace: Trace) -> dict[int, Tensor]:
    """By layer, which edges are forbidden, Boolean [tokens, tokens]; layers with the same edges share one tensor."""
    by_layer: dict[int, list[Forbidden]] = defaultdict(list)
    for one in forbidden:
        for layer in one.layers or range(trace.num_layers):
            by_layer[layer].append(one)
    masks: dict[tuple[Forbidden, ...], Tensor] = {}
    for layer, chosen in by_layer.items():
        if tuple(chosen) not in masks:
            masks[tuple(chosen)] = _mask(chosen, trace.layout, layer)
    return {layer: masks[tuple(chosen)] for layer, chosen in by_layer.items()}


def _mask(forbidden: Iterable[Forbidden], layout: TokenLayout, layer: int) -> Tensor:
    mask = torch.zeros(layout.num_tokens, layout.num_tokens, dtype=torch.bool)
    for one in forbidden:
        seeing, seen = (_tokens(region, layout) for region in (one.seeing, one.seen))
        mask[torch.tensor(seeing)[:, None], torch.tensor(seen)] = True
    blind = mask.all(1).nonzero().flatten().tolist()
    if blind:
        name = layout.name(blind[0])
        raise ParameterError(
            f"Every token has to see at least one, but {name} would see none in layer {layer}: forbid less."
        )
    return mask


def _tokens(region: str, layout: TokenLayout) -> list[int]:
    if region == "everything":
        return list(range(layout.num_tokens))
    if region == "patches":
        return list(range(layout.num_tokens))[layout.patch_slice]
    if region == "registers":
        registers = [layout.token(name) for name in layout.named if name.startswith("register")]
        if not registers:
            raise ParameterError("This model has no registers.")
        return registers
    if region.startswith("token ") and region not in layout.named:
        return [checked_index("Token", int(region.removeprefix("token ")), layout.num_tokens)]
    if not region[0].isdigit():
        return [layout.token(region)]
    return [layout.token(place) for place in places_of(region)]


# --- words


def _statement(text: str) -> ModelEdits:
    kind, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    if kind not in _READERS or not rest:
        raise ParameterError(
            f"An edit is 'off 3.1', 'mean 3.1', 'uniform 3.1', 'temperature 7=0.5' or 'forbid class>2,3', not {text[:40]!r}."
        )
    return _READERS[kind](kind, rest)


def _heads(kind: str, rest: str) -> ModelEdits:
    heads = []
    for word in rest.split():
        match = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", word)
        if match is None:
            raise ParameterError(f"A head is layer.head, such as 3.1, not {word[:40]!r}.")
        heads.append(((int(match[1]), int(match[2])), kind))
    return ModelEdits(heads=tuple(heads))  # type: ignore[arg-type]  # the kind is one of the readers' names


def _temperature(_kind: str, rest: str) -> ModelEdits:
    values = []
    for word in rest.split():
        match = re.fullmatch(r"(\d{1,4})=(\d{1,4}(?:\.\d{1,20})?)", word)
        if match is None:
            raise ParameterError(f"A temperature is layer=value, such as 7=0.5, not {word[:40]!r}.")
        values.append((int(match[1]), float(match[2])))
    return ModelEdits(temperatures=tuple(values))


def _forbid(_kind: str, rest: str) -> ModelEdits:
    match = re.fullmatch(r"([^>@]+)>([^>@]+)(?:@([0-9+-]+))?", rest)
    if match is None:
        raise ParameterError(
            f"What is forbidden is seeing>seen, such as class>2-4,3-5@6-8, not {rest[:40]!r}."
        )
    layers = numbers_of(match[3]) if match[3] else []
    return ModelEdits(forbidden=(Forbidden(region_of(match[1]), region_of(match[2]), tuple(layers)),))


_READERS: dict[str, Callable[[str, str], ModelEdits]] = {
    **dict.fromkeys(get_args(HeadState), _heads),
    "temperature": _temperature,
    "forbid": _forbid,
}


def _refuse_twice(names: list[str]) -> None:
    if len(names) > MOST:
        raise ParameterError(f"At most {MOST} heads or layers can be edited at once.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ParameterError(f"{name} is edited twice; please name it once.")
        seen.add(name)


# --- tokens and layers in words ("class", "2-4,3-5+7,1"; "3-5+8")


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


def _words_of(arguments: Mapping[str, Any]) -> list[str]:
    """The words for arguments of `edit`: heads, temperature, knockout, and mask_keys by layer."""
    words: list[str] = []
    for name, value in arguments.items():
        if name not in _ARGUMENTS:
            raise ParameterError(
                f"Edits as a dict have {', '.join(_ARGUMENTS)}, such as {_EXAMPLE}, not {name!r:.40}."
            )
        try:
            words += _ARGUMENTS[name]({} if value is None else value)
        except ParameterError:
            raise
        except (ArithmeticError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise ParameterError(
                f"Edits as a dict are as vit_viz.edit takes them for one image, such as {_EXAMPLE}; {name!r} is not."
            ) from error
    return words


def _heads_in_words(heads: Mapping[tuple[int, int], Any]) -> Iterator[str]:
    for (layer, head), value in heads.items():
        state = value if isinstance(value, str) else {0.0: "off", 1.0: ""}.get(float(value))
        if state not in ("off", "mean", "uniform", ""):
            raise ParameterError(
                f"Edits turn a head off (0) or make it 'mean' or 'uniform', not {value!r:.40}; any factor can be set by "
                "`with vit_viz.edit(...)` around the call."
            )
        if state:
            yield f"{state} {layer}.{head}"


def _temperature_in_words(temperature: Mapping[int, Any]) -> Iterator[str]:
    return (f"temperature {layer}={float(value):g}" for layer, value in temperature.items())


def _knockout_in_words(knockout: Mapping[int, Any]) -> Iterator[str]:
    layers: dict[tuple[int, int], list[str]] = defaultdict(list)
    for layer, edges in knockout.items():
        for i, j in edges.nonzero().tolist() if isinstance(edges, Tensor) else edges:
            layers[int(i), int(j)].append(str(layer))
    return (f"forbid token {i}>token {j}@{'+'.join(where)}" for (i, j), where in layers.items())


def _mask_keys_in_words(masked: Any) -> Iterator[str]:
    if not isinstance(masked, Mapping):
        raise ParameterError(
            "Edits mask keys by layer, such as {'mask_keys': {3: [5, 6]}}; tokens that are removed everywhere, and from the "
            "pooling, are for `with vit_viz.edit(...)` around the call."
        )
    for layer, tokens in masked.items():
        chosen = np.asarray(torch.as_tensor(tokens).cpu())
        for token in np.flatnonzero(chosen) if chosen.dtype == bool else chosen.tolist():
            yield f"forbid everything>token {int(token)}@{layer}"


_ARGUMENTS: dict[str, Callable[[Any], Iterator[str]]] = {
    "heads": _heads_in_words,
    "temperature": _temperature_in_words,
    "knockout": _knockout_in_words,
    "mask_keys": _mask_keys_in_words,
}


NO_EDITS = ModelEdits()
