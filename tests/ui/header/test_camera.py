"""A picture from the camera: a camera of Chromium's own, which shows a green test picture."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.conftest import CHROMIUM_FLAGS, chromium_path, wait_until_ready
from tests.ui.test_bringing import NOTE, PHOTO
from tests.ui.waits import expect
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FAKE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


def test_a_picture_of_the_camera_is_looked_at(
    browser: Any, app_url: str, request: pytest.FixtureRequest
) -> None:
    own = browser.browser_type.launch(executable_path=chromium_path(), args=[*CHROMIUM_FLAGS, *FAKE])
    request.addfinalizer(own.close)
    page = own.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(PATIENCE * 1000)
    page.goto(app_url)
    wait_until_ready(page)
    page.locator("#vv-bring-opener button").click()
    page.get_by_role("button", name="Use the camera").click()
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
