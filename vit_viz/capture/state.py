"""What a module is at this moment, its weights and its make-up, so that nothing is answered from what it was before."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from vit_viz.capture.per_module import PerModule
from vit_viz.checkpoints.digest import looked_up, write_count
from vit_viz.lazy import Tensor, nn
from vit_viz.model.submodules import submodules_of


def make_up_of(module: nn.Module) -> int:
    """What a module is made of now, as a number: its submodules, their classes, hooks and attributes.

    Of attributes values, text and containers of these, and which functions, tensors and other objects they are, not what is inside
    those. A module that is again as it was has the number of then; no two modules have the same.
    """
    return looked_up(module, _numbered)


def construction_of(module: nn.Module) -> int:
    """As `make_up_of` without the attributes that are numbers, tensors or containers: training may write to those at each step.

    What takes dozens of passes to find out of a module, how numbers flow through it, is remembered by this.
    """
    return looked_up(module, _numbered_construction)


def writes_to(module: nn.Module) -> tuple[tuple[int, int, int], ...]:
    """Which parameters a module has, where they lie, and how often torch saw them written to: another thread may train it."""
    return tuple((id(tensor), tensor.data_ptr(), write_count(tensor)) for tensor in module.parameters())


def _numbered(module: nn.Module) -> int:
    return _MAKE_UPS.of(module).number_of(_attributes(submodules_of(module)))


def _numbered_construction(module: nn.Module) -> int:
    return _MAKE_UPS.of(module).number_of(_attributes(submodules_of(module), only_construction=True))


@contextmanager
def first_pass_seen(module: nn.Module, parts: Sequence[nn.Module]) -> Iterator[None]:
    """Around a pass: attributes that the first one of a make-up changes (counters, kept tensors) are left out of it."""
    known, ids = _MAKE_UPS.of(module), list(map(id, parts))
    if ids == known.passed:
        yield
        return
    before = _attributes(parts)
    try:
        yield
    finally:
        known.passed = ids
        known.leave_out(before, _attributes(submodules_of(module)))


Attributes = Mapping[tuple[int, str], Any]
_REMEMBERED = 8
_NUMBERS = itertools.count(1)


@dataclass
class _MakeUps:
    """The last few make-ups of a module, and which of its attributes passes change."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    known: list[tuple[int, Attributes]] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)  # ids of the parts of the last pass that was watched
    changing: set[tuple[int, str]] = field(default_factory=set)

    def number_of(self, attributes: Attributes) -> int:
        """The number of a make-up, or of the part of it that is construction."""
        with self.guard:
            now = self._lasting(attributes)
            number = next((number for number, before in self.known if before == now), None)
            if number is None:
                number = next(_NUMBERS)
                self.known = [*self.known[1 - _REMEMBERED :], (number, now)]
                self.passed = []  # what is new may be changed by passes
            return number

    def leave_out(self, before: Attributes, after: Attributes) -> None:
        """Leave out what a pass changed, now and of what is remembered."""
        with self.guard:
            self.changing |= {at for at in before.keys() | after.keys() if before.get(at) != after.get(at)}
            self.known = [(number, self._lasting(one)) for number, one in self.known]

    def _lasting(self, attributes: Attributes) -> Attributes:
        if not self.changing:
            return attributes
        return {at: value for at, value in attributes.items() if at not in self.changing}


_MAKE_UPS = PerModule(_MakeUps)

_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_OF_TORCH = frozenset(
    (
        *("training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"),
        *("_is_full_backward_hook", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
        *("_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks"),
        *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    )
)
"""Attributes of every module that decide nothing, or that are looked at in another way."""


def _attributes(parts: Sequence[nn.Module], *, only_construction: bool = False) -> dict[tuple[int, str], Any]:
    """What decides how a module computes beside its weights: by the part and the name of the attribute."""
    values: dict[tuple[int, str], Any] = {}
    kinds = {kind: _of_class(kind) for kind in set(map(type, parts))}
    for part in parts:
        key = id(part)
        values[key, ""] = kinds[type(part)], list(map(id, part._modules.values()))
        for name, value in vars(part).items():
            if name in _OF_TORCH:
                continue
            if name in _HOOKS:
                if value and (hooks := [_comparable(hook) for hook in value.values() if not _is_own(hook)]):
                    values[key, name] = hooks
            elif not (only_construction and _is_content(value)):
                values[key, name] = _comparable(value)
    return values


def _of_class(kind: type) -> tuple[Any, Any]:
    """A class and its `forward`, plainly looked up: a scripted module answers when its class is asked."""
    return _Same(kind), _Same(
        next((base.__dict__["forward"] for base in kind.__mro__ if "forward" in base.__dict__), None)
    )


def _is_content(value: Any) -> bool:
    """Whether an attribute is a number, or holds some; a switch is no number."""
    return isinstance(value, int | float | Mapping | tuple | list | Tensor) and not isinstance(value, bool)


def _is_own(hook: Any) -> bool:
    """Whether a hook is one of ours, which stands for a pass only."""
    return str(getattr(hook, "__module__", "")).startswith("vit_viz.")


def _comparable(value: Any) -> Any:
    """What tells a value from another without holding on to it."""
    if value is None or isinstance(value, (bool, int, float, str)):  # a union would be made each time
        return value
    if isinstance(value, Mapping):
        return {_comparable(name): _comparable(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple([_comparable(item) for item in value])
    if isinstance(value, Tensor):
        return _Same(value), write_count(value)
    return _Same(value), getattr(value, "__code__", None)


class _Same:
    """An object that equals itself only, and no other that lies where it lay; it is not kept alive."""

    def __init__(self, value: Any) -> None:
        self._id = id(value)
        with suppress(TypeError):  # of the few that have no such references
            self._ref: Callable[[], Any] = weakref.ref(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._id == other._id and self._is_alive and other._is_alive

    def __hash__(self) -> int:
        return self._id

    @property
    def _is_alive(self) -> bool:
        return not hasattr(self, "_ref") or self._ref() is not None
