"""A survey of a folder: its rows are those of the analyses, and whatever ends it, the same call goes on."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from tests.comparing import assert_same
from tests.surveys.conftest import loaded, rows_of
from vit_viz.analyses.attention import mosaic_maps
from vit_viz.analyses.explain import explain
from vit_viz.analyses.faithfulness import faithfulness
from vit_viz.analyses.heads import head_table
from vit_viz.analyses.localisation import localisation, object_on_grid
from vit_viz.analyses.many_photos import begun_numbers
from vit_viz.capture import trace
from vit_viz.capture.edits import with_edits
from vit_viz.errors import Cancelled, ExportError, ParameterError
from vit_viz.images import decode
from vit_viz.session.edits import ModelEdits
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.local import Machine
from vit_viz.surveys.photos import photos_in
from vit_viz.surveys.run import Survey, _listing, survey
from vit_viz.surveys.stages import Decoding, Failure, prepared

COUNT = 11
BOX = [5.0, 4.0, 30.0, 25.0]


@pytest.fixture(scope="session")
def annotations(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels of all photos but two, boxes of every second one."""
    names = [photo.name for photo in photos_in(photos)]
    rows = [
        {"file": name} | ({"label": f"animal {i % 7}"} if i > 1 else {}) | ({"boxes": [BOX]} if i % 2 else {})
        for i, name in enumerate(names)
    ]
    file = tmp_path_factory.mktemp("lists") / "labels.json"
    file.write_text(json.dumps(rows))
    return file


@pytest.fixture(scope="session")
def run(model, photos, annotations):
    """Survey the photos in batches of 4 and passes of 3."""

    def begin(out, **options):
        given = {"annotations": annotations, "batch": 4, "engine": Machine(at_once=3)} | options
        return survey(given.pop("model", model), given.pop("photos", photos), out, **given)

    return begin


@pytest.fixture(scope="session")
def done(run, tmp_path_factory) -> Survey:
    return run(tmp_path_factory.mktemp("surveys") / "whole")


def test_every_photo_has_its_row_in_order_and_every_head_of_it(done, photos):
    names = [photo.name for photo in photos_in(photos)]
    assert [row["photo"] for row in rows_of(done)["photos"]] == names
    heads = [(row["photo"], row["layer"], row["head"]) for row in rows_of(done)["heads"]]
    assert heads == [(name, layer, head) for name in names for layer in range(3) for head in range(5)]
    assert sorted(parquet.batches(done.folder)) == [0, 1, 2]


def test_the_rows_of_a_photo_are_what_the_analyses_say_of_it_alone(done, model, photos):
    for row in rows_of(done)["photos"][3:6]:
        recorded = trace(model, photos / row["photo"], mode="crop", keep_residual=True)
        top = recorded.logits.topk(5)
        shares = recorded.logits.double().softmax(0)[top.indices]
        assert row["top_classes"] == top.indices.tolist()
        assert row["top_names"] == [f"animal {i}" for i in top.indices.tolist()]
        margin = float(shares[0] - shares[1])  # its rounding error is that of the probabilities
        assert_same([*row["top_probabilities"], row["margin"]], [*shares.tolist(), margin])
        assert (row["height"], row["width"]) == recorded.crop_box.original_size
        assert_same(row["region"], list(recorded.crop_box.region))
        heads = [one for one in rows_of(done)["heads"] if one["photo"] == row["photo"]]
        for measure in ("entropy", "distance", "prefix_mass"):
            table = head_table(recorded, measure=measure).values.ravel()
            assert_same([one[measure] for one in heads], table, what=measure)
        maps = mosaic_maps(recorded).reshape(15, 4, 6)
        peaks = [divmod(int(one.argmax()), 6) for one in maps]
        assert [(one["peak_row"], one["peak_col"]) for one in heads] == peaks
        if row["boxes"]:
            inside = object_on_grid(recorded.crop_box, (4, 6), boxes=[BOX]).share
            assert_same(row["box_share"], inside.mean())
            shares_inside = (maps * inside).sum((1, 2)) / maps.sum((1, 2))
            assert_same([one["box_share"] for one in heads], shares_inside)
        else:
            assert {one["box_share"] for one in heads} == {row["box_share"]} == {None}


def test_right_is_the_first_class_and_right_in_five_one_of_five(done):
    rows = rows_of(done)["photos"]
    assert [row["label_class"] for row in rows] == [None, None, *(i % 7 for i in range(2, COUNT))]
    for row in rows:
        true = row["label_class"]
        expected = (
            (None, None) if true is None else (row["top_classes"][0] == true, true in row["top_classes"])
        )
        assert (row["right"], row["right_in_five"]) == expected
    known = [row for row in rows if row["right"] is not None]
    assert done.accuracy == (
        sum(row["right"] for row in known) / 9,
        sum(row["right_in_five"] for row in known) / 9,
        9,
    )


def test_sums_of_maps_are_those_of_all_photos(done, model, photos):
    maps = np.stack(
        [mosaic_maps(trace(model, photos / row["photo"], mode="crop")) for row in rows_of(done)["photos"]]
    )
    rows = rows_of(done)["maps"]
    assert len(rows) == 3 * 15  # a row per batch and head
    mine = [row for row in rows if (row["layer"], row["head"]) == (1, 3)]
    assert sum(row["photos"] for row in mine) == COUNT
    assert_same(sum(np.array(row["sum"]) for row in mine), maps[:, 1, 3].astype(np.float64).sum(0).ravel())
    assert_same(sum(row["squares"] for row in mine), (maps[:, 1, 3].astype(np.float64) ** 2).sum())


def test_thumbnails_are_small_webp_files_of_the_photos_shape(done, photos):
    thumbnails = rows_of(done)["thumbnails"]
    assert [row["photo"] for row in thumbnails] == [row["photo"] for row in rows_of(done)["photos"]]
    for row in thumbnails:
        with Image.open(BytesIO(row["webp"])) as small, Image.open(photos / row["photo"]) as photo:
            assert small.format == "WEBP"
            assert small.size == (row["width"], row["height"])
            assert max(small.size) == min(96, max(photo.size))
            usual = BytesIO()
            small.save(usual, "WEBP", method=0)
            assert len(row["webp"]) < len(usual.getvalue())


def test_survey_json_says_what_every_column_means(done):
    said = done.manifest
    assert said["request"]["mode"] == "crop"
    assert said["weights"] == "weights 0"
    proof = said["proof"]
    assert (proof["status"], proof["sentence"], len(proof["differences"])) == ("proven", "", 3)
    assert all(0 <= difference < 1e-4 for difference in proof["differences"])
    assert {"vit_viz", "torch", "pyarrow"} <= set(said["versions"])
    for level, columns in TABLES.items():
        file = pq.ParquetFile(parquet.file_of(done.folder / "batch=000000", level))
        assert [column["name"] for column in said["tables"][level]] == file.schema_arrow.names
        for column in columns:
            field = file.schema_arrow.field(column.name)
            assert field.metadata == {b"unit": column.unit.encode(), b"meaning": column.meaning.encode()}
            assert column.meaning.endswith(".")


def test_photos_that_run_alone_have_the_same_rows_but_for_rounding(run, done, tmp_path):
    alone = run(tmp_path / "alone", engine=Machine(at_once=1))
    assert len(rows_of(alone)["heads"]) >= COUNT
    for ours, theirs in zip(rows_of(alone)["heads"], rows_of(done)["heads"], strict=True):
        assert (ours["photo"], ours["peak_row"], ours["peak_col"]) == (
            theirs["photo"], theirs["peak_row"], theirs["peak_col"],
        )  # fmt: skip
        for name in ("entropy", "distance", "prefix_mass", "concentration"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-5, abs=1e-6)


def test_photos_of_several_grids_stay_in_order(run, tmp_path, photos):
    found = run(tmp_path / "fit", mode="fit", engine=Machine(at_once=8))
    rows = rows_of(found)["photos"]
    assert [row["photo"] for row in rows] == [photo.name for photo in photos_in(photos)]
    assert len({(row["rows"], row["cols"]) for row in rows}) > 2
    assert (
        sum(row["photos"] for row in rows_of(found)["maps"] if (row["layer"], row["head"]) == (0, 0)) == COUNT
    )


def test_methods_are_scored_as_explain_localisation_and_faithfulness_score_them(
    model, photos, annotations, tmp_path
):
    names = [photo.name for photo in photos_in(photos)]
    one = tmp_path / "one.json"
    one.write_text(
        json.dumps([row for row in json.loads(annotations.read_text()) if row["file"] == names[3]])
    )
    done = survey(
        model, [photos / names[3]], tmp_path / "out", annotations=one, methods=("relevance", "rollout")
    )
    rows = {row["method"]: row for row in rows_of(done)["methods"]}
    assert list(rows) == ["relevance", "rollout"]
    first = rows_of(done)["photos"][0]["top_classes"][0]
    assert {row["target"] for row in rows.values()} == {3} != {first}
    for name, row in rows.items():
        towards_label = explain(model, photos / names[3], methods=(name,), target=3, mode="crop")[name]
        place = localisation(towards_label, boxes=[BOX])
        assert row["pointing"] == place.pointing
        assert_same(row["energy"], place.energy)
        towards_first = explain(model, photos / names[3], methods=(name,), mode="crop")[name]
        tested = faithfulness(model, photos / names[3], towards_first, mode="crop")
        assert_same([row["deletion"], row["insertion"]], [tested.deletion_auc, tested.insertion_auc])
        bands = [tested.band.interval(test)[0] for test in ("deletion", "insertion")]
        assert_same([row["random_deletion"], row["random_insertion"]], bands)
        assert (row["beats_deletion"], row["beats_insertion"]) == tested.beats_random


def test_methods_without_deletion_are_only_located(model, photos, tmp_path):
    done = survey(model, photos / "inside", tmp_path / "out", methods=("rollout",), deletion=False)
    rows = rows_of(done)["methods"]
    assert [row["target"] for row in rows] == [row["top_classes"][0] for row in rows_of(done)["photos"]]
    assert {
        row[name] for row in rows for name in ("pointing", "deletion", "random_insertion", "beats_deletion")
    } == {None}


# --- of an edited model

EDITS = "off 0.2;mean 1.4;uniform 2.0;temperature 1=0.5"


@pytest.mark.parametrize(("edits", "batched"), [(EDITS, True), (f"{EDITS};forbid class>0-1,0@1", False)])
def test_the_survey_of_an_edited_model_is_what_traces_of_it_say(
    model, photos, tmp_path, monkeypatch, edits, batched
):
    files, ways = sorted(photos.glob("*.png"))[:3], set()

    def watched(*given, **options):
        numbers = begun_numbers(*given, **options)()
        ways.add(numbers.batched)
        return lambda: numbers

    monkeypatch.setattr("vit_viz.surveys.recording.begun_numbers", watched)
    done = survey(model, files, tmp_path / "out", edits=edits, engine=Machine(at_once=3))
    assert ways == {batched}
    assert done.manifest["edits"] == edits
    assert done.manifest["proof"]["status"] == "proven"
    plain = trace(model, files[0], mode="crop")
    for row, file in zip(rows_of(done)["photos"], files, strict=True):
        with with_edits(ModelEdits.parse(edits).of(plain), model.model):
            recorded = trace(model, file, mode="crop")
        shares = recorded.logits.double().softmax(0).topk(5)
        assert row["top_classes"] == shares.indices.tolist()
        assert_same(row["top_probabilities"], shares.values)
        heads = [one for one in rows_of(done)["heads"] if one["photo"] == row["photo"]]
        table = head_table(recorded, measure="entropy").values.ravel()
        assert_same([one["entropy"] for one in heads], table)
        assert_same([one["entropy"] for one in heads if (one["layer"], one["head"]) == (2, 0)], [1.0])
    plain_rows = rows_of(survey(model, files, tmp_path / "plain"))["photos"]
    assert all(
        one["margin"] != other["margin"]
        for one, other in zip(rows_of(done)["photos"], plain_rows, strict=True)
    )


def test_methods_explain_the_edited_model(model, photos, tmp_path):
    file = sorted(photos.glob("*.png"))[0]
    done = survey(model, [file], tmp_path / "out", methods=("relevance",), edits="off 0.2 1.1")
    edits = ModelEdits.parse("off 0.2 1.1").of(trace(model, file, mode="crop"))
    with with_edits(edits, model.model):
        found = explain(model, file, methods=("relevance",), mode="crop")["relevance"]
        tested = faithfulness(model, file, found, mode="crop")
    (row,) = rows_of(done)["methods"]
    assert_same([row["deletion"], row["insertion"]], [tested.deletion_auc, tested.insertion_auc])


def test_the_same_edits_in_other_words_go_on_with_the_survey(run, tmp_path):
    run(tmp_path / "out", edits="off 1.2 0.1")
    assert run(tmp_path / "out", edits=["off 0.1", "off 1.2"]).num_photos == COUNT


def test_edits_of_a_head_that_does_not_exist_are_refused_before_anything_is_written(run, tmp_path):
    with pytest.raises(ParameterError, match="Head 9 does not exist"):
        run(tmp_path / "out", edits="off 1.9")
    assert not (tmp_path / "out").exists()


# --- what ends it in the middle


class Killed(BaseException):
    """Stands in for a process that ends without a word."""


@pytest.mark.parametrize("place", ["before a file", "between files", "before the rename", "after the rename"])
def test_a_survey_that_was_killed_goes_on_and_equals_an_undisturbed_one(
    run, done, tmp_path, monkeypatch, place
):
    calls = {"before a file": ("_write", 7), "between files": ("_write", 10), "before the rename": ("_flush", 4),
             "after the rename": ("_flush", 5)}  # fmt: skip
    name, wanted = calls[place]
    original, count = getattr(parquet, name), 0

    def killing(*given):
        nonlocal count
        count += 1
        if count > wanted:
            raise Killed
        return original(*given)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, name, killing)
        patched.setattr(
            parquet.shutil, "rmtree", lambda *_given, **_options: None
        )  # a dead process tidies nothing
        with pytest.raises(Killed):
            run(tmp_path / "out")
    whole = sorted(parquet.batches(tmp_path / "out"))
    assert whole == {"after the rename": [0, 1], "before the rename": [0]}.get(place, [0])[: len(whole)]
    kept = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("*batch=00000[0-9]/*.parquet")}
    assert len(kept) == len(TABLES) * len(whole)
    resumed = run(tmp_path / "out")
    assert rows_of(resumed) == rows_of(done)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept  # whole batches are not made again
    assert list((tmp_path / "out").glob("*.half")) == []
    assert resumed.check().is_whole


def test_progress_counts_what_an_earlier_run_has_done(run, tmp_path):
    told = []

    def stop():
        return bool(told) and told[-1][0] >= 5

    with pytest.raises(Cancelled):
        run(tmp_path / "out", progress=lambda *counts: told.append(counts), cancelled=stop)
    assert told == [(0, COUNT), (3, COUNT), (4, COUNT), (7, COUNT)]
    told.clear()
    run(tmp_path / "out", progress=lambda *counts: told.append(counts))
    assert told == [(4, COUNT), (7, COUNT), (8, COUNT), (11, COUNT)]


def test_a_full_disk_ends_with_a_sentence_and_leaves_whole_batches(run, done, tmp_path, monkeypatch):
    write = parquet._write

    def full(file, content):
        if "000001" in str(file) and file.stem == "maps":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, content)

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "_write", full)
        with pytest.raises(ExportError, match=r"disk of .*out is full: 4 of 11 photos are saved; make room"):
            run(tmp_path / "out")
    assert parquet.batches(tmp_path / "out") == {0}
    assert list((tmp_path / "out").glob("*.half")) == []
    assert rows_of(run(tmp_path / "out")) == rows_of(done)


def test_another_fault_of_the_disk_is_not_taken_for_a_full_one(run, tmp_path, monkeypatch):
    def broken(_file, _content):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(parquet, "_write", broken)
    with pytest.raises(OSError, match="Input/output error"):
        run(tmp_path / "out")


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": loaded(1)}, "its weights is weights 0, not weights 1"),
        ({"mode": "stretch"}, "its preprocessing is"),
        ({"annotations": None}, "its list of photos, labels or boxes is"),
        ({"methods": ("rollout",)}, r"its methods is \[\], not \['rollout'\]"),
        ({"batch": 5}, "its number of photos per batch is 4, not 5"),
        ({"thumbnails": False}, "its choice of thumbnails is True, not False"),
        ({"edits": "off 1.2"}, "its edits of the model is none, not off 1.2"),
    ],
)
def test_the_folder_of_another_survey_is_refused(run, done, changes, words):
    before = sorted(done.folder.rglob("*"))
    with pytest.raises(
        ParameterError, match=rf"holds another survey: {words}.*; please choose another folder\."
    ):
        run(done.folder, **changes)
    assert sorted(done.folder.rglob("*")) == before


def test_two_processes_do_not_write_to_one_folder(run, tmp_path):
    held = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", held, str(tmp_path / "out" / manifest._LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ParameterError, match="Another process is writing"):
            run(tmp_path / "out")
        other.communicate("\n")
    assert run(tmp_path / "out").num_photos == COUNT


@pytest.mark.parametrize("value", [0, 2.5])
def test_a_batch_is_a_whole_number_of_photos(run, tmp_path, value):
    with pytest.raises(ParameterError, match="batch is a whole number from 1, not"):
        run(tmp_path / "out", batch=value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "value", "least"), [("at_once", 0, 1), ("at_once", 2.5, 1), ("workers", -1, 0)]
)
def test_what_a_machine_does_at_once_is_a_whole_number(name, value, least):
    with pytest.raises(ParameterError, match=f"{name} is a whole number from {least}, not"):
        Machine(**{name: value})


def test_a_method_that_does_not_exist_is_refused_before_anything_is_written(run, tmp_path):
    with pytest.raises(ParameterError, match="There is no method 'magic'"):
        run(tmp_path / "out", methods=("magic",))
    assert not (tmp_path / "out").exists()


def test_a_module_is_refused(model, photos, tmp_path):
    with pytest.raises(ParameterError, match="a module has no name"):
        survey(model.model, photos, tmp_path / "out")


@pytest.mark.parametrize(
    "wrong",
    [Image.new("RGB", (9, 7)), np.zeros((9, 7, 3), np.uint8), [7], None],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_file_is_refused(model, tmp_path, wrong):
    with pytest.raises(ParameterError, match=r"^A survey is of files: .*\.$"):
        survey(model, wrong, tmp_path / "out")


# --- photos that cannot be read


def test_photos_that_cannot_be_read_are_listed_with_their_sentence_and_stop_nothing(run, photos, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for i, photo in enumerate(sorted(photos.glob("*.png"))[:4]):
        os.link(photo, folder / f"{2 * i}.png")
    (folder / "1.png").write_bytes(b"not a picture")
    (folder / "3.png").write_bytes((folder / "2.png").read_bytes()[:200])
    (folder / "5.jpg").write_bytes(b"")
    done = run(tmp_path / "out", photos=folder, annotations=None)
    assert [row["photo"] for row in rows_of(done)["photos"]] == ["0.png", "2.png", "4.png", "6.png"]
    assert list(done.failures) == ["1.png", "3.png", "5.jpg"]
    assert all(
        sentence.endswith(".") and str(tmp_path) not in sentence for sentence in done.failures.values()
    )
    assert "empty" in done.failures["5.jpg"]


def test_a_batch_of_nothing_but_broken_files_is_a_batch(run, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"no")
    done = run(tmp_path / "out", photos=tmp_path / "photos", annotations=None)
    assert (done.num_photos, done.accuracy, list(done.failures)) == (0, None, ["a.png"])


def test_a_listed_photo_that_is_not_there_is_a_failure(model, tmp_path):
    (tmp_path / "list.csv").write_text("file,label\ngone.jpg,animal 1\n")
    done = survey(model, tmp_path / "list.csv", tmp_path / "out")
    assert "gone.jpg cannot be opened (no such file" in done.failures["gone.jpg"]


@pytest.mark.parametrize(("output", "index"), [("softmax", 0), ("value", None)])
def test_a_number_is_a_class_only_where_outputs_are_classes(tmp_path, output, index):
    (tmp_path / "list.csv").write_text("file,label\ngone.jpg,0\n")
    (photo,), _passed_over = _listing(loaded().with_output(output), tmp_path / "list.csv", None)
    assert photo.class_index == index


# --- stages


def test_a_photo_is_prepared_as_the_checkpoints_recipe_has_it(model, photos):
    listed = photos_in(photos)
    for mode in ("crop", "fit"):
        shots = prepared(listed, Decoding(model.preprocess, mode))
        for photo, shot in zip(listed, shots, strict=True):
            assert not isinstance(shot, Failure)
            expected = model.preprocess.apply(decode(photo.path), mode=mode)
            levels = torch.from_numpy(shot.levels)[None]
            assert levels.dtype == torch.uint8
            assert torch.equal(model.preprocess.normalised(levels), expected.pixels)
            assert shot.crop_box == expected.crop_box


@pytest.mark.slow  # starts a process
def test_processes_decode_as_a_thread_does(run, done, tmp_path):
    assert rows_of(run(tmp_path / "out", engine=Machine(at_once=3, workers=1))) == rows_of(done)
