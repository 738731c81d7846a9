"""Principal components of tokens: against NumPy's singular values, by hand, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.components import colours_of, principal_components, token_components
from vit_viz.errors import ParameterError


def stream(tokens: int = 25, states: int = 4, dim: int = 6, seed: int = 0) -> torch.Tensor:
    """States of growing size whose directions differ in variance."""
    random = torch.Generator().manual_seed(seed)
    spread = torch.linspace(3, 0.3, dim)
    growth = torch.tensor([1.0, 2.0, 5.0, 9.0])[:states, None, None]
    return (torch.randn(states, tokens, dim, generator=random) * spread + 4) * growth


def by_singular_values(x: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(coordinates, components, shares) of rows that are centred already, by NumPy alone."""
    _, singular, rows = np.linalg.svd(x, full_matrices=False)
    for row in rows:
        row *= np.sign(row[np.abs(row).argmax()])
    return x @ rows[:count].T, rows[:count], (singular**2 / (singular**2).sum())[:count]


def centred(states: torch.Tensor, *, balanced: bool) -> np.ndarray:
    x = states.double().numpy()
    x = x - x.mean(1, keepdims=True)
    return x / np.sqrt((x**2).sum((1, 2), keepdims=True) / x.shape[1]) if balanced else x


@pytest.mark.parametrize("balanced", [True, False])
def test_components_of_all_states_are_those_of_one_singular_value_decomposition(make_trace, balanced):
    states = stream()
    found = token_components(make_trace(residual=states), balanced=balanced)
    x = centred(states[:, 1:], balanced=balanced)
    coordinates, _, shares = by_singular_values(x.reshape(-1, 6), 3)
    assert_same(found.maps[0].values, coordinates.reshape(4, 4, 6, 3))
    assert_same(found.overall, shares)
    expected = (coordinates.reshape(4, 24, 3) ** 2).sum(1) / (x**2).sum((1, 2))[:, None]
    assert_same(found.explained, expected)


def test_components_by_hand():
    basis = principal_components(torch.tensor([[3.0, -4.0], [-3.0, 4.0], [0.8, 0.6], [-0.8, -0.6]]), 2)
    assert_same(basis.components, torch.tensor([[-0.6, 0.8], [0.8, 0.6]], dtype=torch.double), relative=1e-6)
    assert_same(basis.variances, torch.tensor([12.5, 0.5], dtype=torch.double), relative=1e-6)
    assert_same(basis.shares, torch.tensor([25 / 26, 1 / 26], dtype=torch.double), relative=1e-6)


def test_states_that_only_grow_keep_their_colours_where_they_are_balanced(make_trace):
    one = stream(states=1)
    growing = torch.cat([one, 3 * one, 40 * one, 900 * one])
    found = colours_of(token_components(make_trace(residual=growing)))[0]
    for state in range(1, 4):
        assert_same(found[state], found[0], relative=1e-4)


def test_two_photos_share_one_basis(make_trace):
    first, second = stream(), stream(seed=1)
    both = token_components([make_trace(residual=first), make_trace(residual=second)], balanced=False)
    x = centred(torch.cat([first[:, 1:], second[:, 1:]], 1), balanced=False)
    coordinates, _, _ = by_singular_values(x.reshape(-1, 6), 3)
    coordinates = coordinates.reshape(4, 48, 3)
    assert_same(both.maps[0].values, coordinates[:, :24].reshape(4, 4, 6, 3))
    assert_same(both.maps[1].values, coordinates[:, 24:].reshape(4, 4, 6, 3))


def test_whitened_coordinates_have_variance_one(make_trace):
    found = token_components(make_trace(residual=stream()), whitened=True)
    np.testing.assert_allclose((found.maps[0].values ** 2).mean((0, 1, 2)), 1, atol=1e-4)
    colours = colours_of(found)[0]
    assert_same(colours, 1 / (1 + np.exp(-2 * found.maps[0].values)), relative=1e-6)


@pytest.mark.parametrize("balanced", [True, False])
def test_the_foreground_of_two_photos_in_states_that_differ_is_that_of_numpy(make_trace, balanced):
    random = torch.Generator().manual_seed(5)
    both = [3 * torch.randn(4, 24, 6, generator=random) * torch.linspace(2, 0.5, 6) for _ in range(2)]
    border = np.ones((4, 6), bool)
    border[1:-1, 1:-1] = False
    for number, states in enumerate(
        both
    ):  # in state 2 of the second photo the odd ones out lie at the border
        odd = border if number else ~border
        states[2, torch.from_numpy(odd.ravel())] += torch.tensor([8.0, 1, 0, -2, 0, 0])
    found = token_components(
        [make_trace(prefix=0, residual=one) for one in both], foreground=True, balanced=balanced
    )

    x = centred(torch.cat(both, 1), balanced=balanced)
    first = (x.reshape(-1, 6) @ by_singular_values(x.reshape(-1, 6), 1)[1][0]).reshape(4, 48) > 0
    edge = np.tile(border.ravel(), 2)
    kept = np.stack([side if side[~edge].mean() >= side[edge].mean() else ~side for side in first])
    x = np.stack([one - one[mask].mean(0) for one, mask in zip(x, kept, strict=True)])
    _, rows, shares = by_singular_values(x[kept], 3)
    assert_same(np.concatenate([part.reshape(4, 24) for part in found.foreground], 1), kept)
    got = np.concatenate([part.values.reshape(4, 24, 3) for part in found.maps], 1)
    assert_same(got, (x @ rows.T) * kept[..., None], relative=1e-4)
    for colours, inside in zip(colours_of(found), found.foreground, strict=True):
        assert not colours[~inside].any()
    assert_same(found.overall, shares, relative=1e-4)


def test_colours_are_on_one_scale_for_all_states(make_trace):
    states = stream()
    states[:2] *= 0.01  # in the early layers the patches hardly differ
    found = token_components(make_trace(residual=states), balanced=False)
    colours = colours_of(found)[0]
    assert colours.min() >= 0
    assert colours.max() <= 1
    assert np.ptp(colours[0], axis=(0, 1)).max() < 0.1
    low, high = np.percentile(found.maps[0].values.reshape(-1, 3), (1, 99), axis=0)
    assert_same(colours, np.clip((found.maps[0].values - low) / (high - low), 0, 1))


def test_patches_that_do_not_differ_have_no_components(make_trace):
    found = token_components(make_trace(residual=torch.ones(4, 25, 6)), foreground=True)
    assert (found.maps[0].values == 0).all()
    assert (found.explained == 0).all()
    assert np.isfinite(colours_of(found)[0]).all()


def test_what_cannot_be_fitted_is_refused(make_trace):
    with pytest.raises(ParameterError, match="no 7 principal components"):
        token_components(make_trace(residual=stream()), count=7)
    with pytest.raises(ParameterError, match="at least one trace"):
        token_components([])
    with pytest.raises(ParameterError, match="within one model"):
        token_components([make_trace(residual=stream()), make_trace(residual=stream(dim=7))])
    with pytest.raises(ParameterError, match="three components, not 2"):
        colours_of(token_components(make_trace(residual=stream()), count=2))
