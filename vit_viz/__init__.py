"""See what a Vision Transformer looks at: attention captured, proven, followed through the layers and put to the test.

    import vit_viz as vv

    loaded = vv.load("mini")
    trace = vv.trace(loaded, "photo.jpg")
    vv.rollout(trace, query="class").values

Layers, heads, rows, columns and registers count from 0 everywhere. The names in `__all__` are the public interface; everything
else may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vit_viz.analyses.ablation import ablate_heads
from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.explain import explain
from vit_viz.analyses.faithfulness import faithfulness
from vit_viz.analyses.heads import head_table
from vit_viz.analyses.positions import position_similarity
from vit_viz.analyses.rollout import rollout
from vit_viz.capture import Trace, edit, trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import (
    BusyError,
    Cancelled,
    CaptureError,
    CheckpointError,
    ExportError,
    ImageError,
    KeyMismatch,
    ParameterError,
    UnknownFamily,
    UnsafeFile,
    VitVizError,
)
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

__version__ = "0.1.0"

__all__ = [
    "BusyError",
    "Cancelled",
    "CaptureError",
    "CheckpointError",
    "Curve",
    "ExportError",
    "HeadTable",
    "ImageError",
    "KeyMismatch",
    "Labels",
    "LoadedModel",
    "ParameterError",
    "PatchMap",
    "Preprocess",
    "Ranking",
    "TokenLayout",
    "TokenMatrix",
    "Trace",
    "UnknownFamily",
    "UnsafeFile",
    "ViTConfig",
    "VisionTransformer",
    "VitVizError",
    "ablate_heads",
    "attention_map",
    "edit",
    "explain",
    "faithfulness",
    "head_table",
    "load",
    "position_similarity",
    "rollout",
    "serve",
    "trace",
]


def serve(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> None:
    """Open the app in the browser on a loaded model, or on any PyTorch module with attention.

    Args:
        model: what `load` returned, the name of a model, or a module, unmodified.
        preprocess: how images become the module's input; needed for a module.
        labels: names of the module's classes.
        layout: which token is what, where the module does not tell.

    Raises:
        ParameterError: a module without `preprocess`.
    """
    from vit_viz.ui.serve import serve as open_app

    open_app(model, preprocess=preprocess, labels=labels, layout=layout, host=host, port=port)
