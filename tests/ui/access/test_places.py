"""Every place of the page: nothing lost at 200%, and nothing that moves where that is unwelcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from tests.ui.access import places
from tests.ui.access.conftest import nothing
from tests.ui.access.probes import CONTROLS, LOST_AT_ZOOM, MOTION

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def everywhere(page: Any, *, has_menu: bool) -> Iterator[str]:
    """The page at each of its places, which are left by going on."""
    return chain(places.tabs(page), places.over(page, has_menu=has_menu))


def test_nothing_is_cut_off_or_covered_at_200_percent(open_page: Callable[..., Any], whole_app: str) -> None:
    page = open_page(whole_app, viewport={"width": 720, "height": 450}, device_scale_factor=2)
    nothing({place: page.evaluate(LOST_AT_ZOOM, CONTROLS) for place in everywhere(page, has_menu=True)})


def test_nothing_moves_by_itself_where_motion_is_unwelcome(
    open_page: Callable[..., Any], whole_app: str
) -> None:
    page = open_page(
        whole_app, script=MOTION, viewport={"width": 390, "height": 844}, reduced_motion="reduce"
    )
    found = {place: page.evaluate("moved.splice(0)") for place in everywhere(page, has_menu=True)}
    nothing({place: sorted(set(what)) for place, what in found.items()})
