"""The residual stream as a sum, found in any module: what each layer of attention, each MLP and the embedding add to it.

Nothing is read from names or code. Autograd's graph of a pass says what the answer is made of: followed back from there, the first
addition through which everything passes that comes from the image, and to which a layer of attention gives what it hands on alone,
is the end of the stream. Through additions and what only moves or scales numbers the stream is followed on to what it is a sum of.

- An addend that is made of what one layer hands on, and of nothing else of the image, is what that attention gives.
- One that reads the stream is of the MLP behind the attention that reads it last before; one that does not is the embedding.
- Each has a direction: the gradient of the answer by the stream, carried along the stream alone. Norms hold their scale in it.
- Between the answer and the stream, and between a layer of attention and the stream, each number has to be a sum of others, each
  times one that does not depend on them: products of both, and activations, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from torch.autograd.graph import GradientEdge
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import CheckpointError

from vit_viz.capture.buffers import Arena, BufferPool, shared_pool
from vit_viz.capture.explicit_softmax import named_functions, operators
from vit_viz.capture.features import VIEWS, Result, edges, made_of, order
from vit_viz.capture.forward import expected_layers, undisturbed
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.capture.layers import LayerAttention, exact
from vit_viz.capture.recorder import Recorder, RecorderOptions
from vit_viz.capture.returned import no_scores
from vit_viz.capture.tracing import recorded_logits
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import F, Tensor, nn, torch

_SUMS = re.compile(r"(Add|Sub|Cat|Stack)Backward")
_SCALED = re.compile(r"(Mul|Div|Neg)Backward")
_MOVED = re.compile(
    r"(Slice|Select|Index|Expand|Repeat|Flip|Roll|Unflatten|Split\w*|Unbind|ConstantPadNd|AsStrided)Backward"
)
_LINEAR = re.compile(
    r"(Mm|Addmm|Addmv|Mv|Dot|Bmm|Baddbmm|\w*Linear|Convolution\w*|\w*BatchNorm|Sum|Mean|_HeldNorm)Backward"
)
_WHERE = re.compile(r"(Where|MaskedFill)Backward")
"""Names of autograd's functions: sums, the same numbers scaled or in another arrangement, and others that are linear in one of
their arguments."""

_QUERIES_AT_ONCE = 256
_BEHIND = "between the attention of layer {} and what it is added to"
_MIXED = (
    "what the attention of layer {} hands on is not seen to be added by itself to a stream from which alone the answer is read, as "
    "where a norm follows the sum (post-norm), a gate stands there, or the answer also reads something else"
)
_DETACHED = (
    "something is added to its stream behind the first layer that has no gradient, as where it is detached"
)

_NORMS = {F.layer_norm, torch.layer_norm, F.rms_norm, torch.rms_norm, *operators("layer_norm", "default")}
_SCALES = set(named_functions("sqrt", "rsqrt", "std", "var", "std_mean", "var_mean", "norm", "vector_norm"))
_IN_PLACE = {torch.Tensor.add_, torch.Tensor.__iadd__}
_POWERS = set(named_functions("pow", "__pow__"))


@dataclass(frozen=True, eq=False)
class Addend:
    """What an attention or an MLP adds to the stream.

    Args:
        source: where it stands in autograd's graph.
        value: a number for each number of the stream, or of some of its tokens.
        direction: by how much the answer grows with each of them, through the stream alone.
        layer: of which layer an MLP is.
        calls: the layers of attention that give it; of an MLP none.
    """

    source: Result
    value: Tensor
    direction: Tensor
    layer: int = -1
    calls: tuple[int, ...] = ()

    @property
    def part(self) -> float:
        """What it gives to the answer."""
        return float((_wide(self.value) * _wide(self.direction)).sum())


@dataclass(frozen=True, eq=False)
class Stream:
    """A number that the model answers as a sum.

    Args:
        terms: what each head takes from each token, [layers, heads, tokens]; of the heads of a pool that alone writes the stream,
            [1, heads, tokens].
        addends: of attention and MLPs; what they leave of `part` is the embedding.
        part: what the stream as a whole gives.
        value: the number itself, as this pass has it.
        norms: what the biases of norms behind the stream give; None where a norm is written out, so that these are not known.
        is_pool: it is the pool's, which reads what all layers wrote.
    """

    terms: Tensor
    addends: tuple[Addend, ...]
    part: float
    value: float
    norms: float | None
    is_pool: bool


class HeldPass(TorchFunctionMode):
    """A pass whose norms hold their scale when it is differentiated, and whose tensors are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: dict[Result, Tensor] = {}
        self.overwritten: dict[Result, Tensor] = {}  # what was added to in place, as it was
        self.norms: list[tuple[Tensor, Tensor]] = []  # what a norm returned, and its bias

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            self._note(args)
            if func in _IN_PLACE and args[0].grad_fn is not None:
                self.overwritten[args[0].grad_fn, args[0].output_nr] = args[0].detach().clone()
            if func in _NORMS and args[:1] and args[0].requires_grad:
                output = self._normed(func, *args, **kwargs)
            elif func is F.normalize:
                output = _normalized(*args, **kwargs)
            else:
                output = None
        if output is None:
            output = func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            if func in _SCALES or (func in _POWERS and args[1:] and args[1] in (0.5, -0.5)):
                output = _held(output)
            self._note((output,))
        return output

    def _note(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, Tensor) and value.grad_fn is not None:
                self.tensors[value.grad_fn, value.output_nr] = value

    def _normed(
        self,
        func: Any,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float | None = None,
        *rest: Any,
    ) -> Tensor:
        is_rms = func in (F.rms_norm, torch.rms_norm)
        given = (
            (shape, weight, eps if bias is None else bias)
            if is_rms
            else (shape, weight, bias, eps or 1e-5, *rest)
        )
        least = given[2] if is_rms else given[3]
        axes = tuple(range(-len(shape), 0))
        with torch.no_grad():
            wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
            square = (
                (wide if is_rms else wide - wide.mean(axes, keepdim=True)).square().mean(axes, keepdim=True)
            )
            rate = (square + (torch.finfo(x.dtype).eps if least is None else least)).rsqrt()
            rate = rate if weight is None else rate * weight
        output: Tensor = _HeldNorm.apply(x, lambda x: func(x, *given), rate, () if is_rms else axes)  # type: ignore[no-untyped-call]  # torch's
        if bias is not None and not is_rms:
            self.norms.append((output, bias))
        return output


class _HeldNorm(torch.autograd.Function):
    """A norm as it is; differentiated, x times a rate, less the mean of what it is centred by."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, norm: Callable[[Tensor], Tensor], rate: Tensor, axes: Any) -> Tensor:
        ctx.save_for_backward(rate)
        ctx.axes = axes
        return norm(x)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        (rate,) = ctx.saved_tensors
        scaled = slope * rate
        centred = scaled - scaled.mean(ctx.axes, keepdim=True) if ctx.axes else scaled
        return centred.to(slope.dtype), None, None, None


class _Held(torch.autograd.Function):
    """A number that is a constant when it is differentiated, and still known to come from the image."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:  # noqa: ARG004
        return torch.zeros_like(slope)


def _held(output: Any) -> Any:
    if isinstance(output, tuple):
        return type(output)(map(_held, output))
    if not isinstance(output, Tensor) or not output.requires_grad:
        return output
    return _Held.apply(output)  # type: ignore[no-untyped-call]  # torch's


def _normalized(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, **_: object) -> Tensor:  # noqa: A002
    length: Tensor = _held(input.norm(p, dim, keepdim=True).clamp_min(eps))
    return input / length


def stream_of(
    module: nn.Module, pixels: Tensor, weights: Tensor, *, layout: TokenLayout, pool: BufferPool | None = None
) -> Stream:
    """What weights . scores of a module is a sum of, in one more pass under the edits around it.

    Args:
        pixels: of one image, in the precision of the module.
        weights: of its scores, [outputs].

    Raises:
        CaptureError: there is no such sum, or it is not known; the message says why.
    """
    arena = Arena(pool or shared_pool(), slots=expected_layers(module))
    recorder, seen = Recorder(arena, RecorderOptions(gradients=True, proof_rows=0)), HeldPass()
    with differentiable():
        pixels = pixels.detach().clone().requires_grad_()
        with seen:
            scores = recorded_logits(module, pixels.clone(), recorder, None, lambda scores: scores[0])
        if scores is None:
            raise no_scores(type(module).__name__, recorder.returned)
        with undisturbed(module):
            weights = weights.to(scores)
            with recorder.stops or nullcontext():
                value = (weights * scores).sum()
            graph = _PassGraph(value, seen, pixels, recorder, type(module).__name__)
            for layer in range(len(recorder.captures)):
                stop = recorder.stops and recorder.stops.before(value, layer, is_reached=True)
                if stop:
                    raise graph.refusal(stop)
            try:
                return graph.stream(layout)
            except CheckpointError as error:
                raise graph.refusal(
                    "its blocks run again for a gradient, by activation checkpointing"
                ) from error


class _PassGraph:
    """Autograd's graph of a pass, as far as it depends on the pixels."""

    def __init__(self, value: Tensor, seen: HeldPass, source: Tensor, recorder: Recorder, name: str) -> None:
        self._answer, self._seen, self._recorder, self._name = value, seen, recorder, name
        self._of_image = set() if value.grad_fn is None else made_of(value.grad_fn, [source])
        pool = [] if recorder.pooling is None else [recorder.pooling[1]]
        attended = [*(capture.attended for capture in recorder.captures), *pool]
        self._calls = {one.grad_fn: number for number, one in enumerate(attended) if one is not None}
        unseen = [number for number, one in enumerate(attended) if one is None]
        self._why = (
            f"what the attention of layer {unseen[0]} hands on was not seen"
            if unseen
            else "no sum was found to which its layers of attention add"
        )

    def stream(self, layout: TokenLayout) -> Stream:
        """The nearest sum to which a layer of attention gives what it hands on alone."""
        frontier: set[Result] = {(self._answer.grad_fn, 0)} if self._of_image else set()
        while frontier and not any(node in self._calls for node, _ in frontier):
            last = max((node for node, _ in frontier), key=order)
            if len(frontier) == 1 and "AddBackward" in last.name() and len(self._edges(last)) > 1:
                (top,) = frontier
                (direction,) = torch.autograd.grad(self._answer, GradientEdge(*top), retain_graph=True)
                addends = self._addends(*self._followed(top, direction))
                if addends is not None:
                    way = self._linear(self._answer.grad_fn, {last}, "behind the last layer")
                    whole = Addend(top, self._value(top), direction)
                    is_pool = any(len(self._recorder.captures) in one.calls for one in addends)
                    terms = self._terms(addends, layout, is_pool=is_pool)
                    value = float(self._answer.detach())
                    return Stream(terms, addends, whole.part, value, self._of_norms(way), is_pool)
            frontier = {one for one in frontier if one[0] is not last} | set(self._edges(last))
        raise self.refusal(self._why)

    def _edges(self, node: Any) -> list[Result]:
        return edges(node, self._of_image)

    def _value(self, result: Result) -> Tensor:
        """The numbers of a result, as they were when it was read."""
        tensor = self._seen.tensors.get(result)
        if tensor is not None and tensor.grad_fn is result[0]:
            return tensor.detach()
        if result not in self._seen.overwritten:
            raise self.refusal("a number that it adds is overwritten, or was not seen")
        return self._seen.overwritten[result]

    def refusal(self, why: str) -> CaptureError:
        return CaptureError(f"What {self._name} answers is not known as a sum of direct parts: {why}.")

    def _followed(self, top: Result, direction: Tensor) -> tuple[dict[Result, Tensor], set[Any]]:
        """What a sum is made of, with directions; and the functions of the stream."""
        waiting, ends, stream = {top: direction}, dict[Result, Tensor](), set[Any]()
        while waiting:
            node = max((node for node, _ in waiting), key=order)
            here = {result: waiting.pop(result) for result in [one for one in waiting if one[0] is node]}
            stream.add(node)
            if len(here) > 1 or not self._leads_on(node):
                ends |= here
                continue
            slopes = node(*here.values())
            slopes = slopes if isinstance(slopes, tuple) else (slopes,)
            for result, slope in zip(node.next_functions, slopes, strict=True):
                if result[0] in self._of_image:
                    waiting[result] = waiting[result] + slope if result in waiting else slope
        return ends, stream

    def _leads_on(self, node: Any) -> bool:
        """Whether it is a sum of several, or such a sum moved, scaled, or shifted by what does not depend on the image."""
        while node not in self._calls:
            before = self._edges(node)
            if len(before) > 1:
                return _SUMS.match(node.name()) is not None
            if not before or not any(kind.match(node.name()) for kind in (_SUMS, _SCALED, _MOVED, VIEWS)):
                return False
            node = before[0][0]
        return False

    def _addends(self, ends: dict[Result, Tensor], stream: set[Any]) -> tuple[Addend, ...] | None:
        """What ends are of; None where none is what a layer of attention hands on alone."""
        made = {end: self._made_from(end[0], stream) for end in ends}
        mixed = [min(one.calls) for one in made.values() if one.calls and not one.is_attention]
        if not any(one.is_attention for one in made.values()):
            self._why = _MIXED.format(max(mixed)) if mixed else self._why
            return None
        if mixed:
            raise self.refusal(_MIXED.format(max(mixed)))
        reads = [self._made_from(node, stream).last_read for node in self._calls]
        for node in stream - {node for node, _ in ends}:
            if order(node) > min(reads) and _SUMS.match(node.name()) and (None, 0) in node.next_functions:
                raise self.refusal(_DETACHED)
        addends = []
        for end, one in made.items():
            if one.is_attention:
                calls = {node for node, number in self._calls.items() if number in one.calls}
                self._linear(end[0], calls, _BEHIND.format(min(one.calls)))
            before = sum(read <= one.last_read for read in reads) - 1 if one.last_read >= 0 else -1
            if one.calls or before >= 0:
                addends.append(Addend(end, self._value(end), ends[end], before, tuple(sorted(one.calls))))
        return tuple(addends)

    def _terms(self, addends: Sequence[Addend], layout: TokenLayout, *, is_pool: bool) -> Tensor:
        """What each head gives from each token, [layers, heads, tokens]: attention times the gradient along the stream alone."""
        given, captures = [one for one in addends if one.calls], self._recorder.captures
        calls = sorted({call for one in given for call in one.calls})
        pool = self._recorder.pooling
        if not is_pool and calls != list(range(len(captures))):
            silent = next(call for call in range(len(captures)) if call not in calls)
            raise self.refusal(
                f"what the attention of layer {silent} hands on is not one of the things that it adds"
            )
        inputs = [*(one.differentiable for one in captures), None if pool is None else pool[1]]
        slopes: dict[int, Tensor] = {}
        for one in given:
            sources = [source for call in one.calls if (source := inputs[call]) is not None]
            parts = torch.autograd.grad(GradientEdge(*one.source), sources, one.direction, retain_graph=True)
            for call, part in zip(one.calls, parts, strict=True):  # a head may be added by itself
                slopes[call] = slopes[call] + part if call in slopes else part
        if is_pool:
            pooled = self._recorder.pooled(slopes[len(captures)], layout=layout)
            if pooled is None or pooled.gradient is None:
                raise self.refusal("which tokens its pool reads is not known")
            return (pooled.attention * pooled.gradient)[None].cpu().double()
        layers = self._recorder.layers([slopes[call] for call in calls])
        return torch.stack([_taken(layer) for layer in layers]).cpu()

    def _made_from(self, start: Any, stream: set[Any]) -> _Made:
        """What the result of a function is made of, back to the stream and to what layers of attention hand on."""
        made, waiting, seen = _Made(), [start], set()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node is not start and node in stream:
                made.last_read = max(made.last_read, order(node))
            elif node in self._calls and (node is not start or node in stream):
                made.calls.add(self._calls[node])
            else:
                before = [one for one, _ in self._edges(node)]
                made.is_of_image |= not before
                waiting += before
        return made

    def _linear(self, start: Any, ends: set[Any], where: str) -> set[Any]:
        """The functions from a result back to others, each of them linear in what comes from those."""
        between, waiting = set[Any](), [start]
        while waiting:
            node = waiting.pop()
            if node not in between and node not in ends and not _is_held(node):
                between.add(node)
                waiting += [one for one, _ in self._edges(node)]
        depending = set(ends)
        for node in sorted(between, key=order):
            places = [place for place, (one, _) in enumerate(node.next_functions) if one in depending]
            if not places:
                continue
            depending.add(node)
            name = node.name()
            is_sum = any(one.match(name) for one in (_SUMS, _WHERE))
            is_linear = any(one.match(name) for one in (_SCALED, _MOVED, _LINEAR, VIEWS))
            kind = name.partition("Backward")[0].rpartition("::")[2]
            if not is_sum and not (is_linear and len(places) == 1 and not ("Div" in name and places[0])):
                raise self.refusal(f"{where} stands what is not linear ({kind})")
        return depending - ends

    def _of_norms(self, way: set[Any]) -> float | None:
        """What the biases of the norms among these functions give."""
        if any(_is_held(one) for node in way for one, _ in self._edges(node)):
            return None
        normed = [(output, bias) for output, bias in self._seen.norms if output.grad_fn in way]
        slopes = gradients(self._answer, [output for output, _ in normed])
        pairs = zip(slopes, normed, strict=True)
        return float(
            sum((_wide(slope) * _wide(bias)).sum() for slope, (_, bias) in pairs if slope is not None)
        )


@dataclass
class _Made:
    """What a result is made of.

    Attributes:
        calls: layers of attention that hand it on.
        last_read: the last function of the stream that it reads; -1 for none.
        is_of_image: it also comes from the image in another way.
    """

    calls: set[int] = field(default_factory=set)
    last_read: int = -1
    is_of_image: bool = False

    @property
    def is_attention(self) -> bool:
        """Whether it is what layers of attention hand on, and nothing else of the image."""
        return bool(self.calls) and self.last_read < 0 and not self.is_of_image


def _taken(layer: LayerAttention) -> Tensor:
    """sum_t A[h, t, i] dA[h, t, i], [heads, tokens]; only of queries that the answer reads."""
    slope = layer.output_grad if layer.weights_grad is None else layer.weights_grad
    assert slope is not None
    total = torch.zeros(layer.shape[0], layer.shape[2], dtype=torch.float64)
    with exact():
        for queries in torch.split(slope.any(-1).any(0).nonzero().flatten(), _QUERIES_AT_ONCE):
            gradient = layer.gradient(None, queries)
            assert gradient is not None
            total += (layer.rows(None, queries) * gradient).sum(1).cpu()
    return total


def _is_held(node: Any) -> bool:
    return bool(node.name() == "_HeldBackward")


def _wide(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().double()  # some devices have no double precision
