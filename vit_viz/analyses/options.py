"""The options of an analysis: a frozen dataclass whose fields say what they do, what is possible, and what links call them.

Type and default stand with the field, everything else in its annotation:

    @dataclass(frozen=True)
    class RolloutOptions(Options):
        discard: Annotated[float, Option("discard ratio", "Share of ...", low=0, high=0.95, step=0.05)] = 0.0

Controls, links and requests are derived from that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field as of_class, fields, make_dataclass, replace
from functools import lru_cache
from inspect import signature
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from vit_viz.errors import ParameterError
from vit_viz.sentences import spelled

SomeOptions = TypeVar("SomeOptions", bound="Options")


@dataclass(frozen=True)
class Option:
    """What is said of one option beside its type and its default.

    Args:
        label: what its control is called.
        sentence: what it does.
        low: smallest value, of a number.
        high: largest value, of a number.
        step: between the values that a control offers, of a number with decimals; None: about a hundredth of its range.
        link: its name in links; "" means "<method>.<field>".
        is_layer: whether it is the index of a layer, of which a control offers those that the model has; negative ones count
            from the last.
        pattern: regular expression of all that it may be, of a text without a list of choices.
        is_place: whether another value is another place on the page, to which the browser's Back leads.
        is_list: whether a text is names with commas between them, which may also be given as a list.
    """

    label: str
    sentence: str
    low: float = 0
    high: float = 1
    step: float | None = None
    link: str = ""
    is_layer: bool = False
    pattern: str = ""
    is_place: bool = False
    is_list: bool = False


@dataclass(frozen=True)
class OptionField:
    """One option with all that is known of it.

    Args:
        name: of the field.
        kind: type of its values: float, int, bool, or str where it has choices or a pattern.
        default: value where none is chosen.
        choices: all values there are, of a text.
        option: what its annotation says.
    """

    name: str
    kind: type
    default: Any
    choices: tuple[str, ...]
    option: Option

    @property
    def in_words(self) -> str:
        """What errors call it where people know it by its control."""
        return f"option “{self.option.label}”"

    @property
    def step(self) -> float:
        """Between the values that a control offers: as declared, or 1, 2 or 5 of a decimal place, and 50 to 100 steps in all.

        Never less than what `read` tells apart.
        """
        if self.option.step is not None:
            return self.option.step
        least = max((self.option.high - self.option.low) / 100, 1e-4)
        place = 10.0 ** math.floor(math.log10(least))
        return next(round(place * times, 9) for times in (1, 2, 5, 10) if place * times > least * (1 - 1e-9))

    def link_name(self, method: str) -> str:
        """What links call this option of a method."""
        return self.option.link or f"{method}.{self.name}"

    def read(self, name: str, value: object) -> Any:
        """The value from text or from JSON, a number to four digits after the point; an error calls it by `name`."""
        option = self.option
        if self.choices:
            return read_choice(name, value, self.choices)
        if self.kind is int:
            return read_whole(name, value, int(option.low), int(option.high))
        text, called = str(value), f"The {spelled(name)}"
        if self.kind is str:
            if self.option.is_list and isinstance(value, list | tuple):
                text = ",".join(map(str, value))
            if not re.fullmatch(option.pattern, text):
                raise ParameterError(f"{called} cannot be {text[:40]!r}. {option.sentence}")
            return text
        if self.kind is bool:
            booleans = {"1": True, "true": True, "0": False, "false": False}
            if text.lower() not in booleans:
                raise ParameterError(f"{called} is 1 or 0, not {text[:40]!r}.")
            return booleans[text.lower()]
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not option.low <= number <= option.high:
            raise ParameterError(
                f"{called} is a number from {option.low:g} to {option.high:g}, not {text[:40]!r}."
            )
        return round(number, 4)

    def check(self, value: object) -> None:
        """Raise ParameterError unless this is a possible value of the right type."""
        if isinstance(value, str) != (self.kind is str) or isinstance(value, bool) != (self.kind is bool):
            raise ParameterError(f"The {self.option.label} cannot be {value!r}.")
        self.read(self.option.label, value)


@dataclass(frozen=True)
class Options:
    """The options of an analysis, each within its range."""

    def __post_init__(self) -> None:
        for field in self.schema():
            field.check(getattr(self, field.name))

    @classmethod
    def schema(cls) -> tuple[OptionField, ...]:
        """Every option, in the order of the fields."""
        return _schema(cls)  # type: ignore[arg-type]  # mypy takes the __hash__ of instances for that of the class

    @classmethod
    def of(cls: type[SomeOptions], pairs: Iterable[tuple[str, Any]]) -> SomeOptions:
        """From pairs (name, value); what is not named has its default."""
        values, names = dict(pairs), [field.name for field in cls.schema()]
        for name in values:
            if name not in names:
                raise ParameterError(f"There is no option {name!r} here; there are: {', '.join(names)}.")
        return cls(**values)

    def changed(self) -> tuple[tuple[str, Hashable], ...]:
        """Pairs (name, value) of what is not at its default."""
        pairs = [(field, getattr(self, field.name)) for field in self.schema()]
        return tuple((field.name, value) for field, value in pairs if value != field.default)

    def for_layers(self: SomeOptions, count: int) -> SomeOptions:
        """The same options in one way of writing them for a model of so many layers: -1 is its last, -2 the one before.

        A layer that the model does not have stays as it is.
        """
        layers = {field.name: getattr(self, field.name) for field in self.schema() if field.option.is_layer}
        return replace(self, **{name: i + count for name, i in layers.items() if -count <= i < 0})

    def values(self) -> dict[str, Any]:
        """Every option by its name."""
        return {field.name: getattr(self, field.name) for field in self.schema()}


@dataclass(frozen=True)
class NoOptions(Options):
    """Of an analysis that has nothing to choose."""


def options_of(function: Callable[..., Any]) -> type[Options]:
    """The options that a function declares in its signature: parameters with `Annotated[type, Option(...)]` and a default."""
    own = [
        (name, one.annotation, of_class(default=one.default))
        for name, one in signature(function).parameters.items()
        if str(one.annotation).startswith("Annotated[")
    ]
    names = {"__module__": function.__module__, "__doc__": f"The options of {function.__name__}."}
    made: type[Options] = make_dataclass(
        function.__name__, own, bases=(Options,), namespace=names, frozen=True
    )
    return made


@lru_cache(maxsize=256)
def _schema(cls: type[Options]) -> tuple[OptionField, ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple(_described(field.name, hints[field.name], field.default) for field in fields(cls))


def _described(name: str, hint: Any, default: Any) -> OptionField:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"The option {name!r} needs Annotated[type, Option(...)].")
    kind, option = get_args(hint)[:2]
    choices = get_args(kind)  # of a Literal
    return OptionField(name, str if choices else kind, default, choices, option)


# --- one value from text or JSON


def read_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """One of some words, which may also be written with spaces, as the sentence has them."""
    text = str(value)
    by_spelling = {spelled(choice): choice for choice in choices} | {choice: choice for choice in choices}
    if text not in by_spelling:
        there = ", ".join(map(spelled, choices))
        raise ParameterError(f"The {spelled(name)} is one of {there}, not {text[:40]!r}.")
    return by_spelling[text]


def read_whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number within a range."""
    try:
        number = int(str(value))
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise ParameterError(
            f"The {spelled(name)} is a whole number from {low} to {high}, not {str(value)[:40]!r}."
        )
    return number
