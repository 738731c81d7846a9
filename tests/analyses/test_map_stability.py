"""Stability of a map: mirrored, moved and with noise, by hand and one try after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import vit_viz as vv
from vit_viz.analyses.explain import explain
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.errors import ParameterError

pytestmark = pytest.mark.numbers


@pytest.mark.parametrize("method", ["relevance", "rollout"])
def test_it_is_spearman_with_each_map_brought_back(make_model, pixels, method):
    model = make_model()
    target = int(model(pixels)[0].argmax())
    got = vv.map_stability(PreparedImage.of(model, pixels), method=method, tries=4, noise=0.2, seed=3)

    def values(changed):
        return explain(model, changed, methods=method, target=target)[method].values

    def agreement(other):
        return spearmanr(values(pixels).ravel(), other.ravel()).statistic

    random = torch.Generator().manual_seed(3)
    moved, noisy = [], []
    rows, cols = torch.arange(16), torch.arange(36)  # patches are 4 x 6
    for _ in range(4):
        down, across = (
            int(torch.randint(0, 5, (), generator=random)),
            int(torch.randint(0, 7, (), generator=random)),
        )
        there = (rows + down - 2).clamp(0, 15), (cols + across - 3).clamp(0, 35)
        moved.append(agreement(values(pixels[:, :, there[0]][..., there[1]])))
    for _ in range(4):
        noisy.append(
            agreement(values(pixels + 0.2 * pixels.std() * torch.randn(pixels.shape, generator=random)))
        )
    mirrored = agreement(values(pixels.flip(-1))[:, ::-1])
    assert got.names == ("mirrored", "moved", "noise")
    expected = [[np.mean(one), *np.quantile(one, [0.05, 0.95])] for one in ([mirrored], moved, noisy)]
    np.testing.assert_allclose(got.values, expected, atol=1e-5)


def test_it_repeats_for_a_seed_falls_with_the_noise_and_is_one_without(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    little, again, much, none = (
        vv.map_stability(subject, method="relevance", noise=noise, tries=3).values
        for noise in (0.02, 0.02, 2.0, 0.0)
    )
    assert np.array_equal(little, again)
    assert much[2, 0] < little[2, 0] <= 1
    assert none[2].tolist() == [1, 1, 1]
    assert np.array_equal(much[:2], little[:2])


def test_asked_by_name_it_says_its_method() -> None:
    got = vv.run("mini", "lion", "map_stability", method="gradcam", tries=2, target=5)
    expected = vv.map_stability(PreparedImage.of("mini", "lion"), method="gradcam", tries=2, target=5)
    np.testing.assert_allclose(got.values, expected.values, atol=1e-4)
    assert got.method == "stability of gradcam"
    with pytest.raises(ParameterError, match="no method 'guessing'"):
        vv.run("mini", "lion", "map_stability", method="guessing")
