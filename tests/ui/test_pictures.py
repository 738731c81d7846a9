"""What a figure is drawn with: which scale, which words for it, and what is masked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.desk import odd_picture
from tests.ui.views import view_with
from vit_viz.analyses.attention import mass_mask, mosaic_maps
from vit_viz.drawing import pictures as drawing
from vit_viz.render.colormaps import limits
from vit_viz.results import PatchMap
from vit_viz.session.handles import Subject
from vit_viz.session.session import Session
from vit_viz.ui import pictures

VIEW: dict[str, Any] = {"model": "odd", "mode": "crop", "layer": 1, "head": 3, "query": "2,5"}


@pytest.fixture(scope="module")
def subject(session: Session) -> Subject:
    return Subject("odd", session.add_upload(odd_picture()), "crop", "")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PatchMap, dict[str, Any]]]:
    """The maps that are drawn, with their options."""
    found = []

    def figure(photo: Image.Image, patch_map: PatchMap, **options: Any) -> Image.Image:
        found.append((patch_map, options))
        return photo

    monkeypatch.setattr(drawing, "captioned_map", figure)
    return found


@pytest.mark.parametrize(
    ("scale", "words"),
    [("own", "own"), ("layer", "layer 1"), ("shared", "shared by all heads of all layers")],
)
def test_a_map_is_drawn_on_the_scale_that_its_words_name(
    session: Session, subject: Subject, drawn: list[Any], scale: str, words: str
) -> None:
    view = view_with(**VIEW, scale=scale, clip=False)
    pictures.picture(session, subject, view, "map", bare=False)
    ((found, options),) = drawn
    maps = mosaic_maps(session.trace_of(subject), query=(2, 5), direction="row")
    values = {"own": found.values, "layer": maps[1], "shared": maps}
    assert len({limits(each)[1] for each in values.values()}) == 3
    assert options["scale_name"] == words
    assert options["scale"] == pytest.approx(limits(values[scale]))


@pytest.mark.parametrize(
    ("scale", "words"),
    [("own", "own"), ("layer", "layer 1"), ("shared", "shared by all heads of all layers")],
)
def test_the_brightest_hundredth_shares_the_top_of_the_scale(
    session: Session, subject: Subject, drawn: list[Any], scale: str, words: str
) -> None:
    pictures.picture(session, subject, view_with(**VIEW, scale=scale), "map", bare=False)
    ((found, options),) = drawn
    maps = drawing.with_fused_heads(mosaic_maps(session.trace_of(subject), query=(2, 5), direction="row"))
    values = np.sort({"own": found.values, "layer": maps[1], "shared": maps}[scale], axis=None)[::-1]
    left_out = {"own": 0, "layer": 1, "shared": 5}[scale]  # a hundredth of 24, 8 x 24 and 3 x 8 x 24 values
    assert len(values) // 100 == left_out
    low, high = options["scale"]
    assert low == values[-1]
    assert values[left_out] <= high <= min(values[0], values[left_out] * (1 + 2**-6))
    assert options["scale_name"] == words + ("" if high == values[0] else ", peaks clipped")
    assert (high < values[0]) == (
        scale == "shared"
    )  # the largest value of a layer is that of its fused maximum, too


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_outside_its_mass_mask_a_map_is_zero(
    session: Session, subject: Subject, drawn: list[Any], share: float
) -> None:
    view = view_with(**VIEW)
    pictures.picture(session, subject, view_with(**VIEW, mask=share), "map", bare=False)
    ((found, _),) = drawn
    whole = pictures.attention(session, subject, view)
    kept = mass_mask(whole, share) if share else np.ones(whole.grid, bool)
    np.testing.assert_array_equal(found.values, np.where(kept, whole.values, 0))
    assert (0 < np.count_nonzero(found.values) < found.values.size) == bool(share)
    assert ("Only the top" in found.note) == bool(share)


def test_a_map_of_both_signs_is_not_masked(
    session: Session, subject: Subject, drawn: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.linspace(-2, 1, 24, dtype=np.float32).reshape(4, 6)
    both = PatchMap(values, "both", (-np.inf, np.inf), True, "a method", False)
    monkeypatch.setattr(drawing.Task, "patch_map", lambda _: both)
    pictures.picture(session, subject, view_with(**VIEW, mask=0.5), "explain", bare=False)
    ((found, options),) = drawn
    np.testing.assert_array_equal(found.values, values)
    assert options["table"] is None


@pytest.mark.parametrize(
    ("kind", "changes", "name"),
    [
        ("map", {}, "vit_viz_my-cat_map_odd_layer-1_head-3_light_smooth.png"),
        (
            "map",
            {"smooth": False, "style": "tint"},
            "vit_viz_my-cat_map_odd_layer-1_head-3_tint_patches.png",
        ),
        ("mosaic", {"style": "heat"}, "vit_viz_my-cat_mosaic_odd_heat_patches.png"),
        ("patches", {}, "vit_viz_my-cat_patches_odd.png"),
    ],
)
def test_a_file_is_named_by_its_photo_style_and_drawing(
    session: Session, kind: Any, changes: dict[str, Any], name: str
) -> None:
    image = session.add_upload(odd_picture(), file_name="C:\\photos\\my cat\u00e9.jpg")
    saved = pictures.picture(
        session, Subject("odd", image, "crop", ""), view_with(**VIEW, **changes), kind, bare=False
    )
    assert saved.file_name == name


@pytest.mark.parametrize(("style", "drawn_as"), [("light", "tint"), ("heat", "heat")])
def test_a_dark_photo_is_tinted_on_the_screen_too(session: Session, style: str, drawn_as: str) -> None:
    noise = np.random.default_rng(0).integers(0, 40, (90, 120, 3), dtype=np.uint8)
    subject = Subject("odd", session.add_upload(Image.fromarray(noise)), "crop", "")
    dark, wanted = (
        pictures.picture(session, subject, view_with(**VIEW, style=one), "map", bare=True).data
        for one in (style, drawn_as)
    )
    assert dark == wanted


def test_figure_and_file_say_what_the_photo_is_called(session: Session, drawn: list[Any]) -> None:
    image = session.add_upload(odd_picture(2), owner="ada", file_name="/home/ada/Zwei K\u00e4tzchen.v2.jpg")
    mine = Subject("odd", image, "crop", "ada")
    saved = pictures.picture(session, mine, view_with(**VIEW), "map", bare=False)
    ((_, options),) = drawn
    assert options["title"].startswith("Zwei K\u00e4tzchen.v2: ")
    assert saved.file_name.startswith("vit_viz_Zwei-K-tzchen-v2_map_odd_layer-1_head-3")
    assert image not in saved.file_name + options["title"]
