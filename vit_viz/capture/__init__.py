"""Recording and changing the attention of any PyTorch model: `trace`, `Trace`, `edit`."""

from vit_viz.capture.edits import edit
from vit_viz.capture.packed import PackedTrace
from vit_viz.capture.trace import Trace
from vit_viz.capture.tracing import trace

__all__ = ["PackedTrace", "Trace", "edit", "trace"]
