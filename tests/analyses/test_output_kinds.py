"""Answers that are no shares of a softmax: what follows, lists or draws them asks the model what its outputs are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import vit_viz as vv
from tests.analyses.conftest import RECIPE, loaded_from as loaded
from vit_viz.analyses.faithfulness import faithfulness
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import WITHOUT_PATCHES
from vit_viz.analyses.targets import Target
from vit_viz.checkpoints.declared_outputs import declared_output
from vit_viz.checkpoints.plain_module import Model, plain_module
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.model import VisionTransformer

Make = Callable[..., VisionTransformer]
LAYOUT = TokenLayout(grid=(4, 6))


class Foreign(nn.Module):
    """A module whose parts have no telling names; what it returns is what its model returns, by a function."""

    def __init__(self, model: nn.Module, told: Callable[[Tensor], Any] = lambda x: x) -> None:
        super().__init__()
        self.inner, self.beside, self.told = model, nn.LayerNorm(3), told

    def forward(self, pixels: Tensor) -> Any:
        return self.told(self.inner(pixels))


def picture(seed: int = 3) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (23, 50, 3), dtype=np.uint8))


def pixels(seed: int = 3) -> Tensor:
    return RECIPE.apply(picture(seed), mode="stretch").pixels


def trust_of(model: Any, given: Any, **told: Any) -> Any:
    maps = vv.explain(model, given, methods=["rollout"], progress=False, **told)
    return faithfulness(model, given, maps["rollout"], progress=False, **told)


SHOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda scores: scores.softmax(-1),
    "sigmoid": lambda scores: 1 / (1 + torch.exp(-scores)),
    "value": lambda scores: scores,
}
CASES = [(1, None, "value"), (1, "sigmoid", "sigmoid"), (2, "value", "value"), (3, "sigmoid", "sigmoid")]
SOFTMAX = (3, None, "softmax")


@pytest.mark.parametrize(("outputs", "told", "kind"), [*CASES, SOFTMAX])
def test_trust_follows_what_an_output_is(make_model: Make, outputs: int, told: Any, kind: str) -> None:
    model, given = make_model(num_classes=outputs), pixels()
    scores = trust_of(model, given, output=told)
    with torch.no_grad():
        ends = [SHOWN[kind](model(one))[0] for one in (given, torch.zeros_like(given))]
    best = int(model(given)[0].argmax())
    curve = scores.deletion
    np.testing.assert_allclose(curve.y[[0, -1]], [float(end[best]) for end in ends], rtol=1e-5)
    assert float(np.ptp(curve.y)) > 1e-3  # a softmax over one output is flat at 1
    words = {
        "softmax": f"probability of class {best}",
        "sigmoid": f"sigmoid of class {best}",
        "value": f"output {best}",
    }
    assert curve.y_label == words[kind]
    assert np.isfinite(scores.band.value_range[0]) == (kind != "value")
    assert np.isnan(scores.relative_deletion) == (kind == "value")


def test_a_module_of_which_nothing_is_known_returns_a_value_where_it_returns_one_number(
    make_model: Make,
) -> None:
    one, several = (Foreign(make_model(num_classes=count)) for count in (1, 3))
    assert trust_of(one, pixels(), layout=LAYOUT).deletion.y_label == "output 0"
    assert trust_of(several, pixels(), layout=LAYOUT).deletion.y_label.startswith("softmax share of output ")


def test_a_target_that_is_a_probability_is_refused_of_a_value(make_model: Make) -> None:
    target = Target("probability", 0)
    with pytest.raises(ParameterError, match="values, which have no probability"):
        vv.explain(make_model(num_classes=1), pixels(), methods=["occlusion"], target=target, progress=False)


@pytest.mark.parametrize("call", [vv.explain, vv.ablate_heads])
def test_what_contradicts_itself_is_refused(make_model: Make, call: Callable[..., object]) -> None:
    with pytest.raises(ParameterError, match="always 1"):
        call(make_model(num_classes=1), pixels(), output="softmax", progress=False)
    with pytest.raises(ParameterError, match="'softmax', 'sigmoid', 'value'"):
        call(make_model(num_classes=3), pixels(), output="logit", progress=False)
    with pytest.raises(ParameterError, match="not both"):
        call(make_model(num_classes=3), pixels(), output="value", has_classes=False, progress=False)


@pytest.mark.parametrize(("outputs", "told", "kind"), [*CASES, SOFTMAX])
def test_questions_by_name_list_what_an_output_is(
    make_model: Make, outputs: int, told: Any, kind: str
) -> None:
    model = make_model(num_classes=outputs)
    with torch.no_grad():
        expected = SHOWN[kind](model(RECIPE.apply(picture()).pixels))[0].sort(descending=True)
    ranking = vv.run(loaded(model), picture(), "classes", output=told, progress=False)
    noun = "output" if kind == "value" else "class"
    assert ranking.names == tuple(f"{noun} {int(i)}" for i in expected.indices)
    np.testing.assert_allclose(ranking.scores, expected.values, rtol=1e-5)
    assert (
        ranking.unit == {"softmax": "probability", "sigmoid": "probability (sigmoid)", "value": "value"}[kind]
    )


@pytest.mark.parametrize("told", [None, "sigmoid"])
def test_a_module_of_which_nothing_is_known_is_asked_by_name(make_model: Make, told: Any) -> None:
    """What it returns is one number, which is no embedding: its cosine with itself would be 1 for every photo."""
    model = plain_module(Foreign(make_model(num_classes=1)), preprocess=RECIPE, layout=LAYOUT)
    model = model if told is None else model.with_output(told)
    assert model.has_classes == (told is not None)
    trust = vv.run(model, picture(), "trust", method="rollout", progress=False).faithfulness
    assert trust.deletion.y_label == ("output 0" if told is None else "sigmoid of class 0")
    assert float(np.ptp(trust.deletion.y)) > 1e-3
    assert vv.run(model, picture(), "classes", progress=False).unit != "probability"


@pytest.mark.parametrize(("outputs", "told", "kind"), [*CASES, SOFTMAX])
def test_the_playground_shows_what_an_output_is(make_model: Make, outputs: int, told: Any, kind: str) -> None:
    model = loaded(make_model(num_classes=outputs), output=told)
    subject = PreparedImage.of(model, picture())
    before = subject.outputs(subject.pixels)[0].detach()
    job: Any = SimpleNamespace(
        image=subject, loaded=model, outputs=before, target=0, parameters={"gone": "1,2"}
    )
    answer = WITHOUT_PATCHES.answer(job)
    assert answer.top.names[0] == ("output 0" if kind == "value" else "class 0")
    np.testing.assert_allclose(answer.before[0], float(SHOWN[kind](before)[0]), rtol=1e-5)
    assert answer.top.unit.startswith("value" if kind == "value" else "probability")


@pytest.mark.parametrize(("outputs", "told", "kind"), [*CASES, SOFTMAX])
def test_the_lens_reads_what_an_output_is(make_model: Make, outputs: int, told: Any, kind: str) -> None:
    model = loaded(make_model(num_classes=outputs), output=told)
    subject = PreparedImage.of(model, picture())
    lens = vv.logit_lens(model, picture(), target=0)
    residual = subject.trace(keep_residual=True).residual
    assert residual is not None
    module = model.model
    with torch.no_grad():
        scores = SHOWN[kind](module.head(module.norm(residual[-1])))[-24:, 0].reshape(4, 6)
    np.testing.assert_allclose(lens.maps.values[-1], scores, rtol=1e-4, atol=1e-5)
    assert (lens.top is None) == (kind == "value")
    assert lens.maps.unit.startswith("value" if kind == "value" else "probability")


# --- what a model says of itself


class Tail(nn.Module):
    """A body and a head."""

    def __init__(self, *head: nn.Module, problem: object = None) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Sequential(*head)
        self.config = SimpleNamespace(problem_type=problem)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (Tail(nn.Linear(4, 3)), None),
        (Tail(nn.Linear(4, 3), problem="regression"), "value"),
        (Tail(nn.Linear(4, 3), problem="multi_label_classification"), "sigmoid"),
        (Tail(nn.Linear(4, 3), problem="single_label_classification"), None),
        (Tail(nn.Linear(4, 3), problem=["regression"]), None),
        (Tail(nn.Linear(4, 3), nn.Sigmoid()), "value"),
        (Tail(nn.Linear(4, 3), nn.Softmax(-1)), "value"),
        (Tail(nn.Linear(4, 3), nn.LogSoftmax(-1)), None),
        (nn.Sequential(Tail(nn.Linear(4, 3), problem="regression")), "value"),
        (nn.Linear(4, 3), None),
    ],
)
def test_a_module_says_by_its_configuration_or_its_head_what_an_output_is(
    module: nn.Module, expected: str | None
) -> None:
    assert declared_output(module) == expected


def test_a_kind_that_is_told_counts_more_than_what_a_module_says(make_model: Make) -> None:
    model = Foreign(make_model(num_classes=3))
    model.config = SimpleNamespace(problem_type="regression")  # type: ignore[assignment]  # as transformers has it
    said = [
        trust_of(model, pixels(), layout=LAYOUT, **told).deletion.y_label
        for told in ({}, {"output": "sigmoid"})
    ]
    assert [words.split(" ")[0] for words in said] == ["output", "sigmoid"]


def test_a_loaded_model_knows_what_its_outputs_are(make_model: Make) -> None:
    assert [loaded(make_model(num_classes=count)).output for count in (1, 3)] == ["value", "softmax"]
    embedding = loaded(make_model(num_classes=0))
    classifier, single = loaded(make_model(num_classes=3)), make_model(num_classes=1)
    assert replace(classifier, config=embedding.config, model=embedding.model).output is None
    assert replace(classifier, config=single.config, model=single).output == "value"
    assert (embedding.output, embedding.has_classes) == (None, False)
    with pytest.raises(ParameterError, match="are an embedding"):
        embedding.with_output("sigmoid")
    with pytest.raises(ParameterError, match="always 1"):
        loaded(make_model(num_classes=1)).with_output("softmax")
    told: Model = loaded(make_model(num_classes=3)).with_output("value")
    assert (told.output, dict(told.provenance.parameters)["output"]) == ("value", "value")
