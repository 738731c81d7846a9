"""Files that leave the program: the numbers survive, the same provenance is in each, nothing in them can run."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vit_viz.answer import Provenance
from vit_viz.errors import ExportError
from vit_viz.figures import export
from vit_viz.figures.record import record_text, versions
from vit_viz.geometry import CropBox
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix

PROVENANCE = Provenance(
    "mini <b>", "ab" * 32, "cd" * 32, "fit → 32 × 48", (("layer", "2"), ("head", "mean"), ("query", "(1, 2)"))
)

RECORD = record_text(PROVENANCE)


def photo(size: tuple[int, int] = (40, 60), seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def a_map(**changes: Any) -> PatchMap:
    facts = {
        "values": np.random.default_rng(0).normal(size=(4, 6)),
        "unit": "change of logit",
        "value_range": (-np.inf, np.inf),
        "signed": True,
        "method": "occlusion",
        "class_blind": False,
        "provenance": PROVENANCE,
        "prefix": {"class": 0.31},
        "crop_box": CropBox((40, 60), (32, 48), (0, 10, 40, 40)),
        "caption": "one patch at a time",
    }
    return PatchMap(**(facts | changes))


def results() -> list[Any]:
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 5)
    return [
        a_map(),
        HeadTable(rng.normal(size=(3, 5)), "nats", (0, np.inf), False, "entropy", PROVENANCE),
        TokenMatrix(
            rng.normal(size=(6, 6)),
            "cosine",
            (-1, 1),
            True,
            "pos",
            (2, 3),
            PROVENANCE,
            {"class": x[:3].repeat(2)},
        ),
        Curve(x, x**2, "share", "probability", "deletion", PROVENANCE, band=(x - 1, x + 1)),
        Curve(x, x**2, "share", "probability", "deletion", PROVENANCE),
        Ranking(("cat", "dog"), np.array([0.7, 0.1]), "probability", "model", PROVENANCE, (281, 207)),
    ]


def wanted() -> dict[str, Any]:
    return {"software": "vit_viz", "versions": versions()} | PROVENANCE.to_dict()


def test_png_carries_its_provenance_title_and_caption_in_any_letters() -> None:
    file = export.png(photo(), PROVENANCE, title="Löwe → 猫", caption="layer 2\nhead mean")
    assert export.png_provenance(file) == wanted()
    with Image.open(io.BytesIO(file)) as picture:
        assert picture.info["Title"] == "Löwe → 猫"
        assert picture.info["Description"] == "layer 2\nhead mean"


def test_png_keeps_every_pixel() -> None:
    with Image.open(io.BytesIO(export.png(photo(), PROVENANCE))) as picture:
        np.testing.assert_array_equal(np.array(picture), np.array(photo()))


def test_png_of_another_program_has_no_provenance() -> None:
    file = io.BytesIO()
    photo().save(file, "PNG")
    with pytest.raises(ExportError, match="no provenance"):
        export.png_provenance(file.getvalue())


@pytest.mark.parametrize("read", [export.png_provenance, export.gif_provenance, export.npz_contents])
@pytest.mark.parametrize(
    "junk", [b"", b"junk", b"\x89PNG\r\n\x1a\njunk", b"GIF89a", b"PK\x03\x04junk", b"\x80\x04N."]
)
def test_files_that_cannot_be_read_are_refused_in_one_sentence(read: Any, junk: bytes) -> None:
    with pytest.raises(ExportError) as refused:
        read(junk)
    assert re.fullmatch(r"This .* (read|vit_viz)\.", str(refused.value))


def test_gif_shows_its_frames_in_order_and_slowly() -> None:
    shades = [Image.new("RGB", (30, 20), (shade,) * 3) for shade in (10, 120, 240)]
    with Image.open(io.BytesIO(export.animation(shades, PROVENANCE, "gif"))) as animation:
        assert animation.n_frames == 3  # type: ignore[attr-defined]
        assert animation.info["loop"] == 0
        for place, shade in enumerate((10, 120, 240)):
            animation.seek(place)
            assert animation.info["duration"] == 800
            assert abs(np.array(animation.convert("RGB")).astype(int) - shade).max() <= 2


def test_gif_carries_a_provenance_longer_than_one_block() -> None:
    long = PROVENANCE.with_parameters(note="x" * 2000)
    file = export.animation([photo()], long, "gif")
    assert export.gif_provenance(file) == {"software": "vit_viz", "versions": versions()} | long.to_dict()


def test_gif_reduces_large_frames() -> None:
    with Image.open(io.BytesIO(export.animation([photo((1800, 600))], PROVENANCE, "gif"))) as animation:
        assert animation.size == (300, 900)


def test_gif_keeps_a_colour_bar_smooth_beside_a_photo_that_takes_all_colours() -> None:
    ramp = np.repeat(np.linspace(0, 255, 400).astype(np.uint8)[None], 40, axis=0)
    bar = np.stack([ramp, 255 - ramp, ramp // 2], axis=-1)
    frame = Image.fromarray(np.concatenate([bar, np.array(photo((300, 400)))]))
    with Image.open(io.BytesIO(export.animation([frame], PROVENANCE, "gif"))) as animation:
        shown = np.array(animation.convert("RGB")).astype(float)[:40]
    # what the eye averages, in blocks of 20 x 20 pixels, is the colour that was given
    blocks = (shown - bar).reshape(2, 20, 20, 20, 3).mean(axis=(1, 3))[:, 2:-2]
    assert abs(blocks).max() < 8


@pytest.mark.parametrize(("frames", "words"), [([], "at least one"), ([(2, 2), (3, 2)], "same size")])
def test_impossible_animations_are_refused(frames: list[tuple[int, int]], words: str) -> None:
    with pytest.raises(ExportError, match=words):
        export.animation([Image.new("RGB", size) for size in frames], PROVENANCE, "gif")


def test_animations_too_large_to_play_are_refused() -> None:
    frame = Image.new("RGB", (900, 900))
    with pytest.raises(ExportError, match="pixels"):
        export.animation([frame] * 100, PROVENANCE, "gif")


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_npz_keeps_every_number_bit_for_bit_and_says_what_it_is(result: Any) -> None:
    arrays, facts = export.npz_contents(export.npz(result, record_text(result.provenance)))
    assert facts["kind"] == type(result).__name__
    assert facts["provenance"] == wanted()
    for name, values in arrays.items():
        first, _, second = name.partition(".")
        source = getattr(result, first)
        if second:
            source = source[second] if first == "extra" else source[("low", "high").index(second)]
        np.testing.assert_array_equal(values, source)
        assert values.dtype == source.dtype
    assert arrays


def test_npz_keeps_the_facts_of_a_map() -> None:
    _, facts = export.npz_contents(export.npz(a_map(), RECORD))
    assert facts["value_range"] == ["-inf", "inf"]
    assert facts["crop_box"] == a_map().crop_box.to_dict()  # type: ignore[union-attr]
    assert facts["prefix"] == {"class": 0.31}
    _, late = export.npz_contents(
        export.npz(a_map(suffix={"detection 0": 0.125, "detection 1": 0.5}), RECORD)
    )
    assert late["suffix"] == {"detection 0": 0.125, "detection 1": 0.5}
    assert (facts["unit"], facts["signed"], facts["class_blind"]) == ("change of logit", True, False)


def test_npz_with_a_pickle_inside_is_refused() -> None:
    file = io.BytesIO()
    np.savez(file, vit_viz=np.array([object()], dtype=object))
    with pytest.raises(ExportError, match="NPZ"):
        export.npz_contents(file.getvalue())
