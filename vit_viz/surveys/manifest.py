"""_survey.json: what a folder is the survey of, so that the same command goes on with it and another one is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.figures.record import versions
from vit_viz.lazy import extra
from vit_viz.outputs import Output
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.names import shown

FILE = "_survey.json"
"""Readers of a folder of Parquet pass over names that begin with "_"."""

FORMAT = 2
SEAL = "sha256"
_COMPARED = {
    "model": "model",
    "weights": "weights",
    "preprocess": "preprocessing",
    "photos": "number of photos",
    "digest": "list of photos, labels or boxes",
    "methods": "methods",
    "deletion": "choice of deletion",
    "edits": "edits of the model",
    "output": "kind of the model's outputs",
    "batch": "number of photos per batch",
    "thumbnails": "choice of thumbnails",
}
"""What tells one survey from another, and what it is called."""

_LISTING = ("photos", "digest")
"""Which of that a survey that is extended may change."""


def manifest(
    identity: dict[str, Any], *, request: dict[str, Any], classes: list[str], proof: dict[str, Any]
) -> dict[str, Any]:
    """What _survey.json holds.

    Args:
        identity: what tells this survey from others: all of `_COMPARED`; `names`, see `digest_of`; `linear`, see `kernel_of`.
        request: the command, as it was given.
        classes: names of the model's classes, or of its values.
        proof: what was shown about the model's attention.
    """
    with extra("survey", needed_for="A survey"):
        pyarrow = version("pyarrow")
    return {
        "format": FORMAT,
        **identity,
        "request": request,
        "proof": proof,
        "versions": versions()
        | {"pyarrow": pyarrow, "python": platform.python_version(), "machine": platform.machine()},
        "tables": {level: [asdict(column) for column in columns] for level, columns in TABLES.items()},
        "classes": classes,
    }


def opened(folder: Path, wanted: dict[str, Any], *, extend: bool = False) -> dict[str, Any]:
    """Begin a survey in a folder, or go on with the one that is there.

    Args:
        extend: whether the list of photos may be another one; `extended` then notes it.

    Returns:
        Its manifest as it was begun.
    """
    if (folder / FILE).exists():
        there = unchanged(folder)
        gone = len(there.get("gone", ()))
        expected = wanted | {"photos": wanted["photos"] + gone} if gone else wanted
        for key, words in _COMPARED.items():
            if _entry(there, key) != _entry(expected, key) and not (extend and key in _LISTING):
                hint = "; --extend adds new photos to it" if key in _LISTING else ""
                raise ParameterError(
                    f"{shown(str(folder))} holds another survey: its {words} is {_short(_entry(there, key))}, not "
                    f"{_short(_entry(expected, key))}{hint}; please choose another folder."
                )
        return there
    if folder.exists() and (not folder.is_dir() or any(one.name != _LOCK for one in folder.iterdir())):
        raise ParameterError(
            f"{shown(str(folder))} holds something that is not a survey; please choose another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, wanted)
    return wanted


def extended(
    folder: Path, there: dict[str, Any], wanted: dict[str, Any], gone: Iterable[str]
) -> dict[str, Any]:
    """Note that a survey is of another list of photos now.

    Args:
        there, wanted: the manifests of the survey and of the new list; `names` of the latter are those of both.
        gone: names of photos that are in the tables and not in the new list.
    """
    left = sorted(gone)
    updated = {key: wanted[key] for key in ("digest", "names", "request")}
    changed = there | updated | {"photos": wanted["photos"] + len(left), "gone": left}
    _write(folder, changed)
    return changed


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a survey."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParameterError(f"{shown(str(folder))} holds no survey: {FILE} cannot be read.") from error
    if not isinstance(content, dict):
        raise ParameterError(f"{shown(str(folder))} holds no survey: {FILE} is not a JSON object.")
    version = content.get("format", FORMAT)
    if version != FORMAT:
        raise ParameterError(
            f"{shown(str(folder))} is a survey of format {_short(version)}, and this version of vit_viz reads format {FORMAT}."
        )
    content.pop(SEAL, None)
    return content


def unchanged(folder: Path) -> dict[str, Any]:
    """The same of a survey that is gone on with, or checked: not one byte of it may be another."""
    content = read(folder)
    text = (folder / FILE).read_text(encoding="utf-8")
    is_from_before = next(iter(json.loads(text)), "") == "format"  # there was a seal
    if not is_from_before and text != _sealed(content):
        raise ParameterError(
            f"{shown(str(folder))}: {FILE} is not as it was written; please put back what it was, or choose another folder."
        )
    return content


def kernel_of(folder: Path) -> str | None:
    """Which linear kernel computes the survey that was begun in a folder: rows of one survey are not rounded in two ways."""
    kernel = read(folder).get("linear") if (folder / FILE).exists() else None
    return kernel if kernel in ("oneDNN", "torch") else None


def output_of(there: dict[str, Any]) -> Output:
    """What one output of a survey's model is; surveys did not say so while all were taken for a softmax."""
    kind: Output = there.get("output") or "softmax"
    return kind


def _entry(there: dict[str, Any], key: str) -> object:
    return output_of(there) if key == "output" else there.get(key)


def settings(there: dict[str, Any]) -> str:
    """What tells a survey from those of other settings, whatever its photos: SHA-256 in hex."""
    compared = {key: there.get(key) for key in _COMPARED if key not in _LISTING}
    if output_of(there) == "softmax":  # as it was before surveys said so
        del compared["output"]
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def digest_of(names: Iterable[str]) -> str:
    """What tells a set of photos' names from any other, in whatever order: SHA-256 in hex."""
    return hashlib.sha256("\0".join(sorted(names)).encode()).hexdigest()


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While this process writes to a folder, no other one does; the system forgets the lock with the process."""
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
            raise ParameterError(f"Another process is writing to {shown(str(folder))}.") from error
        yield


_LOCK = "_survey.lock"

FILES = frozenset({FILE, _LOCK})
"""What lies in the folder of a survey beside its batches."""


def _write(folder: Path, content: dict[str, Any]) -> None:
    half = (folder / FILE).with_suffix(".half")
    half.write_text(_sealed(content), encoding="utf-8")
    half.replace(folder / FILE)


def _sealed(content: dict[str, Any]) -> str:
    """As it is written: the first entry is the SHA-256 of the text with that entry empty."""
    text = json.dumps({SEAL: ""} | content, indent=1) + "\n"
    return text.replace('""', f'"{hashlib.sha256(text.encode()).hexdigest()}"', 1)


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:24]}..."
