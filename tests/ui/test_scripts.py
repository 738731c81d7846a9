"""The page's JavaScript as modules: what is served and what is not, how a component loads its own, and that nothing is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any
from urllib.parse import quote

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.testclient import TestClient

import vit_viz
from tests.ui.desk import app_of
from vit_viz.session.session import Session
from vit_viz.ui import scripts
from vit_viz.ui.app import TABS
from vit_viz.ui.edge.addresses import kind_of
from vit_viz.ui.kit import Top
from vit_viz.ui.routes import NOTHING_HERE, ONLY_GET, routes

PACKAGE = Path(vit_viz.__file__).parent
OTHER_HOSTS = {
    "offline/page.js",
    "notebook/widget.js",
    "browser/worker.js",
    "browser/helper.js",
    "site/worker.js",
    "site/site.js",
    "site/offline.js",
}
"""Where a module is bundled into a file, or is one of a site, instead of being loaded by the page."""
HTML_EVENTS = {str(event) for event in gr.HTML.EVENTS}


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def client(session: Session) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(session)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def components(session: Session) -> list[Any]:
    """The page's components that run JavaScript, with the tab of a survey."""
    pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")
    from vit_viz.ui.survey.view import survey_room

    app = app_of(session, tabs=(*TABS, survey_room(session, "example").tab))
    found = [block for block in app.blocks.values() if getattr(block, "js_on_load", None)]
    return [block for block in found if "import(" in block.js_on_load]


def imports(name: str) -> list[str]:
    """The modules that one imports, by their path in the package."""
    text = scripts.modules()[name].decode("utf-8")
    found = re.findall(r"^(?:import|export)\b[^;]*?from '([^']+)';", text, re.MULTILINE)
    return [normpath((PurePosixPath(name).parent / path).as_posix()) for path in found]


def test_every_script_of_the_package_is_served_as_it_is(client: TestClient) -> None:
    files = sorted(PACKAGE.rglob("*.js"))
    assert len(files) > 25
    for file in files:
        answer = client.get(scripts.address(file.relative_to(PACKAGE).as_posix()))
        assert (answer.status_code, answer.content) == (200, file.read_bytes())
        assert answer.headers["content-type"].split(";")[0] == "text/javascript"
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_every_address_of_a_script_is_let_in() -> None:
    assert {kind_of("GET", scripts.address(name)) for name in scripts.modules()} == {"static"}


@pytest.mark.parametrize(
    "name",
    [
        "explorer/explorer.html",
        "explorer/../explorer/explorer.js",
        "../explorer/explorer.js",
        "..%2f..%2fapp.py",
        "%2e%2e/app.py",
        "/etc/passwd",
        "explorer//explorer.js",
        "explorer/explorer.js/",
        "explorer/explorer.js\0",
        "EXPLORER/explorer.js",
        "ui/routes.py",
        "",
    ],
)
def test_nothing_but_the_scripts_is_served(client: TestClient, name: str) -> None:
    path = {"digest": scripts.digest(), "name": name}
    assert scripts.serve(HttpRequest({"type": "http", "path_params": path})) is None
    if ".." not in name:  # which the client resolves itself
        answer = client.get(f"{scripts.ADDRESS}/{scripts.digest()}/{quote(name, safe='/%')}")
        assert (answer.status_code, answer.text) == (404, NOTHING_HERE)
        assert "cache-control" not in answer.headers


@pytest.mark.parametrize("digest", ["0" * 16, "", "x"])
def test_a_script_of_another_version_is_not_there(client: TestClient, digest: str) -> None:
    answer = client.get(f"{scripts.ADDRESS}/{digest}/explorer/explorer.js")
    assert (answer.status_code, answer.text) == (404, NOTHING_HERE)


def test_a_script_takes_no_other_method(client: TestClient) -> None:
    answer = client.post(scripts.address("explorer/explorer.js"))
    assert (answer.status_code, answer.text) in [(405, ONLY_GET), (405, "Method Not Allowed")]


@pytest.mark.parametrize("name", ["new.js", "explorer/explorer.js"])
def test_the_digest_follows_names_and_texts(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before, others = scripts.digest(), scripts.modules() | {name: b"export const other = 1;\n"}
    monkeypatch.setattr(scripts, "modules", lambda: others)
    assert scripts.digest.__wrapped__() != before
    assert re.fullmatch(r"[0-9a-f]{16}", before)


def test_a_module_that_does_not_exist_has_no_address() -> None:
    with pytest.raises(KeyError):
        scripts.address("explorer/nothing.js")


@pytest.mark.parametrize("name", sorted(scripts.modules()))
def test_what_a_module_imports_is_served(name: str) -> None:
    assert set(imports(name)) <= set(scripts.modules())


def test_every_module_is_loaded_by_a_component_or_by_another_module(components: list[Any]) -> None:
    waiting = [name for name in scripts.modules() for c in components if f'/{name}")' in c.js_on_load]
    waiting += OTHER_HOSTS
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    assert set(scripts.modules()) - found == set()


def loaded(component: Any) -> tuple[str, str]:
    """The module that a component loads, and the function that mounts it."""
    found = re.search(r'[0-9a-f]{16}/([\w/]+[.]js)".*module\.(\w+)\(', component.js_on_load, re.DOTALL)
    assert found is not None
    return found[1], found[2]


def test_every_module_that_a_component_loads_can_be_mounted(components: list[Any]) -> None:
    assert len({loaded(component)[0] for component in components}) > 10
    for name, function in map(loaded, components):
        text = scripts.modules()[name].decode()
        assert re.search(rf"^export function {function}\(", text, re.MULTILINE), (name, function)


def test_each_component_of_ours_loads_its_module_in_one_step(components: list[Any]) -> None:
    for component in components:
        name = component.js_on_load
        assert name.startswith("import((window.gradio_config?.root")
        assert name.count("\n") == 4
        assert scripts.NOT_LOADED in name


def test_python_hears_the_events_that_a_component_names_and_no_others(components: list[Any]) -> None:
    for component in components:
        text = component.js_on_load
        quoted = set(re.findall(r"'(\w+)'", text)) | set(re.findall(r'"(\w+)"', text))
        names = set(getattr(component, "tells", ())) or quoted
        assert quoted == names
        assert all(callable(getattr(component, name)) for name in names)
    assert not hasattr(Top(), "why")


def test_the_events_that_a_module_triggers_are_named_by_its_components(components: list[Any]) -> None:
    for component in components:
        name = loaded(component)[0]
        family = [name, *(one for one in imports(name) if one.startswith("ui/"))]
        text = "".join(scripts.modules()[one].decode() for one in family)
        told = set(re.findall(r"trigger\('(\w+)'", text))
        users = [
            one.js_on_load for one in components if set(family) & {*imports(loaded(one)[0]), loaded(one)[0]}
        ]
        assert told <= set(re.findall(r"'(\w+)'", "".join(users))), name
