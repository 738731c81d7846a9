"""How long visitors wait while one client attacks and after it, against a quiet time. Agreed: 95% served,
p95 at most 4 x, 400 MiB more memory at most; after it all served.

    python -m benchmarks.strangers [ATTACK ...]

Over HTTP, from an app of its own that has everything that can be asked for. The visitors are those of tests/http/neighbours.py, the
attacks those there and in tests/http/attacks.py; tests/http/test_strangers.py and tests/http/test_doors.py check what the visitors
get. All of it takes about four minutes; times mean something on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from tests.http import attacks, neighbours
from tests.http.neighbours import Attack, Experience, Target, under
from tests.serving import Server

MOST_TIMES, LEAST_SERVED, MOST_MEMORY = 4.0, 0.95, 400.0
SPREAD_SECONDS = 6.0  # over which the twenty visitors come


def begun_at_once(attack: Callable[..., None], server: Target, begun: Any, stop: Any) -> None:
    """An attack of tests/http/attacks.py, which does not tell when it has begun."""
    begun.set()
    attack(server, stop)


ATTACKS: dict[str, Attack] = {
    one.__name__: partial(begun_at_once, one)
    for one in (
        attacks.questions_that_wait,
        attacks.bodies_that_stall,
        attacks.requests_without_end,
        attacks.refused_without_end,
        attacks.long_filters,
        attacks.answers_that_nobody_reads,
        attacks.pages_without_end,
    )
} | {one.__name__: one for one in (neighbours.trust_that_nobody_reads, neighbours.uploads_broken_off)}


def p95(seen: Experience) -> float:
    """Seconds that 95% of the steps took at most."""
    return float(np.percentile(seen.seconds, 95))


def line(name: str, seen: Experience, calm: Experience, server: Server, quiet: float) -> bool:
    """Print what visitors met; returns whether it is as agreed.

    Args:
        quiet: MiB of the app before all attacks.
    """
    ratio, refused = p95(seen) / p95(calm), len(seen.refusals) + len(seen.wrong)
    is_served = len(seen.wrong) == 0 and refused <= (1 - LEAST_SERVED) * len(calm.seconds)
    is_well = ratio <= MOST_TIMES and is_served and server.memory("VmHWM") <= quiet + MOST_MEMORY
    memory = f"{server.memory():5.0f} MiB, {server.memory('VmHWM'):5.0f} at most"
    print(
        f"{name:38} p95 {p95(seen):6.3f} s, {ratio:5.2f} x quiet, {refused} refused or wrong, {memory}{'' if is_well else '  <-'}",
        flush=True,
    )
    return is_well


def main() -> int:
    """Print a line for the time of each attack and for the time after it; 1 where visitors waited too long, or were refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attacks", nargs="*", choices=[*ATTACKS, []])
    chosen = parser.parse_args().attacks
    is_well = True
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), ("--model", "mini", *attacks.FLAGS)).start()
        try:
            neighbours.neighbours(server, spread_seconds=SPREAD_SECONDS)  # warm
            calm = neighbours.neighbours(server, spread_seconds=SPREAD_SECONDS)
            quiet = server.memory()
            line("quiet", calm, calm, server, quiet)
            for name, attack in ATTACKS.items():
                if chosen and name not in chosen:
                    continue
                server.reset_peak()
                with under(attack, server):
                    seen = neighbours.neighbours(server, calm=calm, spread_seconds=SPREAD_SECONDS)
                is_well &= line(name, seen, calm, server, quiet)
                seen = neighbours.neighbours(server, calm=calm, spread_seconds=SPREAD_SECONDS)
                is_well &= line("  after it", seen, calm, server, quiet)
        finally:
            server.stop()
    return int(not is_well)


if __name__ == "__main__":
    sys.exit(main())
