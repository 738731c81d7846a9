"""What the answer is made of, on the Explain tab: the sum, the maps that are fetched, and what a switch promised and did."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import gradio as gr
import numpy as np
import pytest

import vit_viz as vv
from tests.ui.desk import COLS, HEADS, LAYERS, OWNER, ROWS, app_of, arrived, odd_picture, odd_session
from tests.ui.test_access import AXE
from tests.ui.waits import expect
from vit_viz.errors import ParameterError
from vit_viz.session.edits import ModelEdits
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain import parts
from vit_viz.ui.explain.parts import term_bytes
from vit_viz.views.state import ViewState

FACE = "&explain=parts"


def made_of(demo: gr.Blocks, image: str, more: str = "") -> Any:
    """A page that shows the face, and what the room was told last."""
    desk = arrived(demo, image, "explain", FACE + more)
    return desk, desk.shown["vv-parts"]["value"]


def logit(session: Session, image: str, index: int, edits: str = "") -> float:
    subject = Subject("odd", image, "crop", OWNER, edits=ModelEdits.parse(edits))
    logits = session.trace_of(subject).logits
    assert logits is not None
    return float(logits[index])


def test_the_parts_sum_to_the_logit_and_no_map_is_made(demo: gr.Blocks, session: Session, image: str) -> None:
    desk, value = made_of(demo, image, "&target=3")
    now = value["now"]
    assert value["state"] == "ready"
    assert np.shape(now["heads"]) == (LAYERS, HEADS)
    assert np.shape(now["mlps"]) == (LAYERS,)
    assert sum(part for _, part in value["sum"]) == pytest.approx(logit(session, image, 3), abs=1e-4)
    assert now["total"] == pytest.approx(now["output"], abs=1e-4)
    assert "vv-gallery" not in desk.shown  # no gradient, no card
    assert "Fifteen" not in str(desk.shown["vv-target"])
    assert desk.shown["vv-target"]["value"]["face"] == "parts"


def test_the_maps_and_what_came_from_other_tokens_are_each_heads_part(
    demo: gr.Blocks, session: Session, image: str
) -> None:
    _, value = made_of(demo, image, "&target=3-1")
    view = ViewState(target="3-1")
    subject = Subject("odd", image, "crop", OWNER)
    maps = np.frombuffer(term_bytes(session, subject, view), np.float32)
    maps = maps.reshape(LAYERS, HEADS, ROWS * COLS)
    expected = np.sum(value["now"]["heads"]) - maps.sum(dtype=np.float64)
    assert sum(value["outside"].values()) == pytest.approx(expected, abs=1e-4)
    one = vv.decomposition(session.model("odd"), odd_picture(), target=(3, 1), mode="crop")
    np.testing.assert_allclose(maps[2, 4], one.maps[2, 4].ravel(), rtol=1e-4, atol=1e-5)


def test_a_switch_takes_a_head_off_and_on_and_keeps_the_class(demo: gr.Blocks, image: str) -> None:
    desk, before = made_of(demo, image)
    first = desk.shown["vv-target"]["value"]["chosen"]
    desk.act("vv-parts", "switch", data={"place": "1.2"})
    assert (desk.view().edits, desk.view().target) == ("off 1.2", str(first))
    desk.act("vv-parts", "switch", data={"place": "2"})
    assert desk.view().edits == "off 1.2 2.0 2.1 2.2 2.3 2.4"
    desk.act("vv-parts", "switch", data={"place": "2"})
    desk.act("vv-parts", "switch", data={"place": "1.2"})
    assert desk.view().edits == ""
    after = desk.shown["vv-parts"]["value"]
    assert after["effect"] is None
    assert after["now"]["heads"] == before["now"]["heads"]


@pytest.mark.parametrize("place", ["3", "0.5", "", "1.2.3", "-1", "x"])
def test_a_head_that_is_not_there_is_refused(demo: gr.Blocks, image: str, place: str) -> None:
    desk, _ = made_of(demo, image)
    with pytest.raises(gr.Error, match="layers 0-2 with heads 0-4"):
        desk.act("vv-parts", "switch", data={"place": place})


@pytest.mark.parametrize(("off", "others"), [("0.1", ""), ("2.3", "temperature 1=0.5")])
def test_what_was_promised_is_the_part_and_what_it_did_is_what_the_model_returns(
    demo: gr.Blocks, session: Session, image: str, off: str, others: str
) -> None:
    _, whole = made_of(demo, image, f"&target=3&edits={others}")
    _, value = made_of(demo, image, f"&target=3&edits=off {off};{others}")
    layer, head = map(int, off.split("."))
    effect = value["effect"]
    assert effect["promised"] == pytest.approx(-whole["now"]["heads"][layer][head], abs=1e-5)
    did = logit(session, image, 3, f"off {off};{others}") - logit(session, image, 3, others)
    assert effect["did"] == pytest.approx(did, abs=1e-4)
    assert f"Without {layer} · {head}, the logit of animal 3" in effect["words"]
    assert f"{abs(effect['did']):.{value['decimals']}f}" in effect["words"]
    assert value["now"]["heads"][layer][head] == pytest.approx(0, abs=1e-6)


def test_the_last_layer_has_no_later_one_but_the_norm_and_its_mlp(demo: gr.Blocks, image: str) -> None:
    _, value = made_of(demo, image, "&target=3&edits=off 2.0")
    changed = np.abs(np.subtract(value["now"]["heads"], value["before"]["heads"]))
    scale = np.divide(value["now"]["heads"], value["before"]["heads"])[:2]
    np.testing.assert_allclose(scale, scale[0, 0], rtol=1e-3)  # all earlier parts by the scale of the norm
    assert changed[2, 0] > 0


def test_without_classes_nothing_is_switched_off() -> None:
    session = odd_session(num_classes=0)
    image = session.add_upload(odd_picture(), owner=OWNER)
    _, value = made_of(app_of(session), image, "&edits=off 1.1")
    assert value["why_not"] == parts._EMBEDDING
    assert value["effect"] is None


def test_a_model_that_has_no_such_sum_says_so_in_a_sentence(
    demo: gr.Blocks, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ParameterError("A sum of direct parts needs a model of vit_viz's own.")

    monkeypatch.setattr(parts, "decomposed", refused)
    _, value = made_of(demo, image)
    assert (value["state"], value["error"]) == (
        "error",
        "A sum of direct parts needs a model of vit_viz's own.",
    )


READY = ".vv-parts[data-state=ready]"
CAPTION = ".vv-parts-caption"


@pytest.mark.slow
@pytest.mark.browser
def test_pointing_shows_a_head_and_a_click_switches_it_off(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=explain&image=lion", ready=False)
    page.locator("#vv-target").get_by_role("button", name="What it is made of").click()
    page.locator(READY).wait_for()
    page.wait_for_function("location.search.includes('explain=parts')")
    expect(page.locator("#vv-gallery")).to_be_hidden()
    expect(page.locator(CAPTION)).to_contain_text("all heads together", use_inner_text=True)
    total = float(re.search(r"Exactly ([\d.]+):", page.locator(".vv-sum-title").inner_text()).group(1))

    cell = page.locator('[data-place="4.3"]')
    gave = cell.locator(".vv-number").inner_text()
    painted = "() => document.querySelector('.vv-parts-photo .vv-map').toDataURL()"
    everything = page.evaluate(painted)
    cell.hover()
    expect(page.locator(CAPTION)).to_contain_text(f"4 · 3, {gave} in all", use_inner_text=True)
    assert page.evaluate(painted) != everything
    promised = gave.replace("+", "−")
    expect(page.locator(".vv-parts-switch")).to_have_text(f"switch off 4 · 3 (promised {promised})")
    page.locator(".vv-parts-photo .vv-stage").hover()
    expect(page.locator(CAPTION)).to_contain_text("Patch (", use_inner_text=True)
    expect(cell.locator(".vv-number")).not_to_have_text(gave, use_inner_text=True)

    cell.click()
    effect = page.locator(".vv-parts-effect")
    expect(effect).to_be_visible()
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(effect.locator(".vv-number").first).to_have_text(promised)
    page.wait_for_function("location.search.includes('edits=off+4.3')")
    words = effect.locator(".vv-effect-words").inner_text()
    assert f"the logit of lion falls from {total:.2f} to" in words

    other = visit(page.url, ready=False)
    expect(other.locator(".vv-effect-words")).to_have_text(words, use_inner_text=True)
    other.evaluate(AXE.read_text("utf-8"))
    found = other.evaluate(
        "axe.run('#vv-parts, #vv-target').then(({ violations }) => violations.map(({ id }) => id))"
    )
    assert found == []
    other.locator("#vv-target").get_by_role("button", name="Why", exact=True).click()
    other.locator("#vv-explain-picture .vv-image:not([hidden])").wait_for()
    expect(other.locator("#vv-parts")).to_be_hidden()

    cell.focus()
    page.keyboard.press("Enter")
    expect(effect).to_be_hidden()
    page.keyboard.press("ArrowUp")
    expect(page.locator('[data-place="3.3"]')).to_be_focused()
    page.locator(".vv-parts-save").click()
    page.locator("dialog[open]").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_on_a_phone_the_first_tap_shows_a_head_and_the_second_switches_it(browser: Any, app_url: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(f"{app_url}?tab=explain&image=cheetah{FACE}&target=102")
    page.locator(READY).wait_for()
    cell = page.locator('[data-place="5.2"]')
    cell.tap()
    expect(page.locator(CAPTION)).to_contain_text("through 5 · 2", use_inner_text=True)
    expect(cell).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    cell.tap()
    expect(cell).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("location.search.includes('edits=off+5.2')")
    context.close()
