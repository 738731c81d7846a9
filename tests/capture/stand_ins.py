"""Tiny Vision Transformers whose blocks attend in every way that a capture may misread. None of them knows anything of vit_viz.

Each attention states what it computes a second time, in double precision and by its formula (`calls`), for the oracle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

HEADS, HEAD_DIM, CLASSES = 5, 8, 7
DIM = HEADS * HEAD_DIM
SIZE, PATCH, GRID = (24, 40), 8, (3, 5)
PATCHES = GRID[0] * GRID[1]
TOKENS = PATCHES + 1
Mix = Callable[[Tensor, Tensor, Tensor], Tensor]
Weights = Callable[[Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Softmax attention by the fused kernel. Subclasses change `mix`, and `weights` where the formula differs."""

    flow = "chain"

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def operands(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(x).reshape(1, -1, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        return q, k, v

    def forward(self, x: Tensor) -> Tensor:
        out = self.mix(*self.operands(x))
        return self.proj(out.transpose(1, 2).reshape(1, -1, DIM))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return scores(q, k).softmax(-1)

    def calls(self, x: Tensor) -> list[Tensor]:
        """The attention over all tokens of this block, [heads, tokens, tokens]."""
        q, k, _ = self.operands(x)
        return [self.weights(q[0].double(), k[0].double()).float()]


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) * HEAD_DIM**-0.5


def kind(name: str, mix: Mix, *, weights: Weights | None = None, flow: str = "chain") -> type[Attention]:
    """Attention that gathers values in this way; `weights` is its formula, where that is another than softmax."""
    parts: dict[str, Any] = {"mix": lambda _, *operands: mix(*operands), "flow": flow}
    if weights is not None:
        parts["weights"] = lambda _, *operands: weights(*operands)
    return type(name, (Attention,), parts)


def plus_one(q: Tensor, k: Tensor) -> Tensor:
    """One in the denominator (quiet attention): a column of zeros, dropped after the softmax."""
    return F.pad(scores(q, k), (1, 0)).softmax(-1)[..., 1:]


def to_sigmoid(q: Tensor, k: Tensor) -> Tensor:
    return torch.sigmoid(scores(q, k) - math.log(k.shape[-2]))


def to_linear(q: Tensor, k: Tensor) -> Tensor:
    products = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-2, -1)
    return products / products.sum(-1, keepdim=True)


def by_linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.transpose(-2, -1) @ v) / (q @ k.sum(-2)[..., None])


def by_exponential(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    shares = (scores(q, k) - scores(q, k).amax(-1, keepdim=True)).exp()
    return shares / shares.sum(-1, keepdim=True) @ v


def in_chunks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries in two chunks, to save memory: no call is square."""
    return torch.cat([fused(part, k, v) for part in q.chunk(2, dim=2)], dim=2)


def sharpened(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The weights are squared and normalised again after the softmax."""
    squared = scores(q, k).softmax(-1) ** 2
    return squared / squared.sum(-1, keepdim=True) @ v


def changed_in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Small weights are set to 0 in the softmax's own memory."""
    attention = scores(q, k).softmax(-1)
    attention.mul_(attention > 0.1)
    return attention @ v


def rolled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The tokens are rolled before the attention and rolled back after it (a cyclic shift)."""
    q, k, v = (operand.roll(4, dims=2) for operand in (q, k, v))
    return fused(q, k, v).roll(-4, dims=2)


def applied_twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One softmax, two products."""
    attention = scores(q, k).softmax(-1)
    return attention @ (attention @ v)


def one_window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Windows as Swin cuts them, of which the image has exactly one."""
    return fused(*(operand.reshape(1, 1, HEADS, -1, HEAD_DIM).flatten(0, 1) for operand in (q, k, v)))


fused = F.scaled_dot_product_attention
aten = torch.ops.aten
AtenFlash = kind("AtenFlash", lambda q, k, v: aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0])
AtenAttention = kind("AtenAttention", lambda q, k, v: aten.scaled_dot_product_attention(q, k, v))
AtenSoftmax = kind("AtenSoftmax", lambda q, k, v: aten._softmax(scores(q, k), -1, False) @ v)
ManualExponential = kind("ManualExponential", by_exponential)
SigmoidAttention = kind("SigmoidAttention", lambda q, k, v: to_sigmoid(q, k) @ v, weights=to_sigmoid)
LinearAttention = kind("LinearAttention", by_linear, weights=to_linear)
ChunkedQueries = kind("ChunkedQueries", in_chunks)
SoftmaxPlusOne = kind("SoftmaxPlusOne", lambda q, k, v: plus_one(q, k) @ v, weights=plus_one)
OneWindow = kind("OneWindow", one_window)
SharedKeys = kind(  # one key and value head for all, by broadcasting
    "SharedKeys",
    lambda q, k, v: fused(q, k[:, :1], v[:, :1]),
    weights=lambda q, k: scores(q, k[:1]).softmax(-1),
)
Rolled = kind("Rolled", rolled)
TurnedKeys = kind(  # in another order than the queries: the same output, but other columns
    "TurnedKeys", lambda q, k, v: fused(q, k.roll(4, dims=2), v.roll(4, dims=2))
)
Sharpened = kind("Sharpened", sharpened, flow="altered")
ChangedInPlace = kind("ChangedInPlace", changed_in_place, flow="altered")
AppliedTwice = kind("AppliedTwice", applied_twice, flow="altered")
ValuesAdded = kind("ValuesAdded", lambda q, k, v: fused(q, k, v) + v, flow="altered")
MeanRemoved = kind("MeanRemoved", lambda q, k, v: fused(q, k, v) - v.mean(2, keepdim=True), flow="altered")


class Core(nn.Module):
    """An attention that torch.jit.script understands."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).reshape(1, -1, 3, 5, 8).permute(2, 0, 3, 1, 4).unbind(0)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(1, -1, 40))


class Scripted(nn.Module):
    """Compiled by torch.jit.script, so that no Python function is called in it."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.jit is deprecated, and in use
            self.core = torch.jit.script(Core())

    def forward(self, x: Tensor) -> Tensor:
        return self.core(x)

    def calls(self, x: Tensor) -> list[Tensor]:
        q, k, _ = self.core.qkv(x).reshape(-1, 3, HEADS, HEAD_DIM).permute(1, 2, 0, 3)
        return [scores(q.double(), k.double()).softmax(-1).float()]


class HeadByHead(Attention):
    """One call per head."""

    flow = "other"

    def calls(self, x: Tensor) -> list[Tensor]:
        (attention,) = super().calls(x)
        return list(attention.split(1))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        one_each = zip(*(operand.split(1, dim=1) for operand in (q, k, v)), strict=True)
        return torch.cat([fused(*operands) for operands in one_each], dim=1)


class KeyPrefix(Attention):
    """Two learned keys and values before those of the tokens (prefix tuning): the matrix is not square."""

    flow = "altered"

    def __init__(self) -> None:
        super().__init__()
        self.extra = nn.Parameter(torch.randn(2, 1, HEADS, 2, HEAD_DIM))

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = torch.cat([self.extra[0], k], dim=2), torch.cat([self.extra[1], v], dim=2)
        return F.scaled_dot_product_attention(q, k, v)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return scores(q, torch.cat([self.extra[0, 0].double(), k], dim=1)).softmax(-1)[..., 2:]


class Gated(Attention):
    """The output of the attention times a gate per token and channel."""

    flow = "altered"

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        out = self.mix(*self.operands(x)).transpose(1, 2).reshape(1, -1, DIM)
        return self.proj(out * self.gate(x).sigmoid())


class TalkingAfter(Attention):
    """Heads mixed after the softmax (talking heads)."""

    flow = "altered"

    def __init__(self) -> None:
        super().__init__()
        self.talk = nn.Linear(HEADS, HEADS)

    def mixed(self, numbers: Tensor) -> Tensor:
        return self.talk(numbers.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.mixed(scores(q, k).softmax(-1)) @ v


class TalkingBefore(TalkingAfter):
    """Heads mixed before the softmax: still one attention."""

    flow = "chain"

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.mixed(scores(q, k)).softmax(-1) @ v

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        mixed = torch.einsum("hqk,gh->gqk", scores(q, k), self.talk.weight.double())
        return (mixed + self.talk.bias.double()[:, None, None]).softmax(-1)


class WithConvolution(Attention):
    """The output of the attention plus a convolution of the values over neighbouring tokens (LePE)."""

    flow = "altered"

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(DIM, DIM, 3, padding=1, groups=DIM)

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        local = self.conv(v.transpose(2, 3).reshape(1, DIM, -1))
        return super().mix(q, k, v) + local.reshape(1, HEADS, HEAD_DIM, -1).transpose(2, 3)


class Difference(Attention):
    """A first attention less half a second one, from further queries and keys."""

    flow = "other"

    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Linear(DIM, 3 * DIM)

    def pairs(self, x: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        first = self.operands(x)
        q, k, _ = self.second(x).reshape(1, -1, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        return [first, (q, k, first[2])]

    def forward(self, x: Tensor) -> Tensor:
        first, second = (self.mix(*pair) for pair in self.pairs(x))
        return self.proj((first - 0.5 * second).transpose(1, 2).reshape(1, -1, DIM))

    def calls(self, x: Tensor) -> list[Tensor]:
        return [self.weights(q[0].double(), k[0].double()).float() for q, k, _ in self.pairs(x)]


class Mixture(Difference):
    """Half of each of two attentions, chosen per token by a gate."""

    def forward(self, x: Tensor) -> Tensor:
        first, second = (self.mix(*pair).transpose(1, 2).reshape(1, -1, DIM) for pair in self.pairs(x))
        gate = x.mean(-1, keepdim=True).sigmoid()
        return self.proj(gate * first + (1 - gate) * second)


class Twice(Attention):
    """The attention is applied to its own output once more."""

    flow = "altered"

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().mix(q, k, super().mix(q, k, v))

    def calls(self, x: Tensor) -> list[Tensor]:
        return super().calls(x) * 2


class WindowsAsHeads(Attention):
    """One head of the full width in three windows of 5 patches: a batch of windows that looks like heads. Without a class token."""

    flow = "other"

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).reshape(GRID[0], GRID[1], 3, DIM).permute(2, 0, 1, 3)[:, :, None]
        return self.proj(F.scaled_dot_product_attention(q, k, v).reshape(1, -1, DIM))

    def calls(self, _: Tensor) -> list[Tensor]:
        return []


class ChannelAttention(Attention):
    """Attention between the channels of each head (cross-covariance), which the token count happens to exceed."""

    flow = "other"

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (operand.transpose(2, 3).contiguous() for operand in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(2, 3)

    def calls(self, _: Tensor) -> list[Tensor]:
        return []


class MultiHead(nn.Module):
    """torch's own layer."""

    flow = "chain"

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(DIM, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]

    def calls(self, x: Tensor) -> list[Tensor]:
        return [self.attention(x, x, x, average_attn_weights=False)[1][0]]


class TokenMixer(nn.Module):
    """No attention: a linear layer over the tokens (MLP-Mixer)."""

    flow = "other"

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(TOKENS, TOKENS)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x.transpose(1, 2)).transpose(1, 2)

    def calls(self, _: Tensor) -> list[Tensor]:
        return []


class Mlp(nn.Sequential):
    flow = "chain"

    def __init__(self) -> None:
        super().__init__(nn.Linear(DIM, 56), nn.GELU(), nn.Linear(56, DIM))


class ConvolutionMlp(nn.Module):
    """A convolution over the grid between the two layers (CeiT, Mix-FFN); the class token goes past it."""

    flow = "altered"

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.conv = nn.Linear(DIM, 56), nn.Linear(56, DIM), self.convolution()

    def convolution(self) -> nn.Module:
        return nn.Conv2d(56, 56, 3, padding=1, groups=56)

    def forward(self, x: Tensor) -> Tensor:
        x = self.inner(x)
        return self.outer(
            torch.cat([x[:, :1], self.convolved(x[:, 1:].transpose(1, 2)).transpose(1, 2)], dim=1)
        )

    def convolved(self, patches: Tensor) -> Tensor:
        return self.conv(patches.reshape(1, 56, *GRID)).flatten(2)


class DilatedMlp(ConvolutionMlp):
    """A convolution between a token and the second before and after it."""

    def convolution(self) -> nn.Module:
        return nn.Conv1d(56, 56, 3, padding=2, dilation=2, groups=56)

    def convolved(self, patches: Tensor) -> Tensor:
        return self.conv(patches)


class SqueezeMlp(Mlp):
    """All channels scaled by what the mean of the tokens says (squeeze and excitation)."""

    flow = "altered"

    def forward(self, x: Tensor) -> Tensor:
        x = super().forward(x)
        return x * x.mean(1, keepdim=True).sigmoid()


class RoutedMlp(nn.Module):
    """A mixture of as many experts as there are tokens: its router's softmax is square, and no attention."""

    flow = "chain"

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(DIM, TOKENS), nn.Parameter(torch.randn(TOKENS, DIM))

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.router(x), dim=-1) @ self.experts


class Block(nn.Module):
    def __init__(self, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention, self.mlp = attention, mlp

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class StandIn(nn.Module):
    """Patches, class token, positions, blocks, head. Subclasses change one step of the forward pass.

    Args:
        attentions: of each block, in order.
        order: which patch (row by row) each patch token is; None keeps the rows.
        class_token: where it stands, or "none".
    """

    flow = "chain"

    def __init__(
        self,
        attentions: Sequence[Callable[[], nn.Module]],
        *,
        mlp: Callable[[], nn.Module] = Mlp,
        order: Tensor | None = None,
        class_token: str = "first",
    ) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, DIM)) if class_token != "none" else None
        self.class_token_last = class_token == "last"
        self.positions = nn.Parameter(torch.randn(1, PATCHES + (class_token != "none"), DIM))
        self.order = torch.arange(PATCHES) if order is None else order
        self.blocks = nn.ModuleList(Block(attention(), mlp()) for attention in attentions)
        self.head = nn.Linear(DIM, CLASSES)

    def embedded(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)[:, self.order]
        if self.cls_token is not None:
            x = torch.cat([x, self.cls_token] if self.class_token_last else [self.cls_token, x], dim=1)
        return x + self.positions

    def through(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x

    def read(self, x: Tensor) -> Tensor:
        if self.cls_token is None:
            return self.head(x.mean(1))
        return self.head(x[:, -1 if self.class_token_last else 0])

    def forward(self, pixels: Tensor) -> Tensor:
        return self.read(self.through(self.embedded(pixels)))

    def places(self) -> list[Tensor]:
        """Which token each patch is, row by row, [patches], for all blocks or block by block: by construction."""
        shift = int(self.cls_token is not None and not self.class_token_last)
        return [self.order.argsort() + shift]

    @property
    def class_place(self) -> int | None:
        if self.cls_token is None:
            return None
        return PATCHES if self.class_token_last else 0


class Checkpointed(StandIn):
    """Activation checkpointing around each block."""

    def through(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


class Shared(StandIn):
    """One block that runs three times."""

    def through(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.blocks[0](x)
        return x


class Attributes(StandIn):
    """Blocks as attributes, in no list."""

    def __init__(self) -> None:
        super().__init__([])
        self.block1, self.block2, self.block3 = (Block(Attention(), Mlp()) for _ in range(3))

    def through(self, x: Tensor) -> Tensor:
        return self.block3(self.block2(self.block1(x)))


class TwoPasses(StandIn):
    """The image and its mirror image through the same blocks, averaged (test-time augmentation)."""

    flow = "other"

    def forward(self, pixels: Tensor) -> Tensor:
        return (super().forward(pixels) + super().forward(pixels.flip(-1))) / 2

    def places(self) -> list[Tensor]:
        (straight,) = super().places()
        mirrored = straight.reshape(GRID).flip(1).flatten()
        return [*[straight] * len(self.blocks), mirrored]


class ShuffledBetween(StandIn):
    """The patches change their places after the first block, for good."""

    flow = "other"

    def through(self, x: Tensor) -> Tensor:
        x = self.blocks[0](x)
        x = torch.cat([x[:, :1], x[:, 1:][:, self.turned()]], dim=1)
        for block in self.blocks[1:]:
            x = block(x)
        return x

    @staticmethod
    def turned() -> Tensor:
        return torch.randperm(PATCHES, generator=torch.Generator().manual_seed(5))

    def places(self) -> list[Tensor]:
        later = self.turned().argsort() + 1
        return [*super().places(), *[later] * (len(self.blocks) - 1)]


class MirroredBetween(ShuffledBetween):
    """The rows of patches are mirrored after the first block, for good."""

    @staticmethod
    def turned() -> Tensor:
        return torch.arange(PATCHES).reshape(GRID).flip(1).flatten()


class SwappedBetween(ShuffledBetween):
    """Two patches change places after the first block, for good."""

    @staticmethod
    def turned() -> Tensor:
        order = torch.arange(PATCHES)
        order[[4, 10]] = order[[10, 4]]
        return order


class RandomShuffle(StandIn):
    """The patches are shuffled anew in each pass, as ViT-MAE does."""

    def embedded(self, pixels: Tensor) -> Tensor:
        x = super().embedded(pixels)
        return torch.cat([x[:, :1], x[:, 1:][:, torch.rand(PATCHES).argsort()]], dim=1)

    def places(self) -> list[Tensor]:
        return []


class DropsFirst(StandIn):
    """Only the 8 patches of the largest norm enter the blocks."""

    def embedded(self, pixels: Tensor) -> Tensor:
        x = super().embedded(pixels)
        kept = x[0, 1:].norm(dim=1).argsort(descending=True)[:8].sort().values
        return torch.cat([x[:, :1], x[:, 1:][:, kept]], dim=1)

    def places(self) -> list[Tensor]:
        return []


class MergesLater(StandIn):
    """Neighbouring patches are merged in pairs after the first block (token merging)."""

    flow = "other"

    def through(self, x: Tensor) -> Tensor:
        x = self.blocks[0](x)
        x = torch.cat([x[:, :1], (x[:, 1:-1:2] + x[:, 2::2]) / 2], dim=1)
        for block in self.blocks[1:]:
            x = block(x)
        return x


class Cross(nn.Module):
    """Attention of the tokens to a memory of as many tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.proj = nn.Linear(DIM, DIM), nn.Linear(DIM, 2 * DIM), nn.Linear(DIM, DIM)

    def operands(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.q(x).reshape(1, -1, HEADS, HEAD_DIM).transpose(1, 2)
        k, v = self.kv(memory).reshape(1, -1, 2, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        return q, k, v

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(*self.operands(x, memory))
        return self.proj(out.transpose(1, 2).reshape(1, -1, DIM))

    def calls(self, x: Tensor, memory: Tensor) -> list[Tensor]:
        q, k, _ = self.operands(x, memory)
        return [scores(q[0].double(), k[0].double()).softmax(-1).float()]


class Decoder(StandIn):
    """Blocks of self-attention, then cross-attention to what the first block was given: as many keys as queries."""

    flow = "other"

    def __init__(self) -> None:
        super().__init__([Attention] * 3)
        self.cross = nn.ModuleList(Cross() for _ in range(3))

    def through(self, x: Tensor) -> Tensor:
        memory = x
        for block, cross in zip(self.blocks, self.cross, strict=True):
            x = block(x)
            x = x + cross(x, memory)
        return x


class EncoderDecoder(StandIn):
    """An encoder over the patches and a decoder with positions of its own, both over all tokens."""

    flow = "other"

    def __init__(self) -> None:
        super().__init__([Attention] * 2)
        self.decoder = nn.ModuleList(Block(Attention(), Mlp()) for _ in range(2))
        self.second_positions = nn.Parameter(torch.randn(1, TOKENS, DIM))
        self.bridge = nn.Linear(DIM, DIM)

    def through(self, x: Tensor) -> Tensor:
        x = self.bridge(super().through(x)) + self.second_positions
        for block in self.decoder:
            x = block(x)
        return x


class Parallel(StandIn):
    """Two attentions side by side in each block, their outputs added."""

    flow = "other"

    def __init__(self) -> None:
        super().__init__([Attention] * 2)
        self.beside = nn.ModuleList(Attention() for _ in range(2))

    def through(self, x: Tensor) -> Tensor:
        for block, beside in zip(self.blocks, self.beside, strict=True):
            x = block(x) + beside(x)
        return x


class InSequence(StandIn):
    """Two attentions one after the other in each block."""

    flow = "other"

    def __init__(self) -> None:
        super().__init__([Attention] * 2)
        self.second = nn.ModuleList(Attention() for _ in range(2))

    def through(self, x: Tensor) -> Tensor:
        for block, second in zip(self.blocks, self.second, strict=True):
            x = block(x)
            x = x + second(x)
        return x


class ClassApart(StandIn):
    """Patches attend to patches; the class token attends to them in a call of its own, in each block."""

    flow = "altered"

    def __init__(self) -> None:
        super().__init__([Attention] * 3)
        self.reading = nn.ModuleList(Cross() for _ in range(3))
        for cross in self.reading:
            cross.calls = lambda *_: []  # one query is no attention between tokens

    def through(self, x: Tensor) -> Tensor:
        token, patches = x[:, :1], x[:, 1:]
        for block, reading in zip(self.blocks, self.reading, strict=True):
            patches = block(patches)
            token = token + reading(token, patches)
        return torch.cat([token, patches], dim=1)

    def places(self) -> list[Tensor]:
        return [torch.arange(PATCHES)]

    @property
    def class_place(self) -> int | None:
        return None


class Residual(nn.Module):
    """What many tutorials wrap around attention and MLP alike."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(DIM), inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(self.norm(x))


class Flat(StandIn):
    """Attention and MLP in turn in one nn.Sequential, both in the same wrapper."""

    def __init__(self, *, depth: int = 3) -> None:
        super().__init__([])
        parts = [Residual(part()) for _ in range(depth) for part in (Attention, Mlp)]
        self.parts = nn.Sequential(*parts)

    def through(self, x: Tensor) -> Tensor:
        return self.parts(x)


class Pairs(StandIn):
    """A list of pairs of attention and MLP, both in the same wrapper."""

    def __init__(self, *, depth: int = 3) -> None:
        super().__init__([])
        self.layers = nn.ModuleList(
            nn.ModuleList([Residual(Attention()), Residual(Mlp())]) for _ in range(depth)
        )

    def through(self, x: Tensor) -> Tensor:
        for attention, mlp in self.layers:
            x = mlp(attention(x))
        return x


class Counting(StandIn):
    """A buffer that counts the passes, also in eval mode."""

    def __init__(self) -> None:
        super().__init__([Attention] * 3)
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, pixels: Tensor) -> Tensor:
        self.passes += 1
        return super().forward(pixels)


class EncoderViT(nn.Module):
    """torch's nn.TransformerEncoder over the patches, without a class token."""

    def __init__(self, *, batch_first: bool = True, norm_first: bool = False) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH)
        layer = nn.TransformerEncoderLayer(
            DIM, HEADS, 56, activation="gelu", batch_first=batch_first, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2)
        x = self.encoder(x.transpose(1, 2) if self.batch_first else x.permute(2, 0, 1))
        return self.head(x.mean(1 if self.batch_first else 0))
