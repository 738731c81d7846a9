"""What the last attention reads: found however a module writes its attention, or refused."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import lively
from tests.comparing import assert_same
from vit_viz.capture import trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

DIM, HEADS, GRID, PREFIX = 20, 5, (4, 6), ("class", "register 0", "register 1")


def by_head(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(by_head(q), by_head(k), by_head(v)).transpose(1, 2).flatten(2)


def written_out(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = torch.einsum("bhid,bhjd->bhij", by_head(q), by_head(k)) / 2
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), by_head(v)).transpose(1, 2).flatten(2)


class Doubled(torch.autograd.Function):
    """A function that no mode of torch sees."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:  # noqa: ARG004
        return 2 * x

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:  # noqa: ARG004
        return 2 * gradient


class Block(nn.Module):
    """A block that notes what its attention is given."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.norm, self.other = how, nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out, self.mlp = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.down, self.up = nn.Linear(DIM, 3), nn.Linear(3, 3 * DIM)
        self.mha = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.places = nn.Parameter(torch.linspace(-1, 1, 27 * DIM).view(1, 27, DIM))
        self.read = torch.empty(0)

    def attend(self, x: Tensor) -> Tensor:
        self.read = x
        if "torch's own" in self.how:
            where = x + self.places if "places" in self.how else x
            return self.mha(where, where, x, need_weights=False)[0]
        attention = written_out if "written out" in self.how else fused
        if "apart" in self.how:
            where = x + self.places if "places" in self.how else x
            q, k, v = self.qkv.weight.chunk(3)
            return self.out(attention(where @ q.T, where @ k.T, x @ v.T))
        if "without projection" in self.how:
            return self.out(attention(x, x, x))
        wide = self.qkv(x) + (self.up(self.down(x)) if "low rank" in self.how else 0)
        q, k, v = wide.chunk(3, dim=-1)
        return self.out(attention(F.normalize(q, dim=-1), k, v))

    def forward(self, x: Tensor) -> Tensor:
        if "norm last" in self.how:
            x = self.norm(x + self.attend(x))
            return self.other(x + torch.tanh(self.mlp(x)))
        normed = Doubled.apply(self.norm(x)) if "unseen norm" in self.how else self.norm(x)
        x = x + self.attend(normed)
        return x + torch.tanh(self.mlp(self.other(x)))


class Model(nn.Module):
    def __init__(self, how: str, depth: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, (4, 6), (4, 6))
        self.named = nn.Parameter(torch.linspace(-2, 1, 3 * DIM).view(1, 3, DIM))
        self.blocks = nn.ModuleList([Block(how) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 7)

    def layout(self, height: int, width: int) -> TokenLayout:
        return TokenLayout(grid=(height // 4, width // 6), prefix=PREFIX)

    def tokens(self, pixels: Tensor, embed: nn.Module) -> Tensor:
        patches = embed(pixels).flatten(2).transpose(1, 2)
        return torch.cat([self.named.expand(len(pixels), -1, -1), patches], dim=1)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.tokens(pixels, self.embed)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(self.kept(x))[:, 0])

    def kept(self, x: Tensor) -> Tensor:
        return x


WAYS = (
    "one matrix", "one matrix, written out", "apart", "apart, written out", "low rank", "torch's own", "torch's own, places",
    "apart, places", "apart, places, written out", "one matrix, norm last", "apart, norm last", "torch's own, norm last",
    "without projection", "unseen norm",
)  # fmt: skip


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("how", WAYS)
def test_what_the_last_attention_reads_is_found_however_it_is_written(how, depth, frozen):
    torch.manual_seed(0)
    model = lively(Model(how, depth))
    pixels = torch.randn(1, 3, 16, 36, generator=torch.Generator().manual_seed(1))
    value = model(pixels)[0, 4]
    read = model.blocks[-1].read
    (expected,) = torch.autograd.grad(value, read)
    model.requires_grad_(not frozen)
    features = trace(model, pixels, target=4, keep_features=True, keep_gradients=False).last_features()
    assert_same(features.values, read.detach()[0])
    assert_same(features.gradient, expected[0])


def test_the_gradient_of_the_layers_is_the_same_with_and_without_the_features():
    torch.manual_seed(0)
    model = lively(Model("apart", 3))
    pixels = torch.randn(1, 3, 16, 36, generator=torch.Generator().manual_seed(1))
    plain, both = (trace(model, pixels, target=4, keep_features=kept) for kept in (False, True))
    assert torch.equal(plain.output_grad, both.output_grad)
    alone = trace(model, pixels, target=4, keep_features=True, keep_gradients=False)
    assert alone.output_grad is None
    assert torch.equal(alone.last_features().gradient, both.last_features().gradient)


class Pools(Model):
    """Queries of all tokens, keys of the convolved map: nothing that both are made of has a vector for each token."""

    def __init__(self) -> None:
        super().__init__("apart", 1)
        self.of_map = nn.Conv2d(3, DIM, (4, 6), (4, 6))

    def forward(self, pixels: Tensor) -> Tensor:
        k = self.tokens(pixels, self.of_map)
        q = self.tokens(pixels, self.embed)
        return self.head(fused(q, k, k)[:, 0])


class Detached(Model):
    def kept(self, x: Tensor) -> Tensor:
        return x.detach()


def test_where_nothing_is_read_token_by_token_that_is_said():
    recorded = trace(Pools().eval(), torch.randn(1, 3, 16, 36), target=1, keep_features=True)
    with pytest.raises(CaptureError, match="no tensor with one vector for each token"):
        recorded.last_features()


def test_a_gradient_that_ends_before_the_last_attention_is_refused():
    model, pixels = Detached("apart", 2).eval(), torch.randn(1, 3, 16, 36)
    with pytest.raises(CaptureError, match=r"no gradient in any layer: .* detaches"):
        trace(model, pixels, target=1, keep_features=True, keep_gradients=False)


def test_without_a_target_there_are_no_features():
    recorded = trace(Model("apart", 2).eval(), torch.randn(1, 3, 16, 36), keep_features=True)
    with pytest.raises(CaptureError, match="pass target= and keep_features=True"):
        recorded.last_features()
