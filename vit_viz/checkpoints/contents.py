"""Checks before anything in a file is trusted: that it is a regular file, and the form of a safetensors table of contents."""

from __future__ import annotations

import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from vit_viz.errors import CheckpointError, UnsafeFile

MAX_AXES = 8
_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
}

_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: Path) -> None:
    """Refuse anything but a regular file, without opening it: a named pipe would wait for its writer, a device may have no end.

    Raises:
        CheckpointError: it is something else, or does not exist.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise CheckpointError(
            f"{path.name!r} cannot be read: it does not exist, or is a broken link."
        ) from error
    if not stat.S_ISREG(mode):
        kind = _OTHER_KINDS.get(stat.S_IFMT(mode), "something else")
        raise CheckpointError(f"{path.name!r} is {kind}, and not a file that can be read.")


def announced_sizes(contents: object, name: str) -> list[int]:
    """How many numbers each tensor claims to have; 0 where it has more than `MAX_AXES` axes.

    Args:
        contents: what the JSON at the start of the file says: tensors by name, {"dtype", "shape", "data_offsets"} each, and text
            under "__metadata__".
        name: of the file.

    Raises:
        UnsafeFile: the table is of another form, or the bytes of a tensor are not as many as its shape and dtype need.
    """
    if not isinstance(contents, Mapping):
        raise _refused(name, "it lists no tensors by name")
    metadata = contents.get("__metadata__", {})
    if not isinstance(metadata, Mapping) or not all(isinstance(text, str) for text in metadata.values()):
        raise _refused(name, "its metadata is not text by name")
    return [_size(entry, name, key) for key, entry in contents.items() if key != "__metadata__"]


def _size(entry: Any, name: str, key: str) -> int:
    """Numbers of one tensor."""
    shown = f"{key[:60]!r}"
    if not isinstance(entry, Mapping):
        raise _refused(name, f"{shown} is not a tensor")
    dtype, shape, offsets = (entry.get(part) for part in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise _refused(name, f"{shown} has a dtype that we do not know")
    if not _are_counts(shape):
        raise _refused(name, f"the shape of {shown} is not a list of whole numbers")
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _refused(name, f"the bytes of {shown} have no beginning and end")
    if len(shape) > MAX_AXES:
        return 0
    size = math.prod(shape)
    if 8 * (offsets[1] - offsets[0]) != _BITS[dtype] * size:
        raise _refused(name, f"{shown} does not have as many bytes as its shape needs")
    return size


def _are_counts(values: object) -> TypeGuard[list[int]]:
    """Whether this is a list of whole numbers that are not negative."""
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _refused(name: str, why: str) -> UnsafeFile:
    return UnsafeFile(f"{name!r} has no valid safetensors table of contents, so it is not read: {why}.")
