"""The numbers of the walkthrough, as an engine answers them: each step from what runs through the model, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vit_viz import walkthrough
from vit_viz.analyses.position_tables import FilterComponents, filter_components
from vit_viz.analyses.spec import Part
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.lazy import nn
from vit_viz.outputs import Output
from vit_viz.session.edits import NO_EDITS, ModelEdits
from vit_viz.walkthrough import Walk, own_transformer

Step = (
    walkthrough.PatchStep
    | walkthrough.EmbeddingStep
    | walkthrough.PrefixStep
    | walkthrough.PositionStep
    | walkthrough.AttentionStep
    | walkthrough.HeadsStep
    | walkthrough.BlockStep
    | walkthrough.ClassStep
)

_OF_THE_WALK: dict[str, Callable[..., Step]] = {
    "PatchStep": walkthrough.patch_step,
    "EmbeddingStep": walkthrough.embedding_step,
    "PositionStep": walkthrough.position_step,
    "AttentionStep": walkthrough.attention_step,
    "HeadsStep": walkthrough.heads_step,
    "BlockStep": walkthrough.block_step,
    "ClassStep": walkthrough.class_step,
}
STEPS = ("PrefixStep", *_OF_THE_WALK)


@dataclass(frozen=True, eq=False)
class LearnedInput:
    """What a model has learned about its input, whatever the image.

    Args:
        components: what the patch embedding reacts to.
        colours: of learned positions; None where the model has none.
    """

    components: FilterComponents
    colours: walkthrough.PositionColours | None

    @classmethod
    def of(cls, model: nn.Module) -> LearnedInput:
        """From the weights of our own VisionTransformer."""
        transformer = own_transformer(model)
        return cls(filter_components(transformer), walkthrough.position_colours(transformer))


LEARNED_INPUT = Part(name="learned input", run=lambda job: LearnedInput.of(job.loaded.model), reads="model")

_BY_HAND = ("AttentionStep", "HeadsStep")
"""Steps that compute the attention of a layer by its formula, of which edits are no part."""


def step_of(
    walk: Walk,
    trace: Trace,
    options: Mapping[str, Any],
    *,
    edits: ModelEdits = NO_EDITS,
    output: Output | None = None,
) -> Step:
    """One step with its options.

    Args:
        options: those of the step's function, and "step", which is the name of its result.
        edits: of the model that the walk and the trace went through.
        output: what one of its outputs is.
    """
    options = dict(options)
    name = options.pop("step", "")
    if name not in STEPS:
        raise ParameterError(f"There is no step {name!r}; there are: {', '.join(STEPS)}.")
    if name == "ClassStep":
        options["output"] = output
    layer = options.get("layer")
    if name in _BY_HAND and isinstance(layer, int) and edits.touches(layer):
        raise ParameterError(
            f"This step computes layer {layer} by the formula, and the layer is edited: please choose a layer without edits in the "
            "Look tab, or undo them above. The other steps and tabs show the edited model."
        )
    return (
        walkthrough.prefix_step(walk, trace, **options)
        if name == "PrefixStep"
        else _OF_THE_WALK[name](walk, **options)
    )
