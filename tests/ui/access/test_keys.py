"""Everything by the keyboard: every control is reached and shows it, and what opens gives the focus back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.access import places
from tests.ui.access.probes import CONTROLS, KEYS
from tests.ui.conftest import wait_until_ready
from tests.ui.waits import expect
from vit_viz.ui.app import TABS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST = 200  # stops of the focus on one tab or in one dialog
LAST_TAB = "#vv-tabs > .tab-wrapper [role=tab] >> nth=-1"


def follow(page: Any, key: str, most: int = MOST) -> list[str]:
    """Press a key until the focus leaves the page, or is where it was before; returns what does not show the focus."""
    unseen: list[str] = []
    for _ in range(most):
        page.keyboard.press(key)
        step = page.evaluate("keys.step()")
        if step is None or not step["isNew"]:
            return unseen
        if not step["isSeen"]:
            unseen.append(step["told"])
    return [*unseen, f"after {most} times {key} there was no end"]


def faults(page: Any, root: str, unseen: list[str]) -> list[str]:
    """What does not show the focus, what was not reached, and what looks pressable and is no control."""
    part = page.locator(root)
    missed = part.evaluate("(root, controls) => keys.missed(root, controls)", CONTROLS)
    hands = part.evaluate("(root, controls) => keys.hands(root, controls)", CONTROLS)
    return [f"focus not seen: {one}" for one in unseen] + [f"no way to: {one}" for one in missed + hands]


def walk(page: Any, root: str) -> list[str]:
    """Go through the page from the last tab on and, where something is missed, back; then by arrows from group to group."""
    page.evaluate(f"window.keys ??= {KEYS}")
    page.evaluate("keys.start()")
    page.locator(LAST_TAB).focus()
    unseen = follow(page, "Tab")
    if page.locator(root).evaluate("(root, controls) => keys.missed(root, controls).length", CONTROLS):
        page.evaluate("keys.turn()")
        unseen += follow(page, "Shift+Tab")
    return faults(page, root, unseen) + stuck(page, root)


def stuck(page: Any, root: str) -> list[str]:
    """Groups in which no arrow leads from the control that Tab reaches to another one."""
    found = []
    for index in range(page.locator(root).evaluate("root => keys.groups(root)")):
        for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
            page.evaluate("index => keys.enter(index)", index)
            page.keyboard.press(key)
            if page.evaluate("index => keys.hasLeft(index)", index):
                break
        else:
            found.append(f"no arrow leads on: {page.evaluate('index => keys.nameOf(index)', index)}")
    return found


@pytest.mark.parametrize("width", [390, 1440])
def test_tab_and_arrows_reach_whatever_can_be_pressed_and_it_is_seen_where_they_are(
    visit: Callable[..., Any], whole_app: str, width: int
) -> None:
    page = visit(whole_app, width=width)
    found = {place: walk(page, f"#vv-tab-{place.split(',')[0]}") for place in places.tabs(page)}
    assert {place: what for place, what in found.items() if what} == {}, json.dumps(found, indent=1)


POPOVERS = {
    ".vv-model-open": ".vv-model-panel",
    "#vv-size-opener button": "#vv-size",
    ".vv-proof": ".vv-details",
    ".vv-facts .vv-help": ".vv-help-words",
    "#vv-bring-opener button": "#vv-bring",
}


@pytest.mark.parametrize("width", [390, 1440])
def test_what_opens_takes_the_focus_keeps_it_and_gives_it_back(
    visit: Callable[..., Any], whole_app: str, width: int
) -> None:
    page = visit(whole_app, width=width)
    page.evaluate(f"window.keys ??= {KEYS}")
    menu = page.locator("#vv-menu button") if width < 640 else None
    found = {}
    for opener, panel in POPOVERS.items():
        press_in_menu(page, menu, opener)
        expect(page.locator(panel)).to_be_visible()
        page.evaluate("keys.start(); keys.step()")
        found[panel] = follow(page, "Tab")  # to the end of the page
        press_in_menu(page, menu, opener)
        page.keyboard.press("Escape")
        expect(page.locator(panel)).to_be_hidden()
        expect(page.locator(opener)).to_be_focused()
    for opener, dialog in (
        ("#vv-explorer [data-vv=save]", "dialog.vv-figure"),
        (".vv-ask", "dialog.vv-palette"),
    ):
        page.locator(opener).press("Enter")
        found[dialog] = walk_dialog(page, dialog)
        page.keyboard.press("Escape")
        expect(page.locator(opener)).to_be_focused()
    page.locator(".vv-ask").press("Enter")
    page.locator(".vv-palette-row").first.wait_for()
    page.keyboard.type("input x grad")
    page.keyboard.press("Enter")
    expect(page.locator(".vv-question-title")).to_be_focused()
    found["question"] = walk_dialog(page, "dialog.vv-question")
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('dialog[open]')")
    expect(page.locator(".vv-ask")).to_be_focused()
    assert {place: what for place, what in found.items() if what} == {}, json.dumps(found, indent=1)


def press_in_menu(page: Any, menu: Any, opener: str) -> None:
    """Press a button by the keyboard; on a phone some are in the menu, which opens first."""
    button = page.locator(opener)
    if menu and not button.is_visible():
        menu.press("Enter")
    button.press("Enter")


def walk_dialog(page: Any, dialog: str) -> list[str]:
    """Go once through a dialog, which the focus does not leave; what is wrong with it."""
    page.wait_for_selector(f"{dialog}:modal")
    page.evaluate("keys.start(); keys.step()")
    unseen = follow(page, "Tab")
    assert page.evaluate(
        "at => document.body === document.activeElement || !!document.activeElement.closest(at)", dialog
    )
    return faults(page, dialog, unseen)


@pytest.mark.parametrize("width", [390, 1440])
def test_the_tour_and_whats_this_leave_the_focus_where_it_is_seen(
    visit: Callable[..., Any], whole_app: str, width: int
) -> None:
    page = visit(whole_app, width=width)
    menu = page.locator("#vv-menu button") if width < 640 else None
    for stops in (1, 3):
        press_in_menu(page, menu, ".vv-start")
        for _ in range(stops):
            page.locator(".vv-tour[data-state=open]").wait_for()
            expect(page.locator(".vv-tour-title")).to_be_focused()
            page.locator(".vv-tour-next").press("Enter")
        page.keyboard.press("Escape")
        expect(page.locator(".vv-tour")).to_be_hidden()
        expect(page.locator(".vv-start") if menu is None else menu).to_be_focused()
    page.locator("#vv-tab-look-button").press("Enter")
    wait_until_ready(page)
    press_in_menu(page, menu, ".vv-facts .vv-help")
    page.locator(".vv-what").press("Enter")
    page.locator(".vv-help-card[data-known=all]").wait_for()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.locator(".vv-help-card")).to_be_hidden()
    expect(page.locator(".vv-facts .vv-help") if menu is None else menu).to_be_focused()


def test_the_first_stop_leads_to_the_photo_of_each_tab_where_keys_point_choose_and_let_go(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url)
    page.keyboard.press("Tab")
    expect(page.locator(".vv-skip")).to_be_focused()
    for place, tab in enumerate(TABS):
        if place:  # arrows go along the row, on which Tab stops once
            page.locator("[role=tab][tabindex='0']").focus()
            page.keyboard.press("ArrowRight")
            expect(page.locator(f"#vv-tab-{tab.name}-button")).to_be_focused()
            page.keyboard.press("Enter")
        photo = page.locator(f"#vv-tab-{tab.name} [data-photo]:visible").first
        photo.wait_for()
        places.open_tab(page, tab.name)  # until it is drawn
        page.locator(".vv-skip").focus()
        page.keyboard.press("Enter")
        expect(photo).to_be_focused()
        if tab.name == "explain":  # takes patches away
            photo.press("ArrowDown")
            photo.press("Enter")
            expect(page.locator("#vv-tab-explain .vv-slider-words")).to_contain_text("1 of 256")
            continue
        for key in ("ArrowDown", "ArrowRight", "Enter"):
            photo.press(key)
        page.wait_for_url(re.compile(r"[?&]q=\d+(,|%2C)\d+"))
        for key in ("Escape", "Escape"):
            photo.press(key)
        page.wait_for_function("!/[?&]q=\\d/.test(location.search)")


def test_a_note_is_closed_by_the_keyboard_which_goes_back_to_where_it_was(
    visit: Callable[..., Any], whole_app: str
) -> None:
    page = visit(whole_app)
    page.evaluate("() => { window.fetch = () => Promise.reject(new Error('This figure is too large.')); }")
    page.locator("#vv-explorer [data-vv=save]").press("Enter")
    page.locator(".vv-figure-save").press("Enter")
    expect(page.locator(".vv-figure-error")).to_contain_text("too large")
    expect(page.locator(".vv-figure-save")).to_be_focused()
    page.locator(".vv-figure-error .vv-close").press("Enter")
    expect(page.locator(".vv-figure-error")).to_be_hidden()
    expect(page.locator(".vv-figure-save")).to_be_focused()


def reach(page: Any, selector: str, key: str = "Tab") -> None:
    """Press a key until the focus is on a part of the page that is seen."""
    for _ in range(MOST):
        if page.evaluate("at => document.activeElement.matches(at)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{MOST} times {key} do not lead to {selector}")


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_every_task_is_done_with_the_keyboard_alone(visit: Callable[..., Any], whole_app: str) -> None:
    page = visit(whole_app)
    page.on("filechooser", lambda _: None)  # from here on Chromium tells of them

    def link(part: str) -> None:
        page.wait_for_url(re.compile(part))

    first = page.locator(".vv-sample[aria-pressed=true]").get_attribute("title")
    # a picture of the tray, and one of one's own
    reach(page, ".vv-sample:not([aria-pressed=true])")
    press(page, "Enter")
    link("[?&]image=")
    expect(page.locator(".vv-sample[aria-pressed=true]")).not_to_have_attribute("title", first)
    wait_until_ready(page)
    reach(page, "#vv-bring-opener button")
    press(page, "Enter")
    reach(page, ".vv-choose-file")
    with page.expect_file_chooser():
        press(page, "Enter")
    press(page, "Escape")
    expect(page.locator("#vv-bring")).to_be_hidden()
    # a model
    reach(page, ".vv-model-open", "Shift+Tab")
    press(page, "Enter")
    expect(page.locator(".vv-model-text")).to_be_focused()
    press(page, "ArrowDown", "ArrowUp", "Enter")
    expect(page.locator(".vv-model-panel")).to_be_hidden()
    # layer and head, query, a value
    reach(page, "#vv-explorer [data-vv=stage]")
    press(page, "ArrowDown", "Enter")
    link(r"[?&]q=\d")
    reach(page, "#vv-explorer [name$=-pointer]")
    press(page, "ArrowRight")
    reach(page, "#vv-explorer [data-vv=stage]", "Shift+Tab")
    press(page, "ArrowDown")
    expect(page.locator("#vv-explorer [data-vv=tip]")).to_contain_text("%")
    reach(page, "#vv-explorer [data-vv=mosaic]")
    press(page, "ArrowUp", "ArrowLeft", "Enter")
    link(r"[?&]head=\d")
    # a figure
    press(page, "Control+s")
    page.wait_for_selector("dialog.vv-figure:modal")
    reach(page, ".vv-figure-save")
    with page.expect_download():
        press(page, "Enter")
    press(page, "Escape")
    page.wait_for_function("!document.querySelector('dialog[open]')")
    # Explain: a card, the slider, the brush
    reach(page, "#vv-tabs [role=tab]", "Shift+Tab")
    press(page, "ArrowRight", "ArrowRight", "Enter")
    places.drawn(page, "explain")
    reach(page, "#vv-tab-explain .vv-way .vv-open:not([aria-pressed=true])")
    press(page, "Enter")
    link("[?&]method=")
    reach(page, ".vv-most", "Shift+Tab")
    press(page, "ArrowRight")
    expect(page.locator("#vv-tab-explain .vv-slider-words")).to_contain_text(" of 256")
    reach(page, "#vv-tab-explain .vv-all")
    press(page, "Enter")
    reach(page, "#vv-tab-explain [data-photo]", "Shift+Tab")
    press(page, "ArrowDown", "Enter")
    expect(page.locator("#vv-tab-explain .vv-slider-words")).to_contain_text("1 of 256")
    press(page, "Enter")
    expect(page.locator("#vv-tab-explain .vv-all")).to_be_disabled()
    # heads off, and back
    reach(page, "#vv-tabs [role=tab]", "Shift+Tab")
    press(page, "ArrowRight", "Enter")
    places.drawn(page, "heads")
    reach(page, "#vv-heads [data-face=surgery]")
    press(page, "Enter")
    places.drawn(page, "heads, surgery")
    reach(page, "#vv-heads td")
    press(page, "ArrowRight", "Enter")
    link("[?&]edits=off")
    reach(page, ".vv-surgery-undo")
    press(page, "Enter")
    page.wait_for_function("!location.search.includes('edits=off')")
    # the palette, the tour, the help: each is left again
    press(page, "Control+k")
    page.locator(".vv-palette-row").first.wait_for()
    page.keyboard.type("previous patch")
    press(page, "Enter")
    link("measure=left_neighbour.*[?&]head=|[?&]head=.*measure=left_neighbour")
    reach(page, ".vv-start", "Shift+Tab")
    press(page, "Enter")
    page.locator(".vv-tour[data-state=open]").wait_for()
    press(page, "Escape")
    expect(page.locator(".vv-start")).to_be_focused()
    press(page, "?")
    page.locator(".vv-help-card[data-known=all]").wait_for()
    press(page, "Escape")
    expect(page.locator(".vv-help-card")).to_be_hidden()
