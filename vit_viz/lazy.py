"""What is imported when it is first used: names of a package, and libraries that only an extra installs.

`import vit_viz` then costs nothing, and a process that only reads pictures never imports torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from vit_viz.errors import VitVizError


def importer(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """What a package needs as its `__getattr__` (PEP 562) to offer names of other modules.

    Args:
        package: name of the package.
        modules: the names that each module defines.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return attribute


@contextmanager
def extra(name: str, *, needed_for: str) -> Iterator[None]:
    """Around the import of what an extra of the package brings: where a library is missing, the sentence says how to install it.

    Args:
        name: of the extra, e.g. "app".
        needed_for: what cannot be had without it, the subject of the sentence.

    Raises:
        VitVizError: a library is not installed.
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
