"""The Tokens tab in a real browser: cosines under the pointer without a request, pinning, keys, and each measure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect
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


def centre_of(page: Any, row: int, col: int, grid: tuple[int, int]) -> tuple[float, float]:
    box = page.locator("#vv-tokens .vv-room-main-stage").bounding_box()
    return (
        box["x"] + box["width"] * (col + 0.5) / grid[1],
        box["y"] + box["height"] * (row + 0.5) / grid[0],
    )


def test_hands_and_keys_in_the_tokens_tab(visit: Callable[..., Any], app_url: str) -> None:
    import vit_viz as vv

    page = visit(f"{app_url}?tab=tokens&image=cheetah")
    ready(page, "similarity")
    expect(page.locator("#vv-tokens .vv-room-tile")).to_have_count(7)
    trace = vv.trace("mini", samples.sample("cheetah"), keep_residual=True)
    grid = trace.layout.grid

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for row, col in ((2, 3), (9, 4), (8, 7)):
        page.mouse.move(*centre_of(page, row, col, grid))
        page.wait_for_function(
            f"document.querySelector('.vv-room-caption').textContent.includes('patch ({row}, {col})')"
        )
    mean = vv.token_similarity(trace, query=(8, 7)).values[4].mean()
    said = page.locator("#vv-tokens .vv-room-readout").inner_text()  # drawn together with the caption
    assert float(said.split("mean ")[1].split(";")[0]) == pytest.approx(float(mean), abs=2e-3)
    page.locator("#vv-tokens .vv-room-tile").nth(1).hover()
    assert asked == []  # nothing is asked while the pointer moves

    page.mouse.click(*centre_of(page, 5, 6, grid))
    page.wait_for_url(re.compile("q=5(,|%2C)6"))
    page.locator("#vv-tokens .vv-room-main-stage").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_url(re.compile("q=6(,|%2C)6"))
    page.locator("#vv-tokens .vv-room-tile").first.click()
    expect(page.locator("#vv-tokens .vv-room-tile").first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#vv-tokens .vv-room-caption")).to_have_text(
        re.compile(", input$"), use_inner_text=True
    )

    for measure, words in (
        ("components", "of what differs in this layer"),
        ("norms", "x the median"),
        ("lens", "patch (6, 6)"),
    ):
        show(page, measure)
        ready(page, measure)
        page.mouse.move(2, 2)
        expect(page.locator("#vv-tokens .vv-room-readout")).to_contain_text(words, use_inner_text=True)
    expect(page.locator("#vv-tokens .vv-room-note")).to_have_text(re.compile("^A probe"), use_inner_text=True)
    show(page, "similarity")
    page.locator("#vv-tokens [data-option=token_role] [data-value=keys]").click()
    ready(page, "similarity")
    expect(page.locator("#vv-tokens .vv-room-tile")).to_have_count(6)


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
    page.mouse.move(*centre_of(page, 2, 2, trace.layout.grid))
    page.mouse.down()
    page.mouse.move(*centre_of(page, 9, 12, trace.layout.grid))
    page.mouse.up()
    page.wait_for_url(lambda url: "box=" in url and "box=200" not in url)

    show(page, "lens")
    page.wait_for_url(re.compile("tokens=lens"))
    assert re.search("q=6(,|%2C)6", page.url)  # drawing pins nothing, also after the link was written again
    ready(page, "lens")
    page.locator("#vv-tokens .vv-search").fill("lion")
    page.locator("#vv-tokens .vv-hits").get_by_role("button", name="show").first.click()
    page.wait_for_url(re.compile("target=[0-9]+"))
    page.wait_for_function(
        "document.querySelector('.vv-room-caption').textContent.startsWith('What speaks for')"
        " && document.querySelector('.vv-room-caption').textContent.includes('lion')"
    )


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
    assert second.is_hidden()
    page.locator("#vv-tokens [data-option=token_second]").select_option("lion")
    page.wait_for_url(re.compile("second=lion"))
    second.wait_for()
    page.get_by_role("button", name="foreground only").click()
    page.wait_for_url(re.compile("foreground=1"))
    ready(page, "components")
    transparent = "canvas => canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3] === 0"
    assert not second.locator("canvas").evaluate(transparent)


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
    assert page.locator("#vv-position-tiles").is_hidden()
    page.get_by_role("button", name="similarity", exact=True).click()
    page.locator("#vv-position-tiles .js-plotly-plot .main-svg").first.wait_for()
