"""Pictures that are pasted or dropped, in a real browser with real events and files."""

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
DROP = ".vv-drop-here"

CARRY = """
const carry = (files, text) => {
  const transfer = new DataTransfer();
  for (const [name, type, data] of files)
    transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name, { type }));
  if (text) transfer.setData('text/plain', text);
  return transfer;
};
"""
PASTE = f"""([selector, files, text]) => {{ {CARRY}
  const on = document.querySelector(selector);
  return on.dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: carry(files, text), bubbles: true, cancelable: true }}));
}}"""
DRAG = f"""([selector, kinds, files, text]) => {{ {CARRY}
  const on = document.querySelector(selector);
  const dataTransfer = carry(files, text);
  return kinds.map((kind) => on.dispatchEvent(new DragEvent(kind, {{ dataTransfer, bubbles: true, cancelable: true }})));
}}"""
COPY = """async (data) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': new Blob([bytes], { type: 'image/png' }) })]);
}"""

WIDTHS = """(photo) => {
  window.widths = [];
  const loaded = ({ target }) => target.matches?.(photo) && window.widths.push(target.naturalWidth);
  document.addEventListener('load', loaded, true);
}"""
"""Keeps the widths of all photos that are shown from now on."""

File = tuple[str, str, str]


def picture(width: int, *, name: str = "mine.png") -> File:
    """A picture of this width as the page gets it: name, type, bytes as base64."""
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((width, 211)).convert("RGB").save(buffer, "PNG")
    return name, "image/png", base64.b64encode(buffer.getvalue()).decode()


def paste(page: Any, *files: File, text: str = "", on: str = "body") -> bool:
    """Paste on an element; whether the browser may do what it does by itself."""
    return bool(page.evaluate(PASTE, [on, files, text]))


def drag(page: Any, *kinds: str, files: tuple[File, ...] = (), text: str = "", on: str = PHOTO) -> list[bool]:
    """Let a drag happen on an element; for each event, whether the browser may do what it does by itself."""
    return list(page.evaluate(DRAG, [on, kinds, files, text]))


def shows(page: Any, width: int) -> None:
    """Wait until the photo is the one of this width, and the link says that it is an upload."""
    page.wait_for_function(
        "([photo, width]) => document.querySelector(photo).naturalWidth === width && location.search.includes('image=u')",
        arg=[PHOTO, width],
    )
    assert page.locator(PHOTO).evaluate("photo => photo.complete")


def says(page: Any, words: str) -> None:
    page.locator(NOTE).get_by_text(words).wait_for()


@pytest.mark.slow
def test_of_two_pastes_in_a_row_the_second_is_shown(page: Any) -> None:
    page.evaluate(WIDTHS, PHOTO)
    paste(page, picture(401))
    paste(page, picture(503))
    shows(page, 503)
    paste(page, picture(307))
    shows(page, 307)
    widths = page.evaluate("window.widths")
    assert 401 not in widths[widths.index(503) :]
    page.locator(NOTE).wait_for(state="hidden")


@pytest.mark.slow
def test_the_keys_paste_with_nothing_focused(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("document.activeElement.blur()")
    for width in (411, 523):
        page.evaluate(COPY, picture(width)[2])
        page.keyboard.press("Control+V")
        shows(page, width)


@pytest.mark.slow
def test_whoever_types_pastes_text_as_ever(page: Any) -> None:
    brought: list[str] = []
    page.on(
        "request",
        lambda request: brought.append(request.url) if request.url.endswith("/vit_viz/bring") else None,
    )
    assert paste(page, picture(401), on="#vv-model input")
    expect(page.locator(NOTE)).to_be_hidden()
    assert not paste(page, picture(503))
    shows(page, 503)
    assert len(brought) == 1  # whatever the first had brought would have come before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "text", "words"),
    [
        ((), "a text", "There is no picture in the clipboard."),
        ((("notes.pdf", "application/pdf", "JVBERg=="),), "", "notes.pdf is no picture."),
    ],
    ids=["text", "a file that is no picture"],
)
def test_what_is_no_picture_gets_one_sentence(
    page: Any, files: tuple[File, ...], text: str, words: str
) -> None:
    paste(page, *files, text=text)
    says(page, words)
    assert "image=u" not in page.evaluate("location.search")


@pytest.mark.slow
def test_a_picture_that_cannot_be_read_gets_one_sentence_and_the_next_is_taken(page: Any) -> None:
    paste(page, ("broken.png", "image/png", base64.b64encode(b"no picture at all").decode()))
    says(page, "This file is a text file")
    paste(page, picture(409))
    shows(page, 409)


def test_a_file_dropped_on_the_photo_is_looked_at(page: Any) -> None:
    files = (("notes.txt", "text/plain", "YQ=="), picture(431))
    expect(page.locator(DROP)).to_be_hidden()
    assert drag(page, "dragenter", "dragover", files=files) == [False, False]
    expect(page.locator(DROP)).to_have_text("Drop pictures to look at them", use_inner_text=True)
    drag(page, "dragleave", files=files)
    expect(page.locator(DROP)).to_be_hidden()
    drag(page, "dragenter", files=files)
    assert drag(page, "drop", files=files) == [False]
    expect(page.locator(DROP)).to_be_hidden()
    shows(page, 431)


@pytest.mark.slow
def test_a_file_dropped_on_the_box_of_files_is_taken_once(page: Any) -> None:
    brought: list[str] = []
    page.on(
        "request",
        lambda request: brought.append(request.url) if request.url.endswith("/vit_viz/bring") else None,
    )
    drag(page, "dragenter", "dragover", "drop", files=(picture(433),), on="#vv-upload button")
    shows(page, 433)
    assert len(brought) == 1


@pytest.mark.slow
def test_text_that_is_dragged_and_parts_of_the_page_are_left_alone(page: Any) -> None:
    assert drag(page, "dragenter", "dragover", "drop", text="words") == [True, True, True]
    drag(page, "dragstart", on="#vv-samples img")
    assert drag(page, "dragenter", "drop", files=(picture(433),)) == [True, True]
    expect(page.locator(DROP)).to_be_hidden()
    expect(page.locator(NOTE)).to_be_hidden()
