"""Pictures of the screen: photos, and maps over them without words: captions stand beside them on the page."""

from __future__ import annotations

import io

from PIL import Image

from vit_viz.errors import ExportError
from vit_viz.figures.files import Encoded
from vit_viz.figures.maps import laid_over, masked, scaled
from vit_viz.figures.request import FigureRequest
from vit_viz.figures.styles import chosen
from vit_viz.results import PatchMap
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import picture_bytes

SCREEN_SIDE = 1280  # of a picture that the server draws for the screen
PHOTO_SIDE = 2048  # of the photo that the page draws on: the largest view on a screen of two pixels for one


def screen_picture(session: Session, figure: FigureRequest) -> Encoded:
    """The map that a figure shows over its photo, without its words."""
    answer, how, subject = session.run(figure.request), figure.drawing, figure.subject
    if not isinstance(answer, PatchMap):
        raise ExportError("There is no picture of this without words; please save the figure.")
    beside = None if figure.beside is None else session.run(figure.beside)
    patch_map, ends, _ = scaled(answer, beside, how, figure.parameters)
    style, _ = chosen(how.style, screen_photo(session, subject), signed=patch_map.signed)
    photo = _readable(screen_photo(session, subject), SCREEN_SIDE)
    return _encoded(laid_over(photo, masked(patch_map, how.mask), ends, how, style))


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


def _encoded(image: Image.Image) -> Encoded:
    """JPEG is fast, and keeps full colour resolution here, so that the edges of patches stay sharp."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=92, subsampling=0)
    return Encoded(file.getvalue(), "image/jpeg", "picture.jpg")
