"""What a command shows while it works and when it is done: a bar, a table, one line for an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from vit_viz.progress import Progress


def one_line(error: BaseException) -> str:
    """What an exception says, without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def bar(words: str) -> Iterator[Progress | None]:
    """A bar on stderr that follows a share in [0, 1]; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # comes with huggingface_hub

    with tqdm(
        total=100, desc=words, bar_format="{desc} {bar:30} {percentage:3.0f}%", leave=False, delay=0.5
    ) as shown:

        def follow(share: float) -> None:
            shown.n = round(100 * share)
            shown.refresh()

        yield follow


@contextmanager
def counting(words: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar that counts things, with their rate and the time that is left; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(unit=f" {words}", smoothing=0.1, dynamic_ncols=True) as shown:

        def follow(done: int, total: int) -> None:
            if shown.total is None:  # what an earlier run has done says nothing about the rate
                shown.total, shown.initial, shown.n, shown.last_print_n = total, done, done, done
            shown.update(done - shown.n)

        yield follow


@contextmanager
def fetching(words: str) -> Iterator[Callable[[int, int], None] | None]:
    """The same for a download, which tells bytes."""
    with bar(words) as follow:
        yield None if follow is None else lambda done, total: follow(done / total if total else 0.0)


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> str:
    """Rows of words in columns that are as wide as their longest word; the last one is as it is."""
    lines = [list(head), *rows] if head else list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            [*(word.ljust(width) for word, width in zip(line[:-1], widths, strict=False)), line[-1]]
        ).rstrip()
        for line in lines
    )
