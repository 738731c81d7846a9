"""Text on pictures and figures: its colours, its letters, and the typeface: how wide text is, its outlines, its file.

The typeface is Aileron as Pillow brings it; it has 100 glyphs, so text is spelled with those first, and nothing is ever drawn as an
empty box.
"""

from __future__ import annotations

import io
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from PIL import ImageFont

from vit_viz.errors import ParameterError
from vit_viz.sentences import formatted

if TYPE_CHECKING:
    from fontTools.pens.recordingPen import DecomposingRecordingPen

Theme = Literal["light", "dark"]
Colour = tuple[int, int, int]

_SPELLED = {
    "×": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "·": "|",
    "µ": "u",
    "α": "alpha",
    "σ": "sigma",
    "‖": "||",
}


_FIRST, _LAST = 32, 126  # all letters that `spelled` leaves


@dataclass(frozen=True)
class Inks:
    """The colours of a theme: paper, text, quieter text, thin lines, and what marks a choice."""

    paper: Colour
    text: Colour
    quiet: Colour
    line: Colour
    mark: Colour


_INKS = {  # dark as the page is, vit_viz/ui/tokens.css
    "light": Inks((255, 255, 255), (24, 24, 27), (82, 82, 91), (161, 161, 170), (194, 65, 12)),
    "dark": Inks((14, 16, 20), (236, 238, 242), (154, 163, 178), (113, 113, 122), (245, 184, 61)),
}


def inks(theme: Theme) -> Inks:
    """The colours of a theme."""
    if theme not in _INKS:
        raise ParameterError(f"A theme is light or dark, not {theme!r}.")
    return _INKS[theme]


@lru_cache(maxsize=32)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's bundled font at a size in pixels."""
    bundled = ImageFont.load_default(size)
    if not isinstance(bundled, ImageFont.FreeTypeFont):
        raise ParameterError("This installation of Pillow lacks FreeType, so pictures cannot be labelled.")
    return bundled


def spelled(text: str) -> str:
    """The text with the letters that the font has: accents dropped, signs written out, anything else as "?"."""
    text = "".join(_SPELLED.get(letter, letter) for letter in text)
    plain = (letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return "".join(
        letter if " " <= letter <= "~" or letter == "\n" else " " if letter.isspace() else "?"
        for letter in plain
    )


def number(value: float) -> str:
    """A number with three significant digits, as colour bars and captions show it."""
    return formatted(value, ".3g")


def capital(text: str) -> str:
    """A sentence as it begins."""
    return text[:1].upper() + text[1:]


# --- the typeface in points


def font_file() -> bytes:
    """The TrueType file."""
    return bytes(font(16).font_bytes)


def text_width(text: str, size: float) -> float:
    """Points that a line of text takes across."""
    letters = _letters()
    return sum(letters[letter].advance for letter in spelled(text)) * size


def outlines(text: str, x: float, y: float, size: float) -> str:
    """A line of text as an SVG path that starts at (x, y) on its baseline; "" where there is no ink."""
    from fontTools.pens.svgPathPen import SVGPathPen
    from fontTools.pens.transformPen import TransformPen

    drawn = []
    for letter in map(_letters().__getitem__, spelled(text)):
        pen = SVGPathPen(None, ntos=lambda number: f"{number:.2f}".rstrip("0").rstrip("."))
        letter.outline.replay(TransformPen(pen, (size, 0, 0, -size, x, y)))
        drawn.append(pen.getCommands())
        x += letter.advance * size
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


@dataclass(frozen=True, eq=False)
class _Letter:
    """A letter in units of the text's size: how far it moves the pen, and its outline."""

    advance: float
    outline: DecomposingRecordingPen


@cache
def _letters() -> dict[str, _Letter]:
    """Every letter that `spelled` leaves. The opened file stays here: fontTools reads it bit by bit, for one thread alone."""
    from fontTools.pens.recordingPen import DecomposingRecordingPen
    from fontTools.pens.transformPen import TransformPen
    from fontTools.ttLib import TTFont

    face = TTFont(io.BytesIO(font_file()))
    glyphs, names, em = face.getGlyphSet(), face.getBestCmap(), face["head"].unitsPerEm
    letters = {}
    for code in range(_FIRST, _LAST + 1):
        pen = DecomposingRecordingPen(glyphs)
        glyphs[names[code]].draw(TransformPen(pen, (1 / em, 0, 0, 1 / em, 0, 0)))
        letters[chr(code)] = _Letter(glyphs[names[code]].width / em, pen)
    return letters
