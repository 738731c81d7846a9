"""2,500 odd and damaged files through the real upload: each is a picture or one sentence, and nothing stays behind."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.effort import effort
from tests.http.hostile import KINDS, encoded, mutated, photo, valid_files
from tests.http.visitor import Told, Visitor
from tests.serving import Server

pytestmark = [pytest.mark.server, pytest.mark.slow]
WORKERS = 3
DAMAGED = effort(700)  # files
HANGS = 60.0  # seconds after which one file counts as never answered
SETTLE_SECONDS = 60.0  # that the server gets to give memory back
QUIET_SECONDS = 25  # without any change; the inbox remembers pictures for 20 seconds
AT_ONCE = """
import vit_viz.session.uploads
vit_viz.session.uploads.UploadStore.__init__.__kwdefaults__['max_seconds'] = 20.0
vit_viz.session.uploads.sweep_every.__defaults__ = (1.0,)
"""  # a picture is kept for an hour; the test cannot wait for that


@dataclass
class Run:
    """What happened to the files, and how long the slowest of them took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


def is_sentence(text: str) -> bool:
    """Whether a visitor reads our words: one line that ends as a sentence does, and nothing of the machine."""
    foreign = ("Traceback", 'File "', "Error(", "<img", "/tmp", "site-packages")
    return (
        10 < len(text) <= 400
        and text[-1] in ".…"
        and "\n" not in text
        and not any(f in text for f in foreign)
    )


def judge(name: str, told: Told, seconds: float, run: Run) -> None:
    """Note what became of one file."""
    run.slowest = max(run.slowest, seconds)
    if not told.refusals:
        run.outcomes["picture" if told.value.get("image") else "silence"] += 1
    for text in told.refusals:
        run.outcomes[text] += 1
        if not is_sentence(text):
            run.wrong.append(f"{name}: {text!r}")


def feed(server: Server, files: Iterator[tuple[str, bytes]], run: Run) -> None:
    """One visitor who brings file after file."""
    with Visitor(server, timeout=HANGS) as visitor:
        visitor.arrive()
        while True:
            with run.lock:
                file = next(files, None)
            if file is None:
                return
            started = time.monotonic()
            try:
                told = visitor.bring(*file)
            except Exception as error:
                run.wrong.append(f"{file[0]}: {error!r}")
                continue
            with run.lock:
                judge(file[0], told, time.monotonic() - started, run)


def feed_all(server: Server, files: Iterator[tuple[str, bytes]]) -> Run:
    """Some visitors at once who bring all files."""
    run = Run()
    threads = [threading.Thread(target=feed, args=(server, files, run), daemon=True) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    return run


def warmed_up(server: Server) -> float:
    """MiB of the app after it has done once what the files will let it do again and again, and has come to rest."""
    small = valid_files()
    large = [encoded(photo(seed, width=1800, height=1200), kind) for seed in range(3) for kind in KINDS]
    feed_all(server, (("warm.png", data) for data in small + large))
    return settled(server)


def settled(server: Server) -> float:
    """MiB of the app once it gives no more memory back."""
    deadline = time.monotonic() + SETTLE_SECONDS
    quiet, least = 0, server.memory()
    while time.monotonic() < deadline and quiet < QUIET_SECONDS:
        time.sleep(1)
        quiet = quiet + 1 if server.memory() > least - 1 else 0
        least = min(least, server.memory())
    return server.memory()


def test_no_odd_or_damaged_file_harms_the_server(start_app: Callable[..., Server], shared_data: Path) -> None:
    server = start_app("--model", "mini", before=AT_ONCE)
    idle = warmed_up(server)
    odd = [p for p in sorted((shared_data / "odd_images").rglob("*")) if p.is_file()]
    valid = valid_files()
    started = time.monotonic()
    first = feed_all(server, ((p.name, p.read_bytes()) for p in odd))
    second = feed_all(server, (mutated(i, valid) for i in range(DAMAGED)))
    seconds = time.monotonic() - started
    after = settled(server)
    figures = (
        f"{seconds:.0f} s, slowest {max(first.slowest, second.slowest):.2f} s, {idle:.0f} -> {after:.0f} MiB"
    )
    print(figures, first.outcomes.most_common(30), second.outcomes.most_common(30), sep="\n")
    assert first.wrong + second.wrong == []
    assert first.outcomes["silence"] + second.outcomes["silence"] == 0
    assert sum(first.outcomes.values()) == len(odd)
    assert sum(second.outcomes.values()) == DAMAGED
    assert first.outcomes["picture"] > 300
    assert 0.1 < second.outcomes["picture"] / DAMAGED < 0.75
    assert server.is_alive()
    assert server.uploaded() == []
    assert "Traceback" not in server.said()
    assert after <= 1.1 * idle, figures
