"""One call of torch's scaled_dot_product_attention, as a value that can be read, changed and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vit_viz.errors import CaptureError
from vit_viz.lazy import F, Tensor, torch


class NotBatched(CaptureError):  # noqa: N818 - a way out, not a fault: these images can be traced one by one
    """A module's attention cannot be told apart image by image within one pass over several."""


_WITH_NORMALISER = {"cpu": 1, "cuda": 2}
"""Of torch.nn.attention.SDPBackend, the kernel for fp32: FLASH_ATTENTION on a CPU, EFFICIENT_ATTENTION on a GPU."""


class AttentionCall(NamedTuple):
    """Arguments of scaled_dot_product_attention, under their own names and in their own order."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False

    @property
    def is_square(self) -> bool:
        """Whether there are as many queries as keys: a layer, not a pooling head."""
        return self.query.shape[-2] == self.key.shape[-2]

    @property
    def factor(self) -> float:
        """What the dot products are multiplied by."""
        return float(self.query.shape[-1] ** -0.5 if self.scale is None else self.scale)

    def run(self) -> Tensor:
        """The kernel's output, [batch, heads, queries, head_dim]."""
        return F.scaled_dot_product_attention(*self[:6], scale=self.scale, enable_gqa=self.enable_gqa)

    def run_with_normaliser(self) -> tuple[Tensor, Tensor | None]:
        """The kernel's output, and the rows' log sum exp [batch, heads, queries] where the kernel that torch chooses returns it."""
        if not self._has_normaliser():
            return self.run(), None
        operands, rest = (self.query, self.key, self.value), (self.dropout_p, self.is_causal)
        if self.query.is_cuda:
            output, lse, _, _ = torch._scaled_dot_product_efficient_attention(
                *operands, None, True, *rest, scale=self.scale
            )
            return output, lse[..., : self.query.shape[-2]]  # its rows are padded to 32
        output, lse = torch._scaled_dot_product_flash_attention_for_cpu(*operands, *rest, scale=self.scale)
        return output, lse

    def weights(self) -> Tensor:
        """The attention itself, [batch, heads, queries, keys], for a caller that asked for it."""
        key = self.key
        if self.enable_gqa:
            key = key.repeat_interleave(self.query.shape[-3] // key.shape[-3], dim=-3)
        scores = (self.query * self.factor) @ key.transpose(-2, -1)
        if self.is_causal:
            scores = scores + causal_bias(scores.shape[-2], scores.shape[-1], scores.device)
        if self.attn_mask is not None:
            scores = scores + as_bias(self.attn_mask).to(scores.dtype)
        return torch.softmax(scores, dim=-1)

    def operands(self) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of the one image, each [heads, tokens, head_dim], in the precision that the kernel computes in."""
        q, k, v = (by_head(part) for part in self._parts())
        return q, k, v

    def operands_of(self, images: int) -> tuple[Tensor, Tensor]:
        """Query and key of several images, the heads of one after those of the other: each [images * heads, tokens, head_dim]."""
        parts = self._parts()
        if any(part.ndim != 4 or len(part) != images for part in parts):
            shape = list(self.query.shape)
            raise NotBatched(f"The first axis of a tensor of shape {shape} is not that of {images} images.")
        q, k = (part.flatten(0, 1) for part in parts[:2])
        return q, k

    def _parts(self) -> list[Tensor]:
        """Query, key and value with as many heads each, in the precision that the kernel computes in."""
        parts = [self.query, self.key, self.value]
        if self.enable_gqa:
            heads = self.query.shape[-3]
            parts = [part.repeat_interleave(heads // part.shape[-3], dim=-3) for part in parts]
        elif self._is_broadcast():
            lead = torch.broadcast_shapes(*(part.shape[:-2] for part in parts))  # type: ignore[no-untyped-call]  # torch's
            parts = [part.expand(*lead, *part.shape[-2:]) for part in parts]
        kind = self.query.device.type
        if not torch.is_autocast_enabled(kind):
            return parts
        dtype = torch.get_autocast_dtype(kind)
        return [part.to(dtype) for part in parts]

    def _is_broadcast(self) -> bool:
        """Whether heads share keys or values by broadcasting."""
        query, key, value = self.query.shape, self.key.shape, self.value.shape
        if query == key == value:  # as in every self-attention: nothing to cut
            return False
        return not query[:-2] == key[:-2] == value[:-2]

    def _has_normaliser(self) -> bool:
        query, kind = self.query, self.query.device.type
        if kind not in _WITH_NORMALISER or query.ndim != 4 or self.enable_gqa or self.attn_mask is not None:
            return False
        if torch.is_grad_enabled() or torch.is_autocast_enabled(kind) or self._is_broadcast():
            return False
        choice: Callable[..., int] = torch._fused_sdp_choice
        return (
            choice(
                query, self.key, self.value, self.attn_mask, self.dropout_p, self.is_causal, scale=self.scale
            )
            == _WITH_NORMALISER[kind]
        )


def by_head(tensor: Tensor) -> Tensor:
    """[batch, heads, rows, cols] or any arrangement of it for one image -> [heads, rows, cols]."""
    if tensor.ndim == 4 and len(tensor) == 1:
        return tensor.squeeze(0)
    if tensor.ndim == 3:
        return tensor
    lead = tensor.shape[:-2]
    if sum(size > 1 for size in lead) > 1:
        raise CaptureError(
            f"Attention over a tensor of shape {list(tensor.shape)} runs within several windows or images: "
            "only attention over all tokens of one image can be traced, so windowed models (Swin) cannot."
        )
    return tensor.reshape(-1, *tensor.shape[-2:])


def as_bias(mask: Tensor) -> Tensor:
    """A mask as what is added to the scores, fp32: a Boolean one becomes 0 where attention is allowed and -inf elsewhere."""
    if mask.dtype != torch.bool:
        return mask.float()
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, -torch.inf)


def causal_bias(queries: int, keys: int, device: torch.device) -> Tensor:
    """The bias that keeps queries from seeing later keys, [queries, keys]."""
    return torch.full((queries, keys), -torch.inf, device=device).triu(1)
