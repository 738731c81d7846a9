"""The page as it is served: one document for everybody, which costs next to nothing, and new pages that come only so fast."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

import httpx
import pytest

from tests.http.visitor import config_in
from tests.serving import Server
from tests.waiting import PATIENCE

pytestmark = pytest.mark.server

SCRIPT = re.compile(r"<script(?![^>]*src=)[^>]*>(.*?)</script>", re.DOTALL)


def test_the_page_names_the_address_at_which_it_was_reached(app: Server) -> None:
    """And its policy the scripts in which that stands."""
    for host in ("127.0.0.1", "localhost", "127.0.0.1"):
        page = httpx.get(f"{app.url}/", headers={"host": f"{host}:{app.port}"}, timeout=PATIENCE)
        base = f"http://{host}:{app.port}"
        assert config_in(page.text)["root"] == base
        assert f'const root = "{base}";' in page.text
        assert ".invalid" not in page.text
        named = set(re.findall(r"'sha256-([^']+)'", page.headers["content-security-policy"]))
        scripts = SCRIPT.findall(page.text)
        assert len(scripts) > 3
        assert {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts} == named


def test_the_page_is_small_and_travels_smaller(app: Server) -> None:
    sizes: dict[str, int] = {}
    for accepted in ("br", "gzip", "identity"):
        page = httpx.get(f"{app.url}/", headers={"accept-encoding": accepted}, timeout=PATIENCE)
        sizes[accepted] = int(page.headers["content-length"])
        assert page.headers.get("content-encoding", "identity") == accepted
        assert httpx.head(f"{app.url}/", headers={"accept-encoding": accepted}, timeout=PATIENCE).headers[
            "content-length"
        ] == str(sizes[accepted])
    assert sizes["br"] < sizes["gzip"] < sizes["identity"] / 2
    assert sizes["identity"] <= 12_000


@pytest.mark.slow
def test_what_is_large_in_the_page_has_one_address_as_long_as_it_is_the_same(
    app: Server, start_app: Callable[..., Server]
) -> None:
    """So that a browser keeps it over a restart; another page, here one with another tab, has another."""

    def script(of: Server) -> str:
        return re.findall('<script src="[.]([^"]*/parts[.]js)">', httpx.get(of.url, timeout=PATIENCE).text)[0]

    other, again = start_app("--model", "mini", "--survey", "example"), start_app("--model", "mini")
    assert script(app) == script(again) != script(other)
    answers = [httpx.get(one.url + script(one), timeout=PATIENCE) for one in (app, again, other)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert answers[0].text == answers[1].text
    assert "immutable" in answers[0].headers["cache-control"]
    assert "set-cookie" not in answers[0].headers
    assert httpx.get(other.url + script(app), timeout=PATIENCE).status_code == 404
