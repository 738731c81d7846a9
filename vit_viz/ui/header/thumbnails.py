"""Small pictures of the samples, then of the pictures of this visit."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image

from vit_viz import samples
from vit_viz.session.session import Session

_THUMBNAIL = 96  # pixels: twice what the page shows, for dense screens


def thumbnails(session: Session, chosen: str, owner: str) -> dict[str, Any]:
    """The value of the Samples component: the samples, then the pictures of this owner that are still kept."""
    pictures: list[dict[str, Any]] = []
    for name in samples.sample_names():
        thumbnail = _thumbnail(session, name, *samples.sample_and_hash(name))
        pictures.append({"id": name, "name": name, "thumbnail": thumbnail})
    for image, stored in session.uploads.of(owner).items():
        thumbnail = _thumbnail(session, image, stored.image, stored.digest)
        pictures.append({"id": image, "name": stored.name, "thumbnail": thumbnail, "own": True})
    return {"pictures": pictures, "chosen": chosen}


def _thumbnail(session: Session, image: str, picture: Image.Image, digest: str) -> str:
    """The middle of a picture, small, as an address that holds it whole."""
    return session.kept(("thumbnail", digest), lambda: _small_square(picture), image, digest, size_of=len)


def _small_square(picture: Image.Image) -> str:
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.resize(
        (_THUMBNAIL, _THUMBNAIL),
        Image.Resampling.LANCZOS,
        (left, top, left + side, top + side),
        reducing_gap=2.0,
    )
    file = io.BytesIO()
    square.save(file, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")
