"""Many images in one forward pass: each layer is handed over when it runs, and nothing of it is kept.

A trace holds q and k of every layer of one image. Over thousands of images that is copying for nothing: what is wanted of a layer
is a few numbers. `visit_layers` shows each layer of a batch once, its images' heads side by side, while q and k are still warm.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from vit_viz.capture.buffers import Arena, shared_pool
from vit_viz.capture.calls import AttentionCall, NotBatched
from vit_viz.capture.forward import ResidualStream
from vit_viz.capture.given import as_batch
from vit_viz.capture.layers import LayerAttention, exact
from vit_viz.capture.recorder import Capture, Recorder, RecorderOptions
from vit_viz.capture.tracing import check_count, recorded_logits
from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, nn, torch

__all__ = ["BatchOutputs", "NotBatched", "Visit", "visit_layers"]

Visit = Callable[[LayerAttention], None]
"""Called for each layer in turn, with [images * heads, tokens, head_dim]: the heads of the first image, of the second, ..."""


@dataclass(frozen=True, eq=False)
class BatchOutputs:
    """What a pass over several images leaves behind.

    Args:
        logits: [images, classes]; None where the module returns something else.
        norms: length of every token before the first and after each layer, [states, images, tokens]; None where the module has no
            list of blocks.
    """

    logits: Tensor | None
    norms: Tensor | None


def visit_layers(module: nn.Module, pixels: Tensor, visit: Visit, *, tokens: int) -> BatchOutputs:
    """Run several images through a module at once and show every layer's attention, image by image.

    The module runs unmodified, as in `trace`; the same numbers as image by image, but for the rounding of larger products.

    Args:
        pixels: [images, channels, height, width], already normalised.
        tokens: how many the module makes of an image of this size.
    """
    placed = as_batch(pixels, module)
    recorder = _Visitor(visit, len(placed), tokens)
    stream = None
    with suppress(CaptureError):  # a module without a list of blocks
        stream = ResidualStream(module, keep=lambda state: torch.linalg.vector_norm(state.float(), dim=-1))
    logits = recorded_logits(module, placed, recorder, stream, lambda logits: logits.detach().float())
    check_count(module, placed, recorder)
    states = [] if stream is None else stream.states
    is_known = {tuple(state.shape) for state in states} == {(len(placed), tokens)}
    return BatchOutputs(logits, torch.stack(states) if is_known else None)


class _Visitor(Recorder):
    """Shows what a recorder would keep."""

    def __init__(self, visit: Visit, images: int, tokens: int) -> None:
        super().__init__(Arena(shared_pool(), slots=1), RecorderOptions(proof_rows=0))
        self._visit, self._images, self._expected = visit, images, tokens

    def attention(self, call: AttentionCall, output: Tensor, lse: Tensor | None) -> Tensor:
        self.note("scaled_dot_product_attention", call.query)
        if not call.is_square or call.query.shape[-2] != self._expected:
            raise NotBatched("Not all attention of this module runs over the tokens of one image.")
        with exact():
            self._visit(self._side_by_side(call, lse))
        self.captures.append(Capture(call.factor, dtype=call.query.dtype))
        return output

    def softmax(self, attention: Tensor) -> None:  # noqa: ARG002
        """Refuse: which axis is the image is not known before the product that consumes it."""
        raise NotBatched("This module writes its attention out.")

    def _side_by_side(self, call: AttentionCall, lse: Tensor | None) -> LayerAttention:
        """The heads of all images, one after the other."""
        if call.attn_mask is not None or call.is_causal:
            raise NotBatched("This module masks its attention or adds to it.")
        q, k = call.operands_of(self._images)
        return LayerAttention(
            q.float(), k.float(), call.factor, lse=None if lse is None else lse.flatten(0, 1)
        )
