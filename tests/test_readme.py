"""The README says what the code does: views, models, settings and commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vit_viz
from vit_viz.checkpoints.catalog import CATALOG, Entry
from vit_viz.ui.app import TABS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("label", [label for _name, label in TABS])
def test_every_tab_is_described(label: str) -> None:
    assert len(re.findall(rf"^\| \*\*{label}\*\* \|.+\|.+\|$", README, re.MULTILINE)) == 1


def test_no_view_is_described_that_does_not_exist() -> None:
    assert set(re.findall(r"^\| \*\*(\w+)\*\* \|", README, re.MULTILINE)) == {label for _name, label in TABS}


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_every_model_of_the_catalog_is_listed(entry: Entry) -> None:
    row = f"| `{entry.name}` | {entry.title} | {entry.good_for} | {entry.licence} | {entry.megabytes} MB |"
    assert row in README


def test_every_setting_of_ours_is_read_somewhere() -> None:
    code = "".join(path.read_text() for path in (ROOT / "vit_viz").rglob("*.py"))
    named = set(re.findall(r"VIT_VIZ_\w+", README)) - {"VIT_VIZ_CHROMIUM"}
    assert named
    assert [name for name in named if name not in code] == []
    assert "VIT_VIZ_CHROMIUM" in (ROOT / "tests" / "ui" / "conftest.py").read_text()


def test_python_examples_use_public_names() -> None:
    used = set(re.findall(r"\bvv\.(\w+)", README))
    assert used
    assert used <= set(vit_viz.__all__)


def test_public_names_are_sorted_and_exist() -> None:
    assert vit_viz.__all__ == sorted(vit_viz.__all__, key=lambda name: (name[0].islower(), name))
    assert [name for name in vit_viz.__all__ if not hasattr(vit_viz, name)] == []


def test_dependencies_have_a_reason_each() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        lines = [
            line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("-r")
        ]
        assert lines
        assert [line for line in lines if not re.fullmatch(r"\S+ +# \S.+", line)] == []


def test_space_runs_the_gradio_that_is_pinned() -> None:
    (version,) = re.findall(r"^sdk_version: (\S+)$", README, re.MULTILINE)
    assert f"gradio=={version} " in (ROOT / "requirements.txt").read_text()


def tracked_pages() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "assets" / "README.md",
        ROOT / "training" / "README.md",
    ]


@pytest.mark.parametrize("page", tracked_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_hold_no_gap_and_link_to_files_that_exist(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"@[A-Z_]{3,}@|TODO|FIXME", text) == []
    linked = [name for name in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in name]
    assert [name for name in linked if not (page.parent / name).exists()] == []
