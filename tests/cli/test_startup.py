"""Help, version and completion need no library that takes long to import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ui.desk import odd_picture

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "gradio", "pyarrow", "huggingface_hub", "captum", "ray")
PROGRAM = """
import json, sys
from vit_viz.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""
LIGHT = [
    ["--help"],
    ["--version"],
    *(["completion", shell] for shell in ("bash", "zsh", "fish")),
    *(
        [name, "--help"]
        for name in ("look", "explain", "heads", "positions", "proof", "models", "page", "replay")
    ),
    *([name, "--help"] for name in ("serve", "mcp", "survey", "compare-surveys", "completion")),
]


WITHOUT = """
import importlib.metadata, sys
missing, found = {missing!r}, importlib.metadata.Distribution.from_name
def from_name(name):
    if name in missing:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.Distribution.from_name = from_name
sys.modules.update(dict.fromkeys(missing))
from vit_viz.cli import main
sys.exit(main(sys.argv[1:]))
"""


def ended(*argv: str) -> tuple[int, set[str], str]:
    """Exit code of a command in a process of its own, the packages that it imported, what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=True, timeout=120
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    return code, set(modules), done.stdout


def run_in(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command in another folder than that of the code."""
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables, timeout=120)


@pytest.mark.parametrize("argv", LIGHT, ids=" ".join)
def test_what_only_tells_imports_nothing_heavy(argv: list[str]) -> None:
    code, modules, printed = ended(*argv)
    assert code == 0
    assert printed
    assert {"vit_viz", "argparse"} <= modules
    assert modules & {*HEAVY} == set()


@pytest.mark.parametrize("argv", [["look"], ["rollout", "lion", "--discard", "7"]], ids=" ".join)
def test_a_command_that_cannot_be_read_is_refused_before_anything_heavy_is_imported(argv: list[str]) -> None:
    code, modules, printed = ended(*argv)
    assert (code, printed) == (2, "")
    assert modules & {*HEAVY} == set()


def test_the_test_sees_what_a_command_imports() -> None:
    code, modules, _ = ended("rollout", "twins")
    assert code == 0
    assert "torch" in modules


@pytest.mark.parametrize(
    ("missing", "argv", "said", "extra"),
    [
        (["pyarrow"], ["survey", "photos", "--out", "out"], "A survey needs pyarrow", "survey"),
        (["pyarrow"], ["compare-surveys", "one", "two"], "needs pyarrow", "survey"),
        (["gradio"], ["serve"], "The page needs gradio", "app"),
    ],
    ids=["survey", "compare-surveys", "serve"],
)
def test_a_command_whose_extra_is_missing_says_what_to_install(
    missing: list[str], argv: list[str], said: str, extra: str, tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    odd_picture().save(tmp_path / "photos" / "one.png")
    program = WITHOUT.format(missing=missing)
    done = run_in(tmp_path, [sys.executable, "-c", program, *argv])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("vit-viz: ")
    assert said in done.stderr
    assert f"which is not installed: pip install 'vit_viz[{extra}]'." in done.stderr
    assert done.stderr.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["photos"]


def test_other_commands_need_no_extra_of_surveys(tmp_path: Path) -> None:
    program = WITHOUT.format(missing=["pyarrow", "duckdb", "ray"])
    done = run_in(tmp_path, [sys.executable, "-c", program, "models"])
    assert (done.returncode, done.stderr) == (0, "")
