"""The step in which the photo is cut into patches: how many there are, of which size."""

from __future__ import annotations

import pytest

from tests.ui.walkthrough.kinds import scene_of_kind
from vit_viz.ui.walkthrough import patches
from vit_viz.walkthrough import PatchStep


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("remainder dropped", "n = 12 / 4 x 36 / 6 = 3 x 6 = 18 (without the last pixels of 15 x 40)"),
        ("padded", "n = 16 / 4 x 42 / 6 = 4 x 7 = 28 (filled up with zeros from 15 x 40)"),
    ],
)
def test_the_number_of_patches_is_worked_out_side_by_side(kind: str, words: str) -> None:
    scene = scene_of_kind(kind)
    assert patches._arithmetic(scene.step(PatchStep, place=scene.place)) == words


def test_the_followed_patch_is_cut_where_it_lies() -> None:
    scene = scene_of_kind("padded")
    row, col = scene.place
    cut = patches.patch_picture(scene)
    assert cut.size == (6, 4)
    whole = scene.padded_input()
    assert cut.tobytes() == whole.crop((6 * col, 4 * row, 6 * col + 6, 4 * row + 4)).tobytes()
