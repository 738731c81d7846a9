"""What the Tokens tab fetches that is no question: the tokens of a state as unit vectors.

GET  /vit_viz/tokens/<handle>/<state>   ?role=   float16 [tokens, dim] of length 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.tokens import Role, token_states
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.lazy import F
from vit_viz.session.request import Subject
from vit_viz.session.session import Session


def vector_bytes(session: Session, subject: Subject, state: int, role: str) -> bytes:
    """The tokens of one state, each divided by its length: little-endian float16 [tokens, dim]."""
    roles: Sequence[Role] = get_args(Role)
    wanted = [one for one in roles if one == role]
    if not wanted:
        raise ParameterError(f"Vectors are {', '.join(roles)}, not {role[:40]!r}.")
    trace: Trace = session.run(subject.request("token trace" if role == "tokens" else "trace"))
    states = token_states(trace, wanted[0])
    if not 0 <= state < len(states):
        raise ParameterError(f"State {state} does not exist: they are 0-{len(states) - 1}.")
    unit = F.normalize(states[state], dim=-1, eps=1e-30)
    return to_numpy(unit).astype("<f2").tobytes()
