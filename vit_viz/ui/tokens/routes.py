"""What the Tokens tab fetches that is no question: the tokens of a state as unit vectors, and colours, which two photos may share.

GET  /vit_viz/tokens/<handle>/<state>   ?role=   float16 [tokens, dim] of length 1
POST /vit_viz/colours   {"view": LINK, "role": ..., "foreground": ..., "whitened": ..., "second": image}
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.components import TOKEN_COMPONENTS, colours_of, token_components
from vit_viz.analyses.tokens import Role, token_states
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.lazy import F
from vit_viz.sentences import sentence
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.opened import PageCall
from vit_viz.ui.payload import photo_value


def vector_bytes(session: Session, subject: Subject, state: int, role: str) -> bytes:
    """The tokens of one state, each divided by its length: little-endian float16 [tokens, dim]."""
    roles: Sequence[Role] = get_args(Role)
    wanted = [one for one in roles if one == role]
    if not wanted:
        raise ParameterError(f"Vectors are {', '.join(roles)}, not {role[:40]!r}.")
    trace = _token_trace(session, subject) if role == "tokens" else session.trace_of(subject)
    states = token_states(trace, wanted[0])
    if not 0 <= state < len(states):
        raise ParameterError(f"State {state} does not exist: they are 0-{len(states) - 1}.")
    unit = F.normalize(states[state], dim=-1, eps=1e-30)
    return to_numpy(unit).astype("<f2").tobytes()


def colours(asked: PageCall) -> dict[str, Any]:
    """The patches of a view as colours, three bytes each in base64, a text for each state; and of a second photo in the same."""
    session, subject = asked.session, asked.subject
    options = {name: value for name, value in asked.body.items() if name not in ("view", "second")}
    if unknown := options.keys() - {field.name for field in TOKEN_COMPONENTS.options.schema()}:
        raise ParameterError(f"There is no option {min(unknown)[:40]!r} of these colours.")
    request = request_for(session, subject, TOKEN_COMPONENTS.name, **options)
    image, second, note = str(asked.body.get("second", "")), None, ""
    if image in ("", subject.image):
        components = session.run(request, cancelled=asked.cancelled)
    else:
        other = replace(subject, image=image, part=None)
        try:
            second = _photo(session, other)
        except VitVizError as error:  # it has gone
            note = sentence(error)
        # one basis for both is not kept: what is kept of a picture goes with it, and this belongs to two
        subjects = (subject, other) if second else (subject,)
        chosen: dict[str, Any] = dict(request.parameters)
        components = token_components([_token_trace(session, one) for one in subjects], **chosen)
    own, *others = (
        [base64.b64encode(state.tobytes()).decode() for state in np.rint(255 * one).astype(np.uint8)]
        for one in colours_of(components)
    )
    return {
        "colours": own,
        "explained": components.explained.tolist(),
        "overall": components.overall.tolist(),
        "second": second and second | {"colours": others[0]},
        "note": note,
    }


def _token_trace(session: Session, subject: Subject) -> Trace:
    trace: Trace = session.run(subject.request("token trace"))
    return trace


def _photo(session: Session, subject: Subject) -> dict[str, Any]:
    """Where a photo is fetched, and where its patches lie."""
    trace = session.trace_of(subject)
    assert trace.crop_box is not None  # a session traces photos, which have one
    return {
        "grid": list(trace.layout.grid),
        **photo_value(session, subject),
        "crop": {"region": list(trace.crop_box.region), "original": list(trace.crop_box.original_size)},
    }
