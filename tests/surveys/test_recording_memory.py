"""Photos for which a GPU has no room at once go through the model in halves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.ui.desk import odd_session
from vit_viz.surveys import recording
from vit_viz.surveys.recording import Recording


@pytest.mark.parametrize(("room", "passes"), [(5, [5]), (3, [5, 3, 2]), (1, [5, 3, 2, 1, 1, 1, 1, 1])])
def test_photos_without_room_are_halved_until_they_fit(
    monkeypatch: pytest.MonkeyPatch, room: int, passes: list[int]
) -> None:
    model: Any = odd_session().model()
    height, width = model.config.img_size
    whole = recording.begun_numbers
    tried: list[int] = []

    def with_little_room(module: Any, pixels: torch.Tensor, **options: Any) -> Any:
        tried.append(len(pixels))
        if len(pixels) > room:
            raise torch.OutOfMemoryError("no room")
        return whole(module, pixels, **options)

    pixels = torch.randn(5, 3, height, width, generator=torch.Generator().manual_seed(3))
    expected = Recording(model)._numbers(pixels)()
    monkeypatch.setattr(recording, "begun_numbers", with_little_room)
    found = Recording(model)._numbers(pixels)()
    assert tried == passes
    assert found.maps == pytest.approx(expected.maps, rel=1e-4, abs=1e-5)


def test_a_photo_for_which_there_is_no_room_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = odd_session().model()

    def without_room(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(recording, "begun_numbers", without_room)
    with pytest.raises(torch.OutOfMemoryError):
        Recording(model)._numbers(torch.zeros(3, 3, *model.config.img_size))
