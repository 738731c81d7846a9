"""A served module whose tokens go on after the patches: the same numbers on every surface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.capture.models import Detector
from tests.ui.views import view_with
from vit_viz.capture import Trace
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.app import session_of
from vit_viz.ui.payload import explorer_value, facts_value
from vit_viz.ui.routes import PREFIX, routes
from vit_viz.views.state import ViewState

SUFFIX = (*(f"detection {i}" for i in range(5)), "text")
LAYOUT = TokenLayout(grid=Detector.GRID, prefix=("class", "register 0"), suffix=SUFFIX)
RECIPE = Preprocess(input_size=(16, 42), patch_size=Detector.PATCH)


class Boxes(Detector):
    """Scores of each of three boxes instead of classes, as a detector returns them."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return super().forward(pixels)[:, None].expand(-1, 3, -1)


def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (48, 90, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def session() -> Session:
    return session_of(Detector(LAYOUT).eval(), preprocess=RECIPE)


@pytest.fixture(scope="module")
def subject(session: Session) -> Subject:
    return Subject("Detector", session.add_upload(photo(), owner="ada"), "stretch", "ada")


@pytest.fixture(scope="module")
def trace(session: Session, subject: Subject) -> Trace:
    return session.trace(subject.model, subject.image, mode=subject.mode, owner="ada")


def view_of(subject: Subject, **changes: Any) -> ViewState:
    return view_with(model=subject.model, image=subject.image, mode=subject.mode, **changes)


def test_the_page_is_told_which_tokens_come_last(session: Session, subject: Subject) -> None:
    value = explorer_value(session, view_of(subject), "ada")
    assert (value["tokens"], value["prefix"], value["suffix"]) == (36, ["class", "register 0"], list(SUFFIX))


@pytest.mark.parametrize("query", ["class", "3,6", "detection 3", "text"])
def test_numbers_of_a_map_have_a_part_per_kind_of_suffix(
    session: Session, subject: Subject, trace: Trace, query: str
) -> None:
    handle = session.handles.issue(subject)
    params = {"layer": "1", "head": "2", "query": query, "at": "1,4"}
    with TestClient(Starlette(routes=routes(session))) as client:
        numbers = client.get(f"{PREFIX}/numbers/{handle}", params=params).json()
    token = trace.layout.token(query if query.isalpha() or " " in query else (3, 6))
    row = trace.attention(1, heads=2, queries=token)[0, 0]
    assert numbers["suffix"] == pytest.approx({"detection": float(row[30:35].sum()), "text": float(row[35])})
    assert numbers["patches"] == pytest.approx(float(row[2:30].sum()), rel=1e-5)
    assert numbers["share"] == pytest.approx(
        float(row[2 + 7 + 4]), rel=1e-4
    )  # of everything: the row sums to 1
    assert numbers["value"] == pytest.approx(float(row[2 + 7 + 4]), rel=1e-4)


def test_the_tokens_behind_the_patches_count(session: Session, subject: Subject) -> None:
    told = session.run(request_for(session, subject, "patches"))
    assert (told.shapes["patches"][0], told.shapes["tokens"]) == (28, (2 + 28 + 6, 40))


def test_a_detector_without_class_scores_has_no_first_classes() -> None:
    session = session_of(Boxes(LAYOUT).eval(), preprocess=RECIPE)
    image = session.add_upload(photo(), owner="ada")
    session.checked_trace_of(Subject("Boxes", image, "stretch", "ada"))
    facts = facts_value(session, ViewState(model="Boxes", image=image, mode="stretch"), "ada")
    assert facts["top"] == []
    assert facts["badge"]["state"] == "proven"
