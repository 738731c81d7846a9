"""What the Tokens tab fetches beside questions: true unit vectors, and the colours of one photo or of two."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz import samples
from vit_viz.analyses.components import colours_of
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.opened import PageCall
from vit_viz.ui.routes import GONE, PREFIX, routes
from vit_viz.ui.tokens import routes as token_routes
from vit_viz.views.state import ViewState


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def client(session: Session) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(session)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def handle(session: Session) -> str:
    return session.handles.issue(Subject("mini", "shapes", "fit", "ada"))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return vv.trace("mini", samples.sample("shapes"), keep_residual=True)


def colours(session: Session, view: ViewState | None = None, **asked: Any) -> dict[str, Any]:
    shown = view or ViewState(image="shapes")
    return token_routes.colours(PageCall(session, "ada", shown, (), {"view": "", **asked}, lambda: False))


@pytest.mark.parametrize(("role", "state"), [("tokens", 0), ("tokens", 6), ("queries", 2), ("keys", 5)])
def test_products_of_the_vectors_are_the_cosines_of_the_function(
    client: TestClient, handle: str, trace: Trace, role: Any, state: int
) -> None:
    answer = client.get(f"{PREFIX}/tokens/{handle}/{state}?role={role}")
    vectors = np.frombuffer(answer.content, "<f2").reshape(trace.num_tokens, -1).astype(np.float32)
    row, col = 3, 9
    found = trace.layout.patches(vectors @ vectors[trace.layout.token((row, col))])
    expected = vv.token_similarity(trace, query=(row, col), role=role).values[state]
    np.testing.assert_allclose(found, expected, atol=2e-3)  # fp16


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("tokens/HANDLE/7?role=tokens", 400, "State 7 does not exist: they are 0-6."),
        ("tokens/HANDLE/6?role=keys", 400, "State 6 does not exist: they are 0-5."),
        ("tokens/HANDLE/-1", 400, ""),
        ("tokens/HANDLE/x", 400, ""),
        ("tokens/HANDLE/0?role=values", 400, "Vectors are tokens, queries, keys, not 'values'."),
        ("tokens/nothing/0", 404, GONE),
    ],
)
def test_everything_else_is_one_sentence(
    client: TestClient, handle: str, path: str, status: int, words: str
) -> None:
    answer = client.get(f"{PREFIX}/{path.replace('HANDLE', handle)}")
    assert answer.status_code == status
    assert answer.text.startswith(words)
    assert answer.headers["content-type"].startswith("text/plain")


def test_colours_and_shares_are_those_of_the_components(session: Session, trace: Trace) -> None:
    told, expected = colours(session), vv.token_components(trace)
    assert_same(told["explained"], expected.explained, relative=1e-4)
    for state, shades in enumerate(colours_of(expected)[0]):
        bytes_ = np.frombuffer(base64.b64decode(told["colours"][state]), np.uint8)
        np.testing.assert_allclose(bytes_.reshape(shades.shape), 255 * shades, atol=1)
    assert (told["second"], told["note"]) == (None, "")
    assert colours(session, role="keys")["colours"] != told["colours"]


def test_two_photos_share_their_colours(session: Session, trace: Trace) -> None:
    told = colours(session, second="lion", foreground=True)
    second = vv.trace("mini", samples.sample("lion"), keep_residual=True)
    expected = vv.token_components([trace, second], foreground=True)
    assert_same(told["explained"], expected.explained, relative=1e-4)
    assert_same(told["overall"], expected.overall, relative=1e-4)
    for photo, shades in zip((told, told["second"]), colours_of(expected), strict=True):
        bytes_ = np.frombuffer(base64.b64decode(photo["colours"][4]), np.uint8)
        np.testing.assert_allclose(bytes_.reshape(shades[4].shape), 255 * shades[4], atol=1)
    assert told["second"]["name"] == "lion"
    assert told["second"]["grid"] == list(second.layout.grid)


def test_a_second_photo_that_is_the_first_or_has_gone_shares_nothing(session: Session) -> None:
    alone = colours(session)
    assert colours(session, second="shapes") == alone
    hers = session.add_upload(samples.sample("lion"), owner="eve")
    for image in ("upload-that-is-no-more", hers):
        gone = colours(session, second=image)
        assert gone | {"note": ""} == alone
        assert gone["note"].endswith(".")


def test_the_second_photo_is_whole_where_the_first_is_a_part(session: Session) -> None:
    part = ViewState(image="shapes", part="0,0,64,64")
    told = colours(session, part, second="lion")
    assert told["second"]["crop"]["region"] == [0.0, 0.0, 256.0, 256.0]


@pytest.mark.parametrize("asked", [{"role": "values"}, {"colour": 1}, {"foreground": "perhaps"}])
def test_colours_that_cannot_be_are_refused(session: Session, asked: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        colours(session, **asked)
