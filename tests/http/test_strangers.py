"""No visitor can shut out the others, fill the disk, reach another host, or get what is another's; each row was possible once."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.http.neighbours import (
    Experience,
    neighbours,
    trust_that_nobody_reads,
    under,
    uploads_broken_off,
)
from tests.http.visitor import Visitor
from tests.serving import Server

pytestmark = pytest.mark.server

# --- while somebody attacks


@pytest.fixture(scope="module")
def attacked(start_app: Callable[..., Server]) -> Server:
    """An app of their own for the attacks."""
    return start_app("--model", "mini")


@pytest.fixture(scope="module")
def calm(attacked: Server) -> Experience:
    """What the neighbours meet when nobody attacks."""
    seen = neighbours(attacked)
    assert seen.refusals == []
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("attack", [trust_that_nobody_reads, uploads_broken_off])
def test_neighbours_are_served_while_somebody_attacks_and_after(
    attacked: Server, calm: Experience, attack: Any
) -> None:
    quiet = attacked.memory()
    with under(attack, attacked):
        during = neighbours(attacked, calm=calm)
    after = neighbours(attacked, calm=calm)
    assert (during.refusals, during.wrong) == ([], [])
    assert (after.refusals, after.wrong) == ([], [])
    assert len(during.numbers) == len(after.numbers) == len(calm.numbers)
    assert attacked.uploaded() == []
    assert attacked.memory() < quiet + 400
    assert "Traceback" not in attacked.said()


@pytest.mark.slow
def test_what_nobody_waits_for_makes_room_at_once(attacked: Server) -> None:
    """Eight visitors fill the slow lane and leave; the next one's figures come without waiting for theirs."""
    with under(trust_that_nobody_reads, attacked):
        pass  # it has begun when each visitor has asked
    with Visitor(attacked, timeout=120) as visitor:
        visitor.arrive("?tab=explain")
        assert visitor.ask("trust", methods=["rollout"]).refusals == []


# --- what a request cannot reach


def test_no_address_fetches_from_another_host(meet: Callable[..., Visitor]) -> None:
    visitor = meet()
    visitor.arrive()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        host = f"127.0.0.1:{elsewhere.getsockname()[1]}"
        for form in ("file=http://{}/x", "file/http://{}/x", "proxy=http://{}/x", "file=//{}/x"):
            assert visitor.http.get(f"/gradio_api/{form.format(host)}").status_code == 404
        assert select.select([elsewhere], [], [], 0.2)[0] == [], "somebody has called there"
