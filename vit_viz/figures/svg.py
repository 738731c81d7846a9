"""A sheet as SVG: text as outlines, so that it looks the same wherever it is opened, and pictures embedded."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable
from typing import Any

from vit_viz.figures.lettering import Colour, outlines
from vit_viz.figures.record import as_xml
from vit_viz.figures.sheet import POINTS_PER_CM, Bitmap, Box, Mark, Path, Sheet, TextLine


def svg(sheet: Sheet, *, title: str, record: str) -> bytes:
    """The file, with its record as metadata."""
    width, height = (_number(side / POINTS_PER_CM) for side in (sheet.width, sheet.height))
    view = f"0 0 {_number(sheet.width)} {_number(sheet.height)}"
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" role="img" '
        f'width="{width}cm" height="{height}cm" viewBox="{view}">',
        f"<title>{html.escape(_printable(title))}</title>",
        f"<metadata>{as_xml(record)}</metadata>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_WRITERS[type(mark)](mark) for mark in sheet.marks),
        "</svg>\n",
    ]
    return "\n".join(part for part in parts if part).encode()


def _picture(mark: Bitmap) -> str:
    file = io.BytesIO()
    mark.image.save(file, "PNG", compress_level=6)
    data = base64.b64encode(file.getvalue()).decode()
    how = ' style="image-rendering:pixelated"' if mark.sharp else ""
    return (
        f'<image {_place(mark)} preserveAspectRatio="none"{how} xlink:href="data:image/png;base64,{data}"/>'
    )


def _box(mark: Box) -> str:
    line = f' stroke="{_hex(mark.outline)}" stroke-width="{_number(mark.stroke)}"' if mark.outline else ""
    fill = _hex(mark.fill) if mark.fill else "none"
    return f'<rect {_place(mark)} fill="{fill}"{line}/>'


def _text(mark: TextLine) -> str:
    drawn = outlines(mark.text, mark.start, mark.y, mark.size)
    label = html.escape(_printable(mark.text))
    turn = f' transform="rotate(-90 {_number(mark.x)} {_number(mark.y)})"' if mark.turned else ""
    return f'<path aria-label="{label}" fill="{_hex(mark.colour)}"{turn} d="{drawn}"/>' if drawn else ""


def _path(mark: Path) -> str:
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in mark.points)
    if mark.is_filled:
        return f'<polygon points="{points}" fill="{_hex(mark.colour)}"/>'
    line = f'stroke="{_hex(mark.colour)}" stroke-width="{_number(mark.stroke)}" stroke-linejoin="round"'
    return f'<polyline points="{points}" fill="none" {line}/>'


_WRITERS: dict[type[Mark], Callable[[Any], str]] = {Bitmap: _picture, Box: _box, TextLine: _text, Path: _path}


def _place(mark: Bitmap | Box) -> str:
    sides = {"x": mark.left, "y": mark.top, "width": mark.width, "height": mark.height}
    return " ".join(f'{name}="{_number(side)}"' for name, side in sides.items())


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _printable(text: str) -> str:
    """Without what XML has no place for."""
    return "".join(letter for letter in text if letter.isprintable())
