"""Where mutations are made, and which tests try them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.mutations.__main__ import room_files
from benchmarks.mutations.covering import Covered, TestMap

ROOT = Path(__file__).resolve().parents[1]


def test_mutations_are_made_in_every_file_of_the_package() -> None:
    rooms = room_files(ROOT)
    inside = {file for files in rooms.values() for file in files}
    assert {
        f"vit_viz/{file}" for file in ("views/state.py", "explorer/attention.js", "capture/trace.py")
    } <= inside
    assert sum(map(len, rooms.values())) == len(inside), "a file is in two rooms"


def test_a_file_that_mutations_would_miss_is_named(tmp_path: Path) -> None:
    for file in {file for files in room_files(ROOT).values() for file in files} | {"vit_viz/cellar/one.py"}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    with pytest.raises(SystemExit, match=r"cellar/one\.py is in no room"):
        room_files(tmp_path)


def mapped(folder: Path) -> TestMap:
    """Three files of tests that call `f` of a module: its own with two tests, another with three cheap ones, and a dear one."""
    tests = {"test_thing": (2.0, 3.0), "test_cheap": (0.1, 0.2, 0.3), "test_dear": (4.0,)}
    entries = {}
    for name, seconds in tests.items():
        known = {f"tests/{name}.py::test_{place}": one for place, one in enumerate(seconds)}
        called = {test: ["vit_viz/thing.py:f"] for test in known}
        entries[f"tests/{name}.py"] = asdict(Covered("", known, called, loading=1.0))
    (folder / "map.json").write_text(json.dumps(entries))
    return TestMap(folder, folder / "map.json")


def test_all_tests_that_call_a_function_try_it_its_own_file_first(tmp_path: Path) -> None:
    stages, is_cut = mapped(tmp_path).stages("vit_viz/thing.py", "f", most_seconds=13)
    assert stages[0][:2] == ["tests/test_thing.py::test_0", "tests/test_thing.py::test_1"]
    assert (sum(map(len, stages)), is_cut) == (6, False)


@pytest.mark.parametrize(
    ("room", "chosen"),
    [
        (12.5, {"thing 0", "thing 1", "cheap 0", "cheap 1", "dear 0"}),
        (12.1, {"thing 0", "thing 1", "cheap 0", "dear 0"}),
        (7.2, {"thing 0", "thing 1", "cheap 0"}),
        (5.0, {"thing 0", "cheap 0", "cheap 1", "cheap 2"}),
    ],
)
def test_where_time_is_short_every_file_has_its_turn(room: float, chosen: set[str], tmp_path: Path) -> None:
    stages, is_cut = mapped(tmp_path).stages("vit_viz/thing.py", "f", most_seconds=room)
    names = {
        test.removeprefix("tests/test_").replace(".py::test_", " ") for stage in stages for test in stage
    }
    assert (names, is_cut) == (chosen, True)
