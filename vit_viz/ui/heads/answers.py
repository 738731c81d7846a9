"""What the Heads tab fetches: every measure with its words, a name for each head, and the importance for a class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.ablation import HEAD_IMPORTANCE, CausalMap
from vit_viz.analyses.head_names import HEAD_NAMES, MARGIN, RULES, HeadName, HeadNames, Rule
from vit_viz.analyses.heads import HEAD_TABLES, OF_THE_STREAM, HeadTables
from vit_viz.errors import ParameterError
from vit_viz.results import HeadTable
from vit_viz.session.handles import Subject
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.ui.explain.methods import target_of
from vit_viz.ui.heads.words import MEASURES
from vit_viz.views.state import ViewState

Numbers = dict[str, Any]
UNSEEN = (
    "The tokens inside this model cannot be recorded: whether a head looks at what is alike is not known, nor which tokens are "
    "outliers, so no head can be called content, and few a sink."
)


def numbers(session: Session, subject: Subject, view: ViewState, kind: str) -> Numbers:
    """What one part of the tab needs: plain values for JSON.

    Raises:
        ParameterError: there is no such part, or the target does not exist.
        CaptureError: what it needs of the model cannot be recorded.
    """
    if kind == "measures":
        return _measures(session, subject) | _names(session, subject)
    if kind == "importance":
        importance: HeadTable = session.run(asked(subject, view, HEAD_IMPORTANCE.name))
        return table_value(importance)
    raise ParameterError(f"The Heads tab shows measures and importance, not {kind[:40]!r}.")


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


def rounded(values: NDArray[Any]) -> Any:
    """As nested lists, to five digits; null where there is no number."""
    flat = [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.ravel().tolist()]
    return np.array(flat, dtype=object).reshape(values.shape).tolist()


def _measures(session: Session, subject: Subject) -> Numbers:
    """Every measure that this model gives, in the order of the chooser."""
    measured: HeadTables = session.run(subject.request(HEAD_TABLES.name))
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
        "rules": [_rule(rule) for rule in RULES],
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


def _rule(rule: Rule) -> Numbers:
    return {
        "name": rule.name,
        "sentence": rule.sentence,
        "at_least": dict(rule.at_least),
        "at_most": dict(rule.at_most),
    }
