"""Two surveys compared: a survey with itself, a case by hand, and the figures of other libraries."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn

from tests.surveys.conftest import save_photo
from vit_viz.cli import main
from vit_viz.errors import ParameterError
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.comparison import (
    COMPARED,
    ROUNDING,
    HeadChange,
    compare_surveys,
    head_shape,
    mcnemar,
    unit_of,
)
from vit_viz.surveys.local import Machine
from vit_viz.surveys.run import Survey, survey

BOX = [5.0, 4.0, 30.0, 25.0]


@pytest.fixture(scope="module")
def listing(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """11 photos with labels, the first three without a box."""
    names = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.png"))
    rows = [
        {"file": str(photos / name), "label": f"animal {i % 7}", "boxes": [BOX] if i > 2 else []}
        for i, name in enumerate(names)
    ]
    file = tmp_path_factory.mktemp("lists") / "list.json"
    file.write_text(json.dumps(rows))
    return file


@pytest.fixture(scope="module")
def plain(model, listing, tmp_path_factory) -> Survey:
    out = tmp_path_factory.mktemp("surveys") / "plain"
    return survey(model, listing, out, batch=4, engine=Machine(at_once=4))


@pytest.fixture(scope="module")
def edited(model, listing, tmp_path_factory) -> Survey:
    """After surgery, and in batches of another size."""
    out = tmp_path_factory.mktemp("surveys") / "edited"
    return survey(model, listing, out, batch=3, edits="off 0.1 0.3;mean 1.0;temperature 1=0.2")


def written(folder: Path, photos: list[dict], heads: list[dict] | None = None, **said) -> Survey:
    """A survey made by hand, in one batch; what a row leaves out is missing."""
    folder.mkdir()
    whole = {"photos": len(photos), "classes": ["cat", "dog"]} | said
    manifest._write(folder, whole)
    parquet.write_batch(folder, 0, encoded(photos, heads or []), of=manifest.settings(whole))
    return Survey(folder)


def encoded(photos: list[dict], heads: list[dict]) -> dict:
    rows: dict[str, list[dict]] = {"photos": photos, "heads": heads}
    tables = {
        level: {column.name: [row.get(column.name) for row in rows.get(level, [])] for column in columns}
        for level, columns in TABLES.items()
    }
    return parquet.encoded(tables)


def answered(photo: str, top: int, true: int | None = None, **more) -> dict:
    names = ["cat", "dog"]
    return {
        "photo": photo, "sha256": photo, "boxes": [], "top_classes": [top], "top_names": [names[top]],
        "top_probabilities": [0.75], "label": None if true is None else names[true],
        "right": None if true is None else top == true,
    } | more  # fmt: skip


# --- heads


def test_a_survey_compared_with_itself_moves_nothing(plain):
    same = compare_surveys(plain, plain.folder)
    assert (same.photos, same.answers) == (11, ())
    assert len(same.heads) == 3 * 5 * len(COMPARED)
    for one in same.heads:
        assert (one.difference, one.low, one.high, one.effect) == (0, 0, 0, 0)
        assert one.before == one.after
        assert one.photos == (8 if one.statistic in ("box_share", "peak_in_box") else 11)
        assert not one.is_beyond_chance
    assert same.accuracy.p == 1
    assert same.accuracy.before == same.accuracy.after == plain.accuracy[0]


def test_a_case_by_hand(tmp_path):
    """Entropy 0.1, 0.2, 0.6 becomes 0.2, 0.4, 0.5: differences 0.1, 0.2, -0.1, mean 1/15, deviation sqrt(0.07 / 3)."""
    photos = [answered(name, 0) for name in "abc"]
    before, after = (
        [
            {"photo": name, "layer": 0, "head": 0, "entropy": value}
            for name, value in zip("abc", values, strict=True)
        ]
        for values in ((0.1, 0.2, 0.6), (0.2, 0.4, 0.5))
    )
    found = compare_surveys(written(tmp_path / "a", photos, before), written(tmp_path / "b", photos, after))
    (change,) = found.heads
    deviation = math.sqrt(0.07 / 3)
    reach = 4.302653 * deviation / math.sqrt(3)  # the 97.5% point of t with 2 degrees of freedom
    assert (change.layer, change.head, change.statistic, change.photos) == (0, 0, "entropy", 3)
    expected = (0.3, 1.1 / 3, 1 / 15, 1 / 15 - reach, 1 / 15 + reach, (1 / 15) / deviation)
    mine = (change.before, change.after, change.difference, change.low, change.high, change.effect)
    assert mine == pytest.approx(expected, rel=1e-6)
    assert not change.is_beyond_chance


def compared(folder: Path, statistic: str, before: list[float], after: list[float]) -> HeadChange:
    """The change of one statistic of one head, of photos that have these values."""
    names = [f"{place:03}" for place in range(len(before))]
    photos = [answered(name, 0) for name in names]
    surveys = []
    for side, values in (("before", before), ("after", after)):
        heads = [
            {"photo": name, "layer": 0, "head": 0, statistic: value}
            for name, value in zip(names, values, strict=True)
        ]
        surveys.append(written(folder / side, photos, heads))
    (change,) = compare_surveys(*surveys).heads
    return change


@pytest.mark.parametrize(
    ("statistic", "size"),
    [
        ("distance", 80.0), ("distance", 0.02), ("prefix_mass", 3e-4), ("prefix_mass", 0.9), ("box_share", 0.3), ("entropy", 1.0),
        ("concentration", 1.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("share", "moved"), [(1 / 4, False), (0.9, False), (1.1, True), (-1.1, True), (9, True)]
)
def test_what_moves_by_no_more_than_rounding_did_not_move(
    tmp_path: Path, statistic: str, size: float, share: float, moved: bool
) -> None:
    """All photos move by about the same, so that the interval leaves out 0 however small that is."""
    value = (
        size if statistic not in ("entropy", "concentration") else 0.01
    )  # of a share of the largest entropy, which is 1
    before = [value * (1 - place / 100) for place in range(7)]
    step = share * ROUNDING * size
    after = [one + step * (1 + 0.01 * (place % 3)) for place, one in enumerate(before)]
    change = compared(tmp_path, statistic, before, after)
    assert change.is_beyond_chance == moved
    assert (change.effect != 0) == moved
    assert change.difference == pytest.approx(step * 1.0086, rel=0.2)


def test_surveys_by_two_kernels_moved_nothing(model, listing, tmp_path) -> None:
    """The same sums in another order: as another kernel, number of threads or size of batch adds them."""
    before = survey(model, listing, tmp_path / "before", batch=4, engine=Machine(at_once=4))

    class Other(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            half = self.in_features // 2
            return F.linear(x[..., half:], self.weight[:, half:], self.bias) + F.linear(
                x[..., :half], self.weight[:, :half]
            )

    other = copy.deepcopy(model.model)
    for part in other.modules():
        if isinstance(part, nn.Linear):
            part.__class__ = Other
    after = survey(
        replace(model, model=other), listing, tmp_path / "after", batch=3, engine=Machine(at_once=3)
    )
    found = compare_surveys(before, after)
    assert any(head.difference for head in found.heads)
    assert found.moved == ()
    assert {head.effect for head in found.heads} == {0.0}


def test_every_head_is_what_another_library_says_of_its_photos(plain, edited):
    found = compare_surveys(plain, edited)
    tables = [one.table("heads").to_pylist() for one in (plain, edited)]
    assert {(one.layer, one.head, one.statistic) for one in found.heads} == {
        (layer, head, name) for layer in range(3) for head in range(5) for name in COMPARED
    }
    moved = 0
    for one in found.heads:
        old, new = (
            np.array(
                [
                    row[one.statistic]
                    for row in rows
                    if (row["layer"], row["head"]) == (one.layer, one.head) and row[one.statistic] is not None
                ],
                dtype=np.float64,
            )
            for rows in tables
        )
        assert (one.before, one.after) == pytest.approx((old.mean(), new.mean()), abs=1e-12)
        if np.ptp(new - old) == 0:
            assert (one.low, one.high) == (one.difference, one.difference)
            continue
        test = stats.ttest_rel(new, old)
        interval = test.confidence_interval(0.95)
        assert (one.low, one.high) == pytest.approx((interval.low, interval.high), rel=1e-9, abs=1e-12)
        size = 1.0 if one.statistic in ("entropy", "concentration") else max(one.before, one.after)
        is_rounding = abs(one.difference) <= ROUNDING * size
        effect = 0.0 if is_rounding else test.statistic / math.sqrt(len(old))
        assert one.effect == pytest.approx(effect, rel=1e-9)
        assert one.is_beyond_chance == (test.pvalue < 0.05 and not is_rounding)
        moved += one.is_beyond_chance
    assert moved > 5
    effects = [abs(one.effect) for one in found.heads]
    assert effects == sorted(effects, reverse=True)


def test_the_layer_before_the_surgery_did_not_move(plain, edited):
    found = compare_surveys(plain, edited)
    first = [one for one in found.heads if one.layer == 0]
    assert max(abs(one.difference) for one in first if one.statistic != "distance") < 1e-5
    sharper = [one for one in found.heads if (one.layer, one.statistic) == (1, "entropy")]
    assert all(one.high < 0 for one in sharper)  # a temperature of 0.2


def test_a_photo_that_one_survey_could_not_read_is_left_out(model, listing, tmp_path, plain):
    rows = json.loads(listing.read_text())
    lost = tmp_path / "lost.png"
    (tmp_path / "list.json").write_text(json.dumps([*rows[:5], {"file": str(lost)}]))
    save_photo(lost, 20)
    whole = survey(model, tmp_path / "list.json", tmp_path / "whole", batch=2)
    lost.write_bytes(b"no picture")
    less = survey(model, tmp_path / "list.json", tmp_path / "less", batch=5)
    found = compare_surveys(whole, less)
    assert (found.photos, found.accuracy.photos) == (5, 5)
    assert {one.photos for one in found.heads if one.statistic == "entropy"} == {5}


def test_one_photo_has_no_interval(tmp_path):
    photos, heads = [answered("a", 0)], [{"photo": "a", "layer": 0, "head": 0, "entropy": 0.5}]
    (one,) = compare_surveys(written(tmp_path / "a", photos, heads), tmp_path / "a").heads
    assert math.isnan(one.low)
    assert not one.is_beyond_chance


# --- photos


def test_answers_that_changed_are_named_with_what_became_of_them(tmp_path):
    labels = {"a": (0,), "b": (0,), "c": (0,), "d": (1,), "e": ()}
    answers = {"a": (0, 1), "b": (1, 0), "c": (0, 0), "d": (1, 0), "e": (0, 1)}  # before, after
    before, after = ([answered(name, answers[name][k], *labels[name]) for name in labels] for k in (0, 1))
    found = compare_surveys(written(tmp_path / "a", before), written(tmp_path / "b", after))
    assert [(one.photo, one.kind, one.before, one.after) for one in found.answers] == [
        ("a", "right to wrong", "cat", "dog"),
        ("b", "wrong to right", "dog", "cat"),
        ("d", "right to wrong", "dog", "cat"),
        ("e", "other class", "cat", "dog"),
    ]
    accuracy = found.accuracy
    assert (accuracy.before, accuracy.after, accuracy.photos) == (0.75, 0.5, 4)
    assert (accuracy.lost, accuracy.won, accuracy.p) == (2, 1, 1.0)


def test_classes_of_other_numbers_are_compared_by_name(tmp_path):
    other = [answered("a", 0) | {"top_classes": [7]}]
    found = compare_surveys(
        written(tmp_path / "a", [answered("a", 0)]), written(tmp_path / "b", other, classes=["x"] * 8)
    )
    assert found.answers == ()


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (0, 1), (1, 5), (3, 3), (12, 4), (400, 310)])
def test_mcnemars_p_is_that_of_the_binomial_test(lost, won):
    expected = stats.binomtest(lost, lost + won, 0.5).pvalue if lost + won else 1.0
    assert mcnemar(lost, won) == pytest.approx(expected, rel=1e-9)


# --- what is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"photo": "z"}, r"surveys of other photos: 2 are in one of them only, such as 'a' in .*one\."),
        ({"sha256": "other"}, r"'a' has two different files in the two surveys"),
        ({"label": "dog"}, r"'a' has different labels in the two surveys"),
        ({"boxes": [1.0, 2.0, 3.0, 4.0]}, r"'a' has different boxes in the two surveys"),
    ],
)
def test_surveys_of_other_photos_are_refused(tmp_path, changes, words):
    one = written(tmp_path / "one", [answered("a", 0)])
    other = written(tmp_path / "other", [answered("a", 0) | changes])
    with pytest.raises(ParameterError, match=words):
        compare_surveys(one, other)


def test_a_survey_that_is_not_finished_is_refused(tmp_path, plain):
    half = written(tmp_path / "half", [answered("a", 0)])
    manifest._write(half.folder, {"photos": 1200})
    with pytest.raises(ParameterError, match=r"half is not finished: 1 of 1,200 photos"):
        compare_surveys(plain, half)


def test_models_of_other_shapes_can_be_compared_by_their_photos(tmp_path):
    def of(name: str, heads: int, top: int) -> Survey:
        rows = [{"photo": "a", "layer": 0, "head": head, "entropy": 0.5} for head in range(heads)]
        return written(tmp_path / name, [answered("a", top)], rows)

    small, large = of("small", 2, 0), of("large", 3, 1)
    with pytest.raises(
        ParameterError, match=r"1 x 2 and 1 x 3 layers and heads, so only their photos can be"
    ):
        compare_surveys(small, large)
    found = compare_surveys(small, large, heads=False)
    assert (len(found.answers), found.heads) == (1, ())


def test_a_batch_without_photos_does_not_end_the_reading(tmp_path):
    one = written(tmp_path / "one", [])
    assert head_shape(one) is None
    rows = [{"photo": "a", "layer": 0, "head": head, "entropy": 0.5} for head in range(3)]
    parquet.write_batch(one.folder, 1, encoded([answered("a", 0)], rows))
    assert head_shape(one) == (1, 3)


@pytest.mark.parametrize(
    ("statistic", "unit"), [("box_share", "share of the map"), ("peak_in_box", "share of the photos")]
)
def test_a_statistic_without_a_unit_of_its_own_is_a_share_of_the_photos(statistic, unit):
    assert unit_of(statistic) == unit


# --- the command


def test_the_command_says_it_in_a_few_lines(plain, edited, capsys):
    assert main(["compare-surveys", str(plain.folder), str(edited.folder)]) == 0
    lines, found = capsys.readouterr().out.splitlines(), compare_surveys(plain, edited)
    assert lines[0] == "11 photos in both"
    assert lines[1].startswith(
        f"top-1 {plain.accuracy[0]:.3f} before, {edited.accuracy[0]:.3f} after, of 11 labelled"
    )
    assert lines[2].startswith(f"{len(found.answers)} photos changed their answer: ")
    assert any(line.startswith("head  statistic") for line in lines)
    first = found.heads[0]
    (shown,) = [
        line for line in lines if line.startswith(f"{first.layer}.{first.head} ") and first.statistic in line
    ]
    assert f"{first.difference:+.4g}" in shown


def test_the_command_prints_json_and_null_where_nothing_is_finite(tmp_path, capsys):
    photos, heads = [answered("a", 0)], [{"photo": "a", "layer": 0, "head": 0, "entropy": 0.5}]
    one = written(tmp_path / "one", photos, heads)
    assert main(["compare-surveys", str(one.folder), str(one.folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["photos"] == 1
    assert said["heads"][0] | {"low": None} == said["heads"][0]
    assert main(["compare-surveys", str(one.folder), str(one.folder), "--photos-only"]) == 0
    assert "statistics of heads" not in capsys.readouterr().out
