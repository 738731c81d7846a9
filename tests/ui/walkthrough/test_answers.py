"""What the page is told of a step: its words, the photo beside it with what is ringed, and its controls."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image

from tests.ui.desk import HEIGHT, OWNER, WIDTH
from tests.ui.walkthrough.conftest import opened
from vit_viz.errors import ParameterError
from vit_viz.figures.colormaps import table as colour_table
from vit_viz.figures.lettering import number
from vit_viz.figures.styles import bar, chosen
from vit_viz.results import PatchMap
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.opened import PageCall
from vit_viz.ui.walkthrough.answers import answer, photo_value, screen_of
from vit_viz.ui.walkthrough.screen import STEPS
from vit_viz.views.choices import arrived

MIDDLE = [2 * HEIGHT / 4, 4 * WIDTH / 9, 3 * HEIGHT / 4, 5 * WIDTH / 9]
PINNED = [1 * HEIGHT / 4, 7 * WIDTH / 9, 2 * HEIGHT / 4, 8 * WIDTH / 9]
LEFT = (WIDTH - HEIGHT * 48 / 32) / 2  # of the crop, in pixels of the photo
PATCH = (HEIGHT / 4, HEIGHT * 1.5 / 6)
NUMBERS = range(1, len(STEPS) + 1)


def told(session: Session, image: str, more: str = "") -> dict[str, Any]:
    """The answer to a link of the odd model, as JSON has it."""
    view, problems = arrived(session, f"model=odd&image={image}&mode=crop{more}", OWNER)
    call = PageCall(session, OWNER, view, problems, {}, lambda: False)
    answered: dict[str, Any] = json.loads(json.dumps(answer(call)))
    return answered


@pytest.mark.parametrize(
    ("follows", "query", "ring", "caption"),
    [
        ("patch", "", MIDDLE, "followed: patch (2, 4); choose a patch to follow it"),
        ("patch", "1,7", PINNED, "followed: patch (1, 7); choose a patch to follow it"),
        ("token", "", None, "followed: the class token; choose a patch to follow it"),
        ("token", "1,7", PINNED, "followed: patch (1, 7); choose a patch to follow it"),
        ("nothing", "1,7", None, "4 x 9 patches"),
    ],
)
def test_what_a_step_follows_is_ringed(
    follows: Any, query: str, ring: list[float] | None, caption: str
) -> None:
    _, scene = opened(view={"query": query})
    photo = photo_value(scene, replace(screen_of(scene, 1), follows=follows))
    assert photo["rings"] == ([] if ring is None else [pytest.approx(ring)])
    assert photo["caption"] == caption
    assert photo["pick"] == (follows != "nothing")


@pytest.mark.parametrize("style", ["light", "heat"])
def test_the_bar_has_the_colours_of_the_style_that_the_map_is_drawn_in(style: Any) -> None:
    session, scene = opened(view={"style": style})
    stops = photo_value(scene, replace(screen_of(scene, 5), follows="map"))["bar"]["stops"]
    photo = session.image(scene.subject.image)
    ends = bar(chosen(style, photo)[0], colour_table(scene.view.drawing.table), count=2)
    assert [stops[0], stops[-1]] == [f"rgb({r}, {g}, {b})" for r, g, b in ends.tolist()]
    assert (style == "light") == (stops[0] != "rgb(68, 1, 84)")  # where viridis begins


@pytest.mark.parametrize("step", NUMBERS)
def test_the_photo_beside_a_step_shows_what_is_followed(session: Session, image: str, step: int) -> None:
    answered = told(session, image, f"&step={step}&layer=1&head=3&q=2,5")
    assert answered["step"] == step
    assert f"<h2>{step}. " in answered["html"]
    photo = answered["photo"]
    assert photo["grid"] == [4, 6]
    assert photo["region"] == pytest.approx([0, LEFT, HEIGHT, HEIGHT * 1.5], abs=0.2)
    is_map = parse_qs(urlsplit(photo["src"]).query)["kind"] == ["map"]
    assert is_map == (step in (5, 6))
    if is_map:
        assert photo["area"] == [0.0, 0.0, float(HEIGHT), float(WIDTH)]
        assert "patch (2, 5) looks at, layer 1" in photo["caption"]
        head = "3" if "head 3" in photo["caption"] else "mean"
        asked = {"layer": 1, "query": (2, 5), "norm": False, "head": head, "direction": "row"}
        found = session.run(Request.of("odd", image, "look", mode="crop", owner=OWNER, **asked))
        assert isinstance(found, PatchMap)
        assert photo["bar"]["high"] == number(float(found.values.max()))
        assert "layer" in [control["option"] for control in answered["controls"]]
    else:
        top, left, bottom, right = photo["area"]
        assert 0 <= top < bottom <= HEIGHT
        assert 0 <= left < right <= WIDTH
        assert right - left > bottom - top
        assert photo["bar"] is None
    if photo["rings"]:
        rect = [2 * PATCH[0], LEFT + 5 * PATCH[1], 3 * PATCH[0], LEFT + 6 * PATCH[1]]
        assert photo["rings"] == [pytest.approx(rect, abs=0.2)]


def test_the_controls_of_a_step_have_the_bounds_of_the_model(session: Session, image: str) -> None:
    seen: set[str] = set()
    for step in NUMBERS:
        for control in told(session, image, f"&step={step}&layer=1&head=3")["controls"]:
            name, label, value = (control.pop(key) for key in ("option", "label", "value"))
            if name == "layer":
                assert (label, value, control) == ("layer", 1, {"low": 0, "high": 2})
            elif name == "head":
                assert (label, value, control) == ("head", 3, {"low": 0, "high": 4})
            elif "options" in control:
                assert 0 <= value < len(control["options"])
            else:
                assert control["low"] <= value <= control["high"] > control["low"]
            seen.add(f"{name} {'options' in control}")
    assert seen == {"play False", "play True", "layer False", "head False"}
    (chosen_one, *_) = told(session, image, "&step=5&play=1")["controls"]
    assert chosen_one["value"] == 1


def test_a_handle_in_an_address_stands_for_this_picture_in_this_mode(session: Session, image: str) -> None:
    source = told(session, image)["photo"]["src"]
    handle = urlsplit(source).path.rsplit("/", 1)[1].removesuffix(".jpg")
    assert session.handles.find(handle, visitor=OWNER) == Subject("odd", image, "crop", OWNER)


def test_a_step_whose_layer_is_edited_is_refused(session: Session, image: str) -> None:
    with pytest.raises(ParameterError, match="the layer is edited"):
        told(session, image, "&step=5&layer=1&edits=off+1.3")
    assert told(session, image, "&step=5&layer=2&edits=off+1.3")["note"] == ""


def test_of_a_picture_that_is_gone_it_is_said_that_another_one_is_shown(session: Session) -> None:
    image = session.add_upload(Image.new("RGB", (31, 17)), owner=OWNER)
    session.uploads._drop(image)
    assert "no longer kept" in told(session, image)["note"]
