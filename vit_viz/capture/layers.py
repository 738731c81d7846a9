"""The attention of one layer: its operands, from which rows, columns and tiles are formed on demand.

With scores s = q k^T * scale + bias, a row is softmax(s_i). The N x N matrix is formed block by block and never kept, except
where the model wrote its attention out and only the matrix itself could be captured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass

from vit_viz.lazy import Tensor, torch

_AUTOCAST = ("cpu", "cuda")

TILE_BYTES = {"cpu": 4 * 2**20}
"""Default size of a tile: about what a core's cache holds."""
TILE_BYTES_ON_A_GPU = 128 * 2**20
"""There a tile costs a launch for each of its operations, whatever its size."""
STACK_BYTES = {"cpu": 0}
"""Attention of layers that are taken side by side; on a GPU as much as a tile. A CPU takes each while its q and k are warm."""


def stack_bytes(device: torch.device) -> int:
    """How much attention of several layers is computed on side by side on a device."""
    return STACK_BYTES.get(device.type, TILE_BYTES_ON_A_GPU)


@dataclass(frozen=True, eq=False)
class LayerAttention:
    """What determines the attention of one layer; all in fp32.

    Args:
        q, k: [heads, tokens, head_dim], the operands of the dot product; None where only the matrix is known.
        scale: factor of the dot products.
        bias: added to the scores, [1 | heads, 1 | queries, keys]; -inf forbids a key. None adds nothing.
        weights: the attention itself, [heads, queries, keys], where it was written out.
        v: values, [heads, tokens, head_dim].
        output_grad: gradient of the target with respect to attention @ v, same shape as v.
        weights_grad: gradient of the target with respect to `weights`.
        value_norms: ||v_j W_O,h||, [heads, tokens]: how long a value is after the output projection; NaN where no projection was
            found, None where nobody asked.
        lse: log sum exp of each row's scores, [heads, tokens], where the kernel returned it.
        projected: beside v, what makes lengths of a head's vectors behind projection and LayerScale, see `projected`.
        is_mean: beside it, 1 for each head that an edit holds at its mean over the queries, else 0: [heads, 1]; None: for none.
    """

    q: Tensor | None = None
    k: Tensor | None = None
    scale: float = 1.0
    bias: Tensor | None = None
    weights: Tensor | None = None
    v: Tensor | None = None
    output_grad: Tensor | None = None
    weights_grad: Tensor | None = None
    value_norms: Tensor | None = None
    lse: Tensor | None = None
    projected: Tensor | None = None
    is_mean: Tensor | None = None

    @property
    def is_plain(self) -> bool:
        """Whether q, k and the scale determine the attention."""
        return self.weights is None and self.bias is None

    def fits_beside(self, other: LayerAttention) -> bool:
        """Whether the heads of both can be one row of heads, see `side_by_side`."""
        if not (self.is_plain and other.is_plain) or self.scale != other.scale or self.shape != other.shape:
            return False
        return (self.lse is None) == (other.lse is None)

    @property
    def visible(self) -> Tensor | None:
        """Which keys each query may look at, Boolean [1 | heads, 1 | queries, keys]; None for all."""
        if self.weights is not None:
            # a weight may also be too small to be told from 0
            return (self.weights != 0).any(0, keepdim=True)
        return None if self.bias is None else ~self.bias.isneginf()

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        if self.weights is not None:
            heads, queries, keys = self.weights.shape
        else:
            q, k = self._operands
            (heads, queries, _), keys = q.shape, k.shape[1]
        return heads, queries, keys

    @property
    def device(self) -> torch.device:
        """Where the operands are."""
        tensor = self.weights if self.q is None else self.q
        assert tensor is not None
        return tensor.device

    def scores(self, heads: list[int] | None, queries: Index) -> Tensor:
        """Before the softmax, [heads, queries, keys]."""
        q, k = (_take(part, heads) for part in self._operands)
        q = _take(q, queries, axis=1)
        if self.bias is None:
            return torch.baddbmm(q.new_empty(()), q, k.transpose(1, 2), beta=0, alpha=self.scale)
        bias = self.bias if self.bias.shape[0] == 1 else _take(self.bias, heads)
        bias = bias if bias.shape[1] == 1 else _take(bias, queries, axis=1)
        return torch.baddbmm(bias.to(q.dtype), q, k.transpose(1, 2), alpha=self.scale)

    def rows(self, heads: list[int] | None, queries: Index) -> Tensor:
        """Attention of some queries, [heads, queries, keys], in single precision: for statistics."""
        if self.weights is not None:
            return _take(_take(self.weights, heads), queries, axis=1).clone()
        with exact():
            scores = self.scores(heads, queries)
            return self._normalised(torch.softmax(scores, dim=-1, out=scores))

    def log_rows(self, queries: slice) -> Tensor | None:
        """Logarithm of the attention of some queries, [heads, queries, keys]: for statistics that need both.

        scale q k^T - lse is one product, [scale q, -lse] [k, 1]^T: what is large is written once and read no second time.
        None where the rows' normalisers are not at hand: then the attention itself comes cheaper.
        """
        if not self.is_plain or self.lse is None:
            return None
        q, k = self._operands
        with exact():
            left = torch.cat((q[:, queries] * self.scale, -self.lse[:, queries, None]), dim=-1)
            right = torch.nn.functional.pad(k, (0, 1), value=1.0)
            return torch.bmm(left, right.transpose(1, 2))

    def exact_rows(self, heads: list[int] | None, queries: list[int] | None) -> Tensor:
        """Attention of some queries, [heads, queries, keys]: fp32, from scores in double precision.

        Scores of trained models reach 20 and more, where the rounding of fp32 alone moves a weight by more than a millionth.
        """
        if self.weights is not None:
            return self.rows(heads, queries)
        with exact():
            wide = self._in_double(heads)
            _, count, keys = self.shape
            chosen = list(range(count)) if queries is None else queries
            attention = torch.empty(wide.shape[0], len(chosen), keys, device=wide.device)
            for block in _blocks(len(chosen), self._tile_bytes // (8 * keys * max(1, wide.shape[0]))):
                scores = wide.scores(None, chosen[block] if queries is not None else block)
                attention[:, block] = self._normalised(torch.softmax(scores, dim=-1))
            return attention

    def columns(self, heads: list[int] | None, keys: list[int], lse: Tensor) -> Tensor:
        """Attention that some keys receive, [heads, tokens, keys]; lse: [heads, tokens]."""
        if self.weights is not None:
            return _take(_take(self.weights, heads), keys, axis=2).clone()
        with exact():
            wide = self._in_double(heads, keys)
            scores = wide.scores(None, None)
            attention = scores.sub_(_take(lse, heads)[:, :, None]).exp_().float()
            return attention if self.is_plain else attention.nan_to_num_(nan=0.0)

    def normaliser(self) -> Tensor:
        """log sum exp of each row's scores, [heads, tokens]; 0 where the attention was written out, as its rows are normalised."""
        heads, queries, _ = self.shape
        if self.weights is not None:
            return self.weights.new_zeros(heads, queries)
        if self.lse is not None:
            return self.lse
        with exact():
            parts = [torch.logsumexp(self.scores(None, rows), dim=-1) for rows in self.blocks(None)]
            return torch.cat(parts, dim=1)

    def gradient(self, heads: list[int] | None, queries: Index) -> Tensor | None:
        """Gradient of the target with respect to the attention, [heads, queries, keys]; None where none was kept."""
        if self.weights_grad is not None:
            return _take(_take(self.weights_grad, heads), queries, axis=1).clone()
        if self.output_grad is None or self.v is None:
            return None
        with exact():
            grad = _take(_take(self.output_grad, heads), queries, axis=1)
            return torch.bmm(grad, _take(self.v, heads).transpose(1, 2))

    def blocks(self, block: int | None, num_heads: int | None = None) -> Iterator[slice]:
        """Consecutive slices of queries; by default of as many as make a tile."""
        heads, queries, keys = self.shape
        yield from _blocks(queries, block or self._tile_bytes // (4 * keys * (num_heads or heads)))

    @property
    def _operands(self) -> tuple[Tensor, Tensor]:
        assert self.q is not None
        assert self.k is not None
        return self.q, self.k

    @property
    def _tile_bytes(self) -> int:
        return TILE_BYTES.get(self.device.type, TILE_BYTES_ON_A_GPU)

    def _in_double(self, heads: list[int] | None, keys: list[int] | None = None) -> LayerAttention:
        """These heads and keys with operands in double precision, where the device supports it."""
        dtype = torch.float32 if self.device.type == "mps" else torch.float64
        bias = self.bias
        if bias is not None:
            bias = _take(bias if bias.shape[0] == 1 else _take(bias, heads), keys, axis=2)
        q, k = (_take(part, heads) for part in self._operands)
        return LayerAttention(q.to(dtype), _take(k, keys, axis=1).to(dtype), self.scale, bias)

    def _normalised(self, attention: Tensor) -> Tensor:
        """Attention with zeros instead of NaN where a query sees no key."""
        return attention if self.is_plain else attention.nan_to_num_(nan=0.0)


def side_by_side(layers: Sequence[LayerAttention]) -> LayerAttention:
    """Plain layers as one with the heads of all, one layer after the other, [layers * heads, ...]: no copy of a single one."""
    if len(layers) == 1:
        return layers[0]
    q, k, lse = (
        [part for part in (getattr(layer, name) for layer in layers) if part is not None]
        for name in ("q", "k", "lse")
    )
    return LayerAttention(torch.cat(q), torch.cat(k), layers[0].scale, lse=torch.cat(lse) if lse else None)


def projected(projection: Tensor, heads: int, scale: Tensor | None = None) -> Tensor:
    """P_h = (g W_O,h)^T (g W_O,h), fp32 [heads, head_dim, head_dim]: behind the projection x is sqrt(x P_h x^T) long.

    No vector of the model's width is formed then.

    Args:
        projection: W_O, [dim, heads * head_dim].
        scale: g of a LayerScale behind it, [dim]; None is 1.
    """
    weight = projection.detach().float()
    weight = weight if scale is None else weight * scale.detach().float()[:, None]
    # [heads, dim, head_dim]
    slices = weight.reshape(len(weight), heads, -1).transpose(0, 1)
    return torch.bmm(slices.transpose(1, 2), slices)


def value_norms(v: Tensor, projected: Tensor) -> Tensor:
    """||v_j W_O,h||, fp32 [heads, tokens], of v [heads, tokens, head_dim] in fp32 and what `projected` makes of W_O."""
    return torch.bmm(v, projected).mul_(v).sum(-1).clamp_(min=0).sqrt_()


def unknown_norms(v: Tensor) -> Tensor:
    """What stands for the norms of v [heads, tokens, head_dim] where no output projection is known."""
    return torch.full((), math.nan, device=v.device).expand(v.shape[:2])


Index = list[int] | slice | Tensor | None


def exact() -> AbstractContextManager[object]:
    """Statistics in full precision, outside autograd, and unseen by the modes of surrounding edits."""
    is_seen = torch.is_grad_enabled() or torch._C._is_torch_function_mode_enabled()
    if not is_seen and not any(map(torch.is_autocast_enabled, _AUTOCAST)):
        return nullcontext()
    stack = ExitStack()
    stack.enter_context(torch._C.DisableTorchFunction())
    stack.enter_context(torch.no_grad())
    for device in _AUTOCAST:
        stack.enter_context(torch.autocast(device, enabled=False))
    return stack


def _blocks(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, max(1, size)):
        yield slice(start, min(start + max(1, size), count))


def _take(tensor: Tensor, index: Index, *, axis: int = 0) -> Tensor:
    """Some entries along an axis, without a copy where all or a range are asked for."""
    if index is None:
        return tensor
    if isinstance(index, slice):
        return tensor[(slice(None),) * axis + (index,)]
    if isinstance(index, list):
        if len(index) == 1:
            return tensor.narrow(axis, index[0], 1)
        index = torch.tensor(index, dtype=torch.long, device=tensor.device)
    return tensor.index_select(axis, index)
