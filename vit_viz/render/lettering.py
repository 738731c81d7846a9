"""Text on pictures: Pillow's own font, two themes, lines that wrap.

The font that Pillow bundles (Aileron) has 100 glyphs, so text is spelled with those first; nothing is ever drawn as an empty box.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from PIL import ImageDraw, ImageFont

from vit_viz.errors import ParameterError

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
    """The colours of a theme.

    Raises:
        ParameterError: the theme is neither light nor dark.
    """
    if theme not in _INKS:
        raise ParameterError(f"A theme is light or dark, not {theme!r}.")
    return _INKS[theme]


@lru_cache(maxsize=32)
def font(size: int) -> ImageFont.FreeTypeFont:
    """Pillow's bundled font at a size in pixels.

    Raises:
        ParameterError: this Pillow was built without FreeType and has no scalable font.
    """
    bundled = ImageFont.load_default(size)
    if not isinstance(bundled, ImageFont.FreeTypeFont):
        raise ParameterError("This installation of Pillow lacks FreeType, so pictures cannot be labelled.")
    return bundled


def spelled(text: str) -> str:
    """The text with the letters that the font has: accents dropped, signs written out, anything else as "?"."""
    text = "".join(_SPELLED.get(letter, letter) for letter in text)
    plain = (letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return "".join(_one(letter) for letter in plain)


def _one(letter: str) -> str:
    if " " <= letter <= "~":
        return letter
    return letter if letter == "\n" else " " if letter.isspace() else "?"


def wrap(text: str, *, size: int, width: float) -> list[str]:
    """The text as lines no wider than `width` pixels; a word that is wider alone is cut."""
    lines: list[str] = []
    for paragraph in spelled(text).split("\n"):
        line = ""
        for word in paragraph.split():
            joined = f"{line} {word}".lstrip()
            if text_width(joined, size=size) <= width:
                line = joined
                continue
            if line:
                lines.append(line)
            *full, line = _cut(word, size=size, width=width)
            lines.extend(full)
        lines.append(line)
    return lines if text else []


def _cut(word: str, *, size: int, width: float) -> list[str]:
    """A word in pieces no wider than `width` pixels, at least one letter each."""
    pieces = [""]
    for letter in word:
        if pieces[-1] and text_width(pieces[-1] + letter, size=size) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces


def text_width(text: str, *, size: int) -> float:
    """Pixels that a line of text takes across."""
    return float(font(size).getlength(spelled(text)))


def text_size(width: int, height: int) -> int:
    """Pixels of text that suits a picture: 15 on one of 640 x 640, growing with the square root of the area."""
    return round(15 * min(max(math.sqrt(width * height) / 640, 1), 6))


def line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * 1.35)


def write(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    *,
    size: int,
    colour: Colour,
    anchor: str = "la",
    outline: Colour | None = None,
) -> None:
    """One line of text at (x, y); with an outline it can be read on any background.

    `anchor` is Pillow's: l, m, r for the horizontal and a, m, s for ascender, middle, baseline.
    """
    stroke = 0 if outline is None else max(1, round(size / 8))
    draw.text(
        at,
        spelled(text),
        fill=colour,
        font=font(size),
        anchor=anchor,
        stroke_width=stroke,
        stroke_fill=outline,
    )


def number(value: float) -> str:
    """A number with three significant digits, as colour bars and captions show it."""
    text = f"{value:.3g}"
    return "0" if text in ("-0", "0") else text
