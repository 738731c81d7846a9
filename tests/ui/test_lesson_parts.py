"""What the Lesson tab is told of the parts that one can build oneself."""

from __future__ import annotations

import html
import re
from typing import get_args, get_type_hints

import pytest

from vit_viz.lesson_parts import PARTS
from vit_viz.model import ViTConfig
from vit_viz.ui.kit.words import listing
from vit_viz.ui.lesson import parts


@pytest.mark.parametrize("name", PARTS)
def test_a_part_reaches_the_page_with_its_marked_lines(name: str) -> None:
    told, part = parts()[name], PARTS[name]
    assert (told["source"], told["mistake"]) == (part.source, part.mistake)
    assert told["formula"].count("<math") == part.formula.count("$") // 2
    assert told["letters"].count("<math") == part.letters.count("$") // 2
    for lines, ran in zip(told["lines"], part.ran, strict=True):
        figure = lines["text"]
        marked = [html.unescape(line) for line in re.findall(r"<mark>(.*?)</mark>", figure)]
        assert all(any(mark in line for line in marked) for mark in ran.marks)
        first, source = ran.source
        assert f"vit_viz/model/vit.py, lines {first}-{first + source.count(chr(10))}" in figure
        assert lines["of"] == ran.of
        assert ran.name in figure


def test_a_listing_ends_at_the_last_line_of_its_function() -> None:
    shown = listing("f", "vit_viz.model.vit", (7, "def f():\n    return 1\n"), ("return",))
    assert "vit_viz/model/vit.py, lines 7-8<" in shown
    assert "<mark>    return 1</mark>" in shown


def test_which_models_run_a_function_is_said_in_words_of_their_configuration() -> None:
    said = [of for part in PARTS.values() for ran in part.ran for of in ran.of.items()]
    possible = {name: get_args(kind) for name, kind in get_type_hints(ViTConfig).items()}
    assert said
    for name, values in said:
        assert set(values) <= set(possible[name]), name
    gates = [value for name, values in said if name == "mlp" for value in values]
    assert sorted(gates) == sorted(possible["mlp"])  # each model runs one of them
