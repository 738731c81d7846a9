"""The house in order: names say what they hold, no type of a model is asserted, and nobody reaches into a class from outside."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "vit_viz"

SOURCES = sorted(path for ending in ("py", "js", "css") for path in PACKAGE.rglob(f"*.{ending}"))
MODULES = [path for path in SOURCES if path.suffix == ".py"]

MODELS = {"Block", "Mlp", "PackedSwiGLU", "Module", "LoadedModel", "Model", "VisionTransformer", "ViTConfig"}
"""Types that say what a model is made of: where one is needed, a protocol or a check says so, not a cast."""

EMPTY_NAMES = {"found"}
"""Names that do not say what they hold: a map, a class, a file? A reader would have to look."""


def model_casts(tree: ast.AST) -> list[int]:
    """Lines with a `cast` (of typing, under whatever prefix) to a type of MODELS."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _last_name(node.func) == "cast"
        and node.args
        and _names(node.args[0]) & MODELS
    ]


def fields_set_from_outside(tree: ast.AST) -> list[str]:
    """Private attributes that are set or deleted on something that is neither `self` nor `cls`."""
    stored = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and _is_foreign_field(node.value, node.attr)
    ]
    called = [
        str(node.args[1].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and _last_name(node.func) in ("setattr", "__setattr__", "delattr")
        and len(node.args) >= 2
        and isinstance(node.args[1], ast.Constant)
        and _is_foreign_field(node.args[0], str(node.args[1].value))
    ]
    return stored + called


def empty_names(tree: ast.AST) -> list[int]:
    """Lines on which a variable, an attribute, an argument or a function has one of EMPTY_NAMES."""
    names = (
        (getattr(node, field, None), getattr(node, "lineno", 0))
        for node in ast.walk(tree)
        for field in ("id", "attr", "arg", "name")
    )
    return [line for name, line in names if name in EMPTY_NAMES]


def _is_foreign_field(owner: ast.expr, name: str) -> bool:
    is_private = name.startswith("_") and not name.endswith("__")
    return is_private and not (isinstance(owner, ast.Name) and owner.id in ("self", "cls"))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _names(node: ast.expr) -> set[str]:
    """Names in a type, also where it is written as text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    return {_last_name(part) for part in ast.walk(node) if isinstance(part, ast.expr)}


def files_named_in_comments(text: str) -> list[str]:
    """Files of source that the comments of a stylesheet or script name, as they name them."""
    comments = re.findall(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", text, flags=re.DOTALL)
    return [name for comment in comments for name in re.findall(r"[\w./-]*\w\.(?:js|mjs|css|py)\b", comment)]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_every_file_of_the_package_is_checked() -> None:
    assert {"capture", "explorer", "session", "ui"} <= {
        path.relative_to(PACKAGE).parts[0] for path in MODULES
    }
    assert len(MODULES) > 100


def test_files_that_comments_of_stylesheets_and_scripts_name_exist() -> None:
    places = [f"/{path.relative_to(ROOT).as_posix()}" for path in (*SOURCES, *PACKAGE.rglob("*.mjs"))]
    gone = [
        (name_of(path), name)
        for path in SOURCES
        if path.suffix != ".py"
        for name in files_named_in_comments(path.read_text("utf-8"))
        if not any(place.endswith(f"/{name.lstrip('./')}") for place in places)
    ]
    assert not gone, f"comments name files that are not there: {gone}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("/* as in kit/bar.js\n   and page.css */ a { b: url(x.js) }", ["kit/bar.js", "page.css"]),
        ("import './a.js'; // b.mjs draws it, c.json has no part in it", ["b.mjs"]),
        ("/** @import { A } from '../kit/map.js' */", ["../kit/map.js"]),
        ("const address = 'https://a.org/d.js';", []),
        ("x = '//host/e.py'; y = 1; /* of f.py, g.pyi */", ["f.py"]),
    ],
)
def test_files_are_found_in_comments_alone(text: str, names: list[str]) -> None:
    assert files_named_in_comments(text) == names


def test_no_type_of_a_model_is_asserted_by_a_cast() -> None:
    assert [(name_of(path), line) for path in MODULES for line in model_casts(parsed(path))] == []


def test_a_name_says_what_it_holds() -> None:
    assert [(name_of(path), line) for path in MODULES for line in empty_names(parsed(path))] == []


def test_no_two_classes_have_one_name() -> None:
    """Those that stand at the top of a module: whoever reads a name knows which one is meant."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name_of(path))
    assert len(homes) > 200
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


@pytest.mark.parametrize(
    "line", ["found = 1", "def found(): ...", "def f(found): ...", "f(found=1)", "x.found", "f'{found}'"]
)
def test_an_empty_name_is_noticed(line: str) -> None:
    assert empty_names(ast.parse(line)) == [1]


def test_private_fields_are_set_by_their_own_class() -> None:
    assert [(name_of(path), name) for path in MODULES for name in fields_set_from_outside(parsed(path))] == []


@pytest.mark.parametrize(
    "line",
    [
        "cast(Block, x)",
        "typing.cast('LoadedModel', x)",
        "cast('Mlp | PackedSwiGLU', x)",
        "cast(nn.Module, x)",
    ],
)
def test_a_cast_to_a_model_is_noticed(line: str) -> None:
    assert model_casts(ast.parse(f"import typing\ny = {line}\n")) == [2]


@pytest.mark.parametrize(
    "line", ["cast(IO[bytes], file)", "cast('Handler', call)", "recorder.cast(x, y)", "cast()"]
)
def test_other_casts_are_left_alone(line: str) -> None:
    assert model_casts(ast.parse(line)) == []


@pytest.mark.parametrize(
    "line",
    [
        "twin._models = cache",
        "twin._models, other = cache, 1",
        "self.twin._models += 1",
        "first()._models: object = None",
        "del twin._models",
        "for twin._models in range(3): pass",
        "with lock as twin._models: pass",
        "setattr(twin, '_models', cache)",
        "object.__setattr__(twin, '_models', cache)",
    ],
)
def test_a_field_set_from_outside_is_noticed(line: str) -> None:
    assert fields_set_from_outside(ast.parse(line)) == ["_models"]


@pytest.mark.parametrize(
    "line",
    [
        "self._models = cache",
        "cls._shared = cache",
        "twin.models = cache",
        "twin._models[0] = cache",
        "x = twin._models",
        "twin.__dict__ = {}",
        "object.__setattr__(self, '_models', cache)",
        "setattr(page, kind, 1)",
    ],
)
def test_what_a_class_does_with_its_own_fields_is_left_alone(line: str) -> None:
    assert fields_set_from_outside(ast.parse(line)) == []
