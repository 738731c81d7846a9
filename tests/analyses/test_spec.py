"""What a declaration says of an analysis holds: ranges are checked when options are made, and all that is derived agrees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest

from vit_viz.analyses.attention import LookOptions
from vit_viz.analyses.key_segments import SegmentOptions
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import NoOptions, Option, OptionField, Options
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.rollout import RolloutOptions
from vit_viz.analyses.spec import asks
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import described
from vit_viz.progress import Progress, ProgressLike

OF_TIMES = Option("times", "How often.", low=1, high=9)


@dataclass(frozen=True)
class OddOptions(Options):
    weight: Annotated[float, Option("weight", "Its weight.", low=-2, high=3, step=0.5)] = 0.25
    count: Annotated[int, Option("count", "How many.", low=2, high=7)] = 5
    kind: Annotated[Literal["one", "other"], Option("kind", "Which.")] = "one"
    is_on: Annotated[bool, Option("switch", "Whether.")] = False


@pytest.mark.parametrize(
    "options",
    [
        {"weight": -2.01},
        {"weight": 3.01},
        {"weight": float("nan")},
        {"weight": "1"},
        {"weight": True},
        {"count": 1},
        {"count": 8},
        {"count": 2.5},
        {"count": True},
        {"kind": "neither"},
        {"kind": 1},
        {"is_on": 1},
        {"is_on": "0"},
    ],
    ids=str,
)
def test_an_option_outside_its_range_or_type_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match={"is_on": "switch"}.get(*options, *options)):
        OddOptions(**options)


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [
        (0, 1, 0.01),
        (0, 0.95, 0.01),
        (0.1, 3, 0.05),
        (-7, 900, 10),
        (0, 0.001, 0.0001),
        (2, 2, 0.0001),
        (0, 250, 5),
    ],
)
def test_a_number_with_decimals_and_no_step_has_one_that_its_slider_can_move_by(
    low: float, high: float, step: float
) -> None:
    field = OptionField("share", float, low, (), Option("share", "How much.", low=low, high=high))
    assert described(field)["step"] == pytest.approx(step, rel=1e-12)
    assert (high - low) / field.step <= 100 + 1e-9
    moved = low + field.step
    assert field.read("share", min(moved, high)) > low or low == high
    assert replace(field, option=replace(field.option, step=0.5)).step == 0.5


@pytest.mark.parametrize(
    "options",
    [{"weight": -2}, {"weight": 3.0}, {"count": 2}, {"count": 7}, {"kind": "other"}, {"is_on": True}],
    ids=str,
)
def test_the_ends_of_a_range_belong_to_it(options: dict[str, Any]) -> None:
    assert OddOptions(**options).changed() == tuple(options.items())


@pytest.mark.parametrize(
    ("name", "text", "value"), [("weight", "1.23456", 1.2346), ("count", "6", 6), ("is_on", "true", True)]
)
def test_an_option_is_read_from_text(name: str, text: str, value: object) -> None:
    (field,) = [field for field in OddOptions.schema() if field.name == name]
    assert field.read(name, text) == value
    with pytest.raises(ParameterError, match=name.replace("_", " ")):
        field.read(name, "99")


def test_options_are_written_as_pairs_and_read_again() -> None:
    options = OddOptions(weight=1.5, kind="other")
    assert OddOptions.of(options.changed()) == options
    assert OddOptions().changed() == ()
    with pytest.raises(ParameterError, match=r"'size'.*weight, count, kind, is_on"):
        OddOptions.of([("size", 1)])


def test_options_say_what_they_are_called_in_links() -> None:
    assert [field.link_name("odd") for field in OddOptions.schema()] == [
        "odd.weight", "odd.count", "odd.kind", "odd.is_on",
    ]  # fmt: skip
    assert [field.link_name("rollout") for field in RolloutOptions.schema()] == [
        "share", "discard", "fusion", "first", "last",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "last", "fitted"),
    [
        (0, -1, (0, -1)),
        (0, 4, (0, -1)),
        (0, 9, (0, -1)),
        (3, 1, (1, 1)),
        (9, -1, (4, -1)),
        (2, 3, (2, 3)),
        (-2, -1, (3, -1)),
        (-4, -2, (1, 3)),
        (-9, -5, (0, 0)),
    ],
)
def test_a_range_of_layers_has_one_way_of_writing(first: int, last: int, fitted: tuple[int, int]) -> None:
    options = RolloutOptions(first=first, last=last).for_layers(5)
    assert (options.first, options.last) == fitted


@pytest.mark.parametrize(("layer", "fitted"), [(0, 0), (4, 4), (-1, 4), (-2, 3), (-5, 0), (5, 5), (-6, -6)])
def test_a_layer_has_one_way_of_writing(layer: int, fitted: int) -> None:
    assert LookOptions(layer=layer).for_layers(5).layer == fitted
    assert SegmentOptions(layer=layer).for_layers(5).layer == fitted


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_says_all_of_itself(name: str) -> None:
    method = METHODS[name]
    assert method.name == name
    assert method.options() == method.options()  # it has a default for everything
    for words in (method.words.shows, method.words.hides, method.words.formula, method.words.source):
        assert len(words) > 5
    assert method.words.shows.endswith(".")
    for field in method.options.schema():
        assert field.option.sentence.endswith(".")


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_says_what_it_computes(name: str) -> None:
    words = QUESTIONS[name].words
    assert all((words.shows, words.hides, words.formula, words.source, words.also_called))


def test_methods_are_told_apart_by_their_cards_their_speed_and_what_they_see() -> None:
    cards = {method.name for method in METHODS.cards}
    assert set(METHODS) - cards == {"saliency", "input_x_gradient", "gradient_shap"}
    assert [name for name in METHODS if METHODS[name].words.class_blind] == [
        *("rollout", "value_rollout", "attention", "attention_flow")
    ]
    assert METHODS.quick == tuple(METHODS)[:11]
    assert METHODS.usual.name == "relevance"


def test_two_methods_share_no_name_in_links() -> None:
    names = [name for method in METHODS.values() for name in method.links]
    own = {"attention_flow.attention_share", "value_rollout.attention_share"}
    assert {"share", "discard", "fusion", "first", "last"} | own == set(names)
    with (
        pytest.raises(ParameterError, match="'fusion'"),
        METHODS.including(replace(METHODS["rollout"], name="rollout_2")),
    ):
        pass
    assert "rollout_2" not in METHODS


@pytest.mark.parametrize("changes", [{"name": "With Space"}, {"cost": "pass"}])
def test_a_declaration_that_contradicts_itself_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        replace(METHODS["occlusion"], **changes)


def test_an_unknown_method_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ParameterError, match=r"'astrology'.*relevance.*gradient_shap"):
        METHODS.named("astrology")
    assert NoOptions.schema() == ()


def _toy(image: str, *, query: Any, progress: ProgressLike, times: Annotated[int, OF_TIMES] = 2) -> Any:
    return image, query, progress, times


def _whole(job: Any, *, target: Any, progress: Progress | None, options: OddOptions) -> Any:
    return job.image, target, progress, options.count


def test_a_function_says_what_its_question_is_asked_with() -> None:
    words = {"label": "Toy", "shows": "a toy.", "hides": "all.", "formula": "x", "source": "Toy 2026"}
    toy = asks(_toy, reads="image", **words)
    whole = asks(_whole, reads="trace", name="other", options=OddOptions, cost="pass", **words)
    assert [(one.name, one.takes_query, one.takes_target) for one in (toy, whole)] == [
        ("toy", True, False),
        ("other", False, True),
    ]
    assert (toy.words.label, whole.cost, whole.options) == ("Toy", "pass", OddOptions)
    assert [field.name for field in toy.options.schema()] == ["times"]
    job: Any = SimpleNamespace(image="lion", query="class", target=4, progress=None, parameters={"times": 3})
    source, query, progress, times = toy.answer(job)
    assert ((source, query, times), callable(progress)) == (
        ("lion", "class", 3),
        True,
    )  # for whom no bar is drawn
    job.parameters, job.progress = {"count": 6, "target": 4}, print
    assert whole.answer(job) == ("lion", 4, print, 6)
