"""The picture of the residual stream has the lengths of the trace."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.ui.walkthrough.kinds import scene_of_kind, screens_of_kind
from vit_viz.figures.lettering import number
from vit_viz.ui.walkthrough.block import residual_picture
from vit_viz.walkthrough import BlockStep

KIND = "gated MLP in two parts"  # four blocks, five lengths


@pytest.fixture
def step() -> BlockStep:
    scene = scene_of_kind(KIND)
    return scene.step(BlockStep, layer=scene.layer, token=scene.token)


def test_what_each_block_adds_is_the_difference_of_the_stream(step: BlockStep) -> None:
    scene = scene_of_kind(KIND)
    with_stream = scene.session.trace(
        scene.subject.model, scene.subject.image, mode=scene.subject.mode, owner=""
    )
    assert step.added.shape == (with_stream.num_layers,)
    assert step.norms.shape == (with_stream.num_layers + 1,)
    middle = float(np.linalg.norm(step.after - step.before))
    assert step.added[step.layer] == pytest.approx(middle, rel=1e-5)


def test_the_band_is_as_wide_as_the_stream_is_long(step: BlockStep) -> None:
    page = residual_picture(step, "patch (1, 2)")
    (points,) = re.findall(r'<polygon class=vv-w-band points="([^"]+)"', page)
    corners = np.array([[float(part) for part in point.split(",")] for point in points.split()])
    right, left = corners[:5], corners[5:][::-1]
    np.testing.assert_array_equal(right[:, 1], left[:, 1])
    widths = right[:, 0] - left[:, 0]
    np.testing.assert_allclose(widths / widths.max(), step.norms / step.norms.max(), atol=0.01)


def test_its_numbers_are_written_beside_it(step: BlockStep) -> None:
    page = residual_picture(step, "patch <1, 2>")
    written = re.findall(r"<text [^>]*>(.*?)</text>", page)
    assert [text for text in written if text.startswith("+ ")] == [
        f"+ {number(float(a))}" for a in step.added
    ]
    assert [text for text in written if not re.match(r"\+|block", text)] == [
        number(float(n)) for n in step.norms
    ]
    assert re.findall(r'class="vv-w-block vv-w-chosen".*?block (\d)', page) == [str(step.layer)]
    assert "<1, 2>" not in page


def test_it_is_said_which_part_of_a_block_adds_more(step: BlockStep) -> None:
    attention_adds_more = np.linalg.norm(step.attended) > np.linalg.norm(step.thought)
    assert screens_of_kind(KIND)[6].answer.startswith("Attention" if attention_adds_more else "The MLP")
