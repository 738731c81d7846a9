"""One visitor without a browser: speaks Gradio's queue as the page's own script does, and keeps what every component shows."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode

import httpx

from tests.waiting import PATIENCE
from vit_viz.surface import PAGE_HEADER

PAGES = ("gradio_api/queue/join", "gradio_api/queue/data")


class HasUrl(Protocol):
    """An app that can be visited."""

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""


@dataclass
class Told:
    """What the server answered to one event: the toasts, the failures, and the parts that it woke."""

    toasts: list[str] = field(default_factory=list)
    failures: list[Any] = field(default_factory=list)
    woken: list[int] = field(default_factory=list)

    @property
    def refusals(self) -> list[str]:
        """Every sentence that the visitor reads; "" for a failure without words."""
        return [*self.toasts, *(str(f.get("error") or "") for f in self.failures)]


class Visitor:
    """One open page.

    Args:
        server: the app.
        timeout: seconds after which an answer counts as missing.
        config: what the page says of its components and events, where another visitor has asked already.

    `link` is what the address bar holds, `followed` how often its rooms have written there.
    """

    def __init__(
        self, server: HasUrl, *, timeout: float = PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=timeout)
        self.page = secrets.token_hex(8)
        self.shown: dict[int, Any] = {}
        self.link: dict[str, str] = {}
        self.followed = 0
        self._config = config
        self._heart: Any = None

    @property
    def config(self) -> dict[str, Any]:
        if self._config is None:
            self._config = config_in(self.http.get("/").text)
        return self._config

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Gradio's list of event handlers."""
        found: list[dict[str, Any]] = self.config["dependencies"]
        return found

    def component(self, elem_id: str) -> int:
        """Id of a component by its name in the page."""
        for component in self.config["components"]:
            if component["props"].get("elem_id") == elem_id:
                return int(component["id"])
        raise LookupError(elem_id)

    def event(self, elem_id: str, name: str) -> dict[str, Any]:
        """The handler of an event of a component; `elem_id` "" for the address bar, which has none."""
        if not elem_id:
            return next(e for e in self.events if any(t[1] == name for t in e["targets"]))
        target = [self.component(elem_id), name]
        return next(e for e in self.events if target in [list(t) for t in e["targets"]])

    def value(self, elem_id: str) -> Any:
        """What a component shows now."""
        return self.shown.get(self.component(elem_id))

    def arrive(self, search: str = "") -> Told:
        """Open the page at an address, as a browser does that will tell when the page is closed, and let everything be drawn."""
        self.http.get("/" + search)
        if self._heart is None:
            self._heart = self.http.stream("GET", f"/gradio_api/heartbeat/{self.page}")
            self._heart.__enter__()
        self.link = dict(parse_qsl(search.lstrip("?")))
        return self.act("", "arrive", data={"search": search, "told": self.followed})

    def opened(self) -> dict[str, Any]:
        """What the rooms in the browser are told of what the link names: the answer of /vit_viz/open."""
        body, page = {"view": urlencode(self.link)}, {PAGE_HEADER: self.page}
        told: dict[str, Any] = self.http.post("/vit_viz/open", json=body, headers=page).json()
        return told

    def open_tab(self, name: str) -> Told:
        """Choose a tab, as its button does."""
        self.followed += 1
        return self.act("", "follow", data={"set": {"tab": name}, "told": self.followed})

    def act(self, elem_id: str, name: str, *values: Any, data: Any = None, follow: bool = True) -> Told:
        """Trigger an event; with `follow` also what it wakes, as the page does."""
        event = self.event(elem_id, name)
        told = self.send(event, self.inputs(event, values), data)
        while follow and told.woken:
            woken, told.woken = told.woken, []
            for e in self.events:
                if any(t[0] in woken and t[1] == "change" for t in e["targets"]):
                    more = self.send(e, self.inputs(e, ()), None)
                    told.toasts += more.toasts
                    told.failures += more.failures
                    told.woken += more.woken
        return told

    def inputs(self, event: dict[str, Any], values: tuple[Any, ...]) -> list[Any]:
        """Values for the components that are no state; the server keeps the states."""
        kinds = {c["id"]: c["type"] for c in self.config["components"]}
        given = iter(values)
        return [None if kinds.get(i) == "state" else next(given, None) for i in event["inputs"]]

    def send(self, event: dict[str, Any], values: Any, data: Any) -> Told:
        """Join the queue with these very values and read what comes back."""
        told = Told()
        joined = self.join(event["id"], values, data)
        if joined.status_code != 200:
            told.failures.append({"error": sentence_of(joined), "status": joined.status_code})
            return told
        raw: dict[int, Any] = {}
        for message in self.messages():
            self._note(message, event, told, raw)
        return told

    def join(self, number: Any, values: Any, data: Any = None) -> httpx.Response:
        """Ask for an event to be handled."""
        body = {"data": values, "fn_index": number, "session_hash": self.page, "event_data": data}
        return self.http.post("/gradio_api/queue/join", json=body)

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the queue tells this page until nothing of it is waiting."""
        with self.http.stream("GET", "/gradio_api/queue/data", params={"session_hash": self.page}) as lines:
            for line in lines.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    def upload(self, name: str, content: bytes) -> httpx.Response:
        """Send a file; the answer holds its path on the server."""
        return self.http.post("/gradio_api/upload", files={"files": (name, content)})

    def choose(self, path: str, *, follow: bool = False, **fields: Any) -> Told:
        """Make an uploaded file the image, as the page does once it is uploaded."""
        payload = {"path": path, "orig_name": "photo.png", "meta": {"_type": "gradio.FileData"}} | fields
        return self.act("vv-upload", "input", payload, follow=follow)

    def bring(self, name: str, content: bytes, *, follow: bool = False) -> Told:
        """Upload a file and make it the image."""
        sent = self.upload(name, content)
        if sent.status_code != 200:
            return Told(failures=[{"error": sentence_of(sent), "status": sent.status_code}])
        return self.choose(sent.json()[0], follow=follow, orig_name=name)

    def close(self) -> None:
        """Close the page; the server is told by the end of its heartbeat."""
        if self._heart is not None:
            self._heart.__exit__(None, None, None)
            self._heart = None
        self.http.close()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _note(self, message: dict[str, Any], event: dict[str, Any], told: Told, raw: dict[int, Any]) -> None:
        """Take one message in; `raw` holds what this event has sent so far, in place of which generators send other values."""
        if message["msg"] == "log":
            told.toasts.append(message["log"])
        elif message["msg"] in ("process_completed", "process_generating", "unexpected_error"):
            if not message.get("success"):
                told.failures.append(message.get("output") or {"error": message.get("message")})
                return
            told.woken += message["output"].get("changed_state_ids") or []
            differs = message["msg"] == "process_generating" and bool(raw)
            for component, value in zip(event["outputs"], message["output"].get("data") or [], strict=False):
                raw[component] = value[0][2] if differs else value
                self._show(component, raw[component])

    def _show(self, component: int, value: Any) -> None:
        if isinstance(value, dict) and "set" in value and "push" in value:  # of the address bar
            link = self.link | value["set"]
            self.link = {name: text for name, text in link.items() if text is not None}
        if not (isinstance(value, dict) and value.get("__type__") == "update"):
            self.shown[component] = value
        elif "value" in value:
            self.shown[component] = value["value"]


def config_in(page: str) -> dict[str, Any]:
    """Gradio's configuration, which stands in the page."""
    start = page.index("window.gradio_config = ") + len("window.gradio_config = ")
    config, _end = json.JSONDecoder().raw_decode(page, start)
    return dict(config)


def sentence_of(answer: httpx.Response) -> str:
    """The words of a refusal that came as an HTTP status."""
    try:
        body = answer.json()
    except ValueError:
        return answer.text
    return str(body.get("detail") or body.get("error") or "") if isinstance(body, dict) else str(body)
