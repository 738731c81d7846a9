"""Serving a model that Python holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.session.test_checks import RECIPE, Tutorial
from tests.waiting import until
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.labels import Labels
from vit_viz.results import PatchMap
from vit_viz.session.devices import FULL
from vit_viz.session.request import Request
from vit_viz.ui.app import session_of
from vit_viz.ui.payload import explorer_value, facts_value
from vit_viz.views.state import ViewState


def test_a_module_is_shown_like_any_model_once_its_layout_is_given() -> None:
    session = session_of(Tutorial().eval(), preprocess=RECIPE, layout=TokenLayout(grid=(4, 6)))
    image = session.add_upload(Image.new("RGB", (96, 64), (9, 99, 200)), owner="ada")
    value = explorer_value(session, ViewState(model="Tutorial", image=image), "ada")
    assert (value["layers"], value["heads"], value["grid"]) == (2, 5, [4, 6])
    until(lambda: session.checks.is_idle)
    facts = facts_value(session, ViewState(model="Tutorial", image=image), "ada")
    assert "Tutorial" in facts["card"]
    assert facts["badge"]["state"] == "proven"


def test_a_module_without_a_recipe_is_refused_in_one_sentence() -> None:
    with pytest.raises(ParameterError, match="preprocess="):
        session_of(Tutorial())


def test_a_model_within_other_modules_is_shown_as_by_itself() -> None:
    model = Tutorial()
    model.pretrained_cfg = {"input_size": (3, 32, 48), "mean": (0.1, 0.2, 0.3), "std": (0.5, 0.6, 0.7)}  # type: ignore[assignment]
    embedding = nn.Module()
    embedding.patch_size, embedding.img_size = (8, 8), (32, 48)  # type: ignore[assignment]
    model.patch_embed = embedding
    parallel, sequence, alone = (
        session_of(module).model() for module in (nn.DataParallel(model), nn.Sequential(model), model)
    )
    assert parallel.model is alone.model is model
    assert sequence.preprocess == parallel.preprocess == alone.preprocess


@pytest.mark.parametrize("labels", [None, Labels(("a", "b", "c", "d", "e", "f", "g"))])
def test_a_module_is_explained_like_any_model(labels: Labels | None) -> None:
    session = session_of(Tutorial().eval(), preprocess=RECIPE, labels=labels, layout=TokenLayout(grid=(4, 6)))
    rng = np.random.default_rng(0)
    photo = Image.fromarray(rng.integers(0, 256, (64, 96, 3), dtype=np.uint8))
    image = session.add_upload(photo, owner="ada")
    target = None if labels is None else 3
    request = Request.of("Tutorial", image, "relevance", owner="ada", target=target)
    found = session.run(request)
    assert isinstance(found, PatchMap)
    assert found.values.shape == (4, 6)
    assert found.values.max() > 0
    request = Request.of("Tutorial", image, "without_patches", owner="ada", gone="0,1;2,3")
    assert session.run(request) is not None


def test_a_module_without_room_on_its_device_is_copied_to_the_cpu() -> None:
    module = Tutorial().eval()
    session = session_of(module, preprocess=RECIPE, layout=TokenLayout(grid=(4, 6)))
    notices: list[str] = []
    session.notice = notices.append

    def check(one: nn.Module, _args: object) -> None:
        if one is module.embed:  # and not that of the copy
            raise torch.OutOfMemoryError("CUDA out of memory")

    module.embed.register_forward_pre_hook(check)
    image = session.add_upload(Image.new("RGB", (96, 64), (9, 99, 200)), owner="ada")
    value = explorer_value(session, ViewState(model="Tutorial", image=image), "ada")
    assert value["grid"] == [4, 6]
    assert notices == [FULL]
