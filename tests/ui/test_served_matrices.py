"""The attention that the page receives is the softmax that timm's own model writes out, for models of other prefix tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.comparing import assert_same
from tests.ui.desk import COLS, HEADS, LAYERS, ROWS, odd_session
from vit_viz import samples
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.routes import PREFIX, routes

LAYER = 2


@dataclass(frozen=True)
class Served:
    """What a page is served about a picture, and what timm computes of it: float32 [layers, heads, tokens, tokens]."""

    client: TestClient
    handle: str
    written_out: NDArray[np.float32]
    prefix: int

    @property
    def matrix(self) -> NDArray[np.float32]:
        return self.written_out[LAYER]

    def get(self, address: str, **options: str) -> bytes:
        answer = self.client.get(f"{PREFIX}/{address}", params=options)
        assert answer.status_code == 200, answer.text
        return answer.content


@pytest.fixture(scope="module", params=[0, 4], ids=["class token", "class token and 4 registers"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    session = odd_session(reg_tokens=request.param)
    handle = session.handles.issue(Subject("odd", "shapes", "stretch", "ada"))
    with TestClient(Starlette(routes=routes(session))) as client:
        yield Served(client, handle, by_timm(session, request.param), 1 + request.param)


def by_timm(session: Session, registers: int) -> NDArray[np.float32]:
    """What each block's `attn_drop` receives in timm's model of the same weights, whose attention is not fused."""
    timm = pytest.importorskip("timm.models.vision_transformer")
    loaded, weights = session.model("odd"), []
    module = timm.VisionTransformer(
        img_size=(32, 48), patch_size=8, embed_dim=40, depth=LAYERS, num_heads=HEADS, num_classes=7, reg_tokens=registers
    ).eval()  # fmt: skip
    module.load_state_dict(loaded.model.state_dict())
    for block in module.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(lambda _module, given, _output: weights.append(given[0]))
    with torch.no_grad():
        module(loaded.preprocess.apply(samples.sample("shapes"), mode="stretch").pixels)
    return torch.cat(weights).numpy()


def test_the_matrix_that_the_browser_forms_is_timms(served: Served) -> None:
    heads, tokens, dim = HEADS, served.prefix + ROWS * COLS, 8
    assert served.matrix.shape == (heads, tokens, tokens)
    content = served.get(f"layer/{served.handle}/{LAYER}")
    sums = np.frombuffer(content, "<f4", heads * tokens).reshape(heads, tokens, 1)
    q, k = (
        np.frombuffer(content, "<f2", offset=8 * heads * tokens).reshape(2, heads, tokens, dim).astype("f4")
    )
    assert_same(np.exp(q @ k.transpose(0, 2, 1) * dim**-0.5 - sums), served.matrix, relative=5e-3)


@pytest.mark.parametrize("direction", ["row", "column"])
def test_rows_and_columns_are_timms(served: Served, direction: str) -> None:
    places = {"class": 0} | {
        f"{row},{col}": served.prefix + row * COLS + col for row in range(ROWS) for col in range(COLS)
    }
    whole = served.matrix if direction == "row" else served.matrix.transpose(0, 2, 1)
    for query, token in places.items():
        content = served.get(f"rows/{served.handle}/{LAYER}", query=query, direction=direction)
        assert_same(np.frombuffer(content, "<f4").reshape(HEADS, -1), whole[:, token], what=query)


def test_single_numbers_are_timms(served: Served) -> None:
    told = served.client.get(
        f"{PREFIX}/numbers/{served.handle}", params={"layer": LAYER, "head": 3, "query": "1,4", "at": "3,2"}
    ).json()
    query, key = served.prefix + 1 * COLS + 4, served.prefix + 3 * COLS + 2
    assert_same(told["value"], served.matrix[3, query, key])
    assert_same(list(told["prefix"].values()), served.matrix[3, query, : served.prefix])
