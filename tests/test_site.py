"""The documentation site has a place for each public name, and each of its pages is in the contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vit_viz as vv

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
            "function"
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
    assert ".ci/site" in (root / ".github" / "workflows" / "release.yml").read_text()
    assert "--fail-on-warning" in (root / ".ci" / "site").read_text()
