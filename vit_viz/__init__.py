"""See what a Vision Transformer looks at: attention captured, proven, followed through the layers and put to the test.

    import vit_viz as vv

    loaded = vv.load("mini")
    trace = vv.trace(loaded, "photo.jpg")
    vv.rollout(trace, query="class").values

Layers, heads, rows, columns and registers count from 0 everywhere. The names in `__all__` are the public interface; everything
else may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from vit_viz.lazy import extra, importer

if TYPE_CHECKING:  # the public names, of which each is imported when it is first used
    from pathlib import Path

    from torch import nn

    from vit_viz.analyses.ablation import ablate_heads as ablate_heads
    from vit_viz.analyses.agreement import Agreement as Agreement, agreement as agreement
    from vit_viz.analyses.attention import attention_map as attention_map
    from vit_viz.analyses.components import (
        TokenComponents as TokenComponents,
        token_components as token_components,
    )
    from vit_viz.analyses.decomposition import Decomposition as Decomposition, decomposition as decomposition
    from vit_viz.analyses.explain import explain as explain
    from vit_viz.analyses.faithfulness import faithfulness as faithfulness
    from vit_viz.analyses.heads import head_table as head_table, head_tables as head_tables
    from vit_viz.analyses.key_segments import key_segments as key_segments
    from vit_viz.analyses.layer_similarity import layer_similarity as layer_similarity
    from vit_viz.analyses.ledger import ledger as ledger
    from vit_viz.analyses.lens import Lens as Lens, logit_lens as logit_lens
    from vit_viz.analyses.links import Links as Links, links as links
    from vit_viz.analyses.map_stability import map_stability as map_stability
    from vit_viz.analyses.norms import TokenNorms as TokenNorms, token_norms as token_norms
    from vit_viz.analyses.position_tables import (
        filter_components as filter_components,
        position_components as position_components,
        resampling as resampling,
        rotary_similarity as rotary_similarity,
    )
    from vit_viz.analyses.positions import (
        position_distance as position_distance,
        position_fit as position_fit,
        position_similarity as position_similarity,
    )
    from vit_viz.analyses.registers import add_register as add_register
    from vit_viz.analyses.rollout import rollout as rollout, value_rollout as value_rollout
    from vit_viz.analyses.saco import saco as saco
    from vit_viz.analyses.sink_kinds import SinkKinds as SinkKinds, sink_kinds as sink_kinds
    from vit_viz.analyses.tokens import token_change as token_change, token_similarity as token_similarity
    from vit_viz.capture.edits import edit as edit
    from vit_viz.capture.trace import Trace as Trace
    from vit_viz.capture.tracing import trace as trace
    from vit_viz.checkpoints import LoadedModel as LoadedModel, load as load
    from vit_viz.errors import (
        BusyError as BusyError,
        Cancelled as Cancelled,
        CaptureError as CaptureError,
        CheckpointError as CheckpointError,
        ExportError as ExportError,
        ImageError as ImageError,
        KeyMismatch as KeyMismatch,
        ParameterError as ParameterError,
        UnknownFamily as UnknownFamily,
        UnsafeFile as UnsafeFile,
        VitVizError as VitVizError,
    )
    from vit_viz.figures.recipes import figure as figure
    from vit_viz.geometry import TokenLayout as TokenLayout
    from vit_viz.images import Preprocess as Preprocess
    from vit_viz.labels import Labels as Labels
    from vit_viz.model.config import ViTConfig as ViTConfig
    from vit_viz.model.vit import VisionTransformer as VisionTransformer
    from vit_viz.notebook import explore as explore
    from vit_viz.prompts import Text as Text
    from vit_viz.results import (
        Curve as Curve,
        HeadTable as HeadTable,
        PatchMap as PatchMap,
        Ranking as Ranking,
        Segments as Segments,
        StateMatrix as StateMatrix,
        TokenMaps as TokenMaps,
        TokenMatrix as TokenMatrix,
    )
    from vit_viz.session.run import run as run
    from vit_viz.surveys.comparison import (
        SurveyComparison as SurveyComparison,
        compare_surveys as compare_surveys,
    )
    from vit_viz.surveys.run import Survey as Survey, survey as survey

__version__ = "0.1.0"

if not TYPE_CHECKING:  # to a type checker a package with __getattr__ has every name
    __getattr__, _names = importer(__name__, __file__)
    __all__ = sorted([*_names, "serve"])

    def __dir__() -> list[str]:
        return sorted([*(name for name in globals() if name.startswith("__")), *__all__])


def serve(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | Any = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    output: Literal["softmax", "sigmoid", "value"] | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> None:
    """Open the app in the browser on a loaded model, or on any PyTorch module with attention.

    Args:
        model: what `load` returned, the name of a model, or a module, unmodified.
        preprocess: how images become the module's input, a `Preprocess` or the processor of a model of transformers; needed for a
            module that does not say it.
        labels: names of the module's classes; None takes those that a model of timm or transformers brings.
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
    from vit_viz.settings import check_switches

    check_switches()
    check_address(host, port)
    with extra("app", needed_for="The page"):
        from vit_viz.ui.app import serve as open_app
    open_app(model, preprocess=preprocess, labels=labels, layout=layout, output=output, host=host, port=port)
