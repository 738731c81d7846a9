"""Requests: one question about one subject, as a value that can be a key, a link and a line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias, get_args

from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.images import Mode
from vit_viz.images.part import Part, checked_part, part_size
from vit_viz.prompts import NO_PROMPTS, Prompts
from vit_viz.session.edits import NO_EDITS, ModelEdits

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | Callable[[Any], Any] | None"

Size = tuple[int, int]

MOST_PATCHES = 4096
"""Of an input whose size the checkpoint sets; mode "fit" has a bound of its own."""


@dataclass(frozen=True)
class Subject:
    """What is asked about: one image in one model, and the visitor who may see it.

    Args:
        model: name of a model as `load` takes it.
        image: name of a sample, or the id of an upload; "" for what is about the model alone.
        mode: how the image becomes the model's input.
        owner: whose uploads may be read; two subjects that differ in it alone are equal.
        size: short side of that input in patches; 0 is the checkpoint's own.
        part: of the image, in pixels (top, left, height, width), looked at in place of the whole; None is the whole.
        edits: of the model's inside; equal ones are one key in whatever order they were given.
        prompts: sentences that are its classes, of a model with a text tower.
    """

    model: str
    image: str
    mode: Mode = "fit"
    owner: str = field(default="", compare=False)
    size: int = field(default=0, kw_only=True)
    part: Part | None = field(default=None, kw_only=True)
    edits: ModelEdits = field(default=NO_EDITS, kw_only=True)
    prompts: Prompts = field(default=NO_PROMPTS, kw_only=True)

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ParameterError(f"A mode is one of {', '.join(get_args(Mode))}, not {self.mode!r}.")
        if type(self.size) is not int or self.size < 0:
            raise ParameterError(f"A size is a whole number of patches, not {str(self.size)[:40]!r}.")
        if self.part is not None:
            object.__setattr__(self, "part", checked_part(self.part))

    def request(self, question: str, **parameters: Any) -> Request:
        """A question about this subject; lists become tuples, so that it can be a key."""
        return Request(self, question, _pairs(parameters))

    @property
    def photo(self) -> Subject:
        """The photo or the part of it alone, whatever model looks at it."""
        return Subject("", self.image, owner=self.owner, part=self.part)


@dataclass(frozen=True)
class Request:
    """What is asked, completely: the cache key and, in words, the provenance of the answer.

    Args:
        subject: what it is about.
        question: its name in `vit_viz.analyses.registry`, or that of a part of which answers are made.
        parameters: pairs (name, value), sorted by name; values are None, text, finite numbers, tuples of these, and a function
            as the target.
    """

    subject: Subject
    question: str = "look"
    parameters: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.parameters]
        if names != sorted(set(names)):
            raise ParameterError("The parameters of a request are sorted by name, and each is given once.")
        for name, value in self.parameters:
            if not (name == "target" and callable(value)):
                _check_value(value)

    @classmethod
    def of(
        cls, model: str, image: str, question: str, *, mode: Mode = "fit", owner: str = "", **parameters: Any
    ) -> Request:
        """Build a request about a whole image at the checkpoint's own size from keyword parameters."""
        return Subject(model, image, mode, owner).request(question, **parameters)

    @property
    def owner(self) -> str:
        """Whose uploads may be read; no part of the key, nor of the JSON."""
        return self.subject.owner

    def about(self, question: str, **parameters: Any) -> Request:
        """Another question about the same subject, by the same owner."""
        return replace(self, question=question, parameters=_pairs(parameters))

    def of_picture(self, image: str) -> Request:
        """The same question about another image, by nobody in particular."""
        return replace(self, subject=replace(self.subject, image=image, owner=""))

    def to_json(self) -> str:
        """The request as one JSON object, without its owner."""
        if any(callable(value) for _, value in self.parameters):
            raise ParameterError(
                "A function as the target cannot be written into a file or a link; vit_viz.run(...).save(...) saves its answer."
            )
        fields = asdict(self.subject) | {"question": self.question, "parameters": dict(self.parameters)}
        fields["edits"] = list(self.subject.edits.words)
        del fields["owner"]
        fields |= fields.pop("prompts")
        return json.dumps(fields, allow_nan=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Request:
        """The request that `to_json` wrote; whose it is never says the text."""
        try:
            fields_ = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ParameterError("A request is a JSON object.") from error
        if not isinstance(fields_, dict) or set(_LATER | fields_) != _JSON_FIELDS:
            raise ParameterError(f"A request is a JSON object with {', '.join(sorted(_JSON_FIELDS))}.")
        fields_ = _LATER | fields_
        named = {name: fields_[name] for name in ("model", "image", "mode", "question")}
        if not all(isinstance(value, str) for value in named.values()):
            raise ParameterError(f"{', '.join(named)} of a request are texts.")
        if not isinstance(fields_["edits"], list) or not isinstance(fields_["parameters"], dict):
            raise ParameterError("The parameters of a request are a JSON object, and its edits a list.")
        edits, question = ModelEdits.parse(fields_["edits"]), named.pop("question")
        prompts = Prompts(fields_["sentences"], fields_["templates"])
        subject = Subject(**named, size=fields_["size"], part=fields_["part"], edits=edits, prompts=prompts)
        return cls(subject, question, _pairs(fields_["parameters"]))


_LATER: dict[str, Any] = {"size": 0, "part": None, **asdict(NO_PROMPTS)}
"""What requests did not have from the beginning: one that was written before reads as the same."""
_JSON_FIELDS = {"model", "image", "mode", "edits", "question", "parameters", *_LATER}


def _pairs(parameters: Mapping[str, Any]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted((name, _as_tuples(value)) for name, value in parameters.items()))


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


def _check_value(value: object) -> None:
    """Refuse what cannot be written as JSON and read back as the same."""
    if isinstance(value, tuple):
        for item in value:
            _check_value(item)
    elif not (value is None or isinstance(value, str | bool | int | float)):
        raise ParameterError(f"A parameter cannot be of type {type(value).__name__}.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"A parameter is a finite number, not {value}.")


def check_input(loaded: Model, subject: Subject, whole: Size, *, max_patches: int) -> None:
    """Refuse an input of more patches than are computed here, or of fewer than the checkpoint's own.

    Args:
        whole: (height, width) of the picture.
        max_patches: of a size that is chosen; what a checkpoint sets without measure has a bound of its own.
    """
    recipe, mode = loaded.preprocess, subject.mode
    picture = part_size(subject.part, whole)
    if subject.size:
        if subject.size < recipe.short_side:
            raise ParameterError(
                f"The short side has at least the {recipe.short_side} patches of the checkpoint's own size, not {subject.size}."
            )
        recipe.grid(*picture, mode=mode, size=subject.size, max_patches=max_patches)
        return
    (height, width), (tall, wide) = recipe.input_size, recipe.patch_size
    count = -(-height // tall) * -(-width // wide)
    if recipe.mode_for(*picture, mode=mode) != "fit" and count > MOST_PATCHES:
        raise ParameterError(
            f"The input of this model, {height} x {width} pixels, has {count} patches, more than the {MOST_PATCHES} that are "
            "computed here; choose the size 'fit'."
        )


def is_about(key: Hashable, digest: str) -> bool:
    """Whether what is kept under a key was made from a picture."""
    if isinstance(key, tuple):
        return any(is_about(part, digest) for part in key)
    return digest == (key.subject.image if isinstance(key, Request) else key)
