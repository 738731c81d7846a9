"""Targets: the scalar of the model's output that is explained.

A target is a value that can be named, compared and written into provenance, and a function of the output that autograd can follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex, TypeAlias

from vit_viz.capture.given import class_index
from vit_viz.capture.returned import number_from
from vit_viz.errors import ParameterError
from vit_viz.indices import as_index
from vit_viz.labels import Labels
from vit_viz.lazy import F, Tensor, torch
from vit_viz.outputs import Noun, Output, output_kind, shown
from vit_viz.prompts import Text

TargetKind = Literal["logit", "probability", "difference", "similarity", "own embedding", "function"]

_PLURAL: dict[Noun, str] = {"class": "classes", "sentence": "sentences", "output": "outputs"}


@dataclass(frozen=True, eq=False)
class Target:
    """A scalar of the output: [..., outputs] -> [...].

    - logit: z_c; probability: softmax(z)_c, or sigmoid(z_c) where that is what an output is; difference: z_c - z_other ("why A and
      not B").
    - similarity: cosine to an embedding that is given.
    - own embedding: dot product with the unit vector of the image's own embedding. The cosine to itself would be of no use: it is
      at its maximum, so its gradient is 0.
    - function: one number that a function of the user makes of the output, [outputs] -> [].

    Args:
        index: class that is explained; None means the model's first choice, fixed when `resolved`.
        other: class that it is set against.
        embedding: vector [outputs] that the output is compared with.
        noun: what one output is called in words: "class" only where the outputs are known to be scores of classes.
        output: what one output is; None where nobody says it, until the target is fixed by an output.
        function: what makes a number of one output.
    """

    kind: TargetKind
    index: int | None = None
    other: int | None = None
    embedding: Tensor | None = None
    noun: Noun = "class"
    output: Output | None = None
    function: Callable[[Tensor], Tensor] | None = None

    def __call__(self, output: Tensor) -> Tensor:
        """The scalar of each output, [..., outputs] -> [...]."""
        if self.function is not None:
            rows = [number_from(self.function, row) for row in output.reshape(-1, output.shape[-1])]
            return torch.stack(rows).reshape(output.shape[:-1])
        target = self.resolved(output)
        if target.kind == "similarity":
            return F.cosine_similarity(output, target._vector(output), dim=-1)
        if target.kind == "own embedding":
            return output @ target._vector(output)
        values = shown(output, target.output) if target.kind == "probability" else output
        chosen = values[..., target.index]
        return chosen - values[..., target.other] if target.kind == "difference" else chosen

    @property
    def is_resolved(self) -> bool:
        """Whether class or embedding are fixed."""
        if self.function is not None:
            return True
        return (self.embedding if self.kind in ("similarity", "own embedding") else self.index) is not None

    def resolved(self, output: Tensor) -> Target:
        """The same target with class or embedding fixed by an output [outputs] (or [1, outputs])."""
        if self.function is not None:
            return self
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
                    f"{self.noun.capitalize()} {name} does not exist: this model has {_PLURAL[self.noun]} 0-{output.numel() - 1}."
                )
        kind = output_kind(self.output, output.numel())
        if kind == "value" and self.kind == "probability":
            raise ParameterError(
                "The outputs of this model are values, which have no probability: explain the output itself."
            )
        return replace(
            self,
            index=index,
            output=kind,
            noun="output" if kind == "value" and self.noun == "class" else self.noun,
        )

    def outputs_in(self, output: Tensor) -> tuple[int, ...]:
        """The outputs [outputs] that the target changes with: its class, both of a pair, or all that a probability depends on."""
        if self.kind in ("logit", "difference"):
            return tuple(index for index in (self.resolved(output).index, self.other) if index is not None)
        return tuple(range(len(output)))

    @property
    def followed(self) -> Target:
        """What deletion and insertion follow: the probability of the class, the value, the lead over another, or the similarity."""
        if self.kind == "logit":
            return self if self.output == "value" else replace(self, kind="probability")
        return Target("similarity", embedding=self.embedding) if self.kind == "own embedding" else self

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and largest value that the target can take."""
        unbounded = (-float("inf"), float("inf"))
        return {"probability": (0.0, 1.0), "similarity": (-1.0, 1.0)}.get(self.kind, unbounded)

    def describe(self, labels: Labels | None = None) -> str:
        """The target in words, for captions and provenance: "logit of class 291 (lion)" where names are known."""
        if self.function is not None:
            return (
                f"function {getattr(self.function, '__name__', type(self.function).__name__)} of the output"
            )
        name, other = self._named(self.index, labels), self._named(self.other, labels)
        if self.kind == "difference":
            what = "" if self.noun == "output" else "logit of "
            return f"{what}{name} minus {what}{other}"
        if self.noun == "output" and self.kind in ("logit", "probability"):
            return name if self.kind == "logit" else f"softmax share of {name}"
        if self.kind == "probability" and self.output == "sigmoid":
            return f"sigmoid of {name}"
        if self.kind in ("logit", "probability"):
            return f"{self.kind} of {name}"
        return (
            "cosine similarity to an embedding"
            if self.kind == "similarity"
            else "size along the image's own embedding"
        )

    def _named(self, index: int | None, labels: Labels | None) -> str:
        """The index of a class with its name beside it; of a sentence the sentence."""
        if index is None:
            return f"{self.noun} top-1"
        if labels is None or index >= len(labels):
            return f"{self.noun} {index}"
        return (
            f"“{labels.names[index]}”"
            if self.noun == "sentence"
            else f"{self.noun} {index} ({labels.names[index]})"
        )

    def _vector(self, output: Tensor) -> Tensor:
        assert self.embedding is not None  # only resolved targets are evaluated
        return self.embedding.to(output)


ClassLike = SupportsIndex | str | Text
Function: TypeAlias = Callable[[Any], Tensor]
"""Makes one number of the scores [outputs] of an image, or of what the model returns for it where that holds no scores."""
TargetLike = Target | ClassLike | tuple[ClassLike, ClassLike] | Function | None
"""A target, a class (its index or its name) or a sentence, a pair of them, a function, or None for the model's first choice."""


def class_logit(index: int | None = None) -> Target:
    """The logit of a class; None means the model's first choice."""
    return Target("logit", index)


def logit_difference(index: int, other: int) -> Target:
    """Why this class and not the other: the difference of their logits."""
    if index == other:
        raise ParameterError(f"A difference needs two classes, not class {index} twice.")
    return Target("difference", index, other)


def similarity(embedding: Tensor) -> Target:
    """Cosine similarity of the output to an embedding, e.g. that of another image."""
    vector = embedding.detach().flatten().float()
    if embedding.ndim > 2 or not torch.isfinite(vector).all() or not vector.any():
        raise ParameterError("An embedding is one vector of finite numbers that are not all 0.")
    return Target("similarity", embedding=vector)


def as_target(
    target: TargetLike,
    *,
    has_classes: bool,
    noun: Noun = "class",
    labels: Labels | None = None,
    output: Output | None = None,
) -> Target:
    """A target from what a user may give.

    Args:
        has_classes: whether the outputs are, or may be, scores of classes.
        noun: what one output is called in words.
        labels: names of the classes, where they are known.
        output: what one output is; None where nobody says it.
    """
    if target is None:
        return Target("logit", noun=noun, output=output) if has_classes else Target("own embedding")
    if isinstance(target, Target):
        wanted = target
    elif callable(target):
        return Target("function", noun=noun, function=target)
    elif not isinstance(target, tuple):
        wanted = class_logit(_class(target, labels, has_classes))
    elif len(target) != 2:
        raise ParameterError(
            f"A target of several classes is a pair (class, other class), not {len(target)}."
        )
    else:
        wanted = logit_difference(*(_class(part, labels, has_classes) for part in target))
    if not has_classes and wanted.kind in ("logit", "probability", "difference"):
        raise ParameterError(
            "This model has no classes: explain its similarity to an embedding, or pass no target for its own embedding."
        )
    return replace(wanted, noun=noun, output=output)


def function_of(target: object) -> Function | None:
    """The function that was passed as a target; None where it is something else."""
    return target if callable(target) and not isinstance(target, Target) else None


def _class(value: ClassLike, labels: Labels | None, has_classes: bool) -> int:
    """The index of a class; a name means nothing where there are no classes, and is refused later."""
    if isinstance(value, str | Text):
        return class_index(str(value), labels) if has_classes else 0
    return as_index("A class", value)
