"""Kinds of tests that pass on an idle machine only are kept out: a page's state read once, sleeping as proof, clicks at a place."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent

READ_ONCE = {
    "is_hidden",
    "is_visible",
    "is_enabled",
    "is_disabled",
    "is_checked",
    "inner_text",
    "inner_texts",
    "text_content",
}
READ_ONCE |= {"all_inner_texts", "get_attribute", "input_value"}
"""Of a locator, in an assertion: what a press causes follows a moment later, so `expect` (tests/ui/waits.py) waits for it."""

SLEEPS = {"wait_for_timeout"}
"""Nothing that has not happened after a time is thereby known never to happen: use the page's clock, or a test in Node."""

AT_A_PLACE = {("mouse", "click")}
"""The page may still move: `locator.click(position=...)` is where the thing is now."""

KNOWN = Counter(
    {
        ("ui/edge/test_page_policy.py", "sleeps"): 1,
        ("ui/explain/test_parts.py", "reads once"): 2,
        ("ui/header/test_passes.py", "reads once"): 1,
        ("ui/header/test_picker.py", "reads once"): 1,
        ("ui/header/test_picker.py", "clicks at a place"): 1,
        ("ui/heads/test_matrix.py", "clicks at a place"): 1,
        ("ui/heads/test_room.py", "reads once"): 1,
        ("ui/positions/test_positions_page.py", "reads once"): 2,
        ("ui/test_app.py", "reads once"): 2,
        ("ui/test_app.py", "sleeps"): 1,
        ("ui/test_bringing.py", "sleeps"): 2,
        ("ui/test_explain.py", "reads once"): 6,
        ("ui/test_explorer.py", "sleeps"): 5,
        ("ui/test_explorer.py", "clicks at a place"): 1,
        ("ui/test_first_seconds.py", "sleeps"): 4,
        ("ui/test_hostile_text.py", "sleeps"): 1,
        ("ui/test_mosaic.py", "reads once"): 3,
        ("ui/test_mosaic.py", "clicks at a place"): 1,
        ("ui/test_notebook.py", "sleeps"): 2,
        ("ui/test_offline_page.py", "sleeps"): 1,
        ("ui/test_saving.py", "reads once"): 1,
        ("ui/test_script_loading.py", "sleeps"): 1,
        ("ui/test_site.py", "clicks at a place"): 1,
        ("ui/test_site.py", "reads once"): 1,
        ("ui/test_suffix.py", "reads once"): 1,
        ("ui/test_touch.py", "reads once"): 1,
        ("ui/test_touch.py", "sleeps"): 4,
        ("ui/test_walkthrough.py", "reads once"): 1,
        ("ui/tokens/test_room.py", "reads once"): 1,
        ("ui/tokens/test_room.py", "clicks at a place"): 1,
    }
)
"""Faults of each kind that stand in old files, of which there may only be fewer; rooms that are drawn anew lose theirs."""


def races(tree: ast.AST) -> Counter[str]:
    """How often a file does each of these things."""
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            counts["reads once"] += sum(
                isinstance(part, ast.Attribute)
                and (part.attr in READ_ONCE or (part.attr == "url" and ast.unparse(part.value) == "page"))
                for part in ast.walk(node.test)
            )
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            place = owner.attr if isinstance(owner, ast.Attribute) else ""
            counts["sleeps"] += node.func.attr in SLEEPS
            counts["clicks at a place"] += (place, node.func.attr) in AT_A_PLACE
    return +counts


def test_no_new_test_has_a_race_of_a_known_kind() -> None:
    found = Counter(
        {
            (file.relative_to(TESTS).as_posix(), kind): count
            for file in TESTS.rglob("*.py")
            for kind, count in races(ast.parse(file.read_text("utf-8"))).items()
        }
    )
    assert found - KNOWN == Counter(), "wait for the state (CONTRIBUTING.md)"
    assert KNOWN - found == Counter(), "fewer than known: take them out of KNOWN"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("assert 'layer=2' in page.url", "reads once"),
        ("assert page.locator('a').inner_text() == 'b'", "reads once"),
        ("assert not one.is_visible()", "reads once"),
        ("assert [a.get_attribute('b') for a in c] == []", "reads once"),
        ("page.wait_for_timeout(500)", "sleeps"),
        ("page.mouse.click(3, 4)", "clicks at a place"),
    ],
)
def test_a_race_is_noticed(line: str, kind: str) -> None:
    assert races(ast.parse(line)) == {kind: 1}


@pytest.mark.parametrize(
    "line",
    [
        "expect(page).to_have_url('a')",
        "text = page.locator('a').inner_text()",
        "page.locator('a').click(position={'x': 1, 'y': 2})",
        "assert entry.url == 'a'",
    ],
)
def test_what_waits_is_left_alone(line: str) -> None:
    assert races(ast.parse(line)) == {}
