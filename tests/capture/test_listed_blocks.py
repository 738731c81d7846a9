"""Blocks that are lists of parts: the same numbers as from blocks that run their parts themselves."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz.analyses.lens import lens_of
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.relevance import legrad
from vit_viz.capture import visit_layers
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

GRID, DIM, HEADS, DEPTH, CLASSES = (3, 5), 24, 4, 3, 7
LAYOUT = TokenLayout(GRID, ("class",))
STYLES = ["sums", "in place", "residual within", "scaled", "by name"]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(DIM), nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        said = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(said.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 40), nn.GELU(), nn.Linear(40, DIM))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)  # type: ignore[no-any-return]


class Residual(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x) + x  # type: ignore[no-any-return]


class Block(nn.Module):
    """The same parts in a block that runs."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, scale: Tensor) -> None:
        super().__init__()
        self.attention, self.mlp, self.scale = attention, mlp, nn.Parameter(scale)

    def forward(self, x: Tensor) -> Tensor:
        x = self.scale * self.attention(x) + x
        return self.scale * self.mlp(x) + x  # type: ignore[no-any-return]


class Listed(nn.Module):
    def __init__(self, style: str) -> None:
        super().__init__()
        self.style = style
        self.embed = nn.Conv2d(3, DIM, (4, 6), (4, 6))
        self.first = nn.Parameter(torch.randn(1, 1, DIM))
        parts = [(Attention(), FeedForward()) for _ in range(DEPTH)]
        if style == "residual within":
            self.layers = nn.ModuleList(nn.ModuleList(Residual(part) for part in both) for both in parts)
        elif style == "by name":
            self.layers = nn.ModuleList(
                nn.ModuleDict({"attention": one, "mlp": other}) for one, other in parts
            )
        else:
            self.layers = nn.ModuleList(nn.ModuleList(both) for both in parts)
        self.scale = nn.Parameter(
            torch.rand(DIM) if style == "scaled" else torch.ones(DIM), requires_grad=False
        )
        self.dropout, self.norm, self.head = nn.Dropout(0.1), nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)

    def through(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            attention, mlp = layer.values() if isinstance(layer, nn.ModuleDict) else layer
            if self.style == "residual within":
                x = mlp(attention(x))
            elif self.style == "in place":
                x += attention(x)
                x += mlp(x)
            elif self.style == "scaled":
                x = self.dropout(self.scale * attention(x)) + x
                x = self.dropout(self.scale * mlp(x)) + x
            else:
                x = attention(x) + x
                x = mlp(x) + x
        return x

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = self.through(torch.cat([self.first.expand(len(x), -1, -1), x], dim=1))
        return self.head(self.norm(x)[:, 0])  # type: ignore[no-any-return]


class Running(Listed):
    """The twin of a model with lists, of which each block runs."""

    def through(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def twins(style: str) -> tuple[Listed, Running]:
    torch.manual_seed(4)
    listed = Listed(style).eval()
    running = copy.deepcopy(listed)
    running.__class__ = Running
    parts = [[getattr(part, "part", part) for part in layer.children()] for layer in running.layers]
    running.layers = nn.ModuleList(Block(*both, listed.scale.detach().clone()) for both in parts)
    return listed, running.eval()


def photo(count: int = 1) -> Tensor:
    return torch.randn(count, 3, 12, 30, generator=torch.Generator().manual_seed(8))


def subject(module: nn.Module) -> PreparedImage:
    return PreparedImage.of(module, photo(), layout=LAYOUT)


@pytest.mark.parametrize("style", STYLES)
def test_the_tokens_of_each_layer_are_those_of_blocks_that_run(style: str) -> None:
    listed, running = (vv.trace(one, photo(), layout=LAYOUT, keep_residual=True) for one in twins(style))
    assert_same(listed.logits, running.logits)
    assert_same(listed.residual, running.residual)
    assert not torch.allclose(listed.residual[0], listed.residual[1], rtol=0.1)


@pytest.mark.parametrize("style", STYLES)
def test_the_logit_lens_reads_what_blocks_that_run_return(style: str) -> None:
    listed, running = (
        lens_of(one, one.trace(keep_residual=True), target=5) for one in map(subject, twins(style))
    )
    assert_same(listed.maps.values, running.maps.values)
    assert_same(listed.top_probability, running.top_probability)


@pytest.mark.parametrize("style", [style for style in STYLES if style != "in place"])  # which has no gradient
def test_legrad_is_that_of_blocks_that_run(style: str) -> None:
    listed, running = (legrad(one, one.resolved(5)) for one in map(subject, twins(style)))
    assert float(running.values.max()) > 0
    assert_same(listed.values, running.values)


def test_a_batch_has_the_lengths_of_the_tokens() -> None:
    seen = [visit_layers(one, photo(2), lambda _: None, tokens=16) for one in twins("sums")]
    assert_same(seen[0].norms, seen[1].norms)


class Elsewhere(Listed):
    """Something is added to the stream between its blocks."""

    def through(self, x: Tensor) -> Tensor:
        for attention, mlp in self.layers:
            x = attention(x) + x
            x = 0.5 * (mlp(x) + x)
        return x


def test_where_the_next_block_reads_something_else_it_is_refused() -> None:
    listed, _ = twins("sums")
    listed.__class__ = Elsewhere
    with pytest.raises(
        CaptureError, match="its blocks are lists of parts, and what the first part of one reads"
    ):
        legrad(subject(listed), subject(listed).resolved(5))
    with pytest.raises(CaptureError, match="Where each layer ends was not found"):
        vv.trace(listed, photo(), layout=LAYOUT, keep_residual=True)


@pytest.mark.parametrize("style", STYLES)
def test_nothing_of_it_stays_on_the_module(style: str) -> None:
    listed, _ = twins(style)
    before: dict[str, Any] = {name: set(vars(part)) for name, part in listed.named_modules()}
    one = subject(listed)
    lens_of(one, one.trace(keep_residual=True), target=5)
    assert {name: set(vars(part)) for name, part in listed.named_modules()} == before
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in listed.modules())
