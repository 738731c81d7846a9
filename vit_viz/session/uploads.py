"""Pictures that users brought: kept under a random id each, within a byte budget and for a limited time.

The decoded picture is kept as it will be used, never the file; an id says nothing about the picture and is worthless to any
other owner. Its cleaned name is kept with it for its owner's eyes: in the tray, in captions and in names of files, never in a link.
Evicting a trace never deletes an upload; only its age, its owner's share, the budget, or the end of the visit does.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
import unicodedata
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.images import image_hash
from vit_viz.lazy import Tensor, torch
from vit_viz.memory import give_memory_back

UPLOAD_BYTES = 512 * 2**20
UPLOAD_SECONDS = 3600.0
OWNER_SHARE = 0.25
SWEEP_SECONDS = 60.0
UPLOAD = re.compile(r"u[\w-]{24}", re.ASCII)
"""The id of an upload."""

GONE = "This upload is no longer here; please choose the picture again."
_ENTRY_BYTES = 4096  # of an upload beside its pixels

LONGEST_NAME = 40  # characters
_ENDING = re.compile(r"\.[a-z0-9]{1,5}$", re.IGNORECASE)
_MADE_UP = frozenset({"", "image", "clipboard", "blob", "webcam", "picture"})
"""Names that browsers and our own upload give to pictures that have none."""


def cleaned_name(file_name: str) -> str:
    """A file's name as it is shown: printable characters of its last part, without ending; "" where it says nothing."""
    last = unicodedata.normalize("NFC", file_name).replace("\\", "/").rpartition("/")[2]
    words = _ENDING.sub("", "".join(c if c.isprintable() else " " for c in last)).split()
    name = " ".join(words).strip(" .")[:LONGEST_NAME].strip()
    return "" if name.lower() in _MADE_UP else name


@dataclass(frozen=True)
class StoredImage:
    """One picture with its hash, its owner, and the moment at which it is deleted if nobody asks for it until then.

    Args:
        name: for its owner's eyes only.
        number: larger than that of every picture that came before.
        pixels: [1, channels, height, width] that a model is given as they are, of which the picture only shows something.
    """

    image: Image.Image
    digest: str
    owner: str
    expires_at: float
    name: str
    number: int
    pixels: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Memory of the decoded picture."""
        return _ENTRY_BYTES + picture_bytes(self.image) + (0 if self.pixels is None else self.pixels.nbytes)


def pixels_hash(pixels: Tensor) -> str:
    """The identity of pixels: SHA-256 of their precision, shape and numbers, in hex."""
    digest = hashlib.sha256(f"{pixels.dtype} {list(pixels.shape)}\n".encode())
    digest.update(pixels.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def picture_bytes(image: Image.Image) -> int:
    """Memory of a picture's pixels: Pillow keeps four bytes for each in colour, also where there are three channels."""
    return image.width * image.height * (4 if len(image.getbands()) > 1 else 1)


class UploadStore:
    """Uploads of all owners; when the budget is full, those leave whose owner holds most bytes, times how long they were not used.

    Args:
        max_bytes: bound on the memory of all uploads.
        max_seconds: an upload that nobody asked for during this time is deleted.
        owner_share: the part of the budget that one owner may fill, in (0, 1]; beyond it their own oldest picture leaves.
        on_gone: told the digest of a picture that nobody has uploaded any more.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_bytes: int = UPLOAD_BYTES,
        max_seconds: float = UPLOAD_SECONDS,
        owner_share: float = OWNER_SHARE,
        on_gone: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_bytes = max_bytes
        self.owner_bytes = int(max_bytes * owner_share)
        self.max_seconds = max_seconds
        self._on_gone = on_gone
        self._clock = clock
        self._lock = threading.Lock()
        self._stored: OrderedDict[str, StoredImage] = OrderedDict()
        self._used: Counter[str] = Counter()  # bytes by owner
        self._copies: Counter[str] = Counter()  # uploads by digest
        self._numbers = count(1)

    def add(
        self, image: Image.Image, *, owner: str = "", name: str = "", pixels: Tensor | None = None
    ) -> str:
        """Keep a decoded picture and return its random id.

        Args:
            name: of the picture, as `cleaned_name` gives it; "" for none: it is then counted among its owner's.
            pixels: what a model is given in its place.
        """
        if not name:
            taken = {entry.name for entry in self.of(owner).values()}
            name = next(free for n in count(1) if (free := f"your photo {n}") not in taken)
        until = self._clock() + self.max_seconds
        digest = image_hash(image) if pixels is None else pixels_hash(pixels)
        entry = StoredImage(image, digest, owner, until, name, next(self._numbers), pixels)
        if entry.nbytes > self.owner_bytes:
            raise ImageError("This picture is larger than the space for uploads; please send a smaller one.")
        key = "u" + secrets.token_urlsafe(18)
        with self._changing():
            self._expire()
            while self._used[owner] + entry.nbytes > self.owner_bytes:
                self._drop(next(key for key, other in self._stored.items() if other.owner == owner))
            self._make_room(entry.nbytes)
            self._stored[key] = entry
            self._used[owner] += entry.nbytes
            self._copies[entry.digest] += 1
        return key

    def get(self, key: str, *, owner: str = "") -> StoredImage:
        """The picture of an id, for its owner only."""
        with self._changing():
            entry = self._stored.get(key)
            if entry is not None and entry.expires_at <= self._clock():
                self._drop(key)
                entry = None
            if entry is None or entry.owner != owner:
                if not UPLOAD.fullmatch(key):
                    raise ImageError(f"There is no picture {key[:40]!r} here.")
                raise ImageError(GONE)
            fresh = replace(entry, expires_at=self._clock() + self.max_seconds)
            self._stored[key] = fresh
            self._stored.move_to_end(key)
            return fresh

    def of(self, owner: str) -> dict[str, StoredImage]:
        """An owner's pictures by id, in the order in which they came; to ask this keeps none of them longer."""
        with self._changing():
            self._expire()
            mine = [(key, entry) for key, entry in self._stored.items() if entry.owner == owner]
            return dict(sorted(mine, key=lambda item: item[1].number))

    def holds(self, digest: str) -> bool:
        """Whether anybody's upload of a picture is kept."""
        with self._lock:
            return digest in self._copies

    def forget(self, owner: str) -> None:
        """Delete every upload of an owner."""
        with self._changing():
            for key in [key for key, entry in self._stored.items() if entry.owner == owner]:
                self._drop(key)

    def remove(self, key: str, *, owner: str) -> None:
        """Delete one upload of an owner, where it is still kept."""
        with self._changing():
            entry = self._stored.get(key)
            if entry is not None and entry.owner == owner:
                self._drop(key)

    def sweep(self) -> None:
        """Delete what has expired."""
        with self._changing():
            self._expire()

    @property
    def used_bytes(self) -> int:
        """Memory of the pictures now kept."""
        with self._lock:
            return self._used.total()

    def _expire(self) -> None:
        now = self._clock()
        for key in [key for key, entry in self._stored.items() if entry.expires_at <= now]:
            self._drop(key)

    def _make_room(self, nbytes: int) -> None:
        """Drop the dearest pictures until so many bytes fit."""
        if self._used.total() + nbytes <= self.max_bytes:
            return
        now, held = self._clock() + self.max_seconds, self._used.copy()
        priced = [(held[one.owner] * (now - one.expires_at), key) for key, one in self._stored.items()]
        for _, key in sorted(priced, key=lambda one: -one[0]):  # among equals the least recently used
            if self._used.total() + nbytes <= self.max_bytes:
                return
            self._drop(key)

    def _drop(self, key: str) -> None:
        entry = self._stored.pop(key)
        self._used[entry.owner] -= entry.nbytes
        self._used += Counter()  # forgets owners of nothing
        self._copies[entry.digest] -= 1

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The lock; what is gone when it is free again is told then, so that who is told may ask back."""
        gone: list[str] = []
        try:
            with self._lock:
                try:
                    yield
                finally:
                    gone = [digest for digest, copies in self._copies.items() if not copies]
                    self._copies += Counter()
        finally:
            for digest in gone:
                if self._on_gone is not None:
                    self._on_gone(digest)


def sweep_every(store: UploadStore, seconds: float = SWEEP_SECONDS) -> threading.Event:
    """Delete expired uploads now and then, also while nobody asks, until the signal that is returned is set or the store ends."""
    stop = threading.Event()
    reference = weakref.ref(store)
    weakref.finalize(store, stop.set)

    def work() -> None:
        kept = 0
        while not stop.wait(seconds):
            store = reference()
            if store is not None:
                store.sweep()
                before, kept = kept, store.used_bytes
                if kept < before:
                    give_memory_back()
            del store

    threading.Thread(target=work, name="vit_viz uploads", daemon=True).start()
    return stop


class Library(Protocol):
    """Pictures by name; the names are its own, and no visitor's text becomes a path."""

    def holds(self, name: str) -> bool:
        """Whether a picture of this name is meant to be here."""

    def picture(self, name: str) -> tuple[Image.Image, str]:
        """The upright RGB picture of a name, and the digest of its pixels."""

    def title(self, name: str) -> str:
        """What a picture is called on the screen."""
