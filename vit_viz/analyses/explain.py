"""Why the model said this: several methods on one image, with one shared forward and backward where they can share it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from vit_viz.analyses.chains import LayerRange, check_reached
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import AnyMethod, AnyQuestion, Job, Part, Place, asks
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer
from vit_viz.capture import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query, TokenLayout
from vit_viz.images import Mode
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor
from vit_viz.outputs import Output
from vit_viz.progress import Progress, ProgressLike, StopCheck, bar, part_of
from vit_viz.results import PatchMap

_logger = logging.getLogger(__name__)


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
    output: Output | None = None,
    query: Query | None = None,
    layers: LayerRange | None = None,
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
) -> Maps:
    """Which patches made the model say this, by each of these methods.

    All attention-based methods share one forward and one backward; LeGrad adds one more of each, whatever the number of layers.
    A slow method runs only if it is named.

    Args:
        loaded: a loaded model, what `load` takes, or any module.
        image: a picture, its path, an array or the name of a sample; or pixels [1, channels, height, width], already normalised,
            which a module needs that does not say how pictures become its input.
        methods: one name, or several; see `METHODS`.
        target: what is explained: a class by its index or name, a pair (class, other class) for "why this and not the other", a
            function that makes one number of the scores [classes] (of what the model returns, where that holds none), any `Target`;
            None means the first class, or the image's own embedding where the model has no classes.
        mode: how the picture becomes the model's input: "fit", "crop" or "stretch"; see `Preprocess.apply`.
        size: short side of that input in patches; 0 is the checkpoint's own.
        layout: which token is what; None asks the module.
        has_classes: whether the outputs are scores of classes, and not an embedding; None takes what the model says of itself.
        output: what one output is, "softmax", "sigmoid" or "value", as `load` takes it; None takes what the model says of itself.
        query: the token to start from, of methods that start from one; None means what the target was measured to be read from.
        layers: (first, end) for the methods that go through the layers, end excluded; None means all.
        progress: told the share that is done, over all methods; None shows a bar at a terminal or in a notebook, False nothing.
        cancelled: asked between batches; True ends with `Cancelled`.

    Returns:
        One map per method, in the order asked, raw and with the unit of its method. One that this model cannot give is left out:
        `.missing` and the log say why, as does asking for it.

    Raises:
        CheckpointError, ImageError: the model or the picture cannot be read.
        ParameterError: a method, class or query does not exist, or the model is not of the kind that a method needs.
        CaptureError: the model can give none of the maps, since a target's gradient does not reach what they read, for example.
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
    subject = PreparedImage.of(
        loaded,
        image,
        mode=mode,
        size=size,
        layout=layout,
        has_classes=has_classes,
        output=output,
        target=target,
    )
    with bar("explain", progress) as report:
        maps = explain_subject(
            subject,
            methods=methods,
            target=target,
            query=query,
            layers=layers,
            progress=report,
            cancelled=cancelled,
        )
    for name, why in maps.missing.items():
        _logger.warning("no map by %s: %s", name, why)
    return maps


def explain_subject(
    subject: PreparedImage,
    *,
    methods: Sequence[str],
    target: TargetLike = None,
    query: Query | None = None,
    layers: LayerRange | None = None,
    options: Mapping[str, Options] | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Maps:
    """As `explain`, for an image that is prepared already; methods that are not among the options have their defaults."""
    chosen = {METHODS.named(name): METHODS[name].options() for name in methods}
    chosen |= {METHODS.named(name): settings for name, settings in (options or {}).items()}
    for method in chosen:
        if query is not None and not method.takes_query:
            raise ParameterError(f"{method.name!r} takes no query.")
    quick = {method: settings for method, settings in chosen.items() if not method.is_slow}
    slow = {method: settings for method, settings in chosen.items() if method.is_slow}
    parts = max(1, len(slow) + bool(quick))
    maps = Maps()
    wanted = subject.target(target)
    if quick:
        wanted = _quick_maps(subject, quick, wanted, query, layers, maps)
    for done, (method, settings) in enumerate(slow.items(), start=int(bool(quick))):
        wanted = wanted if wanted.is_resolved else subject.resolved(wanted)
        report = part_of(progress, done / parts, (done + 1) / parts)
        alone = MethodInput(subject, wanted, start=query, layers=layers, progress=report, cancelled=cancelled)
        with maps.or_why(method):
            maps[method.name] = method.run(alone, settings)
    if maps.missing and not maps:
        raise CaptureError(next(iter(maps.missing.values())))
    ready = {name: _towards(maps[name], wanted, subject.labels) for name in methods if name in maps}
    return Maps(ready, missing=maps.missing)


class Maps(dict[str, PatchMap]):
    """Maps by the names of their methods. Asked for one that this model cannot give, it raises the reason.

    Args:
        missing: why a method gave none, by its name: one sentence each.
    """

    def __init__(
        self, maps: Mapping[str, PatchMap] | None = None, *, missing: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(maps or {})
        self.missing = dict(missing or {})

    def __missing__(self, name: str) -> PatchMap:
        if name in self.missing:
            raise CaptureError(self.missing[name])
        raise KeyError(name)

    @contextmanager
    def or_why(self, *methods: AnyMethod) -> Iterator[None]:
        """Around what makes the maps of these methods: where the model cannot give them, the reason is kept instead."""
        try:
            yield
        except CaptureError as error:
            self.missing |= {method.name: str(error) for method in methods}


def _quick_maps(
    subject: PreparedImage,
    methods: Mapping[AnyMethod, Options],
    target: Target,
    query: Query | None,
    layers: LayerRange | None,
    maps: Maps,
) -> Target:
    """Add the maps of methods that share one recorded forward and backward; returns the target with its class fixed."""

    keep_norms = any(method.shared.norms for method in methods)
    through_layers = [method for method in methods if method.shared.gradient]
    of_features = [method for method in methods if method.shared.features]
    trace: Trace | None = None
    if through_layers or of_features:
        with maps.or_why(*through_layers, *of_features):
            trace = subject.trace(
                target,
                keep_norms=keep_norms,
                keep_features=bool(of_features),
                keep_gradients=bool(through_layers),
            )
    if trace is not None and through_layers:
        with maps.or_why(*through_layers):
            check_reached(trace, layers)
    methods = {method: settings for method, settings in methods.items() if method.name not in maps.missing}
    if not methods:
        return target
    trace = trace or subject.trace(keep_norms=keep_norms)
    fixed = target.resolved(subject.logits(trace))
    chains = [method.shared.chain(settings) for method, settings in methods.items() if method.shared.chain]
    common = MethodInput(subject, fixed, trace, query, layers, tuple(dict.fromkeys(chains)))
    for method, settings in methods.items():
        with maps.or_why(method):
            maps[method.name] = method.run(common, settings)
    return fixed


def _towards(patch_map: PatchMap, target: Target, labels: Labels | None) -> PatchMap:
    """The map with its target in caption and provenance; class-blind maps have none."""
    if patch_map.class_blind:
        return patch_map
    return replace(
        patch_map,
        caption=f"{patch_map.caption}, towards the {target.describe(labels)}",
        provenance=patch_map.provenance.with_parameters(target=target.describe()),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Answer):
    """The maps of all methods that share one forward and one backward, towards one target.

    Args:
        maps: by name of the method.
        missing: why a method gave none, by its name: one sentence each.
    """

    maps: Mapping[str, PatchMap]
    missing: Mapping[str, str] = field(default_factory=dict)

    def map(self, method: str) -> PatchMap:
        """The map of a method."""
        if method not in self.maps:
            raise ParameterError(self.missing.get(method, f"There is no map by {method!r}."))
        return self.maps[method]


def explained(job: Job, method: AnyMethod) -> PatchMap:
    """The map of one method; of a quick one with its usual options it is that of all quick ones together."""
    options, query = method.chosen(job.parameters), job.parameters.get("query")
    is_usual = query is None and not options.changed()
    if is_usual and not method.is_slow:
        return maps_of(job, job.target).map(method.name)
    if method.cost == "look-up":
        return method.run(MethodInput(recorded=job.trace, start=query), options)
    maps = explain_subject(
        job.image,
        methods=[method.name],
        target=job.target,
        query=query,
        options={method.name: options},
        **job.watched,
    )
    return maps[method.name]


def maps_of(job: Job, target: TargetLike, *, mirror: bool = False) -> Explanations:
    """The maps of all quick methods towards a target, also of the mirrored image."""
    maps: Explanations = job.answer_of("explain all", target=target, mirror=mirror)
    return maps


def parameters_of(method: AnyQuestion, options: Options, **beside: Any) -> dict[str, Any]:
    """Of the request for a map: of a method, or of another question.

    Args:
        options: in the one way of writing them, see `Options.for_layers`.
        beside: query and target; of these the method's are taken, a query where it takes any.
    """
    taken = {"query": method.follows_pin, "target": method.takes_target}
    return options.values() | {name: beside.get(name) for name, is_taken in taken.items() if is_taken}


def map_of(job: Job, question: AnyQuestion, options: Options | None = None) -> PatchMap:
    """The map of a method, or of another question, from the job's query or what its target is read from."""
    chosen = question.options() if options is None else options
    if (
        job.query is None
        and job.trace.logits is None
        and question.name in METHODS.quick
        and not chosen.changed()
    ):
        return maps_of(job, job.target).map(question.name)  # what a function reads, its own trace alone knows
    start = start_of(job) if question.follows_pin else None
    parameters = parameters_of(question, chosen, query=start, target=job.target)
    patch_map: PatchMap = job.answer_of(question.name, **parameters)
    return patch_map


def by_name(whose: str, options: object) -> Mapping[str, object]:
    """Options as they must be given."""
    if not isinstance(options, Mapping):
        raise ParameterError(f"The options of {whose} are given by name, not as {str(options)[:40]!r}.")
    return options


def changed_options(method: AnyMethod, options: object, layers: int) -> tuple[tuple[str, Any], ...]:
    """Those of a method that are not at their defaults, in one way of writing them for a model of so many layers."""
    read: Options = method.read(by_name(repr(method.name), options))
    return read.for_layers(layers).changed()


def start_of(job: Job) -> Query:
    """The query of a job, or what its target is read from."""
    outputs = None
    if job.target is not None and job.trace.logits is not None:
        outputs = job.image.target(job.target).outputs_in(job.trace.logits)
    return job.trace.output_query(job.query, outputs=outputs)


def two_classes(job: Job) -> tuple[int, int]:
    """The class that a job asks about and the one that it is set against: the strongest of the rest where none is named."""
    subject = job.image
    if not subject.has_classes or job.outputs.numel() < 2:
        raise ParameterError("This model has no two classes that could be set against each other.")
    wanted = subject.resolved(job.target)
    if wanted.index is None:
        raise ParameterError("Two classes are set against each other, not embeddings or functions.")
    rest = (index for index in job.outputs.topk(2).indices.tolist() if index != wanted.index)
    return wanted.index, next(rest) if wanted.other is None else wanted.other


def _explain_all(job: Job) -> Explanations:
    """The maps of all quick methods. One that this model cannot give is left out, with the reason."""
    subject = job.image
    if job.parameters.get("mirror"):  # left and right exchanged
        subject = replace(subject, pixels=subject.pixels.flip(-1))
    maps = explain_subject(subject, methods=METHODS.quick, target=job.target)
    return Explanations(maps, maps.missing)


EXPLAIN_ALL = Part(name="explain all", run=_explain_all, reads="image", forwards=4)


@dataclass(frozen=True)
class ComparisonOptions(Options):
    """Whose maps are compared."""

    methods: Annotated[
        str,
        Option(
            "methods",
            "quick: those that share one pass; all: every method with a card, which takes minutes; or names with commas between.",
            pattern=r"([a-z0-9_]+(,[a-z0-9_]+)*)?",  # without any those that share one pass, as earlier links have it
            is_list=True,
        ),
    ] = "quick"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.names:
            METHODS.named(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The methods that are meant."""
        slow = (method.name for method in METHODS.cards if method.is_slow)
        words = {"": METHODS.quick, "quick": METHODS.quick, "all": (*METHODS.quick, *slow)}
        return tuple(
            dict.fromkeys(name for word in self.methods.split(",") for name in words.get(word, (word,)))
        )

    @property
    def is_quick(self) -> bool:
        """Whether no method is among them that runs the model for itself."""
        return not any(METHODS[name].is_slow for name in self.names)

    def of_methods(self, options: object, layers: int = 0) -> tuple[tuple[str, Any], ...]:
        """The options of these methods that are changed, by the names of the methods."""
        own = by_name("the methods", options)
        if unknown := [name for name in own if name not in self.names]:
            raise ParameterError(
                f"{unknown[0]!r} is not among the methods that are compared; there are: {', '.join(self.names)}."
            )
        read = {name: changed_options(METHODS[name], own[name], layers) for name in self.names if name in own}
        return tuple((name, changed) for name, changed in read.items() if changed)


def compared_maps(job: Job, options: ComparisonOptions) -> Explanations:
    """The maps of some methods, and why others give none; what the last one says is raised where none gives any."""
    own = dict(job.parameters.get("options", ()))
    maps: dict[str, PatchMap] = {}
    missing: dict[str, str] = {}
    for name in options.names:
        try:
            if name in METHODS.quick and name not in own:
                maps[name] = maps_of(job, job.target).map(name)
            else:
                maps[name] = map_of(job, METHODS[name], METHODS[name].options.of(own.get(name, ())))
        except (CaptureError, ParameterError) as error:
            if len(missing) + 1 == len(options.names):
                raise
            missing[name] = str(error)
    return Explanations(maps, missing)


COMPARISON = asks(
    compared_maps,
    name="comparison",
    label="Methods side by side",
    also_called="compare methods, comparison, all maps",
    shows="the maps of several methods for one photo and one class.",
    hides="which of them is right: raw values of methods have different units, so each map has its own scale.",
    formula=r"the map of each method",
    source="Samek et al. 2017, arXiv:1509.06321",
    runs="once for all quick methods, and as each slow one needs",
    options=ComparisonOptions,
    reads="image",
    place=Place("explain"),
    cost="many passes",
    forwards=60,
    takes_target=True,
    takes_options=True,
)
