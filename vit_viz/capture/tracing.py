"""One forward pass, recorded: `trace(model, image)`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, SupportsIndex

from numpy.typing import NDArray
from PIL import Image

from vit_viz.answer import Provenance
from vit_viz.capture.active_edits import suspended
from vit_viz.capture.buffers import Arena, BufferPool, shared_pool
from vit_viz.capture.edits import edit, surrounding_edits
from vit_viz.capture.features import Features, TensorsSeen
from vit_viz.capture.forward import (
    ResidualStream,
    answer_of,
    expected_layers,
    is_capturing,
    remember_layers,
    undisturbed,
)
from vit_viz.capture.given import as_known_model, as_model, as_picture, as_pixels, class_index, labels_of
from vit_viz.capture.gradient_stops import GradientStops
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.capture.graphs import graphed
from vit_viz.capture.interception import Interception
from vit_viz.capture.layers import LayerAttention, exact
from vit_viz.capture.layouts import inferred_layout, patch_size_of, plain_layout
from vit_viz.capture.placement import find_layout
from vit_viz.capture.probing import are_compiled, undisturbed_pass
from vit_viz.capture.proof import PROOF_ROWS
from vit_viz.capture.reach import unreached
from vit_viz.capture.recorder import MAX_ATTENTION_BYTES, Recorder, RecorderOptions
from vit_viz.capture.report import SOUND, Structure
from vit_viz.capture.returned import (
    ScoresPlace,
    is_of_all,
    no_scores,
    number_from,
    place_of_scores,
    scores_of,
)
from vit_viz.capture.target_flow import check_of_target
from vit_viz.capture.tokens_read import TokensRead, as_source, layout_that_reads
from vit_viz.capture.trace import Trace
from vit_viz.capture.verified import structure_of
from vit_viz.capture.wrappers import answer_within, unwrapped_module
from vit_viz.checkpoints import Model
from vit_viz.errors import CaptureError, ParameterError, VitVizError
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.images import Mode, decode, image_hash
from vit_viz.indices import as_index, checked_index
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.progress import Progress, StopCheck, Watch

_ATTENTION = re.compile("attention|attn", re.IGNORECASE)
Target = SupportsIndex | str | Callable[[Tensor], Tensor]
Picture = Image.Image | NDArray[Any] | Path | str | Tensor


def trace(
    model_or_loaded: nn.Module | Model | str | Path,
    image_or_pixels: Picture,
    *,
    mode: Mode = "fit",
    size: int = 0,
    layout: TokenLayout | None = None,
    keep_values: bool = False,
    keep_norms: bool = False,
    keep_residual: bool = False,
    keep_features: bool = False,
    keep_gradients: bool = True,
    keep_graph: bool = False,
    target: Target | None = None,
    proof_rows: int = PROOF_ROWS,
    max_patches: int | None = None,
    max_attention_bytes: int = MAX_ATTENTION_BYTES,
    pool: BufferPool | None = None,
    structure: Structure | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Trace:
    """What every head of every layer looked at in one forward pass of one image.

    The model runs unmodified, in eval mode. Of a module that is not ours it is checked first that its tokens are the patches;
    `Trace.proof` and what is drawn wait once for the rest of the proof, which takes dozens of passes.

    Args:
        model_or_loaded: a loaded checkpoint, any module with attention, or the name of a model, which is loaded.
        image_or_pixels: a picture, its path, an array or the name of a sample; or pixels [1, channels, height, width], already
            normalised, which any module takes that does not say how pictures become its input.
        mode: how a picture becomes the model's input: "fit", "crop" or "stretch"; see `Preprocess.apply`.
        size: short side of that input in patches; 0 is the checkpoint's own.
        layout: which token is what; None asks the module.
        keep_values: also keep the values.
        keep_norms: also keep how long each value is after the output projection, to weigh attention by it.
        keep_residual: also keep the residual stream, [layers + 1, tokens, dim].
        keep_features: with a target, also keep what the last attention reads and its gradient, `Trace.features`.
        keep_gradients: with a target, keep its gradient in every layer.
        keep_graph: keep the pass for other targets, `Trace.towards`, as long as the trace is kept.
        target: a class by index or name, or a function of the scores [classes], else of what is returned; its gradient is kept.
        proof_rows: queries per head that are recomputed and compared with the kernel's output; 0 for none.
        max_patches: most patches: of mode "fit", made smaller beyond it (None: 1024); of a given `size`, refused (None: 4096).
        max_attention_bytes: bound on attention and masks that have to be kept as matrices.
        pool: where its memory comes from; None is the pool of the process.
        structure: what is known of the model's attention already; None checks it.
        progress: told the share that is done, after each layer.
        cancelled: asked after each layer; True ends with `Cancelled`.

    Raises:
        CheckpointError, ImageError: the model or the picture cannot be read.
        CaptureError: no attention was seen, or none that can be traced, or its pictures would mislead; the message says why.
        ParameterError: the pixels, the layout or the target do not fit the model.
        Cancelled: `cancelled` said so.

    Example:
        >>> import vit_viz as vv
        >>> vv.trace("mini", "shapes").attention(5, heads=0, queries="class").shape
        torch.Size([1, 1, 261])
    """
    picture = as_picture(image_or_pixels)
    source = as_known_model(as_model(model_or_loaded), picture)
    target = class_index(target, labels_of(source)) if isinstance(target, str) else target
    module, pixels, crop_box, provenance, notes = _inputs(source, picture, mode, size, max_patches)
    gradients, features = (target is not None and kept for kept in (keep_gradients, keep_features))
    options = RecorderOptions(
        *(keep_values, keep_norms, gradients, proof_rows, max_attention_bytes, features, keep_graph)
    )
    arena = Arena(pool or shared_pool(), slots=expected_layers(module))
    try:
        watch = Watch(expected_layers(module), progress=progress, cancelled=cancelled)
        recorder, logits, stream = _recorded(module, pixels, arena, options, watch, keep_residual)
        recorded = _trace_of(module, pixels, recorder, logits, stream, arena, layout, target)
        recorded.known = structure or structure_of(module, pixels, recorded.layout, is_ours=recorder.is_ours)
        if callable(target) and recorded.logits is None and structure is None:
            recorded.of_target = check_of_target(module, pixels, recorded.layout, target)
    except BaseException:
        arena.release()
        raise
    shape, grid = (int(pixels.shape[-2]), int(pixels.shape[-1])), recorded.layout.grid
    patch_size = None if isinstance(source, nn.Module) else source.preprocess.patch_size
    patch = patch_size_of(module, grid, shape, declared=patch_size)
    recorded.crop_box = (crop_box or CropBox.of_pixels(*shape)).of_patches(grid, patch)
    if patch is None and (shape[0] % grid[0] or shape[1] % grid[1]):
        notes = (
            *notes,
            f"What {type(module).__name__} does with pixels beyond whole patches is not known: a map may lie beside them.",
        )
    recorded.provenance = provenance
    if recorded.place is not None and (words := recorded.place.words):
        recorded.provenance = provenance.with_parameters(scores=words)
        notes = (*notes, f"The scores are {words}.")
    recorded.problems += notes
    return recorded


def _recorded(
    module: nn.Module,
    pixels: Tensor,
    arena: Arena,
    options: RecorderOptions,
    watch: Watch,
    keep_residual: bool,
) -> tuple[Recorder, Tensor | None, ResidualStream | None]:
    """One forward pass, its logits [classes] and its residual stream, where that is kept."""
    stream = ResidualStream(module) if keep_residual else None

    def run(pixels: Tensor) -> tuple[Recorder, Tensor | None]:
        if is_capturing():
            recorder = Recorder(Arena(BufferPool(0), slots=expected_layers(module)), options)
        else:
            recorder = Recorder(arena, options, watch)
        logits = recorded_logits(module, pixels, recorder, stream, lambda logits: logits[0])
        check_count(module, pixels, recorder)
        if is_capturing():
            recorder.finish()
        return recorder, logits

    def copied(recorded: tuple[Recorder, Tensor | None]) -> tuple[Recorder, Tensor | None]:
        recorder, logits = recorded
        if recorder.arena is arena:
            return recorded
        watch.check()
        watch.advance(len(recorder.captures))
        return recorder.copied_to(arena), None if logits is None else logits.clone()

    if options.is_differentiated or keep_residual:
        return *run(pixels), stream
    return *graphed(module, pixels, run, copied, key=options), None


def _trace_of(
    module: nn.Module,
    pixels: Tensor,
    recorder: Recorder,
    logits: Tensor | None,
    stream: ResidualStream | None,
    arena: Arena,
    layout: TokenLayout | None,
    target: SupportsIndex | Callable[[Tensor], Tensor] | None,
) -> Trace:
    """The trace of one forward pass, without what is known from elsewhere."""
    remember_layers(module, len(recorder.captures))
    if target is not None and logits is None and not callable(target):
        raise no_scores(type(module).__name__, recorder.returned)
    if callable(target) and logits is not None and is_of_all(target, recorder.returned, len(pixels)):
        logits, recorder.place = None, ScoresPlace(exists=False)
    heads, _, tokens = recorder.shape
    layout = layout or _layout(module, pixels, tokens)
    layout.check_tokens(tokens)
    layers = recorder.layers(())
    made = Trace(
        layers,
        layout,
        logits=None if logits is None else logits.detach().float().clone(),
        residual=None if stream is None else stream.stacked(layers=len(layers), tokens=tokens),
        differences=recorder.proof(),
        tolerance=recorder.tolerance(),
        problems=_problems(layers),
        pooling=recorder.pooled(None, layout=layout),
        place=recorder.place,
        arena=arena,
    )
    if target is None:
        return made
    again = partial(_towards, module, pixels, recorder, logits)
    return replace(again(made, target), again=again if recorder.options.keep_graph else None)


def _towards(
    module: nn.Module,
    pixels: Tensor,
    recorder: Recorder,
    logits: Tensor | None,
    made: Trace,
    target: Target,
) -> Trace:
    """The trace of a pass with the gradient of a target."""
    layout, options = made.layout, recorder.options
    features: Features | CaptureError | None = None
    with differentiable(), undisturbed(module):  # a checkpointed block runs again for its gradient
        with recorder.stops or nullcontext():
            value = _target_of(logits, recorder.returned, target)
        outputs = _outputs_of(value, logits, target)
        pool = None if recorder.pooling is None else recorder.pooling[1]
        first = 0 if options.gradients else len(recorder.captures) - 1
        inputs = [capture.differentiable for capture in recorder.captures[first:]]
        seen = recorder.tensors
        read = None if seen is None else seen.read_by(recorder.captures[-1].attended, inputs, layout)
        at = read if isinstance(read, Tensor) else None
        *of_layers, pooling_gradient, slope = gradients(
            value, [*inputs, pool, at], keep_graph=options.keep_graph
        )
        slopes = dict(enumerate(of_layers, first))
        features = Features.of(read, slope, layout) if isinstance(read, Tensor) else read
    without = _without(module, pixels, target, recorder.shape[0], logits is not None)
    return replace(
        made,
        layers=recorder.layers(list(slopes.values()) if options.gradients else ()),
        pooling=recorder.pooled(pooling_gradient, layout=layout),
        features=features,
        outputs=outputs,
        unreached=unreached(slopes, recorder.stops, value, without),
    )


def _inputs(
    source: nn.Module | Model,
    picture: Image.Image | Path | Tensor,
    mode: Mode,
    size: int,
    max_patches: int | None,
) -> tuple[nn.Module, Tensor, CropBox | None, Provenance, tuple[str, ...]]:
    """The module, its pixels on its device and in its precision, where they came from, and a sentence on another mode, if so."""
    module = unwrapped_module(source if isinstance(source, nn.Module) else source.model)
    provenance = (
        Provenance(model=type(module).__name__) if isinstance(source, nn.Module) else source.provenance
    )
    if isinstance(picture, Tensor):
        return module, as_pixels(picture, module), None, provenance, ()
    assert not isinstance(source, nn.Module)  # see `as_known_model`
    image = decode(picture)
    prepared = source.preprocess.apply(image, mode=mode, size=size, max_patches=max_patches)
    provenance = replace(provenance, image=image_hash(image), preprocess=prepared.words)
    notes = (f"The photo is given {prepared.note}.",) if prepared.note else ()
    return module, as_pixels(prepared.pixels, module), prepared.crop_box, provenance, notes


def recorded_logits(
    module: nn.Module,
    pixels: Tensor,
    recorder: Recorder,
    stream: ResidualStream | None,
    read: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """What is read of the logits [images, classes] of a pass that a recorder sees, under the edits around it.

    The module stays as it is. None where it returns something else than scores of classes.
    """
    edits = surrounding_edits(images=len(pixels))
    with ExitStack() as stack:
        if recorder.options.is_differentiated:
            stack.enter_context(differentiable())
        else:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.no_grad())
        parts = stack.enter_context(undisturbed(module))
        stack.enter_context(suspended())
        stack.enter_context(stream or nullcontext())
        stack.enter_context(Interception(recorder, edits).around(module, parts))
        keeps_none = recorder.is_ours or getattr(module, "keeps_no_gradient", False)
        if recorder.options.is_differentiated and not keeps_none and not are_compiled(parts):
            recorder.stops = GradientStops(module, lambda: len(recorder.captures))
            stack.enter_context(recorder.stops.around())
        if recorder.options.features:
            source = pixels.detach().clone().requires_grad_()
            recorder.tensors = stack.enter_context(TensorsSeen(recorder.captures, source))
            pixels = source.clone()  # which a module may write to
        output = answer_of(module, pixels)
        recorder.place = place_of_scores(output, len(pixels))
        recorder.returned = output if recorder.options.is_differentiated else None
        logits = scores_of(output, len(pixels)) if recorder.place.exists else None
        # here, where autograd is as the recorder needs it
        wanted = None if logits is None else read(logits)
    if edits is not None:
        edits.check_layers(len(recorder.captures))
    return wanted


def _layout(module: nn.Module, pixels: Tensor, tokens: int) -> TokenLayout:
    """The layout that attributes of the module or of its model determine, else a ParameterError with one that tokens respond to."""
    height, width = pixels.shape[-2:]
    infer = partial(inferred_layout, size=(height, width), tokens=tokens)
    layout = infer(module) or answer_within(module, pixels, infer)
    if layout is not None:
        return layout
    measured = find_layout(module, pixels, tokens)
    name = type(module).__name__
    if measured is None:
        raise ParameterError(
            f"It is not known which of the {tokens} tokens that {name} attends over stands for which patch, and changing pixels "
            "did not show it; if each patch has a token, row by row, pass "
            "layout=TokenLayout(grid=(rows, cols), prefix=(...))."
        )
    raise ParameterError(
        f"The token layout of {name} is not known: its layers attend over {tokens} tokens, which respond to patches as in "
        f"layout={as_source(_named_as_read(module, pixels, plain_layout(*measured)))}; pass that, with the right names."
    )


def _named_as_read(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> TokenLayout:
    """The layout of the same tokens that says what the answer is read from, as far as a gradient tells."""

    def mixed(logits: Tensor) -> Tensor:  # every output counts, and none takes another away
        generator = torch.Generator().manual_seed(0)
        return (logits * torch.rand(logits.shape, generator=generator).to(logits)).sum()

    try:
        recorded = trace(module, pixels, layout=layout, target=mixed, proof_rows=0, structure=SOUND)
        tokens = recorded.tokens_of_target()
    except (VitVizError, RuntimeError):  # it has no scores of classes, or no gradient
        return layout
    pool = recorded.pooling_gradient  # none where an attention that pools runs beside the answer
    read = TokensRead((tuple(tokens),), "evenly" if pool is None or not pool.any() else "by attention")
    return layout if not tokens or read.is_as_in(layout) else layout_that_reads(layout, read) or layout


def check_count(module: nn.Module, pixels: Tensor, recorder: Recorder) -> None:
    """Refuse a pass without attention, and one that saw a block of our own model twice or not at all."""
    count = len(recorder.captures)
    if isinstance(module, VisionTransformer) and count != module.config.depth:
        raise CaptureError(
            f"This model has {module.config.depth} layers, but {count} attention calls were seen."
        )
    if count == 0:
        other = "" if recorder.has_seen or is_capturing() else _named_attention(module, pixels)
        raise CaptureError(
            f"No self-attention was seen in {type(module).__name__}: expected calls of scaled_dot_product_attention, "
            f"flex_attention, nn.MultiheadAttention, or a softmax that is square in its last two axes; seen: {recorder.seen()}. "
            + (
                f"Its calls of {other} are not seen: put scaled_dot_product_attention in their place."
                if other
                else "Attention without a softmax, or to more or fewer keys than queries (extra keys as of add_bias_kv, null keys, "
                "pooled keys), is not drawn."
            )
        )


def _named_attention(module: nn.Module, pixels: Tensor) -> str:
    """The first function with attention in its name that a pass calls, such as one of xformers or flash_attn; "" for none."""
    names: list[str] = []

    def note(frame: FrameType, event: str, function: Any) -> None:
        owner, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        if event == "c_call":
            owner, name = str(getattr(function, "__module__", None) or "torch"), function.__name__
        elif event != "call" or owner.startswith("vit_viz."):
            return
        elif owner == "torch._ops" and name == "__call__":  # of an operator
            owner, name = "torch.ops", str(frame.f_locals.get("self"))
        elif frame.f_code.co_varnames[:1] == ("self",):  # a method, such as that of a module
            return
        if _ATTENTION.search(name):
            names.append(f"{owner}.{name}")

    before = sys.getprofile()
    try:
        with undisturbed_pass(module):
            sys.setprofile(note)
            module(pixels)
    finally:
        sys.setprofile(before)
    return next(iter(names), "")


def _target_of(scores: Tensor | None, returned: Any, target: Target) -> Tensor:
    """The number that is differentiated: of the scores [classes], or of what the model returned where it holds none."""
    if callable(target):
        return number_from(target, returned if scores is None else scores)
    assert scores is not None  # see `_trace_of`
    return scores[checked_index("Output", as_index("A class", target), len(scores))]


def _outputs_of(value: Tensor, scores: Tensor | None, target: Target) -> tuple[int, ...] | None:
    """The outputs of the model that the target changes with; None where that is not known."""
    if not callable(target):
        return (as_index("A class", target),)
    if scores is None or not (scores.requires_grad and value.requires_grad):
        return None
    (slope,) = torch.autograd.grad(value, scores, retain_graph=True, allow_unused=True)
    return () if slope is None else tuple(slope.nonzero().flatten().tolist())


def _without(
    module: nn.Module, pixels: Tensor, target: Target, heads: int, has_scores: bool
) -> Callable[[Sequence[int]], Tensor]:
    """From layers to the target of a pass in which no head of them says anything."""

    def target_without(layers: Sequence[int]) -> Tensor:
        with (
            edit(heads={(layer, head): 0.0 for layer in layers for head in range(heads)}),
            undisturbed(module),
            torch.inference_mode(False),
            torch.no_grad(),
        ):
            returned = answer_of(module, pixels)
            scores = scores_of(returned, len(pixels)) if has_scores else None
            return _target_of(None if scores is None else scores[0], returned, target)

    return target_without


def _problems(layers: Sequence[LayerAttention]) -> tuple[str, ...]:
    """What is wrong with written-out attention: rows that do not sum to 1 over the keys, nor see any."""
    problems = []
    for i, weights in enumerate(layer.weights for layer in layers):
        if weights is None:
            continue
        with exact():
            sums = [weights.sum(axis) for axis in (2, 1, 0)]
            off = [float(torch.where(each == 0, 0, each - 1).abs().max()) for each in sums]
        if math.isfinite(off[0]) and off[0] > 1e-2:
            axis = "the queries" if off[1] <= 1e-2 else "the heads" if off[2] <= 1e-2 else "no axis"
            problems.append(
                f"Layer {i}: softmax over the wrong axis: the weights sum to 1 over {axis}, not over the keys."
            )
    return tuple(problems)
