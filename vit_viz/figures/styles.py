"""Light, tint, heat: the three ways in which a map can be drawn over its photo, as formulas.

With p a pixel of the photo in sRGB and w the value of its patch on the chosen scale, in [0, 1]:

    light   d = FLOOR * luma(p) * (1 - w) + p * w     the photo in gray and dimmed, lit where the values are large
    tint    d = p + TINT * w * (ACCENT - p)           one colour whose opacity grows with the value
    heat    d = table[round(255 w)]                   a flat colour table, for exact reading
    signed  d = luma(p) + STRONGEST * |2 w - 1| * (c - luma(p))   c is FOR above the middle of the scale, AGAINST below: both signs

and what is drawn is p + s (d - p), with s the strength in [0, 1]: strength 0 is the photo bit for bit.

Each is p + a (c - p) for a colour c that does not depend on the value and an opacity a that is linear in it (light: c = FLOOR
luma(p), a = s (1 - w); tint: c = ACCENT, a = s TINT w), heat the other way round. So a value can be interpolated before or after,
and the page draws a style as one layer over the photo: `vit_viz/explorer/styles.js` has the same formulas for the browser, and
tests/figures/test_styles.py holds the two to the same pixels.

Light comes first because nothing has to be learned to read it, and because the whole photo stays recognisable; luma is that of
Rec. 709 on the encoded values, as CSS grayscale() has it. A photo that is dark, or gray, by itself cannot be dimmed and made gray
so that one sees it: there tint is drawn instead, and captions say why (`chosen`).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from vit_viz.errors import ParameterError

Style = Literal["light", "tint", "heat"]
STYLES: tuple[Style, ...] = get_args(Style)

Look = Literal[Style, "signed"]
"""What a map is drawn in: a style, or the two colours of a map of both signs."""

Floats = NDArray[np.float32]

FLOOR = 0.2
"""How bright the gray photo is where nothing falls: 0 would hide it, 0.3 no longer looks unlit."""

LUMA = (0.2126, 0.7152, 0.0722)
"""Weights of red, green and blue: Rec. 709."""

ACCENT = (255, 213, 74)
"""The colour of tint, sRGB: bright enough for dark photos and rare in them."""

TINT = 0.75
"""Opacity of tint at the top of the scale: the photo still shows through."""

STRENGTHS: dict[Look, float] = {"light": 1.0, "tint": 1.0, "heat": 0.55, "signed": 1.0}
"""The strength that each style starts with: heat hides the photo at 1, the others never do."""

FOR, AGAINST = (236, 128, 0), (44, 96, 200)
"""What a colour means everywhere, sRGB: orange is for, or more; blue is against, or less. `vit_viz/web/kit/signed.js` has the same
two, and their hues are those of `vit_viz/ui/tokens.css` and of the table "diverging" (tests/ui/test_theme.py)."""

STRONGEST = 0.85
"""Opacity of these at the ends of the scale: the gray photo still shows through."""

LIT = (255, 224, 178)
"""The pixel on which a scale bar shows light and tint, sRGB: a pale skin or sand."""

_BRIGHT = 64  # luma above which a pixel gets visibly darker when it is dimmed to the floor
_BRIGHT_SHARE = 0.25
_COLOURED = 8  # mean difference between a pixel's largest and smallest channel below which a photo is gray
_LOOK = 256  # pixels of the longer side on which a photo is judged, about


def light(photo: ArrayLike, share: ArrayLike) -> Floats:
    """The photo in gray and dimmed where the share is 0, as it is where the share is 1, linear between.

    Args:
        photo: sRGB in [0, 255], [..., 3].
        share: values on their scale, in [0, 1], [...].

    Returns:
        [..., 3] in [0, 255], not rounded.
    """
    pixels, lit = _floats(photo, share)
    dark = dimmed(pixels)
    return dark + lit * (pixels - dark)


def dimmed(photo: ArrayLike) -> Floats:
    """The photo where nothing falls: FLOOR times its luma, in every channel; [..., 1]."""
    gray: Floats = np.asarray(photo, np.float32) @ np.array(LUMA, np.float32)
    return (np.float32(FLOOR) * gray)[..., None]


def tint(photo: ArrayLike, share: ArrayLike) -> Floats:
    """The photo under one colour whose opacity grows with the share: untouched where the share is 0; as `light`."""
    pixels, tinted = _floats(photo, share)
    return pixels + np.float32(TINT) * tinted * (np.array(ACCENT, np.float32) - pixels)


def signed(photo: ArrayLike, share: ArrayLike) -> Floats:
    """The gray photo where the share is 1/2, more orange above and more blue below; as `light`."""
    pixels, place = _floats(photo, share)
    gray: Floats = (pixels @ np.array(LUMA, np.float32))[..., None]
    value = 2 * place - 1
    colour: Floats = np.where(value < 0, np.array(AGAINST, np.float32), np.array(FOR, np.float32))
    mixed: Floats = gray + np.float32(STRONGEST) * np.abs(value) * (colour - gray)
    return mixed


def heat(share: ArrayLike, colours: NDArray[np.uint8]) -> Floats:
    """The flat colour of each share: entry round(255 share), halves up, of a table [256, 3]."""
    place = np.asarray(share, np.float32) * np.float32(255) + np.float32(0.5)
    return colours[place.astype(np.uint8)].astype(np.float32)


def drawn(
    photo: ArrayLike, share: ArrayLike, *, style: Look, strength: float, colours: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """A photo in one of the styles: p + strength (d - p), rounded.

    Args:
        photo: uint8 [..., 3].
        share: values on their scale, in [0, 1], [...].
        strength: in [0, 1]; 0 returns the photo bit for bit.
        colours: the table of heat, uint8 [256, 3].
    """
    pixels = np.asarray(photo, np.float32)
    if style == "light":
        target = light(pixels, share)
    elif style == "tint":
        target = tint(pixels, share)
    elif style == "signed":
        target = signed(pixels, share)
    else:
        target = heat(share, colours)
    mixed = pixels * np.float32(1 - strength) + target * np.float32(strength)
    rounded: NDArray[np.uint8] = (mixed + np.float32(0.5)).astype(np.uint8)
    return rounded


def bar(style: Look, colours: NDArray[np.uint8], *, count: int = 256) -> NDArray[np.uint8]:
    """The scale from its low to its high end: light and tint as they look on one pale pixel, both signs on gray, heat as its table.

    Returns:
        uint8 [count, 3].
    """
    pixel = np.broadcast_to(np.array((128, 128, 128) if style == "signed" else LIT, np.uint8), (count, 3))
    return drawn(pixel, np.linspace(0, 1, count), style=style, strength=1.0, colours=colours)


def chosen(style: Style, photo: Image.Image, *, signed: bool = False) -> tuple[Look, str]:
    """The style in which a map is drawn over this photo, and in words why it is another than was asked for ("" where it is not).

    A map of both signs needs two colours: orange and blue on the gray photo, or heat with the diverging table. Light dims and
    grays: on a photo of which less than a quarter of the pixels has a luma above 64 of 255, dimming is not seen; on one whose
    pixels have channels that differ by less than 8 of 255 on average, and whose mean luma is under 128, neither is. Both get tint.
    """
    if signed and style != "heat":
        return "signed", "orange above 0, blue below, on the gray photo"
    reason = unsuitable(photo) if style == "light" else ""
    return ("tint", f"this photo is {reason} for light: tint") if reason else (style, "")


def unsuitable(photo: Image.Image) -> str:
    """What keeps a photo from being lit: "too dark", "too gray", or "" where nothing does; see `chosen`."""
    small = photo.reduce(max(1, max(photo.size) // _LOOK))
    pixels = np.asarray(small.convert("RGB"), np.float32)
    luma = pixels @ np.array(LUMA, np.float32)
    if float((luma > _BRIGHT).mean()) < _BRIGHT_SHARE:
        return "too dark"
    red, green, blue = np.moveaxis(
        pixels, -1, 0
    )  # whole channels: along an axis of three it takes ten times as long
    colour = np.maximum(np.maximum(red, green), blue) - np.minimum(np.minimum(red, green), blue)
    return "too gray" if float(colour.mean()) < _COLOURED and float(luma.mean()) < 128 else ""


def lighting() -> dict[str, object]:
    """What `unsuitable` goes by, for scripts that judge a photo themselves."""
    limits = {"bright": _BRIGHT, "bright_share": _BRIGHT_SHARE, "coloured": _COLOURED, "side": _LOOK}
    return {"luma": list(LUMA), **limits}


def check(style: str, strength: float) -> None:
    """Refuse a style that does not exist, or a strength outside [0, 1]."""
    if style not in get_args(Look):
        raise ParameterError(f"A style is one of {', '.join(STYLES)}, not {style[:40]!r}.")
    if not 0 <= strength <= 1:
        raise ParameterError(f"The strength must be between 0 and 1, not {strength}.")


def _floats(photo: ArrayLike, share: ArrayLike) -> tuple[Floats, Floats]:
    """Pixels [..., 3] and shares [..., 1] that multiply them."""
    return np.asarray(photo, np.float32), np.asarray(share, np.float32)[..., None]
