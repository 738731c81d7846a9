"""See what a Vision Transformer looks at: attention captured, proven, followed through the layers and put to the test.

    import vit_viz as vv

    loaded = vv.load("mini")
    trace = vv.trace(loaded, "photo.jpg")
    vv.rollout(trace, query="class").values

Layers, heads, rows, columns and registers count from 0 everywhere. The names in `__all__` are the public interface; everything
else may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from vit_viz.lazy import extra, importer

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from vit_viz.analyses.ablation import ablate_heads
    from vit_viz.analyses.agreement import Agreement, agreement
    from vit_viz.analyses.attention import attention_map
    from vit_viz.analyses.components import TokenComponents, token_components
    from vit_viz.analyses.decomposition import decomposition
    from vit_viz.analyses.explain import explain
    from vit_viz.analyses.faithfulness import faithfulness
    from vit_viz.analyses.heads import head_table
    from vit_viz.analyses.key_segments import key_segments
    from vit_viz.analyses.layer_similarity import layer_similarity
    from vit_viz.analyses.ledger import ledger
    from vit_viz.analyses.lens import Lens, logit_lens
    from vit_viz.analyses.links import Links, links
    from vit_viz.analyses.map_stability import map_stability
    from vit_viz.analyses.norms import TokenNorms, token_norms
    from vit_viz.analyses.output_parts import Decomposition
    from vit_viz.analyses.position_tables import (
        filter_components,
        position_components,
        resampling,
        rotary_similarity,
    )
    from vit_viz.analyses.positions import position_fit, position_similarity
    from vit_viz.analyses.registers import add_register
    from vit_viz.analyses.rollout import rollout, value_rollout
    from vit_viz.analyses.saco import saco
    from vit_viz.analyses.sink_kinds import SinkKinds, sink_kinds
    from vit_viz.analyses.tokens import token_change, token_similarity
    from vit_viz.capture.edits import edit
    from vit_viz.capture.trace import Trace
    from vit_viz.capture.tracing import trace
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
    from vit_viz.figures.recipes import figure
    from vit_viz.geometry import TokenLayout
    from vit_viz.images import Preprocess
    from vit_viz.labels import Labels
    from vit_viz.model.config import ViTConfig
    from vit_viz.model.vit import VisionTransformer
    from vit_viz.notebook import explore
    from vit_viz.results import (
        Curve,
        HeadTable,
        PatchMap,
        Ranking,
        Segments,
        StateMatrix,
        TokenMaps,
        TokenMatrix,
    )
    from vit_viz.session.run import run
    from vit_viz.surveys.comparison import SurveyComparison, compare_surveys
    from vit_viz.surveys.run import Survey, survey

__version__ = "0.1.0"

__all__ = [
    "Agreement", "BusyError", "Cancelled", "CaptureError", "CheckpointError", "Curve", "Decomposition", "ExportError",
    "HeadTable", "ImageError", "KeyMismatch", "Labels", "Lens", "Links", "LoadedModel", "ParameterError", "PatchMap",
    "Preprocess", "Ranking", "Segments", "SinkKinds", "StateMatrix", "Survey", "SurveyComparison", "TokenComponents",
    "TokenLayout", "TokenMaps", "TokenMatrix", "TokenNorms", "Trace", "UnknownFamily", "UnsafeFile", "ViTConfig",
    "VisionTransformer", "VitVizError", "ablate_heads", "add_register", "agreement", "attention_map", "compare_surveys",
    "decomposition", "edit", "explain", "explore", "faithfulness", "figure", "filter_components", "head_table",
    "key_segments", "layer_similarity", "ledger", "links", "load", "logit_lens", "map_stability", "position_components",
    "position_fit", "position_similarity", "resampling", "rollout", "rotary_similarity", "run", "saco", "serve",
    "sink_kinds", "survey", "token_change", "token_components", "token_norms", "token_similarity", "trace",
    "value_rollout",
]  # fmt: skip

_MODULES = {
    "vit_viz.analyses.ablation": "ablate_heads",
    "vit_viz.analyses.agreement": "Agreement agreement",
    "vit_viz.analyses.attention": "attention_map",
    "vit_viz.analyses.components": "TokenComponents token_components",
    "vit_viz.analyses.decomposition": "decomposition",
    "vit_viz.analyses.explain": "explain",
    "vit_viz.analyses.faithfulness": "faithfulness",
    "vit_viz.analyses.heads": "head_table",
    "vit_viz.analyses.key_segments": "key_segments",
    "vit_viz.analyses.layer_similarity": "layer_similarity",
    "vit_viz.analyses.ledger": "ledger",
    "vit_viz.analyses.lens": "Lens logit_lens",
    "vit_viz.analyses.links": "Links links",
    "vit_viz.analyses.map_stability": "map_stability",
    "vit_viz.analyses.norms": "TokenNorms token_norms",
    "vit_viz.analyses.output_parts": "Decomposition",
    "vit_viz.analyses.position_tables": "filter_components position_components resampling rotary_similarity",
    "vit_viz.analyses.positions": "position_fit position_similarity",
    "vit_viz.analyses.registers": "add_register",
    "vit_viz.analyses.rollout": "rollout value_rollout",
    "vit_viz.analyses.saco": "saco",
    "vit_viz.analyses.sink_kinds": "SinkKinds sink_kinds",
    "vit_viz.analyses.tokens": "token_change token_similarity",
    "vit_viz.capture.edits": "edit",
    "vit_viz.capture.trace": "Trace",
    "vit_viz.capture.tracing": "trace",
    "vit_viz.checkpoints": "LoadedModel load",
    "vit_viz.figures.recipes": "figure",
    "vit_viz.errors": (
        "BusyError Cancelled CaptureError CheckpointError ExportError ImageError KeyMismatch "
        "ParameterError UnknownFamily UnsafeFile VitVizError"
    ),
    "vit_viz.geometry": "TokenLayout",
    "vit_viz.images": "Preprocess",
    "vit_viz.labels": "Labels",
    "vit_viz.model.config": "ViTConfig",
    "vit_viz.model.vit": "VisionTransformer",
    "vit_viz.notebook": "explore",
    "vit_viz.results": "Curve HeadTable PatchMap Ranking Segments StateMatrix TokenMaps TokenMatrix",
    "vit_viz.session.run": "run",
    "vit_viz.surveys.comparison": "SurveyComparison compare_surveys",
    "vit_viz.surveys.run": "Survey survey",
}
"""The names above that are imported when they are first used; type checkers read the imports at the top instead."""

if not TYPE_CHECKING:  # to a type checker a package with __getattr__ has every name
    __getattr__ = importer(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if name.startswith("__")), *__all__])


def serve(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    output: Literal["softmax", "sigmoid", "value"] | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> None:
    """Open the app in the browser on a loaded model, or on any PyTorch module with attention.

    Args:
        model: what `load` returned, the name of a model, or a module, unmodified.
        preprocess: how images become the module's input; needed for a module.
        labels: names of the module's classes.
        layout: which token is what, where the module does not tell.
        output: what one output is, "softmax", "sigmoid" or "value", as `load` takes it; None takes what the model says of itself.

    Raises:
        ParameterError: a module without `preprocess`, an `output` that does not fit, or the app cannot listen there.
        VitVizError: the packages of the app are not installed.

    Example:
        >>> import vit_viz as vv
        >>> vv.serve("mini", port=7860)
    """
    from vit_viz.listening import check_address

    check_address(host, port)
    with extra("app", needed_for="The page"):
        from vit_viz.ui.app import serve as open_app
    open_app(model, preprocess=preprocess, labels=labels, layout=layout, output=output, host=host, port=port)
