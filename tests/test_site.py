"""The documentation site has a place for each public name, and each of its pages is in the contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vit_viz as vv
from vit_viz.cli.parser import command_line

SITE = Path(__file__).resolve().parents[1] / "docs" / "site"
API = {page.name: page.read_text("utf-8") for page in sorted((SITE / "api").glob("*.rst"))}


def test_each_public_name_has_one_place_in_the_api() -> None:
    named = [
        name for page in API.values() for name in re.findall(r"^\.\. auto\w+:: (\w+)$", page, re.MULTILINE)
    ]
    assert sorted(named) == sorted(vv.__all__)


@pytest.mark.parametrize("page", API)
def test_a_thing_is_listed_as_what_it_is(page: str) -> None:
    listed = re.findall(r"^\.\. auto(\w+):: (\w+)$", API[page], re.MULTILINE)
    assert listed
    for kind, name in listed:
        thing = getattr(vv, name)
        expected = (
            "data"
            if not callable(thing)
            else "function"
            if not isinstance(thing, type)
            else "exception"
            if issubclass(thing, Exception)
            else "class"
        )
        assert kind == expected, name


def test_each_page_of_docs_is_in_the_contents() -> None:
    contents = (SITE / "index.md").read_text("utf-8")
    pages = [page.stem for page in SITE.parent.glob("*.md")]
    assert len(pages) >= 8
    assert [page for page in pages if f"\n../{page}\n" not in contents] == []


def test_ci_builds_the_site_and_a_release_publishes_it() -> None:
    root = SITE.parents[1]
    assert "part site .ci/site\n" in (root / ".ci" / "full").read_text()
    assert "--fail-on-warning" in (root / ".ci" / "site").read_text()
    workflows = root / ".github" / "workflows"
    assert "uses: ./.github/workflows/site.yml" in (workflows / "release.yml").read_text()
    steps = (workflows / "site.yml").read_text()
    assert ".ci/site" in steps
    assert "path: build/site\n" in steps


def test_the_page_beside_it_is_written_by_a_command_that_there_is() -> None:
    steps = (SITE.parents[1] / ".github" / "workflows" / "site.yml").read_text()
    (line,) = re.findall(r"python -m vit_viz (site .+)", steps)
    defaults = dict(re.findall(r"(\w+): \$\{\{ inputs\.\w+ \|\| '(\w+)' }}", steps))
    words = line.replace('"', "").replace("$STORAGE", defaults["STORAGE"])
    flags = command_line().parse_args(words.replace("${models[@]}", defaults["MODELS"]).split())
    assert (flags.out, flags.models, flags.storage) == ("build/site/try", ["mini"], "int8")
    written = set(re.findall(r"inputs\.(\w+)", steps))
    assert written == set(re.findall(r"^      (\w+):\n        description: ", steps, re.MULTILINE))
    assert not re.findall(
        r"run: .*\$\{\{", steps
    )  # an input that became a part of a command could be any command
