"""How soon 32 visitors at once get a view that is kept, over HTTP from an app of its own. Agreed: p95 at most 1 s.

    python benchmarks/crowd.py

The crowd is that of tests/http/test_load.py, which checks what the visitors get.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from tests.http.test_load import crowd
from tests.serving import Server

MOST_SECONDS = 1.0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), ("--model", "mini")).start()
        try:
            tally = crowd(server)
        finally:
            server.stop()
    p50, p95 = np.percentile(tally.seconds, [50, 95])
    print(f"{tally.actions} actions, {len(tally.seconds)} views, p50 {p50:.3f} s, p95 {p95:.3f} s")
    return int(p95 > MOST_SECONDS or bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
