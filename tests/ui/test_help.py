"""What's this: every control that can be seen says what it is for, and nothing is pressed meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect
from vit_viz.ui.app import TABS
from vit_viz.ui.help import listing
from vit_viz.views.tab_options import HeadsTabOptions

pytestmark = pytest.mark.browser

READY = """(tab) => document.querySelector(`#vv-tab-${tab}-button[aria-selected=true]`)
    && document.querySelector('#vv-facts .vv-model-facts:not(:empty)')
    && ![...document.querySelectorAll(`#vv-tab-${tab} *`)].some((one) => one.matches('[aria-busy=true], .vv-busy'))
    && [...document.querySelectorAll(`#vv-tab-${tab} :is(canvas, img, input)`)].some((one) => one.checkVisibility())"""

WALK = """(selector) => {
  const told = [];
  for (const control of document.querySelectorAll(selector)) {
    if (!control.checkVisibility() || control.disabled || control.tabIndex < 0) continue;
    control.focus({ preventScroll: true });
    if (document.activeElement !== control) continue;
    const [title, words] = ['title', 'said'].map((part) => document.querySelector(`.vv-help-${part}`).textContent);
    told.push([control.outerHTML.slice(0, 160), title, words]);
  }
  return told;
}"""
CONTROLS = ("button", "select", "input", "summary", "[role=application]", "[role=slider]")
PLACES = [
    *(tab.name for tab in TABS),
    *(f"heads&face={face}" for face in ("surgery", "matrix", "depth")),
    "explain&explain=parts",
]


@pytest.fixture
def asked(visit: Callable[..., Any], app_url: str) -> Callable[[str], Any]:
    """A page at a place with help on."""

    def at(place: str) -> Any:
        page = visit(f"{app_url}?image=lion&tab={place}", ready=False)
        page.wait_for_function(READY, arg=place.partition("&")[0])
        page.evaluate("document.activeElement?.blur()")
        page.keyboard.press("?")
        expect(page.locator(".vv-help-card")).to_be_visible()
        page.wait_for_function("document.querySelector('.vv-help-card').dataset.known === 'all'")
        return page

    return at


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_every_control_says_what_it_is_for(asked: Callable[[str], Any], place: str) -> None:
    page, tab = asked(place), place.partition("&")[0]
    within = [f"#vv-tab-{tab}", "#vv-header", "#vv-tabs > .tab-wrapper"]
    told = page.evaluate(WALK, ", ".join(f"{one} {control}" for one in within for control in CONTROLS))
    assert len(told) > 15
    silent = [(html, title, words) for html, title, words in told if len(words.split()) < 4 or not title]
    assert not silent, "\n".join(map(str, silent))


@pytest.mark.slow
def test_what_it_says_is_what_the_option_declares_and_nothing_is_pressed(asked: Callable[[str], Any]) -> None:
    page, said = asked("look"), json.loads(listing())
    page.wait_for_function("location.search.includes('layer=')")  # the explorer has written what it shows
    card, address = page.locator(".vv-help-said"), page.url
    assert said["face"][1] == next(
        field.option.sentence for field in HeadsTabOptions.schema() if field.name == "face"
    )
    page.locator("#vv-explorer fieldset label", has_text="tint").hover()
    expect(card).to_contain_text(said["style"][1])
    page.locator("#vv-explorer [data-vv=play]").hover()
    expect(card).to_have_text(
        "Shows one layer after the other, from the first to the last."
    )  # and of no other tab's option
    page.locator("#vv-explorer fieldset label", has_text="tint").click()
    page.locator("#vv-tab-heads-button").click()
    expect(card).to_contain_text(next(tab.about for tab in TABS if tab.name == "heads"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".vv-help-card")).to_be_hidden()
    expect(page).to_have_url(address)
    expect(page.locator("#vv-tab-look-button")).to_have_attribute("aria-selected", "true")
    page.locator("#vv-explorer fieldset label", has_text="tint").click()
    page.wait_for_function("location.search.includes('style=tint')")
