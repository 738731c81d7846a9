"""Vision Transformers as tutorials write them: attention by hand, five ways. None of them knows anything of vit_viz."""

from __future__ import annotations

import math

import torch
from einops import rearrange
from torch import Tensor, nn

HEADS, HEAD_DIM, DEPTH, CLASSES = 5, 8, 3, 7
DIM = HEADS * HEAD_DIM


class FusedQkv(nn.Module):
    """q, k and v from one projection, heads by reshape and permute, dropout between softmax and product."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.dropout = nn.Dropout(0.1)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * HEAD_DIM**-0.5).softmax(dim=-1)
        x = (self.dropout(attention) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        return self.proj(x)


class Fused(FusedQkv):
    """The kernel of torch instead of a softmax."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, HEAD_DIM)).permute(2, 0, 3, 1, 4)
        return self.proj(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class SeparateEinops(nn.Module):
    """Three projections without bias, einops for the heads, einsum for both products."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.to_k, self.to_v = (nn.Linear(DIM, DIM, bias=False) for _ in range(3))
        self.attend = nn.Softmax(dim=-1)
        self.to_out = nn.Sequential(nn.Linear(DIM, DIM), nn.Dropout(0.1))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            rearrange(to(x), "b n (h d) -> b h n d", h=HEADS) for to in (self.to_q, self.to_k, self.to_v)
        )
        attention = self.attend(torch.einsum("bhid,bhjd->bhij", q, k) * HEAD_DIM**-0.5)
        out = torch.einsum("bhij,bhjd->bhid", attention, v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class WrongAxis(FusedQkv):
    """The mistake in circulation: the softmax runs over the queries."""

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        attention = torch.softmax(q @ k.transpose(-2, -1) * HEAD_DIM**-0.5, dim=-2)
        return self.proj((attention @ v).transpose(1, 2).reshape(batch, tokens, dim))


class KeysFirst(FusedQkv):
    """Right, but unusual: scores are [keys, queries], so the softmax runs over the last axis but one."""

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        attention = torch.softmax(k @ q.transpose(-2, -1) * HEAD_DIM**-0.5, dim=-2)
        return self.proj((attention.transpose(-2, -1) @ v).transpose(1, 2).reshape(batch, tokens, dim))


class MultiHead(nn.Module):
    """torch's own layer with batch_first; the weights that it returns by default are thrown away."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(DIM, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.attention(x, x, x)
        return out


class Block(nn.Module):
    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = attention
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TutorialViT(nn.Module):
    """Convolution, class token, learned positions, blocks, head: for 64 x 96 pixels and patches of 16."""

    def __init__(self, attention: type[nn.Module], *, tokens: int = 25) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, kernel_size=16, stride=16)
        self.token = nn.Parameter(torch.randn(1, 1, DIM))
        self.positions = nn.Parameter(torch.randn(1, tokens, DIM))
        self.layers = nn.ModuleList(Block(attention()) for _ in range(DEPTH))
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])


class UnfoldSinusoidal(nn.Module):
    """One channel, 60 x 100 pixels, patches of 20 cut out by unfold, fixed sinusoids, no class token, mean pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(20 * 20, DIM)
        self.layers = nn.ModuleList(Block(FusedQkv()) for _ in range(DEPTH))
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, pixels: Tensor) -> Tensor:
        patches = pixels.unfold(2, 20, 20).unfold(3, 20, 20)  # [B, 1, 3, 5, 20, 20]
        x = self.embed(patches.reshape(len(pixels), 15, 400))
        x = x + sinusoids(15, DIM)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(dim=1))


def sinusoids(tokens: int, dim: int) -> Tensor:
    angles = torch.arange(tokens)[:, None] * torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(tokens, dim)
