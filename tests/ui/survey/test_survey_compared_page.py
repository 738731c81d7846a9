"""Two surveys of real photos beside each other in a browser, and surveys of which pictures are missing: the console stays empty."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.effort import WINDOWS
from tests.serving import Server
from tests.surveys.made import made_survey
from tests.ui.conftest import wait_until_ready
from tests.ui.test_access import AXE
from tests.ui.waits import expect
from vit_viz.bundled import example_survey
from vit_viz.session.session import Session
from vit_viz.surveys.comparison import AnswerChange, SurveyComparison, compare_surveys
from vit_viz.surveys.run import survey

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EDITS = "off 3.0 4.1 4.2;temperature 5=0.5"
OTHERS = '.vv-survey-group[data-group="other"]'


@dataclass(frozen=True)
class Opened:
    """An app with a survey of photos and one of the same photos through an edited model, and what their comparison says."""

    url: str
    compared: SurveyComparison

    def of_kind(self, kind: str) -> list[AnswerChange]:
        return [one for one in self.compared.answers if one.kind == kind]


@pytest.fixture(scope="module")
def opened(start_app: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """96 photos through the bundled model, without and with edits; beside them a survey of other photos."""
    place, photos = tmp_path_factory.mktemp("surveys"), example_survey().parent / "photos"
    notes = photos / "annotations.json"
    for name, edits in (("plain", ""), ("edited", EDITS)):
        survey("mini", photos, place / name, annotations=notes, edits=edits, progress=False)
    made_survey(place / "strange", photos=20, layers=6, heads=6)
    flags = [flag for name in ("plain", "edited", "strange") for flag in ("--survey", str(place / name))]
    return Opened(
        start_app(*flags, "--model", "mini").url, compare_surveys(place / "plain", place / "edited")
    )


def title_of(opened: Opened) -> str:
    return f"Compared with edited: {len(opened.compared.answers)} of 96 photos changed their answer"


def test_a_second_survey_is_chosen_read_refused_linked_and_left(
    visit: Callable[..., Any], opened: Opened
) -> None:
    page = visit(f"{opened.url}?tab=survey", ready=False)
    second = page.locator(".vv-survey-second")
    second.select_option("edited")
    title = page.locator(".vv-survey-compared-title")
    expect(title).to_have_text(title_of(opened))
    moved = [one for one in opened.compared.heads if one.is_beyond_chance]
    expect(page.locator(".vv-survey-compared-heads")).to_contain_text(
        f"{len(moved)} of 216 statistics of heads moved"
    )
    expect(page.locator(".vv-survey-compared-heads")).to_contain_text("chance alone would do to about 11.")
    lost, won, other = (opened.of_kind(kind) for kind in ("right to wrong", "wrong to right", "other class"))
    assert lost and won and 12 < len(other) <= 36  # noqa: PT018 - of what this test is about there is some
    answers = page.locator(".vv-survey-cards .vv-survey-answer")
    shown = [*lost[:12], *won[:12], *other[:12]]
    expect(answers).to_have_text([f"was {one.before}, is now {one.after}" for one in shown])
    page.wait_for_function(
        "location.search.includes('photos=changed') && location.search.includes('compared_with=edited')"
    )

    second.select_option("strange")
    error = page.locator(".vv-survey-compared-error")
    expect(error).to_contain_text(
        "Not compared with strange. These are surveys of other photos: 116 are in one of them only"
    )
    expect(title).to_have_text(title_of(opened))
    expect(second).to_have_value("edited")
    expect(answers).to_have_count(len(shown))

    rows = page.locator(".vv-survey-moved-table [data-moved]")
    expect(rows).to_have_count(min(12, len(moved)))
    first = moved[0]
    rows.first.click()
    page.wait_for_function(
        f"location.search.includes('layer={first.layer}') && location.search.includes('head={first.head}')"
    )
    page.locator(f"{OTHERS} .vv-survey-more").click()
    expect(page.locator(f"{OTHERS} .vv-survey-card")).to_have_count(min(24, len(other)))
    with page.expect_download() as saved:
        page.locator(".vv-survey-csv").click()
    lines = list(csv.DictReader(Path(saved.value.path()).read_text("utf-8").splitlines()))
    assert [line["photo"] for line in lines] == [one.photo for one in (*lost, *won, *other)]

    page.goto(page.url)
    expect(title).to_have_text(title_of(opened))
    expect(answers.first).to_have_text(f"was {lost[0].before}, is now {lost[0].after}")
    page.locator(".vv-survey-card").first.click()
    page.wait_for_function(
        "document.querySelector('#vv-tab-look-button').getAttribute('aria-selected') === 'true'"
    )
    page.wait_for_function("location.search.includes('image=survey-')")
    wait_until_ready(page)
    page.locator("#vv-tab-survey-button").click()
    second.select_option("")
    expect(page.locator(".vv-survey-compared")).to_be_hidden()
    page.wait_for_function("!location.search.includes('compared_with')")


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_two_surveys_fit_and_can_be_read_by_everybody(
    visit: Callable[..., Any], opened: Opened, width: int, dark: bool
) -> None:
    link = f"{opened.url}?tab=survey&compared_with=edited&photos=changed"
    page = visit(link, ready=False, width=width, height=844, dark=dark)
    expect(page.locator(".vv-survey-compared-title")).to_have_text(title_of(opened))
    expect(page.locator(".vv-survey-group")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    moved = page.locator(".vv-survey-moved .vv-survey-scroll")
    assert moved.evaluate("box => box.scrollWidth <= box.clientWidth"), "the table of heads scrolls sideways"
    cells = moved.locator("tbody tr").first.locator("th, td")
    expect(cells).to_have_count(5)
    assert all(
        box["x"] >= 0 and box["x"] + box["width"] <= width
        for box in [cell.bounding_box() for cell in cells.all()]
    )
    foot = page.locator(".vv-survey-lists > .vv-row:last-child")
    if width == 390:  # what one does next stands at the foot of the screen
        page.wait_for_function(
            "node => node.getBoundingClientRect().bottom === innerHeight && node.getBoundingClientRect().width === innerWidth",
            arg=foot.element_handle(),
        )
    page.evaluate(AXE.read_text("utf-8"))
    violations = page.evaluate(
        "axe.run('#vv-survey').then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))"
    )
    assert violations == []


@pytest.mark.parametrize("thumbnails", [True, False])
def test_pictures_that_are_not_there_are_words_and_not_asked_for(
    visit: Callable[..., Any], start_app: Callable[..., Server], tmp_path: Path, thumbnails: bool
) -> None:
    weights, files = Session(model="mini", device="cpu").model().provenance.weights, tmp_path / "photos"
    made = made_survey(
        tmp_path / "made", photos=9, layers=6, heads=6, files=files, thumbnails=thumbnails, weights=weights
    )
    (files / "class 1" / "photo 00004.png").unlink()
    changed = files / "class 2" / "photo 00005.png"
    changed.write_bytes(changed.read_bytes() + b"more")
    app = start_app("--survey", str(made), "--model", "mini")
    page = visit(f"{app.url}?tab=survey&photos=all", ready=False)  # it fails where the console says anything
    expect(page.locator(".vv-survey-card .vv-survey-lit")).to_have_count(7)
    words = page.locator(".vv-survey-none")
    gone = page.locator('.vv-survey-card[data-row="4"]')
    if thumbnails:
        expect(words).to_have_count(0)
        expect(gone.locator(".vv-small").last).to_have_text("its file is gone")
        expect(gone.locator("img")).to_have_count(1)
    else:
        expect(words).to_have_text(["no picture: its file is gone", "no small picture was kept"])
