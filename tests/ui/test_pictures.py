"""What a figure is drawn with: which scale, which words for it, and what is masked."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.desk import odd_picture
from tests.ui.views import view_with
from vit_viz.analyses.attention import mass_mask, mosaic_maps
from vit_viz.figures import maps
from vit_viz.figures.colormaps import limits
from vit_viz.figures.files import file_of
from vit_viz.figures.request import figure_for
from vit_viz.results import PatchMap
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.look.view import map_request, picture
from vit_viz.views.state import ViewState

VIEW: dict[str, Any] = {"model": "odd", "mode": "crop", "layer": 1, "head": 3, "query": "2,5"}


@pytest.fixture(scope="module")
def subject(session: Session) -> Subject:
    return Subject("odd", session.add_upload(odd_picture()), "crop", "")


def drawn(session: Session, subject: Subject, view: ViewState) -> maps.Scaled:
    """The map that is drawn, the ends of its scale, and the scale in words."""
    figure = figure_for(map_request(session, subject, view), view.drawing)
    beside = None if figure.beside is None else session.run(figure.beside)
    return maps.scaled(session.run(figure.request), beside, figure.drawing, figure.parameters)


@pytest.mark.parametrize(
    ("scale", "words", "left_out"),  # of a hundredth of 24, 8 x 24 and 3 x 8 x 24 values
    [("own", "own", 0), ("layer", "layer 1", 1), ("shared", "shared by all heads of all layers", 5)],
)
def test_a_map_is_drawn_on_the_scale_that_its_words_name_and_the_brightest_hundredth_shares_its_top(
    session: Session, subject: Subject, scale: str, words: str, left_out: int
) -> None:
    heads = mosaic_maps(session.trace_of(subject), query=(2, 5), direction="row")
    found, ends, whose = drawn(session, subject, view_with(**VIEW, scale=scale, clip=False))
    values = {"own": found.values, "layer": heads[1], "shared": heads}
    assert len({limits(each)[1] for each in values.values()}) == 3
    assert whose == words
    assert ends == pytest.approx(limits(values[scale]))
    found, (low, high), whose = drawn(session, subject, view_with(**VIEW, scale=scale))
    heads = maps.with_fused_heads(heads)
    falling = np.sort({"own": found.values, "layer": heads[1], "shared": heads}[scale], axis=None)[::-1]
    assert len(falling) // 100 == left_out
    assert low == falling[-1]
    assert falling[left_out] <= high <= min(falling[0], falling[left_out] * (1 + 2**-6))
    assert whose == words + ("" if high == falling[0] else ", peaks clipped")
    # the largest value of a layer is that of its fused maximum, too
    assert (high < falling[0]) == (scale == "shared")


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_outside_its_mass_mask_a_map_is_zero(session: Session, subject: Subject, share: float) -> None:
    whole = session.run(map_request(session, subject, view_with(**VIEW)))
    found = maps.masked(whole, share)
    kept = mass_mask(whole, share) if share else np.ones(whole.grid, bool)
    np.testing.assert_array_equal(found.values, np.where(kept, whole.values, 0))
    assert (0 < np.count_nonzero(found.values) < found.values.size) == bool(share)
    assert ("Only the top" in found.note) == bool(share)


def test_a_map_that_is_the_same_everywhere_has_no_top_and_no_peak() -> None:
    flat = PatchMap(np.full((4, 6), 0.25, np.float32), "weight", (0, 1), False, "a method", False)
    found = maps.masked(flat, 0.5)
    np.testing.assert_array_equal(found.values, flat.values)
    assert found.note == "It is the same everywhere, and has no top."
    assert flat.to_words() == "The map is the same everywhere: it has no peak."


def test_a_map_of_both_signs_is_not_masked() -> None:
    values = np.linspace(-2, 1, 24, dtype=np.float32).reshape(4, 6)
    both = PatchMap(values, "both", (-np.inf, np.inf), True, "a method", False)
    assert maps.masked(both, 0.5) is both


@pytest.mark.parametrize(("style", "drawn_as"), [("light", "tint"), ("heat", "heat")])
def test_a_dark_photo_is_tinted_on_the_screen_too(session: Session, style: str, drawn_as: str) -> None:
    noise = np.random.default_rng(0).integers(0, 40, (90, 120, 3), dtype=np.uint8)
    subject = Subject("odd", session.add_upload(Image.fromarray(noise)), "crop", "")
    dark, wanted = (picture(session, subject, view_with(**VIEW, style=one)).data for one in (style, drawn_as))
    assert dark == wanted


def test_figure_and_file_say_what_the_photo_is_called(session: Session) -> None:
    image = session.add_upload(odd_picture(2), owner="ada", file_name="/home/ada/Zwei K\u00e4tzchen.v2.jpg")
    mine = Subject("odd", image, "crop", "ada")
    saved = file_of(session, figure_for(map_request(session, mine, view_with(**VIEW))))
    with Image.open(io.BytesIO(saved.data)) as opened:
        title = opened.info["Title"]
    assert title.startswith("Zwei K\u00e4tzchen.v2: ")
    assert saved.file_name.startswith("vit_viz_Zwei-K-tzchen-v2_look_odd_layer-1_head-3")
    assert image not in saved.file_name + title
