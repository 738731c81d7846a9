"""The photo that the page draws on."""

from __future__ import annotations

import io

from PIL import Image

from vit_viz.figures.files import Encoded
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import picture_bytes

PHOTO_SIDE = 2048  # of the photo that the page draws on: the largest view on a screen of two pixels for one


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


def photo_jpeg(session: Session, subject: Subject) -> Encoded:
    """The subject's photo for the screen."""
    return _encoded(screen_photo(session, subject))


def _encoded(image: Image.Image) -> Encoded:
    """JPEG is fast, and keeps full colour resolution here, so that the edges of patches stay sharp."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=92, subsampling=0)
    return Encoded(file.getvalue(), "image/jpeg", "picture.jpg")
