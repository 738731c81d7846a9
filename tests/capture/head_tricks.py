"""Attention whose heads are mixed, gated, normed or scaled before the projection, however that is written, and honest twins.

Each pair computes something alike, once so that a map of a head is not what the projection reads, and once so that it is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.stand_ins import DIM, HEAD_DIM, HEADS, Attention, fused, kind, scores


def altered(name: str, changed: Callable[[Tensor], Tensor]) -> type[Attention]:
    """Attention of which `changed(o)` is projected and not o, [1, heads, tokens, head_dim]."""
    return kind(name, lambda q, k, v: changed(fused(q, k, v)), flow="altered")


class Altered(Attention):
    """What is projected is `changed(o)`, with weights of its own."""

    flow = "altered"

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.changed(super().mix(q, k, v))


def in_pairs(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Heads averaged in pairs, with the softmax written by hand."""
    o = scores(q, k).softmax(-1) @ v
    return (o + o.roll(1, dims=1)) / 2


def by_einsum(o: Tensor) -> Tensor:
    heads = torch.eye(HEADS, dtype=o.dtype)
    return torch.einsum("bhnd,hg->bgnd", o, heads - 0.9 * heads.flip(0))


def buffered_difference(o: Tensor) -> Tensor:
    """Written head by head into a tensor, each less half of the one before."""
    written = torch.zeros_like(o)
    for head in range(HEADS):
        written[:, head] = o[:, head] - 0.5 * o[:, head - 1]
    return written


def moving_average(o: Tensor) -> Tensor:
    """Over the heads, by a pooling function."""
    across = o.permute(0, 2, 3, 1).flatten(0, 1)  # [tokens, head_dim, heads]
    pooled = F.avg_pool1d(across, 3, stride=1, padding=1)
    return pooled.unflatten(0, (1, -1)).permute(0, 3, 1, 2)


def buffered(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Written head by head into a tensor, as it is."""
    o = fused(q, k, v)
    written = torch.empty_like(o)
    for head in range(HEADS):
        written[:, head] = o[:, head]
    return written


def in_chunks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    first, second = fused(q, k, v).tensor_split(2, dim=1)
    return torch.cat([second.contiguous(), first.clone()], dim=1)


def of_top_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each query attends to its 7 largest scores alone, written by hand."""
    every = scores(q, k)
    least = every.topk(7, dim=-1).values[..., -1:]
    return every.masked_fill(every < least, -3e4).softmax(-1) @ v


def to_one_key(q: Tensor, k: Tensor) -> Tensor:
    return scores(q, k[:1]).softmax(-1)


FlippedDifference = altered("FlippedDifference", lambda o: o - 0.9 * o.flip(1))
EinsumDifference = altered("EinsumDifference", by_einsum)
AveragedHeads = altered("AveragedHeads", lambda o: o.mean(1, keepdim=True).expand(o.shape))
BufferedDifference = altered("BufferedDifference", buffered_difference)
EinsumAverageByHand = kind("EinsumAverageByHand", in_pairs, flow="altered")
MeanOfThree = altered("MeanOfThree", moving_average)
NormedByHand = altered(  # each head divided by its own length (differential transformers)
    "NormedByHand", lambda o: o * (o * o).mean(-1, keepdim=True).add(1e-5).rsqrt()
)
GatedByToken = kind(  # one gate per head and token, read from the queries, and applied in place
    "GatedByToken", lambda q, k, v: fused(q, k, v).mul_(q.mean(-1, keepdim=True).sigmoid()), flow="altered"
)
Squashed = altered("Squashed", torch.tanh)
TopKeys = kind("TopKeys", of_top_keys)
HeadsReordered = kind("HeadsReordered", lambda q, k, v: fused(q, k, v).flip(1))
Buffered = kind("Buffered", buffered)
InChunks = kind("InChunks", in_chunks)
GroupedKeys = kind(  # one key and value for all heads, with the softmax written by hand
    "GroupedKeys", lambda q, k, v: scores(q, k[:, :1]).softmax(-1) @ v[:, :1], weights=to_one_key
)
GroupedByKernel = kind(  # the same by the kernel's own option
    "GroupedByKernel", lambda q, k, v: fused(q, k[:, :1], v[:, :1], enable_gqa=True), weights=to_one_key
)


class EinsumLinear(Altered):
    """Talking heads on the output, by a linear layer over the heads."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = nn.Linear(HEADS, HEADS, bias=False)

    def changed(self, o: Tensor) -> Tensor:
        return self.talk(o.transpose(1, 3)).transpose(1, 3)


class ConvolvedHeads(Altered):
    """The same by a convolution whose channels are the heads."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = nn.Conv2d(HEADS, HEADS, 1, bias=False)


class SparseLinear(Altered):
    """The same by a linear layer over all features, most of whose weights are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = nn.Parameter(torch.randn(HEADS, HEADS))

    def changed(self, o: Tensor) -> Tensor:
        weight = torch.kron(self.talk, torch.eye(HEAD_DIM, dtype=o.dtype))
        joined = F.linear(o.transpose(1, 2).flatten(2), weight)
        return joined.unflatten(2, (HEADS, HEAD_DIM)).transpose(1, 2)


class NormedFeatures(Altered):
    """A norm over the features of all heads (BEiT-3, EVA-02 large)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LayerNorm(DIM)

    def changed(self, o: Tensor) -> Tensor:
        joined = self.inner(o.transpose(1, 2).flatten(2))
        return joined.unflatten(2, (HEADS, HEAD_DIM)).transpose(1, 2)


class GatedByItself(Altered):
    def changed(self, o: Tensor) -> Tensor:
        return o * torch.sigmoid(self.proj(o.transpose(1, 2).flatten(2))).unflatten(
            2, (HEADS, HEAD_DIM)
        ).transpose(1, 2)


class ConstantScale(Altered):
    """Each head times a constant of its own (NormFormer): its maps are right, but scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(HEADS, 1, 1) + 0.5)

    def changed(self, o: Tensor) -> Tensor:
        return o * self.scale


class ProjectedByEinsum(Attention):
    """The projection as an einsum over heads and features, as in JAX."""

    def forward(self, x: Tensor) -> Tensor:
        weight = self.proj.weight.unflatten(1, (HEADS, HEAD_DIM))
        return torch.einsum("bhnd,mhd->bnm", self.mix(*self.operands(x)), weight) + self.proj.bias


class ProjectedByConvolution(Attention):
    def forward(self, x: Tensor) -> Tensor:
        o = self.mix(*self.operands(x)).transpose(2, 3).flatten(1, 2)
        return F.conv1d(o, self.proj.weight[..., None], self.proj.bias).transpose(1, 2)


class ProjectedHeadByHead(Attention):
    """The projection as a sum over heads, each with its own part of the weights."""

    def forward(self, x: Tensor) -> Tensor:
        o = self.mix(*self.operands(x))
        parts = zip(o.unbind(1), self.proj.weight.chunk(HEADS, dim=1), strict=True)
        return sum((head @ weight.T for head, weight in parts), self.proj.bias)


class ProjectedAsMatrix(Attention):
    """By addmm over the rows of all tokens."""

    def forward(self, x: Tensor) -> Tensor:
        o = self.mix(*self.operands(x)).permute(2, 0, 1, 3).reshape(-1, DIM)
        return torch.addmm(self.proj.bias, o, self.proj.weight.T).view(1, -1, DIM)


class LatentValues(Attention):
    """Features of each head are mixed among themselves before the projection (multi-head latent attention)."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.randn(HEADS, HEAD_DIM, HEAD_DIM) * HEAD_DIM**-0.5)

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().mix(q, k, v) @ self.up


class ZeroProjection(Attention):
    """A projection that is still all zeros, as some training begins."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.proj.weight)


class PrunedProjection(Attention):
    """A projection half of whose weights are zero."""

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.rand(self.proj.weight.shape, generator=torch.Generator().manual_seed(4)) < 0.5
        o = self.mix(*self.operands(x)).transpose(1, 2).flatten(2)
        return F.linear(o, self.proj.weight * kept, self.proj.bias)


class WithoutProjection(Attention):
    """The heads side by side are the block's output."""

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(*self.operands(x)).transpose(1, 2).flatten(2)


class NormedAfterwards(Attention):
    """A norm after the projection (Swin v2), which mixes what was projected."""

    def __init__(self) -> None:
        super().__init__()
        self.outer = nn.LayerNorm(DIM)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(super().forward(x))


TRICKS: dict[type[Attention], str] = {
    FlippedDifference: "a mixture of several heads",
    EinsumDifference: "a mixture of several heads",
    EinsumLinear: "a mixture of several heads",
    ConvolvedHeads: "a mixture of several heads",
    SparseLinear: "a mixture of several heads",
    AveragedHeads: "a mixture of several heads",
    BufferedDifference: "a mixture of several heads",
    EinsumAverageByHand: "a mixture of several heads",
    MeanOfThree: "a mixture of several heads",
    NormedFeatures: "normalised or gated by what its heads hold",
    NormedByHand: "normalised or gated by what its heads hold",
    GatedByItself: "gated, by other factors from token to token",
    Squashed: "normalised or gated by what its heads hold",
    GatedByToken: "gated, by other factors from token to token",
    ConstantScale: "multiplied by constants: its maps are right, but scaled",
}
"""Each with what is said of it."""

TWINS: tuple[type[Attention], ...] = (
    Attention, HeadsReordered, ProjectedByEinsum, ProjectedByConvolution, ProjectedHeadByHead, ProjectedAsMatrix, Buffered,
    InChunks, LatentValues, ZeroProjection, PrunedProjection, WithoutProjection, NormedAfterwards, GroupedKeys, GroupedByKernel,
)  # fmt: skip
"""Honest ones."""
