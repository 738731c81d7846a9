"""The routes: true bytes for those who hold a handle, one sentence and a 4xx for everything else."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image
from starlette.testclient import TestClient

from tests.traces import trace_from
from vit_viz.errors import BusyError, Cancelled, CaptureError, CheckpointError, ImageError, ParameterError
from vit_viz.explorer import packing
from vit_viz.explorer.packing import layer_bytes, source_of
from vit_viz.geometry import TokenLayout
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.routes import GONE, PREFIX, Gone, refusal


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def handle(session: Session) -> str:
    return session.handles.issue(Subject("mini", "shapes", "fit", "ada"))


def test_a_layer_holds_what_determines_its_attention(
    session: Session, client: TestClient, handle: str
) -> None:
    answer = client.get(f"{PREFIX}/layer/{handle}/2")
    trace = session.trace("mini", "shapes", owner="ada")
    heads, tokens, dim = trace.num_heads, trace.num_tokens, trace.head_dim
    assert answer.headers["X-Vit-Viz-Kind"] == "qk"
    floats = np.frombuffer(answer.content[: 8 * heads * tokens], "<f4").reshape(2, heads, tokens)
    halves = np.frombuffer(answer.content[8 * heads * tokens :], "<f2").reshape(2, heads, tokens, dim)
    q, k = halves.astype(np.float32)
    scores = np.einsum("hqd,hkd->hqk", q, k) * trace.scales[2]
    attention = np.exp(scores - floats[0][..., None])
    np.testing.assert_allclose(attention, trace.attention(2).numpy(), atol=5e-3)
    np.testing.assert_allclose(floats[1], trace.value_norms(2).numpy(), rtol=1e-6)


def test_a_layer_goes_to_the_browser_whole_up_to_a_limit_of_its_bytes(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = session.trace("mini", "shapes", owner="ada")
    kind, data = layer_bytes(trace, 2)
    assert kind == "qk"
    for limit, source in ((len(data) - 1, "rows"), (len(data), "qk"), (len(data) + 1, "qk")):
        monkeypatch.setattr(packing, "LAYER_BYTES", limit)
        assert source_of(trace, 2) == source


def test_a_written_out_layer_goes_to_the_browser_up_to_the_same_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention = torch.rand(3, 5, 25, 25).softmax(-1)
    trace = trace_from(attention=attention, layout=TokenLayout(grid=(4, 6)))
    size = 5 * 25 * (2 * 25 + 4)  # half precision, and a norm
    for limit, source in ((size - 1, "rows"), (size, "attention"), (size + 1, "attention")):
        monkeypatch.setattr(packing, "LAYER_BYTES", limit)
        assert source_of(trace, 1) == source


@pytest.mark.parametrize("direction", ["row", "column"])
@pytest.mark.parametrize("query", ["class", "pool", "3,4;5,6"])
def test_rows_are_the_weighted_rows_of_the_trace(
    session: Session, client: TestClient, handle: str, query: str, direction: str
) -> None:
    answer = client.get(f"{PREFIX}/rows/{handle}/1", params={"query": query, "direction": direction})
    trace = session.trace("mini", "shapes", owner="ada")
    values = np.frombuffer(answer.content, "<f4").reshape(trace.num_heads, trace.num_tokens)
    tokens = {"class": [0], "pool": [0]}.get(query) or [
        trace.layout.token((int(p.split(",")[0]), int(p.split(",")[1]))) for p in query.split(";")
    ]
    attention = trace.attention(1).numpy()
    expected = attention[:, tokens].mean(1) if direction == "row" else attention[:, :, tokens].mean(2)
    np.testing.assert_allclose(values, expected, atol=1e-6)


def test_the_explorer_is_saved_with_the_view_of_its_address(client: TestClient, handle: str) -> None:
    answer = client.get(
        f"{PREFIX}/explorer/{handle}.html", params={"layer": 2, "head": 1, "q": "3,4", "style": "heat"}
    )
    assert answer.headers["content-type"].split(";")[0] == "text/html"
    assert answer.headers["content-disposition"] == 'attachment; filename="vit_viz_shapes_mini.html"'
    facts = json.loads(answer.text.split('id="vv-facts">')[1].split("</script>")[0])
    begins = {field["link"]: field["default"] for field in facts["fields"]}
    assert (begins["layer"], begins["head"], begins["q"], begins["style"]) == (2, 1, "3,4", "heat")
    assert begins["tab"] == "look"
    assert [one["question"] for one in facts["answers"] if "refused" in one] == []
    assert (facts["value"]["name"], facts["value"]["mode"]) == ("shapes", "fit")


def test_an_explorer_that_is_too_large_to_save_is_refused_in_a_sentence(
    client: TestClient, handle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vit_viz.ui.look.view.MOST_BYTES", 1_000_000)
    answer = client.get(f"{PREFIX}/explorer/{handle}.html")
    assert (answer.status_code, answer.text.count("\n")) == (400, 0)
    assert "choose a smaller size" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "layer/{h}/0",
        "rows/{h}/0",
        "numbers/{h}?layer=0",
        "photo/{h}",
        "explorer/{h}.html",
    ],
)
def test_a_handle_opens_every_address_and_an_unknown_one_is_gone(
    client: TestClient, handle: str, path: str
) -> None:
    assert client.get(f"{PREFIX}/" + path.replace("{h}", handle)).status_code == 200
    answer = client.get(f"{PREFIX}/" + path.replace("{h}", "A" * 32))
    assert (answer.status_code, answer.text) == (404, GONE)


def test_a_handle_of_an_upload_that_is_gone_answers_with_a_sentence(
    session: Session, client: TestClient
) -> None:
    image = session.add_upload(Image.new("RGB", (40, 30)), owner="ada")
    handle = session.handles.issue(Subject("mini", image, "fit", "ada"))
    assert client.get(f"{PREFIX}/photo/{handle}").status_code == 200
    session.uploads.forget("ada")
    answer = client.get(f"{PREFIX}/photo/{handle}")
    assert answer.status_code == 404


def test_an_evicted_trace_is_computed_again(session: Session, client: TestClient, handle: str) -> None:
    before = client.get(f"{PREFIX}/layer/{handle}/0").content
    session.cache.clear()
    assert client.get(f"{PREFIX}/layer/{handle}/0").content == before


@pytest.mark.parametrize(
    "path",
    [
        *(f"layer/{{h}}/{layer}" for layer in ("99", "x", "-1", "٣", "99999999999999999999")),
        *(f"rows/{{h}}/{asked}" for asked in ("0?query=nobody", "0?query=99,99", "0?direction=up", "77")),
        *(
            f"numbers/{{h}}?{asked}"
            for asked in ("layer=88", "head=88&layer=0", "at=1", "at=99,99", "at=class", "at=1,2;3,4")
        ),
        *(f"explorer/{{h}}.html?{asked}" for asked in ("layer=99", "q=99,0", "alpha=9")),
    ],
)
def test_garbage_is_refused_in_one_sentence(client: TestClient, handle: str, path: str) -> None:
    answer = client.get(f"{PREFIX}/" + path.replace("{h}", handle))
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"].startswith("text/plain")
    assert 10 < len(answer.text) < 400
    assert "\n" not in answer.text


def test_other_methods_are_refused(client: TestClient, handle: str) -> None:
    assert client.post(f"{PREFIX}/photo/{handle}").status_code == 405


NAMES = (
    "layer",
    "head",
    "query",
    "q",
    "direction",
    "at",
    "kind",
    "alpha",
    "mask",
    "share",
    "first",
    "last",
    "bare",
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["numbers/{h}", "rows/{h}/0", "explorer/{h}.html", "layer/{h}/0"]),
    params=st.dictionaries(
        st.sampled_from(NAMES), st.text(max_size=20) | st.integers(-3, 300).map(str), max_size=5
    ),
)
def test_no_garbage_makes_the_server_fail(
    client: TestClient, handle: str, path: str, params: dict[str, str]
) -> None:
    answer = client.get(f"{PREFIX}/" + path.replace("{h}", handle), params=params)
    assert answer.status_code < 500, (params, answer.text)
    if answer.status_code == 200 and answer.headers["content-type"] == "application/json":
        json.loads(answer.content)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Gone("x"), 404),
        (ImageError("x."), 404),
        (ParameterError("x."), 400),
        (CaptureError("x."), 400),
        (BusyError("x."), 429),
        (Cancelled("x."), 429),
        (CheckpointError("x."), 500),
        (ValueError("x"), 500),
    ],
)
def test_a_refusal_says_whose_fault_it_is(error: Exception, status: int) -> None:
    answer = refusal(error)
    assert answer.status_code == status
    assert (bytes(answer.body).decode() == GONE) == isinstance(error, Gone)
