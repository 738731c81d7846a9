"""Recording and changing the attention of any PyTorch model: `trace`, `Trace`, `edit`."""

from typing import TYPE_CHECKING

from vit_viz.capture.edit_stack import innermost_edit, is_edited
from vit_viz.capture.packed import PackedTrace
from vit_viz.capture.trace import Trace
from vit_viz.lazy import late_names

if TYPE_CHECKING:
    from vit_viz.capture.absence import check_removal
    from vit_viz.capture.active_edits import unedited
    from vit_viz.capture.batch import visit_layers
    from vit_viz.capture.edits import edit, surrounding_edits, with_edits
    from vit_viz.capture.interception import are_ours
    from vit_viz.capture.reach import check_pixels_reached
    from vit_viz.capture.target_flow import check_of_target
    from vit_viz.capture.tracing import trace
    from vit_viz.capture.verified import verified_structure
else:
    globals().update(late_names(__file__))

__all__ = [
    "PackedTrace",
    "Trace",
    "are_ours",
    "check_of_target",
    "check_pixels_reached",
    "check_removal",
    "edit",
    "innermost_edit",
    "is_edited",
    "surrounding_edits",
    "trace",
    "unedited",
    "verified_structure",
    "visit_layers",
    "with_edits",
]
