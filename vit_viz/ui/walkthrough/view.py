"""The Walkthrough tab: from pixels to a class in eight steps, with the numbers of this photo and this model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from vit_viz.figures.colormaps import limits
from vit_viz.figures.patches import visible_area
from vit_viz.figures.screen import style_of
from vit_viz.geometry import format_query
from vit_viz.ui import pictures
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.kit import Picture, words
from vit_viz.ui.page import Page, Tab, choose_query
from vit_viz.ui.payload import bar_value, picture_address, picture_value
from vit_viz.ui.walkthrough import attention, block, classes, patches, positions, prefix_tokens
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import STEPS, Choice, Screen, Slider, html_of
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

_SCREENS: tuple[Callable[[StepInput], Screen], ...] = (
    *(patches.screen, patches.embedding_screen, prefix_tokens.screen, positions.screen),
    *(attention.screen, attention.heads_screen, block.screen, classes.screen),
)
"""In the order of `STEPS`."""


def build(page: Page) -> None:
    """Lay out the tab, let the controls change the view, and draw the step."""
    with gr.Row(elem_classes="vv-w-nav"):
        previous = gr.Button("Previous", size="sm", elem_id="vv-w-previous", min_width=90, scale=0)
        steps = gr.Radio(
            [(f"{number} {name}", number) for number, name in enumerate(STEPS, start=1)],
            value=1,
            label="step",
            show_label=False,
            container=False,
            elem_id="vv-w-steps",
        )
        following = gr.Button(
            "Next", size="sm", variant="primary", elem_id="vv-w-next", min_width=90, scale=0
        )
    with gr.Row(elem_classes="vv-view"):
        with gr.Column(scale=2, min_width=300, elem_classes="vv-controls"):
            photo = Picture(elem_id="vv-w-photo")
            slider = gr.Slider(0, 1, 0, step=1, label="play", elem_id="vv-w-slider")
            choice = gr.Radio([("", 0)], value=0, label="play", elem_id="vv-w-choice", visible=False)
            with gr.Row():
                layer = gr.Slider(0, 1, 0, step=1, label="layer", elem_id="vv-w-layer", visible=False)
                head = gr.Slider(0, 1, 0, step=1, label="head", elem_id="vv-w-head", visible=False)
        with gr.Column(scale=5, min_width=320):
            content = gr.HTML("", elem_id="vv-w-content", apply_default_css=False)
    words.explain(
        shows="how this photo becomes the answer above, one step at a time: every number and picture is computed by the "
        "chosen model from this photo.",
        hides="how the model was trained: its weights are taken as they are.",
    )
    page.explain(steps, "Goes to this step of the walkthrough.")
    page.explain(previous, "Goes to the step before this one.")
    page.explain(following, "Goes to the step after this one.")
    page.action(steps.input, at_step, inputs=[steps])
    page.action(previous.click, lambda view: at_step(view, view.walkthrough.step - 1))
    page.action(following.click, lambda view: at_step(view, view.walkthrough.step + 1))
    for control, name in ((slider, "step_option"), (choice, "step_option"), (layer, "layer"), (head, "head")):
        page.option(control, name)
    choose_query(photo, page)
    shown = [photo, content, steps, previous, following]
    page.drawing("walkthrough", _draw, [*shown, slider, choice, layer, head])


def at_step(view: ViewState, number: Any) -> ViewState:
    """The view at another step, its control at its default; there is none before the first and after the last."""
    number = min(max(int(number or view.walkthrough.step), 1), len(STEPS))
    return (
        view
        if number == view.walkthrough.step
        else view.after_action().with_options({"step": number, "step_option": -1})
    )


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    skipped = tuple(gr.skip() for _ in range(7))
    yield {"revision": view.revision, "busy": True}, gr.update(elem_classes=["vv-w-busy"]), *skipped
    try:
        yield _drawn(page, view, owner)
    except Exception as error:
        failed = gr.update(value=words.plain(sentence(error)), elem_classes=["vv-message"])
        yield {"revision": view.revision, "error": sentence(error)}, failed, *skipped


def _drawn(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    scene = StepInput.of(page.session, view, owner)
    screen = screen_of(scene, view.walkthrough.step)
    return (
        _photo(page, scene, screen, owner),
        gr.update(value=html_of(screen, view.walkthrough.step), elem_classes=["vv-w-ready"]),
        gr.update(value=view.walkthrough.step),
        gr.update(interactive=view.walkthrough.step > 1),
        gr.update(interactive=view.walkthrough.step < len(STEPS)),
        *_controls(scene, screen),
    )


def _photo(page: Page, scene: StepInput, screen: Screen, owner: str) -> dict[str, Any]:
    """The photo beside the step: its patches with the followed one ringed, or what the token looks at."""
    session, trace = page.session, scene.trace
    subject = subject_of(session, scene.view, owner)
    box, followed = trace.crop_box, scene.token
    assert box is not None  # a session traces photos, which have one
    if screen.follows != "map":
        is_patch = screen.follows == "patch" or (
            screen.follows == "token" and trace.layout.place(followed) is not None
        )
        view = replace(scene.view, query=format_query(scene.place) if is_patch else "")
        value = picture_value(
            view,
            picture_address(session, subject, view, "patches"),
            caption=_followed(scene, screen),
            trace=trace,
            area=visible_area(box.original_size, box.region),
        )
        return value | {"pick": screen.follows != "nothing"}
    name = trace.layout.name(followed)
    query = format_query(scene.place) if trace.layout.place(followed) else name
    view = replace(scene.view, query=query, head=scene.head if "head" in screen.shared else "mean")
    view = view.with_options({"direction": "row", "scale": "own", "norm": False, "mask": 0})
    patch_map = pictures.attention(session, subject, view)
    low, high = limits(patch_map.values)
    heads = f"head {view.head}" if isinstance(view.head, int) else "mean of all heads"
    return picture_value(
        view,
        picture_address(session, subject, view, "map"),
        caption=f"{scene.token_name} looks at, layer {view.layer}, {heads}; choose a patch to let it look",
        trace=trace,
        bar=bar_value(
            low,
            high,
            table=view.drawing.table,
            unit=patch_map.unit,
            style=style_of(session, subject, view.drawing.style)[0],
        ),
    )


def _followed(scene: StepInput, screen: Screen) -> str:
    """The caption of the photo."""
    if screen.follows == "nothing":
        rows, cols = scene.trace.layout.grid
        return f"{rows} x {cols} patches"
    name = scene.patch_name if screen.follows == "patch" else scene.token_name
    return f"followed: {name}; choose a patch to follow it"


def _controls(scene: StepInput, screen: Screen) -> tuple[Any, ...]:
    """Updates for slider, choice, layer and head: what this step has, with its bounds and value."""
    own, shared = screen.control, screen.shared
    slider, choice = gr.update(visible=False), gr.update(visible=False)
    if isinstance(own, Slider) and own.low < own.high:
        slider = gr.update(minimum=own.low, maximum=own.high, value=own.value, label=own.label, visible=True)
    elif isinstance(own, Choice):
        options = [(name, place) for place, name in enumerate(own.options)]
        choice = gr.update(choices=options, value=own.value, label=own.label, visible=True)
    layers, heads = scene.trace.num_layers - 1, scene.trace.num_heads - 1
    return (
        slider,
        choice,
        gr.update(maximum=max(layers, 1), value=scene.layer, visible="layer" in shared and layers > 0),
        gr.update(maximum=max(heads, 1), value=scene.head, visible="head" in shared and heads > 0),
    )


def _shows(view: ViewState) -> Hashable:
    return (
        view.about,
        view.query,
        view.walkthrough.step,
        view.walkthrough.step_option,
        view.layer,
        view.head,
        view.drawing,
    )


def screen_of(scene: StepInput, step: int) -> Screen:
    """The screen of a step; steps count from 1."""
    return _SCREENS[step - 1](scene)


TAB = Tab(
    "walkthrough",
    "Walkthrough",
    build,
    shows=_shows,
    about="The whole model, step by step, with the numbers of this photo.",
)
