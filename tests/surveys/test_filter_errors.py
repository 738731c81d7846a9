"""What is said of an error of the database."""

from __future__ import annotations

import pytest

from vit_viz.surveys.filters import first_line


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Binder Error: No such column\nLINE 1: SELECT\n", "No such column"),
        ("\n  \n  Parser Error: near WHERE  \nmore", "near WHERE"),
        ("No kind Error: stays", "No kind Error: stays"),
        ("", "it failed"),
        ("\n ", "it failed"),
        ("x" * 300, "x" * 200),
    ],
)
def test_an_error_of_the_database_is_its_first_line_without_its_kind(message: str, said: str) -> None:
    assert first_line(message) == said
