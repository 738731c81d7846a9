"""Pictures that users brought: kept under a random id each, within a byte budget and for a limited time.

The decoded picture is kept as it will be used, never the file; an id says nothing about the picture and is worthless to any
other owner. Evicting a trace never deletes an upload; only its age or the budget does.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.images import image_hash

UPLOAD_BYTES = 512 * 2**20
UPLOAD_SECONDS = 3600.0


@dataclass(frozen=True)
class StoredImage:
    """One picture with its hash, its owner and the moment it was last asked for."""

    image: Image.Image
    digest: str
    owner: str
    used_at: float

    @property
    def nbytes(self) -> int:
        """Bytes of the decoded pixels."""
        return self.image.width * self.image.height * len(self.image.getbands())


class UploadStore:
    """Uploads of all owners; the least recently used leave first when the budget is full.

    Args:
        max_bytes: bound on the decoded pixels of all uploads.
        max_seconds: an upload that nobody asked for during this time is deleted.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_bytes: int = UPLOAD_BYTES,
        max_seconds: float = UPLOAD_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._stored: OrderedDict[str, StoredImage] = OrderedDict()

    def add(self, image: Image.Image, *, owner: str = "") -> str:
        """Keep a decoded picture and return its random id.

        Raises:
            ImageError: the picture alone is larger than the whole budget.
        """
        entry = StoredImage(image, image_hash(image), owner, self._clock())
        if entry.nbytes > self.max_bytes:
            raise ImageError("This picture is larger than the space for uploads; please send a smaller one.")
        key = "u" + secrets.token_urlsafe(18)
        with self._lock:
            self._expire()
            while self._stored and self._used() + entry.nbytes > self.max_bytes:
                self._stored.popitem(last=False)
            self._stored[key] = entry
        return key

    def get(self, key: str, *, owner: str = "") -> StoredImage:
        """The picture of an id, for its owner only.

        Raises:
            ImageError: the id is unknown, expired, or another owner's: the three look alike from outside.
        """
        with self._lock:
            self._expire()
            entry = self._stored.get(key)
            if entry is None or entry.owner != owner:
                raise ImageError("This upload is no longer here; please choose the picture again.")
            fresh = StoredImage(entry.image, entry.digest, entry.owner, self._clock())
            self._stored[key] = fresh
            self._stored.move_to_end(key)
            return fresh

    def forget(self, owner: str) -> int:
        """Delete every upload of an owner; returns how many."""
        with self._lock:
            mine = [key for key, entry in self._stored.items() if entry.owner == owner]
            for key in mine:
                del self._stored[key]
            return len(mine)

    @property
    def used_bytes(self) -> int:
        """Bytes of decoded pixels now kept."""
        with self._lock:
            return self._used()

    def _used(self) -> int:
        return sum(entry.nbytes for entry in self._stored.values())

    def _expire(self) -> None:
        oldest = self._clock() - self.max_seconds
        for key in [key for key, entry in self._stored.items() if entry.used_at < oldest]:
            del self._stored[key]
