"""The command that makes a saved file again and tells how the two differ."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vit_viz.cli.asking import session_of
from vit_viz.cli.commands import OTHER_BYTES, OTHER_NUMBERS
from vit_viz.cli.files import check_folder, written
from vit_viz.drawing.differences import Difference, difference
from vit_viz.drawing.record import versions
from vit_viz.drawing.replay import bytes_of, record_of, replay
from vit_viz.errors import ExportError
from vit_viz.session.run import CACHE_BYTES
from vit_viz.session.session import Session


def again(flags: argparse.Namespace) -> int:
    """Make a file again from what it says of itself; the exit code tells how it differs."""
    before = bytes_of(Path(flags.file))
    if flags.output:
        _check_output(Path(flags.output), Path(flags.file), parents=flags.parents)
    session = session_of(flags) if flags.model else Session(device=flags.device, cache_bytes=CACHE_BYTES)
    made = replay(
        Path(flags.file), session, image=flags.image, may_fetch=lambda name: _may_fetch(flags, name)
    )
    compared = difference(before, made.data)
    if flags.output:
        written(Path(flags.output), made.data, parents=flags.parents)
    print(f"{flags.file}: made again, {_words(compared)}{f': {flags.output}' if flags.output else ''}")
    if not compared.has_equal_bytes:
        _tell_versions(flags.file)
    if compared.has_equal_bytes:
        return 0
    return OTHER_BYTES if compared.largest == 0 else OTHER_NUMBERS


def _words(compared: Difference) -> str:
    if compared.has_equal_bytes:
        return "equal bytes"
    if compared.largest is None:
        return "other numbers: not even the same ones are there"
    if compared.largest == 0:
        return "equal numbers, other bytes"
    return f"other numbers: the largest difference is {' '.join([f'{compared.largest:.2g}', compared.unit]).rstrip()}"


def _tell_versions(file: str) -> None:
    """Say on stderr which versions are others than those that made the file."""
    then = record_of(Path(file)).get("versions")
    if isinstance(then, dict):
        others = [
            f"{name} {then.get(name)}, here {now}"
            for name, now in versions().items()
            if then.get(name) != now
        ]
        if others:
            print(f"vit-viz: it was made with {'; '.join(others)}", file=sys.stderr)


def _check_output(output: Path, file: Path, *, parents: bool) -> None:
    """Refuse a name that says another format than the file has.

    Raises:
        ExportError: it does.
    """
    if output.suffix.lower() != file.suffix.lower():
        raise ExportError(
            f"What is made again is of the same format, so its name ends in {file.suffix!r}, not in {output.suffix!r}."
        )
    check_folder(output.parent, parents=parents)


def _may_fetch(flags: argparse.Namespace, name: str) -> bool:
    """Whether the Hub may be asked for a model that the file names: the flag says so, or whoever sits at the terminal."""
    if flags.fetch or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return bool(flags.fetch)
    print(
        f"{flags.file} was made with {name!r}, which is not on this machine. Fetch it from the Hub? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")
