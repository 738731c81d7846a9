"""Curves, rankings and links as marks: each where its own axes say that it lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ui.desk import odd_picture
from vit_viz.analyses.links import Links
from vit_viz.answer import Provenance
from vit_viz.figures import curves, files
from vit_viz.figures.blocks import TEXT
from vit_viz.figures.request import Output
from vit_viz.figures.scene import Scene, drawn
from vit_viz.figures.sheet import Bitmap, Box, Mark, Path, TextLine
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.results import Curve, Ranking

X = np.array([0, 2, 3, 8])
Y = np.array([0.1, 0.9, 0.4, -0.2])
BAND = (Y - np.array([0.2, 0.1, 0.3, 0.25]), Y + np.array([0.05, 0.45, 0.15, 0.2]))  # from -0.45 to 1.35


def marks_of(answer: Any, **scene: Any) -> list[Mark]:
    assert curves in files.KINDS
    return list(drawn(answer, Scene(Output("png", 12.0, 72), **scene)).blocks[0].marks)


def curve(x: Any = X, y: Any = Y, provenance: Provenance | None = None, **changes: Any) -> Curve:
    return Curve(
        np.asarray(x), np.asarray(y), "share", "p", "deletion", provenance or Provenance(), **changes
    )


def axes(marks: list[Mark], x_ends: tuple[float, float], y_ends: tuple[float, float]) -> Any:
    """Where a point of the curve lies, by the axes as they are drawn."""
    (line,) = (
        mark.points
        for mark in marks
        if isinstance(mark, Path) and len(mark.points) == 3 and mark.stroke == 0.5
    )
    (left, top), (_, bottom), (right, _) = line
    assert top < bottom
    assert left < right

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = ((at - low) / (high - low) for at, (low, high) in ((x, x_ends), (y, y_ends)))
        return left + across * (right - left), bottom - up * (bottom - top)

    return place


def assert_points(mark: Path, expected: list[tuple[float, float]]) -> None:
    np.testing.assert_allclose(mark.points, expected, atol=1e-3)


def test_line_band_and_ticks_lie_where_the_axes_say() -> None:
    marks = marks_of(curve(band=BAND))
    place = axes(marks, (0, 8), (-0.45, 1.35))
    band, *dots = (mark for mark in marks if isinstance(mark, Path) and mark.is_filled)
    around = [place(x, y) for x, y in zip(X, BAND[1], strict=True)]
    assert_points(band, around + [place(x, y) for x, y in zip(X, BAND[0], strict=True)][::-1])
    (line,) = (mark for mark in marks if isinstance(mark, Path) and mark.stroke == 1.0)
    assert_points(line, [place(x, y) for x, y in zip(X, Y, strict=True)])
    np.testing.assert_allclose([np.mean(dot.points, 0) for dot in dots], line.points, atol=1e-3)
    texts = [mark for mark in marks if isinstance(mark, TextLine)]
    across = {mark.text: mark.x for mark in texts if mark.anchor == "middle"}
    up = {mark.text: mark.y - 0.35 * TEXT for mark in texts if mark.anchor == "end" and mark.text != "share"}
    assert list(across) == ["0", "2", "4", "6", "8"]
    assert list(up) == ["0.0", "0.5", "1.0"]
    np.testing.assert_allclose(list(across.values()), [place(float(x), 0)[0] for x in across], atol=1e-3)
    np.testing.assert_allclose(list(up.values()), [place(0, float(y))[1] for y in up], atol=1e-3)


def test_an_axis_holds_zero_but_where_it_is_of_a_value() -> None:
    below = curve(y=[-5, -3, -4, -2])
    of_value = curve(
        y=[-5, -3, -4, -2], provenance=Provenance().with_parameters(output="value", followed="p")
    )
    for one, y_ends in ((below, (-5, 0)), (of_value, (-5, -2)), (curve(y=[5, 3, 4, 2]), (0, 5))):
        marks = marks_of(one)
        place = axes(marks, (0, 8), y_ends)
        (line,) = (mark for mark in marks if isinstance(mark, Path) and mark.stroke == 1.0)
        assert_points(line, [place(x, y) for x, y in zip(X, one.y, strict=True)])


@pytest.mark.parametrize(("count", "dots"), [(1, 1), (40, 40), (41, 0)])
def test_few_points_are_marked_one_by_one(count: int, dots: int) -> None:
    marks = marks_of(curve(np.arange(count), np.arange(count) + 1.0))
    assert sum(isinstance(mark, Path) and mark.is_filled for mark in marks) == dots
    (line,) = (mark for mark in marks if isinstance(mark, Path) and mark.stroke == 1.0)
    assert len(line.points) == max(2, count)


def test_bars_of_a_ranking_are_as_long_as_their_scores_and_the_best_come_first() -> None:
    names = [
        "a name that has by far too many words to stand beside its bar",
        *(f"n{i}" for i in range(1, 25)),
    ]
    scores = np.array([0.5, -1.0, 0.25, *np.linspace(0.2, 0.01, 22)])
    marks = marks_of(Ranking(tuple(names), scores, "probability", "classes"))
    bars = [mark for mark in marks if isinstance(mark, Box)]
    assert [bar.width / bars[1].width for bar in bars] == pytest.approx(
        np.abs(scores[:20]).tolist(), abs=0.01
    )
    assert bars[1].left + bars[1].width < Output("png", 12.0, 72).inner
    assert [bar.top for bar in bars] == sorted(bar.top for bar in bars)
    shown = [mark.text for mark in marks if isinstance(mark, TextLine) and mark.anchor == "end"]
    assert shown[0].startswith("a name")
    assert shown[0].endswith(" ..")
    assert shown[1:] == names[1:20]


def test_a_link_is_as_thick_as_its_weight_and_ends_in_a_dot() -> None:
    layout = TokenLayout(grid=(3, 4), prefix=("class",))
    pairs = np.array(
        [[layout.token((0, 1)), layout.token((2, 3))], [layout.token((1, 0)), layout.token((0, 2))], [3, 3]]
    )
    photo = odd_picture()
    size = photo.height, photo.width
    links = Links(
        ("one", "other", "itself"), np.array([0.8, 0.4, 0.2]), "weight", "links", pairs=pairs, share=0.1,
        crop_box=CropBox(size, size, (0.0, 0.0, *map(float, size))),
    )  # fmt: skip
    trace: Any = type("Recorded", (), {"layout": layout})
    marks = marks_of(links, open_photo=lambda: photo, open_trace=lambda: trace)
    (picture,) = (mark for mark in marks if isinstance(mark, Bitmap))
    bright = [
        mark for mark in marks if isinstance(mark, Path) and mark.colour[0] > 200 and not mark.is_filled
    ]
    assert [mark.stroke for mark in bright] == pytest.approx([2.2, 1.1])
    places = [[(1.5, 0.5), (3.5, 2.5)], [(0.5, 1.5), (2.5, 0.5)]]  # of centres, in patches, across and down
    for line, ends in zip(bright, places, strict=True):
        np.testing.assert_allclose(line.points, np.array(ends) / (4, 3) * (picture.width, picture.height))
    dots = [mark for mark in marks if isinstance(mark, Path) and mark.is_filled]
    np.testing.assert_allclose([np.mean(dot.points, 0) for dot in dots], [mark.points[1] for mark in bright])
