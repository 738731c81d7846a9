"""What the Tokens tab fetches beside questions: true unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import vit_viz as vv
from vit_viz import samples
from vit_viz.capture import Trace
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.routes import GONE, PREFIX


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def handle(session: Session) -> str:
    return session.handles.issue(Subject("mini", "shapes", "fit", "ada"))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return vv.trace("mini", samples.sample("shapes"), keep_residual=True)


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
