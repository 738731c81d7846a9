"""What is changed in a model, said of one and of many."""

from __future__ import annotations

import pytest

from vit_viz.session.edits import ModelEdits


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ("off 3.1", "1 head off"),
        ("off 3.1 3.2", "2 heads off"),
        ("mean 3.1", "1 head at its mean"),
        ("mean 3.1 3.2 4.0", "3 heads at their mean"),
        ("temperature 7=0.5", "temperature of layer 7"),
        ("temperature 7=0.5 9=2", "temperature of layers 7, 9"),
        ("forbid class>2,3", "1 view forbidden"),
        ("forbid class>2,3;forbid class>2,4", "2 views forbidden"),
        (
            "uniform 3.1;temperature 7=0.5;forbid class>2,3",
            "1 head uniform, temperature of layer 7, 1 view forbidden",
        ),
        ("", ""),
    ],
)
def test_one_and_many_changes_are_said(edits: str, sentence: str) -> None:
    assert ModelEdits.parse(edits).sentence == sentence
