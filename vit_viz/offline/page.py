"""The explorer as one HTML file: photo, every layer and head, and the program, with nothing left to fetch.

The page may load nothing (Content-Security-Policy): its script and its style are known by their digests, its numbers are text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from vit_viz.analyses.opening import opening
from vit_viz.capture import Trace
from vit_viz.errors import ExportError
from vit_viz.explorer import colour_tables, style, template
from vit_viz.explorer.packing import Storage, packed_error, packed_layer, source_of
from vit_viz.explorer.value import proof_value, trace_value
from vit_viz.figures.record import record_text
from vit_viz.figures.styles import unsuitable
from vit_viz.images import Mode
from vit_viz.offline.bundle import bundled

FP16_BYTES = 20_000_000
"""Bytes that queries and keys in fp16 may take in the page; beyond it they are stored as int8."""

PAGE_BYTES = 200_000_000
"""Bytes of layers with which a page still opens; there is none of more."""

_PHOTO_SIDE = 1280
_PHOTO_BYTES = 300_000
_QUALITIES = (88, 80, 70, 55, 40)
_FOLDER = Path(__file__).parent
_PARAGRAPHS: dict[Storage, str] = {
    "fp16": "Queries and keys are stored as fp16.",
    "int8": "Queries and keys are stored as int8 with a scale for each row, because fp16 would take {size:.0f} MB.",
}


def page_of(
    trace: Trace,
    photo: Image.Image,
    *,
    name: str,
    mode: Mode = "fit",
    view: Mapping[str, Any] | None = None,
    most_bytes: int = PAGE_BYTES,
) -> bytes:
    """A trace as a page of its own, in UTF-8.

    Args:
        trace: of a photo, best with the norms of its values, which weighted attention needs.
        photo: mode RGB, upright; of the shape that the trace's crop box speaks of, at any size.
        name: of the photo.
        mode: how it became the model's input.
        view: what it opens with: layer, head, query as text, and options by their names; the rest is the explorer's own choice.
        most_bytes: of all layers as they stand in the page.
    """
    check_fits(trace, most_bytes)
    storage = storage_of(trace)
    script, css = _script(), _style()
    packed = (packed_layer(trace, layer, storage=storage) for layer in range(trace.num_layers))
    layers = (
        f'<script type="application/octet-stream" id="vv-layer-{layer}">{base64.b64encode(data).decode("ascii")}</script>'
        for layer, data in enumerate(packed)
    )
    parts = {
        # its one script, its one style sheet, the photo that it holds
        "policy": policy(
            {"script-src": digest_source(script), "style-src": digest_source(css), "img-src": "data:"}
        ),
        "title": html.escape(f"{name}, seen by {trace.provenance.model or 'a model'}"),
        "shape": _shape(trace),
        "style": css,
        "explorer": template("vv"),
        "storage": _storage_words(trace, storage),
        "provenance": html.escape(record_text(trace.provenance)),
        "facts": script_json(explorer_facts(trace, photo, name=name, mode=mode, view=view)),
        "layers": "\n".join(layers),
        "script": script,
    }
    # in one pass, so that text which looks like a placeholder stays text
    page = (_FOLDER / "page.html").read_text("utf-8")
    return re.sub(r"@@(\w+)@@", lambda match: parts[match[1]], page).encode()


def explorer_facts(
    trace: Trace, photo: Image.Image, *, name: str, mode: Mode, view: Mapping[str, Any] | None
) -> dict[str, Any]:
    """All that an explorer without a server is told at once: what it shows, colours, and how its layers are packed."""
    begins = opening(trace)
    small = photo.copy()
    small.thumbnail((_PHOTO_SIDE, _PHOTO_SIDE), Image.Resampling.LANCZOS)
    value = {
        "seq": 0,
        "trace": "page",
        "model": trace.provenance.model,
        "image": trace.provenance.image,
        **trace_value(trace),
        "photo": _photo(small),
        "photo_size": [small.height, small.width],
        "unlit": unsuitable(small),
        "opening": {"layer": begins.layer, "head": begins.head},
        "is_placed": True,
        "tour": [],
        "view": dict(view or {}),
        "proof": proof_value(trace),
        "note": " ".join(trace.problems),
        "name": name,
        "mode": mode,
    }
    pool = trace.query_weights("pool").tolist() if trace.layout.pooling == "attention" else None
    return {
        "value": value,
        "tables": colour_tables(),
        "packing": {"storage": storage_of(trace), "pool": pool},
    }


def storage_of(trace: Trace) -> Storage:
    """How queries and keys are stored: as fp16 unless that takes too much."""
    return "fp16" if fp16_bytes(trace) <= FP16_BYTES else "int8"


def fp16_bytes(trace: Trace) -> int:
    """Bytes that all layers have in a page in fp16, at most: they are compressed, and then written as text (base64)."""
    kept, whole = 4 * trace.head_dim + 8, 2 * trace.num_tokens + 4
    row = sum(kept if trace.source(layer) == "qk" else whole for layer in range(trace.num_layers))
    return trace.num_heads * trace.num_tokens * row * 4 // 3


def check_fits(trace: Trace, most_bytes: int = PAGE_BYTES) -> None:
    """Check that a trace fits into a page."""
    kinds = {source_of(trace, layer) for layer in range(trace.num_layers)}
    size = fp16_bytes(trace)
    stored = size // 2 if kinds == {"qk"} and size > FP16_BYTES else size
    if "rows" in kinds or stored > most_bytes:
        raise ExportError(
            f"A page holds at most {most_bytes // 10**6} MB of attention, and this model has more on "
            f"{trace.num_tokens} tokens: choose a smaller size of the input."
        )


def _photo(photo: Image.Image) -> str:
    """The photo as a data address, in the best quality that is small enough."""
    for quality in _QUALITIES:
        file = io.BytesIO()
        photo.save(file, "WEBP", quality=quality)
        if file.tell() <= _PHOTO_BYTES:
            break
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _shape(trace: Trace) -> str:
    rows, cols = trace.layout.grid
    edits = dict(trace.provenance.parameters).get("edits")
    edited = f"The model is edited: {html.escape(edits)}. " if edits else ""
    return (
        f"{edited}{trace.num_layers} layers x {trace.num_heads} heads, {rows} x {cols} patches. Point at the photo to choose the "
        "query; click to keep it."
    )


def _storage_words(trace: Trace, storage: Storage) -> str:
    """How exact the page's numbers are, measured."""
    how = _PARAGRAPHS[storage].format(size=fp16_bytes(trace) / 1e6)
    error = 100 * packed_error(trace, storage=storage)
    return (
        f"{how} Rows of attention differ from the model's own by at most {error:.2g}% of their largest weight, as measured in "
        "every head of every layer."
    )


@cache
def _script() -> str:
    return bundled("offline/page.js", "entry.start();")


def explorer_style() -> str:
    """The rules of the explorer and of what it is made of."""
    shared = ("ui/tokens.css", "ui/kit/system.css")  # as files, since nothing here needs the app
    return "\n".join([*((_FOLDER.parent / name).read_text("utf-8") for name in shared), style()])


@cache
def _style() -> str:
    return explorer_style() + "\n" + (_FOLDER / "page.css").read_text("utf-8")


def policy(directives: Mapping[str, str]) -> str:
    """What a page may load and run (Content-Security-Policy): what is named, and nothing else."""
    named = {"default-src": "'none'", **directives, "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{name} {sources}" for name, sources in named.items())


def digest_source(text: str) -> str:
    """How a policy names a script or a style sheet that stands in the page: by the digest of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def script_json(facts: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(facts, separators=(",", ":"))
    return text.replace("</", "<\\/").replace("<!", "\\u003c!")
