"""Imports on first use: names of a package, and libraries that only an extra installs.

`import vit_viz` then costs nothing, and a process that only reads pictures never imports torch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_viz.errors import VitVizError

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor, nn as nn

    F = nn.functional


def importer(package: str, file: str) -> tuple[Callable[[str], Any], list[str]]:
    """What a package needs as its `__getattr__` (PEP 562) to offer what it imports for type checkers, and the names of that.

    The imports of its own modules under `if TYPE_CHECKING:` are the only list of them: they are read from its source.

    Args:
        package: name of the package.
        file: its `__file__`.
    """
    homes = _homes(file)

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return attribute, list(homes)


def late_names(file: str) -> dict[str, Late]:
    """The same names as what stands for them until they are used, for a package whose users import them at their own start."""
    return {name: Late(module, name) for name, module in _homes(file).items()}


def _homes(file: str) -> dict[str, str]:
    return {
        alias.name: line.module
        for block in ast.parse(Path(file).read_text("utf-8")).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom) and line.module and line.module.startswith("vit_viz.")
        for alias in line.names
    }


@contextmanager
def extra(name: str, *, needed_for: str) -> Iterator[None]:
    """Around the import of what an extra of the package brings: where a library is missing, the sentence says how to install it.

    Args:
        name: of the extra, e.g. "app".
        needed_for: what cannot be had without it, the subject of the sentence.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", "vit_viz"):
            raise  # not a library but a fault of ours
        raise VitVizError(
            f"{needed_for} needs {library}, which is not installed: pip install 'vit_viz[{name}]'."
        ) from error


def named(module: str, name: str) -> Any:
    """What a module of a higher floor calls by a name, imported now: for what a value does with itself when it is asked to."""
    return getattr(import_module(module), name)


class _LateModule:
    """A module that is imported when something of it is first used; from then on both have one namespace.

    What a test replaces there is replaced here, too.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        self.__dict__ = vars(module)  # the next use does not come here
        return getattr(module, name)


class Late:
    """A class or a function whose module is imported when it is first used; what is imported nowhere has no instances.

    It can be called, read, derived from, and asked for its instances and subclasses, as what it stands for; it is written nowhere.

    Beside it, under `TYPE_CHECKING`, stands the import that it is for.

    Args:
        module: where it is defined.
        name: its name there.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def _itself(self) -> Any:
        return getattr(import_module(self._module), self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self._itself()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._itself(), name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._itself(),)

    def __subclasscheck__(self, other: type) -> bool:
        return issubclass(other, self._itself())

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, getattr(sys.modules.get(self._module), self._name, ()))

    def __or__(self, other: Any) -> Any:
        return _Either((self, other))

    __ror__ = __or__


class _Either(tuple[Any, ...]):
    """Several classes of which some are late, as `A | B` makes of others; `isinstance` takes them."""

    def __or__(self, other: Any) -> Any:
        return _Either((*self, other))


@contextmanager
def without_gradients() -> Iterator[None]:
    """`torch.no_grad()`, which decorates a function before torch is there."""
    with torch.no_grad():
        yield


if not TYPE_CHECKING:
    torch, nn, F = (_LateModule(name) for name in ("torch", "torch.nn", "torch.nn.functional"))
    Tensor = Late("torch", "Tensor")
