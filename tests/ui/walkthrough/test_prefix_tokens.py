"""The step about tokens that are no patch: how the sequence begins, and what each of them is for."""

from __future__ import annotations

import re

import pytest
from PIL import Image

from tests.ui.walkthrough.conftest import scene_of
from vit_viz.ui.walkthrough import Scene, prefix_tokens


def test_each_extra_token_says_what_it_is_for(scene: Scene) -> None:
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td>", prefix_tokens.screen(scene).reveals)
    assert rows == [
        ("class", "gathers what the answer is read from"),
        ("register 0", "a notepad: holds what belongs to no place"),
    ]


def test_a_model_with_extra_tokens_shows_them_and_what_they_draw(scene: Scene) -> None:
    screen = prefix_tokens.screen(scene)
    figures = screen.figures
    titles = re.findall(r"<h3>(.*?)</h3>", figures)
    assert titles == ["How the sequence begins", "The vectors themselves"]
    assert re.findall(r"<h3>(.*?)</h3>", screen.reveals) == ["What the patches look at among them"]
    assert "after 2 tokens that are not patches." in figures
    assert figures.count("as learned") == 2 * 2  # in words and for screen readers


def test_a_model_without_them_shows_the_sequence_alone() -> None:
    figures = prefix_tokens.screen(scene_of(reg_tokens=0, class_token=False, pooling="mean")).figures
    assert re.findall(r"<h3>(.*?)</h3>", figures) == ["How the sequence begins"]
    assert "The first 36 of 36 patches, line by line." in figures


@pytest.mark.parametrize(
    ("size", "lines", "cols", "shown"),
    [
        ((32, 54), 4, 9, (54, 32)),
        ((56, 60), 4, 10, (60, 32)),
        ((48, 48), 6, 8, (48, 48)),
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
