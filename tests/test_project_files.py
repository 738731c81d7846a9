"""What an open project is expected to have says what is true: how to contribute, how to cite, what runs elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vit_viz
from tests.conftest import PROCESSES, pytest_xdist_auto_num_workers

Source = pytest.Config.ArgsSource
ROOT = Path(__file__).resolve().parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_citation_names_the_version_and_the_licence_of_the_package() -> None:
    fields = dict(re.findall(r"^([\w-]+): (\S.*)$", text("CITATION.cff"), re.MULTILINE))
    assert fields["version"] == vit_viz.__version__
    assert f'license = "{fields["license"]}"' in text("pyproject.toml")


def test_llms_txt_leads_to_every_page_and_its_lines_of_python_run() -> None:
    said = text("llms.txt")
    assert said.startswith("# vit_viz\n\n> ")
    linked = re.findall(r"^- \[[^]]+\]\(([^)]+)\): ", said, re.MULTILINE)
    assert [name for name in linked if not (ROOT / name).is_file()] == []
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= {*linked}
    assert "llms.txt" in text("docs/site/conf.py")
    (lines,) = re.findall(r"`(import vit_viz as vv; .+?)`", said)
    made: dict[str, Any] = {}
    exec(lines, made)
    assert made["answer"].values.ndim == 2


def test_checks_elsewhere_are_those_of_this_repository_and_a_release_waits_for_them() -> None:
    assert "run: bash .ci/run" in text(".github/workflows/checks.yml")
    full = text(".github/workflows/full.yml")
    assert "run: bash .ci/full" in full
    assert "schedule:" in full
    release = text(".github/workflows/release.yml")
    for workflow in ("checks", "full"):
        assert f"uses: ./.github/workflows/{workflow}.yml" in release
    assert re.search(r"build:\n\s+needs: \[checks, full\]\n", release)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/WHY.md"])
def test_every_file_and_link_of_the_page_exists(page: str) -> None:
    content = text(page)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", content) if "://" not in link]
    paths = re.findall(r"`([\w./]+/[\w./]*)`", content)
    assert len(links) + len(paths) > 6
    base = (ROOT / page).parent
    assert [link for link in links if not (base / link).exists()] == []
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_commands_for_contributors_are_those_that_ci_runs() -> None:
    commands = re.findall(r"^\| `([^`]+)` \|", text("CONTRIBUTING.md"), re.MULTILINE)
    ci = text(".ci/run") + text(".ci/full") + text(".ci/second_try.py").replace('", "', " ")
    named = [part.strip() for command in commands for part in command.split("&&")]
    known = {"python app.py", ".ci/run", ".ci/full", "ruff format .", "npm run check"}
    assert [command for command in named if command not in known and command not in ci] == []
    assert "npm run --silent check" in ci


@pytest.mark.parametrize(
    ("source", "marks", "cores", "processes"),
    [
        (Source.TESTPATHS, "not slow", 2, PROCESSES),
        (Source.TESTPATHS, "not slow", 64, PROCESSES),
        (Source.TESTPATHS, "not slow", 1, 0),
        (Source.TESTPATHS, "not slow", None, 0),
        (Source.TESTPATHS, "slow", 2, 0),
        (Source.ARGS, "not slow", 2, 0),
    ],
)
def test_processes_share_all_tests_and_named_ones_run_in_this_process(
    monkeypatch: pytest.MonkeyPatch, source: Source, marks: str, cores: int | None, processes: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    config: Any = SimpleNamespace(args_source=source, option=SimpleNamespace(markexpr=marks))
    assert pytest_xdist_auto_num_workers(config) == processes
