"""What every file says of itself: where its numbers came from, what was asked, and with which versions it was made; as JSON.

In XML (SVG, and the XMP packets of PDF and WebP) the text is one element, plain to be found by whoever looks through the bytes.
Nothing in a record depends on when or where a file was made.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

from vit_viz.answer import Provenance
from vit_viz.errors import ExportError

KEY = "vit_viz"
"""Keyword of the record in a PNG, name of its entry in an NPZ."""

_LONGEST = 1 << 20
_ELEMENT = re.compile(rb"<vit_viz:record>([^<]{1,%d})</vit_viz:record>" % _LONGEST)


def record_text(provenance: Provenance, made: Mapping[str, Any] | None = None) -> str:
    """The record as JSON text: the provenance, and what was asked and how it was drawn, see `vit_viz.figures.files`."""
    facts = {"software": "vit_viz", "versions": versions()} | provenance.to_dict() | dict(made or {})
    return json.dumps(facts, ensure_ascii=True, sort_keys=True, allow_nan=False)


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of what numbers and pictures depend on."""
    own = str(import_module("vit_viz").__version__)
    return {"vit_viz": own} | {name: metadata.version(name) for name in ("torch", "numpy", "pillow")}


def parsed(text: object, kind: str) -> dict[str, Any]:
    """A record as data; the text comes from a file and may be anything."""
    if isinstance(text, bytes):
        text = text.decode("ascii", errors="replace")
    try:
        data = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ExportError(f"This {kind} carries no provenance of vit_viz.")
    return data


def as_xml(text: str) -> str:
    """The record as RDF, for the metadata of an SVG and for XMP."""
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
        f'xmlns:vit_viz="urn:vit_viz"><vit_viz:record>{html.escape(text)}</vit_viz:record></rdf:Description></rdf:RDF>'
    )


def xmp(text: str) -> str:
    """The record as an XMP packet's content."""
    return f'<x:xmpmeta xmlns:x="adobe:ns:meta/">{as_xml(text)}</x:xmpmeta>'


def found_in_xml(file: bytes, kind: str) -> dict[str, Any]:
    """The record in the bytes of a file that holds `as_xml`; nothing else of it is read."""
    element = _ELEMENT.search(file)
    return parsed(None if element is None else html.unescape(element[1].decode("ascii", "replace")), kind)
