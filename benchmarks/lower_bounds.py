"""Do the lowest versions that pyproject.toml promises really work? Installs them beside each other and runs tests with them.

    python -m benchmarks.lower_bounds [--folder FOLDER] [TESTS ...]

Makes an environment of its own, with every dependency and those of the extras at the lower end of its range and all else as new as
these allow, and runs the tests without a browser in it (or the TESTS that are named, options of pytest included). Needs a network,
or an index of packages, for as long as it installs. Exits as pytest does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from contextlib import nullcontext
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
TESTS = [
    *(f"tests/{name}" for name in ("model", "checkpoints", "images", "analyses")),
    *(f"tests/{name}" for name in ("session", "figures", "cli", "offline", "notebook", "surfaces")),
    "tests/package/test_pyproject.py",
]
"""Those that need no browser: each dependency, and each of the extras, is used by some of them."""

NOT_FOR_TESTS = {"ruff", "mypy", "build", "hatchling", "jupyterlab"}
"""Of requirements-dev.txt: what these tests do without."""


def for_tests() -> list[str]:
    """What the tests need beside the package, as requirements-dev.txt has it."""
    lines = (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines()
    asked = [Requirement(line.split("#")[0]) for line in lines if line and not line.startswith("-r")]
    return [str(line) for line in asked if line.name not in NOT_FOR_TESTS]


def requirements() -> list[Requirement]:
    """What the package and its extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    return [Requirement(line) for line in lines]


def lowest(requirement: Requirement) -> str:
    """The same package at the lower end of its range."""
    ends = [one.version for one in requirement.specifier if one.operator == ">="]
    if len(ends) != 1:
        raise ValueError(f"{requirement} has no lower end.")
    return f"{requirement.name}=={ends[0]}"


def install(folder: Path) -> Path:
    """An environment with the lowest versions; returns its Python."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    lines = [lowest(requirement) for requirement in requirements()]
    print("\n".join(lines), flush=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *lines, *for_tests()], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keeps the environment here; default: a temporary folder")
    flags, tests = parser.parse_known_args()
    temporary = nullcontext(flags.folder) if flags.folder else tempfile.TemporaryDirectory()
    with temporary as folder:
        python = install(Path(folder))
        command = [python, "-m", "pytest", "-p", "no:cacheprovider", *(tests or TESTS)]
        return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
