"""Removed tokens are left out of the pool, whatever way it is written; each against a sequence that truly lacks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import einops
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import lively, pixels, timm_vit
from tests.capture.tutorials import Block, FusedQkv
from tests.comparing import assert_same
from vit_viz.capture import edit, trace
from vit_viz.capture.pools import HANDLED, Pools, TokenAxes, TokenSequence
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

DIM, CLASSES, ROWS, COLS = 40, 7, 4, 6
REMOVED = [3, 4, 11, 24]  # token 0 is the class token; the last patch is among them

Pool = Callable[[Tensor], Tensor]


class Pooled(nn.Module):
    """A class token and 4 x 6 patches; the pool of one's choice; tokens can be dropped before the first block."""

    def __init__(self, pool: Pool, *, features: int = DIM, suffix: int = 0, depth: int = 3) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, kernel_size=16, stride=16)
        self.token, self.suffix = (
            nn.Parameter(torch.randn(1, 1, DIM)),
            nn.Parameter(torch.randn(1, suffix, DIM)),
        )
        self.positions = nn.Parameter(torch.randn(1, 25 + suffix, DIM))
        self.layers = nn.ModuleList(Block(FusedQkv()) for _ in range(depth))
        self.norm, self.pool = nn.LayerNorm(DIM), pool
        self.head = nn.Linear(features, CLASSES)

    def forward(self, image: Tensor, keep: Sequence[int] | None = None, pool: Pool | None = None) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x, self.suffix.expand(len(x), -1, -1)], dim=1)
        x = x + self.positions
        x = x if keep is None else x[:, list(keep)]
        for layer in self.layers:
            x = layer(x)
        return self.head((pool or self.pool)(self.norm(x)))


def sequential(pool: nn.Module) -> Pool:
    return lambda x: pool(x.transpose(1, 2)).flatten(1)


def in_place(x: Tensor) -> Tensor:
    total = x.sum(1)
    total /= x.shape[1]
    return total


def as_map(x: Tensor) -> Tensor:
    """Patches as [batch, dim, rows, cols]; where some are absent, as one row."""
    patches = x[:, 1:].transpose(1, 2)
    return patches.reshape(len(x), DIM, ROWS if x.shape[1] == 25 else 1, -1)


def last(x: Tensor) -> Tensor:
    """Patches as [batch, rows, cols, dim], copied."""
    return as_map(x).permute(0, 2, 3, 1).contiguous()


def weighed(x: Tensor) -> Tensor:
    """CCT's sequence pooling: a softmax over tokens."""
    weights = F.softmax(x[..., :1] * 3, dim=1)
    return (weights.transpose(1, 2) @ x).squeeze(1)


POOLS: dict[str, Pool] = {
    "x.mean(1)": lambda x: x.mean(1),
    "mean(dim=1)": lambda x: x.mean(dim=1),
    "mean(dim=[1])": lambda x: x.mean(dim=[1]),
    "mean(dim=(1,))": lambda x: x.mean(dim=(1,)),
    "mean(axis=1)": lambda x: x.mean(axis=1),
    "mean(dim=-2)": lambda x: x.mean(dim=-2),
    "mean(1, keepdim=True)": lambda x: x.mean(1, keepdim=True).squeeze(1),
    "torch.mean": lambda x: torch.mean(x, 1),
    "torch.mean(input=)": lambda x: torch.mean(input=x, dim=1),
    "mean in fp64": lambda x: x.mean(1, dtype=torch.float64).float(),
    "sum": lambda x: x.sum(1) / 7,
    "sum / n": lambda x: x.sum(1) / x.shape[1],
    "torch.sum / n": lambda x: torch.sum(x, dim=1, keepdim=True).squeeze(1) / x.shape[1],
    "sum.div(n)": lambda x: x.sum(dim=-2).div(x.size(1)),
    "sum * (1 / n)": lambda x: x.sum(1) * (1 / x.shape[1]),
    "sum /= n": in_place,
    "sum / tensor(n)": lambda x: x.sum(1) / torch.tensor(float(x.shape[1])),
    "sum over a mask": lambda x: x.sum(1) / torch.ones(x.shape[:2], dtype=torch.int64).sum(1, keepdim=True),
    "max": lambda x: x.max(1).values,
    "max(dim=1)[0]": lambda x: x.max(dim=1, keepdim=True)[0].squeeze(1),
    "torch.max": lambda x: torch.max(x, 1)[0],
    "amax": lambda x: x.amax(dim=(1,)),
    "torch.amax": lambda x: torch.amax(x, 1),
    "min": lambda x: x.amin(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "AdaptiveAvgPool1d": sequential(nn.AdaptiveAvgPool1d(1)),
    "AdaptiveMaxPool1d": sequential(nn.AdaptiveMaxPool1d(1)),
    "adaptive_avg_pool1d, copied": lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2).contiguous(), 1).flatten(1),
    "avg_pool1d": lambda x: F.avg_pool1d(x.transpose(1, 2), x.shape[1]).squeeze(-1),
    "max_pool1d": lambda x: F.max_pool1d(x.transpose(1, 2), kernel_size=x.shape[1]).squeeze(-1),
    "einops mean": lambda x: einops.reduce(x, "b n d -> b d", "mean"),
    "einops max": lambda x: einops.reduce(x, "b n d -> b d", "max"),
    "einops sum": lambda x: einops.reduce(x, "b n d -> b d", "sum"),
    "patches only": lambda x: x[:, 1:].mean(1),
    "patches, copied": lambda x: x[:, 1:].contiguous().mean(1),
    "patches, normalised": lambda x: F.layer_norm(x[:, 1:], (DIM,)).mean(1),
    "patches, split": lambda x: x.split([1, x.shape[1] - 1], 1)[1].amax(1),
    "patches, summed": lambda x: x[:, 1:].sum(1) / (x.shape[1] - 1),
    "average and maximum": lambda x: 0.5 * (x[:, 1:].amax(1) + x[:, 1:].mean(1)),
    "class token and mean": lambda x: x[:, 0] + x[:, 1:].mean(1),
    "map.mean((2, 3))": lambda x: as_map(x).mean((2, 3)),
    "map.amax((-2, -1))": lambda x: as_map(x).amax((-2, -1)),
    "AdaptiveAvgPool2d": lambda x: nn.AdaptiveAvgPool2d(1)(as_map(x)).flatten(1),
    "AdaptiveMaxPool2d": lambda x: nn.AdaptiveMaxPool2d(1)(as_map(x)).flatten(1),
    "avg_pool2d": lambda x: F.avg_pool2d(as_map(x), as_map(x).shape[-2:]).flatten(1),
    "map of dim last": lambda x: last(x).mean((1, 2)),
    "einops of a map": lambda x: einops.reduce(as_map(x), "b d h w -> b d", "mean"),
    "tokens first": lambda x: x.transpose(0, 1).contiguous().mean(0),
    "tokens first, patches": lambda x: x.transpose(0, 1)[1:].mean(0),
    "softmax over tokens": weighed,
    "mean and one number of all": lambda x: x.mean(1) + x.mean(),
}  # fmt: skip


def test_a_mean_without_a_token_by_hand() -> None:
    """Two of three tokens are kept: (1 + 5) / 2, where the middle one says 30."""
    from vit_viz.capture.pools import Pools

    pools = Pools(lambda *_: torch.tensor([[False, True, False]]))
    pools.follow(tokens=3, batch=1)
    tokens = torch.tensor([[[1.0, 2.0], [30.0, 40.0], [5.0, 8.0]]])
    assert pools.run(torch.Tensor.mean, (tokens, 1), {})[0].tolist() == pytest.approx([3.0, 5.0])
    assert pools.run(torch.Tensor.mean, (tokens, -1), {}).tolist() == [[1.5, 35.0, 6.5]]  # over features
    total = pools.run(torch.sum, (tokens,), {"dim": [1]})
    assert total.tolist() == [[6.0, 10.0]]
    assert pools.run(torch.Tensor.div, (total, 3), {}).tolist() == [[3.0, 5.0]]
    assert pools.run(torch.Tensor.div, (total, 4), {}).tolist() == [[1.5, 2.5]]  # no count of tokens
    assert pools.run(torch.amax, (tokens, (1,)), {}).tolist() == [[5.0, 8.0]]


@pytest.mark.parametrize("name", POOLS)
def test_removed_tokens_are_left_out_of_the_pool(name: str) -> None:
    model, image = lively(Pooled(POOLS[name])), pixels(2)
    kept = [token for token in range(25) if token not in REMOVED]
    with torch.no_grad():
        plain, expected = model(image), model(image, keep=kept)
        with edit(mask_keys=REMOVED):
            edited = model(image)
    assert_same(edited, expected)
    assert (edited - plain).abs().max() > 1e-3 * plain.abs().max()


BATCHED = [
    "mean(dim=1)",
    "sum / n",
    "max",
    "AdaptiveAvgPool1d",
    "map.mean((2, 3))",
    "tokens first",
    "softmax over tokens",
]


@pytest.mark.parametrize("name", BATCHED)
def test_each_image_of_a_batch_has_its_own_removed_tokens(name: str) -> None:
    model, image = lively(Pooled(POOLS[name])), pixels(3)
    sets = [[3, 4], [24], [1, 2, 7, 19]]
    with torch.no_grad(), edit(mask_keys=sets):
        together = model(image)
    for i, gone in enumerate(sets):
        kept = [token for token in range(25) if token not in gone]
        with torch.no_grad():
            assert_same(together[i : i + 1], model(image[i : i + 1], keep=kept))


@pytest.mark.parametrize("pool", ["avg", "max", "avgmax", "map"])
def test_the_pools_of_timm_leave_removed_tokens_out(pool: str) -> None:
    model, image = timm_vit(global_pool=pool, class_token=pool != "map"), pixels()
    tokens = 25 if pool != "map" else 24
    kept = [token for token in range(tokens) if token not in (3, 4)]
    with torch.no_grad():
        with edit(mask_keys=[3, 4]):
            edited = model(image)
        x = model._pos_embed(model.patch_embed(image))[:, kept]  # type: ignore[operator]
        expected = model.forward_head(model.norm(model.blocks(x)))  # type: ignore[operator]
    assert_same(edited, expected)


@pytest.mark.parametrize(
    "pool", [lambda x: x[:, 1:-3].mean(1), lambda x: F.layer_norm(x[:, 1:-3], (DIM,)).amax(1)]
)
def test_tokens_after_the_patches_do_not_shift_the_pool(pool: Pool) -> None:
    model, image = lively(Pooled(pool, suffix=3)), pixels()
    kept = [token for token in range(28) if token not in (5, 23)]
    with torch.no_grad():
        expected = model(image, keep=kept)
        with edit(mask_keys=[5, 23]):
            assert_same(model(image), expected)


@pytest.mark.parametrize("pool", ["mean(dim=1)", "max", "patches only"])
@pytest.mark.parametrize("order", ["removal first", "head first"])
def test_removed_tokens_are_left_out_where_another_edit_is_around_too(pool: str, order: str) -> None:
    model, image = lively(Pooled(POOLS[pool])), pixels()
    kept = [token for token in range(25) if token not in REMOVED]
    edits = [edit(mask_keys=REMOVED), edit(heads={(1, 3): 0.0})]
    outer, inner = edits if order == "removal first" else edits[::-1]
    with torch.no_grad():
        with edit(heads={(1, 3): 0.0}):
            expected = model(image, keep=kept)
        with outer, inner:
            assert_same(model(image), expected)
            recorded = trace(model, image, layout=TokenLayout(grid=(ROWS, COLS)))
    assert_same(recorded.logits, expected[0])
    assert recorded.attention(2)[..., REMOVED].abs().max() == 0


def test_tokens_that_two_edits_remove_are_all_left_out() -> None:
    model, image = lively(Pooled(POOLS["sum / n"])), pixels()
    kept = [token for token in range(25) if token not in REMOVED]
    with torch.no_grad():
        expected = model(image, keep=kept)
        with edit(mask_keys=REMOVED[:1]), edit(mask_keys=REMOVED[1:]):
            recorded = trace(model, image, layout=TokenLayout(grid=(ROWS, COLS)))
    assert_same(recorded.logits, expected[0])


NOT_UNDERSTOOD: dict[str, Pool] = {
    "median": lambda x: x.median(1).values,
    "standard deviation": lambda x: x.std(dim=1),
    "norm": lambda x: x.norm(dim=1),
    "top three": lambda x: x.transpose(1, 2).topk(3).values.mean(-1),
    "four parts": lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 4).flatten(1)[:, :DIM],
    "rows alone": lambda x: as_map(x).mean(-1).mean(-1),
    "tokens picked by hand": lambda x: x[:, torch.arange(2, 23)].mean(1),
    "Lp": lambda x: F.lp_pool1d(x.transpose(1, 2), 2.0, x.shape[1]).squeeze(-1),
}


@pytest.mark.parametrize("name", NOT_UNDERSTOOD)
def test_a_pool_that_is_not_understood_is_one_sentence(name: str) -> None:
    model, image = lively(Pooled(NOT_UNDERSTOOD[name])), pixels()
    with torch.no_grad():
        model(image)
        with (
            pytest.raises(CaptureError, match=r"^Removed tokens cannot be left out"),
            edit(mask_keys=REMOVED),
        ):
            model(image)


@pytest.mark.parametrize("features", [25, 24])
def test_features_as_many_as_tokens_are_not_taken_for_tokens(features: int) -> None:
    """A layer norm written by hand reduces features; where there are as many of them as tokens, strides tell them apart."""

    def norm(x: Tensor) -> Tensor:
        x = x[..., :features].contiguous()
        x = x[:, 1:] if features == 24 else x
        x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return x.transpose(1, 2).mean(-1)

    model, image = lively(Pooled(norm, features=features)), pixels()
    kept = [token for token in range(25) if token not in REMOVED]
    with torch.no_grad():
        expected = model(image, keep=kept)
        with edit(mask_keys=REMOVED):
            assert_same(model(image), expected)


def test_gradients_pass_through_a_pool_without_removed_tokens() -> None:
    model = lively(Pooled(lambda x: x.sum(1) / x.shape[1] + x.amax(1)))
    image, other = pixels().requires_grad_(), pixels().requires_grad_()
    kept = [token for token in range(25) if token not in REMOVED]
    model(other, keep=kept)[0, 2].backward()
    with edit(mask_keys=REMOVED):
        model(image)[0, 2].backward()
    assert_same(image.grad, other.grad)


GONE = torch.zeros(2, 24, dtype=torch.bool)
GONE[0, 3], GONE[1, 11] = True, True


def pools() -> Pools:
    """Pools after an attention over 24 tokens of two images, one token of each removed."""
    made = Pools(lambda tokens, batch: GONE if (tokens, batch) == (24, 2) else None)
    made.follow(24, 2)
    return made


def without_removed(x: Tensor) -> Tensor:
    """[2, 24, ...] -> [2, 23, ...]"""
    return torch.stack([image[~gone] for image, gone in zip(x, GONE, strict=True)])


@pytest.mark.parametrize("owner", [torch, torch.Tensor], ids=["torch", "Tensor"])
@pytest.mark.parametrize("name", ["mean", "sum", "max", "amax", "logsumexp", "min", "amin"])
def test_every_reduction_that_is_understood_leaves_removed_tokens_out(owner: object, name: str) -> None:
    reduce, x = getattr(owner, name), torch.randn(2, 24, 40)
    assert reduce in HANDLED
    for args, kwargs in (((x, 1), {}), ((x,), {"dim": 1}), ((x, -2), {})):
        found, expected = pools().run(reduce, args, kwargs), reduce(without_removed(x), 1)
        assert_same(*(one if isinstance(one, Tensor) else one[0] for one in (found, expected)))


@pytest.mark.parametrize("owner", [torch, torch.Tensor], ids=["torch", "Tensor"])
@pytest.mark.parametrize(
    ("name", "rest"),
    [
        *((name, (1,)) for name in ("median", "prod", "std", "var", "nanmean", "nansum", "nanmedian")),
        *((name, (1,)) for name in ("logcumsumexp", "mode", "sort", "cumsum")),
        *((name, (2, 1)) for name in ("norm", "topk", "kthvalue")),
        ("quantile", (0.5, 1)),
    ],
)  # fmt: skip
def test_every_other_reduction_over_tokens_is_refused_and_one_over_features_is_not(
    owner: object, name: str, rest: tuple[float, ...]
) -> None:
    reduce, x = getattr(owner, name), torch.randn(2, 24, 40)
    assert reduce in HANDLED
    with pytest.raises(CaptureError, match=name):
        pools().run(reduce, (x, *rest), {})
    found, expected = (
        run(reduce, (x, *rest[:-1], 2), {}) for run in (pools().run, lambda f, a, k: f(*a, **k))
    )
    assert all(map(torch.equal, *([one] if isinstance(one, Tensor) else one for one in (found, expected))))


@pytest.mark.parametrize(
    ("pool", "size", "by_hand"),
    [
        (F.adaptive_avg_pool1d, 1, torch.mean),
        (F.adaptive_avg_pool2d, 1, torch.mean),
        (F.avg_pool1d, 24, torch.mean),
        (F.avg_pool2d, (4, 6), torch.mean),
        (F.adaptive_max_pool1d, 1, torch.amax),
        (F.adaptive_max_pool2d, 1, torch.amax),
        (F.max_pool1d, 24, torch.amax),
        (F.max_pool2d, (4, 6), torch.amax),
    ],
)
def test_every_pooling_layer_leaves_removed_tokens_out(pool: Any, size: Any, by_hand: Any) -> None:
    x = torch.randn(2, 24, 40)
    assert pool in HANDLED
    shaped = x.transpose(1, 2) if "1d" in pool.__name__ else x.transpose(1, 2).unflatten(2, (4, 6))
    assert_same(pools().run(pool, (shaped, size), {}).flatten(1), by_hand(without_removed(x), 1))


@pytest.mark.parametrize(("pool", "size"), [(F.lp_pool1d, 24), (F.lp_pool2d, (4, 6))])
def test_a_pooling_layer_of_another_kind_is_refused(pool: Any, size: Any) -> None:
    x = torch.randn(2, 40, 24) if "1d" in pool.__name__ else torch.randn(2, 40, 4, 6)
    assert pool in HANDLED
    with pytest.raises(CaptureError, match="lp_pool"):
        pools().run(pool, (x, 2.0, size), {})


def test_a_pool_into_several_cells_is_refused() -> None:
    with pytest.raises(CaptureError, match="adaptive_avg_pool2d"):
        pools().run(F.adaptive_avg_pool2d, (torch.randn(2, 40, 4, 6), 2), {})


@pytest.mark.parametrize("divide", [torch.div, torch.Tensor.div, torch.true_divide, torch.divide])
def test_a_sum_divided_by_the_number_of_tokens_is_divided_by_those_kept(divide: Any) -> None:
    made, x = pools(), torch.randn(2, 24, 40)
    total = made.run(torch.sum, (x, 1), {})
    assert_same(made.run(divide, (total, 24), {}), without_removed(x).mean(1))
    assert torch.equal(made.run(divide, (total, 25), {}), total / 25)


@pytest.mark.parametrize("multiply", [torch.mul, torch.Tensor.mul, torch.multiply])
def test_a_sum_times_the_inverse_number_of_tokens_is_divided_by_those_kept(multiply: Any) -> None:
    made, x = pools(), torch.randn(2, 24, 40)
    total = made.run(torch.sum, (x, 1), {})
    assert_same(
        made.run(multiply, (total.unsqueeze(1), 1 / 24), {}), total[:, None] / 24
    )  # a shape that was not followed
    reshaped = made.run(torch.Tensor.unsqueeze, (total, 1), {})
    assert_same(made.run(multiply, (reshaped, 1 / 24), {}), without_removed(x).mean(1, keepdim=True))


def test_a_sum_divided_by_other_numbers_in_part_is_left_as_it_is() -> None:
    made, x = pools(), torch.randn(2, 24, 40)
    total, counts = made.run(torch.sum, (x, 1), {}), torch.full((40,), 24.0)
    assert_same(made.run(torch.div, (total, counts), {}), without_removed(x).mean(1))
    counts[5] = 12
    assert torch.equal(made.run(torch.div, (total, counts), {}), total / counts)


def test_a_map_that_is_a_view_of_tokens_begins_where_its_memory_does() -> None:
    patches = torch.randn(2, 1 + ROWS * COLS, DIM)[:, 1:].unflatten(1, (ROWS, COLS))
    sequence = TokenSequence(tokens=1 + ROWS * COLS, batch=2)  # no slice of it was seen
    assert sequence.reduced(patches.movedim(-1, 1), (2, 3)) == TokenAxes((2, 3), ROWS * COLS, 1, 0)
    assert sequence.reduced(patches[:, :, :-1].movedim(-1, 1), (2, 3)) is None
