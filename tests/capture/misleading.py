"""Tiny models whose recorded calls are not what they seem: each breaks one of the three checks of the structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import SIZE, lively

DIM, HEADS, HEAD_DIM, CLASSES, PATCH = 40, 5, 8, 7, 16
ROWS, COLS = SIZE[0] // PATCH, SIZE[1] // PATCH


class Attend(nn.Module):
    """Multi-head attention whose weighting of the values is a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        return self.proj(self.gathered(q, k, v).transpose(1, 2).reshape(batch, tokens, DIM))  # type: ignore[no-any-return]

    def gathered(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


def attending(gathered: Callable[[Tensor, Tensor, Tensor], Tensor]) -> type[Attend]:
    """A kind of attention that gathers its values in this way, from q, k and v."""
    return type("Attending", (Attend,), {"gathered": lambda _, q, k, v: gathered(q, k, v)})


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / HEAD_DIM**0.5


Aten = attending(lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0])
Exponential = attending(lambda q, k, v: (scores(q, k) - scores(q, k).logsumexp(-1, keepdim=True)).exp() @ v)
Sigmoid = attending(lambda q, k, v: scores(q, k).sigmoid() / k.shape[-2] @ v)
Kernelised = attending(
    lambda q, k, v: F.elu(q) @ (F.elu(k).mT @ v) / k.shape[-2]
)  # no tokens x tokens matrix
ByHand = attending(lambda q, k, v: scores(q, k).softmax(-1) @ v)
Gated = attending(lambda q, k, v: F.scaled_dot_product_attention(q, k, v) * q.sigmoid())
Differential = attending(
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v) - 0.4 * F.scaled_dot_product_attention(k, q, v)
)
RolledKeys = attending(lambda q, k, v: F.scaled_dot_product_attention(q, k.roll(4, 2), v.roll(4, 2)))


def twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One attention that is applied to the values, and to what that gave."""
    weights = scores(q, k).softmax(-1)
    return weights @ (weights @ v)


Twice = attending(twice)


class Block(nn.Module):
    def __init__(self, attend: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(DIM), attend(), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 56), nn.GELU(), nn.Linear(56, DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class Model(nn.Module):
    """A Vision Transformer with blocks of choice; class token first, unless `arranged` puts tokens elsewhere."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, DIM))
        self.positions = nn.Parameter(torch.randn(1, 1 + ROWS * COLS, DIM))
        self.blocks = nn.ModuleList(blocks)
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        x = self.arranged(x)
        for block in self.blocks:
            x = block(x)
        return self.read(x)

    def arranged(self, x: Tensor) -> Tensor:
        return x

    def read(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x)[:, 0])  # type: ignore[no-any-return]


class MeanAddedToAll(Model):
    """Tokens exchange their mean after the last block."""

    def read(self, x: Tensor) -> Tensor:
        return super().read(self.norm(x + x.mean(1, keepdim=True)))


class OverlappingEmbedding(Model):
    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__(blocks)
        self.embed = nn.Conv2d(3, DIM, PATCH + 8, PATCH, padding=4)


class Neighbours(nn.Conv2d):
    """Patches, each with a little of those at most two rows and columns away."""

    def forward(self, image: Tensor) -> Tensor:
        x = super().forward(image)
        return x + 0.1 * F.avg_pool2d(x, 5, 1, 2)


class FarOverlappingEmbedding(Model):
    """Every patch reaches tokens of others, and no class token is there that none reaches."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__(blocks)
        self.embed = Neighbours(3, DIM, PATCH, PATCH)

    def arranged(self, x: Tensor) -> Tensor:
        return x[:, 1:]

    def read(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x).mean(1))  # type: ignore[no-any-return]


class Channels(nn.Module):
    """Attention over channels (XCiT): as many "tokens" as features of a head."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(48, 3 * 48), nn.Linear(48, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            self.qkv(x).reshape(len(x), -1, 3, 2, 24).permute(2, 0, 3, 4, 1)
        )  # [B, heads, features, tokens]
        weights = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)).softmax(-1)
        return self.proj((weights @ v).permute(0, 3, 1, 2).flatten(2))  # type: ignore[no-any-return]


class ChannelModel(nn.Module):
    """24 patches and heads of 24 features."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Conv2d(3, 48, PATCH, PATCH), nn.ModuleList(Channels() for _ in range(3))

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = x + block(x)
        return x.mean(1)


class Windows(nn.Module):
    """Attention within two windows, with one head."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch * 2, tokens // 2, 3, 1, DIM).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, DIM))  # type: ignore[no-any-return]


class WindowModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.blocks = (
            nn.Conv2d(3, DIM, PATCH, PATCH),
            nn.ModuleList(Block(Windows) for _ in range(3)),
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return x.mean(1)


def blocks(*kinds: Callable[[], nn.Module]) -> list[nn.Module]:
    """One block for each kind of attention."""
    return [Block(kind) for kind in kinds]


def ready(model: nn.Module) -> nn.Module:
    return lively(model)
