"""What an answer is made of: an output as an exact sum of what embedding, heads, MLPs and biases gave to it directly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.direct_parts import direct_parts, recorded_parts
from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer, Provenance, Row, Table, axes, checked_array
from vit_viz.capture import Trace, are_ours, is_edited, surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import CropBox, Grid, place_words
from vit_viz.images import Mode
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import SentenceHead, VisionTransformer
from vit_viz.model.submodules import submodules_of
from vit_viz.outputs import output_name
from vit_viz.results import PatchMap
from vit_viz.sentences import formatted

NOTE = (
    "Direct parts, with the scale of the last norm held at that of this photo: what a part does through later layers is not "
    "among them."
)


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Answer):
    """An output as a sum: `heads`, `mlps` and `rest` together are `total`.

    Args:
        terms: what each head took from each token, [layers, heads, tokens], prefix tokens first and suffix tokens last;
            [layers, 1, tokens] for all heads of a layer together.
        heads: of each head, [layers, heads]: the sum of its terms.
        mlps: of each MLP, [layers]: all that a block adds beside its attention.
        rest: what neither heads nor MLPs gave, in the order of `rest_names`.
        total: all parts together.
        output: the number that the model returned; it differs from `total` by rounding alone.
        layers: names of the rows: "0", "1", ...; "pool" for a learned pool, which is the last layer.
        grid: the patches as (rows, cols).
        prefix: names of the tokens before them.
        about: what is explained, for titles: "lion".
        unit: the same in full: "logit of class 291 (lion)".
        crop_box: where the patches lie in the original image.
        finding: what stands out, in one sentence; it follows from the numbers, whatever is given.
        suffix: names of the tokens after the patches.
    """

    terms: NDArray[np.float32]
    heads: NDArray[np.float32]
    mlps: NDArray[np.float32]
    rest: NDArray[np.float32]
    rest_names: tuple[str, ...]
    total: float
    output: float
    layers: tuple[str, ...]
    grid: Grid
    prefix: tuple[str, ...] = ()
    about: str = ""
    unit: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    crop_box: CropBox | None = None
    note: str = NOTE
    finding: str = ""
    suffix: tuple[str, ...] = ()

    AXES = axes(terms=("layer", "head", "token"), heads=("layer", "head"), mlps=("layer",), rest=("part",))

    def __post_init__(self) -> None:
        for name, ndim in (("terms", 3), ("heads", 2), ("mlps", 1), ("rest", 1)):
            object.__setattr__(
                self, name, checked_array(getattr(self, name), ndim, f"{name} of a decomposition")
            )
        for name in ("rest_names", "layers", "prefix", "suffix", "grid"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        tokens = len(self.prefix) + self._patches + len(self.suffix)
        shape = (len(self.layers), self.terms.shape[1], tokens)
        if self.terms.shape != shape or len(self.rest) != len(self.rest_names):
            raise ParameterError(
                f"Terms of {list(shape)} and {len(self.rest_names)} other parts are expected, not {list(self.terms.shape)} and "
                f"{len(self.rest)}."
            )
        object.__setattr__(self, "finding", _finding(self))
        super().__post_init__()

    def __repr__(self) -> str:
        return f"Decomposition({self.unit}: {formatted(self.total, '.6g')}; {self.finding})"

    @property
    def _patches(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def maps(self) -> NDArray[np.float32]:
        """The terms of the patches, [layers, heads, rows, cols]."""
        patches = self.terms[:, :, len(self.prefix) :][:, :, : self._patches]
        return patches.reshape(*patches.shape[:2], *self.grid)

    @property
    def parts(self) -> dict[str, float]:
        """Every part by its name, heads as "4 · 3"; together they are the total."""
        rest = dict(zip(self.rest_names, self.rest.tolist(), strict=True))
        heads = {
            f"{self.layers[row]} · {head}": float(value) for (row, head), value in np.ndenumerate(self.heads)
        }
        mlps = {f"MLP {name}": float(value) for name, value in zip(self.layers, self.mlps, strict=True)}
        return rest | heads | mlps

    def map_of(self, layer: int | None = None, head: int | None = None) -> PatchMap:
        """From which patches a part was taken: of one head, all heads of a layer, or all heads; signed, in units of the output.

        Args:
            layer: row of `layers`; None: all.
            head: None: all.

        Raises:
            ParameterError: there is no such layer or head, or terms of single heads were not kept.
        """
        if (layer is not None and not 0 <= layer < len(self.terms)) or (
            head is not None and not 0 <= head < self.terms.shape[1]
        ):
            raise ParameterError(
                f"Layer {layer}, head {head} does not exist: this decomposition has maps of {self.terms.shape[0]} layers x "
                f"{self.terms.shape[1]} heads."
            )
        rows = self.terms if layer is None else self.terms[layer : layer + 1]
        tokens = (rows if head is None else rows[:, head : head + 1]).sum((0, 1), dtype=np.float64)
        whose = "all heads" if head is None else f"head {head}"
        where = "" if layer is None else f" of layer {self.layers[layer]}"
        count, end = len(self.prefix), len(self.prefix) + self._patches
        return PatchMap(
            tokens[count:end].reshape(self.grid).astype(np.float32),
            unit=f"part of the {self.unit}",
            value_range=(-np.inf, np.inf),
            signed=True,
            method="direct part",
            class_blind=False,
            provenance=self.provenance,
            prefix=dict(zip(self.prefix, tokens[:count].tolist(), strict=True)),
            suffix=dict(zip(self.suffix, tokens[end:].tolist(), strict=True)),
            crop_box=self.crop_box,
            caption=f"what {whose}{where} took from each patch",
            note=self.note,
        )

    def to_table(self) -> Table:
        """Every part with its layer and head, then every term with its token: row and column of a patch, or the name of another."""
        rows: list[Row] = [
            (name, "", "", "", "", value) for name, value in zip(self.rest_names, self.rest, strict=True)
        ]
        rows += [("MLP", name, "", "", "", value) for name, value in zip(self.layers, self.mlps, strict=True)]
        rows += [("head", self.layers[i], j, "", "", value) for (i, j), value in np.ndenumerate(self.heads)]
        kind = "head" if self.terms.shape[1] == self.heads.shape[1] else "heads"
        for (layer, head, token), value in np.ndenumerate(self.terms):
            patch = token - len(self.prefix)
            name = [*self.prefix, *[""] * self._patches, *self.suffix][token]
            place = (name, "") if name else divmod(patch, self.grid[1])
            rows.append(
                (f"from a token by {kind}", self.layers[layer], head if kind == "head" else "", *place, value)
            )
        return Table(("part", "layer", "head", "row", "col", "value"), rows)


_POOL_NOTE = "The model reads its answer by a learned pool, which is its last layer: the layers before act through the pool."
_HELD = "last norm and the length of the embedding held at those"
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
    LayerScale multiplies inside. The logit of a sentence is linear once the length of the picture's embedding is held, too.
    A mean over patches sums over tokens first, each with the scale of its own norm. A learned pool is the last layer: its heads
    have the terms, and what layers before it do, they do through the pool. A bias of the values belongs to the heads, that of an
    MLP to the MLP. Of a module that is not ours the sum is read from autograd's graph of one more pass.

    Args:
        target: a class by its index or name, a pair (class, other class) for the lead of one over the other, or a similarity; None
            means the first class, or the own embedding.
        maps: a map for each head, or for all heads of a layer together.
        size: short side of the model's input in patches; 0 is the checkpoint's own.

    Returns:
        Parts in units of the output, signed. Inside `vit_viz.edit` those of the edited model, exactly.

    Raises:
        ParameterError: the target is none that is a sum.
        CaptureError: the parts do not sum to the output, as where a hook changes what modules return; or there is no such sum of
            the model, as of a post-norm one, or none that is known.

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
    recorded = subject.trace(keep_residual=_own(subject) is not None)
    return decomposition_of(subject, recorded, target=target, maps=maps)


def decomposition_of(
    subject: PreparedImage, trace: Trace, *, target: TargetLike = None, maps: Maps = "heads"
) -> Decomposition:
    """As `decomposition`, of a trace that kept the residual stream, made under the edits that `subject.turn` stands for."""
    if maps not in get_args(Maps):
        raise ParameterError(f"Maps are of heads or of layers, not of {maps!r}.")
    ours = _own(subject)
    if ours is not None and trace.residual is None:
        raise CaptureError(
            "A decomposition needs a trace that kept the residual stream (keep_residual=True)."
        )
    trace.wait()
    device = "cpu" if trace.device.type == "mps" else trace.device  # which has no double precision
    outputs = subject.logits(trace).to(device).double()
    fixed = subject.target(target).resolved(outputs)
    weights = _weights(fixed, outputs)
    if ours is None:
        from vit_viz.capture.addends import stream_of  # it imports torch, for which a start need not wait

        with subject.turn():
            stream = stream_of(
                subject.model,
                subject.pixels.to(subject.dtype),
                weights,
                layout=trace.layout,
                pool=subject.pool,
            )
        parts = recorded_parts(stream)
    else:
        with torch.no_grad(), subject.turn(), undisturbed(ours), exact():
            edits = surrounding_edits(images=1) if is_edited() else None
            parts = direct_parts(ours, trace, weights, edits)
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
        _note(subject.model, fixed, outputs, parts.layers),
        suffix=trace.layout.suffix,
    )
    tolerance = max(_TOLERANCE, 8 * torch.finfo(subject.dtype).eps)
    if not abs(total - decomposed.output) <= tolerance * max(map(abs, decomposed.parts.values())):
        raise CaptureError(
            f"The parts sum to {total:.6g}, but the model returned {decomposed.output:.6g}: something other than its modules, "
            "such as a hook, changes what they return, or it changes from pass to pass."
        )
    return decomposed


# --- parts


def _own(subject: PreparedImage) -> VisionTransformer | None:
    """The model, where it is made of vit_viz's own classes alone: its weights say what is otherwise read from a pass."""
    model = subject.model
    return model if isinstance(model, VisionTransformer) and are_ours(submodules_of(model)) else None


def _weights(target: Target, outputs: Tensor) -> Tensor:
    """The target as weights of the outputs, [outputs]; of a cosine with the length of the output held."""
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


def _note(model: nn.Module, target: Target, outputs: Tensor, layers: tuple[str, ...]) -> str:
    """What is held, and what the parts are not; of sentences, the cosines that their logits stand for."""
    pool, head = (f"{_POOL_NOTE} " if layers == ("pool",) else ""), getattr(model, "head", None)
    if not isinstance(head, SentenceHead) or target.index is None:
        return pool + NOTE
    chosen = [index for index in (target.index, target.other) if index is not None]
    cosines = " and ".join(formatted(float(one), ".3f") for one in head.cosines(outputs)[chosen])
    added = f" {'-' if head.bias < 0 else '+'} {abs(head.bias):.4g}" if head.bias else ""
    return (
        f"A logit is {head.scale:.4g} × cosine{added}; here cosine {cosines}. "
        f"{pool}{NOTE.replace('last norm held at that', _HELD)}"
    )


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


# --- in words


def _finding(decomposed: Decomposition) -> str:
    """What stands out, in one sentence."""
    sign = -1.0 if decomposed.total < 0 else 1.0
    mlps = [f"the MLP of layer {name}" for name in decomposed.layers]
    mlps[-1] = "the pool's MLP" if decomposed.layers == ("pool",) else "the last MLP"
    parts = dict(zip(mlps, (sign * decomposed.mlps).tolist(), strict=True))
    parts |= {
        f"the {name}": sign * float(value)
        for name, value in zip(decomposed.rest_names, decomposed.rest, strict=True)
    }
    heads = sign * decomposed.heads.astype(np.float64)
    row, head = (int(i) for i in np.unravel_index(int(heads.argmax()), heads.shape))
    best = f"head {head} of {'the pool' if decomposed.layers == ('pool',) else f'layer {decomposed.layers[row]}'}"
    parts[best] = float(heads[row, head])
    name = max(parts, key=lambda one: parts[one])
    is_alone = (heads == heads[row, head]).sum() == 1
    share = parts[name] / max(abs(decomposed.total), 1e-30)
    if share >= 0.2 and ([*parts.values()].count(parts[name]) > 1 or (name == best and not is_alone)):
        first = f"No single part gives most of {decomposed.about}"
    elif share > 1:
        first = f"{name[0].upper()}{name[1:]} gives more than all of {decomposed.about}, and others take away from it"
    elif share >= 0.2:
        first = f"{_share(share)} of {decomposed.about} comes from {name}"
    else:
        first = f"No single part makes up a fifth of {decomposed.about}"
    if not is_alone or not heads[row, head] > 2 * np.abs(heads).mean():
        return f"{first}; no head stands out"
    place = _place(decomposed, row, head, sign)
    return f"{first}{place}" if name == best else f"{first}; of the heads, {best} gave most{place}"


_SHARES = {0.25: "A quarter", 1 / 3: "A third", 0.5: "Half", 2 / 3: "Two thirds", 0.75: "Three quarters"}


def _share(share: float) -> str:
    """A share in words, where a plain one is within three hundredths of it."""
    near = min(_SHARES, key=lambda one: abs(one - share))
    return _SHARES[near] if abs(near - share) <= 0.03 else f"{share:.0%}"


def _place(decomposed: Decomposition, row: int, head: int, sign: float) -> str:
    """Where a head took most of what it gave, in words; "" where it took it from all over, or is not kept by itself."""
    if decomposed.terms.shape[1] != decomposed.heads.shape[1]:
        return ""
    terms = np.maximum(sign * decomposed.terms[row, head].astype(np.float64), 0)
    count, total = len(decomposed.prefix), float(terms.sum())
    patches, others = np.split(np.roll(terms, -count), [decomposed.grid[0] * decomposed.grid[1]])
    if len(others) and others.max() > total / 2:
        name = (*decomposed.suffix, *decomposed.prefix)[int(others.argmax())]
        return f", from {name}" if name.startswith(("register", "token")) else f", from the {name} token"
    padded = np.pad(patches.reshape(decomposed.grid), 1)
    around = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).sum((2, 3))
    # four times what chance gives to nine patches
    if not around.max() > max(0.15, 4 * 9 / around.size) * total:
        return ""
    top, left = np.unravel_index(int(around.argmax()), around.shape)
    window = padded[top : top + 3, left : left + 3]
    elsewhere = padded.copy()
    elsewhere[top : top + 3, left : left + 3] = 0
    if np.lib.stride_tricks.sliding_window_view(elsewhere, (3, 3)).sum((2, 3)).max() >= around.max():
        return ""  # as much from another place
    middle = [round(float((window.sum(1 - axis) @ np.arange(-1, 2)) / window.sum())) for axis in (0, 1)]
    return f", from around patch {place_words((top + middle[0], left + middle[1]))}"


Maps = Literal["heads", "layers"]


def _decomposition(
    job: Job,
    *,
    target: TargetLike,
    maps: Annotated[Maps, Option("maps", "Of each head, or of all heads of a layer.")] = "heads",
) -> Decomposition:
    subject = job.image
    recorded = job.trace if _own(subject) is None else job.tokens
    return decomposition_of(subject, recorded, target=target, maps=maps)


DECOMPOSITION = asks(
    _decomposition,
    label="What the answer is made of",
    also_called="direct logit attribution, dla, logit attribution, mlps, residual stream, contributions, circuits",
    shows="what heads, MLPs and the rest gave to the answer: an exact sum, with maps.",
    hides="what a part does through later layers: a head that gave nothing itself can still matter, see the causal effect of "
    "heads.",
    formula=r"$y = b + w \cdot e + \sum_{l, h, i} A_{l h}[o, i]\, v_{l h i} W_{O, l h} \cdot w + \sum_l w \cdot m_l$; $e$: the "
    r"embedding; $m_l$: what MLP $l$ adds; $o$: the token that the output is read from; $w$: the direction in which it is "
    r"read, with the scale of the last norm held, and of sentences the length of the embedding; $b$: biases",
    source="Gandelsman, Efros & Steinhardt 2024, arXiv:2310.05916",
    reads="tokens",
    place=Place("explain", {"explain_face": "parts"}, {"maps": ""}),
)
