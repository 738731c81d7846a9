"""The files of a site: one page, its program, the engine, weights and pictures, each named by a digest of what it holds.

The page may load nothing but these (Content-Security-Policy). Whatever has a digest in its name never changes, so browsers and the
service worker keep it for good.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vit_viz import samples
from vit_viz.browser import Storage
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ExportError, ParameterError
from vit_viz.images.thumbnails import small_square
from vit_viz.offline.bundle import squeezed
from vit_viz.offline.page import digest_source, policy
from vit_viz.site.page import (
    composed_page,
    helper_program,
    listings,
    look,
    program,
    worker_program,
)
from vit_viz.site.stored import model_facts, weights_of

LISTING = "vit_viz_site.json"
"""Names the files of a site, so that a new one written over it leaves none of the old ones behind."""

_FOLDER = Path(__file__).parent
_MAY = {
    "worker-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data: blob:",
    "style-src": "'self'",
}


_EARLY = """\
window.vit_viz_worker = new Worker(%s);
window.vit_viz_worker.onerror = () => delete window.vit_viz_worker;
window.vit_viz_worker.postMessage({ id: 0, kind: 'load', file: %s, wasm: { helper: %s } });"""
"""Starts the engine, which loads the first model while the browser still reads the program that will ask for them."""


@dataclass(eq=False)
class _Files:
    """What a site consists of, by name."""

    content: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, data: bytes) -> str:
        """Keep a file under its name with a digest of its bytes in it; returns that name."""
        stem, dot, ending = name.rpartition(".")
        own = f"{stem}-{hashlib.sha256(data).hexdigest()[:16]}{dot}{ending}"
        self.content[own] = data
        return own


def write_site(models: Sequence[LoadedModel], out: str | Path, *, storage: Storage = "int8") -> int:
    """Write a static site on which visitors explore these models on photos of their own; nothing of a photo leaves their machine.

    Args:
        models: the first is the one it opens with.
        out: a folder that is new, empty, or holds such a site, which is replaced.
        storage: of weights, see `write_weights`; int8 is a quarter of the bytes of fp32.

    Returns:
        The bytes of all files.

    Example:
        >>> import vit_viz as vv
        >>> from tempfile import TemporaryDirectory
        >>> from vit_viz.site import write_site
        >>> with TemporaryDirectory() as folder:
        ...     write_site([vv.load("mini", device="cpu")], f"{folder}/site") < 4_200_000
        True
    """
    names = [loaded.name for loaded in models]
    if not names or len(set(names)) < len(names):
        raise ParameterError("A site needs one model or more, each with a name of its own.")
    folder = Path(out)
    before = _listed(folder)
    files = _files_of(models, storage)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        for name in before - set(files):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {error.strerror}.") from error
    return sum(map(len, files.values()))


def _listed(folder: Path) -> set[str]:
    """The files of the site that a folder holds; none where it is new or empty."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return set()
    try:
        named = json.loads((folder / LISTING).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(
            f"{folder} holds something that is not a site of vit_viz; please choose another folder."
        ) from error
    plain = [name for name in named if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][\w.-]*", name)]
    return set(plain)


def _files_of(models: Sequence[LoadedModel], storage: Storage) -> dict[str, bytes]:
    files = _Files()
    worker = files.add("worker.js", worker_program().encode())
    helper = files.add("helper.js", helper_program().encode())
    own = [_model_facts(loaded, files, storage) for loaded in models]
    pictures = [_picture_facts(name, files) for name in samples.sample_names()]
    script = files.add("site.js", program("start").encode())
    css = files.add("site.css", look().encode())
    listed = {kind: files.add(f"{kind}.json", data) for kind, data in listings().items()}
    first = {"packed": own[0]["file"], "bytes": own[0]["bytes"]}
    early = _EARLY % tuple(map(json.dumps, (worker, first, helper)))
    page = composed_page(
        {
            "worker": worker,
            "helper": helper,
            "models": own,
            "pictures": pictures,
            "first": samples.first_sample(),
        },
        listings=listed,
        policy=policy(_MAY | {"script-src": f"'self' 'wasm-unsafe-eval' {digest_source(early)}"}),
        style=f'<script>{early}</script>\n<link rel="stylesheet" href="{css}">',
        script=f'<script src="{script}"></script>',
        keeping="",  # the page says so once it is kept,
    )
    kept = {
        "digest": hashlib.sha256(page).hexdigest()[:16],  # another page has another store
        "start": [script, css, worker, helper, *listed.values()],
        "later": [one["file"] for one in (*own, *pictures)],
    }
    keeper = f"self.vitVizSite = {json.dumps(kept)};\n{squeezed((_FOLDER / 'offline.js').read_text('utf-8'))}"
    plain = {
        "index.html": page,
        "offline.js": keeper.encode(),
        "README.md": (_FOLDER / "space.md").read_bytes(),
    }
    whole = files.content | plain
    return whole | {LISTING: json.dumps(sorted([*whole, LISTING]), indent=1).encode()}


def _model_facts(loaded: LoadedModel, files: _Files, storage: Storage) -> dict[str, Any]:
    data = weights_of(loaded, storage)
    stem = re.sub(r"[^A-Za-z0-9]+", "_", loaded.name).strip("_") or "model"
    return model_facts(loaded, storage) | {"file": files.add(f"{stem}.bin", data), "bytes": len(data)}


def _picture_facts(name: str, files: _Files) -> dict[str, Any]:
    ending, data = samples.sample_file(name)
    picture = samples.sample(name)
    thumbnail = small_square(picture)
    aspect = picture.width / picture.height
    return {"id": name, "name": name, "thumbnail": thumbnail, "aspect": aspect} | {
        "file": files.add(f"{name}{ending}", data)
    }
