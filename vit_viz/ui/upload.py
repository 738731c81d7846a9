"""The image component: Gradio's front end with our own door behind it.

The path that arrives is confined to Gradio's upload folder before anything is opened; the file is decoded by
`vit_viz.images.decode`, which bounds bytes, pixels and shape first, and it is deleted as soon as it has been read.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import ImageData
from gradio.utils import abspath, get_upload_folder, is_in_or_equal
from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.images import decode
from vit_viz.ui.boundary import toast


class SafeImage(gr.Image):
    """An image input whose value is the path of an uploaded file that is safe to open, or None.

    Decoding waits for `Inbox.take`, in the handler's own thread, because Gradio runs `preprocess` on its event loop.
    """

    is_template = True  # the front end is gr.Image's

    def preprocess(self, payload: ImageData | None) -> Any:
        """Confine the path; what did not come through this app's upload is refused unopened.

        Raises:
            gr.Error: the payload names no file, or one outside the upload folder.
        """
        if payload is None:
            return None
        if not payload.path:
            raise toast("Please upload an image file; addresses and embedded data are not read.")
        path = Path(abspath(payload.path))
        folder = Path(get_upload_folder())
        if not (is_in_or_equal(path, folder) and is_in_or_equal(path.resolve(), folder.resolve())):
            raise toast("Please upload the image through the app.")
        return str(path)


class Inbox:
    """Decodes uploaded files and deletes each shortly after it has been read.

    Shortly after, because the browser may still be fetching its preview. Gradio gives equal files of different visitors the
    same path; so that the second does not find the first's file deleted, the last few pictures stay here for a minute, within
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
        max_bytes: int = 64 * 2**20,
        max_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.delete_after = delete_after
        self.max_bytes = max_bytes
        self.max_seconds = max_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, tuple[Image.Image, float]] = OrderedDict()

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
            return _delete(file)
        timer = threading.Timer(self.delete_after, _delete, [file])
        timer.daemon = True
        timer.start()
        return None

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
            used = sum(3 * p.width * p.height for p, _ in self._recent.values())
            if taken_at >= oldest and used <= self.max_bytes:
                return
            del self._recent[path]


def _delete(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()
        file.parent.rmdir()  # Gradio makes a folder for each file
