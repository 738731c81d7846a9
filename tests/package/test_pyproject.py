"""pyproject.toml: what the wheel asks for, beside the pins of the app, and one place for the version."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import vit_viz
from benchmarks.lower_bounds import lowest, requirements
from tests.test_imports import imported_names
from vit_viz.bundled import bundled_file

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

COME_WITH_OTHERS = {"anyio", "brotli", "starlette", "tqdm", "traitlets"}
OPTIONAL = {"pillow_heif", "spaces"}
"""Libraries that are used where they are there, and asked of nobody."""


OF_EXTRAS = ("mcp.py", "notebook", "rest.py", "surveys")
"""Modules beside `ui` that need an extra, as that does; `vit_viz/figures/plots.py` reads plotly for the page only."""


def named(lines: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}


CORE = named(PROJECT["dependencies"])
ALL = CORE | {name: line for lines in EXTRAS.values() for name, line in named(lines).items()}


def pins() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    return named([line.split("#")[0] for line in lines if line])


def imported(folder: Path, *, besides: tuple[str, ...] = ()) -> set[str]:
    """Libraries that the modules of a folder import, also inside functions."""
    paths = (path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in besides)
    return {name.partition(".")[0] for path in paths for name in imported_names(path)}


def packages(libraries: set[str]) -> set[str]:
    """The packages that libraries of others come from, those that are optional or come with another one left out."""
    foreign = libraries - set(sys.stdlib_module_names) - OPTIONAL - COME_WITH_OTHERS - {"vit_viz"}
    return {canonicalize_name({"PIL": "pillow", "fpdf": "fpdf2"}.get(name, name)) for name in foreign}


def test_the_wheel_asks_for_what_the_app_is_pinned_to() -> None:
    assert {name for name in ALL if name in pins()} == set(pins())
    for name, pin in pins().items():
        asked = {one.operator: one.version for one in pin.specifier}
        ours = {one.operator: one.version for one in ALL[name].specifier}
        if "==" in asked:
            assert ALL[name].specifier.contains(asked["=="]), name
        else:
            assert ours["<"] == asked["<"], name
            assert Version(ours[">="]) >= Version(asked[">="]), name


@pytest.mark.parametrize("name", list(ALL))
def test_each_requirement_is_a_range_that_holds_what_is_installed(name: str) -> None:
    operators = [one.operator for one in ALL[name].specifier]
    assert sorted(operators) == ["<", ">="]
    try:
        here = version(name)
    except ModuleNotFoundError:
        pytest.skip(f"{name} is not installed here")
    assert ALL[name].specifier.contains(here)


def test_the_package_and_its_extras_ask_for_what_is_imported_and_nothing_else() -> None:
    assert packages(imported(ROOT / "vit_viz")) == set(ALL)


def test_without_extras_it_asks_for_what_is_imported_outside_the_page() -> None:
    of_page_and_plots = {"plotly", "matplotlib", "pandas"}
    assert packages(imported(ROOT / "vit_viz", besides=("ui", *OF_EXTRAS))) - of_page_and_plots == set(CORE)
    assert packages(imported(ROOT / "vit_viz" / "ui")) <= set(CORE) | set(named(EXTRAS["app"]))


def test_the_version_has_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert "version" not in PROJECT
    assert Version(vit_viz.__version__)
    places = [path for path in (ROOT / "vit_viz").rglob("*.py") if "__version__ =" in path.read_text("utf-8")]
    assert places == [ROOT / "vit_viz" / "__init__.py"]


def test_every_python_that_is_named_is_asked_for_and_the_space_has_one_of_them() -> None:
    asked = SpecifierSet(PROJECT["requires-python"])
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert [f"3.{minor}" for minor in range(8, 20) if f"3.{minor}.5" in asked] == classified
    (space,) = re.findall(r'^python_version: "(.+)"$', (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert space in asked


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "vit_viz" / "py.typed").read_bytes() == b""


def test_bundled_files_are_found_beside_a_checkout() -> None:
    assert bundled_file("imagenet1k.tsv") == ROOT / "assets" / "imagenet1k.tsv"
    assert bundled_file("imagenet1k.tsv").is_file()


def test_bundled_files_are_found_inside_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vit_viz.bundled._PACKAGE", tmp_path / "vit_viz")
    assert bundled_file("a.tsv") == tmp_path / "assets" / "a.tsv"
    (tmp_path / "vit_viz" / "assets").mkdir(parents=True)
    assert bundled_file("a.tsv") == tmp_path / "vit_viz" / "assets" / "a.tsv"


def test_the_lowest_version_of_each_range_is_what_the_script_installs() -> None:
    assert lowest(Requirement("torch>=2.13,<3")) == "torch==2.13"
    with pytest.raises(ValueError, match="no lower end"):
        lowest(Requirement("torch<3"))
    assert {canonicalize_name(line.name) for line in requirements()} == set(ALL)


def test_the_script_runs_tests_of_everything_that_has_a_range() -> None:
    """With each library there is a test folder of the script that imports it, or the part of the package that needs it."""
    import benchmarks.lower_bounds as script

    assert all((ROOT / path).exists() for path in script.TESTS)
    covered = {path.split("/")[1] for path in script.TESTS}
    assert covered >= {"checkpoints", "analyses", "session", "figures", "notebook", "surfaces"}
    needed = {Requirement(line).name for line in script.for_tests()}
    assert needed >= {"pytest", "hypothesis", "timm", "transformers", "httpx"}
    assert needed & script.NOT_FOR_TESTS == set()
