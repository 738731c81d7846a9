"""Questions by name: the same numbers as the functions, words resolved, and one sentence for what is not possible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz import samples
from vit_viz.analyses.ablation import head_importance
from vit_viz.analyses.head_names import HeadNames
from vit_viz.analyses.head_statistics import Measure
from vit_viz.analyses.heads import OF_THE_STREAM, UNSEEN, HeadTables, head_tables
from vit_viz.analyses.key_segments import segment_overlap
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.rollout import LAST_LAYER_ATTENTION
from vit_viz.answer import arrays_of
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.results import PatchMap
from vit_viz.session.engine import Engine
from vit_viz.session.questions import ask, request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.run import session_of, subject_of
from vit_viz.session.session import Session

PHOTO = "lion"


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return vv.load("mini")


@pytest.fixture(scope="module")
def session(loaded: LoadedModel) -> Session:
    return session_of(loaded)


def trace_of(loaded: LoadedModel) -> vv.Trace:
    return vv.trace(loaded, samples.sample(PHOTO), keep_values=True)


def stream_of(loaded: LoadedModel) -> vv.Trace:
    return vv.trace(loaded, samples.sample(PHOTO), keep_residual=True)


def all_of(loaded: LoadedModel) -> vv.Trace:
    return vv.trace(loaded, samples.sample(PHOTO), keep_residual=True, keep_values=True)


def test_each_question_has_words_and_a_name_of_its_own() -> None:
    assert [*METHODS] == [*QUESTIONS][: len(METHODS)]
    for name, question in QUESTIONS.items():
        assert question.name == name
        assert question.words.shows.endswith(".")
        assert (question.cost == "many passes") == bool(question.words.runs)


def test_what_takes_no_class_is_the_same_for_every_class() -> None:
    """But for those that tell several of them apart."""
    without = {name: question for name, question in QUESTIONS.items() if not question.takes_target}
    assert len(without) > 1
    assert [name for name, question in without.items() if not question.words.class_blind] == [
        "class_maps",
        "classes",
        "sentence_patches",
        "lesson_depth",
        "lesson_what_if",
    ]


def test_a_map_is_blind_to_the_class_where_its_question_says_so(session: Session) -> None:
    maps: dict[str, PatchMap] = {}
    for name, question in QUESTIONS.items():
        with suppress(ParameterError):  # the model has no such thing
            if not question.is_slow:
                answer = ask(session, subject_of(session, PHOTO if question.takes_image else None), name)
                maps |= {name: answer} if isinstance(answer, PatchMap) else {}
    assert len(maps) > 10
    assert {name: one.class_blind for name, one in maps.items()} == {
        name: QUESTIONS[name].words.class_blind for name in maps
    }


def test_periods_of_rotary_positions_are_those_of_the_function() -> None:
    config = vv.ViTConfig(
        img_size=(12, 20),
        patch_size=(4, 4),
        embed_dim=40,
        depth=2,
        num_heads=5,
        num_classes=0,
        position="rotary",
    )
    rotary = replace(vv.load("mini"), model=vv.VisionTransformer(config).eval(), config=config, labels=None)
    for asked, grid in (({}, (3, 5)), ({"rows": 4, "cols": 7}, (4, 7))):
        found = arrays_of(vv.run(rotary, None, "rotary_similarity", **asked))
        expected = arrays_of(vv.rotary_similarity(rotary, grid=grid))
        assert found.keys() == expected.keys()
        for part, values in expected.items():
            assert found[part].tobytes() == values.tobytes()
            assert part == "periods" or values.shape[-1] in grid


def patch_rectangles(trace: vv.Trace) -> dict[str, Any]:
    """By hand: the square photo is the input, cut evenly."""
    assert trace.crop_box is not None
    (height, width), (rows, cols) = trace.crop_box.original_size, trace.layout.grid
    down, across = np.arange(rows + 1) * height / rows, np.arange(cols + 1) * width / cols
    values = [[(down[r], across[c], down[r + 1], across[c + 1]) for c in range(cols)] for r in range(rows)]
    return {"values": np.array(values, np.float32)}


def received(loaded: LoadedModel) -> dict[str, Any]:
    prepared = loaded.preprocess.apply(samples.sample(PHOTO), mode="fit", size=0, max_patches=None)
    return {"values": np.asarray(loaded.preprocess.reverse(prepared.pixels)).astype(np.float32)}


FUNCTIONS: dict[str, tuple[dict[str, Any], Callable[[LoadedModel], Any]]] = {
    "rollout": (
        {"query": "3,4", "discard": 0.25},
        lambda m: vv.rollout(trace_of(m), query=(3, 4), discard=0.25),
    ),
    "relevance": (
        {"target": 5},
        lambda m: vv.explain(m, samples.sample(PHOTO), methods=["relevance"], target=5)["relevance"],
    ),
    "look": (
        {"layer": 2, "head": 1, "query": [(0, 0), (0, 1)], "norm": True},
        lambda m: vv.attention_map(trace_of(m), layer=2, head=1, query=[(0, 0), (0, 1)], norm_weighted=True),
    ),
    "heads": ({"measure": "entropy"}, lambda m: vv.head_table(trace_of(m), measure="entropy")),
    "positions": ({}, vv.position_similarity),
    "patches": ({"numbers": True}, lambda m: patch_rectangles(trace_of(m))),
    "sequence": ({}, lambda m: received(m)),
    "token_similarity": (
        {"role": "keys", "query": "3,4"},
        lambda m: vv.token_similarity(trace_of(m), query=(3, 4), role="keys"),
    ),
    "token_change": ({}, lambda m: vv.token_change(stream_of(m))),
    "token_components": (
        {"whitened": True},
        lambda m: vv.token_components(stream_of(m), whitened=True),
    ),
    "token_norms": ({"factor": 1.5}, lambda m: vv.token_norms(stream_of(m), factor=1.5)),
    "logit_lens": ({"target": 5}, lambda m: vv.logit_lens(m, samples.sample(PHOTO), target=5)),
    "layer_similarity": (
        {"form": "biased"},
        lambda m: vv.layer_similarity(stream_of(m), debiased=False),
    ),
    "segments": (
        {"layer": 1, "count": 3},
        lambda m: vv.key_segments(trace_of(m), layer=1, count=3),
    ),
    "head_tables": ({}, lambda m: HeadTables(head_tables(all_of(m)))),
    "head_names": ({}, lambda m: HeadNames.of(head_tables(stream_of(m)))),
    "head_importance": (
        {"how": "mean", "target": 5},
        lambda m: head_importance(PreparedImage.of(m, samples.sample(PHOTO)), target=5, how="mean"),
    ),
    "links": (
        {"layer": 1, "head": 2, "count": 7, "tokens": "all"},
        lambda m: vv.links(trace_of(m), layer=1, head=2, count=7, tokens="all"),
    ),
    "added_register": (
        {"factor": 1.5, "count": 4},
        lambda m: vv.add_register(m, samples.sample(PHOTO), factor=1.5, count=4),
    ),
    "resampling": ({"rows": 5, "cols": 7}, lambda m: vv.resampling(m, grid=(5, 7))),
    "position_components": ({}, vv.position_components),
    "filter_components": ({"count": 5}, lambda m: vv.filter_components(m, count=5)),
    "ablation": ({"how": "mean"}, lambda m: vv.ablate_heads(m, samples.sample(PHOTO), how="mean")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_question_gives_the_numbers_of_its_function(loaded: LoadedModel, name: str) -> None:
    asked, function = FUNCTIONS[name]
    image = PHOTO if QUESTIONS.named(name).takes_image else None
    found, expected = arrays_of(vv.run(loaded, image, name, **asked)), arrays_of(function(loaded))
    assert found.keys() == expected.keys()
    for part, values in expected.items():
        assert np.abs(found[part] - values).max() <= 1e-5 * np.abs(values).max()


def test_one_position_is_a_row_of_all(loaded: LoadedModel) -> None:
    whole = vv.position_similarity(loaded, grid=(3, 5))
    one = vv.run(loaded, None, "positions", grid="3,5", place="2,4")
    assert isinstance(one, vv.PatchMap)
    assert_same(one.values, whole.values[14].reshape(3, 5))
    assert (one.unit, one.signed, one.note) == (whole.unit, whole.signed, whole.note)
    assert one.caption == "Position (2, 4) with all 3 x 5 patch positions"
    assert dict(one.provenance.parameters)["place"] == "(2, 4)"


def test_segments_say_their_overlap_with_a_box(loaded: LoadedModel) -> None:
    found = vv.run(loaded, PHOTO, "segments", layer=2, count=3, box="30,20,140,160")
    expected = segment_overlap(
        vv.key_segments(trace_of(loaded), layer=2, count=3), boxes=[(30, 20, 140, 160)]
    )
    assert found.overlap is not None  # type: ignore[union-attr]
    assert expected.max() > 0.05
    assert_same(found.overlap, expected)  # type: ignore[union-attr]


def test_a_model_whose_tokens_cannot_be_recorded_is_measured_by_the_rest(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Engine._record

    def without_stream(self: Engine, request: Any, cancelled: Any, *, keep_residual: bool) -> Any:
        if keep_residual:
            raise CaptureError("There is no residual stream here.")
        return record(self, request, cancelled, keep_residual=False)

    whole = vv.run(loaded, PHOTO, "head_tables")
    monkeypatch.setattr(Engine, "_record", without_stream)
    found = vv.run(loaded, "tower", "head_tables")
    assert isinstance(found, HeadTables)
    assert isinstance(whole, HeadTables)
    assert set(found.tables) == set(whole.tables) - OF_THE_STREAM
    assert (whole.note, found.note) == ("", UNSEEN)


def test_as_many_classes_are_listed_as_are_asked_for(loaded: LoadedModel) -> None:
    first, more = (vv.run(loaded, PHOTO, "classes", **asked) for asked in ({}, {"count": 6}))
    assert isinstance(first, vv.Ranking)
    assert isinstance(more, vv.Ranking)
    assert (len(first.names), len(more.names)) == (5, 6)
    assert more.names[:5] == first.names


@pytest.mark.parametrize("measure", ["sink_share", "content_correlation"])
def test_a_measure_of_the_residual_stream_records_it(loaded: LoadedModel, measure: Measure) -> None:
    found = vv.run(loaded, PHOTO, "heads", measure=measure)
    trace = vv.trace(loaded, samples.sample(PHOTO), keep_residual=True)
    expected = vv.head_table(trace, measure=measure)
    for part, values in arrays_of(expected).items():
        assert_same(arrays_of(found)[part], values)


def test_words_mean_what_their_values_mean(loaded: LoadedModel, session: Session) -> None:
    subject = Subject("mini", PHOTO)
    assert loaded.labels is not None
    name, other = loaded.labels.names[7], loaded.labels.names[9]

    def asked(question: str, **words: Any) -> Request:
        return request_for(session, subject, question, **words)

    assert asked("relevance", target=name) == asked("relevance", target="7") == asked("relevance", target=7)
    assert asked("relevance", target=(name, other)) == asked("relevance", target="7-9")
    assert asked("rollout", query="2,3") == asked("rollout", query=(2, 3))
    assert asked("rollout", query="class") == asked("rollout")
    assert asked("look", layer=-1) == asked("look", layer=str(session.trace_of(subject).num_layers - 1))
    assert asked("rollout", discard="0.5") == asked("rollout", discard=0.5) != asked("rollout")


def test_a_question_is_the_request_of_the_page(session: Session) -> None:
    subject = Subject("mini", PHOTO)
    wanted = subject.request(LAST_LAYER_ATTENTION.name, target=None)
    assert request_for(session, subject, LAST_LAYER_ATTENTION.name) == wanted


def test_every_request_is_json_both_ways(session: Session) -> None:
    for name in QUESTIONS:
        request = request_for(session, Subject("mini", PHOTO), name)
        assert Request.from_json(request.to_json()) == request


def test_a_picture_is_kept_once(loaded: LoadedModel, tmp_path: Any) -> None:
    photo = samples.sample("runner").resize((160, 120))
    path = tmp_path / "dog at sea.png"
    photo.save(path)
    session = session_of(loaded)
    before = len(session.uploads.of(""))
    for given in (photo, path, str(path)):
        vv.run(loaded, given, "look")
    assert len(session.uploads.of("")) == before + 1


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {}, "There is nothing called 'nothing'; there are: relevance"),
    ("rollout", {"colour": 1}, "'rollout' has no option 'colour'; there are: attention_share"),
    ("relevance", {"colour": 1}, "'relevance' has no option 'colour'; it has none."),
    ("rollout", {"discard": 2}, "The rollout's discard is a number from 0 to 0.95"),
    ("look", {"head": "left"}, "The look's head cannot be 'left'. One head"),
    ("look", {"layer": 44}, "Layer 44 does not exist"),
    ("look", {"query": "99,1"}, "Patch (99, 1) does not exist"),
    ("look", {"query": 0}, 'A query is a token such as "class"'),
    ("rollout", {"query": [1, 2, 3]}, 'A query is a token such as "class"'),
    ("rollout", {"target": 3}, "'rollout' takes no target."),
    ("legrad", {"query": "class"}, "'legrad' takes no query."),
    ("relevance", {"target": "1-2-3"}, "A target of several classes is a pair"),
    ("relevance", {"target": "no such thing"}, "No class is called 'no such thing'"),
    ("relevance", {"target": 99_999}, "Class 99999 does not exist"),
    ("trust", {"method": "guessing"}, "There is no method 'guessing'"),
    ("segments", {"box": "1,2,3"}, "The segments's box cannot be '1,2,3'. Where an object lies"),
    ("segments", {"box": "9,0,5,9"}, "A box is left,top,right,bottom, each side before the other"),
    ("position_components", {"rows": 5}, "A grid has rows and columns"),
    ("position_components", {"cols": 5}, "A grid has rows and columns"),
    ("rotary_similarity", {}, "Periods belong to rotary positions"),
]


@pytest.mark.parametrize(("name", "asked", "sentence"), REFUSED)
def test_what_is_not_possible_is_one_sentence(
    loaded: LoadedModel, name: str, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(vv.ParameterError) as refused:
        vv.run(loaded, PHOTO, name, **asked)
    assert str(refused.value).startswith(sentence)
