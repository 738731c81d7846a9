"""How long one pass of a model takes on a device: measured where traces are recorded, for what is said before long computations."""

from __future__ import annotations

import threading

_MOST = 256  # pairs of weights and numbers of tokens that are remembered


class Pace:
    """The shortest time of a pass that was seen, by weights and number of tokens: another process can only slow a pass down."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: dict[tuple[str, int], float] = {}

    def note(self, weights: str, tokens: int, seconds: float) -> None:
        """A pass took so long; beyond `_MOST` the pair that was noted longest ago is forgotten."""
        key = weights, tokens
        with self._lock:
            self._seconds[key] = min(seconds, self._seconds.pop(key, seconds))
            if len(self._seconds) > _MOST:
                del self._seconds[next(iter(self._seconds))]

    def seconds(self, weights: str, tokens: int) -> float | None:
        """About how long a pass takes; None where none was seen."""
        return self._seconds.get((weights, tokens))
