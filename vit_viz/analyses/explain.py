"""Why the model said this: several methods on one image, with one shared forward and backward where they can share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from vit_viz.analyses.chains import LayerRange
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Options
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.capture import Trace
from vit_viz.geometry import Query, TokenLayout
from vit_viz.images import Mode
from vit_viz.labels import Labels
from vit_viz.progress import Progress, StopCheck
from vit_viz.results import PatchMap


def explain(
    loaded: ModelLike,
    image: Picture | Tensor | None = None,
    *,
    methods: str | Sequence[str] = ("relevance",),
    target: TargetLike = None,
    mode: Mode = "fit",
    size: int = 0,
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
        image: a picture, its path, an array, the name of a sample, or pixels [1, channels, height, width].
        methods: one name, or several; see `METHODS`.
        target: what is explained: a class by its index or name, a pair (class, other class) for "why this and not the other", any
            `Target`; None means the first class, or the image's own embedding where the model has no classes.
        mode: how the picture becomes the model's input.
        size: short side of the model's input in patches; 0 is the checkpoint's own.
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

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> maps = vv.explain("mini", sample("shapes"), methods=("relevance", "rollout"), target="lion")
        >>> {name: one.peak for name, one in maps.items()}  # the brightest patch of each, (row, col)
        {'relevance': (3, 11), 'rollout': (3, 11)}
    """
    methods = (methods,) if isinstance(methods, str) else methods
    for method in methods:
        METHODS.named(method)
    subject = PreparedImage.of(loaded, image, mode=mode, size=size, layout=layout, has_classes=has_classes)
    return explain_subject(
        subject, methods=methods, target=target, layers=layers, progress=progress, cancelled=cancelled
    )


def explain_subject(
    subject: PreparedImage,
    *,
    methods: Sequence[str],
    target: TargetLike = None,
    layers: LayerRange | None = None,
    options: Mapping[str, Options] | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> dict[str, PatchMap]:
    """As `explain`, for an image that is prepared already.

    Args:
        options: of some methods, by their names; the others have their defaults.
    """
    chosen = {METHODS.named(name): METHODS[name].options() for name in methods}
    chosen |= {METHODS.named(name): given for name, given in (options or {}).items()}
    quick = {method: given for method, given in chosen.items() if not method.is_slow}
    slow = {method: given for method, given in chosen.items() if method.is_slow}
    parts = max(1, len(slow) + bool(quick))
    maps: dict[str, PatchMap] = {}
    wanted = subject.target(target)
    if quick:
        maps, wanted = _quick_maps(subject, quick, wanted, layers)
    for done, (method, given) in enumerate(slow.items(), start=int(bool(quick))):
        wanted = wanted if wanted.is_resolved else subject.resolved(wanted)
        told = _part(progress, done, parts)
        alone = MethodInput(subject, wanted, layers=layers, progress=told, cancelled=cancelled)
        maps[method.name] = method.run(alone, given)
    return {name: _towards(maps[name], wanted, subject.labels) for name in methods}


def look_up(trace: Trace, *, method: str, options: Options, query: Query | None = None) -> PatchMap:
    """The map of a method that a trace alone can answer.

    Args:
        query: the token that is followed; None means what the output is read from.
    """
    return METHODS.named(method).run(MethodInput(recorded=trace, start=query), options)


def _quick_maps(
    subject: PreparedImage, methods: Mapping[AnyMethod, Options], target: Target, layers: LayerRange | None
) -> tuple[dict[str, PatchMap], Target]:
    """The maps of methods that share one recorded forward and backward, and the target with its class fixed."""
    shared = [method.shared for method in methods]
    trace = subject.trace(
        target if any(one.gradient for one in shared) else None,
        keep_residual=any(one.residual for one in shared),
    )
    fixed = target.resolved(subject.logits(trace))
    chains = [method.shared.chain(given) for method, given in methods.items() if method.shared.chain]
    common = MethodInput(subject, fixed, trace, layers=layers, chains=tuple(dict.fromkeys(chains)))
    return {method.name: method.run(common, given) for method, given in methods.items()}, fixed


def _towards(patch_map: PatchMap, target: Target, labels: Labels | None) -> PatchMap:
    """The map with its target in caption and provenance; class-blind maps have none."""
    if patch_map.class_blind:
        return patch_map
    return replace(
        patch_map,
        caption=f"{patch_map.caption}, towards the {target.describe(labels)}",
        provenance=patch_map.provenance.with_parameters(target=target.describe()),
    )


def _part(progress: Progress | None, done: int, parts: int) -> Progress | None:
    """Progress of one method as part of the whole."""
    if progress is None:
        return None
    return lambda share: progress((done + share) / parts)
