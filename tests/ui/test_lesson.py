"""The Lesson tab in a browser: it plays to its end, and the numbers in its pictures are those of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.kinds import RANDOM_MODELS, loaded
from tests.ui.conftest import served_here
from tests.ui.desk import app_of
from tests.ui.waits import click_at, expect, expect_in_address
from vit_viz.checkpoints import load
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

pytestmark = pytest.mark.browser

MODELS = {
    "random/registers": "class token and registers",
    "random/classes": "several class tokens, a table of its own size",
    "random/mean": "no class token, mean pooling",
    "random/pool": "no class token, attention pooling",
    "random/rotary": "rotary, class token and registers",
    "random/biases": "a bias for offsets in each block",
    "random/gray": "gray 60 x 100, patch 20, sinusoidal",
    "random/headless": "no head, gated MLP",
}
"""Kinds of models of random weights, by their names in links: as the Hub has names, which a page takes."""
LAYER, HEAD, PLACE = 1, 2, (1, 2)
STILL = {"layer": str(LAYER), "head": str(HEAD), "q": "1,2", "beat": "cut-grid"}
FASTER = "{ const now = performance.now.bind(performance); performance.now = () => 50 * now(); }"
"""A clock by which each frame takes as long as one may."""


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session(model="mini", device="cpu")
    session.add_model(load("mini", device="cpu"))
    for name, kind in MODELS.items():
        session.add_model(replace(loaded(**RANDOM_MODELS[kind]), name=name))
    return session


@pytest.fixture(scope="module")
def url(session: Session) -> Iterator[str]:
    with served_here(app_of(session), session) as address:
        yield address


def opened(visit: Callable[..., Any], url: str, model: str, link: dict[str, str], **how: Any) -> Any:
    """The lesson of a model and the photo of shapes."""
    link = {"tab": "lesson", "model": model, "image": "shapes", "mode": "stretch"} | link
    page = visit(f"{url}?{'&'.join(f'{name}={value}' for name, value in link.items())}", **how)
    page.locator(".vv-lesson-stage[data-drawn]").wait_for()
    return page


def numbers_of(page: Any, beat: str) -> dict[str, float]:
    """The numbers in the still of a beat, with all their digits."""
    expect(page.locator(f"[data-numbers='{beat}']")).to_be_attached()
    told = page.locator("[data-number]").evaluate_all(
        "all => all.map(({ dataset }) => [dataset.number, dataset.value])"
    )
    return {name: float(value) for name, value in told}


def test_it_plays_through_every_scene_and_waits_for_each_guess(visit: Callable[..., Any], url: str) -> None:
    page = opened(visit, url, "mini", {}, script=FASTER)
    lesson, guess = page.locator(".vv-lesson"), page.locator(".vv-lesson-guess[data-open] .vv-chip")
    for scene in ("cut", "ask", "heads", "depth", "answer"):
        expect(page.locator(f".vv-lesson:not([data-playing])[data-beat^={scene}]")).to_be_attached()
        guess.first.click()
    expect(page.locator(".vv-lesson:not([data-playing])[data-beat='answer-where']")).to_be_attached()
    assert lesson.locator("input[type=range]").evaluate("one => one.value === one.max")
    expect_in_address(page, "beat=answer-where")


@pytest.mark.parametrize("model", ["mini", *MODELS])
def test_every_still_has_the_numbers_of_the_answers(
    model: str, session: Session, visit: Callable[..., Any], url: str
) -> None:
    subject = Subject(model, "shapes", "stretch")
    answer = session.run(subject.request("lesson_attention", query=PLACE, layer=LAYER, head=HEAD))
    known = {"product": answer.products, "score": answer.scores, "weight": answer.weights}
    page = opened(visit, url, model, STILL)
    page.emulate_media(reduced_motion="reduce")
    seen = dict.fromkeys(known, 0)
    beat = "cut-grid"
    while page.get_by_role("button", name="One beat on").is_enabled():
        page.keyboard.press("ArrowRight")
        expect(page.locator(f".vv-lesson:not([data-beat='{beat}'])")).to_be_attached()
        beat = page.locator(".vv-lesson").get_attribute("data-beat")
        expect(page.locator(f".vv-lesson-stage[data-drawn='{beat}']:not([data-waits])")).to_be_attached()
        numbers = numbers_of(page, beat)
        assert np.isfinite(list(numbers.values())).all(), beat
        for name, value in numbers.items():
            kind, _, token = name.partition(" ")
            if kind in known:
                seen[kind] += 1
                size = np.abs(known[kind][np.isfinite(known[kind])]).max()
                assert abs(value - known[kind][int(token)]) <= 1e-5 * size, (beat, name)
    assert beat == "answer-where" or beat.startswith("answer")
    assert all(seen.values())


RED = """film => {
  const [photo, canvas] = ['.vv-lesson-photo', 'canvas'].map((one) => film.querySelector(one));
  const at = [photo.offsetLeft + 0.25 * photo.offsetWidth, photo.offsetTop + 0.26 * photo.offsetHeight];
  const scale = canvas.width / canvas.clientWidth;
  const [red, green] = canvas.getContext('2d').getImageData(scale * at[0], scale * at[1], 1, 1).data;
  return red - green;
}"""
"""How red the photo of shapes is in its red ellipse, of 255."""


@pytest.mark.parametrize(("model", "red", "look"), [("gray", 0, "grayscale(1)"), ("registers", 138, "none")])
def test_a_model_that_sees_no_colours_is_drawn_in_gray(
    model: str, red: int, look: str, visit: Callable[..., Any], url: str
) -> None:
    page = opened(visit, url, f"random/{model}", STILL | {"beat": "ask-stop"})
    expect(page.locator("[data-numbers=ask-stop]")).to_be_attached()
    assert page.locator(".vv-lesson-film").evaluate(RED) == pytest.approx(red, abs=12)
    expect(page.locator(".vv-lesson-strip .vv-lesson-piece").first).to_have_css("filter", look)


def test_the_strip_is_that_of_the_model(visit: Callable[..., Any], url: str) -> None:
    page = opened(visit, url, "random/rotary", STILL)
    strip = page.locator(".vv-lesson-strip")
    expect(strip).to_contain_text("3 blocks: attention (5 heads), MLP (48 numbers wide)")
    expect(strip).to_contain_text("places turn queries and keys, the class token and 4 registers")
    expect(strip.locator(".vv-lesson-block")).to_have_count(3)
    expect(strip.locator(".vv-lesson-attn").first.locator("i")).to_have_count(5)
    page = opened(visit, url, "random/headless", STILL)
    expect(page.locator(".vv-lesson-strip")).to_contain_text("RMS norm")
    expect(page.locator(".vv-lesson-strip")).to_contain_text("the vector of the photo")
    expect(page.locator("[data-part=head]")).to_have_count(0)


def test_a_patch_is_chosen_by_a_click_and_by_keys(visit: Callable[..., Any], url: str) -> None:
    page = opened(visit, url, "random/registers", STILL)
    photo = page.locator(".vv-lesson-photo")
    click_at(photo, 0.9, 0.1)  # of 4 x 6 patches
    expect_in_address(page, "q=0,5")
    photo.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect_in_address(page, "q=1,5")


def test_it_survives_another_window_photo_and_model_while_it_plays(
    visit: Callable[..., Any], url: str
) -> None:
    page = opened(visit, url, "random/registers", {})
    lesson = page.locator(".vv-lesson[data-playing]")
    for width in (390, 800, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        expect(lesson).to_be_attached()
        seen = page.locator(".vv-lesson-film").evaluate("one => one.clientWidth")
        expect(page.locator(".vv-lesson-film canvas").first).to_have_css("width", f"{seen}px")
    for link in ({"image": "lion"}, {"model": "random/gray"}):
        page.evaluate("link => window.vit_viz('web/kit/page.js').thePage().store.look(link)", link)
        expect(page.locator(".vv-lesson[aria-busy=false]")).to_be_attached()
    expect(page.locator(".vv-lesson-strip")).to_contain_text("15 patches")


def test_the_first_beat_needs_no_answer(visit: Callable[..., Any], url: str) -> None:
    page = visit(f"{url}?model=mini&image=shapes&mode=stretch")
    page.route("**/lesson_*", lambda _: None)  # which never comes
    page.get_by_role("tab", name="Lesson").click()
    expect(page.locator(".vv-lesson-stage[data-drawn='cut-see']")).to_be_attached()
    page.locator("[data-part=embed]").click()
    expect(page.locator(".vv-lesson-stage[data-waits=tokens] .vv-lesson-say")).to_contain_text("computing")


@pytest.mark.parametrize("beat", ["cut-see", "ask-stop", "heads-all", "depth-alike", "answer-norm"])
def test_a_link_opens_its_beat_however_late_the_numbers_come(
    beat: str, visit: Callable[..., Any], url: str
) -> None:
    page = visit(f"{url}?model=random/registers&image=shapes&mode=stretch")
    held: list[Any] = []
    for question in ("lesson_*", "decomposition*"):
        page.route(f"**/api/v1/{question}", lambda route: held.append(route))
    page.goto(f"{url}?tab=lesson&model=random/registers&image=shapes&mode=stretch&beat={beat}")
    waits = "" if beat == "cut-see" else "[data-waits]"
    stage = page.locator(f".vv-lesson[data-beat={beat}] .vv-lesson-stage{waits}")
    expect(stage.locator(".vv-lesson-say")).to_contain_text("computing" if waits else "This is the photo")
    expect(page.locator("[data-part=embed]")).to_be_visible()
    assert held
    page.unroute_all()  # which lets go what is held
    expect(page.locator(f".vv-lesson-stage[data-drawn={beat}]:not([data-waits])")).to_be_attached()


COUNTED = """{
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  window.drawn = {};
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    const frame = document.timeline.currentTime;
    window.drawn[frame] = (window.drawn[frame] ?? 0) + 1;
    clear.apply(this, area);
  };
}"""
"""How often the stage is drawn in each frame, by the frame's time."""


def test_it_is_drawn_once_before_it_is_seen_whatever_changes(visit: Callable[..., Any], url: str) -> None:
    page = opened(visit, url, "random/registers", STILL, script=COUNTED)
    for part in ("embed", "mlp2", "head", "attn0", "answer"):
        page.locator(f"[data-part={part}]").first.click()
        expect(page.locator(".vv-lesson[aria-busy=false][data-playing]")).to_be_attached()
    page.set_viewport_size({"width": 700, "height": 800})
    expect(page.locator(".vv-lesson-stage:not([data-wide])")).to_be_attached()
    assert page.evaluate("Math.max(...Object.values(window.drawn))") == 1


def test_full_screen_is_in_the_link(visit: Callable[..., Any], url: str) -> None:
    page = opened(visit, url, "random/registers", STILL | {"full": "1"})
    box = page.locator(".vv-lesson").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1440, 900)
    page.get_by_role("button", name="Leave full screen").click()
    expect(page.locator(".vv-lesson[data-full]")).to_have_count(0)
