"""The image component: Gradio's front end with our own checks behind it.

It accepts only a file that its visitor has just uploaded, by exactly the path that the upload answered. The file is decoded by
`vit_viz.images`, which bounds bytes, pixels and shape first, and it is deleted soon after it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.data_classes import ImageData
from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.images import decode
from vit_viz.session.handles import VISITOR
from vit_viz.ui.edge.uploads import UploadFiles
from vit_viz.ui.edge.user_errors import toast

PREVIEW_SECONDS = 10.0
"""How long a file that was read stays for the preview in its browser."""

NO_FILE = "Please upload an image file; addresses and embedded data are not read."
GONE = "The uploaded file is no longer here; please choose the picture again."


class UploadedImage(gr.Image):
    """An image input whose value is the path of an uploaded file that is safe to open, or None.

    Decoding waits for `read_upload`, in the handler's own thread, because Gradio runs `preprocess` on its event loop.
    """

    is_template = True  # the front end is gr.Image's

    def admit(self, value: Any, files: UploadFiles) -> None:
        """Check a value as it arrived, before Gradio fetches or opens anything that it names; see `GuardedBlocks`.

        Raises:
            gr.Error: it names no file that this visitor uploaded.
        """
        if value is None:
            return
        path = value.get("path") if isinstance(value, dict) else None
        if not isinstance(path, str) or not path or "://" in path or not _is_flat(value):
            raise toast(NO_FILE)
        if not files.belongs_to(path, VISITOR.get()):
            raise toast(GONE)

    def preprocess(self, payload: ImageData | None) -> Any:
        """The path, which `admit` has checked; nothing is opened here."""
        return None if payload is None else payload.path


def read_upload(
    files: UploadFiles,
    path: str,
    *,
    read: Callable[[Path], Image.Image] = decode,
    preview_seconds: float = PREVIEW_SECONDS,
) -> Image.Image:
    """The picture of an uploaded file, which is deleted soon whatever happens.

    Args:
        read: what turns the file into a picture.

    Raises:
        ImageError: the picture cannot be read, or lies outside the limits; or the file is not there any more.
    """
    file = Path(path)
    try:
        return read(file)
    except ImageError:
        if file.exists():
            raise
        raise ImageError(GONE) from None
    finally:
        files.delete_after(path, preview_seconds)


def _is_flat(value: dict[str, Any]) -> bool:
    """Whether a payload holds only plain values, so that no second file hides in it."""
    meta = value.get("meta")
    others = [part for name, part in value.items() if name != "meta"]
    inner = list(meta.values()) if isinstance(meta, dict) else [meta]
    return not any(isinstance(part, dict | list) for part in (*others, *inner))
