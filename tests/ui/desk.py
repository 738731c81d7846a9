"""The page without a browser and without a server: its handlers called as Gradio calls them, and what they write read back."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import gradio as gr
import numpy as np
import torch
from gradio.helpers import special_args
from PIL import Image

from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.progress import StopCheck
from vit_viz.rest import Told
from vit_viz.session.handles import OWNER as OWNED_BY, PAGE, VISITOR
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS, build_app
from vit_viz.ui.edge.user_errors import sentence, toast
from vit_viz.ui.explain.answers import gallery_value
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.explain.stage import _stage
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Tab
from vit_viz.views.choices import first_image
from vit_viz.views.state import ViewState

HEIGHT, WIDTH = 37, 90
ROWS, COLS, HEADS, LAYERS, CLASSES = 4, 6, 5, 3, 7
OWNER = "0123456789abcdef" * 2  # as a cookie names a browser
_PAGES = itertools.count()


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
    """One opened page.

    Args:
        demo: the app.
        states: values of the states, by component id.
        shown: what each component was told, by its elem_id: the latest value of every property; "value" where it was a plain value.
        told: everything that was written in the order in which it came: (elem_id, what).
    """

    demo: gr.Blocks
    page: str = "page"
    owner: str = OWNER
    states: dict[int, Any] = field(default_factory=dict)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: list[tuple[str, Any]] = field(default_factory=list)

    def view(self) -> ViewState:
        """The view as the page's state holds it."""
        return next(value for value in self.states.values() if isinstance(value, ViewState))

    def arrive(self, search: str) -> None:
        """Open the page at an address."""
        self.act("", "arrive", data={"search": search})

    def follow(self, **change: str | None) -> None:
        """Let a room write names of links."""
        self.act("", "follow", data={"set": change, "told": self.view().told + 1})

    def act(self, elem_id: str, event: str, *values: Any, data: Any = None) -> None:
        """Let an event happen and whatever it wakes."""
        waiting = [block for block in self.demo.fns.values() if self._hears(block, elem_id, event)]
        assert waiting, f"nobody hears {event} of {elem_id!r}"
        while waiting:
            woken = self._run(waiting.pop(0), list(values), data)
            waiting += [
                block
                for block in self.demo.fns.values()
                if any(target in woken and name == "change" for target, name in block.targets)
            ]

    def _hears(self, block: Any, elem_id: str, event: str) -> bool:
        return any(
            name == event and (not elem_id or name_of(self.demo.blocks[target]) == elem_id)
            for target, name in block.targets
        )

    def _run(self, block: Any, values: list[Any], data: Any) -> set[int]:
        """Call one handler as this visitor; returns the states that it changed."""
        context = contextvars.copy_context()
        for variable, name in ((VISITOR, self.owner), (OWNED_BY, self.owner), (PAGE, self.page)):
            context.run(variable.set, name)
        return context.run(self._call, block, values, data)

    def _call(self, block: Any, values: list[Any], data: Any) -> set[int]:
        inputs = []
        for one in block.inputs:
            is_state = isinstance(one, gr.State)
            inputs.append(self.states.get(one._id, one.value) if is_state else values.pop(0))
        request = SimpleNamespace(session_hash=self.page)
        event = gr.EventData(target=None, _data=data)
        arguments, *_ = special_args(block.fn, inputs, request, event)  # type: ignore[arg-type]
        changed: set[int] = set()
        try:
            results = _results(block.fn, arguments)
        except gr.Error:
            raise
        except Exception as error:
            raise toast(sentence(error)) from None  # as `GuardedBlocks.process_api`
        for output in results:
            outputs = output if isinstance(output, tuple) and len(block.outputs) != 1 else (output,)
            if not block.outputs:
                continue
            if len(block.outputs) == 1 and isinstance(output, tuple) and len(output) == 1:
                outputs = output
            assert len(outputs) == len(block.outputs), (block.targets, len(outputs), len(block.outputs))
            for component, value in zip(block.outputs, outputs, strict=True):
                changed |= self._write(component, value)
        return changed

    def _write(self, component: Any, value: Any) -> set[int]:
        if isinstance(component, gr.State):
            is_skipped = isinstance(value, dict) and value.get("__type__") == "update"
            before = self.states.get(component._id, component.value)
            if is_skipped or value == before:
                return set()
            self.states[component._id] = value
            return {component._id}
        is_update = isinstance(value, dict) and value.get("__type__") == "update"
        new = {k: v for k, v in value.items() if k != "__type__"} if is_update else {"value": value}
        if new:
            name = name_of(component)
            self.shown.setdefault(name, {}).update(new)
            self.told.append((name, new))
        return set()


def arrived(demo: gr.Blocks, image: str, tab: str, more: str = "", *, mode: str = "crop") -> Desk:
    """A page of its own, opened at a tab that shows this picture of the odd model."""
    desk = Desk(demo, page=f"page {next(_PAGES)}")
    desk.arrive(f"?model=odd&image={image}&mode={mode}&tab={tab}{more}")
    return desk


def cards_of(session: Session, desk: Desk) -> dict[str, dict[str, Any]]:
    """The cards that the Explain tab of a page is answered with, by their methods."""
    questions = Questions.of(SimpleNamespace(session=session), desk.view(), desk.owner)
    return {card["name"]: card for card in gallery_value(questions)["cards"]}


def stage_of(session: Session, desk: Desk) -> dict[str, Any]:
    """What the stage of the Explain tab of a page is answered with."""
    return _stage(PageCall(session, desk.owner, desk.view(), (), {}, lambda: False))
@dataclass
class Heard(Told):
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
    return PageCall(session, owner, view, (), asked, cancelled, told), told.said


def name_of(component: Any) -> str:
    """The elem_id of a component; where nobody gave it one, its label or its class."""
    given = None if str(component.elem_id).startswith("vv-option-") else component.elem_id
    return str(given or getattr(component, "label", None) or type(component).__name__)


def _results(function: Any, arguments: list[Any]) -> list[Any]:
    """Everything that a handler returns or yields, whichever kind it is."""
    result = function(*arguments)
    if inspect.isasyncgen(result):

        async def collected() -> list[Any]:
            return [one async for one in result]

        return asyncio.run(collected())
    if inspect.iscoroutine(result):
        return [asyncio.run(result)]
    return list(result) if inspect.isgenerator(result) else [result]


SAID = (
    *("component_class_name", "elem_id", "elem_classes", "label", "show_label", "placeholder", "value", "choices", "visible"),
    *("interactive", "open", "minimum", "maximum", "step", "allow_custom_value", "sources", "type", "height", "variant", "size"),
    *("min_width", "scale", "selected", "apply_default_css", "container", "buttons", "busy", "padding", "matches", "answer"),
)  # fmt: skip


def layout(demo: gr.Blocks) -> str:
    """Every component of the page with what was chosen for it, a line each; long values by their length, pictures not at all."""
    lines = []
    for component in demo.config["components"]:
        props = component["props"]
        words = [f"{name}={_short(props[name])}" for name in SAID if name in props]
        lines.append(" ".join([component["type"], *words]))
    return "\n".join(lines) + "\n"


def _short(value: Any) -> str:
    if isinstance(value, dict | list | tuple) and "data:image" in str(value):
        return "(pictures)"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 400 else f"{text[:100]} … {text[-100:]} ({len(text)})"


if __name__ == "__main__":
    session = odd_session()
    text = layout(app_of(session))
    session.trace("odd", first_image())  # as the app does meanwhile
    Path(__file__).with_name("layout.txt").write_text(text, "utf-8")
