"""The walkthrough: what each step says for models of every kind, and how it behaves in a browser."""

from __future__ import annotations

import ast
import html
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.ui.views import view_with
from tests.ui.waits import click_at, expect, expect_in_address
from tests.ui.walkthrough import kinds
from tests.walkthrough.test_numbers import RANDOM_MODELS
from vit_viz.checkpoints import LoadedModel
from vit_viz.figures.lettering import number
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer
from vit_viz.session.session import Session
from vit_viz.ui.walkthrough.routes import screen_of
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import PAPERS, STEPS, Choice, Code, Screen, Slider, code_html, html_of
from vit_viz.views.state import ViewState

RISKY = "<img src=x onerror=alert(1)> ${window.x}"
NUMBERS = range(1, len(STEPS) + 1)


def _loaded(seed: int = 0, **options: Any) -> LoadedModel:
    """A tiny model of random weights, with a class whose name is meant ill."""
    plain = kinds.loaded(seed, **options)
    return replace(plain, labels=Labels((RISKY, *kinds.CLASSES[1:])))


def _scene(loaded: LoadedModel, **view: Any) -> StepInput:
    session = Session(model=loaded.name, device="cpu")
    session.add_model(loaded)
    return StepInput.of(session, view_with(image="shapes", mode="stretch", **view), "")


def _text(screen: Screen, step: int) -> str:
    """What a reader sees of a step, without its code."""
    seen = re.sub(r"<figure class=vv-w-code>.*?</figure>", "", html_of(screen, step), flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", " ", seen))


# --- without a browser


@pytest.mark.parametrize("options", RANDOM_MODELS.values(), ids=RANDOM_MODELS.keys())
def test_every_step_has_all_its_parts_for_every_kind_of_model(options: dict[str, Any]) -> None:
    scene = _scene(_loaded(**options))
    for step in NUMBERS:
        screen = screen_of(scene, step)
        assert len(screen.words) == 3
        assert all(sentence.endswith(".") for sentence in screen.words)
        assert all((screen.formula, screen.shapes, screen.answer))
        assert screen.question.endswith("?")
        assert screen.control is not None or screen.shared
        assert all(PAPERS[name][1].startswith("https://arxiv.org/abs/") for name in screen.papers)
        for code in screen.code:
            assert code_html(code).count("<mark>") >= len(code.marks) > 0
        assert f"<h2>{step}. " in html_of(screen, step)
        assert "nan" not in _text(screen, step).lower().split()


def test_a_gray_image_is_worked_out_with_its_own_numbers() -> None:
    scene = _scene(_loaded(**RANDOM_MODELS["gray 60 x 100, patch 20, sinusoidal"]))
    text = _text(screen_of(scene, 1), 1)
    assert "60 / 20 x 100 / 20 = 3 x 5 = 15" in text
    assert "a row of 400 numbers" in text
    assert "[15, 400]" in text


def test_each_step_says_other_numbers_of_another_model() -> None:
    first, second = _scene(_loaded(0)), _scene(_loaded(1))
    for step in NUMBERS[1:]:
        assert _text(screen_of(first, step), step) != _text(screen_of(second, step), step)
    coarse = _scene(_loaded(patch_size=(8, 6)))
    assert _text(screen_of(first, 1), 1) != _text(screen_of(coarse, 1), 1)


def test_the_screen_has_the_numbers_of_the_trace() -> None:
    scene = _scene(_loaded(reg_tokens=4), layer=1, head=2, query="1,3", step=5)
    token = scene.trace.layout.token((1, 3))
    row = scene.trace.attention(1, 2, token)[0, 0]
    text = _text(screen_of(scene, 5), 5)
    assert f"{float(row.max()):.2%}" in text
    assert scene.trace.layout.name(int(row.argmax())) in text
    query = scene.trace.q[1, 2, token].numpy()
    assert f"{query.size} numbers from {number(float(query.min()))} to {number(float(query.max()))}" in text
    assert scene.trace.logits is not None
    probabilities = scene.trace.logits.softmax(-1)
    assert f"{float(probabilities.max()):.1%}" in _text(screen_of(scene, 8), 8)


def test_a_control_changes_what_is_shown() -> None:
    scene = _scene(_loaded(reg_tokens=4))
    for step in NUMBERS:
        control = screen_of(scene, step).control
        if isinstance(control, Slider):
            other = control.low if control.value != control.low else control.high
        elif isinstance(control, Choice):
            other = len(control.options) - 1
        else:
            continue
        played = replace(scene, view=scene.view.with_options({"step_option": other}))
        assert html_of(screen_of(played, step), step) != html_of(screen_of(scene, step), step)


def test_the_layer_changes_the_steps_that_name_it() -> None:
    loaded = _loaded(reg_tokens=4)
    steps = [step for step in NUMBERS if "layer" in screen_of(_scene(loaded), step).shared]
    assert steps
    for step in steps:
        texts = {_text(screen_of(_scene(loaded, layer=layer), step), step) for layer in range(3)}
        assert len(texts) == 3


def test_a_label_that_is_meant_ill_stays_text() -> None:
    loaded = _loaded()
    with torch.no_grad():
        loaded.model.head.bias[0] += 100.0  # type: ignore[index,union-attr]
    page = html_of(screen_of(_scene(loaded), 8), 8)
    assert html.escape(RISKY) in page
    assert "<img src=x" not in page


def test_the_code_is_what_is_on_disk() -> None:
    shown = html.unescape(re.sub(r"<[^>]+>", "", code_html(Code(VisionTransformer.classify, ("self.head",)))))
    source = inspect.getsource(VisionTransformer.classify)
    statements = ast.unparse(ast.parse("class A:\n" + source).body[0].body[0].body[1])  # type: ignore[attr-defined]
    assert statements.splitlines()[0] in shown
    assert f"lines {inspect.getsourcelines(VisionTransformer.classify)[1]}-" in shown


def test_the_class_token_is_followed_until_a_patch_is_pinned() -> None:
    loaded = _loaded(reg_tokens=4)
    assert (_scene(loaded).token, _scene(loaded).place) == (0, (2, 3))
    pinned = _scene(loaded, query="1,5")
    assert (pinned.token, pinned.place) == (5 + 6 + 5, (1, 5))
    assert _scene(loaded, query="register 2").token == 3
    without = _scene(_loaded(class_token=False, pooling="mean"))
    assert without.token == 2 * 6 + 3


def test_all_steps_share_one_trace_and_run_the_model_no_more_than_they_must() -> None:
    session = Session(model="mini", device="cpu")
    model, runs = session.model("mini").model, []
    model.register_forward_hook(lambda *_: runs.append(1))
    for expected in (1, 0):  # the trace; then it is kept
        StepInput.of(session, ViewState(image="shapes"), "")
        assert len(runs) == expected
        runs.clear()
    for step in NUMBERS:
        html_of(screen_of(StepInput.of(session, ViewState(image="shapes"), ""), step), step)
        assert len(runs) == (2 if step == 4 else 0)  # without positions, and with shuffled patches
        runs.clear()


# --- in a browser


def _wait(page: Any, step: int) -> None:
    page.locator(f"#vv-w-content[aria-busy=false] .vv-w[data-step='{step}']").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.slow)])
def test_a_visitor_walks_through_all_steps_which_fit_the_page(
    visit: Callable[..., Any], app_url: str, width: int
) -> None:
    page = visit(f"{app_url}?tab=walkthrough&step=1&layer=2&head=3", width=width)
    content = page.locator("#vv-w-content")
    for step in NUMBERS:
        _wait(page, step)
        expect_in_address(page, f"step={step}")
        chosen = page.locator("#vv-w-steps label:has(:checked)")
        expect(chosen).to_contain_text(STEPS[step - 1], use_inner_text=True)
        expect(content.locator(".vv-w-words p")).to_have_count(3)
        page.wait_for_function(
            """() => [...document.querySelectorAll('#vv-w-content img')].every(
                (i) => (i.closest('.vv-w-dark') ? !i.clientWidth : i.naturalWidth && i.clientWidth > 8))"""
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if step < NUMBERS[-1]:
            page.locator("#vv-w-next").click()
    expect(page.locator("#vv-w-next")).to_be_disabled()
    page.go_back()
    _wait(page, 7)
    page.locator("#vv-w-steps label", has_text=STEPS[4]).click()
    _wait(page, 5)
    expect(content).to_contain_text("layer 2, head 3", use_inner_text=True)
    click_at(page.locator("#vv-w-photo .vv-image"), (3 + 0.5) / 16, (5 + 0.5) / 16)
    content.get_by_text("query of patch (5, 3)").wait_for()
    page.locator("#vv-w-photo .vv-caption").get_by_text("patch (5, 3) looks at").wait_for()
    content.locator(".vv-w-quiz summary").press("Enter")
    expect(content.locator(".vv-w-quiz p").first).to_be_visible()
