"""A file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def written(file: Path, content: bytes) -> None:
    """Write a file beside its place and move it there; the folder is made where there is none.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as half:
            half.write(content)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    """What the user's files are not to be; it can only be asked by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
