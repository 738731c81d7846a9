"""What has no room on a GPU is computed on the CPU, with the same numbers and one sentence to whoever waits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.comparing import assert_same
from tests.ui.desk import odd_picture, odd_session
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import BusyError, ImageError
from vit_viz.session import models
from vit_viz.session.devices import FULL, LACKS, run_with_fallback
from vit_viz.session.request import Request
from vit_viz.session.session import Session


class Small:
    """A session on a model whose device has room for some images at a time; copies of it on the CPU have room for all."""

    def __init__(self, room: int, *, beyond: Exception | None = None, **options: Any) -> None:
        loaded = odd_session().model()
        model: Any = loaded.model

        def check(module: nn.Module, args: tuple[Any, ...]) -> None:
            if module is model and len(args[0]) > room:
                raise beyond or torch.OutOfMemoryError("CUDA out of memory")

        model.register_forward_pre_hook(check)
        self.notices: list[str] = []
        self.session = Session(model="odd", **options)
        self.session.notice = self.notices.append
        self.session.add_model(loaded)
        self.image = self.session.add_upload(odd_picture(), owner="ada")

    def run(self, analysis: str, **parameters: Any) -> Any:
        return self.session.run(Request.of("odd", self.image, analysis, owner="ada", **parameters))


def test_a_trace_without_room_is_computed_on_the_cpu_and_says_so() -> None:
    small, roomy = Small(0), Small(100)
    got, expected = (one.session.trace("odd", one.image, owner="ada") for one in (small, roomy))
    assert small.notices == [FULL]
    assert roomy.notices == []
    assert torch.equal(got.q, expected.q)
    assert got.provenance == expected.provenance


def test_a_long_analysis_without_room_is_computed_on_the_cpu() -> None:
    small, roomy = Small(0), Small(100)
    got, expected = (one.run("explain all", target=2) for one in (small, roomy))
    assert set(small.notices) == {FULL}
    for name, found in expected.maps.items():
        np.testing.assert_array_equal(got.maps[name].values, found.values)


def test_a_smaller_batch_is_enough_where_single_images_have_room() -> None:
    small, roomy = Small(2), Small(100)
    got, expected = (one.run("random deletion") for one in (small, roomy))
    assert small.notices == []
    assert_same(got, expected)


def test_what_the_cpu_computed_is_kept() -> None:
    small = Small(0)
    first = small.session.trace("odd", small.image, owner="ada")
    assert small.session.trace("odd", small.image, owner="ada") is first
    assert small.notices == [FULL]


def test_another_visitor_still_cannot_see_the_picture() -> None:
    small = Small(0)
    with pytest.raises(ImageError, match="no longer here"):
        small.session.trace("odd", small.image, owner="bob")


def test_a_model_without_room_is_loaded_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str | None] = []
    real = models.load

    def load(name: str, *, device: str | None, **options: Any) -> LoadedModel:
        devices.append(device)
        if device is None:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(name, device=device, **options)

    monkeypatch.setattr(models, "load", load)
    session = Session(model="mini")
    notices: list[str] = []
    session.notice = notices.append
    assert not session.has_model()
    assert session.model().device.type == "cpu"
    assert session.has_model()
    session.trace(None, "lion")  # does not ask the device again
    assert devices == [None, "cpu"]
    assert notices == [FULL]


@pytest.mark.parametrize(
    "beyond",
    [
        TypeError(
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64."
        ),
        NotImplementedError("The operator 'aten::unfold' is not currently implemented for the MPS device."),
    ],
    ids=["precision", "operation"],
)
def test_what_a_gpu_lacks_is_computed_on_the_cpu(beyond: Exception) -> None:
    small, alone = Small(0, beyond=beyond), Small(9)
    assert np.array_equal(small.run("layer_similarity").values, alone.run("layer_similarity").values)
    assert set(small.notices) == {LACKS}


@pytest.mark.parametrize("fault", [TypeError("takes no argument"), NotImplementedError("not yet")])
def test_a_fault_of_ours_is_none_of_the_gpu(fault: Exception) -> None:
    small = Small(0, beyond=fault)
    with pytest.raises(type(fault)):
        small.session.trace("odd", small.image, owner="ada")
    assert small.notices == []


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"falls_back": False}])
def test_on_the_cpu_there_is_nothing_to_fall_back_to(options: dict[str, Any]) -> None:
    small = Small(0, **options)
    with pytest.raises(torch.OutOfMemoryError):
        small.session.trace("odd", small.image, owner="ada")
    assert small.session.cpu_engine is None
    assert small.notices == []


def test_a_busy_session_is_not_taken_for_a_busy_gpu() -> None:
    def busy() -> int:
        raise BusyError("Ten are waiting.")

    with pytest.raises(BusyError, match="Ten"):
        run_with_fallback(busy, lambda: 1, notice=lambda _: None)
