"""The map of a slow method, which is computed only where somebody asks for it: by the question that its card asks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import LAYERS, OWNER, make_map
from vit_viz import rest
from vit_viz.analyses.explain import parameters_of
from vit_viz.analyses.methods import METHODS
from vit_viz.session.session import Session
from vit_viz.surface import OWNER as SCOPE_OWNER
from vit_viz.ui.payload import about_of
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState


def view_of(image: str) -> ViewState:
    return ViewState(model="odd", image=image, mode="crop", target="5")


def served(session: Session) -> TestClient:
    """Questions of a page that its visitor asks."""
    app = Starlette(routes=rest.routes(session))

    async def owned(scope: Any, receive: Any, send: Any) -> None:
        await app(scope | {SCOPE_OWNER: OWNER}, receive, send)

    return TestClient(owned)


@pytest.mark.parametrize("method", ["relevance", "attention", "rollout", "gradcam"])
def test_the_body_of_a_card_asks_for_what_the_tests_of_the_map_ask_for(
    session: Session, image: str, method: str
) -> None:
    """Else each map would be computed twice, and the one that is tested would not be the one that is seen."""
    view = view_of(image)
    made = make_map(session, view, method)
    body = about_of(view) | ({"target": "5"} if METHODS[method].takes_target else {})
    answer = served(session).post(f"/api/v1/{method}", content=json.dumps(body)).json()
    assert answer["numbers"]["values"] == made.values.tolist()
    assert answer["words"] == made.to_words() != ""
    subject, question = subject_of(session, view, OWNER), METHODS[method]
    query = session.trace_of(subject).output_query()
    parameters = parameters_of(question, question.options().for_layers(LAYERS), query=query, target=5)
    assert session.keeps(subject.request(method, **parameters))
