"""The typeface of figures, Aileron as Pillow brings it: how wide text is, its outlines, and its file for documents."""

from __future__ import annotations

import io
from functools import lru_cache

from fontTools.pens.svgPathPen import SVGPathPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTFont

from vit_viz.render.lettering import font, spelled

_FIRST, _LAST = 32, 126  # all letters that `spelled` leaves


def font_file() -> bytes:
    """The TrueType file."""
    return bytes(font(16).font_bytes)


def text_width(text: str, size: float) -> float:
    """Points that a line of text takes across."""
    widths = _advances()
    return sum(widths[letter] for letter in spelled(text)) * size


def outlines(text: str, x: float, y: float, size: float) -> str:
    """A line of text as an SVG path that starts at (x, y) on its baseline; "" where there is no ink."""
    face, glyphs = _face(), _face().getGlyphSet()
    scale, drawn = size / face["head"].unitsPerEm, []
    names, widths = face.getBestCmap(), _advances()
    for letter in spelled(text):
        pen = SVGPathPen(glyphs, ntos=lambda number: f"{number:.2f}".rstrip("0").rstrip("."))
        glyphs[names[ord(letter)]].draw(TransformPen(pen, (scale, 0, 0, -scale, x, y)))
        drawn.append(pen.getCommands())
        x += widths[letter] * size
    return "".join(drawn)


def lines_of(text: str, *, size: float, width: float) -> list[str]:
    """The text as lines no wider than a number of points; a word that is wider alone is cut."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            joined = f"{line} {word}".lstrip()
            if text_width(joined, size) <= width:
                line = joined
                continue
            if line:
                lines.append(line)
            while text_width(word, size) > width and len(word) > 1:
                count = next(
                    n for n in range(len(word), 0, -1) if n == 1 or text_width(word[:n], size) <= width
                )
                lines.append(word[:count])
                word = word[count:]
            line = word
        lines.append(line)
    return lines if text.strip() else []


@lru_cache(maxsize=1)
def _face() -> TTFont:
    return TTFont(io.BytesIO(font_file()))


@lru_cache(maxsize=1)
def _advances() -> dict[str, float]:
    """How far each letter moves the pen, in units of the text's size."""
    face = _face()
    names, metrics = face.getBestCmap(), face["hmtx"]
    per_em = face["head"].unitsPerEm
    return {chr(code): metrics[names[code]][0] / per_em for code in range(_FIRST, _LAST + 1)}
