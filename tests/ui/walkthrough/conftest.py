"""Scenes of a tiny model whose patches are not square."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from tests.ui.desk import odd_picture, odd_session
from tests.ui.views import view_with
from vit_viz.images import Preprocess
from vit_viz.session.session import Session
from vit_viz.ui.walkthrough.scene import StepInput


def opened(
    *, size: tuple[int, int] = (32, 54), view: dict[str, Any] | None = None, **model: Any
) -> tuple[Session, StepInput]:
    """A session and a scene over patches of 8 x 6 pixels; the picture is stretched to the model's input."""
    session = odd_session(patch_size=(8, 6), img_size=size, **model)
    loaded = session.model("odd")
    session.add_model(replace(loaded, preprocess=Preprocess(input_size=size, patch_size=(8, 6))))
    image = session.add_upload(odd_picture())
    choices = {"model": "odd", "image": image, "mode": "stretch", "layer": 1, "head": 3} | (view or {})
    return session, StepInput.of(session, view_with(**choices), "")


def scene_of(**choices: Any) -> StepInput:
    """The scene alone."""
    return opened(**choices)[1]


def pictures_in(page: str) -> list[Image.Image]:
    """The pictures of a page, in order."""
    found = re.findall(r'src="data:image/\w+;base64,([^"]+)"', page)
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in found]


@pytest.fixture(scope="package")
def scene() -> StepInput:
    return scene_of()
