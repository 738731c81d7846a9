"""The image component: Gradio's front end with our own door behind it.

The path that arrives is confined to Gradio's upload folder before anything is opened; the file is decoded by
`vit_viz.images.decode`, which bounds bytes, pixels and shape first, and it is deleted as soon as it has been read.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import ImageData
from gradio.utils import abspath, get_upload_folder, is_in_or_equal
from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.handles import VISITOR
from vit_viz.images import decode
from vit_viz.memory import give_memory_back
from vit_viz.ui.boundary import toast
from vit_viz.ui.tray import Tray, delete

_TEND_SECONDS = 0.5
_LONGEST_PATH = 4096  # characters; no file system allows more


class SafeImage(gr.Image):
    """An image input whose value is the path of an uploaded file that is safe to open, or None.

    Decoding waits for `Inbox.take`, in the handler's own thread, because Gradio runs `preprocess` on its event loop.
    """

    is_template = True  # the front end is gr.Image's

    def admit(self, value: Any, tray: Tray | None = None) -> None:
        """Judge a value as it arrived, before Gradio fetches or opens anything that it names; see `GuardedBlocks`.

        Args:
            tray: knows who uploaded what; a file that is there has to be the visitor's own.

        Raises:
            gr.Error: it names no file, or one outside the upload folder, or another visitor's.
        """
        if value is None:
            return
        path = value.get("path") if isinstance(value, dict) else None
        if not isinstance(path, str) or not path or "://" in path or not _is_flat(value):
            raise toast("Please upload an image file; addresses and embedded data are not read.")
        inside = _confined(path)
        if tray is not None and not tray.belongs_to(str(inside), VISITOR.get()):
            raise toast("The uploaded file is no longer here; please choose the picture again.")

    def preprocess(self, payload: ImageData | None) -> Any:
        """Confine the path; what did not come through this app's upload is refused unopened.

        Raises:
            gr.Error: the payload names no file, or one outside the upload folder.
        """
        if payload is None:
            return None
        self.admit({"path": payload.path})
        return str(_confined(payload.path or ""))


def _is_flat(value: dict[str, Any]) -> bool:
    """Whether nothing but plain values stands in a payload, so that no second file hides in it."""
    meta = value.get("meta")
    others = [part for name, part in value.items() if name != "meta"]
    inner = list(meta.values()) if isinstance(meta, dict) else [meta]
    return not any(isinstance(part, dict | list) for part in (*others, *inner))


def _confined(text: str) -> Path:
    """A path inside the upload folder, with and without links followed.

    Raises:
        gr.Error: it leads elsewhere, or is no path.
    """
    folder = Path(get_upload_folder())
    try:
        if len(text) > _LONGEST_PATH:
            raise ValueError("longer than any path")
        path = Path(abspath(text))
        inside = is_in_or_equal(path, folder) and is_in_or_equal(path.resolve(), folder.resolve())
    except (OSError, ValueError, RuntimeError):  # null bytes, names that are too long, links in a circle
        inside = False
    if not inside:
        raise toast("Please upload the image through the app.")
    return path


class Inbox:
    """Decodes uploaded files and deletes each shortly after it has been read.

    Shortly after, because the browser may still be fetching its preview. Gradio gives equal files of different visitors the
    same path; so that the second does not find the first's file deleted, the last few pictures stay here for a while, within
    a few megabytes.

    Args:
        delete_after: seconds between reading a file and deleting it.
        max_bytes: bound on the decoded pixels that stay.
        max_seconds: how long they stay.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        delete_after: float = 10.0,
        max_bytes: int = 32 * 2**20,
        max_seconds: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.delete_after = delete_after
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, tuple[Image.Image, float]] = OrderedDict()
        self._doomed: deque[tuple[float, Path]] = (
            deque()
        )  # the delay is the same for all, so the first is due first
        self._is_tended = False

    def take(self, path: str) -> Image.Image:
        """The picture of an uploaded file, which is deleted whatever happens.

        Raises:
            ImageError: the picture cannot be read, or lies outside the limits; or the file is not there any more.
        """
        file = Path(path)
        try:
            picture = decode(file)
        except (FileNotFoundError, ImageError):
            if file.exists():
                raise
            return self._remembered(path)
        finally:
            self._delete_later(file)
        self._remember(path, picture)
        return picture

    def _delete_later(self, file: Path) -> None:
        if self.delete_after <= 0:
            return delete(file)
        with self._lock:
            self._doomed.append((time.monotonic() + self.delete_after, file))
            if (
                not self._is_tended
            ):  # one thread for all files: a crowd of uploads must not become a crowd of threads
                self._is_tended = True
                threading.Thread(target=self._tend, name="vit_viz inbox", daemon=True).start()
        return None

    def _tend(self) -> None:
        """Delete files and forget pictures as they become due, until none is left."""
        while True:
            with self._lock:
                self._forget()
                now, due = time.monotonic(), []
                while self._doomed and self._doomed[0][0] <= now:
                    due.append(self._doomed.popleft()[1])
                if not (self._doomed or self._recent or due):
                    self._is_tended = False
                    break
            for file in due:
                delete(file)
            time.sleep(min(_TEND_SECONDS, self.delete_after))
        give_memory_back()

    def _remembered(self, path: str) -> Image.Image:
        with self._lock:
            self._forget()
            if path not in self._recent:
                raise ImageError("The uploaded file is no longer here; please choose the picture again.")
            return self._recent[path][0]

    def _remember(self, path: str, picture: Image.Image) -> None:
        with self._lock:
            self._recent[path] = (picture, self._clock())
            self._recent.move_to_end(path)
            self._forget()

    def _forget(self) -> None:
        oldest = self._clock() - self.max_seconds
        while self._recent:
            path, (_picture, taken_at) = next(iter(self._recent.items()))
            used = sum(4 * p.width * p.height for p, _ in self._recent.values())  # as Pillow keeps RGB
            if taken_at >= oldest and used <= self.max_bytes:
                return
            del self._recent[path]
