"""A site in one HTML file: model, engine and a photo stand in the page, which may load nothing else and opens from a disk."""

from __future__ import annotations

import base64
import io

from PIL import Image

from vit_viz.browser import Storage
from vit_viz.checkpoints import LoadedModel
from vit_viz.images import Mode
from vit_viz.images.thumbnails import small_square
from vit_viz.offline.page import digest_source, policy
from vit_viz.site.page import composed_page, listings, look, program, worker_program
from vit_viz.site.stored import model_facts, weights_of

_KEEPING = "All that it needs stands in this file, so it opens without a network."


def engine_page(
    loaded: LoadedModel, photo: Image.Image, *, name: str, mode: Mode = "fit", storage: Storage = "int8"
) -> bytes:
    """One HTML file that runs a model on any photo, in UTF-8.

    Args:
        photo: mode RGB, upright; what the page opens with.
        name: of the photo.
        mode: how it becomes the model's input at first.
        storage: of the weights, see `write_weights`.
    """
    script, css, weights = program("startInFile"), look(), weights_of(loaded, storage)
    png = io.BytesIO()
    photo.save(png, "PNG")
    first = {
        "id": "first",
        "name": name,
        "thumbnail": small_square(photo),
        "aspect": photo.width / photo.height,
        "file": f"data:image/png;base64,{_base64(png.getvalue())}",
    }
    model = model_facts(loaded, storage) | {"file": "vv-weights", "bytes": len(weights)}
    blocks = {"vv-worker": worker_program().encode(), "vv-weights": weights}
    held = [
        f'<script type="application/octet-stream" id="{key}">{_base64(data)}</script>'
        for key, data in blocks.items()
    ]
    may = {
        "script-src": f"{digest_source(script)} 'wasm-unsafe-eval'",
        "worker-src": "blob:",
        "style-src": digest_source(css),
        "img-src": "data: blob:",
        "connect-src": "data:",
    }
    return composed_page(
        {"models": [model], "pictures": [first], "first": "first"},
        listings={kind: f"data:application/json;base64,{_base64(data)}" for kind, data in listings().items()},
        mode=mode,
        policy=policy(may),
        style=f"<style>{css}</style>",
        script="\n".join([*held, f"<script>{script}</script>"]),
        keeping=_KEEPING,
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
