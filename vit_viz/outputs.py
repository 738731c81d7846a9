"""What one output of a model is, which decides how it is shown: a share of a softmax, a sigmoid of its own, or a value."""

from __future__ import annotations

from typing import Literal, get_args

from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, torch

Output = Literal["softmax", "sigmoid", "value"]
"""- softmax: the score of one class among classes that exclude each other; shown as its share of the softmax over all of them.
- sigmoid: the score of one class that may hold beside others; shown as its own sigmoid, and these do not sum to 1.
- value: a number of its own, as of a regression; shown as it is."""

Noun = Literal["class", "sentence", "output"]

UNITS: dict[Output, str] = {"softmax": "probability", "sigmoid": "probability (sigmoid)", "value": "value"}
"""Of what `shown` returns."""

PROBLEMS: dict[str, Output] = {"regression": "value", "multi_label_classification": "sigmoid"}
"""Of transformers' `problem_type`; the third one, "single_label_classification", says no more than nothing does."""


def checked_output(value: object) -> Output | None:
    """The kind that was named; None where none was."""
    if value is None or value in get_args(Output):
        return value  # type: ignore[return-value]  # one of them
    raise ParameterError(
        f"output says what one output of the model is: {', '.join(map(repr, get_args(Output)))}; not {str(value)[:40]!r}."
    )


def output_kind(output: Output | None, count: int) -> Output:
    """What each of `count` outputs is; where nobody says it, one output is a value and several are a softmax."""
    if output == "softmax" and count == 1:
        raise ParameterError(
            "A softmax over one output is always 1 and says nothing: pass output='sigmoid' for the score of a class, or "
            "output='value'."
        )
    return output or ("value" if count == 1 else "softmax")


def shown(outputs: Tensor, output: Output | None) -> Tensor:
    """What people are told of a model's outputs: their softmax, the sigmoid of each, or the values themselves, [..., outputs].

    Half precision is too coarse for shares, which are computed in fp32 at least.
    """
    wide = outputs.float() if outputs.dtype in (torch.float16, torch.bfloat16) else outputs
    kind = output_kind(output, wide.shape[-1])
    return wide.softmax(-1) if kind == "softmax" else wide.sigmoid() if kind == "sigmoid" else wide


def noun_of(kind: Output) -> Noun:
    """What one output is called in words."""
    return "output" if kind == "value" else "class"


def output_name(index: int, labels: Labels | None, noun: Noun = "class") -> str:
    """The name of an output; its number where names are not known."""
    return labels.names[index] if labels is not None and index < len(labels) else f"{noun} {index}"
