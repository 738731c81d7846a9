"""KernelShap against Shapley's own formula, a sum over all orders of the players."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch
from torch import Tensor, nn

from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.shapley import kernel_shap, segments_of
from vit_viz.analyses.targets import class_logit
from vit_viz.geometry import TokenLayout

GRID, SEGMENTS = (3, 5), 6


class Interacting(nn.Module):
    """A target in which every three pixels interact; one pixel per patch."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.first = nn.Parameter(torch.randn(15, generator=generator))
        self.second = nn.Parameter(torch.randn(15, 4, generator=generator))

    def forward(self, pixels: Tensor) -> Tensor:
        flat = pixels[:, 0].flatten(1)
        value = flat @ self.first + (flat @ self.second).prod(1).tanh() + (flat @ self.second[:, 0]).sin()
        return torch.stack([-value, value, 3 * value], dim=1)


def a_subject() -> PreparedImage:
    pixels = torch.randn(1, 1, *GRID, generator=torch.Generator().manual_seed(8))
    return PreparedImage(
        Interacting(), pixels, TokenLayout(grid=GRID, prefix=(), pooling="mean"), has_classes=True
    )


def shapley(subject: PreparedImage) -> np.ndarray:
    """The mean over all orders of what a segment adds when it comes, spread over its patches; what is absent is 0, the mean."""
    groups, pixels = segments_of(subject, SEGMENTS), subject.pixels

    def value(there: frozenset[int]) -> float:
        mask = torch.from_numpy(np.isin(groups, list(there)))
        with torch.no_grad():
            return float(subject.model(pixels * mask)[0, 1])

    known = {frozenset(s for s in range(SEGMENTS) if n >> s & 1): 0.0 for n in range(2**SEGMENTS)}
    known = {there: value(there) for there in known}
    shares = np.zeros(SEGMENTS)
    orders = list(permutations(range(SEGMENTS)))
    for order in orders:
        there: frozenset[int] = frozenset()
        for player in order:
            shares[player] += (known[there | {player}] - known[there]) / len(orders)
            there |= {player}
    return (shares / np.bincount(groups.ravel()))[groups]


def test_all_subsets_give_shapleys_values() -> None:
    subject = a_subject()
    got = kernel_shap(MethodInput(subject, class_logit(1)), segments=SEGMENTS, samples=2**SEGMENTS)
    expected = shapley(subject)
    np.testing.assert_allclose(got.values, expected, atol=1e-5 * np.abs(expected).max())


def test_drawn_subsets_miss_shapleys_values_by_little_and_by_less_the_more_there_are() -> None:
    """The weighted regression is consistent, not unbiased (Covert & Lee 2021, section 3): its bias is far below its spread."""
    subject, target = a_subject(), class_logit(1)
    expected = shapley(subject)
    bias = []
    for samples in (24, 52):  # of 62
        runs = np.stack(
            [
                kernel_shap(
                    MethodInput(subject, target), segments=SEGMENTS, samples=samples, seed=seed
                ).values
                for seed in range(500)
            ]
        ).astype(np.float64)
        off, spread = np.abs(runs.mean(0) - expected), runs.std(0)
        assert spread.max() > 0.05 * np.abs(expected).max()  # seeds do differ
        assert (off < 0.5 * spread).all()
        bias.append(off.max() / np.abs(expected).max())
    assert bias[0] < 0.05
    assert bias[1] < 0.5 * bias[0]
