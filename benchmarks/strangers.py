"""How long visitors wait while somebody attacks, against a quiet time, over HTTP from an app of its own. Agreed: p95 at most 2 x.

    python -m benchmarks.strangers

The visitors and the attacks are those of tests/http/neighbours.py; tests/http/test_strangers.py checks what the visitors get.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from tests.http.neighbours import (
    Experience,
    invented_pages,
    neighbours,
    trust_that_nobody_reads,
    under,
    uploads_broken_off,
)
from tests.http.server import Server
from tests.http.visitor import Visitor

MOST_TIMES = 2.0


def p95(seen: Experience) -> float:
    """Seconds that 95% of the steps took at most."""
    return float(np.percentile(seen.seconds, 95))


def main() -> int:
    """Print a line for each attack; 1 where visitors waited too long, or were refused."""
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder)).start()
        try:
            with Visitor(server) as first:
                config = first.config
            neighbours(server, config)  # warm
            calm = neighbours(server, config)
            print(f"{'quiet':28} p95 {p95(calm):.3f} s")
            for attack in (trust_that_nobody_reads, uploads_broken_off, invented_pages):
                with under(attack, server, config):
                    seen = neighbours(server, config, calm=calm)
                ratio, refused = p95(seen) / p95(calm), len(seen.refusals) + len(seen.wrong)
                bad |= ratio > MOST_TIMES or refused > 0
                print(
                    f"{attack.__name__:28} p95 {p95(seen):.3f} s, {ratio:.2f} x quiet, {refused} refused or wrong"
                )
        finally:
            server.stop()
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
