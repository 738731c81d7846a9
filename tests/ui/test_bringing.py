"""Pictures that are pasted, in a real browser with its clipboard."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from PIL import Image

from tests.ui.waits import expect

pytestmark = pytest.mark.browser

PHOTO = "#vv-explorer [data-vv=photo]"
NOTE = ".vv-bring-note"

CARRY = """
const carry = (files) => {
  const transfer = new DataTransfer();
  for (const [name, type, data] of files)
    transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type }));
  return transfer;
};
"""
PASTE = f"""([selector, files]) => {{ {CARRY}
  const on = document.querySelector(selector);
  return on.dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: carry(files), bubbles: true, cancelable: true }}));
}}"""
"""Pastes files on an element; whether the browser may do what it does by itself."""
COPY = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': new Blob([bytes], { type: 'image/png' }) })]);
}"""

File = tuple[str, str, str]


def picture(width: int) -> File:
    """A picture of this width as the page gets it: name, type, bytes as base64."""
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((width, 211)).convert("RGB").save(buffer, "PNG")
    return "mine.png", "image/png", base64.b64encode(buffer.getvalue()).decode()


def shows(page: Any, width: int) -> None:
    """Wait until the photo is the one of this width, and the link says that it is an upload."""
    page.wait_for_function(
        "([photo, width]) => document.querySelector(photo).naturalWidth === width && location.search.includes('image=u')",
        arg=[PHOTO, width],
    )
    assert page.locator(PHOTO).evaluate("photo => photo.complete")


def test_the_keys_paste_with_nothing_focused_and_whoever_types_pastes_text(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert page.evaluate(PASTE, ["#vv-model input", [picture(401)]])  # is left to the browser
    expect(page.locator(NOTE)).to_be_hidden()
    page.evaluate("document.activeElement.blur()")
    for width in (411, 523):
        page.evaluate(COPY, picture(width)[2])
        page.keyboard.press("Control+V")
        shows(page, width)
    page.evaluate(PASTE, ["body", [("notes.pdf", "application/pdf", "JVBERg==")]])
    page.locator(NOTE).get_by_text("notes.pdf is no picture.").wait_for()
    assert page.evaluate("getComputedStyle(document.documentElement).scrollPaddingBottom") == "96px"
