"""The files of a folder that are taken for photos. Links are followed, and whatever is passed over is counted and named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vit_viz.errors import ParameterError
from vit_viz.surveys import manifest
from vit_viz.surveys.names import shown

ENDINGS = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif", ".jfif"}
)
"""Of the files of a folder that are taken for photos; what a list names is taken whatever its ending."""

MOST_NAMED = 5
"""Of what is passed over for one reason; the others are counted."""

Reason = Literal[
    "not photos by their endings",
    "links that lead nowhere",
    "links back to a folder that they lie in",
    "folders that cannot be read",
    "neither files nor folders",
    "folders that a pattern matches but does not enter",
]

Identity = tuple[int, int]


@dataclass(frozen=True)
class Skipped:
    """What is passed over, and why."""

    path: Path
    reason: Reason


@dataclass
class Search:
    """The photos of some folders, and what was passed over on the way."""

    files: list[Path] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def walk(self, folder: Path) -> None:
        """Add the photos of a folder and of all folders in it, also of those that links lead to.

        A link back to a folder that it lies in is not followed: its photos would never end. A survey's own folder is not entered.

        Raises:
            ParameterError: the folder itself cannot be read.
        """
        left = [(folder, frozenset({_identity(folder)}))]
        while left:
            place, around = left.pop()
            try:
                inside = sorted(place.iterdir())
            except OSError as error:
                if place == folder:
                    raise ParameterError(f"{shown(str(folder))} cannot be read: {error.strerror}.") from error
                self._skip(place, "folders that cannot be read")
                continue
            for path in inside:
                identity = self._visit(path)
                if identity in around:
                    self._skip(path, "links back to a folder that they lie in")
                elif identity is not None:
                    left.append((path, around | {identity}))

    def _visit(self, path: Path) -> Identity | None:
        """Take a file, or pass it over; returns what tells a folder that is to be entered from others."""
        try:
            about = path.stat()
        except OSError:  # a photo that cannot be opened is a failure of the survey, no matter why
            if _is_photo(path):
                self.files.append(path)
            else:
                self._skip(path, "links that lead nowhere")
            return None
        if stat.S_ISDIR(about.st_mode):
            return None if (path / manifest.FILE).exists() else (about.st_dev, about.st_ino)
        if not stat.S_ISREG(about.st_mode):
            self._skip(path, "neither files nor folders")
        elif _is_photo(path):
            self.files.append(path)
        else:
            self._skip(path, "not photos by their endings")
        return None

    def add_matches(self, matches: Iterable[str]) -> None:
        """Add the files that a pattern matches, whatever their endings."""
        for path in map(Path, matches):
            if path.is_dir():
                self._skip(path, "folders that a pattern matches but does not enter")
            else:
                self.files.append(path)

    def _skip(self, path: Path, reason: Reason) -> None:
        self.skipped.append(Skipped(path, reason))


def sentences(skipped: Sequence[Skipped]) -> Iterator[str]:
    """What was passed over, a line for each reason, with the first names."""
    for reason in dict.fromkeys(one.reason for one in skipped):
        paths = sorted(one.path for one in skipped if one.reason == reason)
        names = ", ".join(shown(str(path)) for path in paths[:MOST_NAMED])
        more = f" and {len(paths) - MOST_NAMED:,} more" if len(paths) > MOST_NAMED else ""
        yield f"passed over {len(paths):,}, {reason}: {names}{more}"


def _is_photo(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS


def _identity(folder: Path) -> Identity:
    about = os.stat(folder)
    return about.st_dev, about.st_ino
