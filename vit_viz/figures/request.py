"""What is asked of a figure: the request for its numbers, how they become a picture, and the file that is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from vit_viz.analyses.attention import LOOK, MOSAIC
from vit_viz.analyses.explain import COMPARISON, EXPLAIN_ALL
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.positions import POSITIONS, as_pair
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.share_maps import OWN_PART, OWN_PARTS
from vit_viz.analyses.spec import AnyQuestion, Method
from vit_viz.errors import ParameterError
from vit_viz.figures.colormaps import Scale
from vit_viz.figures.sheet import MARGIN, POINTS_PER_CM
from vit_viz.figures.styles import Style
from vit_viz.session.request import Request, Subject

Table = Literal["viridis", "magma", "cividis", "gray"]
Format = Literal["png", "svg", "pdf", "csv", "npz", "gif", "webp"]


@dataclass(frozen=True)
class DrawingOptions(Options):
    """From numbers to pixels."""

    style: Annotated[
        Style,
        Option(
            "style",
            "How values change the photo: it is lit where they are large, tinted, or covered with flat colours.",
            link="style",
        ),
    ] = "light"
    scale: Annotated[
        Scale, Option("scale", "Which cells share the numbers at the ends of the scale.", link="scale")
    ] = "layer"
    clip: Annotated[
        bool,
        Option(
            "clip peaks",
            "The brightest hundredth of the values shares the top of the scale, so that a few peaks do not hide the rest.",
            link="clip",
        ),
    ] = True
    alpha: Annotated[
        float,
        Option(
            "strength", "How much of the style is applied; 0: the photo as it is.", step=0.05, link="alpha"
        ),
    ] = 1.0
    table: Annotated[Table, Option("colours", "The colour table of heat.", link="colors")] = "viridis"
    smooth: Annotated[
        bool,
        Option(
            "smooth",
            "In the large photo, interpolate between patches instead of showing each.",
            link="smooth",
        ),
    ] = True
    mask: Annotated[
        float,
        Option(
            "keep the top",
            "Show only the smallest set of patches that holds this share of the patches' attention (DINO); 0: all.",
            step=0.05,
            link="mask",
        ),
    ] = 0.0


@dataclass(frozen=True)
class Output(Options):
    """The file that is wanted."""

    format: Annotated[Format, Option("format", "The model that the file is read with.")] = "png"
    width_cm: Annotated[
        float, Option("width", "Width of the figure in print, in centimetres.", low=4, high=60, step=0.5)
    ] = 12.0
    dpi: Annotated[
        int,
        Option(
            "dots per inch", "Resolution of a PNG, and of the pictures in SVG and PDF.", low=72, high=1200
        ),
    ] = 300

    @property
    def width(self) -> float:
        """Points across."""
        return self.width_cm * POINTS_PER_CM

    @property
    def inner(self) -> float:
        """Points across within the margins."""
        return self.width - 2 * MARGIN


@dataclass(frozen=True)
class FigureRequest:
    """One figure, completely: two that are equal are drawn with the same pixels.

    Args:
        request: for the numbers, whose type decides how they are drawn; its subject is the photo.
        drawing: how values become colours.
        beside: asks for the maps that share the scale of this one; None: it has a scale of its own.
        ringed: (layer, head) that a mosaic marks, or (row, col) of a map.
        title: first line of a figure; "" has the usual one.
        photo: what the photo is called; "" asks the session.
    """

    request: Request
    drawing: DrawingOptions = field(default_factory=DrawingOptions)
    beside: Request | None = None
    ringed: tuple[int, int] | None = None
    title: str = ""
    photo: str = ""

    @property
    def subject(self) -> Subject:
        """The photo in front of its model, and whose it is."""
        return self.request.subject

    @property
    def parameters(self) -> dict[str, Any]:
        """What the numbers are asked for with, by name."""
        return dict(self.request.parameters)

    def about(self, subject: Subject) -> FigureRequest:
        """The same of another subject."""
        beside = None if self.beside is None else replace(self.beside, subject=subject)
        return replace(self, request=replace(self.request, subject=subject), beside=beside)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the files that are made of it."""
        beside = None if self.beside is None else json.loads(self.beside.to_json())
        return {
            "request": json.loads(self.request.to_json()),
            "beside": beside,
            "drawing": asdict(self.drawing),
            "ringed": None if self.ringed is None else list(self.ringed),
            "title": self.title,
            "photo": self.photo,
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> FigureRequest:
        """The figure that `to_dict` wrote; the data may come from a file of anybody."""
        names = {"request", "beside", "drawing", "ringed", "title", "photo"}
        if set(facts) - {"kind"} != names:  # files of before say a kind, which the request tells
            raise ParameterError("This does not say which figure is meant.")
        words = {name: facts[name] for name in ("title", "photo")}
        drawing, ringed = facts["drawing"], facts["ringed"]
        if not all(isinstance(word, str) for word in words.values()) or not isinstance(drawing, dict):
            raise ParameterError("This does not say which figure is meant.")
        is_cell = isinstance(ringed, list) and [type(place) for place in ringed] == [int, int]
        return cls(
            Request.from_json(json.dumps(facts["request"])),
            DrawingOptions.of(drawing.items()),
            None if facts["beside"] is None else Request.from_json(json.dumps(facts["beside"])),
            (ringed[0], ringed[1]) if is_cell else None,
            words["title"],
            words["photo"],
        )


@dataclass(frozen=True)
class FigureOptions(DrawingOptions, Output):
    """How the figure of an answer is to look, and the file that is wanted of it."""

    shared_scale: Annotated[
        bool, Option("one scale", "Whether maps of methods are drawn as shares on one scale.")
    ] = False
    title: Annotated[
        str,
        Option(
            "title", "First line of the figure; without one it is the usual.", pattern=r"[^\x00-\x1f]{0,200}"
        ),
    ] = ""

    def figure(self, request: Request) -> FigureRequest:
        """The figure of what is asked."""
        drawing = DrawingOptions.of(
            (field.name, getattr(self, field.name)) for field in DrawingOptions.schema()
        )
        return figure_for(request, drawing, shared_scale=self.shared_scale, title=self.title)

    def output(self, form: str) -> Output:
        """The file, of another format."""
        return Output.of({"format": form, "width_cm": self.width_cm, "dpi": self.dpi}.items())


def has_shared_scale(question: AnyQuestion) -> bool:
    """Whether its figure can have one scale for the maps of all methods: that of a method, and that of several side by side."""
    return isinstance(question, Method) or question is COMPARISON


def check_shared_scale(question: AnyQuestion) -> None:
    """Refuse one scale for the maps of all methods where the figure of a question draws none."""
    if not has_shared_scale(question):
        raise ParameterError(f"Only maps of methods share a scale; {question.name!r} draws none.")


def figure_for(
    request: Request,
    drawing: DrawingOptions | None = None,
    *,
    shared_scale: bool = False,
    title: str = "",
) -> FigureRequest:
    """The figure of what is asked: a map over its photo, all heads as a mosaic, or the result by itself.

    Args:
        shared_scale: whether maps are drawn as shares on one scale: of a method, that of all quick ones; side by side, of those.
    """
    drawing, parameters = drawing or DrawingOptions(), dict(request.parameters)
    beside, ringed = None, None
    question = QUESTIONS.named(request.question)
    if question is LOOK and drawing.scale != "own" and not parameters.get("norm"):
        beside = request.about(MOSAIC.name, query=parameters["query"], direction=parameters["direction"])
    if shared_scale:
        check_shared_scale(question)
        whole = request.about(EXPLAIN_ALL.name, target=parameters.get("target"), mirror=False)
        beside = request if question is COMPARISON else whole
    if question is OWN_PART:
        beside = request.about(OWN_PARTS.name, target=parameters.get("target"))
    if question is POSITIONS and (place := str(parameters.get("place", ""))):
        beside = request.about(POSITIONS.name, **parameters | {"place": ""})
        ringed = as_pair(place) if place[0].isdigit() else None
    return FigureRequest(request, drawing, beside, ringed, title)
