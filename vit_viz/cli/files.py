"""A file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from vit_viz.errors import ParameterError


def check_folder(folder: Path, *, parents: bool) -> None:
    """See, before anything is computed, that files can be written into a folder.

    Args:
        parents: whether it may be made, with those around it, when the first file is written.

    Raises:
        ParameterError: it is not there and not to be made, it is no folder, or others alone may write there.
    """
    there = folder
    while parents and not there.exists() and there != there.parent:
        there = there.parent
    if not there.exists():
        raise ParameterError(f"There is no folder {str(folder)!r}: make it, or add --parents.")
    if not there.is_dir():
        raise ParameterError(f"{str(there)!r} is a file, so no file can be written into it.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ParameterError(f"The folder {str(there)!r} cannot be written to.")


def written(file: Path, content: bytes, *, parents: bool = False) -> None:
    """Write a file beside its place and move it there.

    Args:
        parents: whether its folder is made where there is none.

    Raises:
        OSError: it cannot be written.
    """
    if parents:
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
