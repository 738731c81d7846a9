"""What a site says of a view is what the server says: the sizes to choose from, the classes, and what a model has of positions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.browser.engine import Jobs
from tests.browser.families import BEIT, TINY
from tests.model.inside import randomise
from vit_viz.browser import write_weights
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.samples import sample
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import opened, target
from vit_viz.ui.header import sizes
from vit_viz.views.state import ViewState

pytestmark = pytest.mark.numbers

NAMES = ("great grey owl", "owlet", "barn-owl", "lion", "Howler", "sea lion", "lion")
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "distilled, with registers": ({"dist_token": True, "reg_tokens": 3, "no_embed_class": True}, {}),
    "no class token, no head": (
        {"class_token": False, "pooling": "mean", "num_classes": 0, "position": "sinusoidal_1d"},
        {},
    ),
    "as DINO's": ({"img_size": (64, 64), "patch_size": (8, 8), "position": "sinusoidal_2d"}, {"output": "sigmoid"}),
    "an odd short side": ({"img_size": (18, 35), "position": "rotary", "class_token": False, "pooling": "mean"}, {}),
    "one value": ({"num_classes": 1, "position": "none", "img_size": (26, 45), "drop_remainder": True}, {}),
    "biased": (BEIT | {"relative_bias": True}, {"labels": Labels(NAMES)}),
    "padded": ({"pad": True, "img_size": (23, 41), "position": "sinusoidal_2d", "reg_tokens": 1}, {}),
}  # fmt: skip
PHOTOS = [(1067, 1600, 0), (301, 2999, 9), (640, 64, 60), (480, 480, 6), (37, 41, 64)]
"""Height, width, and the size that is looked at."""

TARGETS: list[tuple[str, str | None]] = [
    *((target, None) for target in ("", "0", "3", "2-1", "1-1", "7", "6-99", "99")),
    *(("", find) for find in ("owl", "  LION ", "grey  owl", "3", "6", "99", "barn", "ow", "-", "", "1e1")),
]


def _loaded(name: str, folder: Path) -> LoadedModel:
    mini = load("mini", device="cpu")
    if name == "mini":
        return mini
    torch.manual_seed(5)
    choices, facts = MODELS[name]
    config = ViTConfig(**TINY | {"depth": 2} | choices)
    model = randomise(VisionTransformer(config))
    recipe = Preprocess(config.img_size, config.patch_size, drop_remainder=config.drop_remainder)
    own = {"labels": None, "output": None} | facts
    return replace(mini, model=model, config=config, preprocess=recipe, name=name, **own)


def _amounts(value: dict[str, Any]) -> list[float]:
    """The numbers of the classes, which are taken out."""
    return [
        one.pop(kind) for one in value.get("classes", []) for kind in ("probability", "value") if kind in one
    ]


@pytest.mark.parametrize("name", ["mini", *MODELS])
def test_what_a_site_says_of_a_view_is_what_the_server_says(name: str, tmp_path: Path) -> None:
    loaded, path = _loaded(name, tmp_path), tmp_path / "model.safetensors"
    write_weights(loaded, path, storage="fp32")
    jobs, photo = Jobs(tmp_path), sample("runner")
    jobs.add("view", path=str(path), picture=jobs.picture(photo), photos=PHOTOS, targets=TARGETS)
    (told,) = jobs.run()
    assert "error" not in told, told
    session = Session(model=loaded.name, device="cpu", max_patches=4096)
    session.add_model(loaded)
    for (height, width, size), offered in zip(PHOTOS, told["sizes"], strict=True):
        image = session.add_upload(Image.new("RGB", (width, height)), owner="test")
        view = ViewState(image=image, size=size)
        expected = sizes.value(session, view, "test")
        assert offered["cost"] == expected["cost"]
        for mode, choices in expected["offered"].items():
            assert offered["offered"][mode] == [list(choice) for choice in choices], (height, width, mode)
    subject = Subject(loaded.name, "runner", "crop")
    for (link, find), said in zip(TARGETS, told["targets"], strict=True):
        wanted = target.value(session, subject, ViewState(target=link), find)
        wanted.pop("reads", None)  # sentences, which the app alone reads
        assert _amounts(said) == pytest.approx(_amounts(wanted), rel=1e-5, abs=1e-7)
        assert said == wanted, (link, find)
    positions = opened._positions(loaded)
    assert told["positions"] == positions | {name: [*positions[name]] for name in ("grid", "prefix")}
