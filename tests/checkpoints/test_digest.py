"""The digest of weights: another one for any other number, the same for equal ones."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import timm_vit
from vit_viz.checkpoints.digest import weights_digest
from vit_viz.model.submodules import submodules_of


class Matrix(nn.Module):
    """One weight and nothing else."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)


def exchanged(weight: Tensor, one: int, other: int) -> Tensor:
    """The same rows, two of which changed places."""
    order = list(range(len(weight)))
    order[one], order[other] = other, one
    return weight[order]


def test_no_two_rows_of_a_unit_matrix_change_places_unnoticed() -> None:
    """Sums of its rows and of its columns are all 1, and rows of 192 numbers of 8 bytes lie below each other in many a layout."""
    pairs = list(itertools.combinations(range(0, 192, 8), 2))
    for unit in (torch.eye(192), torch.eye(192, dtype=torch.float64)):
        found = {weights_digest(Matrix(exchanged(unit, *pair))) for pair in pairs}
        assert len(found | {weights_digest(Matrix(unit))}) == len(pairs) + 1


@pytest.mark.parametrize("distance", [1, 2, 509, 2 * 509, 1021, 2 * 1021, 96 * 509])
def test_two_numbers_that_change_places_are_seen_at_any_distance(distance: int) -> None:
    weight = torch.randn(96, 1021)  # of words that are summed by rows and by columns of 509
    found = {weights_digest(Matrix(weight))}
    for first in (0, 7, 1018):
        other = weight.clone().view(-1)
        other[[first, first + distance]] = other[[first + distance, first]]
        found.add(weights_digest(Matrix(other.view(96, 1021))))
    assert len(found) == 4


def test_names_shapes_and_precisions_are_part_of_it() -> None:
    found = set[str]()
    for name, numbers in (
        ("scale", torch.zeros(4, 6)),
        ("shift", torch.zeros(4, 6)),
        ("scale", torch.zeros(6, 4)),
        ("scale", torch.zeros(4, 6, dtype=torch.int32)),
    ):
        module = nn.Module()
        module.register_buffer(name, numbers)
        found.add(weights_digest(module))
    assert len(found) == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.bool])
@pytest.mark.parametrize("size", [(1,), (), (3, 5), (190, 131)], ids=str)
def test_any_number_that_changes_is_seen(dtype: torch.dtype, size: tuple[int, ...]) -> None:
    weight = (torch.rand(size) > 0.5).to(dtype)
    flat = weight.reshape(-1)
    found = {weights_digest(Matrix(weight))}
    places = {0, len(flat) // 2, len(flat) - 1}
    for place in places:
        other = flat.clone()
        other[place] = 1 - other[place].to(torch.int64)
        found.add(weights_digest(Matrix(other.view(size))))
    assert len(found) == len(places) + 1


def test_the_smallest_step_of_a_number_is_seen_and_the_sign_of_zero() -> None:
    weight = torch.randn(97, 211)
    other, zeros = weight.clone(), torch.zeros(97, 211)
    other[53, 89] = torch.nextafter(other[53, 89], torch.tensor(9.0))
    found = {weights_digest(Matrix(one)) for one in (weight, other, zeros, -zeros)}
    assert len(found) == 4


def test_equal_weights_have_one_digest_however_they_lie_in_memory() -> None:
    weight = torch.randn(191, 130)
    storage = torch.empty(weight.numel() + 1)
    storage[1:] = weight.reshape(-1)  # of an address that no word of 8 bytes begins at
    kinds = (weight, weight.t().contiguous().t(), storage[1:].view(191, 130))
    assert len({weights_digest(Matrix(kind)) for kind in kinds}) == 1
    assert weights_digest(Matrix(weight)) != weights_digest(Matrix(weight.t().contiguous()))
    module = timm_vit()
    assert weights_digest(module) == weights_digest(copy.deepcopy(module))


def changed_data(module: nn.Module, write: Callable[[nn.Parameter], object]) -> None:
    write(next(part.weight for part in submodules_of(module) if isinstance(part, nn.LayerNorm)))


CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "in place": partial(changed_data, write=lambda p: p.data.mul_(2)),
    "other data": partial(changed_data, write=lambda p: setattr(p, "data", p.data + 1)),
    "copied": partial(changed_data, write=lambda p: p.data.copy_(torch.zeros(len(p)))),
    "by NumPy": partial(changed_data, write=lambda p: p.data.numpy().fill(3)),
    "state dict": lambda module: module.load_state_dict({k: v * 0.5 for k, v in module.state_dict().items()}),
    "half precision": lambda module: module.half(),
    "buffer": lambda module: module.register_buffer("running_mean", torch.ones(3)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_a_model_is_seen_and_its_undoing(change: Callable[[nn.Module], object]) -> None:
    module = timm_vit()
    before, kept = weights_digest(module), copy.deepcopy(module.state_dict())
    change(module)
    assert weights_digest(module) != before
    module._buffers.pop("running_mean", None)
    module.float().load_state_dict(kept)
    assert weights_digest(module) == before


def test_what_shows_no_bytes_is_known_by_itself_and_by_the_writes_to_it() -> None:
    sparse = Matrix(torch.eye(5).to_sparse())
    before = weights_digest(sparse)
    assert weights_digest(sparse) == before
    sparse.weight.mul_(2)
    assert weights_digest(sparse) != before
    assert weights_digest(nn.LazyLinear(3)) != weights_digest(nn.LazyLinear(3))
    with torch.device("meta"):
        weights_digest(nn.Linear(3, 5))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the same weights elsewhere need a GPU")
def test_a_gpu_gives_the_digest_of_the_cpu() -> None:
    for module in (timm_vit(), Matrix(torch.randn(191, 130)[:, 1:]), Matrix(torch.randn(3, 5).bfloat16())):
        here = weights_digest(module)
        assert weights_digest(module.to("cuda")) == here
