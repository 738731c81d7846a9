"""One visitor without a browser: keeps the link of a page, and asks as the page's own scripts do."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode

import httpx

from tests.waiting import PATIENCE
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.session.uploads import UPLOAD
from vit_viz.surface import BRING, EVENTS, FILE_HEADER, PAGE_HEADER
from vit_viz.ui.app import ANSWERS

PAGE_ANSWERS = ("open", "target", *ANSWERS)
"""What a page asks of its link; "open" and "target" are of all of the page."""


class HasUrl(Protocol):
    """An app that can be visited."""

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""


class NoCookies(DefaultCookiePolicy):
    """A browser that keeps no cookies."""

    def set_ok(self, *_: object) -> bool:
        return False


@dataclass
class Told:
    """What the server answered.

    Args:
        status: of the answer; where it told how far it is, the one that it would have had.
        value: what it says, where that is JSON.
        text: what it says as it came.
        shares: how far it was, each time that it said so.
        previews: what there was of it, each time.
    """

    status: int
    value: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    shares: list[float] = field(default_factory=list)
    previews: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, answer: httpx.Response) -> Told:
        """A whole answer."""
        try:
            value = answer.json()
        except ValueError:
            value = None
        return cls(answer.status_code, value if isinstance(value, dict) else {}, answer.text)

    @property
    def refusals(self) -> list[str]:
        """Every sentence that says no; "" for a failure without words."""
        if self.status >= 400:
            return [str(self.value.get("error") or "") if self.value else self.text]
        return [str(self.value["problem"])] if "problem" in self.value else []


class Visitor:
    """One open page.

    Args:
        server: the app.
        timeout: seconds after which an answer counts as missing.
        keeps_cookies: whether the browser does.

    `link` is what the address bar holds, `page` the name of the page.
    """

    def __init__(self, server: HasUrl, *, timeout: float = PATIENCE, keeps_cookies: bool = True) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=timeout)
        if not keeps_cookies:
            self.http.cookies.jar.set_policy(NoCookies())
        self.rename()
        self.link: dict[str, str] = {}

    def rename(self) -> None:
        """Be another page of the same browser from now on."""
        self.page = secrets.token_hex(16)

    def arrive(self, search: str = "") -> Told:
        """Open the page at an address, and ask what is said of the photo."""
        self.http.get("/" + search)
        self.link = dict(parse_qsl(search.lstrip("?")))
        return self.ask("open")

    @property
    def cookie(self) -> str:
        """What the browser sends, NAME=VALUE."""
        return "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())

    def opened(self) -> dict[str, Any]:
        """What the rooms in the browser are told of what the link names."""
        return self.ask("open").value

    def follow(self, **change: str | None) -> None:
        """Change the link; None takes a part out of it."""
        link = self.link | change
        self.link = {name: text for name, text in link.items() if text is not None}

    def ask(self, name: str, /, **body: Any) -> Told:
        """Ask something of the link, as the page does."""
        return Told.of(self.post(*self.asked(name, body)))

    def asked(self, name: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Where the page asks something of the link, and how: a question by its name is about the photo alone."""
        if name not in QUESTIONS:
            return f"/vit_viz/{name}", self.about_link(body)
        image = self.link.get("image", "lion")
        return f"/api/v1/{name}", {"image": {"upload" if UPLOAD.fullmatch(image) else "sample": image}} | body

    def question(self, name: str, /, **body: Any) -> Told:
        """Ask a question by its name."""
        return Told.of(self.post(f"/api/v1/{name}", body))

    def hear(self, name: str, /, **body: Any) -> Told:
        """Ask something of the link, and hear how far the answer is until it is there."""
        with self.asking(name, **body) as answer:
            if not answer.headers["content-type"].startswith(EVENTS):
                answer.read()
                return Told.of(answer)
            return told_by(events_in(answer.iter_lines()))

    def asking(
        self, name: str, timeout: float | None = None, /, **body: Any
    ) -> AbstractContextManager[httpx.Response]:
        """A question of the link on its way; to leave it before its end is to hang up."""
        headers = {PAGE_HEADER: self.page, "accept": EVENTS}
        path, said = self.asked(name, body)
        return self.http.stream(
            "POST", path, json=said, headers=headers, timeout=timeout or self.http.timeout
        )

    def post(self, path: str, body: Any) -> httpx.Response:
        """Send JSON as this page."""
        return self.http.post(path, json=body, headers={PAGE_HEADER: self.page})

    def about_link(self, body: dict[str, Any]) -> dict[str, Any]:
        """A question with the link that it is about."""
        return {"view": urlencode(self.link)} | body

    def bring(self, name: str, content: bytes) -> Told:
        """Bring a picture and look at it."""
        headers = {PAGE_HEADER: self.page, FILE_HEADER: quote(name)}
        told = Told.of(self.http.post(BRING, content=content, headers=headers))
        if "image" in told.value:
            self.follow(image=told.value["image"])
        return told

    def close(self) -> None:
        """Close page and browser."""
        self.http.close()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def events_in(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Server-sent events: the kind of each, and what it says."""
    kind = ""
    for line in lines:
        name, _, said = line.partition(": ")
        if name == "event":
            kind = said
        elif name == "data":
            yield kind, json.loads(said)


def told_by(events: Iterable[tuple[str, dict[str, Any]]]) -> Told:
    """The answer that events tell; a failure without words where they break off before it."""
    told = Told(500)
    for kind, said in events:
        if kind == "progress":
            told.shares.append(said["share"])
        elif kind == "preview":
            told.previews.append(said)
        else:
            told.status, told.value = (200, said) if kind == "answer" else (said["status"], said)
    return told


def config_in(page: str) -> dict[str, Any]:
    """Gradio's configuration, which stands in the page."""
    start = page.index("window.gradio_config = ") + len("window.gradio_config = ")
    config, _end = json.JSONDecoder().raw_decode(page, start)
    return dict(config)
