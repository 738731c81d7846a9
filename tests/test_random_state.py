"""Random numbers are the same whatever ran before: of a test, of what several tests share, and of a file while it is imported."""

from __future__ import annotations

import numpy as np
import pytest
import torch

Numbers = tuple[list[float], list[float]]


def drawn() -> Numbers:
    return torch.rand(3).tolist(), np.random.rand(3).tolist()


AT_IMPORT = drawn()


@pytest.fixture(scope="module")
def disturbing() -> None:
    """What ran before, and drew some numbers."""
    drawn()


@pytest.fixture(scope="module")
def shared(disturbing: None) -> Numbers:
    return drawn()


@pytest.fixture(scope="module")
def late() -> Numbers:
    return drawn()


def test_what_is_shared_and_what_is_imported_draw_the_numbers_of_a_test(shared: Numbers) -> None:
    assert shared == AT_IMPORT == drawn()


def test_what_is_shared_takes_no_numbers_from_the_test_that_asks_first(
    request: pytest.FixtureRequest,
) -> None:
    drawn()
    state = torch.get_rng_state(), np.random.get_state()[1].tolist()
    assert request.getfixturevalue("late") == AT_IMPORT
    assert torch.equal(torch.get_rng_state(), state[0])
    assert np.random.get_state()[1].tolist() == state[1]
