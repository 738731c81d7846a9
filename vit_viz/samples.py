"""Pictures to start with: photographs that ship inside the gradio package, and drawings of our own that teach something.

The photographs are read from the installed package, which is not imported for it; without it they are left out.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vit_viz.errors import ParameterError
from vit_viz.images import decode, image_hash

_PHOTOS = {"lion": "lion.jpg", "cheetah": "cheetah1.jpg", "runner": "cheetah.jpg", "tower": "tower.jpg"}
_FIELD = 192  # pixels of a side of a texture
_SMOOTH = 4  # drawings are made this many times larger and reduced, which smooths their edges

Colour = tuple[int, int, int]

_PAPER: Colour = (243, 239, 230)
_RED: Colour = (196, 61, 48)
_BLUE: Colour = (38, 97, 156)
_YELLOW: Colour = (236, 178, 45)
_GREEN: Colour = (62, 132, 92)
_INK: Colour = (41, 45, 56)


@dataclass(frozen=True)
class FirstLook:
    """What a first look at a sample shows with the bundled model.

    Args:
        sure: probability of the first class.
        score: how much the opening map says at a glance, in [0, 1].
        layer, head: of that map.
    """

    sure: float
    score: float
    layer: int
    head: int


FIRST_LOOKS = MappingProxyType(
    {
        "lion": FirstLook(0.963, 0.703, 5, 2),
        "cheetah": FirstLook(0.526, 0.460, 4, 1),
        "runner": FirstLook(0.113, 0.900, 5, 2),
        "tower": FirstLook(0.544, 0.565, 5, 3),
        "shapes": FirstLook(0.179, 0.570, 4, 3),
        "twins": FirstLook(0.259, 0.408, 4, 1),
        "textures": FirstLook(0.130, 0.404, 5, 0),
    }
)
"""As `vit_viz.analyses.opening.opening` finds them, which a test compares; kept here so that a start computes nothing for them."""


def first_sample() -> str:
    """The sample to begin with: of those where the bundled model is more than half sure, the one whose map says most at a glance.

    Where there are none of these, as without the photographs, the one whose map says most of all.
    """
    looks = {name: FIRST_LOOKS[name] for name in sample_names()}
    return max(looks, key=lambda name: (looks[name].sure > 0.5, looks[name].score))


def sample_names() -> tuple[str, ...]:
    """Names of the samples that this installation has, photographs first."""
    return tuple(SAMPLES)


def sample(name: str) -> Image.Image:
    """A sample picture, upright RGB; the same pixels every time."""
    if name not in SAMPLES:
        raise ParameterError(f"There is no sample {name!r}; there are {', '.join(SAMPLES)}.")
    return SAMPLES[name]()


def sample_file(name: str) -> tuple[str, bytes]:
    """A sample as a file: how its name ends, and its bytes; a photograph's own, a drawing as PNG."""
    picture, folder = sample(name), _photo_folder()
    if folder and name in _PHOTOS:
        return ".jpg", (folder / _PHOTOS[name]).read_bytes()
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return ".png", file.getvalue()


@lru_cache(maxsize=32)
def sample_and_hash(name: str) -> tuple[Image.Image, str]:
    """A sample and the hash of its pixels, kept because every drawing needs both."""
    picture = sample(name)
    return picture, image_hash(picture)


def shapes() -> Image.Image:
    """Four shapes of known place on plain ground: which head finds edges, which one colour, which one the ground?"""
    canvas = _Canvas(height=448, width=448, ground=_PAPER)
    canvas.disc(centre=(112, 112), radius=72, colour=_RED)
    canvas.box(top=272, left=48, bottom=400, right=176, colour=_BLUE)
    canvas.polygon([(48, 336), (176, 264), (176, 408)], colour=_YELLOW)
    angles, radii = np.arange(10) * np.pi / 5, np.where(np.arange(10) % 2 == 0, 80, 33)
    rows, cols = 336 - radii * np.cos(angles), 336 + radii * np.sin(angles)
    star = [(float(row), float(col)) for row, col in zip(rows, cols, strict=True)]
    canvas.polygon(star, colour=_GREEN)
    return canvas.finish()


def twins() -> Image.Image:
    """The same flower left and right, and a lone ball between: does a patch of one flower look at the other?"""
    canvas = _Canvas(height=320, width=640, ground=(222, 231, 236))
    canvas.box(top=232, left=0, bottom=320, right=640, colour=(196, 204, 178))
    for left in (128, 512):
        canvas.box(top=144, left=left - 5, bottom=264, right=left + 5, colour=_GREEN)
        for angle in np.arange(6) * np.pi / 3:
            centre = (112 + 40 * float(np.sin(angle)), left + 40 * float(np.cos(angle)))
            canvas.disc(centre=centre, radius=25, colour=_RED)
        canvas.disc(centre=(112, left), radius=24, colour=_YELLOW)
    canvas.disc(centre=(236, 320), radius=36, colour=_BLUE)
    return canvas.finish()


def textures() -> Image.Image:
    """Six plain textures in a row of fields: what do heads do where there is nothing to recognise?"""
    rows, cols = np.indices((_FIELD, _FIELD), dtype=np.float64)
    rings = np.cos(np.hypot(rows - (_FIELD - 1) / 2, cols - (_FIELD - 1) / 2) / 4)
    fields = [
        [
            _between((rows + cols) / (2 * _FIELD - 2), _BLUE, _YELLOW),
            _between((rows // 24 + cols // 24) % 2, _INK, _PAPER),
            _between(((rows + cols) // 12) % 2, _GREEN, _PAPER),
        ],
        [
            _between((rows // 6 + cols // 6) % 2, _INK, _PAPER),
            _between(0.5 + 0.5 * rings, _RED, _PAPER),
            np.full((_FIELD, _FIELD, 3), _YELLOW, dtype=np.uint8),
        ],
    ]
    pixels = np.concatenate([np.concatenate(row, axis=1) for row in fields], axis=0)
    return Image.fromarray(pixels)


class _Canvas:
    """A drawing surface measured in final pixels, (row, col), with smooth edges."""

    def __init__(self, *, height: int, width: int, ground: Colour) -> None:
        self._image = Image.new("RGB", (width * _SMOOTH, height * _SMOOTH), ground)
        self._draw = ImageDraw.Draw(self._image)

    def box(self, *, top: float, left: float, bottom: float, right: float, colour: Colour) -> None:
        self._draw.rectangle(self._corners(top, left, bottom, right), fill=colour)

    def disc(self, *, centre: tuple[float, float], radius: float, colour: Colour) -> None:
        row, col = centre
        self._draw.ellipse(self._corners(row - radius, col - radius, row + radius, col + radius), fill=colour)

    def polygon(self, points: list[tuple[float, float]], *, colour: Colour) -> None:
        self._draw.polygon([(col * _SMOOTH, row * _SMOOTH) for row, col in points], fill=colour)

    def finish(self) -> Image.Image:
        return self._image.reduce(_SMOOTH)

    def _corners(self, top: float, left: float, bottom: float, right: float) -> list[int]:
        return [
            round(left * _SMOOTH),
            round(top * _SMOOTH),
            round(right * _SMOOTH) - 1,
            round(bottom * _SMOOTH) - 1,
        ]


def _between(share: NDArray[np.float64], low: Colour, high: Colour) -> NDArray[np.uint8]:
    """Colours from `low` (0) to `high` (1): [rows, cols] -> [rows, cols, 3]."""
    mixed: NDArray[np.float64] = np.array(low) + share[..., None] * (np.array(high) - np.array(low))
    return mixed.round().astype(np.uint8)


def _photo_folder() -> Path | None:
    """Where the installed gradio keeps its pictures, found without running any of it."""
    spec = find_spec("gradio")
    locations = spec.submodule_search_locations if spec else None
    folders = [Path(location) / "media_assets" / "images" for location in locations or ()]
    return next((folder for folder in folders if folder.is_dir()), None)


def _find_samples() -> Mapping[str, Callable[[], Image.Image]]:
    folder = _photo_folder()
    photos = {name: folder / file for name, file in _PHOTOS.items()} if folder else {}
    from_files = {name: partial(decode, file) for name, file in photos.items() if file.is_file()}
    return MappingProxyType(from_files | {"shapes": shapes, "twins": twins, "textures": textures})


SAMPLES = _find_samples()
"""Name -> loader."""
