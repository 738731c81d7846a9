"""How many faults in single places the tests notice.

    python -m benchmarks.mutations --sample 300 --seed 0 --workers 2 --results /somewhere/mutations

A fault is one small change: a comparison, a constant, an argument, a statement, an axis. Each runs in a copy of the repository
against the tests that call the function around it (for JavaScript: the test files that load it), and is caught when one fails or
does not end. The copies lie in the system's temporary folder; an interrupted run goes on where it stopped, if it is given the same
--results. Browser tests and slow tests are left out. Faults that change nothing that anybody could see are listed with the reason
in equivalent.txt.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import random
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from benchmarks.mutations.covering import TestMap, digest_of
from benchmarks.mutations.faults import Fault, compiles, python_faults
from benchmarks.mutations.script_faults import script_faults
from benchmarks.mutations.trial import Outcome, Workplace

ROOT = Path(__file__).resolve().parents[2]
OF_OTHERS = ("vit_viz/web/kit/preact.js",)
"""Written by others, and tested there."""
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
ROOMS = {
    "JavaScript": ("vit_viz/**/*.js",),
    "page Python": ("vit_viz/ui/**/*.py", "vit_viz/explorer/*.py", "vit_viz/__init__.py"),
    "capture": ("vit_viz/capture/*.py",),
    "analyses": (
        "vit_viz/analyses/*.py",
        "vit_viz/analyses/lesson.py",
        "vit_viz/geometry.py",
        "vit_viz/results.py",
    ),
    "model": ("vit_viz/model/*.py",),
    "checkpoints": ("vit_viz/checkpoints/**/*.py", "vit_viz/labels.py"),
    "images": ("vit_viz/images/*.py", "vit_viz/samples.py"),
    "figures": ("vit_viz/figures/*.py",),
    "surveys": ("vit_viz/surveys/*.py",),
    "command line, notebook, offline, browser, site": (
        "vit_viz/cli/*.py",
        "vit_viz/notebook/*.py",
        "vit_viz/offline/*.py",
        "vit_viz/browser/*.py",
        "vit_viz/site/*.py",
    ),
    "session and stores": (  # and what no other room has
        "vit_viz/session/*.py",
        "vit_viz/views/*.py",
        "vit_viz/*.py",
    ),
}


def main() -> None:
    """Choose faults, try them, print the table."""
    flags = _flags()
    rooms = {name: files for name, files in room_files(ROOT).items() if not flags.room or name in flags.room}
    chosen = [
        (room, fault) for room, fault in sample(rooms, flags.sample, flags.seed) if flags.path in fault.path
    ]
    flags.results.mkdir(parents=True, exist_ok=True)
    if flags.measure:
        (flags.results / "map.json").unlink(missing_ok=True)
    if not flags.report:
        try_all(
            [fault for _, fault in chosen],
            flags.results,
            workers=flags.workers,
            most_seconds=flags.most_seconds,
            beginning=flags.tests,
        )
    report(chosen, flags.results)


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutations", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--sample", type=int, default=300, help="how many faults are tried; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--room", action="append", choices=ROOMS, help="only this part of the package; may be repeated"
    )
    parser.add_argument("--path", default="", help="only faults in files whose path contains this")
    parser.add_argument(
        "--most-seconds", type=float, default=60.0, help="of tests, as they take without a fault, per fault"
    )
    parser.add_argument(
        "--tests",
        default="tests",
        help="only tests whose path begins with this: quicker, and what others catch is missed",
    )
    parser.add_argument(
        "--measure", action="store_true", help="run all tests anew to see what each of them calls"
    )
    parser.add_argument("--report", action="store_true", help="print what is known already and try nothing")
    default = Path(tempfile.gettempdir()) / "vit_viz-mutations"
    parser.add_argument(
        "--results", type=Path, default=default, help="folder for the map of tests and the outcomes"
    )
    return parser.parse_args()


def room_files(root: Path) -> dict[str, list[str]]:
    """The files of each room; every file of the package that we wrote is in exactly one.

    Raises:
        SystemExit: a room has none: what would be measured is not there; or a file is in no room.
    """
    others = {root / path for path in OF_OTHERS}
    taken: set[Path] = set()
    rooms = {}
    for room, patterns in ROOMS.items():
        files = sorted({file for pattern in patterns for file in root.glob(pattern)} - taken - others)
        if not files:
            raise SystemExit(f"There is no file in the room {room!r}: nothing can be measured.")
        taken.update(files)
        rooms[room] = [file.relative_to(root).as_posix() for file in files]
    missing = {*root.glob("vit_viz/**/*.py"), *root.glob("vit_viz/**/*.js")} - taken - others
    if missing:
        raise SystemExit(f"{min(missing).relative_to(root)} is in no room: it would never be measured.")
    return rooms


def faults_of(path: str) -> list[Fault]:
    """Every fault for one file."""
    source = (ROOT / path).read_bytes()
    return script_faults(path, source) if path.endswith(".js") else python_faults(path, source)


def sample(rooms: dict[str, list[str]], count: int, seed: int) -> list[tuple[str, Fault]]:
    """A random sample of faults: from each room in proportion to its lines, from the kinds of faults in turn."""
    lines = {room: sum((ROOT / f).read_bytes().count(b"\n") for f in files) for room, files in rooms.items()}
    chosen = []
    for room, files in rooms.items():
        chance = random.Random(f"{seed} {room}")
        faults = [fault for path in files for fault in faults_of(path)]
        chance.shuffle(faults)
        kinds: dict[str, list[Fault]] = defaultdict(list)
        for fault in faults:
            kinds[fault.kind].append(fault)
        turns = [
            (place, kind, fault)
            for kind, faults in sorted(kinds.items())
            for place, fault in enumerate(faults)
        ]
        turns.sort(key=lambda turn: turn[:2])
        share = round(count * lines[room] / sum(lines.values())) if count else len(turns)
        valid = (fault for _, _, fault in turns if _is_valid(fault))
        chosen += [(room, fault) for fault in islice(valid, max(share, 1))]
    return chosen


def _is_valid(fault: Fault) -> bool:
    return fault.path.endswith(".js") or compiles(fault.apply((ROOT / fault.path).read_bytes()))


# --- trying


def try_all(
    faults: list[Fault], results: Path, *, workers: int, most_seconds: float, beginning: str = "tests"
) -> None:
    """Bring the map of tests up to date, then try what is not known yet; `workers` processes share the work."""
    tests = TestMap(ROOT, results / "map.json", beginning=beginning)
    stale = tests.stale() if any(fault.path.endswith(".py") for fault in faults) else []
    for path, entry in _shared_out(stale, workers, lambda place, path: place.measure(path)):
        tests.put(path, entry)
        print(f"measured {path}: {len(entry['seconds'])} tests", flush=True)
    known = _known(results)
    waiting = [fault for fault in faults if not _is_settled(known.get(_name(fault)), tests, fault)]
    with (results / "outcomes.jsonl").open("a") as file:

        def judge(place: Workplace, fault: Fault) -> dict[str, object]:
            return asdict(place.judge(fault, tests, most_seconds=most_seconds))

        for fault, outcome in _shared_out(waiting, workers, judge):
            record = {
                "fault": _name(fault),
                "words": fault.words,
                "tests": _tests_digest(tests, fault),
                **outcome,
            }
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"{outcome['status']:8} {outcome['seconds']:6.1f} s  {fault.words}", flush=True)


def _shared_out(things, workers, work):  # type: ignore[no-untyped-def]
    """(thing, result of `work` in a copy of the repository) for all things, from several processes, as they come."""
    if not things:
        return
    context = multiprocessing.get_context("fork")
    waiting, done = context.Queue(), context.Queue()
    for number in range(len(things)):
        waiting.put(number)

    def labour() -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the copy is removed
        with tempfile.TemporaryDirectory(prefix="vit_viz-mutant-") as folder:
            place = Workplace(ROOT, Path(folder).resolve())
            while (number := waiting.get()) is not None:
                done.put((number, work(place, things[number])))

    for _ in range(workers):
        waiting.put(None)
    processes = [context.Process(target=labour) for _ in range(workers)]
    for process in processes:
        process.start()
    try:
        for _ in things:
            number, result = _next(done, processes)
            yield things[number], result
    finally:
        for process in processes:
            process.join(10)
            if process.is_alive():
                process.terminate()


def _next(done, processes):  # type: ignore[no-untyped-def]
    while True:
        try:
            return done.get(timeout=5)
        except queue.Empty:
            if not any(process.is_alive() for process in processes):
                raise SystemExit("A worker ended before its work was done.") from None


def _name(fault: Fault) -> str:
    """The same as long as the file is."""
    return f"{fault.path}@{digest_of(ROOT / fault.path)}:{fault.start}:{fault.kind}:{fault.after}"


def _known(results: Path) -> dict[str, dict[str, object]]:
    file = results / "outcomes.jsonl"
    records = map(json.loads, file.read_text().splitlines()) if file.is_file() else ()
    return {record["fault"]: record for record in records}


def _is_settled(record: dict[str, object] | None, tests: TestMap, fault: Fault) -> bool:
    """A fault that was caught stays so; one that was missed is tried again when its tests have changed."""
    if record is None:
        return False
    return record["status"] in ("caught", "hung") or record["tests"] == _tests_digest(tests, fault)


def _tests_digest(tests: TestMap, fault: Fault) -> str:
    if fault.path.endswith(".js"):
        files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/js").glob("*.js"))
    else:
        files = sorted({test.partition("::")[0] for test in tests.tests_of(fault.path, fault.function)})
    return " ".join(digest_of(ROOT / file) for file in files)


# --- the table


def report(chosen: list[tuple[str, Fault]], results: Path) -> None:
    """Print the table by room, and every fault that was missed."""
    known, reasons = _known(results), equivalents()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    missed, seconds = [], []
    for room, fault in chosen:
        record = known.get(_name(fault))
        if record is None:
            counts[room]["open"] += 1
            continue
        outcome = Outcome(**{key: record[key] for key in ("status", "by", "seconds", "cut")})  # type: ignore[arg-type]
        seconds.append(outcome.seconds)
        caught = outcome.status in ("caught", "hung")
        state = "caught" if caught else "equivalent" if _signature(fault) in reasons else "missed"
        counts[room][state] += 1
        if state == "missed":
            missed.append((outcome.status, fault))
    print(f"\n{'room':20} {'faults':>7} {'caught':>7} {'missed':>7} {'equal':>7} {'open':>7} {'share':>7}")
    for room, count in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        judged = count["caught"] + count["missed"]
        share = f"{100 * count['caught'] / judged:6.1f}%" if judged else "-"
        row = (sum(count.values()), count["caught"], count["missed"], count["equivalent"], count["open"])
        print(f"{room:20} " + " ".join(f"{number:7}" for number in row) + f" {share:>7}")
    print(f"{sum(seconds) / max(len(seconds), 1):.1f} s per fault\n")
    for status, fault in missed:
        print(f"{status:8} {fault.words}")


def equivalents() -> dict[str, str]:
    """Reasons by signature; the file has one fault a line: path | line of code | change | reason.

    Where the text that changes stands in its line more than once, a number says which one is meant, from the second one on.
    """
    reasons = {}
    for line in EQUIVALENT.read_text().splitlines() if EQUIVALENT.is_file() else ():
        if line.strip() and not line.startswith("#"):
            signature, _, reason = line.rpartition(" | ")
            reasons[signature] = reason
    return reasons


def _signature(fault: Fault) -> str:
    """How a fault is named where line numbers may move."""
    line = (ROOT / fault.path).read_text().splitlines()[fault.line - 1].strip()
    before, after = (" ".join(text.split()) for text in (fault.before, fault.after))
    source = (ROOT / fault.path).read_bytes()
    earlier = source[source.rfind(b"\n", 0, fault.start) + 1 : fault.start].decode().count(fault.before)
    which = f" ({earlier + 1})" if earlier else ""
    return f"{fault.path} | {line} | {before}{which} -> {after}".rstrip()


if __name__ == "__main__":
    main()
