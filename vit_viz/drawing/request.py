"""What is asked of a drawing: the request for its numbers, and everything that turns them into a picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from vit_viz.drawing.options import DrawingOptions
from vit_viz.errors import ParameterError
from vit_viz.session.handles import Subject
from vit_viz.session.request import Request

Kind = Literal["map", "mosaic", "explain", "card", "patches", "numbered", "sequence"]
"""Of pictures, which lie over a photo or are made of one."""

FigureKind = Kind | Literal["positions", "result"]
"""Of figures: also all positions as small maps, and a result by itself."""


@dataclass(frozen=True)
class FigureRequest:
    """One picture, completely: two that are equal are drawn with the same pixels.

    Args:
        request: for the numbers that are drawn; its subject is the photo.
        kind: what is drawn of them; a result is drawn by itself, without the photo.
        drawing: how values become colours.
        beside: asks for the maps that share the scale of this one; None: it has a scale of its own.
        ringed: (layer, head) that a mosaic marks, or (row, col) of a map.
        title: first line of a figure; "" has the usual one.
        photo: what the photo is called; "" asks the session.

    Raises:
        ParameterError: there is no such kind.
    """

    request: Request
    kind: FigureKind = "map"
    drawing: DrawingOptions = field(default_factory=DrawingOptions)
    beside: Request | None = None
    ringed: tuple[int, int] | None = None
    title: str = ""
    photo: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("positions", "result"):
            check_kind(self.kind)

    @property
    def subject(self) -> Subject:
        """The photo in front of its model, and whose it is."""
        key = self.request.subject
        owner, size = self.request.owner, key.size
        return Subject(key.model, key.image, key.mode, owner, size=size, part=key.part, edits=key.edits)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the numbers are asked for with, by name."""
        return dict(self.request.parameters)

    def about(self, *, model: str, image: str, owner: str = "") -> FigureRequest:
        """The same of another model and photo."""

        def moved(request: Request) -> Request:
            return replace(request, subject=replace(request.subject, model=model, image=image), owner=owner)

        beside = None if self.beside is None else moved(self.beside)
        return replace(self, request=moved(self.request), beside=beside)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the files that are made of it."""
        beside = None if self.beside is None else json.loads(self.beside.to_json())
        facts = {"request": json.loads(self.request.to_json()), "kind": self.kind, "beside": beside}
        facts |= {
            "drawing": asdict(self.drawing),
            "ringed": None if self.ringed is None else list(self.ringed),
        }
        return facts | {"title": self.title, "photo": self.photo}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> FigureRequest:
        """The figure that `to_dict` wrote; the data may come from a file of anybody.

        Raises:
            ParameterError: it is none.
        """
        if set(facts) != {"request", "kind", "beside", "drawing", "ringed", "title", "photo"}:
            raise ParameterError("This does not say which figure is meant.")
        words = {name: facts[name] for name in ("kind", "title", "photo")}
        drawing, ringed = facts["drawing"], facts["ringed"]
        if not all(isinstance(word, str) for word in words.values()) or not isinstance(drawing, dict):
            raise ParameterError("This does not say which figure is meant.")
        is_cell = isinstance(ringed, list) and [type(place) for place in ringed] == [int, int]
        return cls(
            Request.from_json(json.dumps(facts["request"])),
            words["kind"],
            DrawingOptions.of(drawing.items()),
            None if facts["beside"] is None else Request.from_json(json.dumps(facts["beside"])),
            (ringed[0], ringed[1]) if is_cell else None,
            words["title"],
            words["photo"],
        )


def check_kind(kind: str) -> None:
    """Refuse a kind of picture that there is not.

    Raises:
        ParameterError: with the kinds that there are.
    """
    if kind not in get_args(Kind):
        raise ParameterError(f"A picture is one of {', '.join(get_args(Kind))}, not {kind[:40]!r}.")
