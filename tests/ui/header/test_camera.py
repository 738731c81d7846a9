"""A picture from the camera: a camera of Chromium's own, which shows a green test picture, allowed or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.conftest import CHROMIUM_FLAGS, chromium_path, wait_until_ready
from tests.ui.test_bringing import NOTE, PHOTO
from tests.ui.waits import expect
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Opened = Callable[..., Any]


@pytest.fixture
def with_camera(browser: Any, app_url: str, request: pytest.FixtureRequest) -> Opened:
    """Open the app in a browser with a camera, and press what leads to it."""

    def opened(*flags: str, width: int) -> Any:
        own = browser.browser_type.launch(
            executable_path=chromium_path(),
            args=[*CHROMIUM_FLAGS, "--use-fake-device-for-media-stream", *flags],
        )
        request.addfinalizer(own.close)
        page = own.new_page(viewport={"width": width, "height": 844})
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(app_url)
        wait_until_ready(page)
        page.locator("#vv-bring-opener button").click()
        page.get_by_role("button", name="Use the camera").click()
        return page

    return opened


def test_a_picture_of_the_camera_is_looked_at(with_camera: Opened) -> None:
    page = with_camera("--use-fake-ui-for-media-stream", width=390)
    shown = page.locator("#vv-upload video")
    page.wait_for_function("document.querySelector('#vv-upload video')?.videoWidth > 0")
    assert shown.bounding_box()["width"] >= 200  # also on a phone
    page.get_by_role("button", name="Take the picture").click()
    page.wait_for_function("location.search.includes('image=u')")
    expect(page.get_by_role("button", name="Your picture your photo 1")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.wait_for_function(  # of the camera's own shape, which no sample has
        "photo => 3 * document.querySelector(photo).naturalWidth === 4 * document.querySelector(photo).naturalHeight",
        arg=PHOTO,
    )
    expect(page.locator(NOTE)).to_be_hidden()


def test_a_camera_that_is_not_allowed_gets_one_sentence(with_camera: Opened) -> None:
    page = with_camera("--deny-permission-prompts", width=1440)
    before = page.url
    expect(page.locator(NOTE)).to_have_text(
        "The browser does not let this page use the camera; allow it beside the address, and try again."
    )
    expect(page.get_by_role("button", name="Use the camera")).to_be_visible()
    expect(page).to_have_url(before)
