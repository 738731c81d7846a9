"""A room that is added as docs/ARCHITECTURE.md says: a folder of vit_viz/web, one that declares its tab, and its line in TABS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Server
from tests.test_docker import copy_to
from tests.ui.waits import expect

pytestmark = pytest.mark.browser

SCRIPT = """\
import { asked } from '../kit/ask.js';
import { opened, thePage } from '../kit/page.js';
import { html, render, useMemo } from '../kit/preact.js';

export function mount(element) {
  render(html`<${Toy} page=${thePage()} />`, element);
}

function Toy({ page }) {
  const answer = useMemo(() => {
    const open = opened(page, 'toy');
    return asked(page.ask, () =>
      open.value.state === 'done' ? ['classes', { ...open.value.value.about, count: 2 }] : null,
    );
  }, [page]);
  const { state, value, error } = answer.value;
  const { layer } = page.store.view;
  return html`<button
    class="vv-toy"
    aria-busy=${state === 'pending'}
    onClick=${() => page.store.set({ layer: 3 })}
  >
    ${error ?? value?.facts.names.join(' or ')}, layer ${layer.value ?? 'not chosen'}
  </button>`;
}
"""
STYLE = ".vv-toy { color: rgb(1, 2, 3); }\n"
VIEW = '''\
"""The Toy tab."""

from vit_viz.ui.kit import part, place
from vit_viz.ui.page import Tab

TAB = Tab("toy", "Toy", lambda: part("web/toy/room", html=place("toy")), about="What a toy is for.")
'''
LAST = "TABS: tuple[Tab, ...] = (\n"


def with_room(root: Path) -> None:
    """Copy the app and add the room to it."""
    copy_to(root)
    files = {
        "web/toy/room.js": SCRIPT,
        "web/toy/toy.css": STYLE,
        "ui/toy/view.py": VIEW,
        "ui/toy/__init__.py": "",
    }
    for name, text in files.items():
        file = root / "vit_viz" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    tabs = root / "vit_viz/ui/rooms.py"
    text = tabs.read_text("utf-8")
    assert text.count(LAST) == 1
    text = text.replace(LAST, f"{LAST}    toy.TAB,\n")
    tabs.write_text(
        text.replace(
            "from vit_viz.ui.page import Tab\n",
            "from vit_viz.ui.page import Tab\nfrom vit_viz.ui.toy import view as toy\n",
            1,
        ),
        "utf-8",
    )


def test_a_room_is_a_folder_and_a_line(
    start_app: Callable[..., Server], visit: Callable[..., Any], tmp_path: Path
) -> None:
    with_room(tmp_path)
    app = start_app("--model", "mini", root=tmp_path)
    page = visit(f"{app.url}/?tab=toy&image=lion")
    toy = page.locator(".vv-toy[aria-busy=false]")
    expect(toy).to_contain_text("lion or")
    expect(toy).to_contain_text("layer not chosen")
    assert toy.evaluate("node => getComputedStyle(node).color") == "rgb(1, 2, 3)"
    expect(page.get_by_role("tab", name="Toy")).to_have_attribute("aria-selected", "true")
    toy.click()
    expect(toy).to_contain_text("layer 3")
    page.wait_for_function("location.search.includes('layer=3')")
    page.get_by_role("button", name="Sample image tower").click()
    expect(toy).not_to_contain_text("lion or")
    page.go_back()
    expect(toy).to_contain_text("lion or")
