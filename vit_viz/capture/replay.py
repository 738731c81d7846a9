"""The functions that a model runs on an attention's output, noted as they run, so that they can be run again on other outputs.

What a tensor is made of is followed by the tensors themselves: a function that is given the output, or anything made of it, is
noted with its arguments. Nothing is read from code, and only the functions between two noted tensors run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vit_viz.capture.explicit_softmax import Function
from vit_viz.lazy import Tensor, torch

_IN_PLACE = frozenset({"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__imatmul__"})


class Changed(Exception):  # noqa: N818 - a way out, not a fault
    """An argument of a noted function was overwritten since, so that it cannot run again."""


@dataclass(frozen=True, eq=False)
class _Step:
    func: Function
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made: tuple[Tensor, ...]  # what it returned
    written: tuple[Tensor, ...]  # what it wrote to
    before: dict[int, Tensor]  # of that, as it was
    versions: dict[int, int]  # of its other tensors, how often they had been written to


class Replay:
    """All that was made of one tensor, the source."""

    def __init__(self, source: Tensor) -> None:
        self._source = source
        self._made = {id(source): source}
        self._steps: list[_Step] = []

    def __contains__(self, tensor: Any) -> bool:
        return id(tensor) in self._made

    def note(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        before: dict[int, Tensor],
    ) -> list[Tensor]:
        """Note that `func` has run; returns the tensors of numbers that it made or wrote to.

        Args:
            before: by id, copies of the tensors that it wrote to, taken before it ran.
        """
        made = tuple(tensors_of(output))
        written = written_by(func, args, kwargs)
        if not made and not written:
            return []
        constants = [t for t in tensors_of((args, kwargs)) if t not in self]
        versions = {id(t): t._version for t in constants}
        self._steps.append(_Step(func, args, kwargs, made, written, before, versions))
        results = {id(t): t for t in (*made, *written) if t.is_floating_point()}
        self._made.update(results)
        return list(results.values())

    def forget(self, number: int) -> None:
        """Follow the tensor of this id no further."""
        self._made.pop(number, None)

    def run(
        self, source: Tensor, wanted: Tensor, constant: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """What `wanted` would be, were the source another.

        Args:
            constant: what stands in for the arguments of the last function that are not made of the source.
        """
        values = {id(self._source): source.clone()}
        last = max(
            i for i, step in enumerate(self._steps) if any(t is wanted for t in (*step.made, *step.written))
        )

        def value_of(tensor: Tensor) -> Tensor:
            if id(tensor) in values:
                return values[id(tensor)]
            if id(tensor) in step.before:
                values[id(tensor)] = step.before[id(tensor)].clone()
                return values[id(tensor)]
            if tensor._version != step.versions.get(id(tensor), tensor._version):
                raise Changed
            if constant is None or step is not self._steps[last] or not tensor.is_floating_point():
                return tensor
            return constant(tensor)

        for step in self._steps[: last + 1]:
            output = step.func(*mapped(step.args, value_of), **mapped(step.kwargs, value_of))
            for old, new in zip(step.made, tensors_of(output), strict=True):
                values[id(old)] = new
        return values[id(wanted)]


def written_by(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    """The tensors that a function writes to, by the rules of torch's names."""
    name = getattr(func, "__name__", "")
    is_in_place = name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
    return (*tensors_of(args[:1] if is_in_place else ()), *tensors_of(kwargs.get("out")))


def is_allocation(func: Function) -> bool:
    """Whether a function takes the shape of a tensor and none of its numbers."""
    name = getattr(func, "__name__", "")
    return name.endswith("_like") or name.startswith("new_")


def tensors_of(value: Any) -> Iterator[Tensor]:
    """All tensors of nested tuples, lists and dictionaries."""
    # torch's own class: this is asked of each argument of a pass, and the late one answers several times as slowly
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from tensors_of(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_of(each)


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nesting of tuples, lists and dictionaries with each tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(each, change) for each in value))
    if isinstance(value, tuple | list):
        return type(value)(mapped(each, change) for each in value)
    if isinstance(value, dict):
        return {name: mapped(each, change) for name, each in value.items()}
    return value
