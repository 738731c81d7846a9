"""A sheet as PDF: one page, text as text in an embedded typeface, pictures without loss; the only place that uses fpdf2."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any

from fpdf import FPDF

from vit_viz.figures.lettering import font_file, spelled
from vit_viz.figures.record import xmp
from vit_viz.figures.sheet import Bitmap, Box, Mark, Path, Sheet, TextLine

# a file says nothing of when it was made, and this library asks for a date
_NO_DATE = datetime.fromtimestamp(0, UTC)


class _Document(FPDF):
    def file_id(self) -> str:
        """No identifier: equal input gives equal bytes."""
        return ""


def pdf(sheet: Sheet, *, title: str, record: str) -> bytes:
    """The file, with its record as XMP metadata."""
    with tempfile.TemporaryDirectory() as folder:
        # the library reads fonts from files, until the document is written
        face = FilePath(folder) / "Aileron.ttf"
        face.write_bytes(font_file())
        page = _Document(unit="pt", format=(sheet.width, sheet.height))
        page.set_auto_page_break(False)
        page.set_margin(0)
        page.set_image_filter("FlateDecode")
        page.set_creation_date(_NO_DATE)
        page.set_title(title)
        page.set_producer("vit_viz")
        page.set_xmp_metadata(xmp(record))
        page.add_page()
        page.add_font("Aileron", fname=face)
        for mark in sheet.marks:
            _WRITERS[type(mark)](page, mark)
        return bytes(page.output())


def _picture(page: FPDF, mark: Bitmap) -> None:
    page.image(mark.image, x=mark.left, y=mark.top, w=mark.width, h=mark.height)


def _box(page: FPDF, mark: Box) -> None:
    if mark.fill:
        page.set_fill_color(*mark.fill)
    if mark.outline:
        page.set_draw_color(*mark.outline)
        page.set_line_width(mark.stroke)
    style = ("D" if mark.outline else "") + ("F" if mark.fill else "")
    page.rect(mark.left, mark.top, mark.width, mark.height, style=style)


def _text(page: FPDF, mark: TextLine) -> None:
    page.set_font("Aileron", size=mark.size)
    page.set_text_color(*mark.colour)
    with page.rotation(90 if mark.turned else 0, mark.x, mark.y):
        page.text(mark.start, mark.y, spelled(mark.text))


def _path(page: FPDF, mark: Path) -> None:
    if mark.is_filled:
        page.set_fill_color(*mark.colour)
    else:
        page.set_draw_color(*mark.colour)
        page.set_line_width(mark.stroke)
    page.polyline(list(mark.points), polygon=mark.is_filled, style="F" if mark.is_filled else "D")


_WRITERS: dict[type[Mark], Callable[[FPDF, Any], None]] = {
    Bitmap: _picture,
    Box: _box,
    TextLine: _text,
    Path: _path,
}
