"""What would make a refusal slow or large: tensors that are made on the way to it, and memory that Python takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargestTensor(TorchDispatchMode):
    """Bytes behind the largest tensor that is made, on any device but "meta", where nothing is behind one."""

    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for made in tree_leaves(out):
            if isinstance(made, torch.Tensor) and not made.is_meta:
                self.bytes = max(self.bytes, made.untyped_storage().nbytes())
        return out


# torch imports much of itself when a mode is first entered, which is no memory of what is measured
with LargestTensor():
    torch.empty(0)


@dataclass
class Peak:
    """Bytes that Python's own objects took at most, above what they took before."""

    bytes: int = 0


@contextmanager
def python_memory() -> Iterator[Peak]:
    """The peak of what is allocated in a block; text and bytes that zlib and JSON make are among it, tensors are not."""
    peak = Peak()
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
