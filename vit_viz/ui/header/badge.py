"""The badge: whether what is drawn was shown to be what the model computed."""

from __future__ import annotations

from vit_viz.capture import Trace
from vit_viz.explorer.value import CHECKING, Value, proof_value
from vit_viz.session.handles import Subject

_EDITED = (
    "The model is edited, and this holds for the edited model: what is drawn is what its own kernels computed under the edits. Of "
    "a head that is off or at its mean, what it looks at is drawn; what it says is replaced after that."
)


def badge_value(subject: Subject, trace: Trace) -> Value:
    """The badge, of an edited model with what "verified" means there; "checking" while it is not known what it will say.

    Raises:
        CaptureError: it is known that the pictures would mislead.
    """
    if trace.is_being_checked:
        return CHECKING
    badge = proof_value(trace)
    return badge | {"title": f"{badge['title']} {_EDITED}"} if subject.edits else badge
