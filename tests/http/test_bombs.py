"""Bombs through the real upload: each is refused, or harmless, within the memory that a refusal may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.http.bombs import EITHER, REFUSED
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
def test_what_is_larger_than_it_may_be_is_refused_before_it_fills_the_memory(fresh: Server) -> None:
    with Visitor(fresh) as visitor:
        visitor.arrive()
        fresh.reset_peak()
        before = fresh.memory()
        for path, content in (
            (BRING, bytes(40 * 2**20)),
            (BRING, without_length(40)),
            ("/vit_viz/open", without_length(50)),
        ):
            answer = visitor.http.post(path, content=content)
            assert answer.status_code == 413
        assert fresh.memory("VmHWM") - before < 30


def without_length(megabytes: int) -> Iterator[bytes]:
    """A question in parts, whose length nobody is told before."""
    yield b'{"view": "'
    for _ in range(16 * megabytes):
        yield b"x" * 2**16
