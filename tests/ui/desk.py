"""The page without a browser and without a server: what it is answered with."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

import gradio as gr
import numpy as np
import torch
from PIL import Image

from vit_viz.analyses.methods import METHODS
from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.progress import StopCheck
from vit_viz.rest import AnswerProgress
from vit_viz.results import PatchMap
from vit_viz.session.questions import ask
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS, build_app
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Tab
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

HEIGHT, WIDTH = 37, 90
ROWS, COLS, HEADS, LAYERS, CLASSES = 4, 6, 5, 3, 7
OWNER = "0123456789abcdef" * 2  # as a cookie names a browser


def odd_session(**changes: Any) -> Session:
    """A session whose model has no two sizes in common: 4 x 6 patches of 8, 5 heads, 3 layers, 7 classes, 2 prefix tokens."""
    torch.manual_seed(2)
    settings = {
        "img_size": (32, 48), "patch_size": (8, 8), "embed_dim": 40, "depth": LAYERS, "num_heads": HEADS, "num_classes": CLASSES,
        "reg_tokens": 1,
    }  # fmt: skip
    config = ViTConfig(**(settings | changes))
    model = VisionTransformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    session = Session(model="odd", device="cpu")
    session.add_model(
        LoadedModel(
            model=model,
            config=config,
            preprocess=Preprocess(input_size=(32, 48), patch_size=(8, 8)),
            labels=Labels(tuple(f"animal {i}" for i in range(config.num_classes)))
            if config.num_classes
            else None,
            provenance=Provenance(model="odd", weights="odd"),
            name="odd",
            family="ours",
            origin="a test",
            device=torch.device("cpu"),
        )
    )
    return session


def odd_picture(seed: int = 5) -> Image.Image:
    """A picture that has neither the shape of the model's input nor a side in common with it."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))


def app_of(session: Session, *, tabs: tuple[Tab, ...] = TABS) -> gr.Blocks:
    """The app; the event loops that Gradio makes for its locks, and forgets, are closed."""
    made: list[asyncio.AbstractEventLoop] = []

    def noted(make: Any = asyncio.new_event_loop) -> asyncio.AbstractEventLoop:
        made.append(make())
        return made[-1]

    with patch.object(asyncio, "new_event_loop", noted):
        demo = build_app(session, tabs=tabs)
    for loop in made:
        loop.close()
    return demo


@dataclass
class Desk:
    """A view that a page looks at, and who looks at it."""

    link: dict[str, str]
    owner: str = OWNER

    def view(self) -> ViewState:
        """What the link says."""
        return ViewState.from_address(urlencode(self.link))[0]

    def follow(self, **change: str | None) -> None:
        """Write names of links; None takes one away."""
        told = self.link | change
        self.link = {name: text for name, text in told.items() if text is not None}


def arrived(image: str, tab: str, more: str = "", *, mode: str = "crop") -> Desk:
    """A page that is opened at a tab and shows this picture of the odd model."""
    return Desk(dict(parse_qsl(f"model=odd&image={image}&mode={mode}&tab={tab}{more}")))


def make_map(session: Session, view: ViewState, method: str) -> PatchMap:
    """Compute what the card of a method asks for."""
    target = {"target": view.target or None} if METHODS[method].takes_target else {}
    own = dict(view.options_of(method).changed())
    patch_map: PatchMap = ask(session, subject_of(session, view, OWNER), method, **target, **own)
    return patch_map


@dataclass
class Heard(AnswerProgress):
    """What whoever hears how far an answer is was told, in its order: ("share", ...) and ("preview", ...)."""

    said: list[tuple[str, Any]] = field(default_factory=list)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if hasattr(self, "said") and name != "said":
            self.said.append((name, json.loads(value) if name == "preview" else value))


def call_of(
    session: Session,
    view: ViewState,
    owner: str = OWNER,
    *,
    cancelled: StopCheck = lambda: False,
    **body: Any,
) -> tuple[PageCall, list[tuple[str, Any]]]:
    """What a page asks of a view beside the questions of the library, and what it hears until it is answered."""
    told = Heard()
    asked = {"view": view.to_address()} | body
    return PageCall(session, owner, view, (), asked, cancelled, so_far=told), told.said
