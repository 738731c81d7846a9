"""Bombs through the real upload: each is refused, or harmless, within the memory that a refusal may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.http.bombs import EITHER, REFUSED, png_of_blank_pixels
from tests.http.hostile import encoded, photo
from tests.http.visitor import Told, Visitor
from tests.serving import Server
from vit_viz.surface import BRING

pytestmark = pytest.mark.server

MOST_MEGABYTES = 150.0


@pytest.fixture(scope="module")
def fresh(start_app: Callable[..., Server]) -> Server:
    """An app of its own, loaded and warm."""
    server = start_app("--model", "mini")
    with Visitor(server) as visitor:
        visitor.arrive()
        for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"):
            visitor.bring("warm", encoded(photo(1), kind))
    return server


def cost(server: Server, content: bytes) -> tuple[Told, float]:
    """What is said about a file, and the MiB above what was in use before."""
    with Visitor(server, timeout=60) as visitor:
        visitor.arrive()
        before = server.memory()
        server.reset_peak()
        told = visitor.bring("bomb", content)
        return told, server.memory("VmHWM") - before


@pytest.mark.slow
def test_a_bomb_of_twenty_kilobytes_is_refused_in_one_sentence(fresh: Server) -> None:
    content = png_of_blank_pixels()
    assert len(content) < 25_000
    told, megabytes = cost(fresh, content)
    assert len(told.refusals) == 1
    assert told.refusals[0].startswith("This PNG claims 169 megapixels")
    assert megabytes < 20


@pytest.mark.slow
def test_no_bomb_costs_more_than_a_refusal_may(fresh: Server) -> None:
    outcomes = {}
    for bomb in (*REFUSED, *EITHER):
        content = bomb()
        told, megabytes = cost(fresh, content)
        outcomes[bomb.__name__] = (len(content), round(megabytes), told.refusals)
        assert megabytes <= MOST_MEGABYTES, (bomb.__name__, megabytes)
        if bomb in REFUSED:
            assert len(told.refusals) == 1, (bomb.__name__, told)
        assert all(len(text) > 20 and text.endswith(".") for text in told.refusals), told
    print(*outcomes.items(), sep="\n")
    assert "Traceback" not in fresh.said()


@pytest.mark.slow
@pytest.mark.parametrize("has_length", [True, False])
def test_a_picture_that_is_larger_than_any_is_refused(fresh: Server, has_length: bool) -> None:
    with Visitor(fresh) as visitor:
        visitor.arrive()
        fresh.reset_peak()
        before = fresh.memory()
        content = bytes(40 * 2**20) if has_length else without_length(40)
        answer = visitor.http.post(BRING, content=content)
        said = {"error": "This is more than 20 MB; please send a smaller picture, a JPEG for example."}
        assert (answer.status_code, answer.json()) == (413, said)
        assert fresh.memory("VmHWM") - before < 30


def without_length(megabytes: int) -> Iterator[bytes]:
    """A question in parts, whose length nobody is told before."""
    yield b'{"view": "'
    for _ in range(16 * megabytes):
        yield b"x" * 2**16


@pytest.mark.slow
def test_a_body_without_a_length_is_bounded_too(fresh: Server) -> None:
    with Visitor(fresh) as visitor:
        visitor.arrive()
        fresh.reset_peak()
        before = fresh.memory()
        answer = visitor.http.post("/vit_viz/open", content=without_length(50))
        assert answer.status_code == 413
        assert fresh.memory("VmHWM") - before < 30


def test_what_a_page_asks_is_no_larger_than_the_values_of_a_few_controls(app: Server) -> None:
    with Visitor(app) as visitor:
        visitor.arrive()
        answer = visitor.http.post("/vit_viz/open", content=without_length(3))
        assert answer.status_code == 413
