"""The Explain tab: what a visitor does there, and what models of every kind are asked and answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.session.test_session import Counted, picture
from tests.ui.conftest import open_tab
from tests.ui.desk import odd_session
from tests.ui.waits import expect, expect_in_address, point_of
from vit_viz.analyses.methods import METHODS
from vit_viz.errors import ParameterError
from vit_viz.sentences import percent
from vit_viz.session.request import Subject
from vit_viz.ui.target import matching_classes, value
from vit_viz.views.state import ViewState


@pytest.mark.browser
def test_a_class_is_explained_by_many_maps_and_patches_are_taken_away(page: Any) -> None:
    open_tab(page, "Explain")
    gallery, stage = page.locator("#vv-gallery"), page.locator("#vv-explain-picture")

    def card(method: str) -> Any:
        return gallery.locator(f"[data-method={method}]")

    for method in METHODS.quick:
        blind = METHODS[method].words.class_blind
        expect(card(method).locator("canvas[data-drawn]")).to_be_visible()
        expect(card(method).locator(".vv-tag")).to_be_visible(visible=blind)
        expect(card(method).locator(".vv-card-image[aria-label*='(lion)']")).to_have_count(0 if blind else 1)
    card("smoothgrad").get_by_role("button", name="Compute").click()
    card("smoothgrad").locator("canvas[data-drawn]").wait_for()
    card("smoothgrad").locator(".vv-open").click()
    stage.locator(".vv-caption").get_by_text("SmoothGrad").wait_for()
    expect_in_address(page, "method=smoothgrad")
    page.locator("#vv-target .vv-search").fill("banana")
    page.locator("#vv-target .vv-hits").get_by_role("button", name="why").first.click()
    gallery.locator(".vv-card-image[aria-label*='(banana)']").first.wait_for()
    expect(stage.locator(".vv-target-answer .vv-class")).to_have_text("banana", use_inner_text=True)
    marks = stage.locator(".vv-play-marks")
    page.mouse.move(*point_of(marks, 0.2, 0.5))
    page.mouse.down()
    page.mouse.move(*point_of(marks, 0.8, 0.5), steps=5)
    page.mouse.up()
    expect(stage.locator(".vv-gone")).to_have_count(10)  # columns 3 to 12 of 16
    stage.get_by_text("Without 3.9% of the photo, banana").wait_for()


@pytest.mark.browser
@pytest.mark.slow
def test_slider_answer_and_proof_stay_in_sight_beside_the_photo_and_a_link_takes_the_same_away(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=explain&image=lion", width=1440, height=900)
    stage = page.locator("#vv-explain-picture")
    slider = stage.locator(".vv-most")
    for _ in range(3):
        slider.press("ArrowRight")
    expect_in_address(page, "gone=best.3")
    stage.get_by_text("Without 1.2% of the photo, lion").wait_for()
    stage.locator(".vv-test").click()
    expect(stage.locator(".vv-belief > .vv-title")).to_contain_text("falls")
    parts = [".vv-play-stage", ".vv-most", ".vv-play-top", ".vv-belief > .vv-title", ".vv-belief .vv-plot"]

    def boxes() -> list[Any]:
        return [stage.locator(part).bounding_box() for part in parts]

    photo, *beside = before = boxes()
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= 900 for box in before), before
    assert all(box["x"] >= photo["x"] + photo["width"] for box in beside), before
    page.mouse.move(1200, 600)  # over the cards
    page.mouse.wheel(0, 900)
    page.wait_for_function("scrollY > 600")
    page.wait_for_function("document.querySelector('#vv-stage').getBoundingClientRect().top === 12")
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= 900 for box in boxes()), boxes()

    patches, answer = stage.locator(".vv-gone").count(), stage.locator(".vv-play-top").inner_text()
    page.goto(page.url)
    stage.get_by_text("Without 1.2% of the photo, lion").wait_for()
    expect(stage.locator(".vv-gone")).to_have_count(patches)
    expect(stage.locator(".vv-play-top")).to_have_text(answer, use_inner_text=True)


# --- without a browser


def test_the_target_is_the_first_class_unless_one_that_exists_is_chosen() -> None:
    session = Counted().session
    subject = Subject("tiny", session.add_upload(picture(0)))
    view = ViewState(model="tiny", image=subject.image)
    logits = session.trace("tiny", subject.image).logits
    assert logits is not None
    best = int(logits.argmax())
    other = (best + 1) % 7

    def told(target: str) -> tuple[str, str, str]:
        found = value(session, subject, replace(view, target=target))
        assert found["link"] == "-".join(
            str(found[name]) for name in ("chosen", "other") if found[name] is not None
        )
        assert {found["chosen"], found["other"]} - {None} <= {one["index"] for one in found["classes"]}
        return found["link"], found["name"], found["words"]

    first = (str(best), f"animal {best}")
    assert told("") == (*first, "")
    assert told(f"{other}-{best}") == (f"{other}-{best}", f"animal {other} and not animal {best}", "")
    assert told("99") == (*first, "This model has classes 0-6; its first class is explained instead.")
    assert told(f"{other}-7")[:2] == first
    assert told(f"{other}-{other}") == (
        *first,
        "A class cannot be set against itself; the first class is explained.",
    )


def test_classes_without_names_are_found_by_number() -> None:
    assert matching_classes(None, 7, " 3 ") == [{"index": 3, "name": "class 3"}]
    assert matching_classes(None, 7, "9") == []
    for words in ("", "-1", "3.0", "three", "\u00b2", "0" * 6 + "3"):
        assert matching_classes(None, 7, words) == [], words


@pytest.mark.parametrize("changes", [{}, {"class_token": False, "pooling": "mean"}])
def test_a_model_without_classes_explains_its_own_embedding(
    changes: dict[str, Any],
) -> None:
    page = SimpleNamespace(session=odd_session(num_classes=0, **changes))
    subject = Subject("odd", page.session.add_upload(picture(0)))
    said = value(page.session, subject, ViewState(model="odd", image=subject.image, target="3"))
    assert (said["classes"], said["link"], said["name"]) == ([], "", "")
    assert said["words"].endswith("A class was asked for, but this model has none.")
    assert value(page.session, subject, ViewState(), find="3") == {"hits": []}
    assert "own embedding" in said["words"]
    without = page.session.run(subject.request("without_patches", target=None, gone="0,0;0,5;1,1"))
    assert (without.top.names, without.to_words()) == (("similarity to the whole photo",), "")
    assert without.top.scores[0] < 1 == without.before[0]
    with pytest.raises(ParameterError, match="rows are 0-3"):
        page.session.run(subject.request("without_patches", target=None, gone="4,0"))
    trust = page.session.run(subject.request("trust", method="relevance", target=None))
    assert "class" not in trust.to_words()


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.96, "96%"), (0.0996, "10%"), (0.0321, "3.2%"), (0.0004, "<0.1%"), (0.0, "0.0%"), (0.997, "99.7%")],
)
def test_a_probability_has_a_decimal_where_it_is_small_or_almost_certain(share: float, words: str) -> None:
    assert percent(share) == words
