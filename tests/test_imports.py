"""Imports go downwards only and never in a circle, and each outside library has one door."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "vit_viz"

LEVELS = [
    {
        *("answer", "bundled", "errors", "geometry", "indices", "labels", "listening"),
        *(
            "lazy",
            "memory",
            "outputs",
            "prompts",
            "progress",
            "results",
            "sentences",
            "settings",
            "silence",
            "surface",
            "turns",
        ),
    },
    {"model", "images"},
    {"samples", "checkpoints"},
    {"capture"},
    {"analyses"},
    {"lesson_parts"},
    {"session"},
    {"figures"},
    {"views"},
    {"surveys"},
    {"browser", "explorer"},
    {"offline"},
    {"notebook"},
    {"service"},
    {"rest", "mcp"},
    {"ui"},
    {"site"},
    {"cli"},
    {"__main__", "__init__"},
]
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}

DOORS = {
    "gradio": ("ui/",),
    "gradio_client": ("ui/",),
    "captum": ("analyses/attribution.py",),
    "plotly": ("figures/plots.py",),
    "fpdf": ("figures/pdf.py",),
    "fontTools": ("figures/lettering.py",),
    "tokenizers": ("checkpoints/tokenizing.py",),
    "latex2mathml": ("ui/kit/words.py",),
    "huggingface_hub": ("checkpoints/source.py",),
    "anywidget": ("notebook/widget.py",),
    "traitlets": ("notebook/widget.py",),
    "spaces": ("session/space.py",),
    "mcp": ("mcp.py",),
    "pyarrow": ("surveys/parquet.py", "surveys/run.py"),
    "duckdb": ("surveys/opened.py",),
    "ray": ("surveys/ray_engine.py",),
    "warnings": ("silence.py",),
    "timm": (),
    "transformers": (),
    "torchvision": (),
    "matplotlib": ("figures/saving.py",),
    "pandas": ("answer.py",),
    "requests": (),
    "httpx": ("ui/edge/documents.py",),  # asks the app itself, in this process
    "urllib": (),
}

LAZY_UI = {"cli", "__init__"}  # `serve` opens the app only when it is called
HARMLESS = {"urllib.parse.urlencode", "urllib.parse.parse_qsl", "urllib.parse.quote", "urllib.parse.unquote"}

FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def imported_names(path: Path) -> list[str]:
    """Dotted names that a file imports, also inside functions; relative ones resolved."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = path.relative_to(ROOT).with_suffix("").parts[: -node.level]
                base = ".".join([*package, *([node.module] if node.module else [])])
            else:
                base = node.module or ""
            names += [f"{base}.{alias.name}" for alias in node.names]
    return names


def top(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def module_name(path: Path) -> str:
    """Dotted name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, known: set[str]) -> set[str]:
    """Modules of the package that a file names in its imports: all of them, wherever they stand.

    An import inside a function or under TYPE_CHECKING is counted, too: it only hides from Python that neither file can be
    understood without the other. The packages around a module, which Python imports along with it, are not counted.
    """
    found = set()
    for name in imported_names(path):
        parts = name.split(".")
        prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        found.update([prefix for prefix in prefixes if prefix in known][:1])
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules each of which imports the next, from one back to itself; empty where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def forbidden(here: str, name: str) -> bool:
    """Whether a module of the top-level part `here` may not import the dotted `name`."""
    parts = name.split(".")
    if parts[0] != "vit_viz" or len(parts) < 2 or parts[1] not in LEVEL or parts[1] == here:
        return False
    there = parts[1]
    if there == "ui" and here in LAZY_UI:
        return False
    if LEVEL[there] == LEVEL[here]:
        return LEVEL[here] > 0
    return LEVEL[there] > LEVEL[here]


def through_wrong_door(place: str, name: str) -> bool:
    """Whether the file `place` (relative to the package) may not import the library of the dotted `name`."""
    library = name.split(".")[0]
    return library in DOORS and name not in HARMLESS and not place.startswith(DOORS[library] or ("\0",))


def test_every_file_of_the_package_is_checked() -> None:
    assert len(FILES) > 100
    assert {"analyses", "capture", "session", "ui"} <= {top(path) for path in FILES}
    assert len([path for path in FILES if imported_names(path)]) > 100


def test_every_part_has_a_level() -> None:
    assert {top(path) for path in FILES} - {*LEVEL} == set(), "add it to this test where it belongs"


def test_imports_go_downwards() -> None:
    upwards = [(path, name) for path in FILES for name in imported_names(path) if forbidden(top(path), name)]
    assert upwards == []


def test_each_library_has_one_door() -> None:
    places = [(path.relative_to(PACKAGE).as_posix(), name) for path in FILES for name in imported_names(path)]
    assert [(place, name) for place, name in places if through_wrong_door(place, name)] == []


def test_no_import_goes_round_in_a_circle() -> None:
    known = {module_name(path) for path in FILES}
    graph = {module_name(path): imported_modules(path, known) for path in FILES}
    assert graph["vit_viz.analyses.methods"] >= {"vit_viz.analyses.attribution", "vit_viz.analyses.rollout"}
    assert graph["vit_viz.analyses.explain"] >= {"vit_viz.analyses.methods", "vit_viz.capture"}
    assert circle(graph) == []


def test_a_circle_is_told_in_the_order_of_its_imports() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    found = circle({"start": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert sorted(set(found)) == ["a", "b", "c"]
    assert all(f"{one}{other}" in ("ab", "bc", "ca") for one, other in pairwise(found))


def test_the_checks_notice_what_they_forbid() -> None:
    assert forbidden("analyses", "vit_viz.session.session.Session")
    assert forbidden("images", "vit_viz.samples.sample")
    assert not forbidden("session", "vit_viz.analyses.rollout")
    assert through_wrong_door("capture/trace.py", "gradio.Blocks")
    assert through_wrong_door("model/vit.py", "timm.create_model")
    assert not through_wrong_door("ui/app.py", "gradio.Blocks")
    assert "vit_viz.errors.CaptureError" in [name for path in FILES for name in imported_names(path)]


def test_what_is_asked_beside_the_page_needs_nothing_of_it() -> None:
    beside = ("service", "surface", "rest", "mcp", "views", "notebook", "offline", "surveys")
    asked = [path for path in FILES if top(path) in beside]
    assert len(asked) > 20
    assert [
        path.name for path in asked for name in imported_names(path) if name.startswith("vit_viz.ui")
    ] == []
