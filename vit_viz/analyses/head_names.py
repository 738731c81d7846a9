"""A name for each head, with the numbers that gave it: local, neighbour, global, positional, class-token reader, sink, content.

The names are words for measures (vit_viz.analyses.heads), not discoveries: each is given where one stated measure passes a stated
threshold, in a stated order, and says so. Means over several photos are steadier than one photo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.head_statistics import Measure
from vit_viz.analyses.spec import Place, asks
from vit_viz.answer import Answer, Provenance, Table
from vit_viz.errors import ParameterError
from vit_viz.results import HeadTable

Name = Literal[
    "class-token reader", "register or sink", "neighbour", "local", "content", "positional", "global", "mixed"
]

_BESIDE: dict[Measure, str] = {
    "left_neighbour": "left",
    "right_neighbour": "right",
    "upper_neighbour": "upper",
    "lower_neighbour": "lower",
}


@dataclass(frozen=True)
class Rule:
    """A name is given where all its numbers pass.

    Args:
        at_least, at_most: thresholds by number.
        sentence: what the name says of a head.
    """

    name: Name
    sentence: str
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)

    def holds(self, numbers: Mapping[str, float], *, slack: float = 0.0) -> bool:
        """Whether all numbers pass, with thresholds moved by a share of themselves: above 0 makes it easier."""
        return all(numbers[name] >= bound * (1 - slack) for name, bound in self.at_least.items()) and all(
            numbers[name] <= bound * (1 + slack) for name, bound in self.at_most.items()
        )


RULES = (
    Rule("class-token reader", "Patches look mostly at the class token.", {"class token": 0.5}),
    Rule(
        "register or sink",
        "Attention drains into registers or tokens with an outlying norm.",
        {"registers and sinks": 0.25},
    ),
    Rule("neighbour", "Patches look at the patch beside them, always on the same side.", {"neighbour": 0.2}),
    Rule("local", "Patches look at what is near them.", at_most={"distance": 0.2}),
    Rule("global", "Patches look at nearly everything alike.", at_most={"unevenness": 0.13}),
    Rule(
        "content",
        "Patches look at patches whose tokens are like their own, wherever these are.",
        {"content": 0.16},
    ),
    Rule(
        "positional",
        "Where patches look depends on the offset, and little on the photo.",
        {"positional": 0.5},
    ),
)
"""In the order in which they are tried: the first that holds names the head; where none does it is mixed.

The thresholds were set on ViT-Tiny and 120 photos, where what lies on the labelled object was looked at beside them
(benchmarks/head_names.py). The distance is in shares of the diagonal between the outermost patches; even attention has 0.4 on a
square grid. Unevenness is 1 - entropy.
"""

_FORMAT = {"content": ".2f", "unevenness": ".2f"}
"""How numbers are written that are no shares."""

MARGIN = 0.1
"""Where thresholds moved by this share give another name, the evidence is thin."""

NEEDED: tuple[Measure, ...] = (
    *("distance", "entropy", "prefix_mass", "class_mass", "positional_share"),
    *_BESIDE,
)
"""Measures without which no head is named. sink_share and content_correlation count where they are known."""


@dataclass(frozen=True, repr=False)
class HeadName(Answer):
    """What a head is called, and why.

    Args:
        name: see `RULES`; "mixed" where none holds.
        side: which neighbour: "left", "right", "upper" or "lower"; "" for other names.
        sentence: what the name says, with the number that decided and its threshold.
        numbers: all numbers that the rules read, by name.
        could_be: other names that thresholds moved by a tenth would give.
    """

    layer: int
    head: int
    name: Name
    side: str
    sentence: str
    numbers: Mapping[str, float]
    could_be: tuple[Name, ...]

    @property
    def is_thin(self) -> bool:
        """Whether the evidence is thin: no rule holds, or a threshold is close."""
        return self.name == "mixed" or bool(self.could_be)

    @property
    def label(self) -> str:
        """The name on the screen: "left neighbour"."""
        return f"{self.side} {self.name}".strip()


@dataclass(frozen=True, eq=False, repr=False)
class HeadNames(Answer):
    """A name for every head, with the numbers that the rules read.

    Args:
        heads: layer by layer.
        numbers: by name, [layers, heads] each.
    """

    heads: tuple[HeadName, ...]
    numbers: Mapping[str, NDArray[np.float32]]
    provenance: Provenance

    def to_table(self) -> Table:
        """Of each head its name, the side where it has one, and the numbers that decided."""
        rows = ((h.layer, h.head, h.name, h.side, *h.numbers.values()) for h in self.heads)
        return Table(("layer", "head", "name", "side", *self.numbers), rows)

    @classmethod
    def of(cls, tables: Mapping[Measure, HeadTable]) -> HeadNames:
        """From the measures of one photo; as `name_heads`."""
        heads = name_heads([tables])
        shape = next(iter(tables.values())).values.shape
        numbers = {
            name: np.array([head.numbers[name] for head in heads], np.float32).reshape(shape)
            for name in heads[0].numbers
        }
        provenance = next(iter(tables.values())).provenance
        return cls(heads, numbers, provenance.with_parameters(method="head_names", measure="all"))


def name_heads(photos: Sequence[Mapping[Measure, HeadTable]]) -> tuple[HeadName, ...]:
    """A name for every head, layer by layer, from its measures, averaged over the photos of which `head_tables` told them."""
    if not photos:
        raise ParameterError("Names of heads need the measures of at least one photo.")
    missing = [measure for measure in NEEDED if any(measure not in tables for tables in photos)]
    if missing:
        raise ParameterError(f"Names of heads need these measures too: {', '.join(missing)}.")
    numbers, sides = _numbers(photos)
    shape = next(iter(numbers.values())).shape
    return tuple(
        _named(layer, head, {name: float(values[layer, head]) for name, values in numbers.items()}, sides)
        for layer, head in np.ndindex(shape)
    )


def _named(layer: int, head: int, numbers: Mapping[str, float], sides: NDArray[np.str_]) -> HeadName:
    rule = _first(numbers, 0.0)
    name: Name = "mixed" if rule is None else rule.name
    others = [_first(numbers, slack) for slack in (-MARGIN, MARGIN)]
    names: list[Name] = ["mixed" if one is None else one.name for one in others]
    could_be = tuple(dict.fromkeys(other for other in names if other != name))
    side = str(sides[layer, head]) if name == "neighbour" else ""
    return HeadName(layer, head, name, side, _sentence(rule, numbers), numbers, could_be)


def _first(numbers: Mapping[str, float], slack: float) -> Rule | None:
    return next((rule for rule in RULES if rule.holds(numbers, slack=slack)), None)


def _sentence(rule: Rule | None, numbers: Mapping[str, float]) -> str:
    if rule is None:
        return "Nothing stands out: no measure passes its threshold."
    bounds = [(name, bound, "at least") for name, bound in rule.at_least.items()]
    bounds += [(name, bound, "at most") for name, bound in rule.at_most.items()]
    measured = ", ".join(
        f"{name} {numbers[name]:{_FORMAT.get(name, '.0%')}} ({words} {bound:{_FORMAT.get(name, '.0%')}})"
        for name, bound, words in bounds
    )
    return f"{rule.sentence} {measured[0].upper()}{measured[1:]}."


def _numbers(
    photos: Sequence[Mapping[Measure, HeadTable]],
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.str_]]:
    """The numbers that rules read, [layers, heads] each, and on which side the strongest neighbour is."""

    def mean(measure: Measure) -> NDArray[np.float64]:
        tables = [tables[measure] for tables in photos if measure in tables]
        if not tables:
            return np.zeros_like(photos[0]["entropy"].values, dtype=np.float64)
        scale = [table.value_range[1] if measure == "distance" else 1.0 for table in tables]
        values: NDArray[np.float64] = np.mean(
            [table.values.astype(np.float64) / one for table, one in zip(tables, scale, strict=True)], axis=0
        )
        return values

    beside = np.stack([mean(measure) for measure in _BESIDE])
    registers = mean("prefix_mass") - mean("class_mass")
    numbers = {
        "class token": mean("class_mass"),
        "registers and sinks": np.maximum(registers, mean("sink_share")),
        "neighbour": beside.max(0),
        "distance": mean("distance"),
        "content": mean("content_correlation"),
        "positional": mean("positional_share"),
        "unevenness": 1 - mean("entropy"),
    }
    return numbers, np.array(list(_BESIDE.values()))[beside.argmax(0)]


HEAD_NAMES = asks(
    lambda job: HeadNames.of(job.answer_of("head_tables").tables),
    name="head_names",
    label="Names of heads",
    also_called="types of heads, kinds of heads, head roles, what each head does",
    shows="a name for each head, such as local or content, with the numbers that gave it.",
    hides="what else a head does: names are words for a few measures on one photo, with thresholds set by hand.",
    formula="the first rule whose numbers all pass their thresholds",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929; Darcet et al. 2024, arXiv:2309.16588",
    class_blind=True,
    reads="image",
    place=Place("heads", {"face": "atlas"}),
    forwards=1,
)
