"""The pictures of the screen and their files: a figure request in, encoded bytes out.

On the screen a picture is bare, as its caption stands beside it; as a file it carries title, caption, colour bar and provenance.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.attention import mass_mask
from vit_viz.analyses.explanations import Explanations
from vit_viz.analyses.mosaic import HeadMaps
from vit_viz.analyses.patches import ReceivedImage
from vit_viz.capture import Trace
from vit_viz.drawing import export
from vit_viz.drawing.options import DrawingOptions
from vit_viz.drawing.request import FigureRequest
from vit_viz.render.captioned import captioned_map, drawn_words, map_title
from vit_viz.render.colormaps import Limits, clipped, grid_limits, limits
from vit_viz.render.lettering import Theme, number
from vit_viz.render.mosaic import mosaic_picture
from vit_viz.render.overlay import overlay
from vit_viz.render.patches import patch_grid, patch_sequence
from vit_viz.render.styles import Style, chosen
from vit_viz.results import PatchMap, Provenance
from vit_viz.session.handles import Subject
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.session.uploads import picture_bytes

SCALE_NAMES = {"shared": "all alike", "layer": "each layer", "own": "each head"}
CARD_SIDE = 720  # of a picture that stands beside others
SCREEN_SIDE = 1280  # of a picture that the server draws for the screen
PHOTO_SIDE = 2048  # of the photo that the page draws on: the largest view on a screen of two pixels for one
_SHARP_PATCHES = 1024  # a sequence of at most so many is drawn with two pixels for one of a screen


@dataclass(frozen=True)
class Encoded:
    """A picture as bytes, with its media type and the name of the file that it would be saved as."""

    data: bytes
    media_type: str
    file_name: str

    def save(self, path: str | Path) -> Path:
        """Write it to a file, or into a folder under its own name; returns the file."""
        file = Path(path)
        file = file / self.file_name if file.is_dir() else file
        file.write_bytes(self.data)
        return file


@dataclass(frozen=True)
class Task:
    """One picture to draw, whether it is for the screen, and in which look of the page; files are always light."""

    session: Session
    figure: FigureRequest
    bare: bool
    theme: Theme = "light"

    @property
    def subject(self) -> Subject:
        """The photo in front of its model."""
        return self.figure.subject

    @property
    def trace(self) -> Trace:
        """The recorded forward pass of the subject; for a file once it is known that its pictures do not mislead."""
        traced = self.session.trace_of if self.bare else self.session.checked_trace_of
        return traced(self.subject)

    @property
    def name(self) -> str:
        """What the photo is called."""
        return self.figure.photo or self.session.name_of(self.subject.image, owner=self.subject.owner)

    @property
    def original(self) -> Image.Image:
        """The upright photo at its own size."""
        return self.session.photo_of(self.subject)

    def patch_map(self) -> PatchMap:
        """The map that is asked for."""
        result = self.session.run(self.figure.request)
        assert isinstance(result, PatchMap)
        return result


@dataclass(frozen=True)
class Drawn:
    """A picture with where its numbers came from, and for a map the style that it is drawn in."""

    image: Image.Image
    provenance: Provenance
    style: Style | Literal[""] = ""


def picture(session: Session, figure: FigureRequest, *, bare: bool, theme: Theme = "light") -> Encoded:
    """Draw one picture.

    Args:
        bare: for the screen, without text; else the complete figure with its provenance, as PNG.
        theme: of the page around it; only what has paper of its own follows it.

    Raises:
        VitVizError: the subject is gone, or the figure asks for what this model does not have.
    """
    task = Task(session, figure, bare, theme if bare else "light")
    drawn = _DRAWERS[figure.kind](task)
    if not bare:
        return Encoded(export.png(drawn.image, drawn.provenance), "image/png", _file_name(drawn, task))
    if figure.kind == "sequence":  # text and flat colours, which JPEG would blur
        return Encoded(_png(drawn.image), "image/png", "picture.png")
    return Encoded(_jpeg(drawn.image), "image/jpeg", "picture.jpg")


def screen_photo(session: Session, subject: Subject) -> Image.Image:
    """The subject's photo, or its part, as large as a screen needs it, upright, mode RGB."""
    original = session.photo_of(subject)  # an upload that is gone is gone here too

    def shrink() -> Image.Image:
        small = original.copy()
        small.thumbnail((PHOTO_SIDE, PHOTO_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return small

    digest = session.digest(subject.image, owner=subject.owner)
    return session.kept(
        ("screen photo", digest, subject.part), shrink, subject.image, digest, size_of=picture_bytes
    )


def style_of(session: Session, subject: Subject, style: Style, *, signed: bool = False) -> tuple[Style, str]:
    """The style in which a map is drawn over the subject's photo, and why it is another than the one asked for."""
    return chosen(style, screen_photo(session, subject), signed=signed)


def photo_jpeg(session: Session, subject: Subject) -> Encoded:
    """The subject's photo for the screen."""
    return Encoded(_jpeg(screen_photo(session, subject)), "image/jpeg", "photo.jpg")


def on_scale(session: Session, figure: FigureRequest, patch_map: PatchMap) -> tuple[PatchMap, Limits, str]:
    """An explanation as it is drawn: the map, the ends of its scale, and the scale in words.

    Methods measure different things, so that their raw values cannot share a scale. What can be compared is each patch's share of
    its map: that is the common scale, which ends at the largest share in any of the quick maps.
    """
    if figure.beside is None:
        return patch_map, *_ends(patch_map.values, "own", figure, signed=patch_map.signed)
    everything = session.run(figure.beside)
    assert isinstance(everything, Explanations)
    sizes = np.concatenate([np.abs(shares(other).values).ravel() for other in everything.maps.values()])
    (_, top), words = _ends(sizes, "one for all methods: each patch's share of its map", figure)
    return shares(patch_map), (-top if patch_map.signed else 0.0, top), words


def _ends(
    values: NDArray[np.float32], whose: str, figure: FigureRequest, *, signed: bool = False
) -> tuple[Limits, str]:
    """The ends of the scale on which these values are drawn, and the scale in words."""
    whole = limits(values, signed=signed)
    ends = clipped(values, signed=signed) if figure.drawing.clip else whole
    return ends, whose if ends == whole else f"{whose}, peaks clipped"


def shares(patch_map: PatchMap) -> PatchMap:
    """A map whose magnitudes sum to 1."""
    total = float(np.abs(patch_map.values).sum(dtype=np.float64))
    values = patch_map.values / total if total > 0 else patch_map.values
    return replace(
        patch_map,
        values=values,
        unit="share of the map",
        value_range=(-1.0 if patch_map.signed else 0.0, 1.0),
    )


def scaled(task: Task) -> tuple[PatchMap, Limits, str]:
    """The map that is asked for, the ends of the scale that it is drawn on, and that scale in words."""
    patch_map, figure = task.patch_map(), task.figure
    if figure.kind != "map":
        return on_scale(task.session, figure, patch_map)
    values, whose = patch_map.values, "own"
    if figure.beside is not None:
        values, layer = with_fused_heads(head_maps(task, figure.beside)), figure.parameters["layer"]
        whose = "shared by all heads of all layers"
        if figure.drawing.scale == "layer":
            values, whose = values[layer], f"layer {layer}"
    ends, words = _ends(values, whose, figure)
    return patch_map, ends, words


def _map(task: Task, *, side: int = SCREEN_SIDE) -> Drawn:
    drawn, ends, words = scaled(task)
    return _over_photo(task, drawn, scale=ends, scale_name=words, side=side)


def _card(task: Task) -> Drawn:
    return _map(task, side=CARD_SIDE)


def _over_photo(
    task: Task, patch_map: PatchMap, *, scale: Limits, scale_name: str, side: int = SCREEN_SIDE
) -> Drawn:
    """The map over the screen photo, or the complete figure over the original."""
    how = task.figure.drawing
    table = None if patch_map.signed else how.table
    patch_map = masked(patch_map, how.mask)
    style, _ = style_of(task.session, task.subject, how.style, signed=patch_map.signed)
    if task.bare:
        small = _readable(screen_photo(task.session, task.subject), side)
        drawn = overlay(
            small, patch_map, style=style, alpha=how.alpha, table=table, scale=scale, smooth=how.smooth
        )
        return Drawn(drawn, patch_map.provenance, style)
    figure = captioned_map(
        task.original,
        patch_map,
        style=how.style,
        alpha=how.alpha,
        table=table,
        scale=scale,
        scale_name=scale_name,
        smooth=how.smooth,
        title=task.figure.title or f"{task.name}: {map_title(patch_map)}",
    )
    return Drawn(figure, patch_map.provenance, style)


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


def masked(patch_map: PatchMap, share: float) -> PatchMap:
    """The map with everything outside the top that is kept at zero, and a note that says so.

    As it is where nothing is left out (share 0), and where it has both signs: those have no top.
    """
    if not share or patch_map.signed:
        return patch_map
    kept = np.where(mass_mask(patch_map, share), patch_map.values, 0)
    note = f"{patch_map.note} Only the top {share:.0%}: the fewest patches that hold this share of the map.".strip()
    return replace(patch_map, values=kept, note=note)


def _mosaic(task: Task) -> Drawn:
    figure, trace, how = task.figure, task.trace, task.figure.drawing
    query, direction = figure.parameters["query"], figure.parameters["direction"]
    looks = "looks at" if direction == "row" else "is looked at by"
    maps = head_maps(task, figure.request)
    style, why = chosen(how.style, task.original)
    image = mosaic_picture(
        maps,
        style=style,
        photo=received_part(task),
        table=how.table,
        scale=how.scale,
        ends=mosaic_ends(maps, how),
        unit="attention weight",
        selected=figure.ringed,
        title=figure.title or f"{trace.layout.describe(query)} {looks}, in every head of every layer",
        caption=f"{of_model(task)} Scale: {SCALE_NAMES[how.scale]}{', peaks clipped' if how.clip else ''}; "
        f"values {number(maps.min())} to {number(maps.max())}; {drawn_words(why or style, smooth=False)}.",
    )
    return Drawn(
        image, trace.provenance.with_parameters(method="attention", query=query, direction=direction), style
    )


def mosaic_ends(maps: NDArray[np.float32], how: DrawingOptions) -> NDArray[np.float64]:
    """The ends of the scale of each map of a mosaic, [layers, heads, 2]: as the explorer draws them."""
    ends = grid_limits(with_fused_heads(maps), scale=how.scale, clip=how.clip)
    return ends[:, : maps.shape[1]]


def with_fused_heads(maps: NDArray[np.float32]) -> NDArray[np.float32]:
    """The maps of all heads and, as in the explorer, their mean, maximum and minimum: [layers, heads + 3, rows, cols]."""
    fused = [fuse(maps, axis=1, keepdims=True) for fuse in (np.mean, np.max, np.min)]
    return np.concatenate([maps, *fused], axis=1)


def received_part(task: Task) -> Image.Image:
    """The part of the photo that the model received; black where it reaches beyond the photo."""
    assert task.trace.crop_box is not None
    top, left, height, width = task.trace.crop_box.region
    return task.original.crop((round(left), round(top), round(left + width), round(top + height)))


def head_maps(task: Task, request: Request) -> NDArray[np.float32]:
    """One query in every head of every layer, [layers, heads, rows, cols]."""
    maps = task.session.run(request)
    assert isinstance(maps, HeadMaps)
    return maps.values


def _patches(task: Task) -> Drawn:
    return _grid(task, numbers=False)


def _numbered(task: Task) -> Drawn:
    return _grid(task, numbers=True)


def _grid(task: Task, *, numbers: bool) -> Drawn:
    trace = task.trace
    assert trace.crop_box is not None
    grid = trace.layout.grid
    image = patch_grid(
        task.original, grid=grid, crop_box=trace.crop_box, numbers=numbers, longest_side=SCREEN_SIDE
    )
    return Drawn(image, trace.provenance.with_parameters(picture="patch grid"))


def _sequence(task: Task) -> Drawn:
    trace, received = task.trace, task.session.run(task.figure.request)
    assert isinstance(received, ReceivedImage)
    layout = trace.layout
    sharp = 2 if task.bare and layout.num_patches <= _SHARP_PATCHES else 1
    image = patch_sequence(
        received.picture,
        grid=layout.grid,
        prefix=layout.prefix,
        suffix=layout.suffix,
        width=640 * sharp,
        tile=28 * sharp,
        theme=task.theme,
    )
    return Drawn(image, trace.provenance.with_parameters(picture="patch sequence"))


def of_model(task: Task) -> str:
    """Photo, model and preprocessing in words."""
    provenance = task.trace.provenance
    return f"Photo: {task.name}. {provenance.model_words}; {provenance.preprocess}."


_DRAWERS: dict[str, Callable[[Task], Drawn]] = {
    "map": _map,
    "mosaic": _mosaic,
    "explain": _map,
    "card": _card,
    "patches": _patches,
    "numbered": _numbered,
    "sequence": _sequence,
}


def _file_name(drawn: Drawn, task: Task) -> str:
    """A name for the file that says what it holds and how it is drawn: photo, kind, model, layer and head, style."""
    figure = task.figure
    parts = ["vit_viz", slug(task.name) or "photo", figure.kind, slug(drawn.provenance.model) or "model"]
    if figure.kind == "map":
        parts += [f"layer-{figure.parameters['layer']}", f"head-{figure.parameters['head']}"]
    if drawn.style:
        parts += [drawn.style, "smooth" if figure.drawing.smooth and figure.kind != "mosaic" else "patches"]
    return "_".join(parts) + ".png"


def slug(name: str) -> str:
    """A name in characters that every system takes in the name of a file."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:60].strip("-")


def _jpeg(image: Image.Image) -> bytes:
    """For the screen: fast, and with full colour resolution, so that the edges of patches stay sharp."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=92, subsampling=0)
    return file.getvalue()


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()
