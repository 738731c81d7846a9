"""Trust of what two classes do not share: the lead of one over the other, by hand, at its ends, and against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_viz as vv
from tests.analyses.conftest import patch_map
from tests.comparing import assert_same
from vit_viz.analyses.faithfulness import (
    RandomBand,
    faithfulness,
    faithfulness_of,
    prediction_band,
    random_band,
)
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import baseline_pixels
from vit_viz.analyses.trust import Trust
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.results import PatchMap

pytestmark = pytest.mark.numbers


class Weighed(nn.Module):
    """Three classes; each patch, one pixel, gives what it holds to the lead of class 0 over class 2; class 1 drowns both."""

    def forward(self, pixels: Tensor) -> Tensor:
        total = pixels[:, 0, 0].sum(-1)
        return torch.stack([2 * total + 1, 90 + 7 * total, total + 0.5], dim=-1)


def weighed(*patches: float) -> PreparedImage:
    pixels = torch.tensor(patches).reshape(1, 1, 1, -1)
    return PreparedImage(Weighed(), pixels, TokenLayout(grid=(1, len(patches)), prefix=()), has_classes=True)


def lead_by_loop(
    model: nn.Module, pixels: Tensor, order: list[int], other: Tensor, pair: tuple[int, int]
) -> list[float]:
    """One image at a time, one patch after the other painted with slices, from none to all in 20 steps."""
    leads, image, done = [], pixels.clone(), 0
    for step in range(21):
        while done < round(step * len(order) / 20):
            row, col = divmod(order[done], 6)
            image[:, :, 4 * row : 4 * row + 4, 6 * col : 6 * col + 6] = other[
                :, :, 4 * row : 4 * row + 4, 6 * col : 6 * col + 6
            ]
            done += 1
        with torch.no_grad():
            logits = model(image)[0].double()
        leads.append(float(logits[pair[0]] - logits[pair[1]]))
    return leads


def test_the_lead_worked_by_hand() -> None:
    # the lead is the sum of the patches + 0.5; the map's order is 0, 2, 3, 1
    subject, found = weighed(3.0, -1.0, 2.0, 0.5), patch_map(np.array([[9, -3, 5, 1]]))
    band = random_band(subject, target=(0, 2))
    got = faithfulness_of(subject, found, band, target=(0, 2), reverse=True)
    assert got.deletion.y.tolist() == [5.0, 2.0, 0.0, -0.5, 0.5]
    assert got.deletion_auc == pytest.approx((5 / 2 + 2 + 0 - 0.5 + 0.5 / 2) / 4)
    assert got.reverse is not None
    assert got.reverse.y.tolist() == [5.0, 6.0, 5.5, 3.5, 0.5]
    assert got.reverse_auc == pytest.approx((5 / 2 + 6 + 5.5 + 3.5 + 0.5 / 2) / 4)
    assert got.deletion.y_label == "logit of class 0 minus logit of class 2"
    areas = band.deletion[:, 1:-1].sum(1) / 4 + (5 + 0.5) / 8
    half = 2.37 * areas.std(ddof=1)
    assert band.interval("deletion") == pytest.approx(
        (areas.mean(), areas.mean() - half, areas.mean() + half)
    )
    assert np.isnan(got.relative_deletion)  # a share of a lead that may be 0 says nothing
    assert faithfulness_of(subject, found, band, target=(0, 2)).reverse is None


@pytest.mark.parametrize("pair", [(1, 4), (6, 0)])
def test_the_lead_equals_a_plain_loop_from_both_ends(make_model, pixels, pair) -> None:  # type: ignore[no-untyped-def]
    model = make_model()
    subject = PreparedImage.of(model, pixels)
    found = patch_map(np.random.default_rng(sum(pair)).standard_normal((4, 6)))
    got = faithfulness_of(subject, found, random_band(subject, target=pair), target=pair, reverse=True)
    order = sorted(range(24), key=lambda patch: (-found.values.ravel()[patch], patch))
    gray, blurred = torch.zeros_like(pixels), baseline_pixels(subject, "blur")
    assert_same(got.deletion.y, lead_by_loop(model, pixels, order, gray, pair))
    assert_same(got.insertion.y, lead_by_loop(model, blurred, order, pixels, pair))
    assert got.reverse is not None
    assert_same(got.reverse.y, lead_by_loop(model, pixels, order[::-1], gray, pair))
    shown = faithfulness(model, pixels, found, target=pair, progress=False)
    assert_same(shown.deletion.y, got.deletion.y)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("lion", "cougar"), ("cougar", "banana")])
def test_the_curves_end_at_the_lead_of_the_photo_and_of_a_blank_one(pair: tuple[str, str]) -> None:
    answer = vv.run("mini", "lion", "trust", sides="difference", target=pair)
    assert isinstance(answer, Trust)
    got, loaded = answer.faithfulness, vv.load("mini")
    whole = vv.decomposition("mini", "lion", target=pair).output
    subject = PreparedImage.of(loaded, vv.samples.sample("lion"))
    assert loaded.labels is not None
    one, other = (loaded.labels.search(name, limit=1)[0] for name in pair)
    with torch.no_grad():
        blank = loaded.model(torch.zeros_like(subject.pixels))[0].double()
    left = float(blank[one] - blank[other])
    assert got.reverse is not None
    for curve, ends in ((got.deletion, (whole, left)), (got.reverse, (whole, left))):
        assert curve.y[[0, -1]].tolist() == pytest.approx(ends, abs=1e-4)
    assert got.insertion.y[-1] == pytest.approx(whole, abs=1e-4)
    assert got.beats_random == (True, True)
    assert got.reverse_auc is not None
    assert (
        got.reverse_auc > got.band.interval("deletion")[2]
    )  # the other class's patches: the lead outlasts every chance


@pytest.mark.slow
def test_the_map_of_a_difference_is_the_one_that_is_tested() -> None:
    pair = ("lion", "cougar")
    got = vv.run("mini", "lion", "trust", sides="difference", target=pair)
    subtracted = vv.run("mini", "lion", "class_difference", target=pair)
    led = vv.run("mini", "lion", "trust", target=pair)
    assert isinstance(got, Trust)
    assert isinstance(led, Trust)
    assert isinstance(subtracted, PatchMap)
    by_itself = faithfulness("mini", vv.samples.sample("lion"), subtracted, target=pair, progress=False)
    assert_same(got.faithfulness.deletion.y, by_itself.deletion.y)
    assert got.faithfulness.deletion_auc != led.faithfulness.deletion_auc
    assert (got.class_sensitivity, got.mirror, led.faithfulness.reverse) == (None, None, None)
    unnamed = vv.run("mini", "lion", "trust", sides="difference")  # the strongest of the rest: the cougar
    assert isinstance(unnamed, Trust)
    assert unnamed.faithfulness.deletion.y_label == got.faithfulness.deletion.y_label
    assert_same(unnamed.faithfulness.deletion.y, got.faithfulness.deletion.y)


@pytest.mark.parametrize(
    ("asked", "words"),
    [({"method": "rollout"}, "nothing to subtract"), ({"method": "occlusion"}, "takes long")],
)
def test_a_method_without_a_map_of_each_class_is_refused(asked: dict[str, str], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        vv.run("mini", "lion", "trust", sides="difference", target=("lion", "cougar"), **asked)


def test_the_band_of_a_lead_is_that_of_its_own_numbers() -> None:
    everywhere = (-float("inf"), float("inf"))
    scores = np.array([[2.0, 2.0 + value] for value in (-3, 1) * 5])
    band = RandomBand(np.array([0.0, 1.0]), scores, scores, ("mean", "blur"), "test", everywhere)
    half = 2.37 * 1 * np.sqrt(10 / 9)  # areas 0.5 and 2.5
    assert band.interval("deletion") == pytest.approx((1.5, 1.5 - half, 1.5 + half))
    draws = -4 + 2.5 * np.random.default_rng(2).standard_normal((11, 20_000))
    low, high = prediction_band(draws[:10], value_range=everywhere)
    outside = [(draws[10] < low).mean(), (draws[10] > high).mean()]
    assert outside == pytest.approx([0.025, 0.025], abs=0.004)
