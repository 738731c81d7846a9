"""What an answer is made of: an output as an exact sum of what embedding, heads, MLPs and biases gave to it directly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np

from vit_viz.analyses.direct_parts import direct_parts
from vit_viz.analyses.job import Job
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.output_parts import NOTE, Decomposition
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import Place, Question, Words
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.capture import Trace, are_ours, is_edited, surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.images import Mode
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of
from vit_viz.outputs import output_name

Maps = Literal["heads", "layers"]

_POOL_NOTE = "The model reads its answer by a learned pool, which is its last layer: the layers before act through the pool."
_TOLERANCE = 1e-3  # of the largest part: more than rounding explains in single precision


def decomposition(
    loaded: ModelLike,
    image: Picture | Tensor,
    *,
    target: TargetLike = None,
    maps: Maps = "heads",
    mode: Mode = "fit",
    size: int = 0,
) -> Decomposition:
    """What an output is made of: the exact sum of what embedding, heads, MLPs and biases gave to it directly.

    The token that the output is read from is a sum, z = e + sum_l (sum_h sum_i A_lh[o, i] v_lhi W_O,lh + b_O,l + mlp_l). With the
    scale s of the last norm held at that of this photo, the norm g (z - mean z) / s + b is linear in z, and so is the output: of
    each (layer, head, source token), MLP, the embedding and the biases one term, together the number that the model returned.
    LayerScale multiplies inside. A mean over patches sums over tokens first, each with the scale of its own norm. A learned pool is
    the last layer: its heads have the terms, and what layers before it do, they do through the pool. A bias of the values belongs
    to the heads, that of an MLP to the MLP.

    Args:
        target: a class by its index or name, a pair (class, other class) for the lead of one over the other, or a similarity; None
            means the first class, or the own embedding.
        maps: a map for each head, or for all heads of a layer together.
        size: short side of the model's input in patches; 0 is the checkpoint's own.

    Returns:
        Parts in units of the output, signed. Inside `vit_viz.edit` those of the edited model, exactly.

    Raises:
        ParameterError: the model is not ours (of a post-norm model there is no such sum), or the target is none that is a sum.
        CaptureError: the parts do not sum to the output, as where a hook changes what modules return.

    Source: Gandelsman, Efros & Steinhardt 2024, arXiv:2310.05916, section 3; Elhage et al. 2021, "A mathematical framework for
    transformer circuits" (the direct path). The mean that a LayerNorm subtracts is linear, so each part is freed of its own. Not in
    it: what a part does through later layers, for which see `ablate_heads`.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> parts = vv.decomposition("mini", sample("shapes"), target="lion")
        >>> abs(sum(parts.parts.values()) - parts.output) < 1e-5
        True
    """
    subject = PreparedImage.of(loaded, image, mode=mode, size=size)
    _checked_model(subject)
    return decomposition_of(subject, subject.trace(keep_residual=True), target=target, maps=maps)


def decomposition_of(
    subject: PreparedImage, trace: Trace, *, target: TargetLike = None, maps: Maps = "heads"
) -> Decomposition:
    """As `decomposition`, of a trace that kept the residual stream, made under the edits that `subject.turn` stands for."""
    if maps not in get_args(Maps):
        raise ParameterError(f"Maps are of heads or of layers, not of {maps!r}.")
    model = _checked_model(subject)
    if trace.residual is None:
        raise CaptureError(
            "A decomposition needs a trace that kept the residual stream (keep_residual=True)."
        )
    trace.wait()
    device = "cpu" if trace.device.type == "mps" else trace.device  # which has no double precision
    outputs = subject.logits(trace).to(device).double()
    fixed = subject.target(target).resolved(outputs)
    with torch.no_grad(), subject.turn(), undisturbed(model), exact():
        edits = surrounding_edits(images=1) if is_edited() else None
        parts = direct_parts(model, trace, _weights(fixed, outputs), edits)
    terms = parts.terms.sum(1, keepdim=True) if maps == "layers" else parts.terms
    rest = np.array(list(parts.rest.values()))
    total = float(parts.terms.sum()) + float(parts.mlps.sum()) + float(rest.sum())
    decomposed = Decomposition(
        terms.cpu().numpy(),
        parts.terms.sum(-1).cpu().numpy(),
        parts.mlps.cpu().numpy(),
        rest,
        tuple(parts.rest),
        total,
        float(fixed(outputs)),
        parts.layers,
        trace.layout.grid,
        trace.layout.prefix,
        _about(fixed, subject.labels, is_negative=total < 0),
        fixed.describe(subject.labels),
        trace.provenance.with_parameters(method="decomposition", target=fixed.describe(), maps=maps),
        trace.crop_box,
        f"{_POOL_NOTE} {NOTE}" if parts.layers == ("pool",) else NOTE,
    )
    tolerance = max(_TOLERANCE, 8 * torch.finfo(subject.dtype).eps)
    if not abs(total - decomposed.output) <= tolerance * max(map(abs, decomposed.parts.values())):
        raise CaptureError(
            f"The parts sum to {total:.6g}, but the model returned {decomposed.output:.6g}: something other than its modules, "
            "such as a hook, changes what they return."
        )
    return decomposed


# --- parts


def _checked_model(subject: PreparedImage) -> VisionTransformer:
    model = subject.transformer("A sum of direct parts")
    if not are_ours(submodules_of(model)):
        raise ParameterError(
            "A sum of direct parts is known of models that are made of vit_viz's own classes alone; this one has parts of others."
        )
    return model


def _weights(target: Target, outputs: Tensor) -> Tensor:
    """The target as weights of the outputs, [outputs]; of a cosine with the length of the output held.

    Raises:
        ParameterError: it is no sum.
    """
    weights = torch.zeros_like(outputs)
    if target.embedding is not None:
        weights = target.embedding.to(outputs)
        return weights if target.kind == "own embedding" else weights / (weights.norm() * outputs.norm())
    if target.kind == "probability":
        raise ParameterError(
            "A probability is no sum of parts: ask for the logit of the class, or for a pair of classes."
        )
    if target.index is None:
        raise ParameterError("A function is no sum of parts: ask for a class, or for a pair of classes.")
    weights[target.index] = 1
    if target.other is not None:
        weights[target.other] -= 1
    return weights


def _about(target: Target, labels: Labels | None, *, is_negative: bool) -> str:
    """What is explained, in a few words; of a number below 0, what makes it so."""

    def named(index: int | None) -> str:
        assert index is not None
        return output_name(index, labels, target.noun)

    if target.kind == "difference":
        first, second = (target.other, target.index) if is_negative else (target.index, target.other)
        return f"the lead of {named(first)} over {named(second)}"
    what = named(target.index) if target.kind == "logit" else target.describe(labels)
    return f"what speaks against {what}" if is_negative else what


@dataclass(frozen=True)
class DecompositionOptions(Options):
    """Which maps are kept beside the parts."""

    maps: Annotated[Maps, Option("maps", "Of each head, or of all heads of a layer.")] = "heads"


def _decomposition(job: Job, options: DecompositionOptions) -> Decomposition:
    subject = job.image
    _checked_model(subject)  # before anything is recorded of it
    return decomposition_of(subject, job.tokens, target=job.target, maps=options.maps)


DECOMPOSITION = Question(
    name="decomposition",
    words=Words(
        label="What the answer is made of",
        shows="what heads, MLPs and the rest gave to the answer: an exact sum, with maps.",
        hides="what a part does through later layers: a head that gave nothing itself can still matter, see the causal effect of "
        "heads.",
        formula=r"$y = b + w \cdot e + \sum_{l, h, i} A_{l h}[o, i]\, v_{l h i} W_{O, l h} \cdot w + \sum_l w \cdot m_l$; $e$: the "
        r"embedding; $m_l$: what MLP $l$ adds; $o$: the token that the output is read from; $w$: the direction in which it is "
        r"read, with the scale of the last norm held; $b$: biases",
        source="Gandelsman, Efros & Steinhardt 2024, arXiv:2310.05916",
    ),
    options=DecompositionOptions,
    run=_decomposition,
    reads="tokens",
    place=Place("explain", {"explain_face": "parts"}, {"maps": ""}),
    takes_target=True,
)
