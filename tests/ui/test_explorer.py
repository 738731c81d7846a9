"""The live explorer in a real browser: what it draws, what it asks the server for, and what hands can do with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.effort import effort
from tests.serving import Server
from tests.ui.waits import click_at, expect, expect_in_address, point_of
from vit_viz.checkpoints import load

pytestmark = pytest.mark.browser

EXPLORER = "#vv-explorer"
COMPARE = """
async ([handle, layer, sizes, tokens]) => {
  const { parseLayer, attentionInto } = window.vit_viz('explorer/attention.js');
  const answer = await fetch(`/vit_viz/layer/${handle}/${layer}`);
  const kind = answer.headers.get('X-Vit-Viz-Kind');
  const data = parseLayer(await answer.arrayBuffer(), { kind, ...sizes });
  const found = { worst: 0, same: 0, count: 0 };
  const mine = new Float32Array(sizes.tokens);
  for (const direction of ['row', 'column']) {
    for (const [token, query] of tokens) {
      const search = new URLSearchParams({ query, direction });
      const body = await (await fetch(`/vit_viz/rows/${handle}/${layer}?${search}`)).arrayBuffer();
      const theirs = new Float32Array(body);
      for (let head = 0; head < sizes.heads; head++) {
        attentionInto(mine, data, head, token, direction);
        const row = theirs.subarray(head * sizes.tokens, (head + 1) * sizes.tokens);
        const top = Math.max(...row);
        row.forEach((value, j) => (found.worst = Math.max(found.worst, Math.abs(value - mine[j]) / top)));
        found.same += Number(mine.indexOf(Math.max(...mine)) === row.indexOf(top));
        found.count += 1;
      }
    }
  }
  return found;
}
"""

PICTURES = """
() => ['atlas', 'map'].map((name) => {
  const canvas = document.querySelector(`#vv-explorer [data-vv=${name}]`);
  return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].join();
})
"""


IS_WHOLE = """
() => {
  const part = (name) => document.querySelector(`#vv-explorer [data-vv=${name}]`);
  const numbers = part('readout').textContent;
  return part('photo').complete && !part('progress').textContent.includes('Fetching')
    && numbers && !numbers.includes('\u2248');
}
"""


def part(page: Any, name: str) -> Any:
    """An element of the explorer by its name in the template."""
    return page.locator(f"{EXPLORER} [data-vv={name}]")


def caption(page: Any) -> str:
    return str(part(page, "caption").text_content())


def says(page: Any, words: str) -> None:
    """Wait until the caption holds these words; a frame may pass between an action and its picture."""
    page.wait_for_function(
        "words => document.querySelector('#vv-explorer [data-vv=caption]').textContent.includes(words)",
        arg=words,
        timeout=60_000,
    )


def asks(page: Any, query: str) -> None:
    """Wait until the address bar holds this query."""
    page.wait_for_function(
        "query => new URLSearchParams(location.search).get('q') === query", arg=query, timeout=60_000
    )


def options_of(url: str) -> dict[str, str]:
    """What the query string of an address says."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def pictures(page: Any) -> list[str]:
    """Every pixel of the mosaic and of the big map, once all layers are there and the numbers have come."""
    painted(page)
    page.wait_for_function(IS_WHOLE)
    painted(page)
    drawn: list[str] = page.evaluate(PICTURES)
    return drawn


def painted(page: Any) -> None:
    """Wait until what has happened is drawn: a change is drawn in the next frame."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def handle_of(requests: list[str]) -> str:
    found = [match[1] for url in requests if (match := re.search(r"/vit_viz/layer/([^/]+)/", url))]
    assert found
    return found[-1]


def opened(visit: Callable[..., Any], url: str) -> tuple[Any, str]:
    """A page and the handle of its trace."""
    page = visit(url, ready=False)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.reload()
    page.wait_for_selector(f"{EXPLORER} [data-vv=root][data-state=ready]")
    pictures(page)
    return page, handle_of(requests)


@pytest.mark.slow
def test_first_paint_has_content(page: Any) -> None:
    says(page, "class token looks")
    assert len(set(pictures(page)[0].split(","))) > 50


@pytest.mark.slow
def test_the_browsers_rows_and_columns_are_the_servers(visit: Callable[..., Any], app_url: str) -> None:
    page, handle = opened(visit, app_url)
    config = load("mini").config
    head_dim = config.embed_dim // config.num_heads
    sizes = {"heads": config.num_heads, "tokens": 261, "headDim": head_dim, "scale": head_dim**-0.5}
    patches = [divmod(i, 16) for i in range(0, 256, 17)]
    tokens = [(0, "class"), (3, "register 2")] + [(5 + 16 * r + c, f"{r},{c}") for r, c in patches]
    agree([page.evaluate(COMPARE, [handle, layer, sizes, tokens]) for layer in range(config.depth)])


def agree(found: list[dict[str, float]]) -> None:
    """The errors that fp16 may make: 0.5% of a row's maximum, and another brightest patch in 1% of the rows."""
    same, count = (sum(f[name] for f in found) for name in ("same", "count"))
    worst = max(f["worst"] for f in found)
    print(
        f"largest error / row maximum {worst:.3%}; same brightest patch in {same / count:.2%} of {count} rows"
    )
    assert worst <= 0.005
    assert same >= 0.99 * count


@pytest.mark.slow
def test_rows_of_a_real_model_agree_on_real_photos(
    visit: Callable[..., Any], start_app: Callable[..., Server], shared_data: Path
) -> None:
    app = start_app("--model", str(shared_data / "vit_tiny_patch16_224.fp16.safetensors"))
    sizes = {"heads": 3, "tokens": 197, "headDim": 64, "scale": 0.125}
    tokens = [(0, "class")] + [(1 + i, f"{i // 14},{i % 14}") for i in range(0, 196, 13)]
    found = []
    for image in ("lion", "cheetah", "tower"):
        page, handle = opened(visit, f"{app.url}?image={image}&mode=crop")
        found += [page.evaluate(COMPARE, [handle, layer, sizes, tokens]) for layer in range(12)]
        page.close()
    agree(found)


def test_hovering_repaints_and_sends_nothing(page: Any) -> None:
    before = pictures(page)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    seen = set()
    for step in range(30):
        page.mouse.move(*point_of(part(page, "stage"), 0.03 + step / 32, 0.4))
        painted(page)
        seen.add(caption(page))
    assert len(seen) >= 10
    assert page.evaluate(PICTURES) != before
    assert requests == []


@pytest.mark.slow
def test_leaving_the_photo_returns_to_the_pinned_query(page: Any) -> None:
    before = pictures(page)
    page.mouse.move(*point_of(part(page, "stage"), 0.5, 0.5))
    says(page, "patch (")
    page.mouse.move(2, 2)
    says(page, "class token")
    painted(page)
    assert page.evaluate(PICTURES) == before


def test_a_click_pins_a_patch_and_back_returns(page: Any) -> None:
    click_at(part(page, "stage"), 0.51, 0.51)
    page.mouse.move(2, 2)
    page.wait_for_function("location.search.includes('q=8,8')")
    says(page, "patch (8, 8) looks")
    page.go_back()
    page.wait_for_function("!location.search.includes('q=')")
    says(page, "class token")
    expect(part(page, "caption")).not_to_contain_text("patch (8, 8) looks")


@pytest.mark.slow
def test_dragging_takes_a_region_and_shift_adds_a_patch(page: Any) -> None:
    page.mouse.move(*point_of(part(page, "stage"), 0.03, 0.03))
    page.mouse.down()
    page.mouse.move(*point_of(part(page, "stage"), 0.1, 0.1))
    page.mouse.up()
    asks(page, "0,0;0,1;1,0;1,1")
    page.keyboard.down("Shift")
    click_at(part(page, "stage"), 0.97, 0.97)
    page.keyboard.up("Shift")
    asks(page, "0,0;0,1;1,0;1,1;15,15")
    says(page, "region of 5 patches")
    expect(part(page, "caption")).not_to_contain_text("class token looks")


@pytest.mark.slow
def test_everything_by_keyboard_alone(page: Any) -> None:
    pictures(page)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.vv === 'stage'"):
            break
    else:
        pytest.fail("the photo cannot be reached by the Tab key")
    for key, expected in (
        ("d", "patch (7, 7)"),
        ("d", "patch (7, 8)"),
        ("Shift+ArrowUp", "patch (6, 8)"),
        ("ArrowUp", "Layer 4, head 2"),
        ("ArrowLeft", "head 1"),
        ("ArrowRight", "head 2"),
        ("Escape", "class token"),
    ):
        page.keyboard.press(key)
        says(page, expected)
    page.keyboard.press("d")
    page.keyboard.press("r")
    page.keyboard.press("d")
    says(page, "region of 2 patches")
    page.wait_for_function(
        "document.querySelector('#vv-explorer [data-vv=status]').textContent.includes('region of 2')"
    )
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.parentElement.matches('.vx-more:not([open])')"):
            page.keyboard.press("Enter")
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.dataset.vv || ''"))
    wanted = (
        "direction",
        "style",
        "scale",
        "alpha",
        "table",
        "smooth",
        "masked",
        "norm",
        "play",
        "save",
        "mosaic",
    )
    assert [name for name in wanted if not any(r.endswith(name) for r in reached)] == []


@pytest.mark.slow
def test_space_plays_the_layers_and_stops(page: Any) -> None:
    part(page, "mosaic").focus()
    page.keyboard.press(" ")
    first = caption(page)
    page.wait_for_function(
        "(first) => document.querySelector('#vv-explorer [data-vv=caption]').textContent !== first", arg=first
    )
    page.keyboard.press(" ")
    expect(part(page, "play")).to_have_attribute("aria-pressed", "false")


@pytest.mark.slow
def test_where_motion_is_unwelcome_space_takes_one_step(browser: Any, app_url: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.clock.install()
    page.goto(f"{app_url}?layer=3")
    page.wait_for_selector(f"{EXPLORER} [data-vv=root][data-state=ready]")
    pictures(page)
    part(page, "mosaic").focus()
    page.keyboard.press(" ")
    says(page, "Layer 4")
    page.clock.run_for(3000)
    painted(page)
    says(page, "Layer 4")
    expect(part(page, "play")).to_have_attribute("aria-pressed", "false")
    context.close()


@pytest.mark.slow
def test_a_permalink_restores_the_picture_for_another_visitor(
    visit: Callable[..., Any], app_url: str
) -> None:
    first = visit(f"{app_url}?image=tower")
    part(first, "mosaic").click(position={"x": 120, "y": 120})
    click_at(part(first, "stage"), 0.3, 0.6)
    first.get_by_text("looked at by", exact=True).click()
    first.get_by_text("each head", exact=True).click()
    first.get_by_text("More ways to read it").click()
    part(first, "root").locator("select[name$=-table]").select_option("magma")
    first.mouse.move(2, 2)
    drawn = pictures(first)
    expect_in_address(first, "magma")  # what was chosen last
    second = visit(first.url)
    second.mouse.move(2, 2)
    assert pictures(second) == drawn
    expect(part(second, "caption")).to_have_text(caption(first))
    second.wait_for_url(lambda url: options_of(url) == options_of(first.url))


@pytest.mark.slow
def test_own_scale_is_marked(page: Any) -> None:
    part(page, "controls").get_by_text("each head", exact=True).click()
    part(page, "details").get_by_text("Scale: each head").wait_for()
    expect(part(page, "details")).to_have_attribute("data-own", "")


@pytest.mark.slow
def test_numbers_of_the_pinned_query_come_from_the_server(page: Any) -> None:
    # those of the query that the page opened with may still be on their way
    with page.expect_response(lambda r: "/vit_viz/numbers/" in r.url and "query=3%2C3" in r.url) as answer:
        click_at(part(page, "stage"), 0.2, 0.2)
    numbers = answer.value.json()
    page.mouse.move(2, 2)
    percent = float(f"{100 * numbers['max']:.4g}")
    page.wait_for_function(
        """words => { const text = document.querySelector('#vv-explorer [data-vv=readout]').textContent;
        return text.includes(words) && !text.includes('\u2248'); }""",
        arg=f"{percent:g}%",
    )
    assert 0 < numbers["max"] <= 1


def test_saving_gives_a_png_with_room_for_caption_and_colour_bar(page: Any, tmp_path: Path) -> None:
    from PIL import Image

    pictures(page)
    part(page, "save").click()
    with page.expect_download() as download:
        page.locator("#vv-figure-dialog .vv-figure-save").click()
    target = tmp_path / "saved.png"
    download.value.save_as(target)
    assert download.value.suggested_filename == "vit_viz_lion_look_mini_layer-5_head-2.png"
    with Image.open(target) as saved:
        assert saved.format == "PNG"
        assert saved.height > saved.width >= 900  # the sample is square; below it are bar and caption


@pytest.mark.slow
def test_another_sample_keeps_the_options(page: Any) -> None:
    part(page, "controls").get_by_text("each head", exact=True).click()
    page.get_by_label("Sample image tower").click()
    page.wait_for_function("!location.search.includes('image=lion')")
    page.wait_for_selector(f"{EXPLORER} [data-vv=root][data-state=ready]")
    part(page, "details").get_by_text("Scale: each head").wait_for()
    expect_in_address(page, "image=tower", "scale=own")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 768, 1440, 2560])
def test_nothing_is_wider_than_the_window(visit: Callable[..., Any], app_url: str, width: int) -> None:
    page = visit(app_url, width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    box = part(page, "stage").bounding_box()
    assert box["width"] >= min(300, width - 60)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 1000])
def test_a_trace_that_is_gone_is_asked_for_once_more(browser: Any, app_url: str, times: int) -> None:
    context = browser.new_context()
    page = context.new_page()
    refused = 0

    def answer(route: Any) -> None:
        nonlocal refused
        if refused == times:
            return route.continue_()
        refused += 1
        return route.fulfill(status=404, headers={"Cache-Control": "no-store"}, body="gone")

    page.route("**/vit_viz/layer/**", answer)
    page.clock.install()
    page.goto(app_url)
    page.wait_for_selector(f"{EXPLORER} [data-vv=root][data-state=ready]")
    if times == 1:
        page.wait_for_function(
            "document.querySelector('#vv-explorer [data-vv=readout]').textContent.includes('Most on')"
        )
    else:
        page.wait_for_function(
            "document.querySelector('#vv-explorer [data-vv=message]').textContent.includes('no longer keeps')"
        )
        page.clock.run_for(10_000)
        before = refused
        page.evaluate("fetch('/vit_viz/layer/mine/0').then(() => {})")  # comes after all that the page asks
        assert refused == before + 1
        refused = before
    assert refused <= 2
    context.close()


@pytest.mark.slow
def test_random_actions_leave_no_trace(visit: Callable[..., Any], app_url: str) -> None:
    import random

    page = visit(
        app_url, width=920, height=640
    )  # few pixels: it is the memory that counts; and no header over the photo
    pictures(page)
    pick = random.Random(7)
    heap = page.context.new_cdp_session(page)

    def used() -> float:
        heap.send("HeapProfiler.collectGarbage")
        return float(heap.send("Runtime.getHeapUsage")["usedSize"])

    keys = (
        "w",
        "a",
        "s",
        "d",
        "ArrowUp",
        "ArrowDown",
        "ArrowLeft",
        "ArrowRight",
        "Escape",
        "Shift+ArrowLeft",
    )
    words = (
        "looks at",
        "looked at by",
        "light",
        "heat",
        "all alike",
        "each layer",
        "each head",
        "register 0",
    )

    def act() -> None:
        kind = pick.random()
        if kind < 0.5:
            page.mouse.move(*point_of(part(page, "stage"), pick.random(), pick.random()))
        elif kind < 0.65:
            click_at(part(page, "stage"), pick.random(), pick.random())
        elif kind < 0.9:
            part(page, pick.choice(("stage", "mosaic"))).focus()
            page.keyboard.press(pick.choice(keys))
        else:
            page.locator(EXPLORER).get_by_text(pick.choice(words), exact=True).click()

    for _ in range(100):
        act()
    pictures(page)
    start = used()
    for _ in range(effort(150)):
        act()
    click_at(part(page, "stage"), 0.51, 0.51)
    asks(page, "8,8")  # the link of this action has been written, and so have those before
    page.mouse.move(2, 2)
    pictures(page)
    assert used() <= 1.1 * start
    fresh = visit(page.url)
    fresh.mouse.move(2, 2)
    assert pictures(fresh) == pictures(page)
