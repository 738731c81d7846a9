"""Reading untrusted pictures safely, and the recipe that turns them into a model's input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vit_viz.images.reading import MAX_ASPECT, MAX_BYTES, MAX_PIXELS, MIN_SIDE, decode, image_hash
from vit_viz.lazy import importer

if TYPE_CHECKING:  # imported when first used: reading a picture needs none of it, torch above all
    from vit_viz.images.decoder import DecoderProcess
    from vit_viz.images.preprocess import Mode, Prepared, Preprocess

__all__ = [
    "MAX_ASPECT", "MAX_BYTES", "MAX_PIXELS", "MIN_SIDE", "DecoderProcess", "Mode", "Prepared", "Preprocess", "decode",
    "image_hash",
]  # fmt: skip

if not TYPE_CHECKING:  # to a type checker a package with __getattr__ has every name
    __getattr__, _ = importer(__name__, __file__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
