"""The photo beside a step: what is ringed in it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ui.desk import HEIGHT, WIDTH
from tests.ui.walkthrough.conftest import opened
from vit_viz.figures.colormaps import table as colour_table
from vit_viz.figures.styles import bar, chosen
from vit_viz.ui.walkthrough import view
from vit_viz.ui.walkthrough.view import screen_of

MIDDLE = [2 * HEIGHT / 4, 4 * WIDTH / 9, 3 * HEIGHT / 4, 5 * WIDTH / 9]
PINNED = [1 * HEIGHT / 4, 7 * WIDTH / 9, 2 * HEIGHT / 4, 8 * WIDTH / 9]


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
    session, scene = opened(view={"query": query})
    screen = replace(screen_of(scene, 1), follows=follows)
    page: Any = SimpleNamespace(session=session)
    photo = view._photo(page, scene, screen, "")
    assert photo["rings"] == ([] if ring is None else [pytest.approx(ring)])
    assert photo["caption"] == caption
    assert photo["pick"] == (follows != "nothing")


@pytest.mark.parametrize("style", ["light", "heat"])
def test_the_bar_has_the_colours_of_the_style_that_the_map_is_drawn_in(style: Any) -> None:
    session, scene = opened(view={"style": style})
    screen = replace(screen_of(scene, 5), follows="map")
    page: Any = SimpleNamespace(session=session)
    stops = view._photo(page, scene, screen, "")["bar"]["stops"]
    photo = session.image(scene.subject.image)
    ends = bar(chosen(style, photo)[0], colour_table(scene.view.drawing.table), count=2)
    assert [stops[0], stops[-1]] == [f"rgb({r}, {g}, {b})" for r, g, b in ends.tolist()]
    assert (style == "light") == (stops[0] != "rgb(68, 1, 84)")  # where viridis begins
