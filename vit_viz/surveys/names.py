"""Names of files as text that can be stored and shown: a name may hold bytes that are no UTF-8, or what moves a cursor."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_NAMED = 5
"""Things that a sentence names; the others are counted."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_BYTE = 0xDC00
"""A byte that is no UTF-8 reaches Python as this plus the byte (PEP 383)."""


def is_text(name: str) -> bool:
    """Whether a name is UTF-8."""
    return not _SURROGATE.search(name)


def as_text(name: str) -> str:
    r"""A name as UTF-8: each byte that is none becomes \xff, a surrogate from a list \ud800.

    Example:
        >>> as_text("caf\udce9.png")
        'caf\\xe9.png'
    """
    return _SURROGATE.sub(lambda match: _escape(match[0]), name)


def shown(text: str) -> str:
    r"""Text for a line of a terminal or a log: whatever is no printable character is escaped, line breaks too.

    Example:
        >>> shown("a\nb\x1b[31m.png")
        'a\\nb\\x1b[31m.png'
    """
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def several(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are.

    Example:
        >>> several(["a", "b", "c", "d", "e", "f", "g"])
        'a, b, c, d, e and 2 more'
    """
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _escape(character: str) -> str:
    code = ord(character)
    if _FIRST_BYTE + 0x80 <= code <= _FIRST_BYTE + 0xFF:
        return f"\\x{code - _FIRST_BYTE:02x}"
    return character.encode("unicode_escape").decode("ascii")
