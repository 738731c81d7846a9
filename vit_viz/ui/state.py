"""What one visitor looks at: a frozen value that the address bar holds and every view reads.

`ViewState.from_address` never fails: whatever a link asks for that is not possible falls back, with one sentence that says so.
What depends on the model (does layer 9 exist?) is checked by `fitted`, when the model and the image are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, TokenLayout, format_query, parse_query
from vit_viz.images import Mode

Tab = Literal["look", "explain", "positions", "patches", "walkthrough"]
Fusion = Literal["mean", "max", "min"]
Direction = Literal["row", "column"]
Scale = Literal["shared", "layer", "own"]
Places = Literal["image", "trained"]
Table = Literal["viridis", "magma", "cividis", "gray"]
Ruler = Literal["own", "share"]

_LONGEST = 16_000
_MANY_PATCHES = 1024
_LINK_NAMES = {"query": "q", "direction": "dir", "table": "colors"}  # the explorer writes the same names
_OPTION_NAMES = {link: option for option, link in _LINK_NAMES.items()}


@dataclass(frozen=True)
class ViewState:
    """One view of one image in one model.

    Args:
        model: name of the model; "" means the session's default.
        image: name of a sample, or the id of an upload; "" means the first sample.
        layer: block that is looked at; None means one in the last third.
        head: one head, or how heads are fused.
        query: the pinned query as `format_query` writes it; "" means what the model's output is read from.
        direction: row ("looks at") or column ("is looked at by").
        mask: share of the mass that a DINO mass mask keeps, in [0, 1]; 0 means no mask.
        method: the map of the Explain tab that is looked at closely.
        target: the class that is explained, "291", or "291-292" for why the one and not the other; "" means the model's first.
        ruler: whether each map of the Explain tab has its own scale, or all are shares of their sum on one scale.
        share, fusion, discard, first, last: options of rollout; `last` is the last layer that takes part, -1 the model's last.
        numbers: whether the patches are numbered in the Patches tab.
        places: whether positions are shown on the grid of the image or on that of the training.
        step: step of the Walkthrough tab, from 1; play: the value of that step's own control, -1 its default.
        notes: sentences about what a link asked for and did not get; never in a link.
        heard: number of the explorer's last event that is in this view; sent back, so that it can tell an echo of an older one.
        awaits_upload: the link is to a picture that is not here; once it is brought, the rest of the link still holds.
        turn: counts the user's actions, so that an answer to an older one can be recognised; never in a link.
    """

    model: str = ""
    image: str = ""
    mode: Mode = "fit"
    tab: Tab = "look"
    layer: int | None = None
    head: int | Fusion = "mean"
    query: str = ""
    direction: Direction = "row"
    scale: Scale = "shared"
    alpha: float = 0.55
    table: Table = "viridis"
    smooth: bool = False
    mask: float = 0.0
    norm: bool = False
    method: str = "relevance"
    target: str = ""
    ruler: Ruler = "own"
    share: float = 0.5
    fusion: Fusion = "mean"
    discard: float = 0.0
    first: int = 0
    last: int = -1
    numbers: bool = False
    places: Places = "image"
    step: int = 1
    play: int = -1
    notes: tuple[str, ...] = ()
    awaits_upload: bool = False
    turn: int = 0
    heard: int = 0

    @classmethod
    def from_address(cls, search: str) -> tuple[ViewState, tuple[str, ...]]:
        """Read the part of an address after the question mark: the view, and one sentence for each thing that was refused."""
        view, problems = cls(), []
        try:
            pairs = parse_qsl(search.lstrip("?")[:_LONGEST], max_num_fields=100)
        except ValueError:
            return view, ("The link holds more options than a view has; it was not read.",)
        for name, text in pairs:
            try:
                view = view.with_options({_OPTION_NAMES.get(name, name): text})
            except ParameterError as error:
                problems.append(str(error))
        return view, tuple(problems)

    def to_link(self) -> dict[str, str | None]:
        """Every option under its name in a link; None for what is at its default and can be left out."""
        link: dict[str, str | None] = {}
        for field in fields(self):
            if field.name in _READERS:
                value = getattr(self, field.name)
                name = _LINK_NAMES.get(field.name, field.name)
                link[name] = None if value == field.default else _written(value)
        return link

    def to_address(self) -> str:
        """The view as the part of an address after the question mark."""
        return urlencode({name: text for name, text in self.to_link().items() if text is not None})

    def with_options(self, options: Mapping[str, Any]) -> ViewState:
        """A copy with these options, given as text or as JSON values; names that are not options of a view are ignored.

        Raises:
            ParameterError: a value is not possible; the message names the option.
        """
        read = {name: _READERS[name](name, value) for name, value in options.items() if name in _READERS}
        return replace(self, **read)

    def next_turn(self, **changes: Any) -> ViewState:
        """A copy after one more action of the user."""
        defaults: dict[str, Any] = {"notes": (), "awaits_upload": False, "turn": self.turn + 1}
        return replace(self, **(defaults | changes))

    def on_subject(self, **changes: Any) -> ViewState:
        """A copy for another model, image or mode: a query by position means nothing there and falls back."""
        kept = self.query if self.query and not self.query[0].isdigit() else ""
        target = self.target if set(changes) == {"mode"} else ""  # another image, or other classes
        return self.next_turn(query=kept, target=target, **changes)

    def query_of(self, layout: TokenLayout) -> Query:
        """The query that is pinned; the model's own where none is."""
        return parse_query(self.query) if self.query else layout.default_query

    def fitted(self, *, layers: int, heads: int, layout: TokenLayout) -> tuple[ViewState, tuple[str, ...]]:
        """The view as this model and image allow it, and one sentence for each thing that had to change."""
        changes: dict[str, Any] = {}
        problems: list[str] = []
        if self.layer is None:
            changes["layer"] = default_layer(layers)
        elif self.layer >= layers:
            changes["layer"] = default_layer(layers)
            problems.append(f"Layer {self.layer} does not exist: this model has layers 0-{layers - 1}.")
        if isinstance(self.head, int) and self.head >= heads:
            changes["head"] = "mean"
            problems.append(f"Head {self.head} does not exist: this model has heads 0-{heads - 1}.")
        try:
            if self.query and self.query != "pool":
                layout.weights(parse_query(self.query))
        except ParameterError as error:
            changes["query"] = ""
            problems.append(str(error))
        last = self.last if 0 <= self.last < layers else layers - 1
        changes |= {"last": last, "first": min(self.first, last)}
        return replace(self, **changes), tuple(problems)


def default_layer(layers: int) -> int:
    """A layer in the last third, where heads of a trained model tend to look at objects."""
    return min(layers - 1, (2 * layers + 1) // 3)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _text(name: str, value: Any) -> str:
    text = str(value)
    if len(text) > 200 or not text.isprintable():
        raise ParameterError(f"The {name} of this link is too long or not readable.")
    return text


def _choice(*options: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if str(value) not in options:
            raise ParameterError(f"The {name} is one of {', '.join(options)}, not {str(value)[:40]!r}.")
        return str(value)

    return read


def _whole(low: int, high: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            number = int(str(value))
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise ParameterError(
                f"The {name} is a whole number from {low} to {high}, not {str(value)[:40]!r}."
            )
        return number

    return read


def _number(low: float, high: float) -> Callable[[str, Any], float]:
    def read(name: str, value: Any) -> float:
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise ParameterError(f"The {name} is a number from {low:g} to {high:g}, not {str(value)[:40]!r}.")
        return round(number, 4)

    return read


def _switch(name: str, value: Any) -> bool:
    known = {"1": True, "true": True, "0": False, "false": False}
    if str(value).lower() not in known:
        raise ParameterError(f"The option {name} is 1 or 0, not {str(value)[:40]!r}.")
    return known[str(value).lower()]


def _head(_name: str, value: Any) -> int | str:
    if str(value) in get_args(Fusion):
        return str(value)
    return _whole(0, 4095)("head", value)


def _query(_name: str, value: Any) -> str:
    """A query as text, or as the explorer sends it: a name, [row, col], or [[row, col], ...]."""
    if value in ("", None):
        return ""
    if isinstance(value, str):
        value = parse_query(value[:_LONGEST])
    text = format_query(value)
    if text.count(";") >= _MANY_PATCHES:
        raise ParameterError(f"A region in a link has at most {_MANY_PATCHES} patches.")
    return text


def _target(_name: str, value: Any) -> str:
    """A class or a pair of them, as text."""
    text = str(value)
    parts = text.split("-")
    if text and not (len(parts) <= 2 and all(p.isascii() and p.isdigit() and len(p) <= 6 for p in parts)):
        raise ParameterError(
            f"The option target is a class like 291, or a pair like 291-292, not {text[:40]!r}."
        )
    return text


def _layer(_name: str, value: Any) -> int:
    return _whole(0, 4095)("layer", value)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "model": _text,
    "image": _text,
    "mode": _choice(*get_args(Mode)),
    "tab": _choice(*get_args(Tab)),
    "layer": _layer,
    "head": _head,
    "query": _query,
    "direction": _choice(*get_args(Direction)),
    "scale": _choice(*get_args(Scale)),
    "alpha": _number(0, 1),
    "table": _choice(*get_args(Table)),
    "smooth": _switch,
    "mask": _number(0, 1),
    "norm": _switch,
    "method": _text,
    "target": _target,
    "ruler": _choice(*get_args(Ruler)),
    "share": _number(0, 1),
    "fusion": _choice(*get_args(Fusion)),
    "discard": _number(0, 0.95),
    "first": _whole(0, 4095),
    "last": _whole(-1, 4095),
    "numbers": _switch,
    "places": _choice(*get_args(Places)),
    "step": _whole(1, 8),
    "play": _whole(-1, 65_535),
}
