"""Recycled memory for traces: copying into a warm buffer is free, allocating a fresh one costs page faults.

A trace owns an `Arena`; when the last holder drops the trace, its buffers return to the pool that they came from. A buffer is given
out again only when no tensor and no array refers to it any more, so a row that a caller kept never changes.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from functools import lru_cache

from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, torch

IDLE_BYTES = 256 * 2**20
"""Idle memory that a pool keeps by default."""


class BufferPool:
    """Buffers that are waiting for the next trace; beyond `max_idle_bytes` the oldest are freed. Thread-safe."""

    def __init__(self, max_idle_bytes: int = IDLE_BYTES) -> None:
        self.max_idle_bytes = max_idle_bytes
        self._idle: list[Tensor] = []
        # appended to by finalizers, which may run while the lock is held
        self._returned: deque[Tensor] = deque()
        self._lock = threading.Lock()

    @property
    def idle_bytes(self) -> int:
        """Memory that is held for the next trace."""
        with self._lock:
            self._settle()
            return sum(buffer.nbytes for buffer in self._idle)

    def take(self, numel: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """A flat buffer of at least `numel` numbers, content undefined: a recycled one of up to twice the size, else a new one."""
        with self._lock:
            self._settle()
            fits = [
                i
                for i, buffer in enumerate(self._idle)
                if numel <= buffer.numel() <= 2 * numel
                and buffer.dtype == dtype
                and buffer.device == device
                and _is_unshared(buffer)
            ]
            if fits:
                return self._idle.pop(min(fits, key=lambda i: self._idle[i].numel()))
        return torch.empty(numel, dtype=dtype, device=device)

    def give_back(self, buffers: list[Tensor]) -> None:
        """Return buffers; they are reused once nothing refers to them."""
        self._returned.extend(buffers)
        buffers.clear()
        if self._lock.acquire(blocking=False):  # a finalizer must never wait; the next call sees to the rest
            try:
                with torch._C.DisableTorchFunction():  # the pass that this interrupts may be watched
                    self._settle()
            finally:
                self._lock.release()

    def _settle(self) -> None:
        while self._returned:
            self._idle.append(self._returned.popleft())
        excess = sum(buffer.nbytes for buffer in self._idle) - self.max_idle_bytes
        while excess > 0 and self._idle:
            excess -= self._idle.pop(0).nbytes


@lru_cache(maxsize=1)
def shared_pool() -> BufferPool:
    """The pool of this process."""
    return BufferPool()


class Arena:
    """The memory of one trace: for each role ("q", "k", ...) one buffer with a slot per layer.

    Args:
        pool: where buffers come from and return to.
        slots: layers that are expected; a role grows when there are more.
    """

    def __init__(self, pool: BufferPool, *, slots: int) -> None:
        self._pool = pool
        self._expected = max(1, slots)
        self._buffers: list[Tensor] = []
        self._roles: dict[str, Tensor] = {}  # role -> [capacity, *shape]
        # their slots, sliced once: indexing costs more than a small copy
        self._slots: dict[str, tuple[Tensor, ...]] = {}
        self._used: dict[str, int] = {}
        self._finalizer = weakref.finalize(self, pool.give_back, self._buffers)

    def store(self, role: str, tensor: Tensor) -> int:
        """Copy `tensor` into the next slot of a role as fp32; returns the slot."""
        slot, slots = self._used.get(role, 0), self._slots.get(role, ())
        if slots and slots[0].shape != tensor.shape:
            raise CaptureError(
                "All layers of a trace need the same numbers of heads and tokens (those of windows, pyramids and branches "
                f"cannot be traced), but {role} is {list(slots[0].shape)} in one layer of this model and {list(tensor.shape)} in "
                "another."
            )
        if slot == len(slots):
            self._grow(role, tensor)
        place = self._slots[role][slot]
        place.copy_(tensor)
        self._used[role] = slot + 1
        return slot

    def view(self, role: str, slot: int) -> Tensor:
        """One slot of a role."""
        return self._slots[role][slot]

    def stacked(self, role: str) -> Tensor | None:
        """All used slots of a role, [slots, *shape], or None where there are none."""
        slots = self._roles.get(role)
        return None if slots is None else slots[: self._used[role]]

    def copy(self, other: Arena) -> None:
        """Take over what another arena holds, with one copy for each role."""
        for role, count in other._used.items():
            stored = other._roles[role][:count]
            while count > len(self._slots.get(role, ())):
                self._grow(role, stored[0])
            self._roles[role][:count].copy_(stored)
            self._used[role] = count

    def release(self) -> None:
        """Return the memory now, after a capture that failed."""
        self._roles.clear()
        self._slots.clear()
        self._finalizer()

    def _grow(self, role: str, like: Tensor) -> None:
        """Make room for the expected layers, or for twice as many as before; ordinary tensors, even in inference mode."""
        old = self._roles.get(role)
        count = self._expected if old is None else 2 * len(old)
        with torch.inference_mode(False), torch.no_grad():
            buffer = self._pool.take(count * like.numel(), torch.float32, like.device)
            self._buffers.append(buffer)
            new = buffer[: count * like.numel()].view(count, *like.shape)
            if old is not None:
                new[: len(old)].copy_(old)
            self._roles[role], self._slots[role] = new, new.unbind(0)


def _is_unshared(buffer: Tensor) -> bool:
    """Whether `buffer` is the only tensor on its memory: arrays and views count as others."""
    storage = buffer.untyped_storage()
    count: int = torch._C._storage_Use_Count(storage._cdata)
    return count <= 2  # the buffer itself and `storage`
