"""What a link to the app previews as: read from the HTML as it is served, as those do who run no script."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

import httpx
import pytest
from PIL import Image
from starlette.responses import HTMLResponse

from tests.serving import Server
from tests.ui.loops import played
from tests.waiting import PATIENCE
from vit_viz.ui.edge.documents import Documents
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.preview import PICTURE_SIZE, TITLE, address, files, with_head

pytestmark = pytest.mark.server


class Head(HTMLParser):
    """Titles, names and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.named: dict[str, list[str]] = {}
        self.links: dict[str, str] = {}
        self._is_title = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._is_title = tag == "title"
        if tag == "meta":
            name = values.get("property") or values.get("name") or ""
            self.named.setdefault(name, []).append(values.get("content", ""))
        if tag == "link":
            self.links[values["rel"]] = values["href"]

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.titles.append(data)
        self._is_title = False


@pytest.fixture(scope="module")
def page(app: Server) -> httpx.Response:
    return httpx.get(f"{app.url}/?image=lion&layer=3", timeout=PATIENCE)


def test_a_link_previews_as_vit_viz_once_and_nothing_comes_from_elsewhere(
    app: Server, page: httpx.Response
) -> None:
    head = Head(page.text)
    assert head.titles == [TITLE]
    shown = {name: texts for name, texts in head.named.items() if name.startswith(("og:", "twitter:"))}
    assert all(len(texts) == 1 for texts in shown.values())
    assert shown["og:title"] == shown["twitter:title"] == [TITLE]
    assert shown["og:description"] == shown["twitter:description"] == head.named["description"]
    assert shown["twitter:card"] == ["summary_large_image"]
    assert shown["og:url"] == [f"{app.url}/"]
    beginning = page.text[: page.text.index("<script")]
    assert "gradio" not in beginning.lower()
    assert page.text.index("og:image") < 4096  # where those look who read only the beginning
    told = [text for texts in head.named.values() for text in texts]
    assert [text for text in told if "://" in text and not text.startswith(app.url)] == []


def test_the_picture_of_the_preview_is_served_here(app: Server, page: httpx.Response) -> None:
    head = Head(page.text)
    (where,) = head.named["og:image"]
    assert head.named["twitter:image"] == [where]
    assert where.startswith(f"{app.url}/")
    answer = httpx.get(where, headers={"Sec-Fetch-Site": "cross-site"}, timeout=PATIENCE)
    picture = Image.open(io.BytesIO(answer.content))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    assert picture.size == PICTURE_SIZE == (1200, 630)
    assert [head.named[f"og:image:{side}"] for side in ("width", "height")] == [["1200"], ["630"]]
    assert len(answer.content) <= 150_000
    assert "immutable" in answer.headers["cache-control"]
    assert httpx.get(where.replace("card.jpg", "icon.svg"), timeout=PATIENCE).status_code == 404
    assert httpx.get(where.replace("card.jpg", "head.py"), timeout=PATIENCE).status_code == 404


def test_the_icon_is_ours_wherever_a_browser_looks_for_it(app: Server, page: httpx.Response) -> None:
    linked = httpx.get(urljoin(str(page.url), Head(page.text).links["icon"]), timeout=PATIENCE)
    usual = httpx.get(f"{app.url}/favicon.ico", timeout=PATIENCE)
    for icon in (linked, usual):
        assert icon.headers["content-type"].startswith("image/svg+xml")
        assert icon.content == files()["icon.svg"]
        assert ElementTree.fromstring(icon.text).tag.endswith("svg")


def test_a_phone_colours_its_bar_as_the_page(page: httpx.Response) -> None:
    assert Head(page.text).named["theme-color"] == ["#fbfbfa", "#0e1014"]


def served(**scope: Any) -> Head:
    """The head of a page that is sent on a request of this scope."""
    template = (
        b'<html><head><meta charset="utf-8" /><meta property="og:title" content="Gradio" /></head></html>'
    )
    app = HTMLResponse(template)
    request = {"type": "http", "path": "/", "method": "GET", "query_string": b"a=b", "scheme": "http"} | scope
    page = played(Documents(Exposure()).answer(app, request))
    return Head(page.body.decode())


def test_the_picture_is_found_behind_a_proxy_under_a_prefix() -> None:
    headers = [
        (b"host", b"10.0.0.3:7860"),
        (b"x-forwarded-host", b"someone.hf.space"),
        (b"x-forwarded-proto", b"https"),
    ]
    head = served(headers=headers, root_path="/tools/vit_viz")
    assert head.named["og:image"] == [f"https://someone.hf.space/tools/vit_viz{address('card.jpg')}"]
    assert head.named["og:url"] == ["https://someone.hf.space/tools/vit_viz/"]
    assert urlsplit(urljoin("https://someone.hf.space/tools/vit_viz/", head.links["icon"])).path.startswith(
        "/tools/"
    )


def test_a_host_that_a_visitor_made_up_stays_text() -> None:
    page = with_head(b'<head><meta charset="utf-8"></head>', 'http://"><script>alert(1)</script>').decode()
    assert "<script" not in page
    assert with_head(b"no page", "http://x") == b"no page"
