"""The lock files: every requirement is in them, at a version that satisfies it; of requirements.lock every file has a hash."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_docker import arguments

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
IMAGE = {"python_version": "3.12", "python_full_version": "3.12.0", "sys_platform": "linux"}
IMAGE |= {"platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix"}
OF_CUDA = re.compile(r"triton|cuda-.*|nvidia-.*")


def entries(text: str) -> dict[str, list[str]]:
    """The hashes of each requirement of a lock file; what is in no known form is a requirement of its own."""
    lines = [line for line in text.splitlines() if not re.fullmatch(r"\s*#.*", line)]
    found: dict[str, list[str]] = {}
    for line in re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).splitlines():
        requirement, *hashes = line.split(" --hash=")
        found[requirement.strip()] = hashes
    return found


ENTRIES = entries(LOCK)
LOCKED = {canonicalize_name(Requirement(line).name): Requirement(line) for line in ENTRIES}


def version(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "=="
    return pin.version


def requirements(file: str) -> list[Requirement]:
    lines = (ROOT / file).read_text().splitlines()
    return [Requirement(line.split("#")[0]) for line in lines if line and not line.startswith("-r")]


@pytest.mark.parametrize(
    "requirement", requirements("requirements.txt"), ids=lambda requirement: requirement.name
)
def test_each_requirement_is_locked_at_a_version_that_satisfies_it(requirement: Requirement) -> None:
    locked = LOCKED[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version(locked))
    assert locked.marker is None


def test_every_entry_is_one_version_with_hashes() -> None:
    assert len(ENTRIES) == len(LOCKED) > 70
    assert [line for line in LOCKED.values() if not version(line)] == []
    for hashes in ENTRIES.values():
        assert hashes
        assert [text for text in hashes if not re.fullmatch(r"sha256:[0-9a-f]{64}", text)] == []


def test_what_the_locked_versions_need_in_the_image_is_locked() -> None:
    """As far as the packages are installed here at the versions of the lock file, their own metadata is asked."""
    from importlib import metadata

    asked = 0
    for name, locked in LOCKED.items():
        try:
            installed = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if installed.version != version(locked):
            continue
        asked += 1
        for text in installed.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({**IMAGE, "extra": ""}):
                there = LOCKED[canonicalize_name(needed.name)]
                assert needed.specifier.contains(version(there), prereleases=True), f"{name} needs {text}"
    assert asked > 20


def test_no_index_is_named() -> None:
    assert "://" not in LOCK
    assert re.findall(r"^\s*-", re.sub(r"\\\n", "", LOCK), re.MULTILINE) == []


def test_the_command_that_made_it_is_documented() -> None:
    (command,) = re.findall(r"^#\s+(uv pip compile .+)$", LOCK, re.MULTILINE)
    assert command in (ROOT / "SECURITY.md").read_text()
    assert "--generate-hashes" in command


def test_an_image_without_cuda_leaves_out_torch_and_what_only_its_gpus_need() -> None:
    if (awk := shutil.which("awk")) is None:
        pytest.skip("no awk here")
    (program,) = re.findall(r"awk '([^']+)'", " ".join(arguments("RUN")))
    left = entries(
        subprocess.run([awk, program], input=LOCK, capture_output=True, text=True, check=True).stdout
    )
    dropped = {Requirement(line).name for line in ENTRIES} - {Requirement(line).name for line in left}
    assert left.items() <= ENTRIES.items()
    assert dropped == {"torch"} | {name for name in LOCKED if OF_CUDA.fullmatch(name)}
    assert len(dropped) > 10


def test_what_the_checks_install_is_one_version_of_each_requirement_for_each_python() -> None:
    """requirements-dev.lock has no hashes: it is a constraint, also where torch comes from another index."""
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    locked = [Requirement(line) for line in lines if not line.startswith("#")]
    assert lines[1].removeprefix("#    ") in (ROOT / "docs" / "TESTING.md").read_text()
    for python in ("3.11", "3.12", "3.13"):
        here = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
        pins = [pin for pin in locked if pin.marker is None or pin.marker.evaluate(IMAGE | here)]
        names = {canonicalize_name(pin.name): pin for pin in pins}
        assert len(names) == len(pins)
        wanted = requirements("requirements.txt") + requirements("requirements-dev.txt")
        missed = [
            one for one in wanted if not one.specifier.contains(version(names[canonicalize_name(one.name)]))
        ]
        assert missed == [], python
