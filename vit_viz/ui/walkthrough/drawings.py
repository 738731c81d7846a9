"""Small pictures, tables and curves of a step, as HTML in which every text is escaped; pictures travel as data URIs."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from vit_viz.figures.colormaps import Limits, apply, limits
from vit_viz.figures.lettering import Theme, number

_CURVE = (320, 120)  # units of a curve's own space; the page scales it


def picture(
    image: Image.Image,
    *,
    alt: str,
    width: int,
    caption: str = "",
    sharp: bool = True,
    look: Theme | None = None,
) -> str:
    """A picture with its caption.

    Args:
        width: in pixels of a page of usual width, with which it grows; never wider than its place.
        sharp: whether pixels stay squares when they are enlarged.
        look: of the page, the only one that shows this picture; None: both do.
    """
    is_photo = not sharp and image.width * image.height > 4096
    style = f"width:{_grown(width)}" + (";image-rendering:pixelated" if sharp else "")
    words = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    shown_in = f" vv-w-{look}" if look else ""
    return (
        f'<figure class="vv-w-picture{shown_in}"><img alt="{html.escape(alt)}" style="{style}" '
        f'src="{data_uri(image, jpeg=88 if is_photo else 0)}">{words}</figure>'
    )


def _grown(pixels: int) -> str:
    """A length that grows with the page, as CSS."""
    return f"calc({pixels} * var(--vv-unit))"


def coloured(values: ArrayLike, *, signed: bool = False, scale: Limits | None = None) -> Image.Image:
    """Values [rows, cols] as colours, one pixel each; on their own scale where none is given."""
    low, high = limits(values, signed=signed) if scale is None else scale
    return Image.fromarray(apply(values, vmin=low, vmax=high, table="diverging" if signed else "viridis"))


def heat(
    values: ArrayLike,
    *,
    name: str,
    width: int = 150,
    caption: str = "",
    signed: bool = False,
    scale: Limits | None = None,
) -> str:
    """A map [rows, cols] with the ends of its scale below."""
    array = np.asarray(values)
    low, high = limits(array, signed=signed) if scale is None else scale
    words = caption or f"{name}: {number(low)} to {number(high)}"
    return picture(coloured(array, signed=signed, scale=scale), alt=words, width=width, caption=words)


def strip(values: ArrayLike, *, name: str, rows: int = 1, scale: Limits | None = None) -> str:
    """A row of signed numbers as a strip of colours: blue below 0, white at 0, orange above."""
    array = np.asarray(values, dtype=np.float64).reshape(rows, -1)
    low, high = limits(array, signed=True) if scale is None else scale
    image = coloured(array, signed=True, scale=(low, high))
    words = f"{name}: {array.size} numbers from {number(float(array.min()))} to {number(float(array.max()))}"
    return (
        f'<figure class=vv-w-strip><img alt="{html.escape(words)}" src="{data_uri(image)}" style="height:{_grown(16 * rows)}">'
        f"<figcaption>{html.escape(words)}</figcaption></figure>"
    )


def vector(values: NDArray[Any], *, name: str) -> str:
    """A vector as a strip, of two lines where its numbers could not be told apart in one."""
    return strip(values, name=name, rows=2 if values.size % 2 == 0 and values.size > 256 else 1)


def row(*parts: str) -> str:
    """Pictures side by side; they wrap where there is no room."""
    return f"<div class=vv-w-row>{''.join(parts)}</div>"


def part(title: str, *inside: str) -> str:
    """A titled part of a step."""
    return f"<section class=vv-w-part><h3>{html.escape(title)}</h3>{''.join(inside)}</section>"


def line(text: str) -> str:
    """A sentence below a picture."""
    return f"<p class=vv-w-line>{html.escape(text)}</p>"


def sum_line(text: str) -> str:
    """Arithmetic with real numbers, set apart."""
    return f"<p class=vv-w-sum><code>{html.escape(text)}</code></p>"


def grid(head: Sequence[str], rows: Sequence[Sequence[Any]], *, chosen: int | None = None) -> str:
    """A table of numbers and words; numbers get three digits."""
    top = "".join(f"<th scope=col>{html.escape(name)}</th>" for name in head)
    body = ""
    for place, cells in enumerate(rows):
        mark = " class=vv-w-chosen" if place == chosen else ""
        texts = [
            number(float(cell)) if isinstance(cell, float | np.floating) else str(cell) for cell in cells
        ]
        body += f"<tr{mark}>" + "".join(f"<td>{html.escape(text)}</td>" for text in texts) + "</tr>"
    return f"<div class=vv-w-scroll tabindex=0><table class=vv-w-table><tr>{top}</tr>{body}</table></div>"


def bars(items: Sequence[tuple[str, float, str]]) -> str:
    """Lines (name, share in [0, 1], words), each with a bar."""
    lines = "".join(
        f'<li style="--share:{100 * min(max(share, 0.0), 1.0):.1f}%"><span>{html.escape(name)}</span>'
        f"<b>{html.escape(words)}</b></li>"
        for name, share, words in items
    )
    return f"<ul class=vv-w-bars>{lines}</ul>"


def curves(
    series: Sequence[tuple[str, ArrayLike, ArrayLike]],
    *,
    label: str,
    x_label: str,
    histogram: tuple[ArrayLike, ArrayLike] | None = None,
    mark: float | None = None,
) -> str:
    """Curves (name, x, y) in one frame, in the page's own colours; a histogram (counts, edges) behind them.

    Args:
        label: what the picture is, for screen readers.
        mark: an x that is marked by a line.
    """
    xs = np.concatenate([np.asarray(x, np.float64) for _, x, _ in series])
    ys = np.concatenate([np.asarray(y, np.float64) for _, _, y in series])
    frame = (float(xs.min()), float(xs.max()), min(0.0, float(ys.min())), float(ys.max()) or 1.0)
    width, height = _CURVE
    inside = [] if histogram is None else [_histogram(*histogram, frame)]
    inside.append(_axis(frame))
    if mark is not None:
        at = _scaled(np.array([mark]), frame[0], frame[1], width)[0]
        inside.append(f'<line class=vv-w-at x1="{at:.1f}" x2="{at:.1f}" y1=0 y2={height} />')
    names = []
    for place, (name, x, y) in enumerate(series):
        across = _scaled(np.asarray(x, np.float64), frame[0], frame[1], width)
        down = height - _scaled(np.asarray(y, np.float64), frame[2], frame[3], height)
        points = " ".join(f"{a:.1f},{d:.1f}" for a, d in zip(across, down, strict=True))
        inside.append(f'<polyline class="vv-w-curve vv-w-c{place}" points="{points}" />')
        names.append(f'<span class="vv-w-c{place}">{html.escape(name)}</span>')
    ends = f"{number(frame[0])} to {number(frame[1])} {x_label}; {number(frame[2])} to {number(frame[3])} upwards"
    return (
        f'<figure class=vv-w-plot><svg viewBox="-2 -4 {width + 4} {height + 8}" role=img aria-label="{html.escape(label)}">'
        f"{''.join(inside)}</svg><figcaption>{' '.join(names)} <i>{html.escape(ends)}</i></figcaption></figure>"
    )


def ruled(image: Image.Image, *, patch: int, longest: int = 320) -> Image.Image:
    """A picture cut into squares of `patch` pixels; what fits into no whole one is hatched."""
    factor = longest / max(image.size)
    wide, tall = (max(1, round(side * factor)) for side in image.size)
    sheet = image.convert("RGB").resize((wide, tall), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(sheet)
    right, bottom = (side // patch * patch * factor for side in image.size)
    for step in range(-tall, wide, 7):
        draw.line((step, tall, step + tall, 0), fill=(120, 120, 120), width=2)
    inside = image.convert("RGB").resize((wide, tall), Image.Resampling.BICUBIC)
    sheet.paste(inside.crop((0, 0, round(right), round(bottom))), (0, 0))
    draw = ImageDraw.Draw(sheet)
    for col in range(0, image.width, patch):
        draw.line((col * factor, 0, col * factor, bottom), fill=(255, 255, 255))
    for down in range(0, image.height, patch):
        draw.line((0, down * factor, right, down * factor), fill=(255, 255, 255))
    return sheet


def weights_picture(weights: ArrayLike) -> Image.Image:
    """A filter [channels, rows, cols] as a picture: gray is 0, brighter above, darker below."""
    array = np.asarray(weights, dtype=np.float64)
    largest = float(abs(array).max()) or 1.0
    pixels = np.round(127.5 + 127.5 * array / largest).astype(np.uint8)
    if len(pixels) == 3:
        return Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.mean(0).astype(np.uint8))


def sheet_of(pictures: Sequence[Image.Image], *, across: int, gap: int = 1) -> Image.Image:
    """Small pictures of one size laid out in lines of `across`."""
    wide, tall = pictures[0].size
    lines = -(-len(pictures) // across)
    sheet = Image.new("RGB", (across * (wide + gap) - gap, lines * (tall + gap) - gap), (255, 255, 255))
    for place, one in enumerate(pictures):
        down, right = divmod(place, across)
        sheet.paste(one.convert("RGB"), (right * (wide + gap), down * (tall + gap)))
    return sheet


def data_uri(image: Image.Image, *, jpeg: int = 0) -> str:
    """A picture as an address that holds it whole: as PNG, or as JPEG of this quality."""
    file = io.BytesIO()
    if jpeg:
        image.save(file, "JPEG", quality=jpeg)
    else:
        image.save(file, "PNG", compress_level=3)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return f"data:image/{'jpeg' if jpeg else 'png'};base64,{data}"


def _scaled(values: NDArray[np.float64], low: float, high: float, size: int) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = (values - low) / ((high - low) or 1.0) * size
    return scaled


def _axis(frame: tuple[float, float, float, float]) -> str:
    """The line y = 0, and x = 0 where it is inside."""
    width, height = _CURVE
    down = height - float(_scaled(np.zeros(1), frame[2], frame[3], height)[0])
    axis = f'<line class=vv-w-axis x1=0 x2={width} y1="{down:.1f}" y2="{down:.1f}" />'
    if frame[0] < 0 < frame[1]:
        at = float(_scaled(np.zeros(1), frame[0], frame[1], width)[0])
        axis += f'<line class=vv-w-axis x1="{at:.1f}" x2="{at:.1f}" y1=0 y2={height} />'
    return axis


def _histogram(counts: ArrayLike, edges: ArrayLike, frame: tuple[float, float, float, float]) -> str:
    width, height = _CURVE
    tall = np.asarray(counts, np.float64)
    tall = tall / (tall.max() or 1.0) * height * 0.9
    at = _scaled(np.asarray(edges, np.float64), frame[0], frame[1], width)
    return "".join(
        f'<rect class=vv-w-count x="{at[i]:.1f}" y="{height - tall[i]:.1f}" '
        f'width="{max(at[i + 1] - at[i], 0.5):.1f}" height="{tall[i]:.1f}" />'
        for i in range(len(tall))
    )
