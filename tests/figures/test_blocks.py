"""Parts of figures: scales whose numbers can be compared, bars that run through all colours, lines that fit."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fontTools.ttLib import TTFont
from hypothesis import given, settings, strategies as st

from tests.figures.test_kinds import words
from vit_viz.figures import blocks, lettering
from vit_viz.figures.blocks import ColourBar
from vit_viz.figures.colormaps import table
from vit_viz.figures.lettering import lines_of, outlines, spelled, text_width
from vit_viz.figures.sheet import Box, FigureBlock, TextLine
from vit_viz.figures.styles import bar as bar_colours


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ((0.0, 0.0298, 0.0596), ["0.0000", "0.0298", "0.0596"]),
        ((-3.667, 0.0, 3.667), ["-3.67", "0.00", "3.67"]),
        ((0.0, 1284.0), ["0", "1284"]),
        ((0.0, 0.0), ["0", "0"]),
        ((1e-7, 3e-6), ["1e-07", "3e-06"]),
        ((-0.0001, 5.0), ["0.00", "5.00"]),
    ],
)
def test_numbers_of_one_scale_have_equal_digits(values: tuple[float, ...], texts: list[str]) -> None:
    assert blocks.numbers(values) == texts


def bar(**changes: Any) -> FigureBlock:
    facts = {"table": "viridis", "low": 0.0, "high": 1.0, "unit": "weight", "style": "heat"} | changes
    return blocks.bar_block(ColourBar(**facts), 200.0)


def colours(block: FigureBlock) -> list[tuple[int, int, int]]:
    return [mark.fill for mark in block.marks if isinstance(mark, Box) and mark.fill]


@pytest.mark.parametrize("style", ["heat", "light", "tint"])
def test_the_bar_runs_from_its_low_to_its_high_end(style: Any) -> None:
    wanted = bar_colours(style, table("viridis"), count=64)
    assert colours(bar(style=style)) == [tuple(colour) for colour in wanted.tolist()]


def test_the_bar_of_a_constant_map_has_one_colour_and_one_number() -> None:
    block = bar(low=0.3, high=0.3)
    assert len(set(colours(block))) == 1
    assert "constant 0.3" in words(block.marks)


def test_a_bar_may_have_words_at_its_ends() -> None:
    assert {"min of map", "3.0"} <= set(words(bar(low="min of map", high=3.0).marks))


def test_no_line_of_a_unit_covers_the_numbers_above_it() -> None:
    block = bar(unit="a unit that goes on and on " * 6)
    numbers, *lines = sorted({mark.y for mark in block.marks if isinstance(mark, TextLine)})
    assert all(line - numbers >= blocks.TEXT for line in lines)
    assert block.height > bar().height


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200), st.integers(4, 12), st.integers(30, 300))
def test_wrapped_lines_fit_and_lose_no_letter(text: str, size: int, width: int) -> None:
    lines = lines_of(text, size=size, width=width)
    assert all(text_width(line, size) <= width or len(line) == 1 for line in lines)
    assert "".join(spelled("".join(lines)).split()) == "".join(spelled("".join(text.split())).split())


def test_no_two_threads_read_one_opened_typeface(monkeypatch: pytest.MonkeyPatch) -> None:
    """fontTools reads its tables when they are asked for; another thread then sees half of one ("AttributeError: cmap")."""
    readers: dict[int, set[int]] = defaultdict(set)

    class Noting(TTFont):
        def __getitem__(self, tag: Any) -> Any:
            readers[id(self)].add(threading.get_ident())
            return super().__getitem__(tag)

    monkeypatch.setattr("fontTools.ttLib.TTFont", Noting)
    lettering._letters.cache_clear()
    with ThreadPoolExecutor() as first, ThreadPoolExecutor() as second:
        assert first.submit(text_width, "lion", 9.0).result() > 0
        assert second.submit(outlines, "lion", 0.0, 0.0, 9.0).result()
    assert [len(threads) for threads in readers.values()] == [1]
