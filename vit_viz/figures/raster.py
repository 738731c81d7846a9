"""A sheet as pixels, at so many for an inch."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from vit_viz.figures.lettering import font_file, spelled
from vit_viz.figures.sheet import Bitmap, Box, Mark, Path, Sheet, TextLine, checked

_FINE = 4  # lines are drawn this much larger and reduced, as Pillow does not smooth them


def raster(sheet: Sheet, *, dpi: float) -> Image.Image:
    """The sheet as a picture, mode RGB."""
    scale = dpi / 72
    size = checked(round(sheet.width * scale), round(sheet.height * scale))
    paper = Image.new("RGB", size, (255, 255, 255))
    for mark in sheet.marks:
        _WRITERS[type(mark)](paper, mark, scale)
    return paper


def _edges(mark: Bitmap | Box, scale: float) -> tuple[int, int, int, int]:
    """Left, top, right, bottom in whole pixels; at least one pixel each way."""
    left, top = round(mark.left * scale), round(mark.top * scale)
    right, bottom = round((mark.left + mark.width) * scale), round((mark.top + mark.height) * scale)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _picture(paper: Image.Image, mark: Bitmap, scale: float) -> None:
    left, top, right, bottom = _edges(mark, scale)
    how = Image.Resampling.NEAREST if mark.sharp else Image.Resampling.LANCZOS
    paper.paste(mark.image.resize((right - left, bottom - top), how), (left, top))


def _box(paper: Image.Image, mark: Box, scale: float) -> None:
    left, top, right, bottom = _edges(mark, scale)
    width = max(1, round(mark.stroke * scale)) if mark.outline else 0
    ImageDraw.Draw(paper).rectangle(
        (left, top, right - 1, bottom - 1), fill=mark.fill, outline=mark.outline, width=width
    )


def _text(paper: Image.Image, mark: TextLine, scale: float) -> None:
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[mark.anchor]
    at, face, words = (mark.x * scale, mark.y * scale), _font(mark.size * scale), spelled(mark.text)
    if not mark.turned:
        ImageDraw.Draw(paper).text(at, words, fill=mark.colour, font=face, anchor=anchor)
        return
    up, down = face.getmetrics()
    mask = Image.new("L", (math.ceil(face.getlength(words)), up + down), 0)
    ImageDraw.Draw(mask).text((0, up), words, fill=255, font=face, anchor="ls")
    mask = mask.transpose(Image.Transpose.ROTATE_90)
    paper.paste(mark.colour, (round(at[0]) - up, round(at[1]) - mask.height), mask)


def _path(paper: Image.Image, mark: Path, scale: float) -> None:
    fine = scale * _FINE
    across, down = zip(*mark.points, strict=True)
    room = mark.stroke + 1
    left, top = int((min(across) - room) * scale), int((min(down) - room) * scale)
    size = [int((max(side) + room) * scale) + 1 - start for side, start in ((across, left), (down, top))]
    mask = Image.new("L", (size[0] * _FINE, size[1] * _FINE), 0)
    points = [(x * fine - left * _FINE, y * fine - top * _FINE) for x, y in mark.points]
    draw = ImageDraw.Draw(mask)
    if mark.is_filled:
        draw.polygon(points, fill=255)
    else:
        draw.line(points, fill=255, width=max(_FINE, round(mark.stroke * fine)), joint="curve")
    paper.paste(mark.colour, (left, top), mask.reduce(_FINE))


_WRITERS: dict[type[Mark], Callable[[Image.Image, Any, float], None]] = {
    Bitmap: _picture,
    Box: _box,
    TextLine: _text,
    Path: _path,
}


@lru_cache(maxsize=32)
def _font(size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(io.BytesIO(font_file()), size)
