"""Numbers of things in words."""

import pytest

from vit_viz.sentences import counted


@pytest.mark.parametrize(
    ("count", "thing", "words"),
    [
        (0, "head", "0 heads"),
        (1, "head", "1 head"),
        (15, "head", "15 heads"),
        (1, "patch", "1 patch"),
        (2, "patch", "2 patches"),
    ],
)
def test_one_thing_is_not_several(count: int, thing: str, words: str) -> None:
    assert counted(count, thing) == words
