"""The gradient of a target: one place for every method that differentiates a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, torch

WITHOUT = "methods without a gradient, such as occlusion and rollout, need none"
"""What is left where a model has no gradient."""
OUTSIDE = "the model, or the target, is computed outside autograd"

_OF_AUTOGRAD = (
    "autograd",
    "backward",
    "derivative",
    "inference tensor",
    "in-place",
    "inplace",
    "require grad",
)


@contextmanager
def differentiable() -> Iterator[None]:
    """Autograd at work, whatever surrounds it; what torch's autograd refuses is told in a sentence."""
    with torch.inference_mode(False), torch.enable_grad():
        try:
            yield
        except RuntimeError as error:
            if not is_of_autograd(error):
                raise
            text = " ".join(str(error).split())
            why = re.split(r"\.\s+(?=[A-Z])", text)[0].rstrip(".")
            raise CaptureError(f"This model has no gradient here: {why[:250]}; {WITHOUT}.") from error


def is_of_autograd(error: Exception) -> bool:
    """Whether torch says that it cannot differentiate something."""
    text = " ".join(str(error).split()).lower()
    is_torchs = isinstance(error, RuntimeError) and not isinstance(error, torch.OutOfMemoryError)
    return is_torchs and any(words in text for words in _OF_AUTOGRAD)


def gradients(
    value: Tensor, inputs: Sequence[Tensor | None], *, keep_graph: bool = False
) -> list[Tensor | None]:
    """The gradient of one number, or of the numbers of several images, by each input; None where autograd does not reach it.

    No parameter's `.grad` is touched.
    """
    followed = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    computed = iter(
        torch.autograd.grad(
            torch.unbind(value.reshape(-1)), followed, allow_unused=True, retain_graph=keep_graph
        )
        if value.requires_grad and followed
        else [None] * len(followed)
    )
    return [next(computed) if tensor is not None and tensor.requires_grad else None for tensor in inputs]
