"""docs/ERRORS.md explains every sentence that an error may say, and no other."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from vit_viz import errors

ROOT = Path(__file__).resolve().parents[1]
ANY = "…"
"""Stands for what differs between two sentences of one kind."""

KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.VitVizError)
}


def text_of(node: ast.expr, constants: dict[str, str]) -> str:
    """A sentence as it is written in the code, with `ANY` for what is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part, constants) for part in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left, constants) + text_of(node.right, constants)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return re.sub(r"\{[^}]*\}", ANY, text_of(node.func.value, constants))
    return constants.get(node.id, ANY) if isinstance(node, ast.Name) else ANY


@cache
def sentences() -> dict[tuple[str, str], str]:
    """Where each sentence is said, by the exception and its text; those that are passed on as they are have no text here."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted((ROOT / "vit_viz").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        constants = {
            target.id: text_of(one.value, {})
            for one in tree.body
            if isinstance(one, ast.Assign)
            for target in one.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            said = text_of(node.args[0], constants) if node.func.id in KINDS else ""
            if len(re.findall(r"[A-Za-z]{2,}", said)) > 1:
                found[node.func.id, said] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return found


@cache
def families() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The rows of the page: the exceptions of the heading above, and words of the sentence."""
    rows: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    named: tuple[str, ...] = ()
    for line in (ROOT / "docs" / "ERRORS.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            named = tuple(re.findall(r"`(\w+)`", line))
        elif line.startswith("| `"):
            words, why, remedy = (cell.strip() for cell in line.strip("|").split(" | "))
            assert why
            assert remedy
            rows.append((named, tuple(re.findall(r"`([^`]+)`", words))))
    return rows


def has(said: str, words: str) -> bool:
    """Whether a sentence has these words, in any case."""
    parts = (re.escape(part) for part in words.lower().split(ANY))
    return re.search(".*".join(parts), said.lower()) is not None


def test_the_headings_are_the_exceptions() -> None:
    assert {name for named, _ in families() for name in named} == {*KINDS}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_sentence_is_found_by_its_words(kind: str) -> None:
    known = [word for named, words in families() if kind in named for word in words]
    lost = [
        f"{place}: {said}"
        for (name, said), place in sentences().items()
        if name == kind and not any(has(said, word) for word in known)
    ]
    assert lost == [], "docs/ERRORS.md explains what an error says: add its words to a row, or a row"


def test_no_word_is_of_a_sentence_that_nobody_says() -> None:
    said = sentences()
    assert len(said) > 500
    unsaid = [
        (named, word)
        for named, words in families()
        for word in words
        if not any(name in named and has(text, word) for name, text in said)
    ]
    assert unsaid == []
