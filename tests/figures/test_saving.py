"""What results do with themselves: save, lie over a photo, show themselves."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.figures.test_export import PROVENANCE, a_map, photo, results
from tests.ui.desk import odd_picture, odd_session
from vit_viz.answer import Provenance
from vit_viz.errors import ExportError, ParameterError
from vit_viz.figures.overlay import overlay
from vit_viz.figures.replay import record_of, replay
from vit_viz.session.request import Subject


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_results_show_themselves_in_one_line_and_as_a_small_picture(result: Any) -> None:
    assert repr(result).startswith(f"{type(result).__name__}(")
    assert "\n" not in repr(result)
    assert len(repr(result)) < 120
    with Image.open(io.BytesIO(result._repr_png_())) as picture:
        assert picture.width < 500
    page = ET.fromstring(result._repr_html_().replace('100%" src', '100%" src').rstrip(">") + "/>")
    assert page.get("alt") == repr(result)


def test_words_of_a_result_cannot_become_markup() -> None:
    assert "<script>" not in a_map(caption="<script>alert(1)</script>")._repr_html_()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "csv", "npz"])
def test_a_map_is_saved_as_its_ending_says(tmp_path: Path, ending: str) -> None:
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "csv": b"# method", "npz": b"PK"}
    file = a_map().save(tmp_path / f"map.{ending}", image=photo(), width_cm=5, dpi=72)
    first = file.read_bytes()
    assert first.startswith(starts[ending])
    assert a_map().save(tmp_path / f"again.{ending}", image=photo(), width_cm=5, dpi=72).read_bytes() == first


def test_a_saved_map_lies_over_its_photo(tmp_path: Path) -> None:
    photo().save(tmp_path / "photo.png")
    sizes = []
    for image in (None, tmp_path / "photo.png"):
        file = a_map().save(tmp_path / "map.png", image=image, title="Mine", width_cm=5, dpi=72)
        with Image.open(file) as picture:
            assert picture.info["Title"] == "Mine"
            sizes.append(len(picture.getcolors(1 << 20) or ()))
    assert sizes[1] > 4 * sizes[0]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "csv", "npz"])
@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_a_saved_result_says_where_its_numbers_came_from(tmp_path: Path, result: Any, ending: str) -> None:
    """Two results that differ in nothing else, so that what a file says is read from its own."""
    for provenance in (PROVENANCE, Provenance("other", "ef" * 32, "01" * 32, "crop", (("layer", "0"),))):
        saved = replace(result, provenance=provenance).save(tmp_path / f"result.{ending}", width_cm=5, dpi=72)
        assert record_of(saved).items() >= provenance.to_dict().items()


def test_a_result_saved_by_itself_does_not_say_what_was_asked(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="not the request"):
        replay(a_map().save(tmp_path / "map.csv"), odd_session())


@pytest.mark.parametrize("name", ["map.docx", "map", "map.gif"])
def test_another_ending_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExportError, match=r"PNG, SVG|\.png, \.svg"):
        a_map().save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_folder_that_is_not_there_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"gone.map\.csv cannot be written: No such file"):
        a_map().save(tmp_path / "gone" / "map.csv")


def test_an_overlay_is_the_photo_where_its_strength_is_zero() -> None:
    plain = a_map(values=np.arange(24).reshape(4, 6), signed=False, value_range=(0, 24))
    np.testing.assert_array_equal(np.array(plain.overlay(photo(), alpha=0)), np.array(photo()))
    lit = plain.overlay(photo(), smooth=False)
    wanted = overlay(photo(), plain, style="light", alpha=1.0, scale=(0.0, 23.0), smooth=False)
    np.testing.assert_array_equal(np.array(lit), np.array(wanted))
    with pytest.raises(ParameterError, match="shape"):
        plain.overlay(photo((60, 40)))


def test_a_trace_is_told_in_three_lines() -> None:
    session = odd_session()
    image = session.add_upload(odd_picture())
    trace = session.trace_of(Subject("odd", image, "crop", ""))
    model, layout, proof = repr(trace).splitlines()
    assert model == "Trace of odd: 3 layers x 5 heads, 26 tokens"
    assert layout.startswith("  image: 4 x 8 patches") or "x" in layout
    assert proof == "  proof: verified: what is drawn is what the model computed"
