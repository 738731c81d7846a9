"""What an answer of many numbers is called in one line: its parts by their names, arrays by their shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import fields

import numpy as np

_LONGEST = 60  # characters of one part


class Brief:
    """A dataclass whose `repr` is short; it is declared with `repr=False`."""

    def __repr__(self) -> str:
        parts = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a dataclass
        told = ", ".join(f"{name}={_told(part)}" for name, part in parts.items() if name != "provenance")
        return f"{type(self).__name__}({told})"


def _told(part: object) -> str:
    """One part in a few words."""
    if isinstance(part, np.ndarray):
        return f"{part.dtype}{list(part.shape)}"
    if isinstance(part, Brief):
        return type(part).__name__
    whole = repr(part)
    if len(whole) <= _LONGEST:
        return whole
    if isinstance(part, Mapping):
        return f"{{{', '.join(map(str, part))}}}" if len(part) < 8 else f"{len(part)} by name"
    if isinstance(part, Sized) and not isinstance(part, str):
        return f"{len(part)} of them"
    return f"{whole[: _LONGEST - 1]}…"
