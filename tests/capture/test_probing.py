"""What a probing pass knows of tokens, image by image, and that it leaves the module as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from vit_viz.capture.clamped_pass import Seen
from vit_viz.capture.probing import AttentionProbe, by_image, heads_by_image, moved, undisturbed_pass
from vit_viz.capture.responses import _responses as responses_of, distances

IMAGES, HEADS, TOKENS, FEATURES = 3, 5, 7, 8


@pytest.mark.parametrize("lead", [(IMAGES, HEADS), (IMAGES * HEADS,)])
def test_heads_stand_with_their_image(lead: tuple[int, ...]) -> None:
    tensor = torch.randn(IMAGES, HEADS, TOKENS, FEATURES)
    found = heads_by_image(tensor.reshape(*lead, TOKENS, FEATURES), IMAGES)
    assert torch.equal(found, tensor)


def test_a_lead_that_is_no_multiple_of_the_images_holds_no_images() -> None:
    assert heads_by_image(torch.randn(IMAGES * HEADS + 1, TOKENS, FEATURES), IMAGES) is None


def test_windows_in_the_batch_are_not_images() -> None:
    assert heads_by_image(torch.randn(2 * IMAGES, HEADS, TOKENS, FEATURES), IMAGES) is None


def test_features_of_all_heads_stand_with_their_token() -> None:
    tensor = torch.randn(IMAGES, 2, TOKENS, FEATURES)
    found = by_image(tensor, IMAGES)
    assert torch.equal(found[1, 4], torch.cat([tensor[1, 0, 4], tensor[1, 1, 4]]))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_a_token_that_is_no_longer_a_number_has_moved(wrong: float) -> None:
    before = torch.randn(TOKENS, FEATURES)
    states = before.clone()
    states[4, 2] = wrong
    moves = moved(states, against=before, dtype=torch.float32)
    assert [token for token, move in enumerate(moves) if move > 0] == [4]


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_moves_are_shares_of_the_largest_number_that_is_one(wrong: float) -> None:
    photo = torch.zeros(TOKENS, FEATURES)
    photo[2, 5], photo[4, 1] = wrong, -0.5
    states = photo.clone()
    states[0, 3], states[6, 7] = 0.25, -0.75
    moves = moved(states, against=photo, dtype=torch.float32).tolist()
    assert (moves[0], moves[6], moves[1]) == (0.5, 1.5, 0.0)
    away = distances(torch.stack([photo, states])).tolist()
    assert away == [[0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5]]


@pytest.mark.parametrize(
    ("dtype", "share"), [(torch.float32, 256), (torch.float64, 256), (torch.bfloat16, 8)]
)
def test_rounding_is_no_move(dtype: torch.dtype, share: int) -> None:
    before = torch.zeros(TOKENS, FEATURES, dtype=torch.float64)
    before[0, 0] = -5.0
    eps = torch.finfo(dtype).eps
    for factor, moves in ((0.9, False), (1.1, True)):
        states = before.clone()
        states[3, 6] += factor * share * eps * 5.0
        assert bool((moved(states, against=before, dtype=dtype) > 0).any()) == moves, factor


@pytest.mark.parametrize(
    ("dtype", "spread", "bound"),
    [
        (torch.float32, 0.0, 256 * 2.0**-23),
        (torch.float32, 2.0**-10, 2.0**-8),
        (torch.bfloat16, 0.0, 2.0**-6),
        (torch.bfloat16, 2.0**-5, 2.0**-3),
        (torch.float16, 2.0**-12, 2.0**-9),
    ],
)
def test_a_response_is_more_than_rounding_and_more_than_noise_of_rounding_makes(
    dtype: torch.dtype, spread: float, bound: float
) -> None:
    photo = torch.zeros(TOKENS, FEATURES)
    photo[3, 2] = 1.0
    noisy, below, above = photo.clone(), photo.clone(), photo.clone()
    noisy[1, 4] += spread
    below[5, 0] -= 0.9 * bound
    above[5, 0] -= 1.1 * bound
    answers = responses_of(Seen([[torch.stack([photo, noisy, below, above])]], [[]], dtype=dtype))
    assert answers is not None
    assert [one.calls[0].nonzero().flatten().tolist() for one in answers] == [[], [5]]


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-2), (torch.bfloat16, 0.3)])
def test_where_noise_of_rounding_makes_another_photo_nothing_is_known(
    dtype: torch.dtype, most: float
) -> None:
    for spread, is_known in ((0.9 * most, True), (1.1 * most, False)):
        states = torch.zeros(3, TOKENS, FEATURES)
        states[:, 3, 2] = 1.0
        states[1, 6, 1] = spread
        assert (responses_of(Seen([[states]], [[]], dtype=dtype)) is not None) == is_known


def test_buffers_that_a_pass_changes_are_put_back() -> None:
    module = nn.BatchNorm1d(5)
    counted, mean = module.num_batches_tracked, module.running_mean
    with undisturbed_pass(module):
        mean += 3
        module.num_batches_tracked = counted + 1
    assert module.num_batches_tracked is counted
    assert module.running_mean is mean
    assert counted.item() == 0
    assert mean.abs().max() == 0


def test_a_token_is_known_by_its_query_and_key_also_where_heads_stood_with_images() -> None:
    class Noting(AttentionProbe):
        def explicit(self, scores: Tensor, softmax: Callable[[], Tensor]) -> Tensor:
            self.noted = self.scored(scores)
            return softmax()

    query, key = torch.randn(2, IMAGES * HEADS, TOKENS, FEATURES)
    with Noting(IMAGES, TOKENS) as probe:
        (query @ key.transpose(1, 2)).unflatten(0, (IMAGES, HEADS)).softmax(-1)
    assert torch.equal(torch.stack(probe.noted), torch.stack([query, key]))


def test_a_token_whose_query_is_not_known_is_known_by_its_own_score() -> None:
    scores = torch.randn(IMAGES, HEADS, TOKENS, TOKENS)
    (own,) = AttentionProbe(IMAGES, TOKENS).scored(scores)
    assert own.shape == (IMAGES, HEADS, TOKENS, 1)
    assert torch.equal(own[2, 1, 4], scores[2, 1, 4, 4:5])
