"""The last step: what turns the last block into the answer is called what it is."""

from __future__ import annotations

import pytest

from tests.ui.walkthrough.kinds import screens_of_kind

CLASSES, MAPPED, BARE = (
    "class token and registers",
    "embedding of an image, quick GELU",
    "no head, gated MLP",
)


@pytest.mark.parametrize(
    ("kind", "last", "formula", "output", "letters"),
    [
        (
            CLASSES,
            "the classifier was",
            r"$y = W\, \mathrm{norm}(x) + b$, $p = \mathrm{softmax}(y)$",
            "[7]",
            "$W$ and $b$: weights and bias of the classifier, 7 x 40; $y$: the logits",
        ),
        (
            MAPPED,
            "the last linear map was",
            r"$y = W\, \mathrm{norm}(x)$",
            "[7]",
            "$W$: a last linear map, 7 x 40; $y$: the output.",
        ),
        (BARE, "the norm was", r"$y = \mathrm{norm}(x)$", "[40]", "$y$: the output, 40 numbers."),
    ],
)
def test_what_comes_last_is_called_what_it_is_and_only_classes_are_spoken_of_as_such(
    kind: str, last: str, formula: str, output: str, letters: str
) -> None:
    screen, has_classes = screens_of_kind(kind)[7], kind == CLASSES
    assert f"{last} trained on the last block only" in screen.hides
    assert screen.formula == formula
    assert letters in screen.letters
    assert screen.shapes[0] == ("stream", f"[{29 if has_classes else 25}, 40]", "after the last block")
    assert screen.shapes[2] == ("output", output, "classes" if has_classes else "numbers")
    assert ("logits" in screen.words[1], "no classes" in screen.words[1]) == (has_classes, not has_classes)
    assert bool(screen.terms) == has_classes
    assert ("Five most probable" in screen.figures) == has_classes
    assert ("The vector of this photo" in screen.figures) == (not has_classes)
    assert ("most probable" in screen.reveals) == has_classes
