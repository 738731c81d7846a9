"""SaCo: by hand, at its ends, and beside a plain loop over groups and pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import vit_viz as vv
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.saco import coefficient
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.numbers


def test_three_groups_by_hand() -> None:
    # pairs (0, 1): 1 for it, (0, 2): 3 for it, (1, 2): 2 against it
    assert coefficient(np.array([3.0, 2, 0]), np.array([0.5, 0.1, 0.3])) == pytest.approx((1 + 3 - 2) / 6)
    # of a map that is negative in part: (0, 1): 2 against it, (0, 2): 3 against it, (1, 2): 1 for it
    assert coefficient(np.array([1.0, -1, -2]), np.array([0.1, 0.3, 0.2])) == pytest.approx((1 - 2 - 3) / 6)


def test_it_is_one_where_falls_follow_the_map_and_minus_one_where_they_turn_it_round() -> None:
    salience = np.sort(np.random.default_rng(3).normal(size=9))[::-1]
    assert coefficient(salience, np.exp(salience)) == 1
    assert coefficient(salience, -salience) == -1
    assert coefficient(salience, np.zeros(9)) == 1  # "at least as far", as its authors have it


@pytest.mark.parametrize(("method", "groups"), [("relevance", 5), ("rollout", 24)])
def test_it_is_a_plain_loop_over_groups_and_pairs(
    make_model: Callable[..., VisionTransformer], method: str, groups: int
) -> None:
    model, pixels = make_model(), torch.randn(1, 3, 16, 36)
    got = vv.saco(PreparedImage.of(model, pixels), method=method, target=4, groups=groups)

    values = vv.explain(model, pixels, methods=method, target=4)[method].values
    order = sorted(range(24), key=lambda patch: -values.flat[patch])
    sizes = [24 // groups + (group < 24 % groups) for group in range(groups)]
    salience, falls = [], []
    with torch.no_grad():
        whole = model(pixels).softmax(-1)[0, 4]
        for group in range(groups):
            painted, members = pixels.clone(), order[sum(sizes[:group]) : sum(sizes[: group + 1])]
            for patch in members:
                row, col = divmod(patch, 6)
                painted[:, :, 4 * row : 4 * row + 4, 6 * col : 6 * col + 6] = 0
            salience.append(float(np.mean([values.flat[patch] for patch in members])))
            falls.append(float(whole - model(painted).softmax(-1)[0, 4]))
    for_it = all_of_it = 0.0
    for i in range(groups):
        for j in range(i + 1, groups):
            weight = salience[i] - salience[j]
            all_of_it += weight
            for_it += weight if falls[i] >= falls[j] else -weight
    np.testing.assert_allclose(got.y, falls, atol=1e-6)
    assert float(dict(got.provenance.parameters)["saco"]) == pytest.approx(for_it / all_of_it, abs=1e-5)


def test_groups_are_bounded_by_the_patches_and_a_map_that_ranks_nothing_is_refused(
    make_model: Callable[..., VisionTransformer],
) -> None:
    subject = PreparedImage.of(make_model(), torch.randn(1, 3, 16, 36))
    for groups in (1, 25):
        with pytest.raises(ParameterError, match=f"There are 2 to 24 groups of patches, not {groups}"):
            vv.saco(subject, method="rollout", groups=groups)
    with pytest.raises(ParameterError, match="the same everywhere"):
        coefficient(np.ones(4), np.arange(4.0))
