"""A forward pass whose attention calls we replace: the basis of the checks of placement and structure.

Several images go through the model at once. What is known of a token at an attention call is its query, key and value; where the
model writes its attention out, its query and key, from the product that makes the scores, before anything is masked or added. Where
that product is not understood, what is known is the token's own entry of the scores, q_i k_i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.overrides import TorchFunctionMode

from vit_viz.capture.active_edits import suspended
from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.explicit_softmax import (
    FUSED,
    SCORE_PRODUCTS,
    SOFTMAXES,
    Function,
    Product,
    WrittenOut,
    is_square,
    queries_and_keys,
)
from vit_viz.capture.flex import flex_operator, written_out
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.interception import multi_head
from vit_viz.capture.noise import random_numbers
from vit_viz.lazy import F, Tensor, nn, torch

HALF = (torch.float16, torch.bfloat16)
_FEATURES = 16


class AttentionProbe(TorchFunctionMode):
    """Lets a subclass decide what each attention call of a pass of so many images, with so many tokens each, returns."""

    def __init__(self, images: int = 1, tokens: int = 0) -> None:
        super().__init__()
        self._images, self._tokens = images, tokens
        self.returned: Any = None
        self._written_out: WrittenOut | None = None  # the last one
        self._scored: tuple[Tensor, Tensor, Tensor] | None = None  # a square product and its operands
        self._flex = flex_operator()
        self._product: torch.Size | None = None  # rows and columns of the last product of matrices

    def runs(self, module: nn.Module, pixels: Tensor) -> bool:
        """Whether the module runs under this probe; what it returned is `returned`."""
        try:
            with undisturbed_pass(module), self:
                self.returned = module(pixels)
        except Exception:  # a model may raise anything on what it was not built for: nothing is known
            return False
        return True

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:
        """The output of a fused call over equally many queries and keys; `is_projected`: torch itself projects it next."""
        raise NotImplementedError

    def explicit(self, scores: Tensor, softmax: Callable[[], Tensor]) -> Tensor:
        """The output of a softmax over scores that are square in their last two axes; `softmax` computes the model's own."""
        raise NotImplementedError

    def weighted(self, product: Product, func: Function, args: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG002
        """The output of a product that weighs values by the last written-out attention."""
        return output

    def scored(self, scores: Tensor) -> tuple[Tensor, ...]:
        """What each token of written-out attention is known by, each [..., tokens, features]: query and key, or its own score."""
        if self._scored is not None and self._scored[0].shape[-2:] == scores.shape[-2:]:
            return self._scored[1:]
        return (torch.diagonal(scores, dim1=-2, dim2=-1).unsqueeze(-1),)

    def signature(self, *operands: Tensor) -> Tensor | None:
        """What tells the tokens apart by some operands, [images, tokens, features]; None where nothing does."""
        states = signatures(operands, self._images)
        return states if states is not None and states.shape[1] == self._tokens else None

    def uneven(self) -> None:
        """Called for attention whose queries and keys differ in number, such as a pool."""

    def other(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The output of any other function."""
        return self.consumed(func, args, func(*args, **kwargs))

    def consumed(self, func: Function, args: tuple[Any, ...], output: Any) -> Any:
        """The output of a function, which is `weighted` where it consumes the last written-out attention."""
        if self._written_out is None:
            return output
        product = self._written_out.product(func, args, output)
        return output if product is None else self.weighted(product, func, args, output)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        kwargs = kwargs or {}
        if func in FUSED:
            return self._attention(AttentionCall(*args, **kwargs), is_projected=False)
        if func is F.multi_head_attention_forward:
            return multi_head(func, args, kwargs, self._projected)[:2]
        if self._flex is not None and func is self._flex:
            return written_out(self, func, args)
        if func in SOFTMAXES:
            scores = args[0] if args else kwargs["input"]
            if is_square(scores):
                attention = self.explicit(scores, lambda: func(*args, **kwargs))
                self._scored, self._written_out = None, WrittenOut(attention)
                return attention
            axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
            is_over_last = axis in (-1, scores.ndim - 1)  # [batch, heads, queries, keys]
            if scores.ndim > 3 and is_over_last and self._product == scores.shape[-2:]:
                self.uneven()
        output = self.other(func, args, kwargs)
        if func in SCORE_PRODUCTS and isinstance(output, Tensor):
            self._product = output.shape[-2:]
        if func in SCORE_PRODUCTS and is_square(output) and len(args) > (func is torch.baddbmm) + 1:
            operands = queries_and_keys(func, args)
            if operands != ():  # else the tokens of the scores are those that are known
                self._scored = (output, *operands) if operands else None
        return output

    def _attention(self, call: AttentionCall, *, is_projected: bool) -> Tensor:
        if call.is_square:
            return self.fused(call, is_projected=is_projected)
        self.uneven()
        return call.run()

    def _projected(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._attention(AttentionCall(*args, **kwargs), is_projected=True)


@contextmanager
def undisturbed_pass(module: nn.Module) -> Iterator[None]:
    """Context for running a module without gradients and edits; its buffers are restored afterwards."""
    with undisturbed(module) as parts, torch.inference_mode(False), torch.no_grad(), suspended():
        buffers = [(part, name, tensor, tensor.clone()) for part in parts for name, tensor in _buffers(part)]
        try:
            yield
        finally:
            for part, name, tensor, before in buffers:
                part._buffers[name] = tensor
                if not torch.equal(tensor, before):
                    tensor.copy_(before)


def are_compiled(parts: Iterable[nn.Module]) -> bool:
    """Whether torch.compile has to do with one of these modules."""
    forwards = ((part, getattr(part.forward, "_torchdynamo_orig_callable", None)) for part in parts)
    return any(part._compiled_call_impl is not None or inner is not None for part, inner in forwards)


def _buffers(part: nn.Module) -> list[tuple[str, Tensor]]:
    return [
        (name, tensor) for name, tensor in part._buffers.items() if not (tensor is None or tensor.is_meta)
    ]


def joined(tensors: Sequence[Tensor | None]) -> Tensor | None:
    """What is known of images one by one, as of one batch; None where one is not known, or is of another shape."""
    present = [tensor for tensor in tensors if tensor is not None]
    is_whole = len(present) == len(tensors) and len({tensor.shape for tensor in present}) == 1
    return torch.cat(present) if is_whole else None


def signatures(operands: Iterable[Tensor], images: int) -> Tensor | None:
    """What tells the tokens apart by some operands, [images, tokens, features]; None where images are not an axis of their own."""
    each = [by_image(tensor, images) for tensor in operands]
    present = [operand for operand in each if operand is not None]
    return torch.cat(present, dim=-1) if len(present) == len(each) else None


def by_image(tensor: Tensor, images: int) -> Tensor | None:
    """[..., tokens, features] with images outermost -> [images, tokens, features], with at most 16 features.

    More are weighted with random numbers, always the same: tokens that differ still do.
    """
    apart = heads_by_image(tensor, images)
    return None if apart is None else _at_most(_FEATURES, apart.transpose(1, 2).flatten(2))


def heads_by_image(tensor: Tensor, images: int) -> Tensor | None:
    """[..., tokens, features] with images outermost -> [images, heads, tokens, features], with at most 16 features."""
    lead = tensor.shape[:-2].numel()
    if lead % images or (tensor.ndim > 3 and tensor.shape[0] not in (1, images)):
        return None  # in [batch, heads, tokens, features], a batch that is a multiple of the images holds windows
    return _at_most(_FEATURES, tensor.detach().reshape(images, lead // images, *tensor.shape[-2:]).float())


def _at_most(count: int, tensor: Tensor) -> Tensor:
    """At most `count` features: [..., features] -> [..., count], in fixed random combinations."""
    features = tensor.shape[-1]
    if features <= count:
        return tensor
    weights = torch.randn(features, count, generator=random_numbers(features))
    return tensor @ weights.to(tensor.device)


def moved(states: Tensor, *, against: Tensor, dtype: torch.dtype) -> Tensor:
    """How far each token lies from its value in another image, as a share of the largest number: [..., tokens]; 0 is rounding.

    Equal tokens in one batch may still differ by rounding, as the blocks of a matrix product begin elsewhere.
    """
    scale = against.abs().nan_to_num(posinf=0.0).amax().clamp_min(torch.finfo(torch.float32).tiny)
    distance = ((states - against).abs().amax(-1) / scale).nan_to_num(nan=torch.inf)
    return torch.where(distance > rounding(dtype), distance, 0.0)


def rounding(dtype: torch.dtype) -> float:
    """Largest difference that counts as rounding, as a share of the largest number."""
    return (8 if dtype in HALF else 256) * torch.finfo(dtype).eps
