"""The step about tokens that are no patch: how the sequence begins, and what each of them is for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from PIL import Image

from tests.ui.walkthrough.conftest import scene_of
from vit_viz.ui.walkthrough import prefix_tokens
from vit_viz.ui.walkthrough.scene import StepInput


@pytest.mark.parametrize(
    ("size", "lines", "cols", "shown"),
    [
        ((56, 60), 4, 10, (60, 32)),
        ((56, 48), 6, 8, (48, 48)),
    ],
)
def test_the_sequence_begins_with_whole_lines_of_at_most_48_patches(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], lines: int, cols: int, shown: tuple[int, int]
) -> None:
    asked = []

    def sequence(image: Image.Image, **options: object) -> Image.Image:
        asked.append((image.size, options["grid"], options["theme"]))
        return image

    monkeypatch.setattr(prefix_tokens, "patch_sequence", sequence)
    figures = prefix_tokens.screen(scene_of(size=size)).figures
    assert asked == [(shown, (lines, cols), look) for look in ("light", "dark")]
    assert [figures.count(f"vv-w-picture vv-w-{look}") for look in ("light", "dark")] == [1, 1]
    assert f"The first {lines * cols} of {size[0] // 8 * cols} patches" in figures


def test_the_step_of_a_model_with_extra_tokens_is_about_them(scene: StepInput) -> None:
    screen = prefix_tokens.screen(scene)
    assert screen.title == "Tokens that are not patches"
    assert "e_p" in screen.formula
    assert "here $p$ = 2;" in screen.letters
    assert screen.shapes[1] == ("tokens", "[38, 40]", "2 extra + 36 patches")
    assert screen.terms
    assert "registers" in screen.papers
    assert re.findall(r"<h3>(.*?)</h3>", screen.figures) == [
        "How the sequence begins",
        "The vectors themselves",
    ]
    assert "after 2 tokens that are not patches." in screen.figures
    assert screen.figures.count("as learned") == 2 * 2  # in words and for screen readers
    assert re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td>", screen.reveals) == [
        ("class", "gathers what the answer is read from"),
        ("register 0", "a notepad: holds what belongs to no place"),
    ]
    assert screen.hides.startswith("what an extra token holds in the end")


def test_of_a_model_without_extra_tokens_nothing_is_said_that_it_lacks() -> None:
    screen = prefix_tokens.screen(scene_of(reg_tokens=0, class_token=False, pooling="mean"))
    assert screen.title == "This model adds no extra tokens"
    assert "e_p" not in screen.formula + screen.letters
    assert "here $n$ = 36; $D$: numbers per token, here 40." in screen.letters
    assert screen.shapes[1][1] == "[36, 40]"
    assert re.findall(r"<h3>(.*?)</h3>", screen.figures) == ["How the sequence begins"]
    assert "The first 36 of 36 patches, line by line." in screen.figures
    assert (screen.terms, screen.reveals) == ((), "")
    assert "registers" not in screen.papers
    assert screen.hides.startswith("why this model does without extra tokens")
    assert screen.question == "How many tokens of this sequence are not patches?"
    assert screen.answer == "None: all 36 tokens are patches."


CLASS: dict[str, Any] = {}
MEAN, ATTENTION, BARE = {"pooling": "mean"}, {"pooling": "attention"}, {"reg_tokens": 0, "class_token": False}


@pytest.mark.parametrize(
    ("model", "first", "second", "third"),
    [
        (CLASS | {"reg_tokens": 0}, "One learned vector is", "the answer is read from it", "no *registers*"),
        (
            CLASS | {"reg_tokens": 1},
            "2 learned vectors are",
            "first is the *class token*",
            "The *register* is",
        ),
        (MEAN | {"reg_tokens": 3}, "4 learned vectors are", "though this model", "The 3 *registers* are"),
        (
            ATTENTION | {"reg_tokens": 1},
            "2 learned vectors are",
            "though this model reads",
            "The *register* is",
        ),
        (MEAN | BARE | {"reg_tokens": 2}, "2 learned vectors", "They collect", "The 2 *registers* are"),
        (MEAN | BARE, "Many models", "from the mean of all patches", "36 tokens"),
        (ATTENTION | BARE, "Many models", "a weighted mean of all tokens", "36 tokens"),
    ],
)
def test_the_words_are_those_of_the_tokens_that_the_model_has(
    model: dict[str, Any], first: str, second: str, third: str
) -> None:
    words = prefix_tokens.screen(scene_of(**model)).words
    assert [part in said for part, said in zip((first, second, third), words, strict=True)] == [True] * 3


def test_a_single_extra_token_is_one_token() -> None:
    screen = prefix_tokens.screen(scene_of(reg_tokens=0))
    assert "The first 36 of 36 patches, line by line, after one token that is not a patch." in screen.figures
    assert screen.question.startswith("How much of their attention do the patches give to the class token")
