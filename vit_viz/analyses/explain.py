"""Why the model said this: several methods on one image, with one shared forward and backward where they can share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from torch import Tensor

from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.chains import LayerRange, output_query, run_chains, start_row
from vit_viz.analyses.layerwise import legrad, token_gradcam
from vit_viz.analyses.relevance import RELEVANCE, gradient_chain, gradient_rollout_map, relevance_map
from vit_viz.analyses.rollout import rollout_chain, rollout_map
from vit_viz.analyses.subject import ModelLike, Picture, Subject
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.analyses.watch import Progress, StopCheck
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Mode
from vit_viz.results import PatchMap

Method = Literal[
    "attention",
    "rollout",
    "gradient_rollout",
    "relevance",
    "legrad",
    "gradcam",
    "saliency",
    "input_x_gradient",
    "integrated_gradients",
    "smoothgrad",
    "gradient_shap",
    "occlusion",
    "feature_ablation",
    "kernel_shap",
]

FAST: tuple[Method, ...] = ("attention", "rollout", "gradient_rollout", "relevance", "legrad", "gradcam")
"""Methods that need two forwards and two backwards together; the others run the model many times."""

SLOW: tuple[Method, ...] = tuple(method for method in get_args(Method) if method not in FAST)
"""Methods of captum: each runs the model many times, and only if it is named."""


def explain(
    loaded: ModelLike,
    image: Picture | Tensor | None = None,
    *,
    methods: Sequence[str] = ("relevance",),
    target: TargetLike = None,
    mode: Mode = "fit",
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
    layers: LayerRange | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> dict[str, PatchMap]:
    """Which patches made the model say this, by each of these methods.

    All attention-based methods share one forward and one backward; LeGrad adds one more of each, whatever the number of layers.
    A slow method runs only if it is named.

    Args:
        loaded: a loaded model or its name, or any module together with its pixels.
        image: a picture, its path, or pixels [1, channels, height, width].
        methods: names, see `Method`.
        target: what is explained: a class by its index or name, a pair (class, other class) for "why this and not the other", any
            `Target`; None means the first class, or the image's own embedding where the model has no classes.
        mode: how the picture becomes the model's input.
        layout: which token is what; None asks the module.
        has_classes: whether a module's outputs are scores of classes; None takes what it says of itself, see `outputs_of`.
        layers: (first, end) for the methods that go through the layers, end excluded; None means all.
        progress: told the share that is done, over all methods.
        cancelled: asked between batches; True ends with `Cancelled`.

    Returns:
        One map per method, in the order asked, raw and with the unit of its method.

    Raises:
        ParameterError: a method or a class does not exist, or the model cannot give what a method needs.
        Cancelled: `cancelled` said so.
    """
    check_methods(methods)
    subject = Subject.of(loaded, image, mode=mode, layout=layout, has_classes=has_classes)
    return explain_subject(
        subject, methods=methods, target=target, layers=layers, progress=progress, cancelled=cancelled
    )


def explain_subject(
    subject: Subject,
    *,
    methods: Sequence[str],
    target: TargetLike = None,
    layers: LayerRange | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> dict[str, PatchMap]:
    """As `explain`, for an image that is prepared already."""
    check_methods(methods)
    fast = [method for method in methods if method in FAST]
    slow = [method for method in dict.fromkeys(methods) if method in SLOW]
    parts = max(1, len(slow) + bool(fast))
    maps: dict[str, PatchMap] = {}
    wanted = subject.target(target)
    if fast:
        maps, wanted = _fast_maps(subject, fast, wanted, layers)
    for done, method in enumerate(slow, start=int(bool(fast))):
        wanted = wanted if wanted.is_resolved else subject.resolved(wanted)
        maps[method] = _slow_map(subject, method, wanted, _part(progress, done, parts), cancelled)
    return {method: _towards(maps[method], wanted) for method in methods}


def explain_trace(
    trace: Trace, *, methods: Sequence[str], layers: LayerRange | None = None
) -> dict[str, PatchMap]:
    """The methods that a trace alone can answer: attention, rollout, and with a target gradient_rollout and relevance.

    Their chains run over the same blocks of attention, so that each block is formed once.
    """
    query = output_query(trace)
    chains = {
        "rollout": rollout_chain(attention_share=0.5, head_fusion="mean", discard=0.0),
        "gradient_rollout": gradient_chain(0.5),
        "relevance": RELEVANCE,
    }
    chains = {name: chain for name, chain in chains.items() if name in methods}
    starts = {name: start_row(trace, query, gradient=name == "relevance") for name in chains}
    rows = dict(
        zip(
            chains,
            run_chains(trace, list(chains.values()), list(starts.values()), layers=layers),
            strict=True,
        )
    )
    maps: dict[str, PatchMap] = {}
    if "attention" in methods:
        maps["attention"] = attention_map(trace, layer=trace.num_layers - 1, query=query)
    for name, row in rows.items():
        maps[name] = _chain_map(trace, name, row, starts[name], layers)
    return maps


def check_methods(methods: Sequence[str]) -> None:
    """Raise ParameterError unless every method exists."""
    for method in methods:
        if method not in get_args(Method):
            raise ParameterError(f"There is no method {method!r}; there are: {', '.join(get_args(Method))}.")


def _fast_maps(
    subject: Subject, methods: Sequence[str], target: Target, layers: LayerRange | None
) -> tuple[dict[str, PatchMap], Target]:
    """The attention-based maps from one recorded forward and backward, and the target with its class fixed."""
    needs_gradient = {"gradient_rollout", "relevance"} & set(methods)
    trace = subject.trace(target if needs_gradient else None, keep_residual="gradcam" in methods)
    fixed = target.resolved(subject.logits(trace))
    maps = explain_trace(trace, methods=methods, layers=layers)
    if "gradcam" in methods:
        maps["gradcam"] = token_gradcam(subject, trace, fixed)
    if "legrad" in methods:
        maps["legrad"] = legrad(subject, fixed, layers=layers)
    return maps, fixed


def _slow_map(
    subject: Subject, method: str, target: Target, progress: Progress | None, cancelled: StopCheck | None
) -> PatchMap:
    from vit_viz.analyses import attribution  # importing captum takes a second: only who asks for it waits

    function: Callable[..., PatchMap] = getattr(attribution, method)
    return function(subject, target=target, progress=progress, cancelled=cancelled)


def _chain_map(trace: Trace, name: str, row: Tensor, start: Tensor, layers: LayerRange | None) -> PatchMap:
    if name == "relevance":
        return relevance_map(trace, row, start, layers=layers)
    if name == "gradient_rollout":
        return gradient_rollout_map(trace, row, start, chain=gradient_chain(0.5), layers=layers)
    chain = rollout_chain(attention_share=0.5, head_fusion="mean", discard=0.0)
    return rollout_map(trace, row, start, query=output_query(trace), chain=chain, layers=layers)


def _towards(patch_map: PatchMap, target: Target) -> PatchMap:
    """The map with its target in caption and provenance; class-blind maps have none."""
    if patch_map.class_blind:
        return patch_map
    words = target.describe()
    return replace(
        patch_map,
        caption=f"{patch_map.caption}, towards the {words}",
        provenance=patch_map.provenance.with_parameters(target=words),
    )


def _part(progress: Progress | None, done: int, parts: int) -> Progress | None:
    """Progress of one method as part of the whole."""
    if progress is None:
        return None
    return lambda share: progress((done + share) / parts)
