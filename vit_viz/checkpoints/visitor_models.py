"""Models that visitors choose, in the Hub's cache: marked, bounded in total, and the least recently used are removed first.

A file that a visitor's model brought has a mark: an empty file of its name in the folder `.strangers` of its repository, whose
time is that of its last use. A file without a mark is the owner's and is never removed. Partial downloads lie there, too.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from vit_viz.errors import CheckpointError
from vit_viz.settings import whole_number

HUB_BYTES = 20_000_000_000
"""Bytes of visitors' models that may stay on the disk; VIT_VIZ_HUB_BYTES sets another number."""

RESERVE_BYTES = 1_000_000_000
"""Free bytes that a visitor's model has to leave on the disk."""

_logger = logging.getLogger(__name__)
_MARKS = ".strangers"
_ARRIVING = ".incomplete"
_ABANDONED_SECONDS = 3600  # since the last byte: a part so old was left by a process that was killed


def repository_folder(repo: str) -> str:
    """The folder of a model in huggingface_hub's cache."""
    return f"models--{repo.replace('/', '--')}"


@dataclass(frozen=True)
class _Model:
    """The marked files of one repository in the cache."""

    folder: Path
    sizes: dict[str, int]  # by the name of the blob
    used: float

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


class VisitorModelCache:
    """The files of the Hub's cache that visitors' models brought, and the models in use, for one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_use: Counter[str] = Counter()
        self._arriving = 0

    @contextmanager
    def in_use(self, repo: str) -> Iterator[None]:
        """Keep a repository from being removed while the block runs."""
        folder = repository_folder(repo)
        with self._lock:
            self._in_use[folder] += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_use[folder] -= 1
                self._in_use += Counter()  # drops those that nobody uses any more

    @contextmanager
    def room(self, cache: Path, size: int, *, name: str, is_visitors: bool) -> Iterator[None]:
        """Reserve room for a file that is downloaded while the block runs, by removing visitors' models that are not in use.

        Args:
            cache: where it will lie.
            size: its bytes.
            name: of the model, for the message.
            is_visitors: whether it counts towards the bound.
        """
        counted = size if is_visitors else 0
        with self._lock:
            self._make_room(cache, size, name, is_visitors)
            self._arriving += counted
        try:
            yield
        finally:
            with self._lock:
                self._arriving -= counted

    def part(self, blob: Path, *, is_visitors: bool) -> Path:
        """Where a file is written during its download; leftovers of killed processes are removed."""
        folder = blob.parents[1] / _MARKS if is_visitors else blob.parent
        folder.mkdir(parents=True, exist_ok=True)
        blob.parent.mkdir(exist_ok=True)
        _sweep(blob.parent)
        return folder / f"{blob.name}.{secrets.token_hex(4)}{_ARRIVING}"

    def keep(self, part: Path, blob: Path, *, is_visitors: bool) -> None:
        """Give a complete download its name; a visitor's is marked, unless the owner's copy has come meanwhile."""
        mark = _mark(blob.parents[1], blob.name)
        with self._lock:
            if is_visitors and not blob.exists():
                mark.touch()
            part.replace(blob)

    def note_use(self, path: Path, *, is_visitors: bool) -> None:
        """Note that a file of a snapshot is used now; what the owner uses loses its mark."""
        name = _blob_of(path)
        if name is None:
            return
        mark = _mark(path.parents[2], name)
        with self._lock, suppress(OSError):  # nothing is removed from a read-only cache either
            if mark.exists():
                os.utime(mark) if is_visitors else mark.unlink()

    def forget(self, path: Path) -> None:
        """Remove a file of a snapshot, what it points to and its mark."""
        blob, name = path.resolve(), _blob_of(path)
        with self._lock:
            path.unlink(missing_ok=True)
            blob.unlink(missing_ok=True)
            if name is not None:
                _mark(path.parents[2], name).unlink(missing_ok=True)

    def _make_room(self, cache: Path, size: int, name: str, is_visitors: bool) -> None:
        """Remove the least recently used models until a file fits; none where all of them would not be enough."""
        models = _marked_models(cache)
        idle = [model for model in models if not self._in_use[model.folder.name]]
        lacking = size + (RESERVE_BYTES if is_visitors else 0) - shutil.disk_usage(cache).free
        kept = sum(model.size for model in models) + self._arriving
        excess = (
            kept + size - whole_number("VIT_VIZ_HUB_BYTES", HUB_BYTES, unit="bytes") if is_visitors else 0
        )
        needed = max(lacking, excess)
        if needed <= sum(model.size for model in idle):
            for model in sorted(idle, key=lambda model: model.used):
                if needed > 0:
                    _logger.info("removing %s, %d bytes, from the Hub's cache", model.folder.name, model.size)
                    needed -= _remove(model)
        if needed > 0:
            raise CheckpointError(
                f"There is no room {'on the disk' if lacking >= excess else 'among the models that visitors chose'} for the "
                f"{size / 1e6:.0f} MB of {name!r}; choose a model that is here already."
            )


@lru_cache(maxsize=1)
def visitor_model_cache() -> VisitorModelCache:
    """The instance of this process."""
    return VisitorModelCache()


def _marked_models(cache: Path) -> list[_Model]:
    """The models of visitors in a cache; marks of files that no longer exist are removed."""
    for folder in cache.glob(f"models--*/{_MARKS}"):
        _sweep(folder)
    marks: dict[Path, list[tuple[Path, int]]] = {}
    for mark in cache.glob(f"models--*/{_MARKS}/*"):
        folder = mark.parents[1]
        if mark.suffix == _ARRIVING:
            continue
        try:
            marks.setdefault(folder, []).append((mark, (folder / "blobs" / mark.name).stat().st_size))
        except FileNotFoundError:
            mark.unlink(missing_ok=True)
    return [
        _Model(
            folder=folder,
            sizes={mark.name: size for mark, size in marked},
            used=max(mark.stat().st_mtime for mark, _ in marked),
        )
        for folder, marked in marks.items()
        if marked
    ]


def _remove(model: _Model) -> int:
    """Remove the marked files of a model, and its folder where nothing else is in it; returns the bytes that were freed."""
    freed = 0
    for pointer in model.folder.glob("snapshots/*/*"):
        if _blob_of(pointer) in model.sizes:
            pointer.unlink(missing_ok=True)
    for name, size in model.sizes.items():
        try:
            (model.folder / "blobs" / name).unlink(missing_ok=True)
            _mark(model.folder, name).unlink(missing_ok=True)
            freed += size
        except OSError as error:  # a system that keeps open files
            _logger.warning("cannot remove a file of %s: %s", model.folder.name, error)
    _tidy(model.folder)
    return freed


def _tidy(folder: Path) -> None:
    """Remove the empty folders of a repository, and all of it where it holds no file any more."""
    with suppress(OSError):  # rmdir refuses a folder in which something is left
        for snapshot in (folder / "snapshots").iterdir():
            with suppress(OSError):
                snapshot.rmdir()
        (folder / "snapshots").rmdir()
        (folder / "blobs").rmdir()
        shutil.rmtree(folder)


def _sweep(folder: Path) -> None:
    """Remove partial downloads that a killed process left behind."""
    for part in folder.glob(f"*{_ARRIVING}"):
        with suppress(OSError):  # somebody else removed it
            if time.time() - part.stat().st_mtime > _ABANDONED_SECONDS:
                part.unlink()


def _mark(folder: Path, name: str) -> Path:
    return folder / _MARKS / name


def _blob_of(path: Path) -> str | None:
    """The name of the blob that a file of a snapshot points to; None where it is not a link."""
    return Path(os.readlink(path)).name if path.is_symlink() else None
