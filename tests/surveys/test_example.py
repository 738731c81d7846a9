"""The survey that comes with vit_viz: small, of known answers, and a finished survey on any machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.example_survey import HEIGHT, METHODS, PER_CLASS, THINGS, WIDTH, scene
from vit_viz.bundled import example_photos, example_survey
from vit_viz.checkpoints import load
from vit_viz.images import decode
from vit_viz.surveys.run import Survey, survey

COUNT = PER_CLASS * len(THINGS)
MOST_BYTES = 2 * 2**20


@pytest.fixture(scope="module")
def bundled() -> Survey:
    return Survey(example_survey())


def test_it_is_whole_small_and_says_nothing_of_the_machine_that_made_it(bundled: Survey) -> None:
    assert (bundled.num_photos, bundled.failures) == (COUNT, {})
    files = [file for file in bundled.folder.parent.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES
    assert bundled.manifest["request"] == {
        "photos": "photos/annotations.json", "annotations": None, "mode": "crop", "size": 0,
    }  # fmt: skip
    for file in files:
        if file.suffix == ".json":
            assert not any(place in file.read_text() for place in ("/home", "/root", "/tmp", "/work", ":\\"))


def test_every_photo_opens_and_lies_where_the_survey_says(bundled: Survey) -> None:
    listed = bundled.folder.parent / bundled.manifest["request"]["photos"]
    assert listed == example_photos()
    names = [row["file"] for row in json.loads(listed.read_text())]
    assert bundled.table("photos", ["photo"]).to_pydict()["photo"] == names
    for name in names:
        assert decode(listed.parent / name).size == (WIDTH, HEIGHT)


def test_the_answers_are_known_and_some_are_wrong(bundled: Survey) -> None:
    rows = bundled.table("photos").to_pylist()
    assert {row["label"] for row in rows} == set(THINGS)
    assert None not in {row["right"] for row in rows}
    top1, _, photos = bundled.accuracy or (0, 0, 0)
    assert photos == COUNT
    assert 0.2 < top1 < 0.6
    assert all(0 < row["box_share"] < 0.75 for row in rows)
    right = {row["photo"] for row in rows if row["right"]}
    looking = {(row["photo"] in right, row["box_share"] > 0.5) for row in bundled.table("heads").to_pylist()}
    assert looking == {(a, b) for a in (False, True) for b in (False, True)}  # something for every list


def test_methods_are_located_in_every_photo(bundled: Survey) -> None:
    rows = bundled.table("methods").to_pylist()
    assert len(rows) == COUNT * len(METHODS)
    assert not [row for row in rows if None in (row["pointing"], row["energy"])]


@pytest.mark.parametrize("number", [0, 3])
def test_the_scenes_are_those_that_the_script_draws(number: int) -> None:
    listed = {row["file"]: row for row in json.loads(example_photos().read_text())}
    for label in ("lemon", "spider web", "school bus"):
        drawn, name = scene(label, number), f"{label.replace(' ', '_')}_{number}.webp"
        assert listed[name] == {"file": name, "label": label, "boxes": [list(drawn.box)]}
        theirs, ours = (
            np.asarray(one, np.float64) for one in (decode(example_photos().parent / name), drawn.photo)
        )
        assert np.abs(theirs - ours).mean() < 6  # what WebP costs
        left, top, right, bottom = drawn.box
        assert 0 <= left < right <= WIDTH
        assert 0 <= top < bottom <= HEIGHT


def test_the_survey_goes_on_from_it_as_from_a_finished_one(
    bundled: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(bundled.folder, tmp_path / "copy")
    monkeypatch.setattr("vit_viz.surveys.recording.begun_numbers", lambda *_, **__: pytest.fail("ran again"))
    told: list[tuple[int, int]] = []
    done = survey(
        load("mini", device="cpu"), example_photos(), tmp_path / "copy", methods=METHODS, deletion=False,
        progress=lambda *counts: told.append(counts),
    )  # fmt: skip
    assert told == [(COUNT, COUNT)]
    assert done.accuracy == bundled.accuracy


def test_what_it_says_of_a_photo_is_what_the_bundled_model_says_of_it(
    bundled: Survey, tmp_path: Path
) -> None:
    listed = json.loads(example_photos().read_text())[:2]
    few = tmp_path / "few.json"
    few.write_text(json.dumps([row | {"file": str(example_photos().parent / row["file"])} for row in listed]))
    again = survey("mini", few, tmp_path / "out")
    for level in ("photos", "heads"):
        found = again.table(level).to_pylist()
        assert len({theirs["photo"] for theirs in found}) == len(listed)
        ours = bundled.table(level).to_pylist()[: len(found)]
        for mine, theirs in zip(ours, found, strict=True):
            assert Path(theirs["photo"]).name == mine["photo"]
            for name in ("margin", "box_share", "entropy", "concentration"):
                if name in mine:
                    assert mine[name] == pytest.approx(theirs[name], rel=1e-4, abs=1e-5)
