"""The pictures of the screen and their files: a subject and a view in, encoded bytes out.

On the screen a picture is bare, as its caption stands beside it; as a file it carries title, caption, colour bar and provenance.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from vit_viz import export
from vit_viz.analyses.attention import mass_mask, mosaic_maps
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.explaining import Explanations
from vit_viz.handles import Subject
from vit_viz.render.captioned import captioned, captioned_map
from vit_viz.render.colormaps import Limits, limits
from vit_viz.render.mosaic import mosaic_picture
from vit_viz.render.overlay import overlay
from vit_viz.render.patches import patch_grid, patch_sequence
from vit_viz.results import PatchMap, Provenance
from vit_viz.session import Request, Session
from vit_viz.ui.methods import aim_of, method_named
from vit_viz.ui.state import ViewState
from vit_viz.uploads import picture_bytes

Kind = Literal["map", "mosaic", "explain", "card", "patches", "numbered", "sequence"]
CARD_SIDE = 720  # of a picture that stands beside others
SCREEN_SIDE = 1280  # pixels of the longer side: more than a view ever has on a screen
FILE_SIDE = 2000


@dataclass(frozen=True)
class Encoded:
    """A picture as bytes, with its media type and the name of the file that it would be saved as."""

    data: bytes
    media_type: str
    file_name: str


@dataclass(frozen=True)
class Task:
    """One picture to draw: what it is about, the view as this model allows it, and whether it is for the screen."""

    session: Session
    subject: Subject
    view: ViewState
    bare: bool

    @property
    def trace(self) -> Trace:
        """The recorded forward pass of the subject."""
        return trace_of(self.session, self.subject)

    @property
    def original(self) -> Image.Image:
        """The upright photo at its own size."""
        return self.session.image(self.subject.image, owner=self.subject.owner)


@dataclass(frozen=True)
class Drawn:
    """A picture with where its numbers came from."""

    image: Image.Image
    provenance: Provenance


def picture(session: Session, subject: Subject, view: ViewState, kind: Kind, *, bare: bool) -> Encoded:
    """Draw one picture.

    Args:
        bare: for the screen, without text; else the complete figure with its provenance, as PNG.

    Raises:
        VitVizError: the subject is gone, or the view asks for what this model does not have.
    """
    if kind not in get_args(Kind):
        raise ParameterError(f"A picture is one of {', '.join(get_args(Kind))}, not {kind[:40]!r}.")
    view, problems = fit_view(session, subject, view)
    if problems:
        raise ParameterError(problems[0])
    drawn = _DRAWERS[kind](Task(session, subject, view, bare))
    if not bare:
        return Encoded(export.png(drawn.image, drawn.provenance), "image/png", _file_name(drawn, view, kind))
    if kind == "sequence":  # text and flat colours, which JPEG would blur
        return Encoded(_png(drawn.image), "image/png", "picture.png")
    return Encoded(_jpeg(drawn.image), "image/jpeg", "picture.jpg")


def trace_of(session: Session, subject: Subject) -> Trace:
    """The recorded forward pass of a subject."""
    return session.trace(subject.model, subject.image, mode=subject.mode, owner=subject.owner)


def photo(session: Session, subject: Subject) -> Image.Image:
    """The subject's photo as large as a screen needs it, upright, mode RGB."""
    original = session.image(subject.image, owner=subject.owner)  # an upload that is gone is gone here too

    def shrink() -> Image.Image:
        small = original.copy()
        small.thumbnail((SCREEN_SIDE, SCREEN_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return small

    digest = session.digest(subject.image, owner=subject.owner)
    return session.kept(("screen photo", digest), shrink, subject.image, digest, size_of=picture_bytes)


def photo_jpeg(session: Session, subject: Subject) -> Encoded:
    """The subject's photo for the screen."""
    return Encoded(_jpeg(photo(session, subject)), "image/jpeg", "photo.jpg")


def attention(session: Session, subject: Subject, view: ViewState) -> PatchMap:
    """The map of the Look tab: one query in one head, or fused heads, of one layer."""
    return _patch_map(
        session,
        subject,
        "attention",
        layer=view.layer,
        query=view.query_of(trace_of(session, subject).layout),
        head=view.head,
        direction=view.direction,
        norm_weighted=view.norm,
    )


def explanation(session: Session, subject: Subject, view: ViewState, **watch: Any) -> PatchMap:
    """A map of the Explain tab, by the chosen method; `watch` may hold `progress` and `cancelled`."""
    result = session.run(explanation_request(session, subject, view), **watch)
    assert isinstance(result, PatchMap)
    return result


def explanation_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for a map of the Explain tab; only methods that can follow any token follow the pinned query."""
    trace, method = trace_of(session, subject), method_named(view.method)
    parameters = method.parameters(view, trace.num_layers)
    if "query" in method.options:
        parameters["query"] = view.query_of(trace.layout)
    return _request(subject, method.analysis, **parameters)


def on_scale(
    session: Session, subject: Subject, view: ViewState, found: PatchMap
) -> tuple[PatchMap, Limits, str]:
    """An explanation as it is drawn: the map, the ends of its scale, and the scale in words.

    Methods measure different things, so that their raw values cannot share a scale. What can be compared is each patch's share of
    its map: that is the common scale, which ends at the largest share in any of the quick maps.
    """
    if view.ruler == "own":
        return found, limits(found.values, signed=found.signed), "own"
    everything = session.run(_request(subject, "explain all", target=aim_of(view), mirror=False))
    assert isinstance(everything, Explanations)
    top = max(float(np.abs(shares(other).values).max()) for other in everything.maps.values())
    part = shares(found)
    low = -top if found.signed else 0.0
    return part, (low, top), "one for all methods: each patch's share of its map"


def shares(found: PatchMap) -> PatchMap:
    """A map whose magnitudes sum to 1."""
    total = float(np.abs(found.values).sum(dtype=np.float64))
    values = found.values / total if total > 0 else found.values
    return replace(
        found, values=values, unit="share of the map", value_range=(-1.0 if found.signed else 0.0, 1.0)
    )


def fit_view(session: Session, subject: Subject, view: ViewState) -> tuple[ViewState, tuple[str, ...]]:
    """The view as this subject allows it, with a sentence for each change."""
    trace = trace_of(session, subject)
    return view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)


def _patch_map(session: Session, subject: Subject, analysis: str, **parameters: object) -> PatchMap:
    result = session.run(_request(subject, analysis, **parameters))
    assert isinstance(result, PatchMap)
    return result


def _request(subject: Subject, analysis: str, **parameters: object) -> Request:
    """A request about a subject."""
    return Request.of(
        subject.model, subject.image, analysis, mode=subject.mode, owner=subject.owner, **parameters
    )


def _map(task: Task) -> Drawn:
    view, trace = task.view, task.trace
    found = attention(task.session, task.subject, view)
    scale, scale_name = limits(found.values), "own"
    if view.scale != "own" and not view.norm:
        maps = mosaic_maps(trace, query=view.query_of(trace.layout), direction=view.direction)
        scale = limits(maps[view.layer] if view.scale == "layer" else maps)
        scale_name = f"layer {view.layer}" if view.scale == "layer" else "shared by all heads of all layers"
    return _over_photo(task, found, scale=scale, scale_name=scale_name)


def _explain(task: Task) -> Drawn:
    found = explanation(task.session, task.subject, task.view)
    drawn, scale, name = on_scale(task.session, task.subject, task.view, found)
    return _over_photo(task, drawn, scale=scale, scale_name=name)


def _card(task: Task) -> Drawn:
    found = explanation(task.session, task.subject, task.view)
    drawn, scale, name = on_scale(task.session, task.subject, task.view, found)
    return _over_photo(task, drawn, scale=scale, scale_name=name, side=CARD_SIDE)


def _over_photo(
    task: Task, found: PatchMap, *, scale: Limits, scale_name: str, side: int = SCREEN_SIDE
) -> Drawn:
    """The map over the screen photo, or the complete figure over the original."""
    view = task.view
    table = None if found.signed else view.table
    if view.mask and not found.signed:
        found = _masked(found, view.mask)
    if task.bare:
        small = _readable(photo(task.session, task.subject), side)
        drawn = overlay(small, found, alpha=view.alpha, table=table, scale=scale, smooth=view.smooth)
        return Drawn(drawn, found.provenance)
    figure = captioned_map(
        task.original,
        found,
        alpha=view.alpha,
        table=table,
        scale=scale,
        scale_name=scale_name,
        smooth=view.smooth,
    )
    return Drawn(figure, found.provenance)


def _readable(image: Image.Image, side: int) -> Image.Image:
    """A small photo enlarged, so that the edges of its patches are sharp on the screen; a large one as small as is needed."""
    if max(image.size) > side:
        small = image.copy()
        small.thumbnail((side, side), Image.Resampling.BILINEAR)
        return small
    factor = -(-side // (2 * max(image.size)))
    if factor <= 1:
        return image
    return image.resize((image.width * factor, image.height * factor), Image.Resampling.BICUBIC)


def _masked(found: PatchMap, share: float) -> PatchMap:
    """The map with everything outside its mass mask at zero, and a note that says so."""
    kept = np.where(mass_mask(found, share), found.values, 0)
    note = f"{found.note} Mass mask: the smallest set of patches that holds {share:.0%} of the map.".strip()
    return replace(found, values=kept, note=note)


def _mosaic(task: Task) -> Drawn:
    view, trace = task.view, task.trace
    query = view.query_of(trace.layout)
    looks = "looks at" if view.direction == "row" else "is looked at by"
    image = mosaic_picture(
        mosaic_maps(trace, query=query, direction=view.direction),
        table=view.table,
        scale=view.scale,
        unit="attention weight",
        selected=(view.layer or 0, view.head) if isinstance(view.head, int) else None,
        title=f"{trace.layout.describe(query)} {looks}, in every head of every layer",
        caption=f"{_of_model(trace)} Scale: {view.scale}.",
    )
    return Drawn(
        image, trace.provenance.with_parameters(method="attention", query=query, direction=view.direction)
    )


def _patches(task: Task) -> Drawn:
    return _grid(task, numbers=False)


def _numbered(task: Task) -> Drawn:
    return _grid(task, numbers=True)


def _grid(task: Task, *, numbers: bool) -> Drawn:
    trace = task.trace
    assert trace.crop_box is not None
    side = SCREEN_SIDE if task.bare else FILE_SIDE
    grid = trace.layout.grid
    image = patch_grid(task.original, grid=grid, crop_box=trace.crop_box, numbers=numbers, longest_side=side)
    if not task.bare:
        title = f"Patch grid: {grid[0]} rows x {grid[1]} columns"
        image = captioned(image, title=title, caption=_of_model(trace))
    return Drawn(image, trace.provenance.with_parameters(picture="patch grid"))


def _sequence(task: Task) -> Drawn:
    trace, recipe = task.trace, task.session.model(task.subject.model).preprocess
    received = recipe.reverse(recipe.apply(task.original, mode=task.subject.mode).pixels)
    layout = trace.layout
    image = patch_sequence(received, grid=layout.grid, prefix=layout.prefix, suffix=layout.suffix, width=640)
    if not task.bare:
        title = "The sequence of tokens that the model receives"
        image = captioned(image, title=title, caption=_of_model(trace))
    return Drawn(image, trace.provenance.with_parameters(picture="patch sequence"))


def _of_model(trace: Trace) -> str:
    return f"Model {trace.provenance.model}. {trace.provenance.preprocess}."


_DRAWERS: dict[Kind, Callable[[Task], Drawn]] = {
    "map": _map,
    "mosaic": _mosaic,
    "explain": _explain,
    "card": _card,
    "patches": _patches,
    "numbered": _numbered,
    "sequence": _sequence,
}


def _file_name(drawn: Drawn, view: ViewState, kind: Kind) -> str:
    """A name for the file that says what it holds and nothing about an upload."""
    model = "".join(c if c.isascii() and c.isalnum() else "-" for c in drawn.provenance.model)[:60]
    parts = ["vit_viz", kind, model or "model"]
    if kind == "map":
        parts += [f"layer-{view.layer}", f"head-{view.head}"]
    return "_".join(parts) + ".png"


def _jpeg(image: Image.Image) -> bytes:
    """For the screen: fast, and with full colour resolution, so that the edges of patches stay sharp."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=92, subsampling=0)
    return file.getvalue()


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()
