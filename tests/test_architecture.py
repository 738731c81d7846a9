"""docs/ARCHITECTURE.md names files, floors and things of the code that exist, and the README leads to it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_imports import LEVEL, PACKAGE
from vit_viz.session.session import Session
from vit_viz.ui.app import launch_options

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")

PLACE_HOLDERS = {".css"}
"""What a reader fills in."""


def code_words(text: str) -> list[str]:
    """What stands between backticks outside the drawing."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def named_paths(text: str) -> list[str]:
    """Files and folders that a text names, from the root of the repository."""
    return [word for word in code_words(text) if "/" in word or re.search(r"\.(py|js|css|md)$", word)]


def named_things(text: str) -> list[str]:
    """Classes, functions and constants that a text names; of a dotted name each part."""
    words = [word.removesuffix("()") for word in code_words(text) if word not in named_paths(text)]
    return [part for word in words if re.fullmatch(r"[A-Za-z_.]+", word) for part in word.split(".") if part]


def floors(text: str) -> list[list[str]]:
    """The parts of the package on each floor of the drawing, the topmost floor first."""
    drawing = re.findall(r"```\n(.*?)```", text, re.DOTALL)[0]
    lines = drawing.split("---\n")[-1].splitlines()
    return [re.split(r"\s{3,}", line.strip())[0].split() for line in lines]


def missing(paths: list[str]) -> list[str]:
    return [path for path in paths if path not in PLACE_HOLDERS and not (ROOT / path).exists()]


def test_every_file_that_the_page_names_exists() -> None:
    assert len(named_paths(PAGE)) > 20
    assert missing(named_paths(PAGE)) == []


def test_every_thing_that_the_page_names_exists() -> None:
    code = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    known = set(re.findall(r"\w+", code))
    assert len(named_things(PAGE)) > 20
    assert [name for name in named_things(PAGE) if name not in known] == []


def test_the_drawing_has_every_part_of_the_package_on_its_floor() -> None:
    drawn = floors(PAGE)
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(part for floor in drawn for part in floor) == sorted(parts - {"__init__", "__main__"})
    levels = [sorted({LEVEL[part] for part in floor}) for floor in reversed(drawn)]
    assert all(len(level) == 1 for level in levels)
    assert levels == sorted(levels)


def test_the_readme_leads_to_the_page() -> None:
    assert "(docs/ARCHITECTURE.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_page_stays_one_page() -> None:
    assert len(PAGE.splitlines()) <= 145  # two tables with a line for each route and type


def test_the_checks_notice_what_does_not_exist() -> None:
    text = "`vit_viz/nowhere.py`, `Session.run` and `build()`\n```\n`app.py`\n```\n"
    assert named_paths(text) == ["vit_viz/nowhere.py"]
    assert missing(named_paths(text)) == ["vit_viz/nowhere.py"]
    assert named_things(text) == ["Session", "run", "build"]
    assert floors("```\n a\n ---\n two  parts                        words that say it\n one\n```\n") == [
        ["two", "parts"],
        ["one"],
    ]


def test_what_the_page_asks_beside_questions_is_listed_and_little() -> None:
    listed = set(re.findall(r"^\| (/vit_viz/\w+) \|", PAGE, re.MULTILINE))
    routes = launch_options(Session(model="mini", device="cpu"))["app_kwargs"]["routes"]
    posted = {one.path for one in routes if one.path.startswith("/vit_viz/") and {"POST"} == one.methods}
    assert posted == listed
    assert len(listed) <= 8
