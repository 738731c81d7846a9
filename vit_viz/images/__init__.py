"""Reading untrusted pictures safely, and the recipe that turns them into a model's input.

reading.py     bytes, paths and PIL images -> an upright RGB picture, or one sentence
file_segments.py  the segments of a file, checked before a decoder looks for them
signatures.py  what a file is, recognised by its first bytes
colours.py     every pixel format -> RGB over white
decoder.py     the same in a separate process, for untrusted files
worker.py      the program of that process
preprocess.py  the recipe as data, forwards and backwards
recipe_values.py  its numbers, checked and in words
part.py        a rectangle of a picture, looked at in place of the whole
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vit_viz.images.reading import MAX_ASPECT, MAX_BYTES, MAX_PIXELS, MIN_SIDE, decode, image_hash
from vit_viz.lazy import importer

if TYPE_CHECKING:
    from vit_viz.images.decoder import DecoderProcess
    from vit_viz.images.preprocess import Mode, Prepared, Preprocess

__all__ = [
    "MAX_ASPECT",
    "MAX_BYTES",
    "MAX_PIXELS",
    "MIN_SIDE",
    "DecoderProcess",
    "Mode",
    "Prepared",
    "Preprocess",
    "decode",
    "image_hash",
]

_MODULES = {
    "vit_viz.images.decoder": ("DecoderProcess",),
    "vit_viz.images.preprocess": ("Mode", "Prepared", "Preprocess"),
}
"""Imported when first used: reading a picture needs none of it, torch above all."""

if not TYPE_CHECKING:  # to a type checker a package with __getattr__ has every name
    __getattr__ = importer(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
