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
    ("kind", "last", "formula", "output"),
    [
        (CLASSES, "the classifier was", r"$y = W\, \mathrm{norm}(x) + b$, $p = \mathrm{softmax}(y)$", "[7]"),
        (MAPPED, "the last linear map was", r"$y = W\, \mathrm{norm}(x)$", "[7]"),
        (BARE, "the norm was", r"$y = \mathrm{norm}(x)$", "[40]"),
    ],
)
def test_what_comes_last_is_called_what_it_is(kind: str, last: str, formula: str, output: str) -> None:
    screen = screens_of_kind(kind)[7]
    assert f"{last} trained on the last block only" in screen.hides
    assert screen.formula == formula
    what = "classes" if kind == CLASSES else "numbers"
    assert screen.shapes[0] == ("stream", f"[{29 if kind == CLASSES else 25}, 40]", "after the last block")
    assert screen.shapes[2] == ("output", output, what)


@pytest.mark.parametrize(
    ("kind", "letters"),
    [
        (CLASSES, "$W$ and $b$: weights and bias of the classifier, 7 x 40; $y$: the logits"),
        (MAPPED, "$W$: a last linear map, 7 x 40; $y$: the output."),
        (BARE, "$y$: the output, 40 numbers."),
    ],
)
def test_the_letters_of_the_last_step_have_the_sizes_of_the_model(kind: str, letters: str) -> None:
    assert letters in screens_of_kind(kind)[7].letters


@pytest.mark.parametrize("kind", [CLASSES, MAPPED, BARE])
def test_only_a_model_with_classes_speaks_of_them(kind: str) -> None:
    screen = screens_of_kind(kind)[7]
    has_classes = kind == CLASSES
    assert ("logits" in screen.words[1], "no classes" in screen.words[1]) == (has_classes, not has_classes)
    assert bool(screen.terms) == has_classes
    assert ("Five most probable" in screen.figures) == has_classes
    assert ("The vector of this photo" in screen.figures) == (not has_classes)
    assert ("most probable" in screen.reveals) == has_classes
