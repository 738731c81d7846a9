"""A survey in a browser: a head, a brush, the filter's SQL, photos that open in Look, and a second survey beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.effort import WINDOWS
from tests.serving import Server
from tests.surveys.made import made_survey
from tests.ui.conftest import wait_until_ready
from tests.ui.test_access import axe
from tests.ui.waits import expect, expect_in_address, point_of
from vit_viz.bundled import example_survey
from vit_viz.session.session import Session
from vit_viz.surveys.comparison import compare_surveys
from vit_viz.surveys.run import survey

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHOTOS = 300
COUNT = "words => document.querySelector('.vv-survey-count')?.textContent.includes(words)"
EDITS = "off 3.0 4.1 4.2;temperature 5=0.5"


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


def write(page: Any, where: str) -> None:
    page.locator(".vv-survey-where").fill(where)
    page.keyboard.press("Enter")


def nothing_found_by_axe(page: Any) -> None:
    page.evaluate(axe())
    found = "({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html])"
    assert page.evaluate(f"axe.run('#vv-survey').then({found})") == []


def test_a_head_a_brush_the_sql_and_a_photo(visit: Callable[..., Any], survey_app: str) -> None:
    page = opened(visit, survey_app)  # a visit: it fails where the console says anything
    page.locator('.vv-survey-heads td[data-layer="2"][data-head="3"]').click()
    expect(page.locator(".vv-survey-list-words")).to_contain_text("layer 2, head 3")
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
    assert 0 < int(count) < PHOTOS

    parts = ("count", "atlas", "lists", "classes")
    alpha = "part => Number(getComputedStyle(document.querySelector(`.vv-survey-${part}`)).opacity)"
    write(page, "confidense > 0.5")
    expect(page.locator(".vv-survey-error")).to_contain_text("did you mean 'confidence'?")
    assert all(page.evaluate(alpha, part) < 0.5 for part in parts), (
        "they stand as if they were of this filter"
    )
    write(page, "not is_right and confidence > 0.2")
    page.wait_for_function("location.search.includes('where=not+is_right')")
    page.wait_for_function(COUNT, arg="0.0%")
    expect(page.locator(".vv-survey-error")).to_be_hidden()
    assert all(page.evaluate(alpha, part) == 1 for part in parts)
    page.locator(".vv-survey-clear").click()
    page.wait_for_function(COUNT, arg=f"All {PHOTOS} photos")
    page.wait_for_selector(".vv-survey-lit")  # the first exemplar, lit by the head
    heads = "(({ offsetWidth, offsetHeight }) => [offsetWidth, offsetHeight])(document.querySelector('.vv-survey-heads'))"
    size = page.evaluate(heads)
    page.locator(".vv-survey-card").first.click()
    expect(page.locator("#vv-tab-look-button")).to_have_attribute("aria-selected", "true")
    expect_in_address(page, "image=survey-", "layer=2", "head=3")
    wait_until_ready(page)
    expect(page.locator(".vv-survey-heads")).to_be_hidden()
    assert page.evaluate(heads) == size, "the tab is laid out anew each time it is opened"


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
    nothing_found_by_axe(page)


RANKED = """async (address) => {
  const numbers = new Float32Array(await (await fetch(address)).arrayBuffer());
  const count = numbers.length / 3;
  return [0, 1].map((axis) => [...numbers.subarray(axis * count, (axis + 1) * count)]);
}"""


HEIGHTS = """(one) => {
  const empty = one.cloneNode();
  one.after(empty);
  const heights = [empty.offsetHeight, one.offsetHeight];
  empty.remove();
  return heights;
}"""


def test_an_open_photo_of_the_survey_has_the_place_of_its_own_row(
    visit: Callable[..., Any], start_app: Callable[..., Server]
) -> None:
    """What the page reads of the open photo is what the survey recorded of it: the columns are those of the bundled survey."""
    url = start_app("--model", "mini", "--survey", "example").url
    page = visit(f"{url}?tab=survey", ready=False)
    card = page.locator(".vv-survey-card").first
    row = int(card.get_attribute("data-row"))
    card.click()
    wait_until_ready(page)
    expect(page).to_have_url(re.compile("image="))  # the link follows once the photo is there
    image = re.search(r"image=([^&]*)", page.url)
    assert image
    for across, up in (
        ("confidence", "mean_entropy"),
        ("margin", "head_distance"),
        ("head_prefix_mass", "head_entropy"),
    ):
        axes = f"across={across}&up={up}&layer=2&head=3"
        page.goto(f"{url}?tab=survey&model=mini&image={image[1]}&{axes}")
        said = page.locator(".vv-survey-place")
        expect(said).to_contain_text("The open photo, marked: ")
        empty, full = said.evaluate(HEIGHTS)
        assert empty == full  # what is beside and below it stands still when it comes
        columns = page.evaluate(RANKED, f"vit_viz/survey/points?{axes}")
        places = re.findall(r", more than ([\d,]+) of ([\d,]+)", said.inner_text())
        for column, place in zip(columns, places, strict=True):
            below, count = (int(number.replace(",", "")) for number in place)
            own, slack = column[row], 1e-4 * (max(column) - min(column))
            assert count == len(column)
            assert (
                sum(one < own - slack for one in column) <= below <= sum(one < own + slack for one in column)
            )


# --- a second survey


@pytest.fixture(scope="module")
def two(start_app: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """An app with 96 photos through the bundled model, without and with edits, and how many of them changed their answer."""
    place, photos = tmp_path_factory.mktemp("surveys"), example_survey().parent / "photos"
    notes = photos / "annotations.json"
    for name, edits in (("plain", ""), ("edited", EDITS)):
        survey("mini", photos, place / name, annotations=notes, edits=edits, progress=False)
    flags = [flag for name in ("plain", "edited") for flag in ("--survey", str(place / name))]
    changed = compare_surveys(place / "plain", place / "edited").answers
    return start_app(*flags, "--model", "mini").url, len(changed)


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_two_surveys_fit_and_can_be_read_by_everybody(
    visit: Callable[..., Any], two: tuple[str, int], width: int, dark: bool
) -> None:
    url, changed = two
    link = f"{url}?tab=survey&compared_with=edited&photos=changed"
    page = visit(link, ready=False, width=width, height=844, dark=dark)
    expect(page.locator(".vv-survey-compared-title")).to_have_text(
        f"Compared with edited: {changed} of 96 photos changed their answer"
    )
    expect(page.locator(".vv-survey-group")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    moved = page.locator(".vv-survey-moved .vv-survey-scroll")
    assert moved.evaluate("box => box.scrollWidth <= box.clientWidth"), "the table of heads scrolls sideways"
    if width == 390:  # what one does next stands at the foot of the screen
        page.wait_for_function(
            "node => node.getBoundingClientRect().bottom === innerHeight && node.getBoundingClientRect().width === innerWidth",
            arg=page.locator(".vv-survey-lists > .vv-row:last-child").element_handle(),
        )
    nothing_found_by_axe(page)
