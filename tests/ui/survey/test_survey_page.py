"""A survey in a browser: a head, a brush, the filter's SQL, and a photo that opens in Look."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.effort import WINDOWS
from tests.serving import Server
from tests.surveys.made import made_survey
from tests.ui.conftest import wait_until_ready
from tests.ui.test_access import AXE
from tests.ui.waits import expect, expect_in_address, point_of
from vit_viz.session.session import Session

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHOTOS = 300
COUNT = "words => document.querySelector('.vv-survey-count')?.textContent.includes(words)"
WAITED = "!document.querySelector('[data-waits]')"


@pytest.fixture(scope="module")
def survey_app(start_app: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("survey")
    weights = Session(model="mini", device="cpu").model().provenance.weights
    made = made_survey(
        place / "made", photos=PHOTOS, layers=6, heads=6, batch=100, files=place / "photos", weights=weights
    )
    return start_app("--survey", str(made)).url


def opened(visit: Callable[..., Any], url: str, **options: Any) -> Any:
    page = visit(f"{url}?tab=survey", ready=False, **options)
    page.wait_for_function(COUNT, arg=f"All {PHOTOS} photos")
    page.wait_for_selector("#vv-survey-dots canvas[data-dots]", state="attached")
    return page


def test_a_head_a_brush_the_sql_and_a_photo(visit: Callable[..., Any], survey_app: str) -> None:
    page = opened(visit, survey_app)
    page.locator('.vv-survey-heads td[data-layer="2"][data-head="3"]').click()
    page.wait_for_function(
        "document.querySelector('.vv-survey-list-words')?.textContent.includes('layer 2, head 3')"
    )
    page.wait_for_function("location.search.includes('layer=2')")

    area = page.locator("#vv-survey-dots .nsewdrag")
    page.mouse.move(*point_of(area, 0.3, 0.1))
    page.mouse.down()
    page.mouse.move(*point_of(area, 0.7, 0.8), steps=5)
    page.mouse.up()
    page.wait_for_function(COUNT, arg=f" of {PHOTOS} photos")
    where = re.compile(r"^\(confidence BETWEEN .* AND mean_entropy BETWEEN ")
    expect(page.locator(".vv-survey-where")).to_have_value(where)
    count = page.locator(".vv-survey-count").inner_text().split(" of ")[0]
    expect(page.locator("#vv-survey-dots canvas")).to_have_attribute("data-shown", count)
    assert int(count) < PHOTOS

    page.locator(".vv-survey-where").fill("not is_right and confidence > 0.2")
    page.keyboard.press("Enter")
    page.wait_for_function("location.search.includes('where=not+is_right')")
    page.wait_for_function("document.querySelector('.vv-survey-count')?.textContent.includes('0.0%')")
    page.locator(".vv-survey-clear").click()
    page.wait_for_function(COUNT, arg=f"All {PHOTOS} photos")
    page.wait_for_selector(".vv-survey-lit")  # the first exemplar, lit by the head
    page.locator(".vv-survey-card").first.click()
    page.wait_for_function(
        "document.querySelector('#vv-tab-look-button').getAttribute('aria-selected') === 'true'"
    )
    page.wait_for_function("location.search.includes('image=survey-')")
    wait_until_ready(page)
    expect_in_address(page, "layer=2", "head=3")


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_the_room_fits_and_can_be_read_by_everybody(
    visit: Callable[..., Any], survey_app: str, width: int, dark: bool
) -> None:
    page = opened(visit, survey_app, width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ends = "['.vv-survey-atlas', '#vv-survey-dots'].map(name => document.querySelector(name).getBoundingClientRect().bottom)"
    if width > 900:  # nothing is empty below the heads or the dots
        page.wait_for_function(f"(([heads, dots]) => Math.abs(heads - dots) < 3)({ends})")
    else:  # it was 4,564 pixels
        assert page.evaluate("document.documentElement.scrollHeight") < 2282
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        "axe.run('#vv-survey').then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))"
    )
    assert found == []


def test_a_photo_whose_file_is_gone_stays_in_the_survey(
    visit: Callable[..., Any], start_app: Callable[..., Server], tmp_path: Path
) -> None:
    lost = start_app(
        "--survey", str(made_survey(tmp_path / "made", photos=20, layers=6, heads=6)), "--model", "mini"
    )
    page = visit(f"{lost.url}?tab=survey", ready=False)
    page.locator(".vv-survey-card").first.click()
    page.get_by_text("not where they were when it was made").wait_for()
    expect(page.locator("#vv-tab-survey-button")).to_have_attribute("aria-selected", "true")


def test_a_refused_filter_dims_what_it_no_longer_describes(
    visit: Callable[..., Any], survey_app: str
) -> None:
    page = opened(visit, survey_app)  # a visit: it fails where the console says anything
    alpha = "selector => Number(getComputedStyle(document.querySelector(selector)).opacity)"
    parts = (
        ".vv-survey-count",
        ".vv-survey-atlas",
        "#vv-survey-dots",
        ".vv-survey-lists",
        ".vv-survey-classes",
    )
    for where, says in [
        ("read_text('/etc/passwd') = ''", "cannot use the function 'read_text'"),
        ("mean entropi > 0.5", 'near "entropi".'),
        ("confidense > 0.5", "did you mean 'confidence'?"),
    ]:
        page.locator(".vv-survey-where").fill(where)
        page.keyboard.press("Enter")
        expect(page.locator(".vv-survey-error")).to_contain_text(says, use_inner_text=True)
        assert all(page.evaluate(alpha, part) < 0.5 for part in parts)
        expect(page.locator(".vv-survey-count")).to_contain_text(f"All {PHOTOS} photos", use_inner_text=True)
    page.locator(".vv-survey-where").fill("not right and mean entropy > 0.5")
    page.keyboard.press("Enter")
    page.wait_for_function(COUNT, arg=f" of {PHOTOS} photos")
    expect(page.locator(".vv-survey-error")).to_be_hidden()
    assert all(page.evaluate(alpha, part) == 1 for part in parts)
