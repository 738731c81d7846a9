"""The Tokens tab in a real browser: the table under the pointer without a request, pinning, keys, and each question."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ui.waits import click_at, expect, point_of
from vit_viz import samples

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def ready(page: Any, measure: str) -> None:
    page.wait_for_function(
        f"document.querySelector('#vv-tokens .vv-room')?.closest('[data-ready={measure}]')"
    )


def show(page: Any, measure: str) -> None:
    page.locator(f"#vv-tokens [data-option=token_measure] [data-value={measure}]").click()


def says(page: Any, part: str, words: str) -> None:
    expect(page.locator(f"#vv-tokens .vv-room-{part}")).to_contain_text(words, use_inner_text=True)


def centre_of(page: Any, row: int, col: int, grid: tuple[int, int]) -> tuple[Any, float, float]:
    """Of a patch: the photo, and the shares of its width and height."""
    return page.locator("#vv-tokens .vv-room-main-stage"), (col + 0.5) / grid[1], (row + 0.5) / grid[0]


def cell(page: Any, measure: str, state: int) -> Any:
    return page.locator(f"#vv-tokens [data-cell='{measure} {state}']")


OTHER = """before => {
  const canvas = document.querySelector("#vv-tokens [data-cell='similarity 2'] canvas");
  return canvas.toDataURL() !== before;
}"""
"""Whether a small photo shows something else by now."""


def same_direction(similar: Any, row: int, col: int) -> int:
    """How many other patches lie within 45 degrees."""
    return int((similar >= np.sqrt(0.5)).sum() - (similar[row, col] >= np.sqrt(0.5)))


def test_the_table_follows_hands_and_keys(visit: Callable[..., Any], app_url: str) -> None:
    import vit_viz as vv

    page = visit(f"{app_url}?tab=tokens&image=cheetah")
    ready(page, "similarity")
    expect(page.locator("#vv-tokens .vv-room-heads th")).to_have_count(8)
    trace = vv.trace("mini", samples.sample("cheetah"), keep_residual=True)
    grid = trace.layout.grid
    norms = vv.token_norms(trace, factor=5)
    before = cell(page, "similarity", 2).locator("canvas").evaluate("canvas => canvas.toDataURL()")

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for row, col in ((2, 3), (9, 4), (8, 7)):
        page.mouse.move(*point_of(*centre_of(page, row, col, grid)))
        similar = vv.token_similarity(trace, query=(row, col)).values[4].copy()
        count = same_direction(similar, row, col)
        said = f"Patch ({row}, {col}) after layer 3: {count} patch" if count else "no other patch carries"
        says(page, "caption", said)
        times = float(norms.maps.values[3][row, col] * 5 / norms.thresholds[3])
        expect(cell(page, "norms", 3)).to_have_text(f"{times:.1f}x")
    similar[8, 7] = -1  # of the patch itself
    best = np.unravel_index(similar.argmax(), grid)
    says(
        page,
        "readout",
        f"Most alike is patch ({best[0]}, {best[1]}), cosine {float(f'{similar.max():.3g}'):g}",
    )
    page.wait_for_function(OTHER, arg=before)
    cell(page, "norms", 1).locator(".vv-room-small").hover()
    assert asked == []  # nothing is asked while the pointer moves

    click_at(*centre_of(page, 5, 6, grid))
    page.wait_for_url(re.compile("q=5(,|%2C)6"))
    page.locator("#vv-tokens .vv-room-main-stage").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile("q=6(,|%2C)6"))
    cell(page, "similarity", 4).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("tokens=components&state=3"))
    ready(page, "components")
    expect(cell(page, "components", 3)).to_have_attribute("aria-pressed", "true")
    share = vv.token_components(trace).explained[3].sum()
    says(page, "caption", f"Three directions hold {round(100 * share)}% of what differs")

    for measure, words in (("norms", "times as long as the median"), ("lens", "the head would say")):
        show(page, measure)
        ready(page, measure)
        page.mouse.move(2, 2)
        says(page, "caption", "Patch (6, 6) after layer 2: ")
        says(page, "caption", words)
    says(page, "readout", "A probe")
    show(page, "similarity")
    page.locator("#vv-tokens [data-option=token_role] [data-value=keys]").click()
    ready(page, "similarity")
    expect(page.locator("#vv-tokens [data-cell^=similarity]")).to_have_count(6)
    says(page, "caption", "by the keys of layer 2")


LUMA = """canvas => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += 0.2126 * data[i] + 0.7152 * data[i + 1] + 0.0722 * data[i + 2];
  return sum / data.length;
}"""


def test_the_lens_is_as_bright_as_it_is_sure_and_colours_leave_the_photo(
    visit: Callable[..., Any], app_url: str
) -> None:
    import vit_viz as vv

    for image in ("lion", "cheetah"):
        page = visit(f"{app_url}?tab=tokens&image={image}&tokens=lens&style=light")
        ready(page, "lens")
        lens = vv.logit_lens("mini", samples.sample(image))
        sure = lens.top_probability.reshape(7, -1).mean(axis=1)
        bright = [cell(page, "lens", state).locator("canvas").evaluate(LUMA) for state in range(7)]
        assert bright[int(sure.argmax())] > 1.1 * bright[int(sure.argmin())]
        assert np.corrcoef(sure, bright)[0, 1] > 0.8
        top = float(f"{lens.top_probability.max():.3g}")
        expect(page.locator("#vv-tokens .vv-high")).to_have_text(f"{top:g}")  # one scale for all layers
        page.locator("#vv-tokens .vv-room-likeliest[aria-pressed=true]").wait_for()


def box_of(page: Any, selector: str) -> dict[str, float]:
    found: dict[str, float] = page.locator(f"#vv-tokens {selector}").first.bounding_box()
    return found


def test_what_is_asked_first_is_in_sight_and_nothing_jumps(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=tokens&image=cheetah")
    ready(page, "similarity")
    caption = box_of(page, ".vv-room-caption")
    assert caption["y"] + caption["height"] < 900
    for measure in ("components", "similarity", "norms", "lens", "layers"):
        photo = box_of(page, f"[data-cell='{measure} 3'] .vv-room-small")
        assert photo["y"] + photo["height"] < 900
    places = [".vv-room-readout", ".vv-roles", "[data-cell='layers 2']", ".vv-room-table"]
    before = [box_of(page, place) for place in places]
    for row, col in ((0, 0), (13, 2), (7, 7)):
        page.mouse.move(*point_of(*centre_of(page, row, col, (16, 16))))
        says(page, "caption", f"Patch ({row}, {col}) ")
        assert [box_of(page, place) for place in places] == before
    page.locator("#vv-tokens [data-fold=lens]").click()
    expect(cell(page, "lens", 3)).to_be_hidden()
    page.locator("#vv-tokens [data-fold=lens]").click()
    expect(cell(page, "lens", 3)).to_be_visible()


def test_on_a_phone_the_photo_comes_first_and_the_table_scrolls_in_its_box(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=tokens&image=lion&state=6", width=390, height=844)
    ready(page, "similarity")
    photo = box_of(page, ".vv-room-main-stage")
    controls = page.locator("#vv-tokens button:visible, #vv-tokens select:visible, #vv-tokens input:visible")
    tops = controls.evaluate_all("nodes => nodes.map((node) => node.getBoundingClientRect().top)")
    assert min(tops) >= photo["y"] + photo["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    chosen = box_of(page, "[data-cell='similarity 6'] .vv-room-small")
    assert chosen["x"] + chosen["width"] <= 390  # the chosen layer is in sight
    label = box_of(page, "tr[data-row=similarity] th")
    page.locator("#vv-tokens .vv-room-scroll").evaluate("box => { box.scrollLeft = 0; }")
    page.wait_for_function("document.querySelector('#vv-tokens .vv-room-scroll').scrollLeft === 0")
    assert box_of(page, "tr[data-row=similarity] th") == label
    first = box_of(page, "[data-cell='similarity 0'] .vv-room-small")
    assert first["x"] >= label["x"] + label["width"]


def test_layers_segments_and_classes_are_chosen_and_linked(visit: Callable[..., Any], app_url: str) -> None:
    import vit_viz as vv

    trace = vv.trace("mini", samples.sample("cheetah"), keep_residual=True)
    page = visit(f"{app_url}?tab=tokens&image=cheetah&tokens=layers&q=6,6")
    ready(page, "layers")
    matrix = vv.layer_similarity(trace)
    page.locator("#vv-tokens .vv-room-matrix").focus()
    page.keyboard.press("ArrowRight")  # from the first cell
    expected = f"input with after layer 0: {float(f'{matrix.values[0, 1]:.3g}'):g}"
    expect(page.locator("#vv-tokens .vv-room-cell")).to_have_text(expected, use_inner_text=True)
    change = vv.token_change(trace)
    says(page, "readout", f"patch (6, 6) {float(f'{change.values[4][6, 6]:.3g}'):g}")
    turned = np.degrees(np.arccos(change.values[4]))
    words = f"by {turned[6, 6]:.0f}°, the average patch by {turned.mean():.0f}°"
    says(page, "caption", f"Layer 4 turned patch (6, 6) {words}")

    show(page, "segments")
    ready(page, "segments")
    page.wait_for_url(re.compile("tokens=segments"))
    segments = vv.key_segments(trace, layer=4)
    says(page, "readout", f"segment {segments.labels[6, 6]}, ")
    expect(page.locator("#vv-tokens .vv-room-legend li")).to_have_count(4)
    box = page.locator("#vv-tokens [data-option=token_box]")
    box.fill("200, 100, 400, 300")
    box.press("Enter")
    page.wait_for_url(re.compile("box=200(,|%2C)100(,|%2C)400(,|%2C)300"))
    ready(page, "segments")
    page.locator("#vv-tokens .vv-room-legend").get_by_text("overlap").first.wait_for()
    expect(page.locator("#vv-tokens .vv-object")).to_have_count(1)
    page.locator("#vv-tokens .vv-room-draw").click()
    page.locator("#vv-tokens .vv-room-main-stage").evaluate(
        "stage => stage.scrollIntoView({block: 'center'})"
    )
    page.mouse.move(*point_of(*centre_of(page, 2, 2, trace.layout.grid)))
    page.mouse.down()
    page.mouse.move(*point_of(*centre_of(page, 9, 12, trace.layout.grid)))
    page.mouse.up()
    page.wait_for_url(lambda url: "box=" in url and "box=200" not in url)

    show(page, "lens")
    page.wait_for_url(re.compile("tokens=lens"))
    expect(page).to_have_url(
        re.compile("q=6(,|%2C)6")
    )  # drawing pins nothing, also after the link was written again
    ready(page, "lens")
    page.locator("#vv-tokens .vv-search").fill("lion")
    page.locator("#vv-tokens .vv-hits").get_by_role("button", name="show").first.click()
    page.wait_for_url(re.compile("target=[0-9]+"))
    expect(page.locator("#vv-tokens .vv-unit")).to_have_text("probability of lion")


def test_a_register_is_added_or_refused_in_a_sentence(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=tokens&image=cheetah&tokens=norms&outliers=1.5")
    ready(page, "norms")
    expect(page.locator("#vv-tokens .vv-room-histogram")).to_have_count(1)
    page.get_by_role("button", name="add a register").click()
    page.locator("#vv-tokens .vv-room-pair").nth(1).wait_for()
    expect(page.locator("#vv-tokens .vv-room-figure")).to_have_count(4)
    says(page, "register", "with register 4 added")
    page.wait_for_url(re.compile("register=1"))
    page.locator("#vv-tokens [data-option=token_factor]").fill("20")
    page.wait_for_url(re.compile("outliers=20"))
    page.locator("#vv-tokens .vv-room-register").get_by_text("No patch is an outlier in any layer").wait_for()


def test_a_second_photo_shares_the_colours(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=tokens&image=cheetah&tokens=components")
    ready(page, "components")
    second = page.locator("#vv-tokens .vv-room-second-stage")
    expect(second).to_be_hidden()
    page.locator("#vv-tokens [data-option=token_second]").select_option("lion")
    page.wait_for_url(re.compile("second=lion"))
    second.wait_for()
    page.get_by_role("button", name="foreground only").click()
    page.wait_for_url(re.compile("foreground=1"))
    ready(page, "components")
    drawn = "canvas => canvas.width > 1 && canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3] > 0"
    page.wait_for_function(f"({drawn})(document.querySelector('#vv-tokens .vv-room-second-stage canvas'))")


def test_positions_are_shown_on_another_grid(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=positions&image=cheetah&size=20&positions=resampled")
    page.locator(".vv-tables-figure").nth(7).wait_for()
    own = page.locator(".vv-tables-figure", has_text="this model's own way")
    expect(own).to_have_count(1)
    cells = page.locator(".vv-tables-figure .vv-cells[tabindex]").first
    cells.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".vv-tables-cell")).to_contain_text(
        "position (1, 0): differs by", use_inner_text=True
    )
    expect(page.locator(".vv-places-tiles")).to_be_hidden()
    page.get_by_role("button", name="similarity", exact=True).click()
    page.locator(".vv-places-tiles").wait_for()
