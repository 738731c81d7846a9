"""The record in a file that anybody may have written."""

from __future__ import annotations

import json

import pytest

from vit_viz.errors import ExportError
from vit_viz.figures.record import as_xml, found_in_xml

LONGEST = 2**20  # characters of a record that is looked at


def record_of(length: int) -> str:
    """A record of so many characters."""
    return json.dumps({"model": ""}).replace('""', f'"{"m" * (length - 13)}"')


def test_a_record_is_read_up_to_its_longest_and_no_further() -> None:
    before, after = b"<svg>", b"</svg>"
    for length in (13, LONGEST // 2, LONGEST - 60):
        text = record_of(length)
        assert len(text) == length
        assert found_in_xml(before + as_xml(text).encode() + after, "SVG") == json.loads(text)
    with pytest.raises(ExportError, match="This SVG carries no provenance of vit_viz"):
        found_in_xml(before + as_xml(record_of(LONGEST + 1)).encode() + after, "SVG")
