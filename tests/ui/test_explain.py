"""The Explain tab as a visitor meets it: choose a class, compare maps, ask how far to trust them, take patches away."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.session.test_session import Counted, picture
from tests.ui.conftest import open_tab
from tests.ui.waits import expect, expect_in_address, point_of
from vit_viz.analyses.methods import METHODS
from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain import questions
from vit_viz.ui.explain.answers import gallery_value
from vit_viz.ui.explain.questions import answer_value, matching_classes, percent, target_value, with_target
from vit_viz.ui.explain.trust import falls, trust_value
from vit_viz.ui.pictures import card_named
from vit_viz.views.state import ViewState

QUICK = METHODS.quick


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


def stage(page: Any) -> Any:
    return page.locator("#vv-explain-picture")


@pytest.mark.browser
def test_the_quick_maps_stand_side_by_side_and_slow_ones_say_what_they_cost(explain: Any) -> None:
    expect(explain.locator("#vv-gallery .vv-gallery-title")).to_have_text(
        "Fifteen ways to ask", use_inner_text=True
    )
    for method in QUICK:
        one = card(explain, method)
        blind = METHODS[method].words.class_blind
        expect(one.locator(".vv-tag")).to_be_visible(visible=blind)
        if blind:
            expect(one.locator(".vv-tag")).to_have_text("same for every class", use_inner_text=True)
        image, for_lion = one.locator(".vv-card-image"), re.compile("for lion")
        if blind:
            expect(image).not_to_have_attribute("alt", for_lion)
        else:
            expect(image).to_have_attribute("alt", for_lion)
    for method in ("integrated_gradients", "smoothgrad", "occlusion", "kernel_shap"):
        expect(card(explain, method).get_by_role("button", name="Compute")).to_be_visible()
        expect(card(explain, method).locator(".vv-blank .vv-job-words")).to_contain_text(
            " run", use_inner_text=True
        )
    expect(explain.locator("#vv-gallery .vv-chosen")).to_have_count(1)
    expect(stage(explain).locator(".vv-save")).to_have_attribute("href", re.compile("/vit_viz/picture/"))
    for end in (".vv-low", ".vv-high"):
        expect(stage(explain).locator(end)).to_have_text(re.compile(r"\S"), use_inner_text=True)


@pytest.mark.slow
@pytest.mark.browser
def test_another_class_and_a_contrast_change_maps_captions_answers_and_link(explain: Any) -> None:
    image = card(explain, "relevance").locator(".vv-card-image")
    before = image.get_attribute("src")
    explain.locator("#vv-target .vv-search").fill("banana")
    explain.locator("#vv-target .vv-hits").get_by_role("button", name="why").first.click()
    explain.locator("#vv-gallery .vv-card-image[alt*='for banana']").first.wait_for()
    expect(image).not_to_have_attribute("src", before)
    expect_in_address(explain, "target=")
    stage(explain).locator(".vv-caption").get_by_text("for banana").wait_for()
    expect(stage(explain).locator(".vv-target-answer .vv-class")).to_have_text("banana", use_inner_text=True)
    explain.locator("#vv-target .vv-unlike .vv-chip").first.click()
    explain.locator("#vv-gallery .vv-card-image[alt*='for banana and not']").first.wait_for()
    explain.wait_for_function("() => /target=[0-9]+-[0-9]+/.test(location.search)")


@pytest.mark.slow
@pytest.mark.browser
def test_trust_sorts_the_cards_and_draws_the_curve_of_the_chosen_one(explain: Any) -> None:
    gallery = explain.locator("#vv-gallery")
    expect(gallery.locator(".vv-fall")).to_be_hidden()
    gallery.get_by_role("button", name="Which are the most faithful?").click()
    sorted_title = gallery.get_by_text("Fifteen ways to ask, the most faithful first")
    sorted_title.wait_for(timeout=300_000)  # some hundred passes, on whatever machine this is
    ratios = []
    for one in gallery.locator("[data-method]").all()[: len(QUICK)]:
        expect(one).to_have_attribute("data-method", re.compile(f"^({'|'.join(QUICK)})$"))
        words = one.locator(".vv-falls").inner_text()
        assert words.endswith(" faster than at random")
        ratios.append(1.0 if words.startswith("falls no") else float(words.split()[1]))
        expect(one.locator(".vv-dot")).to_be_visible()
    assert ratios == sorted(ratios, reverse=True)
    card(explain, "rollout").locator(".vv-open").click()
    gallery.get_by_text("The same for every class.", exact=True).wait_for()
    expect(gallery.locator(".vv-fall-title")).to_contain_text(
        "Attention rollout: the answer falls", use_inner_text=True
    )
    expect(gallery.locator(".vv-line")).to_have_attribute("d", re.compile(r"^M0\.00 "))
    expect(gallery.locator(".vv-now")).to_be_hidden()
    stage(explain).locator(".vv-most").fill("64")
    gallery.locator(".vv-now").wait_for()
    plot, now = (gallery.locator(part).bounding_box() for part in (".vv-plot", ".vv-now"))
    assert now["x"] - plot["x"] == pytest.approx(plot["width"] / 4, abs=2)
    explain.locator("#vv-target .vv-why .vv-chip").nth(1).click()
    explain.wait_for_function("() => location.search.includes('target=')")
    gallery.get_by_text(re.compile("^Measured for lion, not for .+ yet[.]$")).wait_for()
    expect(gallery.locator(".vv-fall-title")).to_contain_text(
        "Attention rollout for lion: the answer", use_inner_text=True
    )
    expect(gallery.locator(".vv-now")).to_be_hidden()


@pytest.mark.browser
def test_a_slow_method_runs_when_asked_and_comes_onto_the_stage(explain: Any) -> None:
    card(explain, "smoothgrad").get_by_role("button", name="Compute").click()
    card(explain, "smoothgrad").locator(".vv-card-image[src]").wait_for()
    card(explain, "smoothgrad").locator(".vv-open").click()
    stage(explain).locator(".vv-caption").get_by_text("SmoothGrad").wait_for()
    expect_in_address(explain, "method=smoothgrad")


@pytest.mark.slow
@pytest.mark.browser
def test_a_slow_method_of_a_link_comes_onto_the_stage_once_it_was_computed(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url + "?tab=explain&image=tower&method=smoothgrad")
    stage(page).locator(".vv-note").get_by_text("Relevance is shown instead").wait_for()
    card(page, "smoothgrad").get_by_role("button", name="Compute").click()
    stage(page).locator(".vv-caption").get_by_text("SmoothGrad").wait_for()
    expect(stage(page).locator(".vv-note").get_by_text("Relevance is shown instead")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.browser
def test_a_slow_method_can_be_cancelled(explain: Any) -> None:
    one = card(explain, "kernel_shap")
    one.get_by_role("button", name="Compute").click()
    one.get_by_role("button", name="Cancel").click()
    one.get_by_text("This was stopped").wait_for()
    expect(one.get_by_role("button", name="Compute")).to_be_visible()


@pytest.mark.slow
@pytest.mark.browser
def test_brushing_patches_away_changes_the_answer_live(explain: Any) -> None:
    play = stage(explain)
    play.get_by_text("With all patches: lion").wait_for()
    expect(play.locator(".vv-answer-tick")).to_have_count(0)
    expect(play.locator(".vv-play-top")).not_to_contain_text("→", use_inner_text=True)
    before = play.locator(".vv-play-top").inner_text()
    marks = play.locator(".vv-play-marks")
    explain.mouse.move(*point_of(marks, 0.2, 0.5))
    explain.mouse.down()
    explain.mouse.move(*point_of(marks, 0.8, 0.5), steps=5)
    explain.mouse.up()
    expect(play.locator(".vv-gone")).to_have_count(10)  # columns 3 to 12 of 16
    play.get_by_text("Without 3.9% of the photo, lion").wait_for()
    expect(play.locator(".vv-answer-tick")).to_have_count(play.locator(".vv-answer").count())
    expect(play.locator(".vv-play-top")).to_contain_text("→", use_inner_text=True)
    play.get_by_role("button", name="all back").click()
    play.get_by_text("With all patches: lion").wait_for()
    expect(play.locator(".vv-play-top")).to_have_text(before, use_inner_text=True)


@pytest.mark.slow
@pytest.mark.browser
def test_the_slider_takes_the_best_patches_of_the_chosen_map(explain: Any) -> None:
    play = stage(explain)
    slider = play.get_by_role("slider", name="How many of the best patches are taken away, by Relevance")
    slider.fill("64")
    play.get_by_text("the best 25% of the patches are gone (64 of 256)").wait_for()
    play.get_by_text("Without 25% of the photo, lion falls from").wait_for()
    expect(play.locator(".vv-gone")).to_have_count(64)
    card(explain, "rollout").locator(".vv-open").click()
    play.get_by_role("slider", name="by Attention rollout").wait_for()
    expect(play.locator(".vv-gone")).to_have_count(64)
    # no photo stands there without its map
    expect(explain.locator("#vv-tab-explain img[src*='/vit_viz/photo/']")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.browser
def test_patches_can_be_taken_away_with_the_keyboard(explain: Any) -> None:
    play = stage(explain)
    play.locator(".vv-play-top li").first.wait_for()
    play.locator(".vv-play-stage").focus()
    for key in ("ArrowRight", "Space", "ArrowRight", "Space"):
        explain.keyboard.press(key)
    play.get_by_text("(2 of 256)").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_the_sanity_check_draws_its_curve(explain: Any) -> None:
    explain.locator("summary", has_text="Does the map show the model").click()
    explain.get_by_role("button", name="Re-initialise the weights, step by step").click()
    explain.locator("#vv-sanity-curve .vv-weights-line").wait_for()
    explain.get_by_text("rank correlation with the original is").first.wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_the_tab_fits_a_phone(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(app_url + "?tab=explain", width=390, dark=True)
    maps_ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    places = [
        page.locator(f"#vv-explain-picture {part}").bounding_box()["y"]
        for part in (".vv-image", ".vv-play-top")
    ]
    assert page.locator(".vv-play-slider").bounding_box()["y"] > 900 - 60  # at the foot of the screen
    cards = [one.bounding_box() for one in page.locator("#vv-gallery [data-method]").all()[:3]]
    assert [*places, cards[0]["y"]] == sorted([*places, cards[0]["y"]])
    assert cards[0]["y"] == cards[1]["y"] < cards[2]["y"]  # two columns


FINGER = """async ([from, to, rest]) => {
  const target = document.elementFromPoint(from[0], from[1]);
  const told = (name, [x, y]) => target.dispatchEvent(new PointerEvent(name, {
    pointerType: 'touch', pointerId: 5, clientX: x, clientY: y, bubbles: true, cancelable: true, isPrimary: true }));
  told('pointerdown', from);
  await new Promise((done) => setTimeout(done, rest));
  told('pointermove', to);
  told('pointerup', to);
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_a_finger_taps_one_patch_away_and_brushes_once_it_has_rested(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url + "?tab=explain", width=390)
    play = stage(page)
    play.get_by_text("With all patches: lion").wait_for()
    assert "pan-y" in play.locator(".vv-play-marks").evaluate("node => getComputedStyle(node).touchAction")
    here, there = (list(point_of(play.locator(".vv-play-marks"), across, 0.47)) for across in (0.22, 0.72))
    page.evaluate(FINGER, [here, there, 0])  # it slides: nothing is taken
    expect(play.locator(".vv-gone")).to_have_count(0)
    page.evaluate(FINGER, [here, here, 0])
    expect(play.locator(".vv-gone")).to_have_count(1)
    page.evaluate(FINGER, [here, there, 700])
    expect(play.locator(".vv-gone")).to_have_count(9)  # columns 3 to 11 of 16


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
    assert with_target(counted.session, subject, view).view.target == str(best)
    other = (best + 1) % 7
    chosen = with_target(counted.session, subject, replace(view, target=f"{other}-{best}"))
    assert chosen.words == f"class {other} and not class {best}"
    refused = with_target(counted.session, subject, replace(view, target="99"))
    assert refused.view.target == str(best)
    assert "0-6" in refused.problem


def test_classes_without_names_are_found_by_number() -> None:
    assert matching_classes(None, 7, " 3 ") == [{"index": 3, "name": "class 3"}]
    assert matching_classes(None, 7, "9") == []
    for words in ("", "-1", "3.0", "three", "\u00b2", "0" * 6 + "3"):
        assert matching_classes(None, 7, words) == [], words


def test_another_image_or_model_forgets_the_target_but_another_size_keeps_it() -> None:
    view = ViewState(target="3-4")
    assert view.on_subject(image="lion").target == ""
    assert view.on_subject(mode="crop").target == "3-4"
    with pytest.raises(ParameterError, match="target"):
        view.with_options({"target": "3-4-5"})


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
    monkeypatch.setattr(questions, "subject_of", lambda *_: subject)
    targeted = with_target(page.session, subject, view)
    assert targeted.view.target == ""
    said = target_value(page.session, subject, targeted)
    assert said["classes"] == []
    assert "own embedding" in said["words"]
    cards = gallery_value(questions.Questions(page, subject, targeted))["cards"]
    assert all("map" in card for card in cards if not card["slow"])
    asked = questions.Questions(page, subject, targeted)
    answer = answer_value(asked, "0,5,7")
    assert answer["top"][0]["name"] == "similarity to the whole photo"
    assert answer["top"][0]["now"] < 1
    assert answer["top"][0]["before"] == 1
    assert answer["top"][0]["target"] is True
    assert answer_value(asked, "")["top"] == [
        {"name": "similarity to the whole photo", "now": 1.0, "text": "1.00", "target": True}
    ]
    with pytest.raises(ParameterError, match="0 to 23"):
        answer_value(asked, "24")
    method = card_named("relevance")
    known = trust_value(asked, method, page.session.run(asked.trust_request(method)))
    assert " at random" in known["falls"]
    assert not any("class" in said for said in known["sentences"])
    assert "%" not in "".join(known["curves"]["deletion"]["texts"])


@pytest.mark.parametrize("map_scale", ["own", "share"])
def test_the_common_scale_ends_at_the_largest_share(map_scale: str) -> None:
    page, subject, view = headless()
    targeted = with_target(page.session, subject, view.with_options({"map_scale": map_scale}))
    cards = [
        card
        for card in gallery_value(questions.Questions(page, subject, targeted))["cards"]
        if not card["slow"]
    ]
    ends = {card["map"]["caption"].split(" to ")[-1].split(". ")[0].rstrip(".") for card in cards}
    assert (len(ends) == 1) == (map_scale == "share")


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.96, "96%"), (0.0996, "10%"), (0.0321, "3.2%"), (0.0004, "<0.1%"), (0.0, "0.0%"), (0.997, "99.7%")],
)
def test_a_probability_has_a_decimal_where_it_is_small_or_almost_certain(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("area", "outside", "words"),
    [
        (0.05, True, "falls 8.0 x faster than at random"),
        (0.01, True, "falls 40 x faster than at random"),
        (0.35, False, "falls no faster than at random"),
        (0.7, False, "falls slower than at random"),
    ],
)
def test_how_fast_the_answer_falls_is_said_beside_the_band(area: float, outside: bool, words: str) -> None:
    band = SimpleNamespace(interval=lambda _test: (0.4, 0.3, 0.6), value_range=(0.0, 1.0))
    scores: Any = SimpleNamespace(band=band, deletion_auc=area, beats_random=(outside, True))
    assert falls(scores) == words


@pytest.mark.parametrize(
    ("area", "outside", "words"),
    [(-0.741, True, "mean lead −0.74, at random 0.40"), (0.5, False, "falls no faster than at random")],
)
def test_a_lead_has_no_share_of_another_and_is_said_as_its_mean(
    area: float, outside: bool, words: str
) -> None:
    band = SimpleNamespace(interval=lambda _test: (0.4, 0.3, 0.6), value_range=(-np.inf, np.inf))
    scores: Any = SimpleNamespace(band=band, deletion_auc=area, beats_random=(outside, True))
    assert falls(scores) == words
