"""One step of the walkthrough, as the page draws it.

    POST /vit_viz/walkthrough   {"view": LINK}: its subject, step and option, layer, head, query, and how maps are drawn

It answers with the step as HTML, the photo beside it, and the controls that matter there, with their bounds and values
(vit_viz/web/walkthrough/room.js).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from vit_viz.analyses.attention import LOOK
from vit_viz.analyses.patches import PATCHES
from vit_viz.figures.colormaps import limits
from vit_viz.figures.files import Encoded
from vit_viz.figures.patches import visible_area
from vit_viz.figures.request import figure_for
from vit_viz.figures.screen import screen_picture, style_of
from vit_viz.geometry import format_query
from vit_viz.results import PatchMap
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.look.view import map_request, picture
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Answers
from vit_viz.ui.payload import about_of, bar_value, picture_address, picture_value, saved_value
from vit_viz.ui.walkthrough import attention, block, classes, patches, positions, prefix_tokens
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Choice, Screen, Slider, html_of
from vit_viz.views.state import ViewState

_SCREENS: tuple[Callable[[StepInput], Screen], ...] = (
    *(patches.screen, patches.embedding_screen, prefix_tokens.screen, positions.screen),
    *(attention.screen, attention.heads_screen, block.screen, classes.screen),
)
"""In the order of `STEPS`."""


def answer(call: PageCall) -> dict[str, Any]:
    """What the page draws of the step of a view."""
    call.session.run(call.subject.request("trace"), cancelled=call.cancelled)
    scene = StepInput.of(call.session, call.view, call.owner)
    step = call.view.walkthrough.step
    screen = screen_of(scene, step)
    return {
        "step": step,
        "html": html_of(screen, step),
        "photo": photo_value(scene, screen),
        "controls": control_values(scene, screen),
        "note": " ".join(call.problems),
    }


def screen_of(scene: StepInput, step: int) -> Screen:
    """The screen of a step; steps count from 1."""
    return _SCREENS[step - 1](scene)


def photo_value(scene: StepInput, screen: Screen) -> dict[str, Any]:
    """The photo beside the step: its patches with the followed one ringed, or what the token looks at.

    Beside what `picture_value` says: where the patches lie on it.
    """
    trace, box = scene.trace, scene.trace.crop_box
    assert box is not None  # a session traces photos, which have one
    there = {"grid": list(trace.layout.grid), "region": list(box.region)}
    if screen.follows == "map":
        return _map_value(scene, screen) | there
    is_token = screen.follows == "token"
    is_patch = screen.follows == "patch" or (is_token and trace.layout.place(scene.token) is not None)
    view = replace(scene.view, query=format_query(scene.place) if is_patch else "")
    rows, cols = trace.layout.grid
    followed = scene.token_name if is_token else scene.patch_name
    is_followed = screen.follows != "nothing"
    value = picture_value(
        view,
        picture_address(scene.session, scene.subject, view, "patches"),
        saved=[PATCHES.name, about_of(view)],
        caption=f"followed: {followed}; choose a patch to follow it"
        if is_followed
        else f"{rows} x {cols} patches",
        trace=trace,
        area=visible_area(box.original_size, box.region),
    )
    return value | {"pick": is_followed} | there


def _map_value(scene: StepInput, screen: Screen) -> dict[str, Any]:
    session, subject, trace = scene.session, scene.subject, scene.trace
    name = trace.layout.name(scene.token)
    query = format_query(scene.place) if trace.layout.place(scene.token) else name
    view = replace(scene.view, query=query, head=scene.head if "head" in screen.shared else "mean")
    view = view.with_options({"direction": "row", "scale": "own", "norm": False, "mask": 0})
    patch_map: PatchMap = session.run(map_request(session, subject, view))
    low, high = limits(patch_map.values)
    heads = f"head {view.head}" if isinstance(view.head, int) else "mean of all heads"
    return picture_value(
        view,
        picture_address(session, subject, view, "map"),
        saved=saved_value(
            view, LOOK.name, layer=view.layer, head=str(view.head), query=query, direction="row"
        ),
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


def control_values(scene: StepInput, screen: Screen) -> list[dict[str, Any]]:
    """What can be chosen at a step, by its name in links: numbers from low to high, or options, of which the value is the place.

    Where there is nothing to choose from there is no control.
    """
    own = screen.control
    shared = {
        "layer": Slider("layer", 0, scene.trace.num_layers - 1, scene.layer),
        "head": Slider("head", 0, scene.trace.num_heads - 1, scene.head),
    }
    controls: dict[str, Slider | Choice] = ({"play": own} if own else {}) | {
        name: shared[name] for name in shared if name in screen.shared
    }
    return [
        {"option": name, **asdict(control)}
        for name, control in controls.items()
        if isinstance(control, Choice) or control.low < control.high
    ]


def patches_picture(session: Session, subject: Subject, _view: ViewState) -> Encoded:
    """The patches on the photo, for the screen."""
    return screen_picture(session, figure_for(request_for(session, subject, PATCHES.name)))


PICTURES: dict[str, Callable[[Session, Subject, ViewState], Encoded]] = {
    "map": picture,
    "patches": patches_picture,
}
"""Those that stand in the page, by their names in addresses."""

ANSWERS: Answers = {"walkthrough": answer}
