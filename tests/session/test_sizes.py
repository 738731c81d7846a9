"""The size that is chosen, and the part that is looked at: what is computed, what is kept, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import vit_viz
from tests.session.test_session import Counted, picture
from vit_viz.analyses.patches import ReceivedImage
from vit_viz.errors import CaptureError, ImageError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Mode, Preprocess, image_hash
from vit_viz.images.part import Part, cut
from vit_viz.results import PatchMap
from vit_viz.session.request import Subject
from vit_viz.ui.app import session_of

RECIPE = Preprocess((32, 48), (8, 8), resize_to=36)  # own grid 4 x 6, short side 4
PART: Part = (3, 5, 33, 47)


def about(
    counted: Counted, *, mode: Mode = "fit", owner: str = "ada", size: int = 0, part: Part | None = None
) -> Subject:
    image = counted.session.add_upload(picture(0), owner="ada")
    return Subject("tiny", image, mode, owner, size=size, part=part)


# --- the recipe


@pytest.mark.parametrize(("mode", "grid"), [("fit", (9, 14)), ("crop", (9, 14)), ("stretch", (9, 14))])
def test_a_size_is_the_short_side_in_patches(mode: Mode, grid: tuple[int, int]) -> None:
    prepared = RECIPE.apply(picture(0), mode=mode, size=9)  # of 40 x 60 pixels
    assert prepared.crop_box.input_size == (9 * 8, 14 * 8)  # 13.5 is even-rounded
    assert RECIPE.grid(40, 60, mode=mode, size=9) == grid


def test_the_checkpoints_own_size_is_the_recipe_itself() -> None:
    assert RECIPE.short_side == 4
    assert RECIPE.sized(0) is RECIPE.sized(4) is RECIPE
    assert torch.equal(RECIPE.apply(picture(0), size=4).pixels, RECIPE.apply(picture(0)).pixels)


def test_the_evaluation_recipe_keeps_its_margin_in_proportion() -> None:
    sized = RECIPE.sized(8)
    assert (sized.input_size, sized.resize_to) == ((64, 96), 72)
    small = RECIPE.apply(picture(0), mode="crop").crop_box.region
    large = RECIPE.apply(picture(0), mode="crop", size=8).crop_box.region
    assert large == pytest.approx(
        small, abs=1.0
    )  # of the 40 x 60 pixels: rounding to whole pixels aside, the same cut


def test_a_tall_picture_of_a_square_recipe_has_its_short_side_across() -> None:
    assert Preprocess((224, 224), (16, 16)).grid(900, 600, size=20) == (30, 20)


def test_a_recipe_whose_patch_does_not_divide_its_input_is_enlarged_to_whole_patches() -> None:
    recipe = Preprocess((30, 50), (8, 8), drop_remainder=True)  # covers 24 x 48
    assert recipe.short_side == 3
    assert recipe.sized(5).input_size == (40, 80)
    assert Preprocess((30, 50), (8, 8)).short_side == 4


def test_patches_that_are_not_square_are_counted_on_the_side_that_has_fewer() -> None:
    recipe = Preprocess((48, 48), (6, 16))  # 8 x 3 patches
    assert recipe.short_side == 3
    assert recipe.sized(5).input_size == (78, 80)


@pytest.mark.parametrize("size", [-1, 2.0, True, "4"])
def test_what_is_no_number_of_patches_is_refused(size: object) -> None:
    with pytest.raises(ParameterError, match="A size is the short side in patches"):
        RECIPE.sized(size)  # type: ignore[arg-type]


def test_a_side_has_at_most_2048_pixels() -> None:
    recipe = Preprocess((224, 448), (16, 16))
    assert recipe.sized(64).input_size == (1024, 2048)
    with pytest.raises(ParameterError, match="a side has at most 2048"):
        recipe.sized(65)


def test_a_size_is_computed_whole_up_to_the_bound_and_refused_beyond_it() -> None:
    count = 9 * 14
    for most in (count, count + 1):
        assert RECIPE.grid(40, 60, size=9, max_patches=most) == (9, 14)
        assert RECIPE.apply(picture(0), size=9, max_patches=most).crop_box.input_size == (72, 112)
    for call in (RECIPE.grid, lambda *_, **options: RECIPE.apply(picture(0), **options)):
        with pytest.raises(
            ParameterError, match=r"9 x 14 = 126 patches, more than the 125 that are computed here"
        ):
            call(40, 60, size=9, max_patches=count - 1)


def test_without_a_bound_4096_patches_may_be_chosen() -> None:
    recipe = Preprocess((224, 224), (8, 8))
    assert recipe.grid(100, 100, size=64) == (64, 64)
    with pytest.raises(ParameterError, match=r"65 x 65 = 4,225 patches, more than the 4,096"):
        recipe.grid(100, 100, size=65)


def test_the_checkpoints_own_size_is_still_made_smaller_in_mode_fit() -> None:
    assert RECIPE.grid(40, 400, max_patches=24) == RECIPE.grid(40, 400, max_patches=24, size=0) == (1, 10)
    assert Preprocess((1024, 1024), (8, 8)).grid(50, 50) == (32, 32)


def test_the_recipe_in_words_says_the_size() -> None:
    assert "short side near 72 px" in RECIPE.sized(9).describe(mode="fit")


# --- the session


def test_python_traces_and_explains_at_a_size(counted: Counted) -> None:
    loaded, photo = counted.session.model("tiny"), picture(0)
    recorded = vit_viz.trace(loaded, photo, size=7)  # type: ignore[arg-type]
    assert recorded.layout.grid == (7, 10)
    assert "short side near 56 px" in recorded.provenance.preprocess
    found = vit_viz.explain(loaded, photo, size=7)["relevance"]  # type: ignore[arg-type]
    assert found.grid == (7, 10)
    with pytest.raises(ParameterError, match="more than the 69 that are computed here"):
        vit_viz.trace(loaded, photo, size=7, max_patches=69)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["fit", "crop", "stretch"])
def test_every_analysis_of_a_subject_is_of_its_size(counted: Counted, mode: Mode) -> None:
    subject, session = about(counted, mode=mode, size=6), counted.session
    grid = session.trace_of(subject).layout.grid
    assert grid == (6, 9)
    assert session.prepared(subject).pixels.shape[-2:] == (48, 72)
    received = session.run(subject.request("sequence"))
    assert isinstance(received, ReceivedImage)
    assert received.values.shape == (48, 72, 3)
    for analysis, options in (
        ("look", {"layer": 1, "query": "class"}),
        ("rollout", {"query": "class"}),
        ("relevance", {}),
        ("saliency", {}),
    ):
        found = session.run(subject.request(analysis, **options))
        assert isinstance(found, PatchMap)
        assert found.grid == grid


def test_sizes_and_parts_are_kept_apart(counted: Counted) -> None:
    plain = about(counted)
    others = (
        plain,
        replace(plain, size=5),
        replace(plain, size=6),
        replace(plain, part=PART),
        replace(plain, part=(3, 5, 33, 46)),
        replace(plain, part=PART, size=5),
    )
    traces = [counted.session.trace_of(subject) for subject in others]
    assert counted.forwards == len({id(trace) for trace in traces}) == len(others)
    assert [counted.session.trace_of(subject) for subject in others] == traces  # kept
    assert counted.forwards == len(others)


def test_a_session_computes_as_many_patches_as_it_may_and_no_more(counted: Counted) -> None:
    subject = about(counted, size=6)  # 6 x 9
    for most in (54, 55):
        counted.session.max_patches = most
        assert counted.session.trace_of(subject).layout.grid == (6, 9)
    counted.session.max_patches = 53
    counted.session.cache.clear()
    before = counted.forwards
    for analysis in ("trace", "sequence", "rollout", "explain all"):
        with pytest.raises(
            ParameterError, match=r"6 x 9 = 54 patches, more than the 53 that are computed here"
        ):
            counted.session.run(subject.request(analysis))
    assert counted.forwards == before
    assert counted.session.trace_of(replace(subject, size=5)).layout.grid == (5, 8)


def test_what_is_kept_is_refused_too_once_it_is_too_much(counted: Counted) -> None:
    subject = about(counted, size=6)
    counted.session.trace_of(subject)
    counted.session.max_patches = 53
    with pytest.raises(ParameterError, match="more than the 53"):
        counted.session.trace_of(subject)


def test_a_session_may_compute_more_than_4096_where_its_owner_says_so(counted: Counted) -> None:
    counted.session.max_patches = 5000
    assert counted.session.trace_of(about(counted, size=55)).layout.grid == (55, 82)  # 4,510


def test_a_size_below_the_checkpoints_own_is_refused(counted: Counted) -> None:
    assert counted.session.trace_of(about(counted, size=4)).layout.grid == (4, 6)
    with pytest.raises(ParameterError, match="at least the 4 patches of the checkpoint's own size, not 3"):
        counted.session.trace_of(about(counted, size=3))


class FixedSize(nn.Module):
    """Attention over 4 x 6 patches only, with learned positions that nothing resamples."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 20, 8, 8)
        self.positions = nn.Parameter(torch.randn(1, 24, 20) * 0.1)
        self.attention = nn.MultiheadAttention(20, 5, batch_first=True)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(pixels).flatten(2).transpose(1, 2) + self.positions
        mixed: torch.Tensor = (tokens + self.attention(tokens, tokens, tokens)[0]).mean(1)
        return mixed


def test_a_model_that_takes_one_size_only_says_so_in_one_sentence() -> None:
    torch.manual_seed(4)
    session = session_of(
        FixedSize().eval(),
        preprocess=Preprocess((32, 48), (8, 8)),
        layout=TokenLayout((4, 6), ()),
    )
    image = session.add_upload(picture(0))
    subject = Subject(session.default_model, image, "stretch")
    assert session.trace_of(subject).layout.grid == (4, 6)
    with pytest.raises(
        CaptureError, match=r"FixedSize does not run on pixels \[1, 3, 40, 64\] .*without size="
    ):
        session.trace_of(replace(subject, size=5))


# --- parts


def test_a_part_is_computed_as_if_it_were_the_picture(counted: Counted) -> None:
    subject, session = about(counted, part=PART), counted.session
    alone = session.add_upload(cut(picture(0), PART), owner="ada")
    expected, found = session.trace("tiny", alone, owner="ada"), session.trace_of(subject)
    assert found.crop_box == expected.crop_box
    assert found.logits is not None
    assert torch.equal(found.logits, expected.logits)  # type: ignore[arg-type]
    assert torch.equal(
        session.prepared(subject).pixels, session.prepared(Subject("tiny", alone, owner="ada")).pixels
    )
    assert np.array_equal(np.asarray(session.photo_of(subject)), np.asarray(cut(picture(0), PART)))


def test_the_provenance_of_a_part_names_the_whole_photo_and_where_it_was_cut(counted: Counted) -> None:
    subject = about(counted, part=PART)
    session = counted.session
    explained = session.run(subject.request("relevance"))
    assert isinstance(explained, PatchMap)
    for provenance in (
        session.trace_of(subject).provenance,
        session.prepared(subject).provenance,
        explained.provenance,
    ):
        assert provenance.image == image_hash(picture(0))
        assert provenance.preprocess.startswith(
            "part of 33 x 47 pixels of the photo, from row 3 and column 5; whole image"
        )


def test_a_part_beyond_the_photo_is_refused_before_anything_is_computed(counted: Counted) -> None:
    assert counted.session.trace_of(about(counted, part=(7, 0, 33, 60))).crop_box is not None
    before = counted.forwards
    for part in ((8, 0, 33, 60), (7, 1, 33, 60)):
        with pytest.raises(ParameterError, match="reaches beyond the photo, which has 40 x 60 pixels"):
            counted.session.trace_of(about(counted, part=part))
    assert counted.forwards == before


def test_nobody_else_sees_a_part_of_an_upload(counted: Counted) -> None:
    theirs = about(counted, owner="bob", part=PART)
    for look in (counted.session.trace_of, counted.session.photo_of, counted.session.prepared):
        with pytest.raises(ImageError):
            look(theirs)


def test_what_was_made_of_a_part_goes_with_its_upload(counted: Counted) -> None:
    subject, session = about(counted, part=PART, size=5), counted.session
    session.run(subject.request("relevance"))
    session.prepared(subject)
    assert session.cache.stats.entries > 0
    session.uploads.forget("ada")
    assert session.cache.stats.entries == 0


def test_the_chosen_size_of_a_part_is_counted_on_the_part(counted: Counted) -> None:
    counted.session.max_patches = 8 * 8
    square = about(counted, size=8, part=(0, 0, 40, 40))
    assert counted.session.trace_of(square).layout.grid == (8, 8)
    with pytest.raises(ParameterError, match="8 x 12 = 96 patches"):
        counted.session.trace_of(about(counted, size=8))
