"""A survey that is opened: its numbers are those of its tables, and a filter cannot do anything but choose photos."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.surveys.made import HEADS, LAYERS, METHODS, made_survey
from vit_viz.errors import Cancelled, ParameterError, VitVizError

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

import pytest

from vit_viz.surveys import atlas, filters, opened, photo_lists, trust
from vit_viz.surveys.filters import first_line
from vit_viz.surveys.opened import OpenedSurvey, open_survey

PHOTOS = 47


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_survey(tmp_path_factory.mktemp("survey") / "made", photos=PHOTOS)


@pytest.fixture(scope="module")
def survey(folder: Path) -> OpenedSurvey:
    return open_survey(folder)


def frame(folder: Path, level: str) -> pd.DataFrame:
    """A level by pandas alone, with the number of each photo."""
    files = sorted(folder.glob(f"*/{level}.parquet"))
    table = pd.concat([pq.ParquetFile(file).read().to_pandas() for file in files], ignore_index=True)
    if "photo" in table:
        names = [
            name
            for file in sorted(folder.glob("*/photos.parquet"))
            for name in pq.ParquetFile(file).read()["photo"].to_pylist()
        ]
        table["row"] = table["photo"].map({name: row for row, name in enumerate(names)})
    return table


def test_labels_are_known_where_some_photos_have_one(survey):
    assert survey.has_labels
    assert not replace(survey, numbers={"is_right": np.full(PHOTOS, np.nan)}).has_labels


def test_the_connection_is_left_out_where_a_survey_is_shown(survey):
    assert "DuckDBPyConnection" not in repr(survey)


# --- choosing photos


def test_without_a_filter_all_photos_are_there(survey):
    assert survey.select().tolist() == list(range(PHOTOS)) == survey.select("  ").tolist()


@pytest.mark.parametrize(
    ("where", "same"),
    [
        ("margin > 0.1 and not is_right", "margin > 0.1 and right == False"),
        ("label = 'it''s odd' or confidence < 0.2", 'label == "it\'s odd" or first < 0.2'),
        (
            "outlier_patches between 1 and 2 and label is not null",
            "1 <= outlier_patches <= 2 and label.notnull()",
        ),
        ("photo like 'class 1/%'", "photo.str.startswith('class 1/')"),
        ("first_outlier_state in (2, 3)", "first_outlier_state == 2"),
        ("false", "margin > 9"),
    ],
)
def test_a_filter_chooses_what_pandas_chooses(survey, folder, where, same):
    table = frame(folder, "photos").sort_values("row")
    table["first"] = table["top_probabilities"].str[0]
    expected = table.query(same, engine="python")["row"].tolist()
    assert survey.select(where).tolist() == expected
    assert len(expected) < PHOTOS


def test_columns_of_a_head_are_those_of_the_chosen_one(survey, folder):
    heads = frame(folder, "heads").query("layer == 2 and head == 3").sort_values("row")
    expected = heads[heads["concentration"] > 0.5]["row"].tolist()
    assert survey.select("head_concentration > 0.5", layer=2, head=3).tolist() == expected
    assert survey.select("head_concentration > 0.5", layer=2, head=1).tolist() != expected


def test_a_method_is_a_column(survey, folder):
    methods = frame(folder, "methods").query("method == 'rollout'").sort_values("row")
    assert survey.select("rollout_pointing").tolist() == methods[methods["pointing"] == True]["row"].tolist()  # noqa: E712
    assert (
        survey.select("rollout_insertion > 0.5").tolist()
        == methods[methods["insertion"] > 0.5]["row"].tolist()
    )


def test_inside_a_polygon_is_where_a_ray_crosses_its_border_oddly(survey):
    x, y = survey.numbers["margin"], survey.numbers["confidence"]
    triangle = "inside(margin, confidence, '0 0, 0.3 0.1, 0.1 0.6')"
    corners = np.array([[0, 0], [0.3, 0.1], [0.1, 0.6]])

    def side(start, end):
        return (end[0] - start[0]) * (y - start[1]) - (end[1] - start[1]) * (x - start[0])

    sides = [side(corners[i], corners[(i + 1) % 3]) for i in range(3)]
    expected = np.flatnonzero(np.all([one > 0 for one in sides], 0)).tolist()
    assert survey.select(triangle).tolist() == expected
    assert 0 < len(expected) < PHOTOS


@pytest.mark.parametrize(
    ("where", "because"),
    [
        ("1; drop table photos", "without a semicolon"),
        ("true) union (select row from photos", "nothing else"),
        ("true) limit (1", "nothing else"),
        ("row in (select 1)", "query of its own"),
        ("exists(from glob('/*'))", "query of its own"),
        ("(select content from read_text('/etc/passwd')) is not null", "query of its own"),
        ("read_text('/etc/passwd') is not null", "function 'read_text'"),
        ("main.abs(width) > 1", "function 'abs'"),  # of a schema: another function may have the name there
        ("memory.main.lower(photo) = 'a'", "function 'lower'"),
        ("getenv('HOME') = ''", "function 'getenv'"),
        ("current_setting('threads') = '1'", "function 'current_setting'"),
        ("repeat('a', 2000000000) = ''", "function 'repeat'"),
        ("len(range(1000000000)) > 1", "function 'len'"),
        ("list_transform([1], lambda one: one)[1] = 1", "function 'list_"),
        ("sum(margin) over () > 1", "windows"),
        ("columns(*) > 1", "stars"),
        ("margin > $1", "parameters"),
        ("margin = '1'::json", "type 'json'"),
        ("sha256 = ''", "no column 'sha256'"),
        ("photos.margin > 1", "no column 'photos.margin'"),
        ("margin >", "no expression of SQL"),
        ("pragma database_list", "no expression of SQL"),
        ("attach '/etc/x' as y", "no expression of SQL"),
        ("label = 3 and margin", "cannot be evaluated"),
        ("margin > 0\x00", "one expression"),
        ("not " * 1500 + "true", "at most 4000 characters"),
        ("(" * 1900 + "1" + ")" * 1900, "nested too deeply; please simplify it"),
        ("not " * 900 + "true", "nested too deeply; please simplify it"),
        ("case when " * 200 + "true" + " then true end" * 100, "no expression of SQL"),
        ("inside(margin, confidence, '0 0, 1 1')", "3 to 48 corners"),
        ("inside(margin, confidence, '0 0 0, 1 1, 2')", "pairs of numbers"),
    ],
)  # fmt: skip
def test_a_hostile_filter_is_refused_with_a_sentence(survey, where, because):
    with pytest.raises(ParameterError, match=because) as refused:
        survey.select(where)
    assert "\n" not in str(refused.value)
    assert len(survey.select()) == PHOTOS


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "ATTACH '/nowhere/else.db'",
        "COPY photos TO '/nowhere/photos.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '99GB'",
        "SET threads = 64",
    ],
)
def test_the_database_itself_reaches_nothing(survey, statement):
    """Also what no filter can hold: the second wall stands without the first."""
    with pytest.raises(ParameterError, match="cannot be evaluated"):
        survey._run(statement)


def test_a_filter_that_takes_too_long_is_ended(survey, monkeypatch):
    monkeypatch.setattr(opened, "FILTER_SECONDS", 0.05)
    with pytest.raises(Cancelled, match=r"longer than 0\.05 seconds"):
        survey._run(
            "SELECT count(*) FROM heads a, heads b, heads c, heads d WHERE a.entropy * b.entropy > c.entropy + d.entropy"
        )
    monkeypatch.undo()
    assert len(survey.select("margin >= 0")) == PHOTOS


def test_what_is_kept_is_kept_by_expression_and_by_head(survey):
    first = survey.select("head_entropy > 0.4", layer=0, head=1)
    assert survey.select("head_entropy > 0.4", layer=0, head=1) is first
    assert survey.select("head_entropy > 0.4", layer=1, head=1) is not first
    assert survey.select("margin > 0.2", layer=1, head=1) is survey.select("margin > 0.2", layer=2, head=0)


def test_a_head_that_is_not_there_is_named(survey):
    with pytest.raises(ParameterError, match="no head 5 of layer 0: layers are 0-2, heads 0-4"):
        survey.select("true", layer=0, head=5)


def test_the_longest_filter_is_still_read(survey):
    text = "(margin >= 0) or " * 60
    text += f"label = '{'x' * (filters.LONGEST - len(text) - 10)}'"
    assert len(text) == filters.LONGEST
    assert len(survey.select(text)) == PHOTOS
    with pytest.raises(ParameterError, match="at most"):
        survey.select(f"({text})")


# --- opening


def test_a_folder_without_a_survey_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="holds no survey"):
        open_survey(tmp_path)


def test_a_survey_without_a_batch_is_refused(tmp_path):
    made_survey(tmp_path / "made", photos=0)
    with pytest.raises(ParameterError, match="has no photos yet"):
        open_survey(tmp_path / "made")


def test_a_damaged_table_is_refused(tmp_path):
    made = made_survey(tmp_path / "made", photos=12)
    (made / "_batch=000001" / "heads.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(
        ParameterError, match=r"is damaged: batch 1 \(its table heads is not what was written\)\. The same"
    ):
        open_survey(made)


def test_a_survey_that_is_too_large_says_so(folder, monkeypatch):
    monkeypatch.setattr(opened, "MOST_HEAD_ROWS", PHOTOS * LAYERS * HEADS - 1)
    with pytest.raises(ParameterError, match=r"705 rows of heads; the Survey tab opens 704 at most"):
        open_survey(folder)
    monkeypatch.setattr(opened, "MOST_HEAD_ROWS", PHOTOS * LAYERS * HEADS)
    assert open_survey(folder).num_photos == PHOTOS


def test_missing_duckdb_is_one_sentence(monkeypatch):
    monkeypatch.delitem(sys.modules, "vit_viz.surveys.opened")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(
        VitVizError, match=r"needs duckdb, which is not installed: pip install 'vit_viz\[survey\]'"
    ):
        __import__("vit_viz.surveys.opened")


# --- the atlas


@pytest.mark.parametrize("measure", ["entropy", "distance", "prefix_mass", "concentration", "box_share"])
def test_mean_and_spread_are_those_of_pandas(survey, folder, measure):
    rows = survey.select("outlier_patches > 0")
    table = frame(folder, "heads")
    groups = table[table["row"].isin(rows)].groupby(["layer", "head"])[measure]
    found = atlas.atlas(survey, rows, measure)
    np.testing.assert_allclose(found.mean, groups.mean().to_numpy().reshape(LAYERS, HEADS), rtol=1e-5)
    np.testing.assert_allclose(found.spread, groups.std(ddof=0).to_numpy().reshape(LAYERS, HEADS), rtol=1e-4)
    assert found.photos == groups.count().iloc[0]


def test_an_atlas_of_no_photo_knows_nothing(survey):
    found = atlas.atlas(survey, survey.select("false"), "entropy")
    assert found.photos == 0
    assert np.isnan(found.mean).all()


def test_exemplars_are_the_extremes_of_the_chosen_head(survey, folder):
    table = frame(folder, "heads").query("layer == 1 and head == 4").sort_values("concentration")
    high, low = atlas.exemplars(survey, survey.select(), layer=1, head=4, measure="concentration", count=3)
    assert high.tolist() == table["row"].tolist()[:-4:-1]
    assert low.tolist() == table["row"].tolist()[:3]


def test_a_photo_without_a_box_is_no_exemplar_of_boxes(survey):
    high, low = atlas.exemplars(survey, survey.select(), layer=1, head=4, measure="box_share", count=PHOTOS)
    assert len(high) == len(low) == (PHOTOS + 1) // 2


def test_the_place_explains_all_of_a_map_that_never_changes(survey):
    shares = atlas.positional_shares(survey)
    assert shares[0, 0] == pytest.approx(1, abs=1e-9)
    assert shares.ravel()[1:].max() < 0.2


def test_without_the_size_of_patches_no_head_is_called_local(survey):
    assert not any(one.name == "local" for one in atlas.names(survey, survey.select()))
    assert any(one.name == "local" for one in atlas.names(survey, survey.select(), patch_size=(90, 90)))


# --- lists


def test_elsewhere_lists_wrong_answers_by_confidence_and_what_is_outside(survey, folder):
    photos, heads = frame(folder, "photos"), frame(folder, "heads")
    inside = heads[heads["layer"] == LAYERS - 1].groupby("row")["box_share"].mean()
    photos["score"] = photos["top_probabilities"].str[0] * (1 - photos["row"].map(inside))
    wrong = photos[(photos["right"] == False) & photos["score"].notnull()]  # noqa: E712
    expected = wrong.sort_values("score", ascending=False)["row"].tolist()
    assert photo_lists.elsewhere(survey, survey.select(), count=99).tolist() == expected
    assert photo_lists.elsewhere(survey, survey.select(), count=2).tolist() == expected[:2]
    assert 2 < len(expected) < PHOTOS


def test_classes_are_counted_and_averaged_as_pandas_does(survey, folder):
    photos = frame(folder, "photos")
    photos["first"] = photos["top_probabilities"].str[0]
    groups = photos.dropna(subset="label").groupby("label")
    lines = {line.label: line for line in photo_lists.classes(survey, survey.select())}
    assert set(lines) == set(groups.groups)
    for label, group in groups:
        assert lines[label].photos == len(group)
        assert lines[label].accuracy == pytest.approx(group["right"].astype(float).mean())
        assert lines[label].means["confidence"] == pytest.approx(group["first"].mean())
    assert [line.photos for line in lines.values()] == sorted(
        [len(group) for _, group in groups], reverse=True
    )


def test_any_two_numbers_can_be_compared_but_no_text(survey, folder):
    columns = photo_lists.scatter_columns(survey)
    assert {"margin", "outside_box", "head_entropy", "mean_distance", "relevance_energy"} <= set(columns)
    assert not {"label", "is_right", "photo"} & set(columns)
    heads = frame(folder, "heads").query("layer == 1 and head == 2").sort_values("row")
    values = photo_lists.column_of(survey, "head_distance", layer=1, head=2)
    np.testing.assert_allclose(values, heads["distance"], rtol=1e-6)
    with pytest.raises(ParameterError, match="no numeric column 'label'"):
        photo_lists.column_of(survey, "label")


# --- methods


def test_the_mean_of_a_method_is_that_of_pandas(survey, folder):
    table = frame(folder, "methods")
    rows = survey.select("margin > 0.05")
    lines = trust.method_table(survey, rows).lines
    for method in METHODS:
        mine = table[(table["method"] == method) & table["row"].isin(rows)]
        assert lines[method]["pointing"].mean == pytest.approx(mine["pointing"].dropna().astype(float).mean())
        assert lines[method]["pointing"].photos == mine["pointing"].notnull().sum()
        assert lines[method]["insertion"].mean == pytest.approx(
            (mine["insertion"] - mine["random_insertion"]).mean(), rel=1e-5
        )
        assert lines[method]["deletion"].mean == pytest.approx(
            (mine["random_deletion"] - mine["deletion"]).mean(), rel=1e-5
        )


def test_intervals_are_those_of_scipy():
    from scipy.stats import bootstrap

    values = np.random.default_rng(5).gamma(2.0, size=(83, 1))
    (mine,) = trust.intervals(values)
    theirs = bootstrap(
        (values[:, 0],), np.mean, n_resamples=2999, method="percentile", rng=np.random.default_rng(9)
    )
    low, high = theirs.confidence_interval
    assert mine is not None
    assert mine.low == pytest.approx(low, abs=0.1 * (high - low))
    assert mine.high == pytest.approx(high, abs=0.1 * (high - low))


def test_an_interval_covers_the_truth_about_19_times_of_20():
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(24):
        (one,) = trust.intervals(random.normal(2.0, 1.0, (60, 1)))
        assert one is not None
        hits += one.low <= 2.0 <= one.high
    assert 20 <= hits <= 24


def test_a_survey_without_methods_says_how_to_get_them(tmp_path):
    made = open_survey(made_survey(tmp_path / "made", photos=12, methods=(), boxes=False))
    assert "--methods" in trust.method_table(made, made.select()).conclusion
    assert not made.has_boxes
    assert "box_share" not in made.measures
    with pytest.raises(ParameterError, match="not 'box_share'"):
        atlas.atlas(made, made.select(), "box_share")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Binder Error: No such column\nLINE 1: SELECT\n", "No such column"),
        ("\n  \n  Parser Error: near WHERE  \nmore", "near WHERE"),
        ("No kind Error: stays", "No kind Error: stays"),
        ("", "it failed"),
        ("\n ", "it failed"),
        ("x" * 300, "x" * 200),
    ],
)
def test_an_error_of_the_database_is_its_first_line_without_its_kind(message: str, said: str) -> None:
    assert first_line(message) == said
