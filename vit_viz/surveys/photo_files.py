"""The files of a survey's photos, found by the photo's number: the owner's files, which no visitor can name."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from pathlib import Path

from cachetools import LRUCache
from PIL import Image

from vit_viz.errors import ImageError, ParameterError
from vit_viz.images import decode, image_hash
from vit_viz.surveys import lists, parquet
from vit_viz.surveys.opened import OpenedSurvey
from vit_viz.surveys.photos import photos_in

_KEPT_PICTURES = 24
_KEPT_BATCHES = 16


class PhotoFiles:
    """A `Library` (vit_viz.session.uploads) of a survey's photos, and their thumbnails.

    Args:
        read: makes a picture of a file's bytes; that of the app reads in a process of its own.
    """

    def __init__(self, survey: OpenedSurvey, read: Callable[[bytes], Image.Image] = decode) -> None:
        self.survey = survey
        self.read = read
        self._prefix = f"survey-{str(survey.manifest.get('digest', ''))[:8]}-"
        self._root = root_of(survey)
        self._lock = threading.Lock()
        self._pictures: LRUCache[int, tuple[Image.Image, str]] = LRUCache(_KEPT_PICTURES)
        self._batches: LRUCache[int, dict[str, bytes]] = LRUCache(_KEPT_BATCHES)

    @property
    def are_there(self) -> bool:
        """Whether the folder of the photos is still there; one photo or another may be gone all the same."""
        return self._root is not None

    def is_there(self, row: int) -> bool:
        """Whether the file of a photo is still there; it may be another one now."""
        return self._root is not None and (self._root / self.survey.texts["photo"][row]).is_file()

    def name_of(self, row: int) -> str:
        """What a photo is called in links."""
        return f"{self._prefix}{row}"

    def row_of(self, name: str) -> int | None:
        """The number of a photo by that name; None where it is the name of something else."""
        number = name.removeprefix(self._prefix)
        is_one = number != name and re.fullmatch(r"\d{1,9}", number, re.ASCII) is not None
        return int(number) if is_one and int(number) < self.survey.num_photos else None

    def holds(self, name: str) -> bool:
        """Whether this is the name of a photo of the survey."""
        return self.row_of(name) is not None

    def title(self, name: str) -> str:
        """The photo's path from the root of the survey; of a long one its end."""
        row = self.row_of(name)
        assert row is not None
        return self.survey.texts["photo"][row][-60:]

    def picture(self, name: str) -> tuple[Image.Image, str]:
        """The upright RGB photo of a name, and the digest of its pixels."""
        row = self.row_of(name)
        if row is None:
            raise ImageError("The survey has no such photo.")
        with self._lock:
            if row in self._pictures:
                return self._pictures[row]
        picture = self.read(self._bytes(row))
        kept = picture, image_hash(picture)
        with self._lock:
            self._pictures[row] = kept
        return kept

    def thumbnail(self, row: int) -> bytes:
        """A small picture of a photo as WebP."""
        self.check(row)
        name, batch = self.survey.texts["photo"][row], self.survey.batch_of[row]
        with self._lock:
            if batch not in self._batches:
                self._batches[batch] = parquet.thumbnails(self.survey.folder, batch)
            webp = self._batches[batch].get(name)
        if webp is None:
            raise ImageError("This survey keeps no thumbnails.")
        return webp

    def check(self, row: int) -> None:
        """Whether there is a photo of this number."""
        if not 0 <= row < self.survey.num_photos:
            raise ParameterError(f"The survey has photos 0 to {self.survey.num_photos - 1}, not {row}.")

    def _bytes(self, row: int) -> bytes:
        name = self.survey.texts["photo"][row]
        if self._root is None:
            raise ImageError("The photos of this survey are not where they were when it was made.")
        try:
            content = (self._root / name).read_bytes()
        except OSError as error:
            raise ImageError(
                f"The photo {name[-60:]!r} is gone: its file is not where it was when the survey was made."
            ) from error
        if hashlib.sha256(content).hexdigest() != self.survey.digests[row]:
            raise ImageError(f"The photo {name[-60:]!r} has changed since the survey was made.")
        return content


def root_of(survey: OpenedSurvey) -> Path | None:
    """The folder that the names of a survey's photos start from; None where it is not there.

    A survey that was moved together with its photos finds them beside it.
    """
    source = Path(str(survey.manifest.get("request", {}).get("photos", "")))
    beside = [
        survey.folder.parent / Path(*source.parts[-count:]) for count in (1, 2) if len(source.parts) >= count
    ]
    for place in (source, survey.folder / source, *beside):
        if place.suffix.lower() in lists.ENDINGS and place.is_file():
            return place.parent
        if place.is_dir():
            return place
    try:
        first = photos_in(str(source))[0]  # it was asked for by a pattern or by one file
    except (ParameterError, OSError, ValueError):
        return None
    return Path(first.path[: -len(first.name)]) if first.path.endswith(first.name) else None
