"""Taking patches away: painted over in the input, or truly removed from the sequence; and what the model says then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import PreparedImage, in_batches, patch_mask
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer, Table, axes
from vit_viz.capture import are_ours, check_removal, edit, unedited
from vit_viz.capture.noise import noise_like
from vit_viz.errors import ParameterError
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model.submodules import submodules_of
from vit_viz.outputs import UNITS, noun_of, output_kind, output_name, shown
from vit_viz.progress import Watch
from vit_viz.results import Ranking
from vit_viz.sentences import formatted, percent

MOST_PATCHES = 4096
"""That are named one by one."""

Baseline = Literal["mean", "blur", "gray", "black"]

BASELINES: dict[Baseline, str] = {
    "mean": "the preprocessing mean (0 in the model's input)",
    "blur": "a Gaussian blur of the image with a standard deviation of one patch",
    "gray": "mid gray",
    "black": "black",
}


@dataclass(frozen=True, eq=False, repr=False)
class WithoutPatches(Answer):
    """What the model says when patches are gone.

    Args:
        top: the class that is explained, with the one that it is set against, the first classes of the whole photo, then the first
            ones now; without classes, the similarity to the whole photo's embedding.
        before: scores of the same names with all patches there.
        share: of the patches that is gone.
    """

    top: Ranking
    before: NDArray[np.float32]
    share: float

    AXES = axes(before=("name",))
    DRAWN = ("top",)

    def to_table(self) -> Table:
        """Name, index where there is one, score with all patches, and score without some."""
        names, indices = self.top.names, self.top.indices or ("",) * len(self.top.names)
        rows = zip(names, indices, self.before, self.top.scores, strict=True)
        return Table(("name", "index", "before", "now"), rows)

    def to_words(self) -> str:
        """What becomes of the class that is explained, and what comes first; of values nothing does. "" without classes."""
        if not self.top.indices:
            return ""
        is_value = self.top.unit == UNITS["value"]
        if not self.share:
            return f"With all patches: {self.top.names[0]} {_score_in_words(self.top.scores[0], is_value)}."
        change = change_in_words(self.top.names, self.before, self.top.scores, is_value=is_value)
        return f"Without {percent(self.share)} of the photo, {change}."


def change_in_words(
    names: Sequence[str], before: NDArray[np.float32], after: NDArray[np.float32], *, is_value: bool
) -> str:
    """What becomes of the first of some classes, and which comes first now: "lion falls from 18% to 3%; tower comes first now"."""
    old, new = (_score_in_words(scores[0], is_value) for scores in (before, after))
    way = "falls" if after[0] < before[0] else "rises"
    change = f"{names[0]} " + (f"stays at {new}" if old == new else f"{way} from {old} to {new}")
    came_first, first = before.argmax() == 0, int(after.argmax())
    if is_value:
        return change
    if first == 0:
        return change + (" and still comes first" if came_first else " and comes first")
    return f"{change}; {names[first]} comes first" + (" now" if came_first else "")


def _score_in_words(score: float, is_value: bool) -> str:
    return formatted(score, ".3g") if is_value else percent(score)


def baseline_pixels(subject: PreparedImage, baseline: Baseline) -> Tensor:
    """What stands in for patches that are painted over, in the model's input, [1, channels, height, width]."""
    if baseline not in BASELINES:
        raise ParameterError(f"A baseline is one of {', '.join(BASELINES)}, not {baseline!r}.")
    if baseline == "mean":
        return torch.zeros_like(subject.pixels)
    if baseline == "blur":
        return _blurred(subject.pixels, subject.patch_size)
    if subject.preprocess is None:
        raise ParameterError(
            f"The baseline {baseline!r} needs the preprocessing of the model; use mean or blur."
        )
    mean, std = (
        torch.tensor(values, device=subject.pixels.device)[None, :, None, None]
        for values in (subject.preprocess.mean, subject.preprocess.std)
    )
    level = 0.5 if baseline == "gray" else 0.0
    return ((level - mean) / std).expand_as(subject.pixels)


def painted_scores(
    subject: PreparedImage,
    target: Target,
    gone: NDArray[np.bool_],
    other: Tensor,
    *,
    watch: Watch | None = None,
) -> NDArray[np.float64]:
    """The target, [sets], for each set of patches, [sets, patches], that shows `other` instead of the image."""
    return target(painted_outputs(subject, gone, other, watch=watch)).cpu().double().numpy()


def painted_outputs(
    subject: PreparedImage, gone: NDArray[np.bool_], other: Tensor, *, watch: Watch | None = None
) -> Tensor:
    """The same before a target is read from it: what the model says, [sets, outputs]."""
    sets = torch.from_numpy(gone)

    def run(part: slice) -> Tensor:
        painted = torch.where(_pixel_mask(subject, sets[part]), other, subject.pixels)
        return subject.batch_scores(painted, lambda outputs: outputs, watch=watch)

    return in_batches(run, len(sets))


def removed_scores(
    subject: PreparedImage, target: Target, gone: NDArray[np.bool_], *, watch: Watch | None = None
) -> NDArray[np.float64]:
    """The target, [sets], for each set of patches, [sets, patches], taken out of the sequence; the others keep their positions."""
    sets = torch.from_numpy(gone)
    scores = in_batches(lambda part: target(_without(subject, sets[part], watch)), len(sets))
    return scores.cpu().double().numpy()


def outputs_without(subject: PreparedImage, patches: Sequence[tuple[int, int]]) -> Tensor:
    """What the model says when these patches (row, col) are absent: outputs [classes].

    Their keys are masked in every layer and they are left out of the pooling, which equals a sequence without these tokens in
    which the others keep their positions. Before its first removal, a module that is not our own is asked whether it does.
    """
    gone = torch.zeros(1, subject.layout.num_patches, dtype=torch.bool)
    for patch in patches:
        gone[0, subject.layout.token(patch) - subject.layout.patch_slice.start] = True
    return _without(subject, gone, None)[0]


def _without(subject: PreparedImage, gone: Tensor, watch: Watch | None) -> Tensor:
    """Outputs [sets, outputs] with the keys of some patches masked everywhere; gone: [sets, patches]."""
    if watch is not None:
        watch.check()
    if subject.layout.pooling != "class" and gone.all(1).any():
        raise ParameterError("Removing every patch leaves nothing to look at: keep at least one.")
    _check_exact(subject)
    tokens = _tokens(subject, gone)
    with torch.no_grad(), edit(mask_keys=tokens):
        outputs = subject.outputs(subject.pixels.expand(len(gone), -1, -1, -1))
    if watch is not None:
        watch.advance(len(gone))
    return outputs


def _tokens(subject: PreparedImage, gone: Tensor) -> Tensor:
    """[sets, patches] -> [sets, tokens]; tokens that are no patches stay."""
    return F.pad(gone, (subject.layout.num_prefix, subject.layout.num_suffix))


def _check_exact(subject: PreparedImage) -> None:
    """All patches but one are removed from a module that is not our own, and the answer is compared with tokens truly absent."""
    if are_ours(submodules_of(subject.model)) or subject.layout.num_patches < 2:
        return
    gone = (torch.arange(subject.layout.num_patches) != subject.layout.num_patches // 3)[None]
    photo = noise_like(subject.pixels, 0)
    changed = torch.where(_pixel_mask(subject, gone), noise_like(subject.pixels, 1), photo)
    with subject.turn(), unedited():
        check_removal(subject.model, photo, changed, _tokens(subject, gone)[0])


def _pixel_mask(subject: PreparedImage, gone: Tensor) -> Tensor:
    """[sets, patches] -> Boolean [sets, 1, height, width] in pixels of the input."""
    return gone.to(subject.pixels.device)[:, patch_mask(subject)[0]]


def _blurred(pixels: Tensor, sigma: tuple[int, int]) -> Tensor:
    """Gaussian blur per axis; the border repeats its last pixel."""
    channels = pixels.shape[1]
    for axis, width in ((2, sigma[0]), (3, sigma[1])):
        radius = math.ceil(3 * width)
        offset = torch.arange(-radius, radius + 1, dtype=pixels.dtype, device=pixels.device)
        kernel = torch.exp(-(offset**2) / (2 * width**2))
        shape = (channels, 1, -1, 1) if axis == 2 else (channels, 1, 1, -1)
        weight = (kernel / kernel.sum()).expand(channels, -1).reshape(shape)
        padding = (0, 0, radius, radius) if axis == 2 else (radius, radius, 0, 0)
        pixels = F.conv2d(F.pad(pixels, padding, mode="replicate"), weight, groups=channels)
    return pixels


def _without_patches(
    job: Job,
    *,
    target: TargetLike,
    gone: Annotated[
        str,
        Option(
            "patches",
            "The patches row,col that are taken away, with semicolons between them, as in 3,4;3,5.",
            pattern=rf"(\d{{1,4}},\d{{1,4}}(;\d{{1,4}},\d{{1,4}}){{0,{MOST_PATCHES - 1}}})?",
        ),
    ] = "",
) -> WithoutPatches:
    """What the model says of the image without some patches, truly removed, beside what it said of the whole."""
    subject, labels = job.image, job.loaded.labels
    pairs = (patch.split(",") for patch in dict.fromkeys(gone.split(";") if gone else ()))
    patches = [(int(row), int(col)) for row, col in pairs]
    outputs = outputs_without(subject, patches).float().cpu()
    share = len(patches) / subject.layout.num_patches
    if not subject.has_classes:
        words = "similarity to the whole photo"
        now = float(F.cosine_similarity(outputs, job.outputs, dim=0))
        top = Ranking(
            (words,), np.array([now], np.float32), "cosine similarity", "patches removed", subject.provenance
        )
        return WithoutPatches(top, np.ones(1, np.float32), share)
    kind = output_kind(subject.output, outputs.numel())
    before, after = shown(job.outputs, kind), shown(outputs, kind)
    wanted = subject.target(target).resolved(job.outputs)
    explained = [index for index in (wanted.index, wanted.other) if index is not None]
    first = (
        scores.topk(min(count, scores.numel())).indices.tolist()
        for scores, count in ((before, 3), (after, 5))
    )
    chosen = tuple(dict.fromkeys([*explained, *chain.from_iterable(first)]))
    name = partial(output_name, labels=labels, noun=noun_of(kind))
    top = Ranking(
        tuple(map(name, chosen)),
        after[list(chosen)].numpy(),
        UNITS[kind],
        "patches removed",
        subject.provenance,
        chosen,
    )
    return WithoutPatches(top, before[list(chosen)].numpy(), share)


WITHOUT_PATCHES = asks(
    _without_patches,
    label="Without patches",
    also_called="remove patches, drop patches, delete patches, mask patches, erase, counterfactual",
    shows="what the model says when patches are removed from the sequence, beside what it says of the whole photo.",
    hides="whether the patches that are left were enough: a model that never saw such a photo may say anything.",
    formula=r"$\mathrm{softmax}(z)$ of the tokens without those of the patches, which keep their positions",
    source="their keys are masked in every layer",
    reads="image",
    place=Place("explain", options={"gone": ""}),
    cost="pass",
    forwards=1,
)
