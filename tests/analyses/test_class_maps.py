"""The maps of several sentences, or of the first classes: each is the map of that one alone, of one forward pass together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vit_viz as vv
from tests.checkpoints.test_text_towers import own_file
from tests.kinds import RANDOM_MODELS, loaded as random_model
from vit_viz.analyses.methods import METHODS
from vit_viz.checkpoints import load
from vit_viz.errors import CaptureError, ParameterError

pytestmark = pytest.mark.numbers

SENTENCES = ("a red circle", "a blue square", "a photo")
AIMED = [name for name in METHODS.quick if not METHODS[name].words.class_blind]


@pytest.mark.parametrize("method", AIMED)
@pytest.mark.parametrize("kind", ["class token and registers", "no class token, attention pooling"])
def test_each_map_is_that_of_its_class_alone(kind: str, method: str) -> None:
    model = random_model(**RANDOM_MODELS[kind])
    try:
        found = vv.run(model, "tower", "class_maps", method=method, count=3)
    except CaptureError:
        with pytest.raises(CaptureError):  # this model has none by the method, whatever is asked
            vv.run(model, "tower", method, target=0)
        return
    order = vv.run(model, "tower", "classes", count=3)
    assert found.names == order.names
    for index, values in zip(order.indices, found.values, strict=True):
        alone = vv.run(model, "tower", method, target=index)
        np.testing.assert_array_equal(values, alone.values)
        assert (found.unit, found.signed, found.crop_box) == (alone.unit, alone.signed, alone.crop_box)


def test_sentences_are_all_there_in_their_order(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors")
    model = load(tmp_path / "both.safetensors", device="cpu")
    found = vv.run(model, "tower", "class_maps", sentences=SENTENCES, count=1)
    assert found.names == SENTENCES
    for name, values in zip(found.names, found.values, strict=True):
        alone = vv.run(model, "tower", "relevance", sentences=SENTENCES, target=name)
        np.testing.assert_array_equal(values, alone.values)
    best, row, col = np.unravel_index(int(found.values.argmax()), found.values.shape)
    assert found.to_words() == (
        f"The largest value of all is for “{SENTENCES[best]}”, on patch ({row}, {col})."
    )
    with pytest.raises(ParameterError, match="one with a text tower has sentences for it"):
        vv.run(model, "tower", "class_maps")


def test_one_forward_pass_is_shared_and_each_target_costs_one_backward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, grad = random_model(), torch.autograd.grad
    forwards, backwards = list[int](), list[bool]()
    model.model.register_forward_hook(lambda *_: forwards.append(1))

    def counted(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        backwards.append(isinstance(inputs, list))  # not only from the target to the scores
        return grad(outputs, inputs, *args, **kwargs)

    monkeypatch.setattr(torch.autograd, "grad", counted)
    vv.run(model, "tower", "classes")  # which keeps what every answer about the picture begins with
    forwards.clear()
    shares = list[float]()
    found = vv.run(model, "tower", "class_maps", method="relevance", count=5, progress=shares.append)
    assert (len(found.names), sum(forwards), sum(backwards)) == (5, 1, 5)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_a_pass_whose_graph_is_gone_is_not_differentiated_again() -> None:
    trace = vv.trace(random_model(), "tower", target=0)
    with pytest.raises(CaptureError, match="its graph was not kept"):
        trace.towards(1)


def test_what_cannot_differ_between_classes_or_takes_long_is_refused() -> None:
    for method, words in (("rollout", "the same map for every class"), ("occlusion", "takes long")):
        with pytest.raises(ParameterError, match=words):
            vv.run("mini", "lion", "class_maps", method=method)
