"""The step about attention: a query and the key that fits it best are drawn on one scale."""

from __future__ import annotations

import re

import numpy as np
import pytest

from vit_viz.ui.walkthrough import attention, drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.walkthrough import AttentionStep


def test_query_and_key_share_a_scale_that_holds_both(
    scene: StepInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {}
    honest = draw.strip

    def strip(values, *, name, scale=None, **options):  # type: ignore[no-untyped-def]
        drawn[re.split(" of ", name)[0]] = (np.asarray(values), scale)
        return honest(values, name=name, scale=scale, **options)

    monkeypatch.setattr(draw, "strip", strip)
    attention.screen(scene)
    (query, scale), (key, other) = drawn["query"], drawn["key"]
    largest = float(max(abs(query).max(), abs(key).max()))
    assert abs(query).max() != abs(key).max()
    assert scale == other == (-largest, largest)


def test_the_sums_are_those_of_the_best_key(scene: StepInput) -> None:
    step = scene.step(AttentionStep, layer=scene.layer, head=scene.head, token=scene.token)
    best = int(step.weights.argmax())
    assert f"softmax: {float(step.weights[best]):.2%}" in attention.screen(scene).figures
