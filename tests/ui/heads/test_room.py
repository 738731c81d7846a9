"""The Heads tab in a real browser: the pointer, the keys, the links, the names, and a causal map to its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.ui.waits import expect, expect_in_address
from vit_viz import samples

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOM = "#vv-heads"


def ready(page: Any, measure: str) -> None:
    page.wait_for_function(f"document.querySelector('{ROOM} .vv-heads')?.closest('[data-ready={measure}]')")


def cell(page: Any, layer: int, head: int) -> Any:
    return page.locator(f"{ROOM} td[data-layer='{layer}'][data-head='{head}']")


def caption(page: Any, start: str) -> None:
    page.wait_for_function(
        f"document.querySelector('{ROOM} .vv-heads-caption').textContent.startsWith('{start}')"
    )


def test_hands_and_keys_in_the_heads_tab(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=heads&image=cheetah&layer=2&head=3")
    ready(page, "distance")
    trace = vv.trace("mini", samples.sample("cheetah"))
    distance = vv.head_table(trace, measure="distance").values
    shown = page.locator(f"{ROOM} .vv-heads-number").all_inner_texts()
    np.testing.assert_allclose([float(text) for text in shown], distance.ravel(), atol=0.51)
    expect(cell(page, 2, 3)).to_have_attribute("aria-selected", "true")

    cell(page, 5, 1).hover()
    caption(page, "Layer 5, head 1: what the class token looks at")
    expect(cell(page, 5, 1)).to_have_class(re.compile("vv-hovered"))
    row = np.sort(trace.attention(layer=5, heads=[1], queries=[0])[0, 0, trace.layout.patch_slice].numpy())
    page.wait_for_function(
        """([part, lit, most]) => {
          const said = document.querySelector(part).textContent.match(/from ([\\d.]+)% .* at most ([\\d.]+)%/);
          return said && Math.abs(said[1] / lit - 1) < 0.01 && Math.abs(said[2] / most - 1) < 0.01;
        }""",
        arg=[f"{ROOM} .vv-heads-scale", 100 * float(row[round(0.99 * (len(row) - 1))]), 100 * float(row[-1])],
    )
    cell(page, 4, 0).click()
    page.wait_for_url(re.compile("layer=4.*head=0|head=0.*layer=4"))

    cell(page, 4, 0).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    caption(page, "Layer 5, head 1")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("layer=5"))
    expect(cell(page, 5, 1)).to_have_attribute("aria-selected", "true")

    page.locator(f"{ROOM} .vv-heads-measure").select_option("entropy")
    page.wait_for_url(re.compile("measure=entropy"))
    ready(page, "entropy")
    page.locator(f"{ROOM} [data-order=value]").click()
    page.wait_for_url(re.compile("order=value"))
    entropy = vv.head_table(trace, measure="entropy").values
    first = [page.locator(f"{ROOM} tbody tr").nth(layer).locator("td").first for layer in range(6)]
    for one, head in zip(first, entropy.argmax(1), strict=True):
        expect(one).to_have_text(f"head {head}", use_inner_text=True)

    page.locator(f"{ROOM} .vv-heads-stage").click(position={"x": 5, "y": 5})
    page.wait_for_url(re.compile("q=0(,|%2C)0"))
    caption(page, "Layer 5, head 1: what the patch (0, 0) looks at")
    page.locator("#vv-tabs button[role=tab]", has_text="Look").first.click()
    page.locator("#vv-explorer [data-vv=root][data-state=ready]").wait_for(state="attached")
    expect_in_address(page, "layer=5", "head=1")


def test_a_name_stands_out_and_a_causal_map_runs_to_its_end(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=heads&image=cheetah&measure=effect")
    ready(page, "effect")
    trace = vv.trace("mini", samples.sample("cheetah"))
    content = [
        head
        for head in vv.run("mini", samples.sample("cheetah"), "head_names").heads
        if head.name == "content"
    ]
    chip = page.locator(f"{ROOM} .vv-heads-kinds .vv-chip[data-kind=content]")
    expect(chip.locator(".vv-number")).to_have_text(str(len(content)), use_inner_text=True)
    chip.focus()
    page.keyboard.press("Enter")
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(page.locator(f"{ROOM} td:not(.vv-faded)")).to_have_count(len(content))
    page.keyboard.press("Enter")
    expect(page.locator(f"{ROOM} td.vv-faded")).to_have_count(0)

    one = content[0]
    cell(page, one.layer, one.head).click()
    expect(page.locator(f"{ROOM} .vv-heads-name")).to_contain_text("content", use_inner_text=True)
    evidence = page.locator(f"{ROOM} .vv-heads-evidence > li")
    expect(evidence).to_have_count(7)
    expect(evidence.first).to_contain_text("at least 0.5", use_inner_text=True)
    row = trace.attention(layer=one.layer, heads=[one.head], queries=[0])[
        0, 0, trace.layout.patch_slice
    ].numpy()
    everyone = [
        (float(np.corrcoef(row, other)[0, 1]), layer, head)
        for layer in range(6)
        for head, other in enumerate(
            trace.attention(layer=layer, queries=[0])[:, 0, trace.layout.patch_slice].numpy()
        )
        if (layer, head) != (one.layer, one.head)
    ]
    like, layer, head = max(everyone)
    kin = page.locator(f"{ROOM} .vv-heads-kin-tile").first
    expect(kin).to_have_attribute(
        "aria-label", f"{layer} \u00b7 {head}, {like:.2f}; layer {layer}, head {head}, correlation {like:.2f}"
    )

    expect(page.locator(f"{ROOM} .vv-heads-cost")).to_contain_text("36 heads", use_inner_text=True)
    page.locator(f"{ROOM} .vv-heads-start").click()
    page.wait_for_function(
        f"document.querySelector('{ROOM} .vv-heads-job').textContent.includes('over all 36 heads')"
    )
    effect = vv.ablate_heads("mini", samples.sample("cheetah")).values
    shown = [
        float(text.replace("\u2212", "-"))
        for text in page.locator(f"{ROOM} .vv-heads-number").all_inner_texts()
    ]
    np.testing.assert_allclose(shown, effect.ravel(), atol=0.051)
    face(page, "depth")
    expect(page.locator(f"{ROOM} .vv-heads-dot")).to_have_count(36)
    face(page, "atlas")

    page.locator(f"{ROOM} .vv-heads-classes .vv-why .vv-chip").nth(1).click()
    page.wait_for_url(re.compile("target="))
    page.locator(f"{ROOM} .vv-heads-start:visible").wait_for()  # nothing is known of the other class
    page.locator(f"{ROOM} .vv-heads-measure").select_option("estimate")
    ready(page, "estimate")
    expect(page.locator(f"{ROOM} .vv-bar > .vv-unit").first).to_have_text(
        re.compile("^change of the logit of"), use_inner_text=True
    )


def face(page: Any, name: str) -> None:
    page.locator(f"{ROOM} .vv-heads-faces [data-face={name}]").click()
    page.wait_for_function(f"document.querySelector('#vv-heads-faces').dataset.face === '{name}'")


def test_four_faces_on_one_screen_share_the_chosen_head(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=heads&image=cheetah")
    page.set_viewport_size({"width": 1440, "height": 900})
    low = "document.documentElement.scrollHeight <= 1300"
    ready(page, "distance")
    page.locator(f"{ROOM} .vv-heads-mini-part[data-ready]").wait_for()
    found = page.locator(f"{ROOM} .vv-heads-found")
    distance = vv.head_table(vv.trace("mini", samples.sample("cheetah")), measure="distance").values
    layer, head = divmod(int(distance.argmax()), 6)
    expect(found).to_contain_text(f"in layer {layer}, head {head}", use_inner_text=True)
    page.wait_for_function(low)
    cell(page, 4, 1).click()
    page.wait_for_url(re.compile("layer=4"))

    face(page, "depth")
    page.wait_for_url(re.compile("face=depth"))
    means = distance.mean(1)
    expect(found).to_contain_text(
        f"layer {means.argmax()} (mean" if "highest" in found.inner_text() else "differs more",
        use_inner_text=True,
    )
    expect(page.locator(f"{ROOM} .vv-heads-dot.vv-chosen")).to_have_attribute("title", "layer 4, head 1")
    page.evaluate(  # in one step: dots are made anew where the answer to the choice of a face arrives
        "document.querySelector(`#vv-heads .vv-heads-dot[title='layer 3, head 5']`).click()"
    )
    page.wait_for_url(re.compile("layer=3"))
    page.wait_for_function(low)

    face(page, "matrix")
    expect(page.locator("#vv-head-matrix .vv-matrix-caption")).to_contain_text(
        "Layer 3, head 5", use_inner_text=True
    )
    expect(page.locator(f"{ROOM} .vv-heads-main")).to_be_hidden()
    page.wait_for_function(low)
    page.locator("#vv-head-matrix .vv-matrix-layer").select_option("2")
    page.wait_for_url(re.compile("layer=2"))

    face(page, "surgery")
    expect(page.locator("#vv-heads-matrix")).to_be_hidden()
    expect(cell(page, 2, 5)).to_have_attribute("aria-selected", "true")
    page.wait_for_function(low)
    page.wait_for_url(re.compile("face=surgery"))
    again = visit(page.url)
    ready(again, "distance")
    expect(again.locator("#vv-heads-faces")).to_have_attribute("data-face", "surgery")
