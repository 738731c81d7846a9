"""Deletion and insertion: against a plain loop, by hand, and beside the band of random orders."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

from tests.comparing import assert_same
from vit_viz.analyses.explain import explain
from vit_viz.analyses.faithfulness import (
    RandomBand,
    faithfulness,
    faithfulness_of,
    patch_order,
    prediction_band,
    random_band,
    step_counts,
)
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import baseline_pixels
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.results import PatchMap

pytestmark = pytest.mark.numbers


def map_of(values):
    return PatchMap(np.array(values, dtype=np.float32), "test", (0, np.inf), False, "test", False)


def by_loop(model, pixels, order, other, target, steps=20, *, insertion=False):
    """One image at a time, painted with slices, softmax by hand: [(fraction, probability)]."""
    patches = [divmod(int(patch), 6) for patch in order]
    points = []
    for step in range(steps + 1):
        count = round(step * len(patches) / steps)
        image = (other if insertion else pixels).clone()
        for row, col in patches[:count]:
            rows, cols = slice(4 * row, 4 * row + 4), slice(6 * col, 6 * col + 6)
            image[:, :, rows, cols] = (pixels if insertion else other)[:, :, rows, cols]
        with torch.no_grad():
            logits = model(image)[0].double()
        points.append((count / len(patches), float(torch.exp(logits[target]) / torch.exp(logits).sum())))
    return np.array(points)


def trapezoid(points):
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))


def test_deletion_and_insertion_equal_a_plain_loop(make_model, pixels):
    model = make_model()
    subject = PreparedImage.of(model, pixels)
    patch_map = explain(model, pixels)["relevance"]
    got = faithfulness(model, pixels, patch_map)
    target = int(model(pixels)[0].argmax())
    order = sorted(range(24), key=lambda patch: (-patch_map.values.ravel()[patch], patch))
    deletion = by_loop(model, pixels, order, torch.zeros_like(pixels), target)
    insertion = by_loop(model, pixels, order, baseline_pixels(subject, "blur"), target, insertion=True)
    assert_same(got.deletion.x, deletion[:, 0], relative=1e-6)
    assert_same(got.deletion.y, deletion[:, 1])
    assert_same(got.insertion.y, insertion[:, 1])
    assert got.deletion_auc == pytest.approx(trapezoid(deletion), abs=1e-3)
    assert got.insertion_auc == pytest.approx(trapezoid(insertion), abs=1e-3)


class Counting(nn.Module):
    """Two classes whose log odds are the sum of the first pixel of each of four patches."""

    def forward(self, pixels):
        total = pixels[:, 0, 0].sum(-1)
        return torch.stack([total, torch.zeros_like(total)], dim=-1)


def counting_subject():
    pixels = torch.tensor([4.0, 0.0, 1.0, 0.0]).log1p().reshape(1, 1, 1, 4)
    return PreparedImage(Counting(), pixels, TokenLayout(grid=(1, 4), prefix=()), has_classes=True)


def test_deletion_worked_by_hand():
    # odds 5 * 1 * 2 * 1 = 10; best first, the map's order 0, 2, 1, 3: odds 10, 2, 1, 1, 1
    subject = counting_subject()
    band = random_band(subject)
    got = faithfulness_of(subject, map_of([[9, 2, 5, 1]]), band)
    assert_same(got.deletion.y, [10 / 11, 2 / 3, 1 / 2, 1 / 2, 1 / 2])
    assert got.deletion_auc == pytest.approx((10 / 22 + 2 / 3 + 1 / 2 + 1 / 2 + 1 / 4) / 4, rel=1e-5)


def test_order_is_by_value_and_equal_patches_go_by_index():
    assert patch_order(map_of([[1, 3, 3], [0, 3, 2]])).tolist() == [1, 2, 4, 5, 0, 3]
    assert patch_order(map_of([[0, 0], [0, 0]])).tolist() == [0, 1, 2, 3]


def test_twenty_steps_or_one_per_patch():
    assert step_counts(6).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert step_counts(196).tolist()[:4] == [0, 10, 20, 29]
    assert len(step_counts(196)) == 21
    assert step_counts(1).tolist() == [0, 1]


def test_the_band_is_that_of_random_orders_one_by_one(make_model, pixels):
    model = make_model()
    band = random_band(PreparedImage.of(model, pixels), seed=3)
    target = int(model(pixels)[0].argmax())
    for i in (0, 9):
        order = np.random.default_rng([3, i]).permutation(24)
        expected = by_loop(model, pixels, order, torch.zeros_like(pixels), target)
        assert_same(band.deletion[i], expected[:, 1])


def test_the_band_worked_by_hand():
    scores = np.array([[0.5, 0.5 + value] for value in (0, 0.4) * 5])  # areas 0.5 and 0.7
    band = RandomBand(np.array([0.0, 1.0]), scores, scores, ("mean", "blur"), "test")
    mean, low, high = band.interval("deletion")
    half = np.log(0.7 / 0.3) / 2  # log-odds 0 and 0.847: their mean, and their distance from it
    spread = 2.37 * half * np.sqrt(10 / 9)
    assert mean == pytest.approx(0.6)
    assert (low, high) == pytest.approx((1 / (1 + np.exp(spread - half)), 1 / (1 + np.exp(-spread - half))))
    edges = band.edges("deletion")
    assert (edges[0][0], edges[1][0]) == pytest.approx((0.5, 0.5))


def test_the_band_stays_where_scores_can_be():
    scores = np.random.default_rng(0).beta(0.5, 20, (10, 7))  # near 0, with a long tail upwards
    low, high = prediction_band(scores)
    assert (low > 0).all()
    assert (scores.mean(0) - 2.37 * scores.std(0, ddof=1) < 0).any()  # where a symmetric band would end
    similar = prediction_band(2 * scores - 1, value_range=(-1.0, 1.0))
    np.testing.assert_allclose(similar, (2 * low - 1, 2 * high - 1))


@pytest.mark.parametrize("centre", [-3.0, 0.0, 2.0])
def test_the_band_covers_95_percent_of_further_orders(centre):
    generator = np.random.default_rng(1)
    draws = expit(centre + 0.8 * generator.standard_normal((11, 20_000)))
    low, high = prediction_band(draws[:10])
    outside = [(draws[10] < low).mean(), (draws[10] > high).mean()]
    assert outside == pytest.approx(
        [0.025, 0.025], abs=0.004
    )  # 20,000 draws: +-0.0022 is two standard errors


def test_the_band_is_the_same_for_a_seed_and_is_not_computed_again(make_model, pixels):
    model = make_model()
    subject = PreparedImage.of(model, pixels)
    band = random_band(subject)
    np.testing.assert_array_equal(band.deletion, random_band(subject).deletion)
    assert not np.array_equal(band.deletion, random_band(subject, seed=1).deletion)
    images = []
    model.register_forward_hook(lambda _module, args, _output: images.append(len(args[0])))
    faithfulness_of(subject, map_of(np.random.rand(4, 6)), band, target=None)
    assert (
        sum(images) == 2 * 19 + 1
    )  # both curves of one map between their ends, and one image to fix the class


def test_an_informed_order_beats_random_and_its_reverse_does_not():
    pixels = torch.tensor([1.0] * 4 + [-0.5] * 8).reshape(1, 1, 1, 12)
    subject = PreparedImage(Counting(), pixels, TokenLayout(grid=(1, 12), prefix=()), has_classes=True)
    band = random_band(subject, baselines=("mean", "mean"), target=0)
    good = faithfulness_of(subject, map_of(pixels[0, 0].numpy()), band, target=0)
    bad = faithfulness_of(subject, map_of(-pixels[0, 0].numpy()), band, target=0)
    assert good.beats_random == (True, True)
    assert good.beaten == (10, 10)
    assert good.verdict == "Better than random when its patches are taken away and put back."
    assert bad.beats_random == (False, False)
    assert bad.beaten[0] < 10
    assert bad.verdict == "No better than patches chosen at random."
    assert good.relative_deletion < 1 < bad.relative_deletion


def test_ahead_of_every_order_but_within_the_band_is_said_as_such():
    subject = counting_subject()
    scattered = np.array([[0.1, 0.002 * i + 0.02 * (i > 6)] for i in range(10)])
    band = RandomBand(
        np.array([0.0, 1.0]), scattered, 1 - scattered, ("mean", "mean"), "probability of class 0"
    )
    result = faithfulness_of(subject, map_of([[9, 2, 5, 1]]), random_band(subject, target=0), target=0)
    moved = replace(result, band=band, deletion_auc=0.0499, insertion_auc=0.1)
    assert moved.beaten == (10, 0)
    assert moved.beats_random == (False, False)
    assert moved.verdict == (
        "Ahead of each of 10 random orders, but within their 95% band, when its patches are taken away."
    )


def test_removal_is_compared_beside_painting(make_model, pixels):
    for options, last in (({}, 1.0), ({"class_token": False, "pooling": "mean"}, 23 / 24)):
        model = make_model(**options)
        got = faithfulness(model, pixels, explain(model, pixels)["relevance"], removal=True)
        assert got.removal.x[-1] == pytest.approx(last)
        assert got.removal.y[0] == pytest.approx(got.deletion.y[0], abs=1e-5)
        assert "leave the sequence" in got.removal.note
        assert 0 <= got.removal_auc <= 1


def test_a_model_without_classes_is_followed_by_its_own_embedding(make_model, pixels):
    model = make_model(num_classes=0)
    got = faithfulness(model, pixels, explain(model, pixels)["relevance"])
    assert got.deletion.y[0] == pytest.approx(1, abs=1e-6)
    assert "cosine" in got.deletion.y_label


def test_curves_name_their_baseline_and_what_is_followed(make_model, pixels):
    model = make_model()
    got = faithfulness(model, pixels, explain(model, pixels)["relevance"], target=3)
    assert "preprocessing mean" in got.deletion.note
    assert "blur" in got.insertion.note
    assert got.deletion.y_label == "probability of class 3"
    assert got.deletion.band is not None


def test_progress_covers_band_and_map_and_stops_when_cancelled(make_model, pixels):
    model, seen = make_model(), []
    patch_map = explain(model, pixels)["relevance"]
    faithfulness(model, pixels, patch_map, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)
    with pytest.raises(Cancelled):
        faithfulness(model, pixels, patch_map, cancelled=lambda: True)


def test_a_map_of_another_grid_or_a_band_of_another_target_is_refused(make_model, pixels):
    model = make_model()
    subject = PreparedImage.of(model, pixels)
    band = random_band(subject, target=2)
    with pytest.raises(ParameterError, match="grid"):
        faithfulness_of(subject, map_of(np.ones((3, 3))), band, target=2)
    with pytest.raises(ParameterError, match="follows the probability of class 2"):
        faithfulness_of(subject, map_of(np.ones((4, 6))), band, target=3)
