"""The view of one visitor: a frozen value that the address bar holds and every tab reads.

`ViewState.from_address` never fails: whatever a link asks for that is not possible falls back, with one sentence that says so.
What depends on the model (does layer 9 exist?) is checked by `fitted`, when the model and the image are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar, get_args
from urllib.parse import parse_qsl, urlencode

from vit_viz.analyses.attention import AttentionOptions, HeadFusion
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.opening import first_of_last_third
from vit_viz.analyses.options import OptionField, Options, read_choice, read_whole
from vit_viz.errors import ParameterError
from vit_viz.figures.request import DrawingOptions
from vit_viz.geometry import Query, TokenLayout, format_query, parse_query
from vit_viz.images import Mode
from vit_viz.images.part import format_part, parse_part
from vit_viz.images.preprocess import MAX_INPUT_SIDE
from vit_viz.prompts import Prompts
from vit_viz.session.edits import ModelEdits
from vit_viz.views import tab_options
from vit_viz.views.panel import Panel, is_of_panel

SomeOptions = TypeVar("SomeOptions", bound=Options)


class _Group(Generic[SomeOptions]):
    """Options of a view that belong to no method, under the name of what they are about; no method bears it."""

    def __init__(self, name: str, kind: type[SomeOptions]) -> None:
        self.name, self.kind = name, kind

    def __get__(self, view: ViewState, _owner: type[ViewState]) -> SomeOptions:
        chosen = view.options_of(self.name)
        assert isinstance(chosen, self.kind)
        return chosen


_LONGEST = 16_000
_MANY_PATCHES = 1024
RENAMED_TABS = {"walkthrough": "lesson"}
"""What tabs are called in links of earlier versions."""


@dataclass(frozen=True)
class ViewState:
    """One view of one image in one model.

    Args:
        model: name of the model; "" means the session's default.
        image: name of a sample, or the id of an upload; "" means the first sample.
        size: short side of the model's input in patches; 0 means the checkpoint's own.
        part: of the image, looked at in place of the whole, as `format_part` writes it; "" means the whole.
        edits: of the model's inside, in the words of `ModelEdits`; "" for none.
        sentences: that are the classes of a model with a text tower, " | " between them; "" for its own.
        templates: how they are read, likewise; "" for as they are.
        layer: block that is looked at; None means one in the last third.
        head: one head, or how heads are fused.
        query: the pinned query as `format_query` writes it; "" means what the model's output is read from.
        method: the map of the Explain tab that is looked at closely.
        target: the class that is explained, "291", or "291-292" for why the one and not the other; "" means the model's first.
        options: pairs (name, options), sorted, of the groups and the methods whose options are not all at their defaults.
        panel: the question that is looked at by itself, in front of the tab; None for none.
        awaits_upload: the link is to a picture that is not here; once it is brought, the rest of it still holds. Never in a link.
    """

    model: str = ""
    image: str = ""
    mode: Mode = "fit"
    size: int = 0
    part: str = ""
    edits: str = ""
    sentences: str = ""
    templates: str = ""
    tab: str = "look"
    layer: int | None = None
    head: int | HeadFusion = "mean"
    query: str = ""
    method: str = METHODS.usual.name
    target: str = ""
    options: tuple[tuple[str, Options], ...] = ()
    panel: Panel | None = None
    awaits_upload: bool = False

    attention = _Group("look", AttentionOptions)
    drawing = _Group("drawing", DrawingOptions)
    mosaic = _Group("mosaic", tab_options.LookTabOptions)
    explain = _Group("explain", tab_options.ExplainTabOptions)
    heads = _Group("heads", tab_options.HeadsTabOptions)
    matrix = _Group("matrix", tab_options.MatrixTabOptions)
    positions = _Group("positions", tab_options.PositionsTabOptions)
    tokens = _Group("tokens", tab_options.TokensTabOptions)
    patches = _Group("patches", tab_options.PatchesTabOptions)
    survey = _Group("survey", tab_options.SurveyTabOptions)
    lesson = _Group("lesson", tab_options.LessonTabOptions)

    @classmethod
    def from_address(cls, search: str) -> tuple[ViewState, tuple[str, ...]]:
        """Read the part of an address after the question mark: the view, and one sentence for each thing that was refused."""
        try:
            pairs = parse_qsl(search.lstrip("?")[:_LONGEST], max_num_fields=100)
        except ValueError:
            return cls(), ("The link holds more options than a view has; it was not read.",)
        panel, panel_problems = Panel.from_link({name: text for name, text in pairs if is_of_panel(name)})
        view, problems = cls(panel=panel), list(panel_problems)
        for name, text in pairs:
            try:
                view = view.with_options({name: text})
            except ParameterError as error:
                problems.append(str(error))
        return view, tuple(problems)

    def to_link(self) -> dict[str, str | None]:
        """Every option under its name in a link; None for what is at its default and can be left out."""
        link: dict[str, str | None] = {}
        for field in fields(self):
            if field.name in _READERS:
                value = getattr(self, field.name)
                link[IN_LINKS[field.name]] = None if value == field.default else written(value)
        for name, (owner, option) in link_options().items():
            value = getattr(self.options_of(owner), option.name)
            link[name] = None if value == option.default else written(value)
        return link | (
            {name: written(value) for name, value in self.panel.to_link().items()} if self.panel else {}
        )

    def to_address(self) -> str:
        """The view as the part of an address after the question mark."""
        return urlencode({name: text for name, text in self.to_link().items() if text is not None})

    def with_options(self, options: Mapping[str, Any]) -> ViewState:
        """A copy with these options, given as text or as JSON values; names that are not options of a view are ignored."""
        options = {"query" if name == "q" else name: value for name, value in options.items()}
        read = {name: _READERS[name](name, value) for name, value in options.items() if name in _READERS}
        view, options_by_name = replace(self, **read), _known_options()
        for name, value in options.items():
            if name in options_by_name:
                owner, option = options_by_name[name]
                words = option.in_words if owner in GROUPS else METHODS[owner].option_in_words(option)
                view = view.with_option(owner, option.name, option.read(words, value))
        return view

    def options_of(self, owner: str) -> Options:
        """The options of a group or a method."""
        chosen = dict(self.options).get(owner)
        return _options_type(owner)() if chosen is None else chosen

    def with_option(self, owner: str, name: str, value: object) -> ViewState:
        """A copy with one option of a group or a method changed; whatever is at its defaults is left out."""
        options = dict(self.options) | {owner: replace(self.options_of(owner), **{name: value})}
        return replace(self, options=tuple(sorted((k, v) for k, v in options.items() if v.changed())))

    def held(self, name: str) -> str | None:
        """What the view has under a name of links, as text; None where links have no such name."""
        options_by_name = _known_options()
        if name in options_by_name:
            owner, option = options_by_name[name]
            return written(getattr(self.options_of(owner), option.name))
        return written(getattr(self, name)) if name in _READERS else None

    def on_subject(self, **changes: Any) -> ViewState:
        """A copy for another model, image, mode, size or part: a query by position means nothing there, nor do patches taken away.

        A part belongs to its image. The size does to the shape of what is looked at, and begins again where that is another one.
        Edits belong to the model; those that name patches by their place belong to the grid.
        """
        kept = self.query if self.query and not self.query[0].isdigit() else ""
        is_same = set(changes) <= {"mode", "size"} or (self.sentences and "model" not in changes)
        target = (
            self.target if is_same else ""
        )  # of another photo the first class; a sentence stays the one that was written
        again: dict[str, Any] = {"part": ""} if "image" in changes else {}
        if {"model", "image", "part"} & set(changes):
            again |= {"size": 0}
        again["edits"] = "" if "model" in changes else str(ModelEdits.parse(self.edits).on_any_grid)
        again |= {"sentences": "", "templates": ""} if "model" in changes else {}
        return replace(self, query=kept, target=target, **(again | changes)).with_option(
            "explain", "gone", ""
        )

    @property
    def about(self) -> str:
        """What all tabs show, as text: equal for equal model, image, mode, size, part, edits and sentences."""
        return f"{self.model}|{self.image}|{self.mode}|{self.size}|{self.part}|{self.edits}|{self.sentences}|{self.templates}"

    def query_of(self, layout: TokenLayout) -> Query:
        """The query that is pinned; the model's own where none is."""
        return parse_query(self.query) if self.query else layout.default_query

    def fitted(self, *, layers: int, heads: int, layout: TokenLayout) -> tuple[ViewState, tuple[str, ...]]:
        """The view as this model and image allow it, and one sentence for each thing that had to change."""
        changes: dict[str, Any] = {}
        problems: list[str] = []
        if self.layer is None:
            changes["layer"] = first_of_last_third(layers)
        elif self.layer >= layers:
            changes["layer"] = first_of_last_third(layers)
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
        return replace(self, **changes), tuple(problems)


GROUPS: dict[str, type[Options]] = {
    group.name: group.kind for group in vars(ViewState).values() if isinstance(group, _Group)
}
"""By the names that pairs in `ViewState.options` have for them."""


def link_options() -> dict[str, tuple[str, OptionField]]:
    """Every option of a group or a method by its name in links, with the name of that group or method."""
    owners = [*GROUPS, *METHODS]
    return {
        field.link_name(owner): (owner, field) for owner in owners for field in _options_type(owner).schema()
    }


def _known_options() -> dict[str, tuple[str, OptionField]]:
    """The same, and those of groups by the name of their field too."""
    own = {field.name: (group, field) for group, kind in GROUPS.items() for field in kind.schema()}
    return own | link_options()


def _options_type(owner: str) -> type[Options]:
    return GROUPS[owner] if owner in GROUPS else METHODS[owner].options


def written(value: Any) -> str:
    """A value as links have it."""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _text(name: str, value: Any) -> str:
    text = str(value)
    if len(text) > 200 or not text.isprintable():
        raise ParameterError(f"The {name} of this link is too long or not readable.")
    return text


def _tab(name: str, value: Any) -> str:
    text = _text(name, value)
    return RENAMED_TABS.get(text, text)


def _head(_name: str, value: Any) -> int | str:
    if str(value) in get_args(HeadFusion):
        return str(value)
    return read_whole("head", value, 0, 4095)


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
        raise ParameterError(f"The target is a class like 291, or a pair like 291-292, not {text[:40]!r}.")
    return text


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "model": _text,
    "image": _text,
    "mode": lambda name, value: read_choice(name, value, get_args(Mode)),
    "size": lambda name, value: read_whole(name, value, 0, MAX_INPUT_SIDE),
    "part": lambda _, value: format_part(parse_part(str(value)[:40])) if value else "",
    "edits": lambda _, value: str(ModelEdits.parse(value or "")),
    "sentences": lambda _, value: str(Prompts(str(value or ""))),
    "templates": lambda _, value: Prompts(templates=str(value or "")).template_words,
    "tab": _tab,
    "layer": lambda name, value: read_whole(name, value, 0, 4095),
    "head": _head,
    "query": _query,
    "method": _text,
    "target": _target,
}
IN_LINKS = {name: "q" if name == "query" else name for name in _READERS}
"""What the fields of a view are called in links, beside the options."""
