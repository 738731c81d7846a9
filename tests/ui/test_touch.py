"""A phone: the photo first, header, tabs and foot that stay; a swipe scrolls, a tap asks, and a finger that rests draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ui.conftest import open_tab, wait_until_ready
from tests.ui.waits import expect, expect_in_address, stands_still
from vit_viz.ui.app import TABS

pytestmark = pytest.mark.browser

PHOTO = "#vv-explorer [data-vv=stage]"
MOSAIC = "#vv-explorer [data-vv=cells]"
PLAYGROUND = ".vv-play-marks"
GONE = ".vv-gone"
DRAWS = "#vv-explorer [data-vv=hovered]:not([d=''])"
"""There once a finger that rests on the photo draws."""


class Finger:
    """One finger on a page, moved as a hand moves it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.devtools = page.context.new_cdp_session(page)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """Send one event of the touch screen: touchStart, touchMove or touchEnd."""
        places = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        self.devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    def stroke(
        self, start: tuple[float, float], end: tuple[float, float], *, until: str = "", steps: int = 10
    ) -> None:
        """Come down, rest until something is there, move to the end and lift; wait until the page has come to rest."""
        self.touch("touchStart", start)
        if until:
            self.page.locator(until).first.wait_for(state="attached")
        for i in range(1, steps + 1):
            share = i / steps
            point = tuple(a + (b - a) * share for a, b in zip(start, end, strict=True))
            self.touch("touchMove", point)  # type: ignore[arg-type]
            self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")
        self.touch("touchEnd")
        stands_still(self.page.locator("html"))


@pytest.fixture
def phone(browser: Any, app_url: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page on a phone with a touch screen, of 390 x 844 unless a test says another size."""
    width, height = getattr(request, "param", (390, 844))
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = context.new_page()
    page.goto(app_url)
    wait_until_ready(page)
    yield page
    context.close()


def scrolled(page: Any) -> float:
    return float(page.evaluate("window.scrollY"))


def place(page: Any, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
    """A place in an element that is brought to the middle of the screen."""
    part = page.locator(selector).first
    part.evaluate("(e) => e.scrollIntoView({ block: 'center', behavior: 'instant' })")
    stands_still(part)
    box = part.bounding_box()
    return box["x"] + box["width"] * across, box["y"] + box["height"] * down


@pytest.mark.slow
@pytest.mark.parametrize("up", [200, -200], ids=["up", "down"])
@pytest.mark.parametrize("start", [PHOTO, MOSAIC], ids=["photo", "mosaic"])
def test_a_swipe_over_the_pictures_scrolls_the_page_and_asks_nothing(
    phone: Any, start: str, up: float
) -> None:
    x, y = place(phone, start)
    if up < 0:  # there has to be something above to scroll back to
        phone.evaluate("window.scrollTo(0, Math.max(window.scrollY, 220))")
        box = phone.locator(start).first.bounding_box()
        y = min(max(box["y"] + box["height"] / 2, 110), 700)
    before, link = scrolled(phone), phone.url
    Finger(phone).stroke((x, y + up / 2), (x, y - up / 2))
    assert (scrolled(phone) - before) * (up / 200) >= 150
    expect(phone).to_have_url(link)
    expect(phone.locator("#vv-explorer [data-vv=hovered]")).to_have_attribute("d", "")


@pytest.mark.slow
def test_a_finger_that_rests_on_the_photo_takes_a_region_and_does_not_scroll(phone: Any) -> None:
    start = place(phone, PHOTO, (3 + 0.5) / 16, (5 + 0.5) / 16)
    end = place(phone, PHOTO, (4 + 0.5) / 16, (7 + 0.5) / 16)
    before = scrolled(phone)
    Finger(phone).stroke(start, end, until=DRAWS)
    assert scrolled(phone) == before
    expect_in_address(phone, "q=5,3;5,4;6,3;6,4;7,3;7,4")


@pytest.mark.slow
def test_a_swipe_over_the_playground_scrolls_and_a_finger_that_rests_there_brushes(phone: Any) -> None:
    open_tab(phone, "Explain")
    phone.locator(PLAYGROUND).wait_for()
    x, y = place(phone, PLAYGROUND)
    before = scrolled(phone)
    Finger(phone).stroke((x, y + 100), (x, y - 100))
    assert scrolled(phone) - before >= 150
    expect(phone.locator(GONE)).to_have_count(0)
    start, end = (place(phone, PLAYGROUND, 0.5, down) for down in (0.3, 0.7))
    before = scrolled(phone)
    Finger(phone).stroke(start, end, until=GONE)
    assert scrolled(phone) == before
    expect(phone.locator(GONE).nth(4)).to_be_attached()


# --- what stands where

DRAWN = {
    "look": "#vv-explorer [data-vv=root][data-state=ready]",
    "lesson": ".vv-lesson-stage[data-drawn]",
    "explain": "#vv-explain-picture .vv-image:not([hidden])",
    "heads": "#vv-heads [data-ready]:not([data-ready=''])",
    "tokens": "#vv-tokens .vv-tokens-caption[aria-busy=false]:not([hidden])",
    "positions": "#vv-tab-positions .vv-tables[aria-busy=false]",
    "patches": "#vv-grid-picture .vv-patch-grid",
}

FIRST = """() => {
  const panel = [...document.querySelectorAll('#vv-tabs > .tabitem')].find((one) => one.checkVisibility());
  const stays = (part) =>
    part !== panel && (getComputedStyle(part).position === 'fixed' || stays(part.parentElement));
  const tops = (parts, least) => [...panel.querySelectorAll(parts)].filter((part) => part.checkVisibility() && !stays(part))
    .map((part) => part.getBoundingClientRect()).filter(({ width, height }) => Math.min(width, height) > least)
    .map(({ top }) => top);
  return { photo: Math.min(...tops('img, image, canvas', 150)), control: Math.min(...tops('button, input, select, summary', 8)) };
}"""


def opened(page: Any, name: str) -> None:
    """Choose a tab as a finger does and wait until it has drawn."""
    page.locator(f"#vv-tab-{name}-button").tap()
    page.locator(DRAWN[name]).first.wait_for(state="attached")
    page.wait_for_function("!document.querySelector('#vv-tabs [aria-busy=true]')")


@pytest.mark.slow
def test_the_photo_comes_first_on_every_tab(phone: Any) -> None:
    assert list(DRAWN) == [tab.name for tab in TABS]
    for name in DRAWN.keys() - {"lesson"}:  # over whose photo the strip of the model stays
        opened(phone, name)
        phone.wait_for_function(
            f"() => {{ const {{ photo, control }} = ({FIRST})(); return photo < Math.min(control, 150); }}"
        )


IS_WHOLE = """(label) => {
  const tab = document.querySelector('#vv-tabs > .tab-wrapper [role=tab][aria-selected=true]');
  const { left, right } = tab.getBoundingClientRect();
  return tab.textContent.trim() === label && left >= 0 && right <= innerWidth;
}"""


@pytest.mark.slow
def test_the_row_of_tabs_ends_with_the_last_and_shows_the_chosen_one_whole(phone: Any) -> None:
    for tab in [*TABS, TABS[-1], TABS[0]]:  # to the end, and all the way back
        row_tab = phone.get_by_role("tab", name=tab.label)
        row_tab.dispatch_event("click")  # a click of Playwright's own scrolls what no finger can
        phone.wait_for_function(IS_WHOLE, arg=tab.label)


SENTENCE = """() => {
  const sentence = document.querySelector('#vv-sentence');
  const { top, right } = sentence.getBoundingClientRect();
  const isSeen = sentence.checkVisibility() && sentence.innerText.endsWith('Tap the photo.');
  return scrollY === 0 && isSeen && top >= 0 && right <= innerWidth
    && sentence.scrollWidth <= sentence.clientWidth;
}"""
"""What the page is can be read above the line that stays."""


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 360])
def test_header_and_tabs_stay_in_one_line_each_with_the_answer(phone: Any, width: int) -> None:
    phone.set_viewport_size({"width": width, "height": 740})
    for name in DRAWN:
        opened(phone, name)  # by a swipe of the row where it is not in sight
        phone.wait_for_function(SENTENCE)
        phone.evaluate("scrollTo(0, 500)")
        phone.wait_for_function(
            """() => {
              const [header, row, answer, menu] = ['#vv-header', '#vv-tabs > .tab-wrapper', '#vv-top li .vv-number', '#vv-menu']
                .map((part) => document.querySelector(part).getBoundingClientRect());
              const inside = (part) => part.top >= 0 && part.bottom <= header.bottom && part.left >= 0 && part.right <= innerWidth;
              return scrollY > 0 && header.top <= 0 && header.bottom < 72 && Math.abs(row.top - header.bottom) < 1
                && row.height < 50 && answer.width > 0 && inside(answer) && inside(menu)
                && document.documentElement.scrollWidth <= innerWidth;
            }"""
        )
        phone.evaluate("scrollTo(0, 0)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "photo", "heads"),
    [("look", PHOTO, "#vv-explorer [data-vv=cells]"), ("heads", ".vv-heads-stage", ".vv-heads-table")],
)
def test_the_photo_stays_in_sight_while_the_heads_are_read(
    phone: Any, name: str, photo: str, heads: str
) -> None:
    opened(phone, name)
    full = phone.locator(photo).bounding_box()
    phone.wait_for_function(
        """([photo, heads, full]) => {
          const [one, all, tabs] = [photo, heads, '#vv-tabs > .tab-wrapper']
            .map((part) => document.querySelector(part).getBoundingClientRect());
          const apart = Math.round(all.bottom - innerHeight + 60);
          if (apart) return scrollBy(0, apart); // the page may still grow
          const seen = document.elementFromPoint(one.left + one.width / 2, one.top + one.height / 2);
          return scrollY > 80 && one.width < 0.9 * full && Math.abs(one.top - tabs.bottom) < 2
            && document.querySelector(photo).contains(seen)
            && all.bottom <= innerHeight - 56 && all.bottom > one.bottom;
        }""",
        arg=[photo, heads, full["width"]],
    )
    stands_still(phone.locator(photo))
    box = phone.locator(photo).bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] * 3.5 / 16, box["y"] + box["height"] * 5.5 / 16)
    expect_in_address(phone, "q=5,3")


@pytest.mark.slow
@pytest.mark.parametrize("phone", [(844, 390), (667, 375)], indirect=True)
def test_a_phone_on_its_side_shows_the_photo_and_heads_beside_it(phone: Any) -> None:
    phone.wait_for_function(
        """([photo, cells]) => {
          const [one, all] = [photo, cells].map((part) => document.querySelector(part).getBoundingClientRect());
          const rows = (innerHeight - all.top) / (all.height / 6);
          const isWhole = scrollY === 0 && one.bottom <= innerHeight && one.height >= 0.5 * innerHeight;
          return isWhole && one.right <= all.left && rows >= 3;
        }""",
        arg=[PHOTO, MOSAIC],
    )
    phone.get_by_role("tab", name="Heads").tap()
    stage = phone.locator("#vv-heads .vv-heads-stage")
    column = "one => parseFloat(getComputedStyle(one.closest('.vv-columns')).gridTemplateColumns) - one.offsetWidth"
    assert abs(stage.evaluate(column)) <= 1, "nothing is empty beside the photo"


FOOT = {
    "look": "#vv-explorer .vx-row",
    "lesson": ".vv-lesson-controls",
    "explain": ".vv-play-slider",
    "heads": ".vv-heads-look .vv-row",
    "tokens": ".vv-tokens-choices > .vv-row",
    "positions": ".vv-tables > .vv-row",
    "patches": "#vv-grid-picture .vv-save",
}


@pytest.mark.slow
def test_the_foot_has_what_one_does_next_and_covers_nothing(phone: Any) -> None:
    for name, part in FOOT.items():
        opened(phone, name)
        phone.wait_for_function(
            """([name, part]) => {
              scrollTo(0, 1e6); // the page may still grow
              const foot = document.querySelector(part).getBoundingClientRect();
              const panel = document.querySelector(`#vv-tab-${name}`);
              const last = panel.querySelector(':scope > .vv-tab').getBoundingClientRect();
              return scrollY > 0 && Math.abs(foot.bottom - innerHeight) < 1 && foot.height >= 40 && last.bottom <= foot.top + 1;
            }""",
            arg=[name, part],
        )


MOUSE = re.compile(r"\b(click|clicks|hover|mouse|under the pointer|point at)\b(?!.{0,30}\btap)", re.I)


@pytest.mark.slow
def test_a_finger_reads_of_taps_and_a_mouse_of_clicks(
    phone: Any, visit: Callable[..., Any], app_url: str
) -> None:
    found = {}
    for name in DRAWN:
        opened(phone, name)
        words = phone.locator(f"#vv-tab-{name}").inner_text()
        if said := [line for line in words.splitlines() if MOUSE.search(line) and "Mouse: " not in line]:
            found[name] = said
    assert found == {}
    expect(phone.locator("#vv-tokens .vv-tokens-top")).to_contain_text("Tap a patch", use_inner_text=True)
    desk = visit(f"{app_url}?tab=tokens")
    expect(desk.locator("#vv-tokens .vv-tokens-top")).to_contain_text("Point at a patch", use_inner_text=True)
    expect(desk.locator("#vv-tokens .vv-tokens-top")).not_to_contain_text("Tap a patch", use_inner_text=True)


CONTROLS = """() => [...document.querySelectorAll('#vv-tabs > .tabitem')]
  .flatMap((panel) => [...panel.querySelectorAll('button, input, select')])
  .filter((part) => part.checkVisibility() && part.getBoundingClientRect().width > 1)
  .filter((part) => !part.closest('.vv-heads-table, .vv-tokens-table, .vv-parts-table, .js-plotly-plot'))
  .map((part) => part.ariaLabel || part.textContent.trim() || part.name || part.className)"""


@pytest.mark.slow
def test_nothing_is_lost_at_twice_the_size(visit: Callable[..., Any], app_url: str) -> None:
    """At 200% a window of 1440 x 900 has 720 x 450 pixels."""
    page = visit(app_url, width=1440, height=900)
    for name in DRAWN:
        page.set_viewport_size({"width": 1440, "height": 900})
        page.locator(f"#vv-tab-{name}-button").click()
        page.mouse.move(2, 2)  # below a pointer another head is looked at when the page becomes narrow
        page.locator(DRAWN[name]).first.wait_for(state="attached")
        page.wait_for_function("!document.querySelector('#vv-tabs [aria-busy=true]')")
        whole = page.evaluate(CONTROLS)
        page.set_viewport_size({"width": 720, "height": 450})
        page.wait_for_function("innerWidth === 720")
        for fold in page.locator("#vv-tabs .vv-more-classes[aria-expanded=false]:visible").all():
            fold.click()
        now = page.evaluate(CONTROLS)
        assert [one for one in whole if one not in now] == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        page.evaluate("scrollTo(0, 300)")
        page.wait_for_function(
            "document.querySelector('#vv-header').getBoundingClientRect().bottom < 0"
        )  # the screen is the page's


# --- the photo stays in sight over what belongs to it, small and alone; it covers no other words and no focus

PHOTOS = {"positions": ".vv-places-pair"}

STAYS = """([photo, words]) => {
  const box = (part) => part.getBoundingClientRect();
  const [one, tabs, told] = [photo, '#vv-tabs > .tab-wrapper', words].map((part) => document.querySelector(part));
  const apart = Math.round(box(told).top - innerHeight * 0.85); // the words of the tab are about to come
  if (Math.abs(apart) > 2 && innerHeight + Math.ceil(scrollY) < document.documentElement.scrollHeight) {
    scrollBy({ top: apart, behavior: 'instant' });
    return null;
  }
  const { left, top, width, height } = box(one);
  const seen = document.elementFromPoint(left + width / 4, top + height / 3);
  const beside = document.elementFromPoint(2, top + height / 2);
  return {
    top: top - box(tabs).bottom,
    share: height / innerHeight,
    isSeen: one.contains(seen),
    isAlone: !beside.closest('.form, .vv-cells'),
  };
}"""

FOLLOW = """(panel) => {
  const ofPage = (part) => !part.parentElement?.closest('.vv-scroll, table, dialog, .vv-panel');
  const parts = document.querySelectorAll(`#vv-header, #vv-header *, #vv-tabs > .tab-wrapper, ${panel} *`);
  const stays = [...parts].filter((part) => ['sticky', 'fixed'].includes(getComputedStyle(part).position) && ofPage(part));
  const covers = (part, control) => {
    const [one, other] = [part, control].map((each) => each.getBoundingClientRect());
    const [top, bottom] = [Math.max(one.top, other.top), Math.min(one.bottom, other.bottom)];
    return bottom - top > 1 && part.contains(document.elementFromPoint(one.left + one.width / 2, (top + bottom) / 2));
  };
  window.followed = { controls: new Set(), covered: [] };
  addEventListener('keyup', () => {
    const control = document.activeElement;
    if (!control.closest(panel)) return;
    followed.controls.add(control);
    if (stays.some((part) => part.contains(control))) return;
    const over = stays.filter((part) => !control.contains(part) && covers(part, control));
    followed.covered.push(...over.map((part) => `${control.id || control.className} below ${part.id || part.className}`));
  });
}"""
"""Writes down each control that lies below something that stays, when a key has moved the focus to it."""

READ = """([words]) => {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
  const lines = [...document.querySelectorAll(`${words} p`)].map((line) => [line, line.getBoundingClientRect()]);
  return lines.every(([line, { left, top }]) => top < 150 || line.contains(document.elementFromPoint(left + 20, top + 8)));
}"""


@pytest.mark.slow
@pytest.mark.parametrize("phone", [(390, 844), (360, 740)], indirect=True)
def test_the_photo_stays_over_what_belongs_to_it_and_covers_nothing_else(phone: Any) -> None:
    for name, photo in PHOTOS.items():
        opened(phone, name)
        panel = f"#vv-tab-{name}"
        found = phone.wait_for_function(STAYS, arg=[photo, f"{panel} .vv-words"]).json_value()
        assert abs(found.pop("top")) < 2, name
        assert found.pop("share") <= 0.35, name
        assert found == {"isSeen": True, "isAlone": True}, name
        phone.wait_for_function(READ, arg=[f"{panel} .vv-words"])


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_what_has_the_focus_is_never_covered(phone: Any, name: str) -> None:
    opened(phone, name)
    panel = f"#vv-tab-{name}"
    phone.evaluate(FOLLOW, panel)
    phone.locator(panel).evaluate("(panel) => { panel.tabIndex = -1; panel.focus(); }")
    for key in ("Tab", "Shift+Tab"):
        phone.keyboard.press(key)
        while phone.evaluate("(panel) => Boolean(document.activeElement.closest(panel))", panel):
            phone.keyboard.press(key)
    controls, covered = phone.evaluate("[followed.controls.size, followed.covered]")
    assert controls >= 5
    assert covered == []
