"""Read parameters from a file of unknown origin: safetensors, or torch's format without running anything in it."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import stat
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from safetensors import SafetensorError, safe_open

from vit_viz.checkpoints.torch_files import (
    check_torch_file,
    damaged,
    reading_notes_as_nothing,
    state_of_script,
    tensors_of_script,
    unsafe_pickle,
)
from vit_viz.checkpoints.unwrapping import Unwrapped, unwrapped
from vit_viz.errors import CheckpointError, UnsafeFile
from vit_viz.lazy import Tensor, torch
from vit_viz.silence import without_warnings

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt")
MAX_NUMBERS = 12_000_000_000
_MAX_TENSORS = 20_000
_MAX_HEADER_BYTES = 10_000_000  # of JSON in front of the tensors; a ViT of 7 billion parameters has 0.1 MB
_REGISTERS = ("register_tokens", "storage_tokens", "reg_token")
_MAX_AXES = 8
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}

_OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class Weights:
    """What one file holds: a model as it was stored, the text that came with it, and the file's hash."""

    model: Unwrapped
    metadata: Mapping[str, Any]
    sha256: str


def read_weights(path: Path, *, max_numbers: int = MAX_NUMBERS) -> Weights:
    """Read a checkpoint file.

    Args:
        path: a .safetensors file, or one that torch.save or torch.jit.save wrote (.pth, .pt, .bin, .ckpt).
        max_numbers: what all its tensors may hold together; each becomes 4 bytes, whatever it takes in the file.

    Returns:
        The parameters of one model in it (`unwrapping`), memory-mapped where possible, in the dtype of the file.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise CheckpointError(f"{path.name!r} is not a checkpoint: expected one of {', '.join(SUFFIXES)}.")
    check_regular(path)
    content: Any
    metadata: Mapping[str, Any] = {}
    has_objects = False
    if path.suffix.lower() == ".safetensors":
        _check_header(path, max_numbers)
        content, metadata = _read_safetensors(path)
    else:
        content, has_objects = _read_torch(path, max_numbers)
    try:
        model = unwrapped(content)
    except ValueError as error:
        raise UnsafeFile(_too_much(path.name, max_numbers)) from error
    if model is None and has_objects:  # perhaps the model itself, which only its own code could build
        raise unsafe_pickle(path.name)
    if model is None:
        raise CheckpointError(
            f"{path.name!r} holds no state dict: expected a dictionary from parameter names to tensors."
        )
    tensors = [*model.state.items(), *model.text.items()]
    if len(tensors) > _MAX_TENSORS or sum(one.numel() for _, one in tensors) > max_numbers:
        raise UnsafeFile(_too_much(path.name, max_numbers))
    for key, tensor in tensors:
        if (
            tensor.layout != torch.strided
            or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()
        ):
            raise UnsafeFile(f"{path.name!r} holds a tensor {key!r} that claims to be larger than its data.")
    return Weights(model=model, metadata=metadata, sha256=hash_file(path))


def check_regular(path: Path) -> None:
    """Refuse anything but a regular file, without opening it: a named pipe would wait for its writer, a device may have no end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise CheckpointError(
            f"{path.name!r} cannot be read: it does not exist, or is a broken link."
        ) from error
    if not stat.S_ISREG(mode):
        kind = _OTHER_KINDS.get(stat.S_IFMT(mode), "something else")
        raise CheckpointError(f"{path.name!r} is {kind}, and not a file that can be read.")


def hash_file(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_header(path: Path, max_numbers: int) -> None:
    """Refuse a safetensors file whose header declares too much; its offsets are checked by the reader."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEADER_BYTES:
                raise UnsafeFile(
                    f"{path.name!r} has a table of contents of more than {_MAX_HEADER_BYTES // 10**6} MB, or is not safetensors: "
                    "it is not read."
                )
            contents = json.loads(file.read(length))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path.name!r} cannot be read as safetensors: it is damaged, cut short, or another kind of file."
        ) from error
    if not isinstance(contents, Mapping):
        raise _refused(path.name, "it lists no tensors by name")
    metadata = contents.get("__metadata__", {})
    if not isinstance(metadata, Mapping) or not all(isinstance(text, str) for text in metadata.values()):
        raise _refused(path.name, "its metadata is not text by name")
    sizes = []
    for key, entry in contents.items():
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if key.endswith(_REGISTERS) and isinstance(shape, list) and len(shape) == 3 and shape[1] == 0:
            continue  # in which a DINOv3 without registers keeps none; other empty tensors are refused
        if key != "__metadata__":
            sizes.append(_size(entry, path.name, key))
    if len(sizes) > _MAX_TENSORS or sum(sizes) > max_numbers:
        raise UnsafeFile(_too_much(path.name, max_numbers))
    if any(size < 1 for size in sizes):
        raise UnsafeFile(f"{path.name!r} holds a tensor without numbers, or of more than {_MAX_AXES} axes.")


def _size(entry: Any, name: str, key: str) -> int:
    """How many numbers a tensor claims to have, 0 where it has more than `_MAX_AXES` axes; UnsafeFile where the table lies."""
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
    if len(shape) > _MAX_AXES:
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


def _too_much(name: str, max_numbers: int) -> str:
    return (
        f"{name!r} asks for more than the {max_numbers / 1e6:,.0f} million parameters in {_MAX_TENSORS:,} tensors that are loaded "
        "here; choose a smaller model."
    )


def _read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a mapping
            return state, {name: _json(text) for name, text in (file.metadata() or {}).items()}
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"{path.name!r} cannot be read as safetensors: it is damaged, cut short, or another kind of file."
        ) from error


def _read_torch(path: Path, max_numbers: int) -> tuple[Any, bool]:
    """What the file holds, and whether it has objects that are not read."""
    kind, has_objects = check_torch_file(path, max_numbers=max_numbers), False
    try:
        file = tensors_of_script(path) if kind == "script" else path
        # warnings are about pickle protocols: what cannot be read is refused below
        with (
            without_warnings(),
            nullcontext(False) if kind == "older" else reading_notes_as_nothing(file) as has_objects,
        ):
            content = torch.load(file, map_location="cpu", weights_only=True, mmap=kind == "zip")
    except pickle.UnpicklingError as error:
        raise unsafe_pickle(path.name) from error
    except Exception as error:  # on a damaged file torch's reader may raise anything
        raise (unsafe_pickle if has_objects else damaged)(path.name) from error
    return (state_of_script(content) if kind == "script" else content), has_objects


def _json(text: str) -> Any:
    """Metadata is text; where it is JSON, what the JSON says."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
