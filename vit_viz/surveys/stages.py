"""The first stages: a photo's file -> the model's input, or one sentence that says why not.

They need neither the model nor each other's state, only plain values that can be sent to another process or machine.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import VitVizError
from vit_viz.geometry import CropBox
from vit_viz.images import MAX_BYTES, Mode, Preprocess, decode
from vit_viz.images.preprocess import levels_of
from vit_viz.images.reading import read_source
from vit_viz.surveys.names import as_text
from vit_viz.surveys.photos import Photo

EngineName = Literal["local", "ray"]

BATCH = 128
"""Photos per batch: what is lost at most when the process is killed."""

THUMBNAIL_SIDE = 96
"""Long side of a thumbnail, in pixels."""


@dataclass(frozen=True)
class Decoding:
    """How photos become the model's input.

    Args:
        recipe: the checkpoint's preprocessing.
        mode: how a photo's shape becomes the input's; see `Preprocess.apply`, also for `size`.
        thumbnails: whether a small picture of each photo is kept.
    """

    recipe: Preprocess
    mode: Mode = "crop"
    size: int = 0
    thumbnails: bool = True


@dataclass(frozen=True)
class FileState:
    """What tells, without reading it, that a file is probably as it was: its size in bytes, and its time of change in ns."""

    size: int
    time: int

    @classmethod
    def of(cls, path: str) -> FileState | None:
        """That of a file; None where there is none."""
        try:
            about = os.stat(path)
        except (OSError, ValueError):
            return None
        return cls(about.st_size, about.st_mtime_ns)


@dataclass(frozen=True)
class Thumbnail:
    """A small picture of a photo, as a WebP file of this (width, height)."""

    webp: bytes
    size: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Shot:
    """A photo as the model receives it.

    Args:
        levels: its grey or colour levels, uint8 [channels, height, width]; normalised where the model is, since they are a
            quarter of the bytes there.
        crop_box: which part of the photo it is.
        digest: SHA-256 of the file, in hex.
        thumbnail: None where none is kept.
        file: the file's size and time as it was read.
    """

    photo: Photo
    levels: NDArray[np.uint8]
    crop_box: CropBox
    digest: str
    thumbnail: Thumbnail | None
    file: FileState | None


@dataclass(frozen=True)
class Failure:
    """A photo that could not be read, and the sentence that says why."""

    photo: Photo
    sentence: str


def prepared(photos: Sequence[Photo], decoding: Decoding) -> list[Shot | Failure]:
    """Photos from their files, in the same order; one that cannot be read never stops the others."""
    return [_prepared(photo, decoding) for photo in photos]


def _prepared(photo: Photo, decoding: Decoding) -> Shot | Failure:
    if photo.fault:
        return Failure(photo, photo.fault)
    before = FileState.of(photo.path)  # a file that changes while it is read then differs from what is noted
    try:
        content = read_source(photo.path, MAX_BYTES)
        image = decode(content)
        received, crop_box = decoding.recipe.cut(image, mode=decoding.mode, size=decoding.size)
    except VitVizError as error:
        return Failure(photo, as_text(str(error).replace(photo.path, photo.name)))
    levels = levels_of(received, decoding.recipe.channels).numpy()
    thumbnail = _thumbnail(image) if decoding.thumbnails else None
    return Shot(photo, levels, crop_box, hashlib.sha256(content).hexdigest(), thumbnail, before)


def _thumbnail(image: Image.Image) -> Thumbnail:
    small = image.copy()
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.BILINEAR, reducing_gap=1.0)
    file = io.BytesIO()
    small.save(file, "WEBP", quality=50, method=0)
    return Thumbnail(file.getvalue(), small.size)
