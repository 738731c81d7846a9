"""survey.json: what a folder is the survey of, so that the same command goes on with it and another one is refused."""

from __future__ import annotations

import contextlib
import json
import platform
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vit_viz.drawing.record import versions
from vit_viz.errors import ParameterError
from vit_viz.surveys.columns import TABLES

FILE = "survey.json"
_FORMAT = 1
_COMPARED = {
    "format": "format of its tables",
    "model": "model",
    "weights": "weights",
    "preprocess": "preprocessing",
    "photos": "number of photos",
    "digest": "list of photos, labels or boxes",
    "methods": "methods",
    "deletion": "choice of deletion",
    "edits": "edits of the model",
    "batch": "number of photos per batch",
    "thumbnails": "choice of thumbnails",
}
"""What tells one survey from another, and what it is called."""


def manifest(
    identity: dict[str, Any], *, request: dict[str, Any], classes: list[str], proof: dict[str, Any]
) -> dict[str, Any]:
    """What survey.json holds.

    Args:
        identity: what tells this survey from others: all of `_COMPARED` but the format.
        request: the command, as it was given.
        classes: names of the model's classes.
        proof: what was shown about the model's attention.
    """
    return {
        "format": _FORMAT,
        **identity,
        "request": request,
        "proof": proof,
        "versions": versions()
        | {"pyarrow": version("pyarrow"), "python": platform.python_version(), "machine": platform.machine()},
        "tables": {level: [asdict(column) for column in columns] for level, columns in TABLES.items()},
        "classes": classes,
    }


def opened(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Begin a survey in a folder, or go on with the one that is there.

    Returns:
        Its manifest as it was begun.

    Raises:
        ParameterError: the folder holds something else; the sentence says what.
        OSError: it cannot be written.
    """
    file = folder / FILE
    if file.exists():
        there = read(folder)
        for key, words in _COMPARED.items():
            if there.get(key) != wanted[key]:
                raise ParameterError(
                    f"{folder} holds another survey: its {words} is {_short(there.get(key))}, not {_short(wanted[key])}; please "
                    "choose another folder."
                )
        return there
    if folder.exists() and (not folder.is_dir() or any(one.name != _LOCK for one in folder.iterdir())):
        raise ParameterError(f"{folder} holds something that is no survey; please choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    half.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    half.replace(file)
    return wanted


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a survey.

    Raises:
        ParameterError: this is no survey.
    """
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParameterError(f"{folder} holds no survey: {FILE} cannot be read.") from error
    if not isinstance(content, dict):
        raise ParameterError(f"{folder} holds no survey: {FILE} is no object.")
    return content


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While this process writes to a folder, no other one does; the system forgets the lock with the process.

    Raises:
        ParameterError: another process writes to it.
    """
    try:
        import fcntl
    except ImportError:  # no such locks here
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ParameterError(f"Another process is writing to {folder}.") from error
        yield


_LOCK = "survey.lock"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:24]}..."
