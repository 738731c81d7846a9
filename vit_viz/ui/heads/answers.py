"""What the Heads tab fetches: every measure with its words, a name for each head, and the importance for a class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vit_viz.analyses.ablation import HEAD_IMPORTANCE, CausalMap
from vit_viz.analyses.head_names import HEAD_NAMES, MARGIN, RULES, HeadName, HeadNames
from vit_viz.analyses.heads import HEAD_TABLES, OF_THE_STREAM, HeadTables
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.results import HeadTable
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.pictures import target_of
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HeadMeasure

Numbers = dict[str, Any]
LONG_WEIGHTS = 2e7
"""Weights of attention, of all heads together, that a CPU reads in about a third of a second."""
UNSEEN = (
    "The tokens inside this model cannot be recorded: whether a head looks at what is alike is not known, nor which tokens are "
    "outliers, so no head can be called content, and few a sink."
)

_REACH, _WHERE, _BESIDE = "How far and how widely", "On what it falls", "On the patch beside"
_WHY, _DOES = "By what it is decided", "What it does"


def numbers(session: Session, subject: Subject, view: ViewState, kind: str) -> Numbers:
    """What one part of the tab needs: plain values for JSON.

    Raises:
        ParameterError: there is no such part, or the target does not exist.
        CaptureError: what it needs of the model cannot be recorded.
    """
    answer: Any = session.run(request_of(subject, view, kind))
    if isinstance(answer, HeadTables):
        return _measures(answer) | _names(session, subject)
    return table_value(answer)


def request_of(subject: Subject, view: ViewState, kind: str) -> Request:
    """What a session is asked for a part of the tab.

    Raises:
        ParameterError: there is no such part.
    """
    if kind == "measures":
        return subject.request(HEAD_TABLES.name)
    if kind == "importance":
        return asked(subject, view, HEAD_IMPORTANCE.name)
    raise ParameterError(f"The Heads tab shows measures and importance, not {kind[:40]!r}.")


def takes_long(trace: Trace) -> bool:
    """Whether there is so much attention to read that what the tab fetches is computed as a job, with its progress."""
    return trace.num_layers * trace.num_heads * trace.num_tokens**2 > LONG_WEIGHTS


def asked(subject: Subject, view: ViewState, name: str) -> Request:
    """What is asked about the chosen class when a head is switched off in the chosen way."""
    return subject.request(name, target=target_of(view), how=view.heads.how)


def causal_value(causal: CausalMap) -> Numbers:
    """A causal map as far as it is computed: what is not is null."""
    values = np.where(causal.known, causal.table.values, np.nan)
    return {
        "table": table_value(causal.table) | {"values": rounded(values)},
        "estimate": rounded(causal.estimate.values),
        "correlation": float(f"{causal.correlation:.4g}"),
        "done": int(causal.known.sum()),
    }


def table_value(table: HeadTable) -> Numbers:
    """The numbers of a table, with their unit and the ends of what they can be, where there are any."""
    return {
        "values": rounded(table.values),
        "unit": table.unit,
        "signed": table.signed,
        "range": [end if math.isfinite(end) else None for end in table.value_range],
    }


def rounded(values: ArrayLike) -> Any:
    """As nested lists, to five digits; null where there is no number."""
    array = np.asarray(values, np.float64)
    flat = [float(f"{value:.5g}") if math.isfinite(value) else None for value in array.ravel().tolist()]
    return np.array(flat, dtype=object).reshape(array.shape).tolist()


def _measures(measured: HeadTables) -> Numbers:
    """Every measure that this model gives, in the order of the chooser."""
    known: Mapping[str, HeadTable] = {str(name): table for name, table in measured.tables.items()}
    missing = [name for name in MEASURES if name in OF_THE_STREAM and name not in known]
    return {
        "measures": {name: table_value(known[name]) for name in MEASURES if name in known},
        "note": UNSEEN if missing else "",
    }


def _names(session: Session, subject: Subject) -> Numbers:
    """A name for each head, and the rules; one sentence where no head can be named."""
    try:
        named: HeadNames = session.run(subject.request(HEAD_NAMES.name))
    except ParameterError as error:
        return {"names": [], "rules": [], "unnamed": str(error)}
    return {
        "names": [_name(head) for head in named.heads],
        "rules": [asdict(rule) for rule in RULES],
        "margin": MARGIN,
        "unnamed": "",
    }


def _name(head: HeadName) -> Numbers:
    return {
        "layer": head.layer,
        "head": head.head,
        "name": head.name,
        "label": head.label,
        "sentence": head.sentence,
        "numbers": {name: float(f"{value:.4g}") for name, value in head.numbers.items()},
        "could_be": list(head.could_be),
        "thin": head.is_thin,
    }


@dataclass(frozen=True)
class MeasureWords:
    """A measure as people read it.

    Args:
        group: of measures that stand together in the chooser.
        label: its name.
        sentence: what it means, and what low and high values say.
    """

    group: str
    label: str
    sentence: str


MEASURES: dict[HeadMeasure, MeasureWords] = {
    "distance": MeasureWords(
        _REACH,
        "mean attention distance",
        "How far patches look, in pixels of the model's input: low is local, high is all over the photo.",
    ),
    "entropy": MeasureWords(
        _REACH,
        "entropy",
        "How widely tokens look: 0 where each looks at a single token, 1 where each looks at all alike.",
    ),
    "prefix_mass": MeasureWords(
        _WHERE,
        "attention on prefix tokens",
        "Share of the patches' attention that falls on the class token and the registers.",
    ),
    "class_mass": MeasureWords(
        _WHERE,
        "attention on the class token",
        "Share of the patches' attention that falls on the class token; 0 in a model without one.",
    ),
    "suffix_mass": MeasureWords(
        _WHERE,
        "attention on tokens after the patches",
        "Share of the patches' attention that falls on tokens after the patches, such as detection tokens; often there are none.",
    ),
    "diagonal_mass": MeasureWords(
        _WHERE,
        "attention on the patch itself",
        "Share of the patches' attention that stays on the patch that looks.",
    ),
    "sink_share": MeasureWords(
        _WHERE,
        "attention on outlier tokens",
        "Share of all attention that goes to tokens whose norm is more than 5 times the median, called sinks.",
    ),
    "left_neighbour": MeasureWords(
        _BESIDE,
        "left neighbour",
        "Share of the patches' attention that falls on the patch to the left, the previous one.",
    ),
    "right_neighbour": MeasureWords(
        _BESIDE,
        "right neighbour",
        "Share of the patches' attention that falls on the patch to the right, the next one.",
    ),
    "upper_neighbour": MeasureWords(
        _BESIDE, "upper neighbour", "Share of the patches' attention that falls on the patch above."
    ),
    "lower_neighbour": MeasureWords(
        _BESIDE, "lower neighbour", "Share of the patches' attention that falls on the patch below."
    ),
    "strongest_offset": MeasureWords(
        _BESIDE,
        "strongest offset",
        "Share of the patches' attention that falls on the patch at one step, such as two to the right: the step that gets most.",
    ),
    "positional_share": MeasureWords(
        _WHY,
        "share explained by position",
        "How much of where patches look follows from the step between two patches alone; at 1 the photo changes nothing.",
    ),
    "content_correlation": MeasureWords(
        _WHY,
        "likeness of what is looked at",
        "Whether patches look at patches whose tokens are like their own, wherever these are: above 0 likeness attracts, below 0 "
        "it repels.",
    ),
    "norm": MeasureWords(
        _DOES,
        "size of what it moves",
        "Attention weight times the size of the value that it carries, mean over all tokens: how much the head writes.",
    ),
    "rollout_share": MeasureWords(
        _DOES,
        "share of the rollout",
        "Of what the output draws from the patches through this layer, the part that comes through this head; a layer sums to 1.",
    ),
    "estimate": MeasureWords(
        _DOES,
        "gradient importance",
        "What switching the head off would change for the chosen class, estimated by one gradient; below 0 (blue) the head helps.",
    ),
    "effect": MeasureWords(
        _DOES,
        "causal effect",
        "What switching the head off does change for the chosen class; below 0 (blue) the head helps.",
    ),
}
"""In the order of the chooser."""
