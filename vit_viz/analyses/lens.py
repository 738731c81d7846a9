"""What each patch would say, layer by layer, if the model's output were read from it: a probe, not a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import Place, asks
from vit_viz.analyses.targets import TargetLike
from vit_viz.analyses.tokens import patches_of, state_names, token_maps, token_states
from vit_viz.answer import Answer, axes
from vit_viz.capture import are_ours
from vit_viz.capture.forward import answer_of, undisturbed
from vit_viz.capture.last_block import Blocks
from vit_viz.capture.returned import scores_of
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.images import Mode
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of
from vit_viz.outputs import UNITS, output_kind, output_name, shown
from vit_viz.results import TokenMaps

_SEQUENCE_BYTES = 16 * 2**20  # of sequences of one token each that are read together

PROBE = (
    "A probe: the head was trained on the pooled output after the last layer only; what it says of one patch, or of an earlier "
    "layer, is an extrapolation."
)


@dataclass(frozen=True, eq=False, repr=False)
class Lens(Answer):
    """What the model's head says of each token in each state.

    Args:
        maps: the probability of the chosen class, the chosen value, or the cosine with the image's own embedding,
            [states, rows, cols].
        top: the class that comes first at each patch, [states, rows, cols]; None where the model has no classes.
        top_probability: its probability, likewise.
        words: of the classes in `top`, by index.
    """

    maps: TokenMaps
    top: NDArray[np.int64] | None = None
    top_probability: NDArray[np.float32] | None = None
    words: Mapping[int, str] = field(default_factory=dict)

    AXES = axes(top=("state", "row", "col"), top_probability=("state", "row", "col"))
    DRAWN = ("maps",)


def logit_lens(
    loaded: ModelLike,
    image: Picture | Tensor,
    *,
    target: TargetLike = None,
    mode: Mode = "fit",
    size: int = 0,
) -> Lens:
    """What the model would answer if each token of each layer were all that its output is read from.

    softmax(head(norm(x))) of every token x of the residual stream; with attention pooling the pool sees this token alone, so that
    its value path is what is read. The sigmoid takes the place of the softmax where each class has its own; values are shown as
    they are. Models without classes: cosine of the same output with the output of the whole image. Any module answers itself, with
    a sequence of this one token in the place of what its last block returns.

    Args:
        target: the class that the maps are of; None means the first class of the whole image.
        size: short side of the model's input in patches; 0 is the checkpoint's own.

    Raises:
        ParameterError: there is no such class.
        CaptureError: where the layers of a module begin and end was not found, or its answer reads more than what the last one
            returns.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens"; Vilas et al. 2023, arXiv:2310.18969 (ViTs).

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> vv.logit_lens("mini", sample("shapes")).top.shape  # states, rows, cols
        (7, 16, 16)
    """
    subject = PreparedImage.of(loaded, image, mode=mode, size=size)
    return lens_of(subject, subject.trace(keep_residual=True), target=target)


def lens_of(subject: PreparedImage, trace: Trace, *, target: TargetLike = None) -> Lens:
    """As `logit_lens`, of a trace that kept the residual stream."""
    states, said, whole = token_states(trace), _reader(subject, trace), subject.logits(trace)
    if not subject.has_classes:
        values = [F.cosine_similarity(said(one), whole[None], dim=-1) for one in states]
        return Lens(
            _maps(trace, values, "cosine with the image's own embedding", (-1.0, 1.0), "own embedding")
        )
    fixed = subject.target(target).resolved(whole)
    if fixed.index is None or fixed.other is not None:
        raise ParameterError("The lens shows one class: pass its index or its name.")
    if fixed.output == "value":
        values = [said(one)[:, fixed.index] for one in states]
        return Lens(_maps(trace, values, UNITS["value"], (-math.inf, math.inf), fixed.describe()))
    chosen, best, sure = [], [], []
    for one in states:  # one state at a time: the scores of all classes are the largest numbers here
        scores = shown(said(one), fixed.output)  # [tokens, classes]
        chosen.append(scores[:, fixed.index])
        highest = scores.max(-1)
        best.append(highest.indices)
        sure.append(highest.values)
    top = to_numpy(patches_of(trace, torch.stack(best)))
    labels = subject.labels
    words = {int(i): output_name(int(i), labels, subject.noun) for i in np.unique(top)}
    return Lens(
        _maps(trace, chosen, UNITS[output_kind(fixed.output, whole.numel())], (0.0, 1.0), fixed.describe()),
        top,
        to_numpy(patches_of(trace, torch.stack(sure))),
        words,
    )


def read_alone(model: VisionTransformer, tokens: Tensor) -> Tensor:
    """The model's outputs [tokens, outputs] if each of these tokens [tokens, dim] were all that they are read from."""
    x, config = model.norm(tokens), model.config
    if config.dist_head:
        x = model.fc_norm(x)
        both: Tensor = (model.head(x) + model.head_dist(x)) / 2
        return both
    if model.attn_pool is not None:
        x = model.attn_pool(x[:, None])  # a pool over one token has weight 1
    else:  # class tokens side by side, or one and the mean
        x = torch.cat([x] * (2 if config.pool_concat else len(config.class_read)), dim=-1)
    outputs: Tensor = model.head(model.fc_norm(x))
    return outputs


# --- parts


def _reader(subject: PreparedImage, trace: Trace) -> Callable[[Tensor], Tensor]:
    """What makes outputs [tokens, outputs] of tokens [tokens, dim] that are read alone."""
    model = subject.model
    if isinstance(model, VisionTransformer) and are_ours(submodules_of(model)):

        def by_parts(tokens: Tensor) -> Tensor:
            with torch.no_grad(), subject.turn(), undisturbed(model):
                return read_alone(model, tokens.to(subject.dtype)).float()

        return by_parts
    blocks = Blocks(model)
    blocks.check_layers(trace.num_layers)
    trace.check_layers_follow()
    with blocks.apart(), torch.no_grad():
        answer = subject.outputs(subject.pixels)

    def outputs(state: Tensor, images: int) -> Tensor:
        pixels = subject.pixels.to(subject.dtype)
        with torch.no_grad(), subject.turn(), undisturbed(model), blocks.answering_from(state):
            scores = None
            with suppress(CaptureError):  # of one image's pixels, as its patches are embedded for nothing
                scores = scores_of(answer_of(model, pixels), images)
            if scores is None or scores.shape != (images, answer.shape[1]):
                scores = scores_of(answer_of(model, pixels.expand(images, -1, -1, -1)), images)
        assert scores is not None  # as in `answer`
        return scores.float()

    blocks.check_answer(outputs(blocks.states[-1], 1), answer)
    count = max(1, _SEQUENCE_BYTES // (4 * blocks.states[-1].numel()))

    def by_sequences(tokens: Tensor) -> Tensor:
        return torch.cat([outputs(blocks.sequences(part), len(part)) for part in torch.split(tokens, count)])

    return by_sequences


def _maps(
    trace: Trace, values: list[Tensor], unit: str, value_range: tuple[float, float], target: str
) -> TokenMaps:
    return token_maps(
        trace,
        torch.stack(values),
        state_names(trace),
        unit=unit,
        value_range=value_range,
        method="logit lens",
        signed=value_range[0] < 0,
        note=PROBE,
        target=target,
    )


LOGIT_LENS = asks(
    lambda job, target: lens_of(job.image, job.tokens, target=target),
    name="logit_lens",
    label="Logit lens",
    also_called="probing, early exit, patch classification, per-patch prediction",
    shows="what the head would say of each patch after every layer: a probe.",
    hides="what the model uses: the head was trained on the pooled output of the last layer only.",
    formula=r"$\mathrm{softmax}(\mathrm{head}(\mathrm{norm}(x)))$, or the sigmoid of each class, or values as they are",
    source="Vilas et al. 2023, arXiv:2310.18969",
    reads="image",
    place=Place("tokens", {"token_measure": "lens"}),
    cost="pass",
    forwards=1,
)
