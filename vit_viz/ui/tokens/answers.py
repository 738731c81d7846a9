"""What the Tokens tab fetches: the tokens of a state as unit vectors, and the numbers of the measures that need a server.

Each measure but the vectors is a question of `vit_viz.analyses.registry`, asked with the options of the address: the page shows
what the command line, REST and MCP answer.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.components import TOKEN_COMPONENTS, TokenComponents, colours_of, token_components
from vit_viz.analyses.key_segments import SEGMENTS
from vit_viz.analyses.layer_similarity import LAYER_SIMILARITY
from vit_viz.analyses.lens import LOGIT_LENS, PROBE, Lens
from vit_viz.analyses.norms import TOKEN_NORMS, TokenNorms
from vit_viz.analyses.registers import ADDED_REGISTER, AddedRegister
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.analyses.tokens import TOKEN_CHANGE, Role, token_states
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.lazy import F
from vit_viz.outputs import UNITS, Noun, output_name
from vit_viz.results import Segments, StateMatrix, TokenMaps
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.heads.answers import Numbers, rounded


@dataclass(frozen=True)
class Measured:
    """One measure of one subject, and its answer.

    Args:
        target: index of the class that is asked about; "" where none is.
    """

    session: Session
    subject: Subject
    target: str
    answer: Any

    @property
    def first_patch(self) -> int:
        """Index of the token of the first patch."""
        return self.session.trace_of(self.subject).layout.num_prefix


def vector_bytes(session: Session, subject: Subject, state: int, role: str) -> bytes:
    """The tokens of one state, each divided by its length: little-endian float16 [tokens, dim].

    Raises:
        ParameterError: there is no such state or role.
        CaptureError: the model's residual stream cannot be recorded.
    """
    trace = _token_trace(session, subject) if role == "tokens" else session.trace_of(subject)
    states = token_states(trace, _role(role))
    if not 0 <= state < len(states):
        raise ParameterError(f"State {state} does not exist: they are 0-{len(states) - 1}.")
    unit = F.normalize(states[state], dim=-1, eps=1e-30)
    return to_numpy(unit).astype("<f2").tobytes()


def numbers(
    session: Session, subject: Subject, kind: str, asked: Mapping[str, str], *, second: Subject | None = None
) -> Numbers:
    """What one measure of the tab needs: plain values for JSON, one list per state.

    Args:
        asked: options of the question of this kind, and the index of a class as "target".
        second: another photo in the same model, which shares the colours.

    Raises:
        ParameterError: there is no such measure, option or value.
        CaptureError: the model's residual stream cannot be recorded.
    """
    request = request_of(session, subject, kind, asked)
    if second is not None and kind == "components":
        return _told_together(session, (subject, second), dict(request.parameters))
    answer = session.run(request)
    return _MEASURES[kind][1](Measured(session, subject, asked.get("target", ""), answer))


def request_of(session: Session, subject: Subject, kind: str, asked: Mapping[str, str]) -> Request:
    """What a session is asked for a measure.

    Raises:
        ParameterError: as `numbers`.
    """
    if kind not in _MEASURES:
        raise ParameterError(f"The Tokens tab shows {', '.join(_MEASURES)}, not {kind[:40]!r}.")
    options = {name: text for name, text in asked.items() if name != "target"}
    question, _ = _MEASURES[kind]
    target = asked.get("target") or None
    return request_for(
        session, subject, question.name, target=target if question.takes_target else None, **options
    )


def _role(role: str) -> Role:
    for known in get_args(Role):
        if role == known:
            return known  # type: ignore[no-any-return]  # get_args forgets the type
    raise ParameterError(f"Vectors are {', '.join(get_args(Role))}, not {role[:40]!r}.")


def _token_trace(session: Session, subject: Subject) -> Trace:
    trace: Trace = session.run(subject.request("token trace"))
    return trace


# --- measures


def _told_together(session: Session, subjects: tuple[Subject, ...], options: dict[str, Any]) -> Numbers:
    """One basis for two photos. Not kept: what is kept of a picture goes with it, and this belongs to two."""
    return _coloured(token_components([_token_trace(session, one) for one in subjects], **options))


def _coloured(components: TokenComponents) -> Numbers:
    colours = [
        [base64.b64encode(state.tobytes()).decode() for state in np.rint(255 * one).astype(np.uint8)]
        for one in colours_of(components)
    ]
    return {
        "colours": colours[0],
        "second": colours[1] if len(colours) > 1 else None,
        "explained": rounded(components.explained),
        "overall": rounded(components.overall),
    }


def _normed(norms: TokenNorms, first: int) -> Numbers:
    """The norms of all tokens, and which of them are outliers; patches are counted from `first`."""
    values = norms.maps.values
    states, count = len(values), values[0].size
    return {
        "values": rounded(values.reshape(states, -1)),
        "others": {name: rounded(row) for name, row in norms.maps.named.items()},
        "thresholds": rounded(norms.thresholds),
        "outliers": [[t - first for t in tokens if 0 <= t - first < count] for tokens in norms.outliers],
        "named": [
            [name for name, row in norms.maps.named.items() if row[state] > norms.thresholds[state]]
            for state in range(states)
        ],
        "received": rounded(norms.received),
        "fair": rounded(norms.fair),
    }


def _register(measured: Measured) -> Numbers:
    register: AddedRegister = measured.answer
    first = measured.first_patch
    return {
        "norms": [_normed(register.before, first), _normed(register.after, first + 1)],
        "attention": [rounded(one.values.ravel()) for one in register.attention],
        "patches": list(register.outlier_patches),
        "state": register.state,
        "name": register.name,
        "neurons": [[one.layer, one.neuron] for one in register.neurons],
    }


def _lens(measured: Measured) -> Numbers:
    lens: Lens = measured.answer
    states = len(lens.maps.values)
    target = _target_name(measured)
    told: Numbers = {
        "values": rounded(lens.maps.values.reshape(states, -1)),
        "unit": f"value of {target}" if lens.maps.unit == UNITS["value"] else lens.maps.unit,
        "target": target,
        "title": f"What speaks for {target}" if target else "Likeness to the image's own embedding",
        "note": PROBE,
    }
    if lens.top is None or lens.top_probability is None:
        return told
    return told | {
        "top": lens.top.reshape(states, -1).tolist(),
        "top_probability": rounded(lens.top_probability.reshape(states, -1)),
        "words": {str(index): name for index, name in lens.words.items()},
    }


def _target_name(measured: Measured) -> str:
    """What the class of the maps is called; "" for a model without classes."""
    ranking = measured.session.top_classes_of(measured.subject)
    if ranking is None:
        return ""
    if not measured.target:
        return ranking.names[0]
    noun: Noun = "output" if ranking.unit == UNITS["value"] else "class"
    labels = measured.session.model(measured.subject.model).labels
    return output_name(int(measured.target), labels, noun)


def _change(measured: Measured) -> Numbers:
    maps: TokenMaps = measured.answer
    return {
        "values": rounded(maps.values.reshape(len(maps.values), -1)),
        "others": {name: rounded(row) for name, row in maps.named.items()},
        "unit": maps.unit,
    }


def _layers(measured: Measured) -> Numbers:
    matrix: StateMatrix = measured.answer
    return {
        "matrix": rounded(matrix.values),
        "names": list(matrix.names),
        "unit": matrix.unit,
        "note": matrix.note,
    }


def _segments(measured: Measured) -> Numbers:
    segments: Segments = measured.answer
    return {
        "labels": segments.labels.ravel().tolist(),
        "shares": rounded(np.bincount(segments.labels.ravel()) / segments.labels.size),
        "overlap": None if segments.overlap is None else rounded(segments.overlap),
        "method": segments.method,
    }


_MEASURES: dict[str, tuple[AnyQuestion, Callable[[Measured], Numbers]]] = {
    "components": (TOKEN_COMPONENTS, lambda measured: _coloured(measured.answer)),
    "norms": (TOKEN_NORMS, lambda measured: _normed(measured.answer, measured.first_patch)),
    "lens": (LOGIT_LENS, _lens),
    "change": (TOKEN_CHANGE, _change),
    "layers": (LAYER_SIMILARITY, _layers),
    "segments": (SEGMENTS, _segments),
    "register": (ADDED_REGISTER, _register),
}
"""The question of each measure, and its answer as the page reads it."""
