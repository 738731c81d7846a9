"""Kinds of tests that pass on an idle machine only are kept out: a page's state read once, sleeping as proof, clicks at a place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent

READ_ONCE = {
    "is_hidden",
    "is_visible",
    "is_enabled",
    "is_disabled",
    "is_editable",
    "is_checked",
    "inner_text",
    "inner_html",
    "text_content",
    "all_inner_texts",
    "all_text_contents",
    "get_attribute",
    "input_value",
}
"""Of a locator, in an assertion: what a press causes follows a moment later, so `expect` (tests/ui/waits.py) waits for it."""

SLEEPS = {"wait_for_timeout"}
"""Nothing that has not happened after a time is thereby known never to happen: use the page's clock, or a test in Node."""

FOR_EVER = 600
"""Seconds of a sleep that stands for what hangs."""

LIMITS = {"wait", "join", "result"}
"""Of events, threads, processes and futures: where what must come is waited for, `PATIENCE` (tests/waiting.py) is the limit."""

SHORT = range(5, 60)
"""Seconds that are too few for a busy machine; fewer are meant to pass."""

CLICKS = {"click", "dblclick"}
"""Of a mouse. The page may still move: tests/ui/waits.py has `click_at`, and `point_of` for a pointer that hovers or drags."""

KNOWN = Counter(
    {
        ("checkpoints/fake_hub.py", "sleeps"): 1,
        ("images/test_worker.py", "sleeps"): 1,
        ("serving.py", "impatient"): 1,  # an app that does not end by itself is ended
        ("ui/test_notebook.py", "sleeps"): 1,
    }
)
"""Faults of each kind that stand in old files, of which there may only be fewer; rooms that are drawn anew lose theirs."""


def races(tree: ast.AST) -> Counter[str]:
    """How often a file does each of these things."""
    counts: Counter[str] = Counter()
    readers = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _reads_once(node)
    }
    polling = {id(part) for node in ast.walk(tree) if isinstance(node, ast.While) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            counts["reads once"] += _readings(node.test, readers)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            counts["sleeps"] += node.func.attr in SLEEPS or (id(node) not in polling and _sleeps(node))
            counts["impatient"] += node.func.attr in LIMITS and _is_short(node.args)
            if ast.unparse(node.func.value).endswith("mouse"):
                is_astray = node.func.attr == "move" and not all(map(_has_come_to_rest, node.args))
                counts["clicks at a place"] += node.func.attr in CLICKS or is_astray
    return +counts


def _readings(test: ast.AST, readers: Collection[str] = ()) -> int:
    """How often an expression reads the state of a page, itself or by a function of the file."""
    parts = list(ast.walk(test))
    of_results = {id(part.value) for part in parts if isinstance(part, ast.Attribute)}
    count = 0
    for part in parts:
        match part:
            case ast.Attribute(attr="url", value=ast.Name("page")):
                count += 1
            case ast.Attribute(attr=name) if name in READ_ONCE:
                count += 1
            case ast.Call(func=ast.Name(name)) if name in readers:
                count += 1
            case ast.Call(func=ast.Attribute(attr="count"), args=[]) if id(part) not in of_results:
                count += 1  # of a locator: a list and a text count something, and a table's count is a table
            case ast.Compare(
                ops=[ast.In() | ast.NotIn()], comparators=[ast.Attribute(attr="url", value=owner)]
            ):
                count += ast.unparse(owner) != "page"
    return count


def _reads_once(function: ast.FunctionDef) -> bool:
    """Whether a function of a file returns what it reads of a page, and waits for nothing."""
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
    waits = any(
        name.startswith(("expect", "wait")) or name == "until"
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        for name in [ast.unparse(node.func).rpartition(".")[2]]
    )
    return not waits and any(_readings(value) for value in returned)


def _sleeps(call: ast.Call) -> bool:
    """Whether a call sleeps for a fixed time, which would have to be enough; what draws or computes its pauses keeps a pace."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name("time" | "asyncio"), attr="sleep"), args=[ast.Constant(seconds)]
        ):
            return 0 < seconds < FOR_EVER
    return False


def _is_short(args: list[ast.expr]) -> bool:
    """Whether a call has nothing but a number of seconds that are too few."""
    match args:
        case [ast.Constant(int() | float() as seconds)]:
            return SHORT.start <= seconds < SHORT.stop
    return False


def _has_come_to_rest(place: ast.expr) -> bool:
    """Whether a place in the window is a fixed one, such as a corner, or where something stands still."""
    match place:
        case ast.Starred(ast.Call(func=ast.Name("point_of"))):
            return True
    return isinstance(place, ast.Constant)


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
        ("assert 'layer=2' in other.url", "reads once"),
        ("assert page.locator('a').count() == 3", "reads once"),
        ("def words(page): return page.inner_text('a')\nassert 'b' in words(page)", "reads once"),
        ("page.wait_for_timeout(500)", "sleeps"),
        ("time.sleep(0.5)", "sleeps"),
        ("assert begun.wait(10)", "impatient"),
        ("thread.join(20.0)", "impatient"),
        ("future.result(5)", "impatient"),
        ("page.mouse.click(3, 4)", "clicks at a place"),
        ("page.mouse.move(box['x'] + 3, box['y'] + 4)", "clicks at a place"),
        ("other.mouse.dblclick(*centre_of(other))", "clicks at a place"),
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
        "assert [1, 2].count(1) == 1",
        "assert photos == groups.count().iloc[0]",
        "def words(page):\n    expect(page).to_have_url('b')\n    return page.inner_text('a')\nassert 'b' in words(page)",
        "while not ended(): time.sleep(0.01)",
        "time.sleep(3600)",
        "begun.wait(PATIENCE)",
        "thread.join()",
        "', '.join(names)",
        "stop.wait(0.5)",
        "time.sleep(dice.uniform(0, 0.15))",
        "asyncio.sleep(0)",
        "page.mouse.move(2, 2)",
        "page.mouse.move(*point_of(photo, 0.3, 0.7), steps=5)",
    ],
)
def test_what_waits_is_left_alone(line: str) -> None:
    assert races(ast.parse(line)) == {}
