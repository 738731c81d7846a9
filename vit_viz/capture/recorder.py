"""The record of a forward pass: q and k of each layer, and the numbers that prove them.

A `Recorder` receives every attention call of ONE forward pass, in order, and copies what the trace needs into the arena. It knows
nothing of modules; `Interception` calls it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vit_viz.capture.buffers import Arena
from vit_viz.capture.calls import AttentionCall, as_bias, by_head, causal_bias
from vit_viz.capture.explicit_softmax import Function, WrittenOut
from vit_viz.capture.layers import (
    LayerAttention,
    exact,
    projected,
    side_by_side,
    stack_bytes,
    unknown_norms,
    value_norms,
)
from vit_viz.capture.proof import PROOF_ROWS, TOLERANCES, largest_differences, proof_queries
from vit_viz.capture.returned import ScoresPlace
from vit_viz.capture.trace import PoolAttention
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, torch
from vit_viz.progress import Watch

if TYPE_CHECKING:
    from vit_viz.capture.features import TensorsSeen
    from vit_viz.capture.gradient_stops import GradientStops

MAX_ATTENTION_BYTES = 2**30


@dataclass(frozen=True)
class RecorderOptions:
    """What to keep of a forward pass.

    Args:
        keep_values: also the values, and how the output projection weighs them.
        keep_norms: also how long each value is after the output projection.
        gradients: of each attention: the pass will be differentiated, and what they need is kept.
        features: the same of what the last attention reads.
        keep_graph: it will be differentiated again, towards another target.
        proof_rows: queries per head that are recomputed and compared; 0 for none.
        max_attention_bytes: bound on attention and masks that have to be kept as matrices.
    """

    keep_values: bool = False
    keep_norms: bool = False
    gradients: bool = False
    proof_rows: int = PROOF_ROWS
    max_attention_bytes: int = MAX_ATTENTION_BYTES
    features: bool = False
    keep_graph: bool = False

    @property
    def is_differentiated(self) -> bool:
        """Whether the pass will be."""
        return self.gradients or self.features


@dataclass(eq=False)
class Capture:
    """One layer while the forward pass is still running: slots of the arena, and tensors of the graph."""

    scale: float = 1.0
    bias: Tensor | None = None
    slots: dict[str, int] = field(default_factory=dict)
    is_transposed: bool = False
    is_compared: bool = False
    differentiable: Tensor | None = None  # the attention's output, or the written-out attention
    attended: Tensor | None = None  # what it gives, where that was seen and is differentiated
    dtype: torch.dtype = torch.float32


class Recorder:
    """Collects the attention calls of one forward pass.

    Args:
        arena: the memory that the trace will own.
        watch: told of each layer; where it says so, the pass ends there.
    """

    def __init__(self, arena: Arena, options: RecorderOptions, watch: Watch | None = None) -> None:
        self.options = options
        self._watch = watch
        self.captures: list[Capture] = []
        self._seen: list[tuple[str, torch.Size]] = []
        # attention [heads, keys], output, value, cosines of query and keys [keys]
        self.pooling: tuple[Tensor, Tensor, Tensor, Tensor] | None = None
        self.weighs_values = options.keep_values or options.keep_norms
        self.is_ours = False  # the model is made of our own classes alone
        self.returned: Any = None  # what the model returned, where it will be differentiated
        self.place: ScoresPlace | None = None  # of the scores in it
        self.stops: GradientStops | None = None  # where gradients end, of a pass that is followed
        self.tensors: TensorsSeen | None = None  # of the pass, where what the last attention reads is wanted
        self.arena = arena
        self._keeps_v = options.keep_values or options.gradients
        self._needs_values = self._keeps_v or self.weighs_values or options.proof_rows > 0
        self._biases: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}
        self._causal: Tensor | None = None
        self._matrix_bytes = 0
        self._softmax: tuple[Capture, WrittenOut] | None = None
        self._uncompared: list[tuple[Capture, Tensor, Tensor]] = []  # with values, and rows of the output
        self._differences: list[Tensor] = []
        self._value: Tensor | None = None  # of the last attention, where it is to be weighed
        self._left: tuple[Tensor, Tensor] | None = None  # of it by edits, see `ActiveEdits.hands_on`
        self._unprojected: tuple[Capture, Tensor, Tensor] | None = None  # with value and output
        # the last projection with its weight, its output, and how often that was changed
        self._projected: tuple[Capture, Tensor, Tensor, int] | None = None

    def attention(self, call: AttentionCall, output: Tensor, lse: Tensor | None) -> Tensor:
        """Note one fused call; returns its output, differentiable where gradients are wanted."""
        if self.options.is_differentiated and torch.is_grad_enabled() and not output.requires_grad:
            output.requires_grad_()  # the first layer of a frozen model: the graph begins here
        keys = "" if call.is_square else f" to {call.key.shape[-2]} keys"
        self.note(f"scaled_dot_product_attention{keys}", call.query)
        with torch.no_grad() if torch.is_grad_enabled() else nullcontext():
            q, k, v = call.operands()
            capture = Capture(call.factor, self._bias(call), dtype=q.dtype)
            if call.is_square:
                self._keep(capture, q=q, k=k, lse=None if lse is None else lse[0])
                self._expect_norms(capture, v)
                if self._needs_values:
                    self._keep_and_prove(capture, v, by_head(output))
                self._add(capture)
            else:
                layer = LayerAttention(q.float(), k.float(), call.factor, capture.bias)
                weights = layer.rows(None, None).mean(1)
                asking, asked = (
                    one.float().transpose(0, 1).flatten(1) for one in (q, k)
                )  # all heads as one vector
                cosines = torch.nn.functional.cosine_similarity(asking[:, None], asked[None], dim=-1).mean(0)
                self.pooling = (weights, output, v, cosines)
        if self.options.is_differentiated:
            capture.differentiable = capture.attended = output
        return output

    def hands_on(self, left: tuple[Tensor, Tensor] | None) -> None:
        """What edits leave of what each head of the last attention hands on, see `ActiveEdits.hands_on`."""
        self._left = left

    def projected_by(self, weight: Tensor, scale: Tensor | None, output: Tensor | None = None) -> None:
        """The last attention's output goes through this projection [dim, heads * head_dim]; its values are as they were.

        Args:
            scale: of a LayerScale behind it, [dim]; None: of none that is known.
            output: of the projection, where a LayerScale may still come.
        """
        if self._value is not None:
            value, self._value = self._value, None
            self._weigh(self.captures[-1], value.float(), weight, scale, output)

    def output_is(self, output: Tensor) -> None:
        """The last attention's output, as the model uses it: [..., heads, tokens, head_dim]. What projects it is still to come."""
        if self._value is not None:
            value = self._value.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
            self._unprojected = (self.captures[-1], value, by_head(output.detach()))
            self._value = None

    def linear(self, inputs: Tensor, weight: Tensor, result: Tensor) -> None:
        """Note a linear layer and its result: the first after an attention is its projection if it reads exactly its output.

        Or the output of the first tokens, where the model needs no others.
        """
        if self._unprojected is None:
            return
        (capture, value, output), self._unprojected = self._unprojected, None
        heads, tokens, head_dim = output.shape
        count = inputs.shape[:-1].numel()
        if inputs.shape[-1] != heads * head_dim or not 0 < count <= tokens:
            return
        last = inputs.detach().reshape(count, heads * head_dim)[-1]
        if torch.equal(last, output[:, count - 1].reshape(-1)):
            self._weigh(capture, value, weight, None, result)

    def scaled(self, product: object, factor: object) -> None:
        """Note two factors: the output of the last projection as it is, and a number for each channel, are a LayerScale."""
        if self._projected is None or not (isinstance(product, Tensor) and isinstance(factor, Tensor)):
            return
        capture, weight, output, version = self._projected
        if product.data_ptr() != output.data_ptr() or product.shape.numel() != output.shape.numel():
            return
        if factor.shape.numel() == factor.shape[-1:].numel() == len(weight) and version == _version(output):
            self._projected = None
            place = self.arena.view("projected", capture.slots["projected"])
            with exact():
                place.copy_(projected(weight, len(place), factor.detach().flatten()))

    def softmax(self, attention: Tensor) -> None:
        """Note the output of a written-out softmax that is square in its last two axes."""
        if self.options.is_differentiated and torch.is_grad_enabled() and not attention.requires_grad:
            attention.requires_grad_()  # the first layer of a frozen model: the graph begins here
        self.note("softmax", attention)
        self._reserve(4 * attention.numel(), "attention that this model writes out")
        capture = Capture(dtype=attention.dtype)
        with torch.no_grad():
            weights = by_head(attention)
            self._keep(capture, weights=weights)
            self._expect_norms(capture, weights)
        if self.options.is_differentiated:
            capture.differentiable = attention
        self._add(capture)
        self._softmax = (capture, WrittenOut(attention))

    def softmax_becomes(self, attention: Tensor) -> None:
        """The written-out attention that was noted last is consumed in this form, with its heads changed."""
        if self._softmax is not None:
            self._softmax = (self._softmax[0], WrittenOut(attention))

    def product(self, func: Function, args: tuple[Any, ...], output: Tensor) -> None:
        """Note a matrix product or a cast: what consumes the last written-out attention determines the key axis and the proof."""
        if self._softmax is None:
            return
        capture, attention = self._softmax
        with torch.no_grad():
            product = attention.product(func, args, output)
            if product is None:
                return
            self._softmax = None
            capture.attended = output if self.options.is_differentiated else None
            capture.is_transposed = not product.keys_last
            weights = self.arena.view("weights", capture.slots["weights"])
            heads, tokens, _ = weights.shape
            value, output = product.value, product.output
            if value.ndim == output.ndim and value.shape[:-2].numel() == 1:  # of all heads
                value = value.expand(*output.shape[:-2], *value.shape[-2:])
            if value[..., 0, 0].numel() != heads or output.shape[-2] != tokens or value.shape[-2] != tokens:
                return  # the matrix is what it is, but the product is not understood
            value, output = by_head(value), by_head(output)
            capture.dtype = max(capture.dtype, output.dtype, key=lambda dtype: torch.finfo(dtype).eps)
            self._keep_and_prove(capture, value, output)
            self.output_is(output)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys) of the first layer."""
        return self._layer(self.captures[0]).shape

    def layers(self, gradients: Sequence[Tensor | None]) -> tuple[LayerAttention, ...]:
        """The layers of the trace, once the forward pass (and the backward pass, if any) is over.

        Args:
            gradients: of each capture's differentiable tensor; empty without a target.
        """
        for capture, gradient in zip(self.captures, gradients, strict=False):
            like = capture.differentiable
            if not self.options.keep_graph:
                capture.differentiable = capture.attended = None
            if gradient is None and like is not None:  # the target does not depend on this layer
                gradient = torch.zeros_like(like)
            if gradient is not None:
                role = "weights_grad" if "weights" in capture.slots else "output_grad"
                self._keep(capture, **{role: by_head(gradient)})
        return tuple(self._layer(capture) for capture in self.captures)

    def pooled(self, gradient: Tensor | None, *, layout: TokenLayout) -> PoolAttention | None:
        """The pooling attention over all tokens; prefix and suffix tokens that the pool leaves out get weight 0."""
        if self.pooling is None or self.pooling[0].shape[1] not in (layout.num_tokens, layout.num_patches):
            return None
        attention, _, value, cosines = self.pooling
        all_seen = attention.shape[1] == layout.num_tokens
        skipped = (0, 0) if all_seen else (layout.num_prefix, layout.num_suffix)
        with exact():
            if gradient is not None:
                gradient = torch.bmm(by_head(gradient).float(), value.detach().float().transpose(1, 2)).sum(1)
                gradient = torch.nn.functional.pad(gradient, skipped)
            attention, cosines = (torch.nn.functional.pad(one, skipped) for one in (attention, cosines))
            return PoolAttention(attention, gradient, cosines)

    @cached_property
    def largest(self) -> Tensor:
        """Largest difference of each layer that was compared, once the pass is over; on the device."""
        self._compare()
        return torch.cat(self._differences) if self._differences else torch.empty(0)

    def finish(self) -> None:
        """Compute what a trace will ask for: nothing of it can be done once this pass is a graph."""
        if self._biases or self.pooling is not None:
            raise CaptureError("An attention with a bias or a pool is recorded call by call.")
        _ = self.largest

    def copied_to(self, arena: Arena) -> Recorder:
        """The same layers in other memory, where this one's is written to again by the next replay of a graph."""
        arena.copy(self.arena)
        other = copy(self)
        other.arena, other.largest = arena, self.largest.clone()
        return other

    def proof(self) -> list[float]:
        """Largest difference per layer; NaN where none was computed."""
        values = iter(self.largest.tolist())
        return [next(values) if capture.is_compared else float("nan") for capture in self.captures]

    def tolerance(self) -> float:
        """Largest difference that the kernels' own rounding explains."""
        return max(TOLERANCES.get(capture.dtype, 1e-4) for capture in self.captures)

    def note(self, what: str, tensor: Tensor) -> None:
        """Count what was seen, for the message when nothing could be used."""
        self._seen.append((what, tensor.shape))

    @property
    def has_seen(self) -> bool:
        """Whether anything was seen that could have been attention."""
        return bool(self._seen)

    def seen(self) -> str:
        """What was seen, in words."""
        counts = Counter(f"{what} over {list(shape)}" for what, shape in self._seen)
        return ", ".join(f"{count} x {what}" for what, count in counts.items()) or "neither"

    def _keep(self, capture: Capture, **operands: Tensor | None) -> None:
        for role, operand in operands.items():
            if operand is not None and role in capture.slots:  # towards another target
                self.arena.view(role, capture.slots[role]).copy_(operand)
            elif operand is not None:
                capture.slots[role] = self.arena.store(role, operand)

    def _expect_norms(self, capture: Capture, like: Tensor) -> None:
        """A place for the norms of the values, [heads, tokens, ...], where they are wanted."""
        self._value = self._left = self._unprojected = self._projected = None
        if self.weighs_values:
            self._keep(capture, value_norms=unknown_norms(like))

    def _weigh(
        self, capture: Capture, value: Tensor, weight: Tensor, scale: Tensor | None, output: Tensor | None
    ) -> None:
        heads = len(value)
        with exact():
            unscaled = projected(weight, heads)
            factor, is_mean = self._left or (None, None)
            # a head at its mean says the same whatever a token looks at
            moved = (
                value if factor is None or is_mean is None else value * (factor * ~is_mean).float()[..., None]
            )
            norms = value_norms(moved, unscaled)
            self.arena.view("value_norms", capture.slots["value_norms"]).copy_(norms)
            if self.options.keep_values:
                if factor is not None:
                    weight = (weight.reshape(len(weight), heads, -1) * factor).flatten(1)
                is_same = scale is None and factor is None
                self._keep(
                    capture,
                    is_mean=is_mean,
                    projected=unscaled if is_same else projected(weight, heads, scale),
                )
                self._projected = None if output is None else (capture, weight, output, _version(output))

    def _keep_and_prove(self, capture: Capture, value: Tensor, output: Tensor) -> None:
        """Keep the values, or hold on to them until they are projected, and compare the output with them, where that is wanted."""
        if self._keeps_v:
            self._keep(capture, v=value)
        if self.weighs_values:
            self._value = value.detach()
        # what edits made of a written-out attention is no proof of it
        if self.options.proof_rows and self._left is None:
            capture.is_compared = True
            rows = output[:, proof_queries(output.shape[1], self.options.proof_rows)]
            most = stack_bytes(output.device)
            if most and not self.is_ours:  # another module may write to them meanwhile
                value, rows = value.clone(), rows.clone()
            if self._uncompared and not self._layer(capture).fits_beside(self._layer(self._uncompared[0][0])):
                self._compare()
            self._uncompared.append((capture, value, rows))
            if len(self._uncompared) * 2 * output.nbytes >= most:
                self._compare()

    def _compare(self) -> None:
        """Compare the layers that wait for it, side by side."""
        waiting, self._uncompared = self._uncompared, []
        if waiting:
            captures, values, rows = zip(*waiting, strict=True)
            queries = proof_queries(values[0].shape[1], self.options.proof_rows)
            with exact():
                layers = side_by_side([self._layer(capture) for capture in captures])
                value, output = (
                    parts[0] if len(parts) == 1 else torch.cat(parts) for parts in (values, rows)
                )
                largest = largest_differences(layers, value, output, queries, count=len(captures))
            self._differences.append(largest)

    def _bias(self, call: AttentionCall) -> Tensor | None:
        """What is added to the scores, [1 | heads, 1 | queries, keys]; one copy for all layers that use the same mask."""
        mask, keys = call.attn_mask, call.key.shape[-2]
        if call.is_causal:
            if self._causal is None:
                self._causal = causal_bias(call.query.shape[-2], keys, call.query.device)
            mask = self._causal
        if mask is None:
            return None
        name = (mask.data_ptr(), mask.shape, mask.stride(), 0 if mask.is_inference() else mask._version)
        if name not in self._biases:
            self._reserve(4 * mask.numel(), "attention masks of this model")
            bias = by_head(as_bias(mask) if mask.dtype == torch.bool else mask.float().clone())
            # with the mask, so that its address stays its own
            self._biases[name] = (mask, bias.expand(*bias.shape[:2], keys))
        return self._biases[name][1]

    def _reserve(self, size: int, what: str) -> None:
        self._matrix_bytes += size
        if self._matrix_bytes > self.options.max_attention_bytes:
            raise CaptureError(
                f"The {what} need more than {self.options.max_attention_bytes / 2**20:.0f} MiB by layer {len(self.captures)}: "
                "use a smaller image, or allow more bytes of attention."
            )

    def _add(self, capture: Capture) -> None:
        """Keep one more layer, and let whoever watches the pass end it."""
        self.captures.append(capture)
        if self._watch is not None:
            self._watch.check()
            self._watch.advance()

    def _layer(self, capture: Capture) -> LayerAttention:
        parts = {role: self.arena.view(role, slot) for role, slot in capture.slots.items()}
        if capture.is_transposed:
            for role in parts.keys() & {"weights", "weights_grad"}:
                parts[role] = parts[role].transpose(1, 2)
        return LayerAttention(scale=capture.scale, bias=capture.bias, **parts)


def _version(tensor: Tensor) -> int:
    """How often a tensor was changed in place; nobody counts that in inference mode."""
    return 0 if tensor.is_inference() else tensor._version
