"""What tells the weights of a module from any others, as they lie in memory."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model.submodules import submodules_of

_ROW = 509
"""Words of 8 bytes in a row; a prime, so that rows of a weight, of 192 or 768 numbers, never lie one below the other."""


Seen = TypeVar("Seen")


def weights_of(module: nn.Module) -> str:
    """Which weights a module has now, see `weights_digest`; equal in any process."""
    return looked_up(module, weights_digest)


def looked_up(thing: nn.Module | Tensor, look: Callable[[Any], Seen]) -> Seen:
    """What is seen of a module or tensor now, or inside `held_states` what was seen there at first."""
    held: dict[Any, Any] | None = getattr(_HELD, "seen", None)
    if held is None:
        return look(thing)
    key = id(thing), look
    if key not in held:
        held[key] = thing, look(thing)  # with the thing, so that no other one comes to lie in its place
    seen: Seen = held[key][1]
    return seen


@contextmanager
def held_states() -> Iterator[None]:
    """Look at each module once in this thread: all parts of one answer are of the same weights, which are read once."""
    if getattr(_HELD, "seen", None) is not None:
        yield
        return
    _HELD.seen = {}
    try:
        yield
    finally:
        _HELD.seen = None


_HELD = threading.local()


def weights_digest(module: nn.Module) -> str:
    """Parameters and buffers in one word: their names, shapes, precisions and every bit of their numbers, the same on any device.

    torch counts writes to a tensor, but not those through `.data`, so every number is read. Of a large tensor, laid out as rows of
    words, the sums of all rows and of all columns are hashed (modulo 2^64): a number that changed changes two of them, two that
    changed places four. That takes a few percent of a forward pass; SHA-256 of all bytes would take half of one. A tensor that
    does not show its bytes (sparse, quantised, on no device) is known by its identity and its count of writes.
    """
    words: list[str] = []
    pieces: list[NDArray[Any] | Tensor] = []
    with (
        torch._C.DisableTorchFunction()
    ):  # edits watch calls of torch, and parameters may be of a class of their own
        for part in submodules_of(module):
            for name, tensor in (*part._parameters.items(), *part._buffers.items()):
                if tensor is None:
                    continue
                try:
                    pieces += looked_up(tensor, _content)
                    words.append(f"{name} {tensor.dtype} {tensor.shape}")
                except (RuntimeError, TypeError, ValueError):
                    words.append(f"{name} {id(tensor):x} {write_count(tensor)}")
        on_gpu = [piece for piece in pieces if not isinstance(piece, np.ndarray)]
        if on_gpu and len(on_gpu) == len(pieces):  # one copy waits for the device once
            pieces = [torch.cat([piece.to(on_gpu[0].device) for piece in on_gpu])]
        read = [(piece if isinstance(piece, np.ndarray) else piece.cpu().numpy()).data for piece in pieces]
    content = b"".join(["\n".join(words).encode(), *read])
    return f"module {hashlib.sha256(content).hexdigest()[:32]}"


def write_count(tensor: Tensor) -> int:
    """How often torch saw a tensor written to; 0 where it does not count, because the tensor was made in inference mode."""
    return 0 if tensor.is_inference() else tensor._version


def _content(tensor: Tensor) -> list[NDArray[Any] | Tensor]:
    """All bytes of a small tensor; sums of columns and rows of a large one, and the bytes that fill no row."""
    plain = tensor.detach()
    if plain.is_cuda:
        return _content_on_gpu(plain.contiguous().reshape(-1).view(torch.uint8))
    # by NumPy: torch would wait for its other threads at each of these sums
    try:
        numbers = plain.numpy().reshape(-1)
    except TypeError:  # of a precision that NumPy does not have, or on another device
        numbers = plain.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    rows = numbers.nbytes // (8 * _ROW)
    if rows < 3:
        return [numbers]
    raw, end = numbers.view(np.uint8), 8 * _ROW * rows
    table = raw[:end].view(np.int64).reshape(rows, _ROW)
    return [np.add.reduce(table, 0), np.add.reduce(table, 1), raw[end:]]


def _content_on_gpu(raw: Tensor) -> list[NDArray[Any] | Tensor]:
    """The same bytes on the GPU where they are."""
    rows = len(raw) // (8 * _ROW)
    if rows < 3:
        return [raw]
    end = 8 * _ROW * rows
    table = (raw.clone() if raw.storage_offset() % 8 else raw)[:end].view(torch.int64).view(rows, _ROW)
    return [table.sum(0).view(torch.uint8), table.sum(1).view(torch.uint8), raw[end:]]
