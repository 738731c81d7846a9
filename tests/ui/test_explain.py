"""The Explain tab as a visitor meets it: choose a class, compare maps, ask how far to trust them, take patches away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.test_session import Counted, picture
from tests.ui.conftest import open_tab
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.handles import Subject
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.results import Provenance
from vit_viz.session import Session
from vit_viz.ui.aims import aim_value, aimed, found
from vit_viz.ui.methods import method_named
from vit_viz.ui.state import ViewState
from vit_viz.ui.views import asked, playground
from vit_viz.ui.views.gallery import gallery_value
from vit_viz.ui.views.trust import trust_value
from vit_viz.ui.watching import Stops, steps

QUICK = ("relevance", "gradient_rollout", "legrad", "gradcam", "rollout", "attention")


def card(page: Any, method: str) -> Any:
    return page.locator(f"#vv-gallery [data-method={method}]")


def maps_ready(page: Any) -> None:
    page.wait_for_function(
        """count => document.querySelectorAll('#vv-gallery .vv-open:not([hidden]) .vv-card-image[src]').length
        >= count && !document.querySelector('#vv-gallery.vv-busy, #vv-gallery .vv-busy')""",
        arg=len(QUICK),
    )


@pytest.fixture
def explain(page: Any) -> Any:
    """The tab with all quick maps."""
    open_tab(page, "Explain")
    maps_ready(page)
    return page


@pytest.mark.browser
def test_the_quick_maps_stand_side_by_side_with_captions_scales_and_marks(explain: Any) -> None:
    first = (
        explain.locator("#vv-aim .vv-why .vv-chip[aria-pressed=true]").get_attribute("title").split(",")[0]
    )
    for method in QUICK:
        one = card(explain, method)
        blind = method in ("rollout", "attention")
        assert one.locator(".vv-tag").is_visible() == blind
        assert (f"for {first}" in one.locator(".vv-card-caption").inner_text()) != blind
        assert one.locator(".vv-low").inner_text()
        assert one.locator(".vv-high").inner_text()
        assert "/vit_viz/picture/" in one.locator(".vv-save").get_attribute("href")
    for method in ("integrated_gradients", "smoothgrad", "occlusion", "kernel_shap"):
        assert card(explain, method).get_by_role("button", name="Compute").is_visible()


@pytest.mark.browser
def test_another_class_and_a_contrast_change_maps_captions_and_link(explain: Any) -> None:
    before = card(explain, "relevance").locator(".vv-card-image").get_attribute("src")
    explain.locator("#vv-aim .vv-search").fill("banana")
    explain.locator("#vv-aim .vv-hits").get_by_role("button", name="why").first.click()
    card(explain, "relevance").locator(".vv-card-caption").get_by_text("for banana").wait_for()
    assert card(explain, "relevance").locator(".vv-card-image").get_attribute("src") != before
    assert "target=" in explain.url
    explain.locator("#vv-aim .vv-unlike .vv-chip").nth(1).click()
    card(explain, "relevance").locator(".vv-card-caption").get_by_text("for banana and not").wait_for()
    explain.wait_for_function("() => /target=[0-9]+-[0-9]+/.test(location.search)")


@pytest.mark.browser
def test_trust_is_told_in_words_and_sorts_the_maps(explain: Any) -> None:
    explain.get_by_role("button", name="How far can each map be trusted?").click()
    explain.locator("#vv-gallery").get_by_text("Sorted by trust").wait_for()
    for method in QUICK:
        verdict = card(explain, method).locator(".vv-verdict").inner_text()
        assert "etter than random" in verdict
    assert "class sensitivity 0.00" in card(explain, "rollout").locator(".vv-trust-numbers").inner_text()
    assert card(explain, "relevance").locator(".vv-ruler").count() == 2
    card(explain, "relevance").get_by_role("button", name="Curves").click()
    explain.locator("#vv-deletion .main-svg").first.wait_for()
    explain.locator("#vv-insertion .main-svg").first.wait_for()
    assert "Relevance" in explain.locator("#vv-curves .vv-plot-caption").first.inner_text()


@pytest.mark.browser
def test_a_slow_method_runs_when_asked_and_can_be_looked_at_closely(explain: Any) -> None:
    card(explain, "smoothgrad").get_by_role("button", name="Compute").click()
    card(explain, "smoothgrad").locator(".vv-card-image[src]").wait_for()
    card(explain, "smoothgrad").locator(".vv-open").click()
    explain.locator("#vv-explain-picture .vv-caption").get_by_text("SmoothGrad").wait_for()
    assert "method=smoothgrad" in explain.url


@pytest.mark.browser
def test_a_slow_method_can_be_cancelled(explain: Any) -> None:
    one = card(explain, "kernel_shap")
    one.get_by_role("button", name="Compute").click()
    one.get_by_role("button", name="Cancel").click()
    one.get_by_text("cancelled").wait_for()
    assert one.get_by_role("button", name="Compute").is_visible()


@pytest.mark.browser
def test_brushing_patches_away_changes_the_answer_live(explain: Any) -> None:
    play = explain.locator("#vv-playground")
    play.locator(".vv-play-top li").first.wait_for()
    play.locator(".vv-play-marks").scroll_into_view_if_needed()
    before = play.locator(".vv-play-top").inner_text()
    box = play.locator(".vv-play-marks").bounding_box()
    explain.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"])
    explain.mouse.down()
    explain.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.5 * box["height"], steps=5)
    explain.mouse.up()
    assert play.locator(".vv-gone").count() == 10  # columns 3 to 12 of 16
    play.get_by_text("Without 4% of the photo").wait_for()
    assert play.locator(".vv-play-top").inner_text() != before
    play.get_by_role("button", name="All back").click()
    play.get_by_text("With all patches").wait_for()
    assert play.locator(".vv-play-top").inner_text() == before


@pytest.mark.browser
def test_the_slider_takes_the_most_relevant_patches_first(explain: Any) -> None:
    play = explain.locator("#vv-playground")
    play.get_by_text("by Relevance").wait_for()
    play.locator(".vv-most").fill("64")
    play.get_by_text("Without 25% of the photo").wait_for()
    assert play.locator(".vv-gone").count() == 64


@pytest.mark.browser
def test_patches_can_be_taken_away_with_the_keyboard(explain: Any) -> None:
    play = explain.locator("#vv-playground")
    play.locator(".vv-play-top li").first.wait_for()
    play.locator(".vv-play-stage").focus()
    for key in ("ArrowRight", "Space", "ArrowRight", "Space"):
        explain.keyboard.press(key)
    play.get_by_text("2 of 256 patches gone").wait_for()


@pytest.mark.browser
def test_the_sanity_check_draws_its_curve(explain: Any) -> None:
    explain.get_by_role("button", name="Re-initialise the weights, step by step").click()
    explain.locator("#vv-sanity-curve .main-svg").first.wait_for()
    explain.get_by_text("rank correlation with the original is").wait_for()


@pytest.mark.browser
def test_the_tab_fits_a_phone(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(app_url + "?tab=explain", width=390, dark=True)
    maps_ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# --- without a browser


def counted_view() -> tuple[Counted, Subject, ViewState]:
    counted = Counted()
    image = counted.session.add_upload(picture(0))
    return counted, Subject("tiny", image), ViewState(model="tiny", image=image)


def test_the_target_is_the_first_class_unless_one_that_exists_is_chosen() -> None:
    counted, subject, view = counted_view()
    logits = counted.session.trace("tiny", subject.image).logits
    assert logits is not None
    best = int(logits.argmax())
    assert aimed(counted.session, subject, view).view.target == str(best)
    other = (best + 1) % 7
    chosen = aimed(counted.session, subject, view.next_turn(target=f"{other}-{best}"))
    assert chosen.words == f"class {other} and not class {best}"
    refused = aimed(counted.session, subject, view.next_turn(target="99"))
    assert refused.view.target == str(best)
    assert "0-6" in refused.problem


def test_classes_without_names_are_found_by_number() -> None:
    assert found(None, 7, " 3 ") == [{"index": 3, "name": "class 3"}]
    assert found(None, 7, "9") == []


def test_another_image_or_model_forgets_the_target_but_another_size_keeps_it() -> None:
    view = ViewState(target="3-4")
    assert view.on_subject(image="lion").target == ""
    assert view.on_subject(mode="crop").target == "3-4"
    with pytest.raises(ParameterError, match="target"):
        view.with_options({"target": "3-4-5"})


def test_steps_tell_the_share_and_end_with_what_was_found() -> None:
    go = threading.Event()

    def run(progress: Callable[[float], None], _cancelled: Callable[[], bool]) -> str:
        progress(0.5)
        go.wait(10)
        return "found"

    seen = []
    for step in steps(run, threading.Event()):
        seen.append((step.share, step.found))
        go.set()
    assert seen == [(0.5, None), (1.0, "found")]


def test_stopping_ends_a_computation_and_reaches_nobody_else() -> None:
    stops = Stops()
    mine, yours = stops.start("ada", "trust", "lion"), stops.start("bob", "trust", "lion")
    stops.stop("ada", "trust")
    assert mine.is_set()
    assert not yours.is_set()
    stops.keep_only("bob", "zebra")
    assert yours.is_set()

    def run(_progress: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
        if cancelled():
            raise Cancelled("It was cancelled.")

    with pytest.raises(Cancelled):
        list(steps(run, mine))


def headless(**changes: Any) -> tuple[Any, Subject, ViewState]:
    """A session on a tiny model without classes, as the views see it."""
    config = ViTConfig(
        img_size=(32, 48), patch_size=(8, 8), embed_dim=40, depth=3, num_heads=5, num_classes=0, **changes
    )
    session = Session(model="bare", device="cpu")
    session.add_model(
        LoadedModel(
            model=VisionTransformer(config).eval(),
            config=config,
            preprocess=Preprocess(input_size=(32, 48), patch_size=(8, 8)),
            labels=None,
            provenance=Provenance(model="bare", weights="w"),
            name="bare",
            family="ours",
            origin="a test",
            device=torch.device("cpu"),
        )
    )
    image = session.add_upload(picture(0))
    page = SimpleNamespace(session=session)
    return page, Subject("bare", image), ViewState(model="bare", image=image, target="3")


@pytest.mark.parametrize("changes", [{}, {"class_token": False, "pooling": "mean"}])
def test_a_model_without_classes_explains_its_own_embedding(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, subject, view = headless(**changes)
    for module in (asked, playground):
        monkeypatch.setattr(module, "subject_of", lambda *_: subject)
    aim = aimed(page.session, subject, view)
    assert aim.view.target == ""
    said = aim_value(page.session, subject, aim)
    assert said["classes"] == []
    assert "own embedding" in said["words"]
    cards = gallery_value(asked.Asked(page, subject, aim))["cards"]
    assert all("map" in card for card in cards if not card["slow"])
    answer = playground.answer_value(page, view, "", "0,5,7")
    assert answer["top"][0]["name"] == "similarity to the whole photo"
    assert answer["top"][0]["now"] < 1
    with pytest.raises(ParameterError, match="0 to 23"):
        playground.answer_value(page, view, "", "24")
    method = method_named("relevance")
    trust = page.session.run(asked.Asked(page, subject, aim).trust_request(method))
    strip = trust_value(asked.Asked(page, subject, aim), method, trust)
    assert "andom" in strip["verdict"]
    assert "class sensitivity" not in strip["numbers"]


@pytest.mark.parametrize("ruler", ["own", "share"])
def test_the_common_scale_ends_at_the_largest_share(ruler: str) -> None:
    page, subject, view = headless()
    aim = aimed(page.session, subject, view.next_turn(ruler=ruler))
    cards = [card for card in gallery_value(asked.Asked(page, subject, aim))["cards"] if not card["slow"]]
    ends = {card["map"]["bar"]["high"] for card in cards}
    assert (len(ends) == 1) == (ruler == "share")
