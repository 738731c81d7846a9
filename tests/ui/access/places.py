"""Every place of the page that can be looked at: its tabs and their faces, what opens over them, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

TOUR_STOPS = 5

LOST = "a lost server"

POPOVERS = {
    "models": ".vv-model-open",
    "size": "#vv-size-opener button",
    "proof": ".vv-proof",
    "help": ".vv-facts .vv-help",
}
"""What opens over the page from the header, and its buttons."""

STILL = """() => !document.getAnimations().some((one) =>
  one instanceof CSSTransition && one.playState === 'running')"""
"""Nothing moves."""

SETTLED = """() => {
  const seen = (one) => one.checkVisibility({ visibilityProperty: true });
  const parts = [...document.querySelectorAll('[aria-busy=true], .vv-busy, .vv-heads-wait, .vv-gallery-wait')];
  const images = [...document.querySelectorAll('img')].filter(seen);
  const moves = document.getAnimations().filter((one) => one instanceof CSSTransition && one.playState === 'running');
  return document.querySelector('#vv-facts .vv-model-facts:not(:empty)') && !parts.some(seen) && !moves.length
    && images.every((one) => one.complete || !one.getAttribute('src'));
}"""
"""Nothing is on its way, and nothing moves."""

MARKS = {
    "look": "#vv-explorer [data-vv=root][data-state=ready]",
    "walkthrough": "#vv-w-content[aria-busy=false] .vv-w",
    "lesson": ".vv-lesson-stage[data-drawn]",
    "explain": "#vv-explain-picture .vv-image:not([hidden])",
    "explain, difference": "#vv-explain-picture .vv-sides:not([hidden])",
    "explain, parts": "#vv-parts [data-state=ready][aria-busy=false]",
    "heads": "#vv-heads .vv-heads[data-drawn]",
    "heads, surgery": "#vv-heads .vv-surgery-answers li",
    "heads, matrix": "#vv-head-matrix [data-ready]",
    "heads, depth": "#vv-heads .vv-heads-dot",
    "tokens": "#vv-tokens .vv-tokens-table thead th + th",
    "positions": ".vv-tables[aria-busy=false]",
    "patches": "#vv-tab-patches .vv-patch-grid",
    "survey": "#vv-survey-dots canvas[data-dots]",
}
"""What is there once a tab or a face of it is drawn."""


UNFOLD = """(tab) => {
  for (const one of document.querySelectorAll(`#vv-tab-${tab} details:not([open]), #vv-tab-${tab} .label-wrap:not(.open)`))
    if (one.checkVisibility()) (one.querySelector('summary') ?? one).click();
}"""


def settle(page: Any, *, is_lost: bool = False) -> None:
    """Wait until nothing is on its way; of a page without its server only that nothing moves."""
    page.wait_for_function(STILL if is_lost else SETTLED)


def drawn(page: Any, place: str) -> str:
    """Wait until a tab or a face is drawn, and unfold what is folded on it; returns its name."""
    page.wait_for_selector(MARKS[place], state="attached")
    settle(page)
    page.evaluate(UNFOLD, place.split(",")[0])
    settle(page)
    return place


def open_tab(page: Any, tab: str) -> str:
    """Open a tab and let it draw; returns its name."""
    page.locator(f"#vv-tab-{tab}-button").click()
    return drawn(page, tab)


def tabs(page: Any) -> Iterator[str]:
    """The page on each of its tabs, and on each face of those that have several."""
    page.wait_for_selector("#vv-tabs [role=tab][id^=vv-tab-]")
    buttons = page.locator("#vv-tabs > .tab-wrapper [role=tab]").evaluate_all(
        "all => all.map(({ id }) => id)"
    )
    for tab in [re.sub("^vv-tab-|-button$", "", button) for button in buttons]:
        yield open_tab(page, tab)
        if tab in ("heads", "explain"):
            yield from (heads if tab == "heads" else explain)(page)


def heads(page: Any) -> Iterator[str]:
    """The other faces of the Heads tab."""
    for face in ("surgery", "matrix", "depth"):
        page.locator(f"#vv-heads [data-face={face}]").click()
        page.wait_for_function(f"location.search.includes('face={face}')")
        yield drawn(page, f"heads, {face}")


def explain(page: Any) -> Iterator[str]:
    """Two classes against each other, and what the answer is made of."""
    if (folded := page.locator("#vv-target .vv-more-classes")).is_visible():  # on a phone
        folded.click()
    page.locator("#vv-target .vv-unlike .vv-chip").first.click()
    yield drawn(page, "explain, difference")
    page.locator("#vv-target [data-face=parts]").click()
    yield drawn(page, "explain, parts")


def over(page: Any, *, has_menu: bool) -> Iterator[str]:
    """Whatever opens over the page or comes and goes above it, and what goes wrong; the page is left by going on."""
    return chain(over_the_page(page, has_menu=has_menu), tour(page), edited(page), failures(page))


def bringing(page: Any) -> Iterator[str]:
    """What brings a picture, and what is said where none comes: of a machine without a camera, of a file that is none."""
    open_tab(page, "look")
    page.locator("#vv-bring-opener button").click()
    yield from _settled(page, "bring a picture")
    note = page.locator(".vv-bring-note")
    page.get_by_role("button", name="Use the camera").click()
    note.wait_for()
    yield from _settled(page, "camera")
    broken = {"name": "broken.png", "mimeType": "image/png", "buffer": b"no picture"}
    page.locator("#vv-upload input[type=file]").set_input_files(broken)
    note.filter(has_text="text file").wait_for()
    yield from _settled(page, "a picture that is none")
    page.keyboard.press("Escape")


def over_the_page(page: Any, *, has_menu: bool) -> Iterator[str]:
    """What opens over the page, from the Look tab and closed again after each."""
    open_tab(page, "look")
    menu = page.locator("#vv-menu button")
    if has_menu:
        menu.click()
        yield from _settled(page, "menu")
    for name, opener in POPOVERS.items():
        page.locator(opener).click()
        yield from _settled(page, name)
        page.keyboard.press("Escape")
        if has_menu and menu.get_attribute("aria-expanded") == "false":
            menu.click()
    page.keyboard.press("Escape")
    yield from _download(page, menu if has_menu else None)
    page.locator("#vv-bring-opener button").click()
    yield from _settled(page, "bring a picture")
    page.keyboard.press("Escape")
    page.locator("#vv-explorer [data-vv=save]").click()
    yield from _settled(page, "save")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.locator(".vv-palette-row").first.wait_for()
    yield from _settled(page, "palette")
    page.keyboard.type("input x grad")
    page.keyboard.press("Enter")
    page.locator(".vv-question[open]").wait_for()
    yield from _settled(page, "question")
    page.locator(".vv-question-go").dispatch_event("click")  # it may have been answered before
    page.locator(".vv-question[open][data-state=done][data-drawn]").wait_for()
    yield from _settled(page, "answer")
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('dialog[open]') && !location.search.includes('ask=')")
    page.keyboard.press("?")
    page.locator(".vv-help-card[data-known=all]").wait_for()
    page.keyboard.press("Tab")
    page.locator(".vv-help-ring").wait_for()
    yield from _settled(page, "what's this")
    page.keyboard.press("Escape")


def tour(page: Any) -> Iterator[str]:
    """The stops of the tour."""
    page.evaluate("window.dispatchEvent(new CustomEvent('vv-tour'))")
    for stop in range(1, TOUR_STOPS + 1):
        page.locator(".vv-tour[data-state=open]", has_text=f"{stop} of {TOUR_STOPS}").wait_for()
        yield from _settled(page, f"tour, stop {stop}")
        page.locator(".vv-tour-next").click()


def edited(page: Any) -> Iterator[str]:
    """What was changed inside the model."""
    page.goto(page.url.split("?")[0] + "?edits=off%201.3")
    page.locator(".vv-edited-badge").click()
    page.locator(".vv-edited-after li").first.wait_for()
    yield from _settled(page, "edited")
    page.keyboard.press("Escape")


def failures(page: Any) -> Iterator[str]:
    """A note of what went wrong, one in a dialog, and a server that does not answer any more."""
    page.goto(page.url.split("?")[0] + "?layer=99&image=nowhere")
    page.locator("#vv-top .vv-status .vv-close").wait_for()
    drawn(page, "look")
    yield "a note"
    page.evaluate(
        "document.dispatchEvent(new ClipboardEvent('paste', { clipboardData: new DataTransfer() }))"
    )
    page.locator(".vv-bring-note:not([hidden])").wait_for()
    yield from _settled(page, "an empty clipboard")
    page.route("**/api/v1/look", lambda route: route.fulfill(status=400, json={"error": "It is too large."}))
    page.locator("#vv-explorer [data-vv=save]").click()
    page.locator(".vv-figure-save").click()
    page.locator(".vv-figure-error:not([hidden])").wait_for()
    yield from _settled(page, "an error")
    page.keyboard.press("Escape")
    page.context.set_offline(True)
    page.evaluate("window.dispatchEvent(new Event('online'))")
    page.locator(".vv-lost").wait_for()
    yield LOST
    page.context.set_offline(False)


def _download(page: Any, menu: Any | None) -> Iterator[str]:
    """What is asked before a model is downloaded; on a phone the list is in the menu."""
    if menu:
        menu.click()
    page.locator(POPOVERS["models"]).click()
    page.keyboard.type("registers")
    page.locator("#vv-model [data-name=dinov2-s14-reg][aria-selected=true]").wait_for()
    page.keyboard.press("Enter")
    page.locator(".vv-model-question[open]").wait_for()
    yield from _settled(page, "download")
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('dialog[open]')")
    if menu and menu.get_attribute("aria-expanded") == "true":
        menu.click()


def _settled(page: Any, name: str) -> Iterator[str]:
    settle(page)
    yield name
