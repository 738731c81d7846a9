"""Linear CKA between layers: against NumPy's matrices of pairs, by hand, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.layer_similarity import layer_similarity
from vit_viz.errors import ParameterError


def stream(tokens: int = 25, states: int = 4, dim: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(states, tokens, dim, generator=torch.Generator().manual_seed(seed)) + 2


def by_grams(x: np.ndarray, y: np.ndarray) -> float:
    """The first form from centred matrices of pairs: tr(K H L H)."""
    n = len(x)
    centring = np.eye(n) - np.ones((n, n)) / n

    def hsic(a, b):
        return np.trace(a @ a.T @ centring @ b @ b.T @ centring)

    return hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y))


def by_quadruples(x: np.ndarray, y: np.ndarray) -> float:
    """HSIC without bias as what it estimates: the mean over all i, j, q, r, no two equal, of K_ij (L_ij + L_qr - 2 L_iq)."""
    k, l = x @ x.T, y @ y.T  # noqa: E741
    terms = [
        k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q])
        for i in range(len(x))
        for j in range(len(x))
        for q in range(len(x))
        for r in range(len(x))
        if len({i, j, q, r}) == 4
    ]
    return float(np.mean(terms))


def test_cka_equals_the_form_with_matrices_of_pairs(make_trace):
    states = stream()
    found = layer_similarity(make_trace(residual=states), debiased=False)
    x = states[:, 1:].double().numpy()
    assert_same(found.values, [[by_grams(a, b) for b in x] for a in x])
    assert found.names[0] == "input"


def test_cka_without_bias_equals_the_mean_over_quadruples(trace_of):
    states = stream(tokens=7, states=3, dim=5, seed=3)
    found = layer_similarity(trace_of(torch.eye(7).expand(2, 1, 7, 7), residual=states), debiased=True)
    x = states[:, 1:].double().numpy()
    products = np.array([[by_quadruples(a, b) for b in x] for a in x])
    sizes = np.sqrt(np.diag(products))
    assert_same(found.values, np.clip(products / sizes / sizes[:, None], -1, 1))


@pytest.mark.parametrize("debiased", [False, True])
def test_rotated_moved_and_scaled_layers_are_the_same(make_trace, debiased):
    one = stream(states=1)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(5)))[0]
    states = torch.cat([one, 1e4 * one @ turn, one + 7, -3e-5 * one])
    found = layer_similarity(make_trace(residual=states), debiased=debiased)
    np.testing.assert_allclose(found.values, 1, atol=1e-4)


def test_cka_by_hand(trace_of):
    # one number per patch: CKA is the squared correlation
    states = torch.tensor([[[1.0], [2.0], [3.0], [6.0]], [[2.0], [1.0], [3.0], [6.0]]])
    trace = trace_of(torch.eye(4)[None, None], prefix=(), residual=states)
    assert layer_similarity(trace).values[0, 1] == pytest.approx((13 / 14) ** 2, abs=1e-6)


def test_noise_is_alike_only_where_the_bias_stays(make_trace):
    random = torch.randn(2, 25, 300, generator=torch.Generator().manual_seed(1))
    states = random[[0, 1, 0, 1]]
    biased = layer_similarity(make_trace(residual=states), debiased=False).values[0, 1]
    by_default = layer_similarity(make_trace(residual=states))
    assert biased > 0.8
    assert abs(by_default.values[0, 1]) < 0.1
    assert "without bias" in by_default.unit


def test_photos_are_pooled_and_other_models_refused(make_trace):
    first, second = stream(), stream(seed=1)
    found = layer_similarity([make_trace(residual=first), make_trace(residual=second)], debiased=False)
    x = torch.cat([first[:, 1:], second[:, 1:]], 1).double().numpy()
    assert found.values[0, 2] == pytest.approx(by_grams(x[0], x[2]), abs=1e-5)
    with pytest.raises(ParameterError, match="one model"):
        layer_similarity([make_trace(residual=first), make_trace(residual=stream(dim=7))])


def test_a_layer_in_which_nothing_differs_is_like_no_other(make_trace):
    states = stream()
    states[1] = 3.0
    values = layer_similarity(make_trace(residual=states)).values
    assert (values[1] == 0).all()
    assert values[0, 0] == pytest.approx(1)


def test_three_patches_are_too_few(trace_of):
    with pytest.raises(ParameterError, match="4 to 4096 patches, not 3"):
        layer_similarity(trace_of(torch.eye(3)[None, None], prefix=(), residual=stream(tokens=3, states=2)))


@pytest.mark.parametrize("debiased", [True, False])
def test_each_state_is_told_as_progress(make_trace, debiased):
    shares = []
    layer_similarity(make_trace(residual=stream()), debiased=debiased, progress=shares.append)
    states = stream().shape[0]
    assert shares == pytest.approx([(i + 1) / states for i in range(states)])
