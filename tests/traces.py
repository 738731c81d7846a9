"""Traces of operands that a test makes up."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from vit_viz.answer import Provenance
from vit_viz.capture.layers import LayerAttention, projected, unknown_norms, value_norms
from vit_viz.capture.trace import PoolAttention, Trace
from vit_viz.geometry import CropBox, TokenLayout


def trace_from(
    *,
    q: Tensor | None = None,
    k: Tensor | None = None,
    layout: TokenLayout,
    attention: Tensor | None = None,
    v: Tensor | None = None,
    output_grad: Tensor | None = None,
    logits: Tensor | None = None,
    residual: Tensor | None = None,
    scale: float | Sequence[float] | None = None,
    bias: Tensor | None = None,
    projections: Sequence[Tensor] | None = None,
    pooling_attention: Tensor | None = None,
    pooling_gradient: Tensor | None = None,
    proof: Sequence[float] = (),
    crop_box: CropBox | None = None,
    provenance: Provenance | None = None,
) -> Trace:
    """A trace whose operands are known.

    Args:
        q, k, v, output_grad: [layers, heads, tokens, head_dim].
        attention: instead of q and k, the attention itself, [layers, heads, tokens, tokens].
        scale: of all layers, or one each; None means head_dim ** -0.5.
        bias: added to the scores of every layer, [1 | heads, 1 | tokens, tokens].
        projections: output projection of each layer, [dim, heads * head_dim].
    """
    operands = q if attention is None else attention
    if operands is None or (attention is None and k is None):
        raise ValueError("A trace needs q and k, or the attention itself.")
    depth, head_dim = operands.shape[0], operands.shape[-1]
    factor = head_dim**-0.5 if scale is None else scale
    scales = [factor] * depth if isinstance(factor, float | int) else factor
    layers = [
        LayerAttention(
            q=_of_layer(q, i),
            k=_of_layer(k, i),
            scale=float(scales[i]),
            bias=None if bias is None else bias.float(),
            weights=_of_layer(attention, i),
            v=_of_layer(v, i),
            output_grad=_of_layer(output_grad, i),
            value_norms=None if v is None else _norms_of_layer(v[i], projections, i),
            projected=None if projections is None else projected(projections[i], operands.shape[1]),
        )
        for i in range(depth)
    ]
    return Trace(
        tuple(layers),
        layout,
        logits=logits,
        residual=residual,
        differences=list(proof),
        pooling=None if pooling_attention is None else PoolAttention(pooling_attention, pooling_gradient),
        crop_box=crop_box,
        provenance=provenance or Provenance(),
    )


def _norms_of_layer(v: Tensor, projections: Sequence[Tensor] | None, layer: int) -> Tensor:
    v = v.detach().float()
    return unknown_norms(v) if projections is None else value_norms(v, projected(projections[layer], len(v)))


def _of_layer(stack: Tensor | None, layer: int) -> Tensor | None:
    return None if stack is None else stack[layer].detach().float()
