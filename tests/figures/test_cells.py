"""Tables as cells: names at their own rows and columns, and groups in the colours that the key gives them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from vit_viz.analyses.head_names import HeadName, HeadNames
from vit_viz.analyses.sink_kinds import Kind, SinkKinds
from vit_viz.answer import Provenance
from vit_viz.figures import cells, files
from vit_viz.figures.colormaps import table
from vit_viz.figures.request import Output
from vit_viz.figures.scene import Drawn, Scene, drawn
from vit_viz.figures.sheet import Bitmap, Box, TextLine
from vit_viz.results import HeadTable, StateMatrix, TokenMatrix

NO_SINK, NO_OP, BROADCAST, NEITHER = get_args(Kind)
FIRST = (59, 130, 196)


def shown(answer: Any) -> Drawn:
    assert cells in files.KINDS
    return drawn(answer, Scene(Output("png", 12.0, 72)))


def cell(picture: Any, row: int, col: int, shape: tuple[int, int]) -> tuple[int, ...]:
    pixels = np.asarray(picture)
    at = (
        int((place + 0.5) * size / count)
        for place, size, count in zip((row, col), pixels.shape, shape, strict=False)
    )
    return tuple(pixels[tuple(at)].tolist())


def key_of(part: Drawn) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Of each name in the last block its colour and its number."""
    marks = part.blocks[-1].marks
    colours = [mark.fill for mark in marks if isinstance(mark, Box)]
    words = [re.fullmatch(r"(.+): (\d+) heads?", mark.text) for mark in marks if isinstance(mark, TextLine)]
    names = [(found[1], int(found[2])) for found in words if found]
    assert len(names) == len(colours)
    return {name: colour or () for (name, _), colour in zip(names, colours, strict=True)}, dict(names)


def sinks(kinds: list[list[Kind]]) -> SinkKinds:
    shape = len(kinds), len(kinds[0])
    queries = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 10
    others = dict.fromkeys(("received", "ratio", "value_ratio", "stable_rank", "written"), 1 - queries**2)
    tokens = tuple(("class",) * shape[1] for _ in kinds)
    return SinkKinds(tuple(map(tuple, kinds)), tokens, queries=queries, **others, provenance=Provenance())


def names(rows: list[list[str]]) -> HeadNames:
    heads = [
        HeadName(layer, head, name, "", "", {}, ())  # type: ignore[arg-type]
        for layer, row in enumerate(rows)
        for head, name in enumerate(row)
    ]
    return HeadNames(tuple(heads), {"one": np.zeros((len(rows), len(rows[0])), np.float32)}, Provenance())


@pytest.mark.parametrize("make", [sinks, names])
def test_each_cell_has_the_colour_that_the_key_gives_its_group(make: Any) -> None:
    groups = [[NO_SINK, NEITHER, BROADCAST], [BROADCAST, BROADCAST, NO_SINK]]
    if make is names:
        groups = [["mixed", "class token", "local"], ["local", "local", "mixed"]]
    part = shown(make(groups))
    colours, counts = key_of(part)
    flat = [name for row in groups for name in row]
    assert counts == {name: flat.count(name) for name in flat}
    assert len(set(colours.values())) == len(counts)
    (picture,) = (mark.image for mark in part.blocks[-2].marks if isinstance(mark, Bitmap))
    for row, col in np.ndindex(2, 3):
        assert cell(picture, row, col, (2, 3)) == colours[groups[row][col]]
    assert FIRST in colours.values()


def test_queries_of_sinks_stand_in_their_cells() -> None:
    part = shown(sinks([[NO_SINK, NO_OP, NO_OP]]))
    texts = [mark.text for mark in part.blocks[0].marks if isinstance(mark, TextLine)]
    assert texts[-3:] == ["0.000", "0.100", "0.200"]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_that_no_head_has_a_sink_is_said_where_none_has(kind: Kind) -> None:
    part = shown(sinks([[kind] * 3] * 2))
    assert ("No head has a sink" in part.caption) == (kind == NO_SINK)
    assert len(part.blocks) == (2 if kind == NO_SINK else 4)


def test_rows_and_columns_have_their_own_names() -> None:
    facts: dict[str, Any] = {"unit": "CKA", "value_range": (0, 1), "method": "similarity"}
    matrix = StateMatrix(
        np.array([[0, 0.5], [0.25, 1], [0.75, 0.1]]), names=("r0", "r1", "r2"), others=("c0", "c1"), **facts
    )
    marks = shown(matrix).blocks[0].marks
    texts = {mark.text: mark for mark in marks if isinstance(mark, TextLine)}
    (inside,) = (mark for mark in marks if isinstance(mark, Bitmap))
    assert all(texts[name].x < inside.left for name in matrix.names)
    assert all(texts[name].y < inside.top for name in matrix.others)
    heads = HeadTable(np.array([[-1, 0.5, 0.25]]), "nats", (-1, 1), True, "entropy")
    marks = shown(heads).blocks[0].marks
    texts = {mark.text: mark for mark in marks if isinstance(mark, TextLine)}
    assert texts["layer"].x < texts["head"].x
    ends, plain = (
        [mark.text for mark in shown(one).blocks[1].marks if isinstance(mark, TextLine)]
        for one in (heads, replace(heads, signed=False))
    )
    assert ends[:2] == ["-1.00", "1.00"]  # around 0
    assert plain[:2] == ["-1.00", "0.50"]


def test_each_position_has_its_own_map_where_it_lies() -> None:
    rows, cols = 2, 3
    values = np.random.default_rng(7).random((6, 6)).astype(np.float32)
    (picture,) = (
        mark.image
        for mark in shown(TokenMatrix(values, "weight", (0, 1), False, "m", grid=(rows, cols)))
        .blocks[0]
        .marks
        if isinstance(mark, Bitmap)
    )
    ends, colours = (values.min(), values.max()), table("viridis")
    pixels = np.asarray(picture)
    tall, wide = pixels.shape[0] / rows, pixels.shape[1] / cols
    for one, other in np.ndindex(6, 6):
        (down, right), (row, col) = divmod(one, cols), divmod(other, cols)
        at = int(tall * (down + (row + 0.5) / rows * 0.95)), int(wide * (right + (col + 0.5) / cols * 0.95))
        expected = colours[round(255 * float((values[one, other] - ends[0]) / (ends[1] - ends[0])))]
        assert np.abs(pixels[at].astype(int) - expected).max() <= 6
