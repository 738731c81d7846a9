"""What is explained: a scalar of the model's output.

A target is a value that can be named, compared and written into provenance, and a function of the output that autograd can follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_viz.errors import ParameterError

TargetKind = Literal["logit", "probability", "difference", "similarity", "own embedding"]


@dataclass(frozen=True, eq=False)
class Target:
    """A scalar of the output: [..., outputs] -> [...].

    - logit: z_c; probability: softmax(z)_c; difference: z_c - z_other ("why A and not B").
    - similarity: cosine to an embedding that is given.
    - own embedding: dot product with the unit vector of the image's own embedding. The cosine to itself would be of no use: it is
      at its maximum, so its gradient is 0.

    Args:
        index: class that is explained; None means the model's first choice, fixed when `resolved`.
        other: class that it is set against.
        embedding: vector [outputs] that the output is compared with.
    """

    kind: TargetKind
    index: int | None = None
    other: int | None = None
    embedding: Tensor | None = None

    def __call__(self, output: Tensor) -> Tensor:
        """The scalar of each output, [..., outputs] -> [...]."""
        target = self.resolved(output)
        if target.kind == "similarity":
            return F.cosine_similarity(output, target._vector(output), dim=-1)
        if target.kind == "own embedding":
            return output @ target._vector(output)
        values = _wide(output).softmax(-1) if target.kind == "probability" else output
        chosen = values[..., target.index]
        return chosen - values[..., target.other] if target.kind == "difference" else chosen

    @property
    def is_resolved(self) -> bool:
        """Whether class or embedding are fixed."""
        return (self.embedding if self.kind in ("similarity", "own embedding") else self.index) is not None

    def resolved(self, output: Tensor) -> Target:
        """The same target with class or embedding fixed by an output [outputs] (or [1, outputs]).

        Raises:
            ParameterError: a class does not exist, or the embedding has another length.
        """
        output = output.detach().reshape(-1, output.shape[-1])[0]
        if self.kind == "own embedding":
            return Target(
                self.kind, embedding=F.normalize(output, dim=-1) if self.embedding is None else self.embedding
            )
        if self.kind == "similarity":
            if self.embedding is None or self.embedding.shape != output.shape:
                raise ParameterError(f"The embedding to compare with needs {output.numel()} numbers.")
            return self
        index = int(output.argmax()) if self.index is None else self.index
        for name in (index, self.other):
            if name is not None and not 0 <= name < output.numel():
                raise ParameterError(
                    f"Class {name} does not exist: this model has classes 0-{output.numel() - 1}."
                )
        return Target(self.kind, index, self.other)

    @property
    def followed(self) -> Target:
        """What deletion and insertion follow: the probability of the class, or the similarity to the embedding."""
        if self.kind in ("logit", "difference"):
            return Target("probability", self.index)
        return Target("similarity", embedding=self.embedding) if self.kind == "own embedding" else self

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and largest value that the target can take."""
        unbounded = (-float("inf"), float("inf"))
        return {"probability": (0.0, 1.0), "similarity": (-1.0, 1.0)}.get(self.kind, unbounded)

    def describe(self) -> str:
        """The target in words, for captions and provenance."""
        name = "top-1" if self.index is None else str(self.index)
        if self.kind == "difference":
            return f"logit of class {name} minus logit of class {self.other}"
        if self.kind in ("logit", "probability"):
            return f"{self.kind} of class {name}"
        return (
            "cosine similarity to an embedding"
            if self.kind == "similarity"
            else "size along the image's own embedding"
        )

    def _vector(self, output: Tensor) -> Tensor:
        assert self.embedding is not None  # only resolved targets are evaluated
        return self.embedding.to(output)


def _wide(values: Tensor) -> Tensor:
    """At least fp32: half precision is too coarse for a softmax over classes."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


TargetLike = Target | int | tuple[int, int] | None
"""A target, a class index, a pair (class, other class), or None for the model's first choice."""


def class_logit(index: int | None = None) -> Target:
    """The logit of a class; None means the model's first choice."""
    return Target("logit", index)


def class_probability(index: int | None = None) -> Target:
    """The probability of a class; None means the model's first choice."""
    return Target("probability", index)


def logit_difference(index: int, other: int) -> Target:
    """Why this class and not the other: the difference of their logits.

    Raises:
        ParameterError: both are the same class.
    """
    if index == other:
        raise ParameterError(f"A difference needs two classes, not class {index} twice.")
    return Target("difference", index, other)


def similarity(embedding: Tensor) -> Target:
    """Cosine similarity of the output to an embedding, e.g. that of another image.

    Raises:
        ParameterError: the embedding is not one vector of finite numbers, or is 0.
    """
    vector = embedding.detach().flatten().float()
    if embedding.ndim > 2 or not torch.isfinite(vector).all() or not vector.any():
        raise ParameterError("An embedding is one vector of finite numbers that are not all 0.")
    return Target("similarity", embedding=vector)


def as_target(target: TargetLike, *, has_classes: bool) -> Target:
    """A target from what a user may give.

    Raises:
        ParameterError: a class is asked of a model that has none.
    """
    if target is None:
        return class_logit() if has_classes else Target("own embedding")
    if isinstance(target, int):
        target = class_logit(target)
    elif isinstance(target, tuple):
        target = logit_difference(*target)
    if not has_classes and target.kind in ("logit", "probability", "difference"):
        raise ParameterError(
            "This model has no classes: explain its similarity to an embedding, or pass no target for its own embedding."
        )
    return target
