"""A picture that explains itself: title above, colour bar with numbers and caption below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from vit_viz.render.colormaps import Limits, Table, limits
from vit_viz.render.colormaps import table as colour_table
from vit_viz.render.lettering import (
    Inks,
    Theme,
    inks,
    line_height,
    number,
    text_size,
    text_width,
    wrap,
    write,
)
from vit_viz.render.overlay import Outside, default_table, overlay
from vit_viz.render.styles import Style, bar, chosen
from vit_viz.results import PatchMap

_SMALLEST = 360  # pixels: narrower pictures are enlarged, as a caption needs room


@dataclass(frozen=True)
class ColourBar:
    """The scale of a picture: how values look from its low to its high end, and what the ends stand for.

    Args:
        table: name of the colour table, for heat.
        low: value at the low end, or words where every map has its own.
        high: value at the high end, or words.
        unit: what one value counts.
        style: light runs from dark to light, tint from a pale pixel to the tinted one, heat through the table.
    """

    table: Table
    low: float | str
    high: float | str
    unit: str = ""
    style: Style = "heat"

    @property
    def is_constant(self) -> bool:
        """Whether both ends are the same number, so that there is a single colour."""
        return not isinstance(self.low, str) and self.low == self.high


@dataclass(frozen=True)
class _Page:
    """Sizes that the parts of one captioned picture share, in pixels."""

    width: int
    margin: int
    text: int
    colours: Inks

    @property
    def inner(self) -> int:
        return self.width - 2 * self.margin


def captioned(
    picture: Image.Image,
    *,
    title: str = "",
    caption: str = "",
    bar: ColourBar | None = None,
    theme: Theme = "light",
) -> Image.Image:
    """The picture with its title, colour bar and caption, in mode RGB; the picture's own pixels are unchanged.

    Text grows with the picture. Small pictures are enlarged by a whole factor, so every pixel stays a square.
    """
    picture = _enlarged(picture.convert("RGB"))
    page = _page(picture, theme)
    parts = [_title(page, title)] if title else []
    parts.append(_framed(page, picture))
    if bar is not None:
        parts.append(_colour_bar(page, bar))
    if caption:
        parts.append(_paragraph(page, caption, page.colours.quiet))
    return _stacked(page, parts)


def captioned_map(
    photo: Image.Image,
    patch_map: PatchMap,
    *,
    style: Style = "heat",
    alpha: float = 0.6,
    table: Table | None = None,
    scale: Limits | None = None,
    scale_name: str = "own",
    smooth: bool = False,
    outside: Outside = "photo",
    title: str = "",
    theme: Theme = "light",
) -> Image.Image:
    """The map over the photo as a figure of its own: model, layer, head, query, direction, method and scale in words.

    Args:
        style: as `overlay` draws it; where it does not suit the photo or the map another is drawn, and the caption says so.
        scale: ends of the scale; None means this map's own.
        scale_name: over what the ends were taken, as the caption says it: "own", "layer 3", "shared".
        title: first line; empty means the map's method.

    Raises:
        ParameterError: as `overlay` raises it.
    """
    ends = limits(patch_map.values, signed=patch_map.signed) if scale is None else scale
    colours = table or default_table(signed=patch_map.signed)
    style, why = chosen(style, photo, signed=patch_map.signed)
    drawn = overlay(
        photo,
        patch_map,
        style=style,
        alpha=alpha,
        table=colours,
        scale=ends,
        smooth=smooth,
        outside=outside,
    )
    legend = ColourBar(colours, *ends, unit=patch_map.unit, style=style)
    caption = map_caption(
        patch_map, scale_name=scale_name, alpha=alpha, smooth=smooth, style_name=why or style
    )
    return captioned(drawn, title=title or map_title(patch_map), caption=caption, bar=legend, theme=theme)


def map_title(patch_map: PatchMap) -> str:
    """The first line of a figure for which none was chosen: the map's method."""
    return _capital(patch_map.method)


def map_caption(
    patch_map: PatchMap,
    *,
    scale_name: str,
    smooth: bool = False,
    alpha: float | None = None,
    style_name: str = "",
) -> str:
    """A map in words: what it is, of which model, how it was drawn, and what it does not show; one line for each."""
    low, high = float(patch_map.values.min()), float(patch_map.values.max())
    values = f"this map's own values {number(low)} to {number(high)}"
    drawing = drawn_words(style_name, smooth=smooth, alpha=alpha)
    of_model = patch_map.provenance.model_words
    lines = [
        _sentence(patch_map.caption),
        _sentence("; ".join(part for part in (of_model, patch_map.provenance.preprocess) if part)),
        _sentence(_beside_patches(patch_map)),
        _sentence(f"Scale: {scale_name}; {values}; {drawing}"),
        "Class-blind: does not depend on the predicted class." if patch_map.class_blind else "",
        _sentence(patch_map.note),
    ]
    return "\n".join(line for line in lines if line)


def drawn_words(style_name: str, *, smooth: bool, alpha: float | None = None) -> str:
    """How a map was drawn, as captions say it: the style, smooth or patches, and the strength where it is not full."""
    strength = "" if alpha is None or alpha == 1 else f"strength {alpha:.0%}"
    drawing = "smooth between patch centres" if smooth else "patches as they are"
    return "; ".join(part for part in (style_name, drawing, strength) if part)


def _beside_patches(patch_map: PatchMap) -> str:
    """What fell on prefix tokens, and on suffix tokens by kind: a patch map alone hides it."""
    lines = []
    for where, values in (("Prefix", patch_map.prefix), ("Suffix", patch_map.suffix_kinds)):
        parts = [f"{name} = {number(value)}" for name, value in values.items()]
        lines += [f"{where} tokens, not drawn: {', '.join(parts)}"] if parts else []
    return ". ".join(lines)


def _sentence(text: str) -> str:
    """The text with a capital and a full stop, or nothing."""
    text = text.strip()
    return _capital(text) + ("" if text.endswith((".", "!", "?")) else ".") if text else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _enlarged(picture: Image.Image) -> Image.Image:
    factor = -(-_SMALLEST // max(picture.size))
    if factor <= 1:
        return picture
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)


def _page(picture: Image.Image, theme: Theme) -> _Page:
    text = text_size(picture.width, picture.height)
    width = max(picture.width, _SMALLEST, 18 * text)
    return _Page(width=width + 2 * text, margin=text, text=text, colours=inks(theme))


def _stacked(page: _Page, parts: list[Image.Image]) -> Image.Image:
    """The parts below each other, with even gaps."""
    gap = round(page.text * 0.7)
    height = sum(part.height for part in parts) + gap * (len(parts) - 1) + 2 * page.margin
    sheet = Image.new("RGB", (page.width, height), page.colours.paper)
    top = page.margin
    for part in parts:
        sheet.paste(part, (page.margin, top))
        top += part.height + gap
    return sheet


def _framed(page: _Page, picture: Image.Image) -> Image.Image:
    """The picture, centred where the page is wider."""
    sheet = Image.new("RGB", (page.inner, picture.height), page.colours.paper)
    sheet.paste(picture, ((page.inner - picture.width) // 2, 0))
    return sheet


def _title(page: _Page, title: str) -> Image.Image:
    return _lines(page, title, size=round(page.text * 1.25), colour=page.colours.text)


def _paragraph(page: _Page, text: str, colour: tuple[int, int, int]) -> Image.Image:
    return _lines(page, text, size=page.text, colour=colour)


def _lines(page: _Page, text: str, *, size: int, colour: tuple[int, int, int]) -> Image.Image:
    lines = wrap(text, size=size, width=page.inner)
    sheet = Image.new("RGB", (page.inner, line_height(size) * len(lines)), page.colours.paper)
    draw = ImageDraw.Draw(sheet)
    for row, line in enumerate(lines):
        write(draw, (0, row * line_height(size)), line, size=size, colour=colour)
    return sheet


def _colour_bar(page: _Page, bar: ColourBar) -> Image.Image:
    """A strip of the table with its ends and middle as numbers, and the unit."""
    wide = min(page.inner, 30 * page.text)
    tall = round(page.text * 0.9)
    labels = _labels(bar, wide=wide, size=page.text)
    unit = wrap(bar.unit, size=page.text, width=page.inner)
    height = tall + line_height(page.text) * (1 + len(unit)) + page.text // 4
    sheet = Image.new("RGB", (page.inner, height), page.colours.paper)
    sheet.paste(_strip(bar, wide, tall), (0, 0))
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((0, 0, wide - 1, tall - 1), outline=page.colours.line, width=max(1, page.text // 15))
    under = tall + page.text // 4
    for text, share, anchor in labels:
        write(draw, (share * wide, under), text, size=page.text, colour=page.colours.text, anchor=anchor)
    for row, line in enumerate(unit, start=1):
        at = (0, under + row * line_height(page.text))
        write(draw, at, line, size=page.text, colour=page.colours.quiet)
    return sheet


def _strip(legend: ColourBar, wide: int, tall: int) -> Image.Image:
    """The scale from left to right; one colour where the scale has no width."""
    colours = bar(legend.style, colour_table(legend.table), count=256)
    places = (
        np.full(wide, 128) if legend.is_constant else np.floor(np.linspace(0, 255, wide) + 0.5).astype(int)
    )
    return Image.fromarray(np.repeat(colours[places][None], tall, axis=0))


def _labels(bar: ColourBar, *, wide: int, size: int) -> list[tuple[str, float, str]]:
    """What stands under the bar: (text, place in [0, 1], anchor)."""
    if bar.is_constant:
        return [(f"constant {_end(bar.low)}", 0.0, "la")]
    ends = [(_end(bar.low), 0.0, "la"), (_end(bar.high), 1.0, "ra")]
    if isinstance(bar.low, str) or isinstance(bar.high, str):
        return ends
    middle = number((bar.low + bar.high) / 2)
    room = wide - sum(text_width(text, size=size) for text, _, _ in ends) - 2 * size
    return [*ends, (middle, 0.5, "ma")] if text_width(middle, size=size) < room else ends


def _end(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)
