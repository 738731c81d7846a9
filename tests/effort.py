"""How much the tests that try things at random try: VIT_VIZ_TEST_EFFORT, 1 unless it is set; before a release 4."""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("VIT_VIZ_TEST_EFFORT", "1"))


def effort(count: int) -> int:
    """So many tries, times the effort."""
    return max(1, round(count * EFFORT))


WINDOWS = [(390, True), (1440, False), *([(390, False), (1440, True)] if EFFORT >= 2 else [])]
"""(width, whether it is dark) of windows in which everything can be read: each width and each theme; all pairs with more effort."""
