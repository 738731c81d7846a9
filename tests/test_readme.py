"""README and docs say what the code does: views, methods, models, settings and commands."""

from __future__ import annotations

import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from huggingface_hub import SpaceHardware
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import vit_viz
from benchmarks.transformers_families import loading, refused
from tests.test_docker import copied
from vit_viz import rest
from vit_viz.checkpoints.catalog import BUNDLED, BUNDLED_LICENCE, CATALOG, Entry, entry_of
from vit_viz.checkpoints.source import MAX_VISITORS_BYTES
from vit_viz.images.decoder import MAX_SECONDS, MEMORY_BYTES
from vit_viz.images.preprocess import MAX_PATCHES
from vit_viz.session.handles import MAX_HANDLES
from vit_viz.session.session import LONGEST_SECONDS
from vit_viz.session.uploads import UPLOAD_BYTES, UPLOAD_SECONDS
from vit_viz.surface import PICTURE_BYTES, QUESTION_BYTES
from vit_viz.surveys.filters import LONGEST
from vit_viz.surveys.opened import FILTER_SECONDS
from vit_viz.turns import Turns
from vit_viz.ui.app import TABS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
DOCS = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
ALL = "\n".join([README, *DOCS.values()])


def test_the_front_page_is_short_and_leads_to_every_other() -> None:
    assert len(README.splitlines()) <= 180
    assert len(DOCS) >= 8
    assert [name for name in DOCS if f"](docs/{name})" not in README] == []


def test_each_tab_is_described_and_nothing_else() -> None:
    described = re.findall(r"^\| \*\*(\w+)\*\* \|.+\|.+\|$", README, re.MULTILINE)
    assert sorted(described) == sorted(tab.label for tab in TABS)


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_every_model_of_the_catalog_is_listed(entry: Entry) -> None:
    row = f"| `{entry.name}` | {entry.title} | {entry.good_for} | {entry.licence} | {entry.megabytes} MB |"
    assert row in DOCS["MODELS.md"]


@pytest.mark.parametrize(("name", "good_for"), BUNDLED.items(), ids=list(BUNDLED))
def test_every_bundled_model_is_listed(name: str, good_for: str) -> None:
    assert f"| `{name}` | bundled | {good_for} | {BUNDLED_LICENCE} | none |" in DOCS["MODELS.md"]


@pytest.mark.parametrize("row", ["load", "refused by name, with the reason"])
def test_the_families_of_transformers_are_those_that_the_script_measures(row: str) -> None:
    (named,) = re.findall(rf"^\| {row} \| (.+) \|$", DOCS["MODELS.md"], re.MULTILINE)
    assert named.split(", ") == (loading() if row == "load" else refused())


def test_every_setting_of_ours_is_read_somewhere() -> None:
    code = "".join(path.read_text() for path in (ROOT / "vit_viz").rglob("*.py"))
    tests = {"VIT_VIZ_CHROMIUM": "ui/conftest.py", "VIT_VIZ_TEST_EFFORT": "effort.py"}
    named = set(re.findall(r"VIT_VIZ_\w+", ALL)) - {*tests}
    assert named
    assert [name for name in named if name not in code] == []
    for name, reader in tests.items():
        assert name in DOCS["TESTING.md"]
        assert name in (ROOT / "tests" / reader).read_text()


def test_python_examples_use_public_names() -> None:
    used = set(re.findall(r"\bvv\.(\w+)", ALL))
    assert used
    assert used <= set(vit_viz.__all__)


def test_public_names_are_sorted_and_exist() -> None:
    assert vit_viz.__all__
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


def test_torch_for_the_cpu_is_the_torch_that_is_pinned() -> None:
    (version,) = re.findall(
        r"pip install torch==(\S+) --index-url https://download.pytorch.org/whl/cpu$", README, re.MULTILINE
    )
    assert re.search(rf"^torch=={re.escape(version)} ", (ROOT / "requirements.txt").read_text(), re.MULTILINE)


def tracked_pages() -> list[Path]:
    return [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "assets" / "README.md",
        ROOT / "training" / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]


@pytest.mark.parametrize("page", tracked_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_hold_no_gap_and_link_to_files_that_exist(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"@[A-Z_]{3,}@|TODO|FIXME", text) == []
    linked = [name for name in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in name]
    assert linked or page.name != "README.md" or page.parent != ROOT
    assert [name for name in linked if not (page.parent / name).exists()] == []


# --- what a Space reads


def front_matter() -> dict[str, str | list[str]]:
    """The settings between the first two lines of dashes: words, and lists of words."""
    settings: dict[str, str | list[str]] = {}
    for line in README.split("---\n")[1].splitlines():
        if line.startswith("  - "):
            values = settings[last]  # noqa: F821 - a list follows its name
            assert isinstance(values, list)
            values.append(line.removeprefix("  - "))
        else:
            last, value = line.split(":", 1)
            settings[last] = value.strip().strip('"') or []
    return settings


def test_the_space_has_its_settings_and_a_readable_title() -> None:
    settings = front_matter()
    assert settings["sdk"] == "gradio"
    assert settings["license"] == "apache-2.0"
    assert len(str(settings["short_description"])) <= 60
    assert (ROOT / str(settings["app_file"])).is_file()
    assert {settings["colorFrom"], settings["colorTo"]} <= {
        *("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
    }
    assert settings["python_version"] in ("3.10.13", "3.12.12")  # ZeroGPU's documentation, and live Spaces
    assert settings["suggested_hardware"] in [hardware.value for hardware in SpaceHardware]


def test_the_space_preloads_a_model_of_the_catalog_and_only_what_is_read_of_it() -> None:
    settings = front_matter()
    (line,) = settings["preload_from_hub"]
    repo, files = line.split(" ")
    assert entry_of(repo) is not None
    assert files.split(",") == ["config.json", "model.safetensors"]
    assert settings["models"] == [repo]
    assert entry_of(repo).title in DOCS["SHARING.md"].split("## Share it")[1]


def test_the_steps_upload_all_that_the_space_needs() -> None:
    included = re.findall(r'--include "?([\w.]+)', DOCS["SHARING.md"])
    installed = {"requirements.lock": "requirements.txt"}  # a Space reads the latter only: SECURITY.md
    assert sorted(included) == sorted([*(installed.get(name, name) for name in copied()), "README.md"])


def test_requirements_do_not_contradict_what_a_space_installs() -> None:
    theirs: dict[str, list[Requirement]] = {}
    for text in requires("gradio") or []:
        requirement = Requirement(text)
        if requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", "oauth", "mcp")
        ):
            theirs.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    shared = []
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        ours = Requirement(line.split("#")[0].strip())
        for requirement in theirs.get(canonicalize_name(ours.name), []):
            shared.append(ours.name)
            assert (ours.specifier & requirement.specifier).contains(version(ours.name), prereleases=True), (
                line
            )
    assert {"numpy", "pillow", "huggingface_hub"} <= set(shared)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("180 seconds each", LONGEST_SECONDS == 180),
        ("60 seconds in the queue", Turns().max_seconds == 60),
        ("an hour after its last use", UPLOAD_SECONDS == 3600),
        ("512 MB in all", UPLOAD_BYTES == 512 * 2**20),
        ("up to 2 GB", MAX_VISITORS_BYTES == 2 * 10**9),
        ("A question has at most 64 kB", QUESTION_BYTES == 64 * 2**10),
        ("up to 20 MB; decoded", PICTURE_BYTES == 20 * 2**20),
        ("in a process of its own with 20 seconds", MAX_SECONDS == 20),
        ("on Linux, 512 MiB", MEMORY_BYTES == 512 * 2**20),
        ("sees at most 1024 patches", MAX_PATCHES == 1024),
        ("at most 16 million numbers", max(rest._MOST.values()) == 2**24),
        ("at most 4,000 characters and two seconds", (LONGEST, FILTER_SECONDS) == (4000, 2)),
        ("their addresses (20,000)", MAX_HANDLES == 20_000),
    ],
)
def test_limits_are_those_of_the_code(words: str, value: bool) -> None:
    assert words in " ".join(DOCS["SHARING.md"].split())
    assert value
