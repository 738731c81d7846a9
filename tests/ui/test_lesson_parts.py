"""What the Lesson tab is told of the parts that one can build oneself."""

from __future__ import annotations

import html
import re

import pytest

from vit_viz.lesson_parts import PARTS
from vit_viz.ui.kit.words import listing
from vit_viz.ui.lesson import parts


@pytest.mark.parametrize("name", PARTS)
def test_a_part_reaches_the_page_with_its_marked_lines(name: str) -> None:
    told, part = parts()[name], PARTS[name]
    assert (told["source"], told["mistake"]) == (part.source, part.mistake)
    assert told["formula"].count("<math") == part.formula.count("$") // 2
    assert told["letters"].count("<math") == part.letters.count("$") // 2
    figures = told["lines"].split("<figure")[1:]
    for figure, ran in zip(figures, part.ran, strict=True):
        marked = [html.unescape(line) for line in re.findall(r"<mark>(.*?)</mark>", figure)]
        assert all(any(mark in line for line in marked) for mark in ran.marks)
        first, source = ran.source
        assert f"vit_viz/model/vit.py, lines {first}-{first + source.count(chr(10))}" in figure
        assert html.escape(ran.where) in figure
        assert ran.name in figure


def test_a_listing_ends_at_the_last_line_of_its_function() -> None:
    shown = listing("f", "vit_viz.model.vit", (7, "def f():\n    return 1\n"), ("return",))
    assert "vit_viz/model/vit.py, lines 7-8<" in shown
    assert "<mark>    return 1</mark>" in shown
