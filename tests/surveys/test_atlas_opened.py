"""Names of heads over many photos: each belongs to its head, also where there are too few photos or none."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.surveys.made import HEADS, LAYERS, made_survey
from vit_viz.surveys import atlas
from vit_viz.surveys.opened import OpenedSurvey, open_survey

ALL_HEADS = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]


def survey_of(folder: Path, photos: int) -> OpenedSurvey:
    return open_survey(made_survey(folder / f"of {photos}", photos=photos))


def test_one_photo_is_too_few_to_tell_what_depends_on_it(tmp_path: Path) -> None:
    survey = survey_of(tmp_path, photos=1)
    names = atlas.names(survey, survey.select(), patch_size=(16, 12))
    assert [(one.layer, one.head) for one in names] == ALL_HEADS
    unnamed = [one for one in names if one.name == "unnamed"]
    assert len(unnamed) > 1
    for one in unnamed:
        assert (one.sentence, one.evidence, one.is_thin) == ("Too few photos to tell.", None, True)
    assert {one.name for one in names} >= {"prefix reader", "unnamed"}  # what it reads shows in a single one


def test_of_several_photos_every_head_has_a_name(tmp_path: Path) -> None:
    survey = survey_of(tmp_path, photos=12)
    names = atlas.names(survey, survey.select(), patch_size=(16, 12))
    assert [(one.layer, one.head) for one in names] == ALL_HEADS
    assert not any(one.name == "unnamed" for one in names)


def test_names_of_no_photo_go_by_the_place_alone(tmp_path: Path) -> None:
    """The share that the place explains is of all photos of the survey, whatever is filtered."""
    survey = survey_of(tmp_path, photos=12)
    first, *others = atlas.names(survey, survey.select("false"), patch_size=(16, 12))
    assert (first.layer, first.head, first.name, first.evidence) == (0, 0, "positional", None)
    assert first.sentence.startswith("1.00 of the variance")  # its map is the same in every photo
    shares = atlas.positional_shares(survey)
    for one, (layer, head) in zip(others, ALL_HEADS[1:], strict=True):
        assert (one.layer, one.head, one.name) == (layer, head, "depends on the photo")
        assert one.sentence.startswith(f"Only {shares[layer, head]:.2f} of the variance")
