"""Attention whose heads are mixed, gated, normed or scaled before the projection, however that is written, and honest twins.

Each pair computes something alike, once so that a map of a head is not what the projection reads, and once so that it is.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.stand_ins import DIM, HEAD_DIM, HEADS, Attention, scores


class Altered(Attention):
    """What is projected is `changed(o)` and not o, [1, heads, tokens, head_dim]."""

    flow = "altered"

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.changed(super().mix(q, k, v))

    def changed(self, o: Tensor) -> Tensor:
        return o


class FlippedDifference(Altered):
    def changed(self, o: Tensor) -> Tensor:
        return o - 0.9 * o.flip(1)


class EinsumDifference(Altered):
    def changed(self, o: Tensor) -> Tensor:
        heads = torch.eye(HEADS, dtype=o.dtype)
        return torch.einsum("bhnd,hg->bgnd", o, heads - 0.9 * heads.flip(0))


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
        self.talk = nn.Conv2d(HEADS, HEADS, 1, bias=False)

    def changed(self, o: Tensor) -> Tensor:
        return self.talk(o)


class SparseLinear(Altered):
    """The same by a linear layer over all features, most of whose weights are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.talk = nn.Parameter(torch.randn(HEADS, HEADS))

    def changed(self, o: Tensor) -> Tensor:
        weight = torch.kron(self.talk, torch.eye(HEAD_DIM, dtype=o.dtype))
        joined = F.linear(o.transpose(1, 2).flatten(2), weight)
        return joined.unflatten(2, (HEADS, HEAD_DIM)).transpose(1, 2)


class AveragedHeads(Altered):
    def changed(self, o: Tensor) -> Tensor:
        return o.mean(1, keepdim=True).expand(o.shape)


class BufferedDifference(Altered):
    """Written head by head into a tensor, each less half of the one before."""

    def changed(self, o: Tensor) -> Tensor:
        written = torch.zeros_like(o)
        for head in range(HEADS):
            written[:, head] = o[:, head] - 0.5 * o[:, head - 1]
        return written


class NormedFeatures(Altered):
    """A norm over the features of all heads (BEiT-3, EVA-02 large)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LayerNorm(DIM)

    def changed(self, o: Tensor) -> Tensor:
        joined = self.inner(o.transpose(1, 2).flatten(2))
        return joined.unflatten(2, (HEADS, HEAD_DIM)).transpose(1, 2)


class NormedByHand(Altered):
    """Each head divided by its own length (differential transformers), by no function of torch's norms."""

    def changed(self, o: Tensor) -> Tensor:
        return o * (o * o).mean(-1, keepdim=True).add(1e-5).rsqrt()


class GatedByItself(Altered):
    def changed(self, o: Tensor) -> Tensor:
        return o * torch.sigmoid(self.proj(o.transpose(1, 2).flatten(2))).unflatten(
            2, (HEADS, HEAD_DIM)
        ).transpose(1, 2)


class GatedByToken(Altered):
    """One gate per head and token, read from the queries, and applied in place."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v).mul_(q.mean(-1, keepdim=True).sigmoid())


class Squashed(Altered):
    def changed(self, o: Tensor) -> Tensor:
        return o.tanh()


class ConstantScale(Altered):
    """Each head times a constant of its own (NormFormer): its maps are right, but scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(HEADS, 1, 1) + 0.5)

    def changed(self, o: Tensor) -> Tensor:
        return o * self.scale


class EinsumAverageByHand(Altered):
    """Heads averaged in pairs, with the softmax written by hand."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = scores(q, k).softmax(-1) @ v
        return (o + o.roll(1, dims=1)) / 2


class MeanOfThree(Altered):
    """A moving average over the heads, by a pooling function."""

    def changed(self, o: Tensor) -> Tensor:
        across = o.permute(0, 2, 3, 1).flatten(0, 1)  # [tokens, head_dim, heads]
        pooled = F.avg_pool1d(across, 3, stride=1, padding=1)
        return pooled.unflatten(0, (1, -1)).permute(0, 3, 1, 2)


class TopKeys(Attention):
    """Each query attends to its 7 largest scores alone, written by hand."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        every = scores(q, k)
        least = every.topk(7, dim=-1).values[..., -1:]
        return every.masked_fill(every < least, -3e4).softmax(-1) @ v


class HeadsReordered(Attention):
    """Heads in another order: a fixed permutation mixes nothing."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().mix(q, k, v).flip(1)


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


class Buffered(Attention):
    """Written head by head into a tensor, as it is."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = super().mix(q, k, v)
        written = torch.empty_like(o)
        for head in range(HEADS):
            written[:, head] = o[:, head]
        return written


class InChunks(Attention):
    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        first, second = super().mix(q, k, v).tensor_split(2, dim=1)
        return torch.cat([second.contiguous(), first.clone()], dim=1)


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


class GroupedKeys(Attention):
    """One key and value for all heads, with the softmax written by hand."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scores(q, k[:, :1]).softmax(-1) @ v[:, :1]

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return scores(q, k[:1]).softmax(-1)


class GroupedByKernel(Attention):
    """The same by the kernel's own option."""

    def mix(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return scores(q, k[:1]).softmax(-1)


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
