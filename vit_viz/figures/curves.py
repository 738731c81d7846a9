"""Lines and bars: curves with their band, rankings, and the strongest links over their photo."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vit_viz.analyses.links import Links
from vit_viz.figures import blocks
from vit_viz.figures.blocks import TEXT, numbers
from vit_viz.figures.colormaps import Limits, limits
from vit_viz.figures.lettering import Colour, capital, inks, lines_of, number, text_width
from vit_viz.figures.scene import Drawn, Scene, drawn, joined
from vit_viz.figures.sheet import Box, FigureBlock, Mark, Path, Point, TextLine
from vit_viz.results import Curve, Ranking
from vit_viz.sentences import formatted

_INKS = inks("light")
_WIDEST = 2.2  # points of the strongest link
_MOST_NAMES = 20
_MOST_DOTS = 40  # points of a curve that are marked one by one


@drawn.register(Curve)
def _curve(curve: Curve, scene: Scene) -> Drawn:
    caption = joined(scene.about(curve.provenance), curve.note)
    return Drawn([_curve_block(curve, scene.inner)], curve.provenance, capital(curve.method), caption)


@drawn.register(Ranking)
def _ranking(ranking: Ranking, scene: Scene) -> Drawn:
    """Names with bars from 0 and numbers, best first."""
    names, scores = ranking.names[:_MOST_NAMES], ranking.scores[:_MOST_NAMES].tolist()
    shown = [lines_of(name, size=TEXT, width=0.42 * scene.inner) or [""] for name in names]
    first = [lines[0] + (" .." if len(lines) > 1 else "") for lines in shown]
    left = max((text_width(name, TEXT) for name in first), default=0.0) + TEXT
    alike = numbers(scores)
    room = max((text_width(words, TEXT) for words in alike), default=0.0) + TEXT
    longest, step = max([abs(score) for score in scores] or [0.0]) or 1.0, 1.7 * TEXT
    marks: list[Mark] = []
    for row, (name, score, words) in enumerate(zip(first, scores, alike, strict=True)):
        wide, base = (scene.inner - left - room) * abs(score) / longest, row * step + TEXT
        marks.append(TextLine(left - 0.6 * TEXT, base, name, TEXT, _INKS.text, "end"))
        marks.append(Box(left, row * step + 0.15 * TEXT, max(wide, 0.3), TEXT, fill=_INKS.line))
        marks.append(TextLine(left + wide + 3, base, words, TEXT, _INKS.text))
    bars = FigureBlock(step * len(names), tuple(marks))
    body = [bars, blocks.caption_block(ranking.unit, scene.inner)]
    caption = joined(scene.about(ranking.provenance), ranking.note)
    return Drawn(body, ranking.provenance, capital(ranking.method), caption)


@drawn.register(Links)
def _links(links: Links, scene: Scene) -> Drawn:
    """The links as lines from the patch that looks to the one that it looks at, and as a ranking."""
    inner = _ranking(links, scene)
    caption = joined(
        links.caption, f"Together {links.share:.1%} of the weight of all that were compared", inner.caption
    )
    return Drawn([*_lines(links, scene), *inner.blocks], links.provenance, inner.title, caption)


def _lines(links: Links, scene: Scene) -> list[FigureBlock]:
    if scene.photo is None or links.crop_box is None or not len(links.pairs):
        return []
    layout, unit = scene.trace.layout, scene.inner / scene.photo.width
    marks: list[Mark] = []
    for (query, key), score in zip(links.pairs.tolist(), links.scores.tolist(), strict=True):
        places = [layout.place(token) for token in (query, key)]
        if None in places or query == key:
            continue
        patches = [links.crop_box.patch_rect(*place, layout.grid) for place in places if place is not None]
        start, end = (
            (unit * (left + right) / 2, unit * (top + bottom) / 2) for top, left, bottom, right in patches
        )
        wide = max(0.4, _WIDEST * score / float(links.scores.max()))
        marks += [Path((start, end), (20, 20, 24), wide + 0.8), Path((start, end), (245, 184, 61), wide)]
        marks += _dot(end, 1.2 + wide / 2, (245, 184, 61))
    return [blocks.picture_block(scene.photo, scene.inner, tuple(marks))]


# --- as marks


def _dot(at: Point, radius: float, colour: Colour) -> list[Mark]:
    """A filled point, as a polygon of twelve corners."""
    turns = [2 * math.pi * step / 12 for step in range(12)]
    corners = tuple((at[0] + radius * math.cos(turn), at[1] + radius * math.sin(turn)) for turn in turns)
    return [Path(corners, colour, is_filled=True)]


def _curve_block(curve: Curve, width: float) -> FigureBlock:
    """A line with its axes, over its band where it has one."""
    left, top, bottom = 4.2 * TEXT, 2.2 * TEXT, 2.8 * TEXT
    wide, tall = width - left - TEXT, 0.55 * width
    edges = [curve.y, *(curve.band or ())]
    x_ends, (least, most) = limits(curve.x), limits(np.concatenate(edges))
    parameters = dict(curve.provenance.parameters)
    # an output that is a value may be far from 0 on every photo: its axis need not begin there
    is_of_value = parameters.get("output") == "value" and parameters.get("followed") == curve.y_label
    y_ends = (least, most) if is_of_value else (min(0.0, least), max(0.0, most))

    def place(x: float, y: float) -> tuple[float, float]:
        return left + wide * _share(x, x_ends), top + tall * (1 - _share(y, y_ends))

    marks: list[Mark] = []
    if curve.band is not None:
        low, high = curve.band
        around = [*zip(curve.x, high, strict=True), *zip(curve.x[::-1], low[::-1], strict=True)]
        marks.append(Path(tuple(place(x, y) for x, y in around), (226, 226, 232), is_filled=True))
    marks.append(Path(((left, top), (left, top + tall), (left + wide, top + tall)), _INKS.line, 0.5))
    x_ticks, y_ticks = _ticks(x_ends), _ticks(y_ends)
    for value, words in zip(x_ticks, _tick_words(x_ticks), strict=True):
        at = place(value, y_ends[0])[0]
        marks.append(TextLine(at, top + tall + 1.3 * TEXT, words, TEXT, _INKS.text, "middle"))
        marks.append(Path(((at, top + tall), (at, top + tall + 2)), _INKS.line, 0.5))
    for value, words in zip(y_ticks, _tick_words(y_ticks), strict=True):
        at = place(x_ends[0], value)[1]
        marks.append(TextLine(left - 4, at + 0.35 * TEXT, words, TEXT, _INKS.text, "end"))
        marks.append(Path(((left - 2, at), (left, at)), _INKS.line, 0.5))
    marks.append(TextLine(0, TEXT * 0.9, curve.y_label, TEXT, _INKS.quiet))
    marks.append(TextLine(left + wide, top + tall + 2.5 * TEXT, curve.x_label, TEXT, _INKS.quiet, "end"))
    line = tuple(place(x, y) for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True))
    marks.append(Path(line if len(line) > 1 else line * 2, _INKS.mark, 1.0))
    if len(line) <= _MOST_DOTS:
        marks += [mark for at in line for mark in _dot(at, 1.5, _INKS.mark)]
    return FigureBlock(top + tall + bottom, tuple(marks))


def _tick_words(ticks: Sequence[float]) -> list[str]:
    """Round numbers with equally many decimals."""
    texts = [number(tick) for tick in ticks]
    if any("e" in text for text in texts):
        return texts
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return [formatted(tick, f".{decimals}f") for tick in ticks]


def _share(value: float, ends: Limits) -> float:
    low, high = ends
    return (float(value) - low) / (high - low) if high > low else 0.5


def _ticks(ends: Limits) -> Sequence[float]:
    """Round numbers between the ends, about five; the one there is where the ends are equal."""
    low, high = ends
    if high <= low:
        return [low]
    rough = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    return [
        round(n * step, 12) for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]
