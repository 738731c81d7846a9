"""Read parameters from a file of unknown origin: safetensors, or torch's format without running anything in it."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from vit_viz.checkpoints.contents import MAX_AXES, announced_sizes, check_regular
from vit_viz.checkpoints.torch_files import check_torch_file, damaged, unsafe_pickle
from vit_viz.errors import CheckpointError, UnsafeFile
from vit_viz.silence import without_warnings

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt")
MAX_NUMBERS = 12_000_000_000
_MAX_TENSORS = 20_000
_MAX_HEADER_BYTES = (
    10_000_000  # of JSON at the start of a safetensors file; a ViT of 7 billion parameters has 0.1
)
_REGISTERS = ("register_tokens", "storage_tokens", "reg_token")
_NESTS = ("state_dict", "model", "teacher", "model_state_dict", "module")


@dataclass(frozen=True)
class Weights:
    """What one file holds: parameters by name as they were stored, the text that came with them, and the file's hash."""

    state: Mapping[str, Tensor]
    metadata: Mapping[str, Any]
    sha256: str


def read_weights(path: Path, *, max_numbers: int = MAX_NUMBERS) -> Weights:
    """Read a checkpoint file.

    Args:
        path: a .safetensors file, or one that torch.save wrote (.pth, .pt, .bin, .ckpt).
        max_numbers: what all its tensors may hold together; each becomes 4 bytes, whatever it takes in the file.

    Returns:
        Its parameters, memory-mapped where possible, in the dtype of the file.

    Raises:
        UnsafeFile: reading it would run code, or it claims to hold more than it does.
        CheckpointError: it is damaged, no checkpoint, or not even a file, such as a named pipe, whose opening would wait.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise CheckpointError(f"{path.name!r} is not a checkpoint: expected one of {', '.join(SUFFIXES)}.")
    check_regular(path)
    state: Mapping[str, Tensor]
    metadata: Mapping[str, Any] = {}
    if path.suffix.lower() == ".safetensors":
        _check_header(path, max_numbers)
        state, metadata = _read_safetensors(path)
    else:
        state = _read_torch(path, max_numbers)
    _check_bounds(state, path.name, max_numbers)
    return Weights(state=state, metadata=metadata, sha256=hash_file(path))


def hash_file(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return (
            hashlib.file_digest(file, "sha256").hexdigest()
            if hasattr(hashlib, "file_digest")
            else _digest(file)
        )


def _digest(file: Any) -> str:
    """hashlib.file_digest for Python 3.10."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


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
            header = _without_empty_registers(json.loads(file.read(length)))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path.name!r} cannot be read as safetensors: it is damaged, cut short, or another kind of file."
        ) from error
    sizes = announced_sizes(header, path.name)
    if len(sizes) > _MAX_TENSORS or sum(sizes) > max_numbers:
        raise UnsafeFile(_too_much(path.name, max_numbers))
    if any(size < 1 for size in sizes):
        raise UnsafeFile(f"{path.name!r} holds a tensor without numbers, or of more than {MAX_AXES} axes.")


def _without_empty_registers(header: Any) -> Any:
    """The table of contents without the empty tensor in which a DINOv3 without registers keeps none; others are refused."""
    if not isinstance(header, dict):
        return header
    return {name: entry for name, entry in header.items() if not _is_empty_register(name, entry)}


def _is_empty_register(name: str, entry: Any) -> bool:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    return name.endswith(_REGISTERS) and isinstance(shape, list) and len(shape) == 3 and shape[1] == 0


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


def _read_torch(path: Path, max_numbers: int) -> dict[str, Tensor]:
    is_zip = check_torch_file(path, max_numbers=max_numbers)
    try:
        with without_warnings():  # about pickle protocols: what cannot be read is refused below
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except pickle.UnpicklingError as error:
        raise unsafe_pickle(path.name) from error
    except Exception as error:  # on a damaged file torch's reader may raise anything
        raise damaged(path.name) from error
    return _state_of(content, path.name)


def _state_of(content: Any, name: str) -> dict[str, Tensor]:
    """The state dict inside the usual wrappers: {"state_dict": ...}, {"model": ...}, {"teacher": ...}."""
    for _ in range(3):
        nested = [
            key for key in _NESTS if isinstance(content, Mapping) and isinstance(content.get(key), Mapping)
        ]
        if not nested:
            break
        content = content[nested[0]]
    if (
        not isinstance(content, Mapping)
        or not content
        or not all(isinstance(v, Tensor) for v in content.values())
    ):
        raise CheckpointError(
            f"{name!r} holds no state dict: expected a dictionary from parameter names to tensors."
        )
    return {str(key).removeprefix("module."): value.detach() for key, value in content.items()}


def _check_bounds(state: Mapping[str, Tensor], name: str, max_numbers: int) -> None:
    if len(state) > _MAX_TENSORS or sum(tensor.numel() for tensor in state.values()) > max_numbers:
        raise UnsafeFile(_too_much(name, max_numbers))
    for key, tensor in state.items():
        if (
            tensor.layout != torch.strided
            or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()
        ):
            raise UnsafeFile(f"{name!r} holds a tensor {key!r} that claims to be larger than its data.")


def _json(text: str) -> Any:
    """Metadata is text; where it is JSON, what the JSON says."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
