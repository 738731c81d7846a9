"""Pictures as small squares, to choose from."""

from __future__ import annotations

import base64
import io

from PIL import Image

_SIDE = 96  # pixels: twice what a page shows, for dense screens


def small_square(picture: Image.Image) -> str:
    """The middle of a picture, small, as an address that holds it whole."""
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.resize(
        (_SIDE, _SIDE), Image.Resampling.LANCZOS, (left, top, left + side, top + side), reducing_gap=2.0
    )
    file = io.BytesIO()
    square.save(file, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")
