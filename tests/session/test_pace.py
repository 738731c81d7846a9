"""How long a pass takes, as it was seen."""

from __future__ import annotations

from vit_viz.session.models import Pace
from vit_viz.session.request import Subject
from vit_viz.session.session import Session


def test_the_shortest_pass_counts_for_its_weights_and_its_tokens_alone() -> None:
    pace = Pace()
    pace.note("a", 5, 3.0)
    pace.note("a", 5, 2.0)
    pace.note("a", 5, 4.0)
    pace.note("a", 7, 9.0)
    assert (pace.seconds("a", 5), pace.seconds("a", 7)) == (2.0, 9.0)
    assert pace.seconds("b", 5) is None
    assert pace.seconds("a", 6) is None


def test_what_was_noted_longest_ago_is_forgotten_first() -> None:
    pace = Pace()
    for tokens in range(256):
        pace.note("a", tokens, 1.0)
    pace.note("a", 0, 1.0)  # again: 1 is now the oldest
    pace.note("a", 256, 1.0)
    assert pace.seconds("a", 1) is None
    assert pace.seconds("a", 0) == pace.seconds("a", 2) == pace.seconds("a", 256) == 1.0


def test_a_trace_tells_a_session_how_long_a_pass_takes() -> None:
    session = Session(model="mini", device="cpu")
    subject = Subject("mini", "shapes")
    assert session.engine.pace.seconds(session.model("mini").provenance.weights, 261) is None
    seconds = session.pass_seconds(subject)
    assert seconds is not None
    assert seconds > 0
    assert session.engine.pace.seconds(session.model("mini").provenance.weights, 261) == seconds
    session.engine.pace = Pace()
    assert session.pass_seconds(subject) is None  # recorded elsewhere
