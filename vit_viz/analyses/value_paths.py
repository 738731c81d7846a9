"""Which sentence each patch fits: the last blocks run again with another attention, and each patch read as if it were the answer.

A class token gathers what patches say by attention, and only what it gathered was trained to agree with sentences. So a patch is
asked for what it would hand on: its values, through the output projection, the last norm and the projection to sentences. Methods
differ in which values are gathered, and in what of the block around the attention is kept. All of them change the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.direct_parts import Values, normed
from vit_viz.analyses.lens import PROBE as READ_ALONE, read_alone
from vit_viz.analyses.localisation import object_on_grid
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.spec import asks
from vit_viz.analyses.tokens import token_maps
from vit_viz.answer import Answer, axes
from vit_viz.capture import are_ours, is_edited, surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout, place_words
from vit_viz.images import Mode
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import Block, SentenceHead
from vit_viz.model.submodules import submodules_of
from vit_viz.outputs import output_name
from vit_viz.results import TokenMaps
from vit_viz.sentences import formatted

PROBE = "A probe: another model than yours. Its last attention is replaced, and each patch is read as if it were the whole answer."
INVERTED = (
    "Read this with care: as a rule the last vectors of single patches are not trained to agree with sentences, and in CLIP they "
    "tend to say the opposite, so that the background fits best. Another attention shows what the patches hold."
)

Looks = Literal["own", "identity", "v-v", "q-q", "k-k", "sum", "normalised"]


@dataclass(frozen=True)
class ValuePath(Options):
    """How the last blocks run on the way of each patch to the sentences; `VALUE_PATHS` has the published ones by name."""

    attention: Annotated[
        Looks,
        Option(
            "attention",
            "What patches gather from: k-k and q-q compare keys or queries with each other (NACLIP, ClearCLIP), sum adds both "
            "(SCLIP), identity is each patch alone (MaskCLIP), normalised the mean of q-q, k-k and v-v with vectors of length 1 "
            "(GEM), own what the model does.",
        ),
    ] = "k-k"
    prior: Annotated[
        float,
        Option(
            "neighbours",
            "How far near patches are favoured: the deviation, in patches, of a Gaussian that is added to the scores, 5 in NACLIP; "
            "0 for not at all.",
            high=50,
            step=0.5,
        ),
    ] = 5.0
    residual: Annotated[
        bool, Option("residual", "Whether a patch keeps what it held before, as in SCLIP and GEM.")
    ] = False
    mlp: Annotated[bool, Option("MLP", "Whether the MLP follows, as in SCLIP.")] = False
    blocks: Annotated[
        int, Option("blocks", "How many blocks run so, from the last: 6 in GEM.", low=1, high=999)
    ] = 1


VALUE_PATHS: Mapping[str, ValuePath] = {
    "NACLIP": ValuePath(),
    "ClearCLIP": ValuePath("q-q", prior=0),
    "MaskCLIP": ValuePath("identity", prior=0),
    "SCLIP": ValuePath("sum", prior=0, residual=True, mlp=True),
    "GEM": ValuePath("normalised", prior=0, residual=True, blocks=6),
    "the model's own last vectors": ValuePath("own", prior=0, residual=True, mlp=True),
}
"""Published settings. NACLIP: Hajimiri et al. 2024, arXiv:2404.08181; ClearCLIP: Lan et al. 2024, arXiv:2407.12442; MaskCLIP: Zhou
et al. 2022, arXiv:2112.01071, whose code for a ViT also keeps residual and MLP; SCLIP: Wang et al. 2023, arXiv:2312.01597; GEM:
Bousselham et al. 2023, arXiv:2312.00878, as for a ViT-B of 12 blocks."""


@dataclass(frozen=True, eq=False, repr=False)
class SentencePatches(Answer):
    """How well each patch fits each sentence, and which fits best.

    Args:
        maps: cosines, [sentences, rows, cols], all on one scale.
        best: index of the sentence that fits each patch best, [rows, cols].
    """

    maps: TokenMaps
    best: NDArray[np.int64]

    AXES = axes(best=("row", "col"))

    def to_words(self) -> str:
        """On how many patches each sentence fits best, and where one fits most."""
        names, values = self.maps.names, self.maps.values
        sizes = np.bincount(self.best.ravel(), minlength=len(names))
        order = np.argsort(-sizes, kind="stable")
        parts = ", ".join(f"“{names[i]}” on {sizes[i]}" for i in order if sizes[i])
        top, *place = np.unravel_index(int(values.argmax()), values.shape)
        most = f"“{names[top]}” on patch {place_words(place)}, cosine {formatted(values.max(), '.2f')}"
        return f"Fits best of {self.best.size} patches: {parts}. Most of all {most}."


def sentence_patches(
    loaded: ModelLike,
    image: Picture | Tensor,
    *,
    path: ValuePath = VALUE_PATHS["NACLIP"],
    mode: Mode = "fit",
    size: int = 0,
) -> SentencePatches:
    """Where each sentence is: the cosine of each patch with it, were the patch all that the model reads its answer from.

    With x_l what enters block l of the last `blocks` blocks, and y at first x of the first of them with the residual, else 0:
    y <- y + LS1(W_O A' v + b_O), and with the MLP y <- y + LS2(MLP(norm2(y))). A' is softmax(k k^T * scale) for "k-k", and likewise
    for q and v; for "sum" it is that of q plus that of k; for "normalised" the mean of those of v, k and q, whose vectors u have
    length 1, have once gathered from each other and have length 1 again, as softmax(u u^T * scale * mean ||norm1(x_l)||). With a
    prior, exp(-d^2 / (2 prior^2)) is added to the scores of two patches at a distance d. Then the last norm, the pool of this one
    token, and the projection follow as in the model: of attention pooling the pool's value path.

    Args:
        loaded: a model whose classes are sentences: `loaded.with_prompts(["a dog", "grass"])`.
        path: one of `VALUE_PATHS`, or another combination.
        size: short side of the model's input in patches; 0 is the checkpoint's own.

    Raises:
        ParameterError: the classes are no sentences, there are fewer blocks, or edits change an attention that is replaced.
        CaptureError: a part of the model is of another class than vit_viz's own.

    Source: as `VALUE_PATHS` says. Without what they do to the maps afterwards, and without any bias of positions that the model
    adds to the scores of queries and keys.

    Example:
        >>> import vit_viz as vv
        >>> asked = vv.load("mini-clip").with_prompts(["a red circle", "the background"])
        >>> patches = vv.sentence_patches(asked, "shapes")
        >>> patches.maps.names[patches.best[0, 0]]
        'the background'
    """
    subject = PreparedImage.of(loaded, image, mode=mode, size=size)
    return sentence_patches_of(subject, subject.trace(keep_residual=True), path)


def sentence_patches_of(
    subject: PreparedImage, trace: Trace, path: ValuePath = VALUE_PATHS["NACLIP"]
) -> SentencePatches:
    """As `sentence_patches`, of a trace that kept the residual stream, made under the edits that `subject.turn` stands for."""
    head = getattr(subject.model, "head", None)
    if not isinstance(head, SentenceHead):
        raise ParameterError(
            "Which sentence each patch fits needs sentences, of a model with a text tower: name some as sentences, such as "
            "“a dog | grass”; in Python loaded.with_prompts([...]) has them."
        )
    cosines = head.cosines(_read(subject, trace, path)).clamp(-1, 1).T
    name = next((name for name, one in VALUE_PATHS.items() if one == path), "")
    is_own = path == VALUE_PATHS["the model's own last vectors"]
    note = PROBE if not is_own else INVERTED if trace.layout.pooling == "class" else READ_ALONE
    maps = token_maps(
        trace,
        cosines,
        [output_name(index, subject.labels, "sentence") for index in range(len(cosines))],
        unit="cosine with the sentence",
        value_range=(-1.0, 1.0),
        method="patches and sentences" + (f", by {name}" if name else ""),
        note=note,
        **path.values(),
    )
    return SentencePatches(maps, maps.values.argmax(0))


def patch_embedding(subject: PreparedImage, trace: Trace, patch: tuple[int, int]) -> Tensor:
    """What a patch would be among the model's pictures, read as `sentence_patches` reads it by default, [outputs], fp32.

    Args:
        trace: one that kept the residual stream.

    Raises:
        ParameterError: there is no such patch, or the model is not ours.
    """
    token = trace.layout.token(patch)
    return _read(subject, trace, VALUE_PATHS["NACLIP"])[token]


def sentence_overlap(patches: SentencePatches, masks: Mapping[str, Any]) -> NDArray[np.float32]:
    """Intersection over union of the patches that a sentence fits best with what a mask says that it is about, [masks].

    In areas of patches, as pixels have it where each patch is drawn as a block; the mean over masks is the mIoU.

    Args:
        masks: by sentence, [height, width] of the original, as `vit_viz.images.masks` has it; what a mask leaves out counts
            neither way.

    Raises:
        ParameterError: there is no such sentence, or a mask has another size than the photo.

    Example:
        >>> import vit_viz as vv
        >>> import numpy as np
        >>> asked = vv.load("mini-clip").with_prompts(["a red circle", "the background"])
        >>> everything = np.ones((448, 448), bool)
        >>> overlap = vv.sentence_overlap(vv.sentence_patches(asked, "shapes"), {"the background": everything})
        >>> bool(overlap[0] > 0.5)
        True
    """
    maps, box = patches.maps, patches.maps.crop_box
    if box is None:
        raise ParameterError(
            "An overlap needs maps with a crop box, which says where their patches lie in the image."
        )
    for sentence in masks:
        if sentence not in maps.names:
            raise ParameterError(f"There is no map of {sentence[:40]!r}; there are: {', '.join(maps.names)}.")
    overlaps = [
        object_on_grid(box, maps.grid, mask=mask).iou(patches.best == maps.names.index(name))
        for name, mask in masks.items()
    ]
    return np.array(overlaps, dtype=np.float32)


# --- parts


def _read(subject: PreparedImage, trace: Trace, path: ValuePath) -> Tensor:
    """What the model returns of each token, were it y of `sentence_patches` after the last block, [tokens, outputs], fp32."""
    model = subject.transformer("What a patch is like")
    if not are_ours(submodules_of(model)):
        raise CaptureError(
            "What a patch is like is computed from the weights of vit_viz's own classes, and this model has a part of another "
            "class."
        )
    trace.wait()
    if trace.residual is None:
        raise CaptureError("These maps need a trace that kept the residual stream (keep_residual=True).")
    if path.blocks > trace.num_layers:
        raise ParameterError(
            f"{path.blocks} blocks cannot run in another way: this model has {trace.num_layers}."
        )
    first, dtype = trace.num_layers - path.blocks, subject.dtype
    with torch.no_grad(), subject.turn(), undisturbed(model), exact():
        stream = trace.residual[first].to(dtype)
        stream = stream if path.residual else torch.zeros_like(stream)
        for layer in range(first, trace.num_layers):
            block = model.blocks[layer]
            assert isinstance(block, Block)
            inputs = normed(block.norm1, trace.residual[layer].float())
            gathered = _gathered(block, trace, layer, path, inputs).transpose(0, 1).flatten(1).to(dtype)
            stream = stream + block.ls1(block.attn.proj(block.attn.norm(gathered)))
            if path.mlp:
                stream = stream + block.ls2(block.mlp(block.norm2(stream)))
        return read_alone(model, stream).float()


def _gathered(block: Block, trace: Trace, layer: int, path: ValuePath, inputs: Tensor) -> Tensor:
    """What each head gathers for each token, [heads, tokens, head_dim], fp32."""
    values = Values(block.attn.qkv, block.attn.num_heads).of(inputs)
    edits = surrounding_edits(images=1) if is_edited() else None
    is_edited_here = edits is not None and (
        edits.removes_tokens or any(layer in one.layers for one in edits.edits)
    )
    if path.attention != "own" and is_edited_here:
        raise ParameterError(
            f"The attention of layer {layer} is replaced here, so its edits would have no meaning: edit earlier layers alone, or "
            "ask with the model's own attention."
        )
    if path.attention == "identity":
        return values
    prior = _prior(trace.layout, path.prior).to(values)
    of_heads = [
        _attention(trace, layer, head, path.attention, v, inputs, prior) @ v for head, v in enumerate(values)
    ]
    output = torch.stack(of_heads)
    return output if edits is None else edits.after(layer, output[None])[0]


def _attention(
    trace: Trace, layer: int, head: int, looks: Looks, v: Tensor, inputs: Tensor, prior: Tensor
) -> Tensor:
    """Which tokens a token gathers from in one head, [tokens, tokens]; rows sum to 1, and to 2 for "sum"."""
    if looks == "own":  # whatever made its scores, the prior is added to them
        return (trace.attention(layer, [head])[0].log() + prior).softmax(-1)
    q, k, scale = trace.q[layer, head].float(), trace.k[layer, head].float(), trace.scales[layer]

    def of(u: Tensor) -> Tensor:
        return (u @ u.T * scale + prior).softmax(-1)

    if looks == "normalised":
        scale *= float(inputs.norm(dim=-1).mean())
        units = (F.normalize(one, dim=-1) for one in (v, k, q))
        return torch.stack([of(F.normalize(of(u) @ u, dim=-1)) for u in units]).mean(0)
    return of(q) + of(k) if looks == "sum" else of({"v-v": v, "q-q": q, "k-k": k}[looks])


def _prior(layout: TokenLayout, deviation: float) -> Tensor:
    """What is added to the scores of two patches, exp(-d^2 / (2 deviation^2)), [tokens, tokens]; 0 of other tokens."""
    added = torch.zeros(layout.num_tokens, layout.num_tokens)
    if deviation:
        rows, cols = (torch.arange(size).float() for size in layout.grid)
        places = torch.cartesian_prod(rows, cols).reshape(-1, 2)
        squared = torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist").square()
        added[layout.patch_slice, layout.patch_slice] = torch.exp(-squared / (2 * deviation**2))
    return added


SENTENCE_PATCHES = asks(
    lambda job, options: sentence_patches_of(job.image, job.tokens, options),
    name="sentence_patches",
    label="Best sentence for each patch",
    also_called="open-vocabulary segmentation, zero-shot segmentation, where is, maskclip, sclip, clearclip, naclip, "
    "gem, dense clip",
    shows="how well each patch fits each sentence, and which fits best: a probe, another model than yours.",
    hides="what your model reads from a patch: its last attention is replaced, so relevance and LeGrad say more of its own answer.",
    formula=r"$\cos(P\, \mathrm{norm}(W_O\, \mathrm{softmax}(k k^{\top} s + \omega)\, v + b), t)$ of each sentence $t$; "
    r"$\omega$: the nearness of two patches; or with $q q^{\top}$ or $v v^{\top}$, residual and MLP",
    source="Hajimiri et al. 2024, arXiv:2404.08181; Lan et al. 2024, arXiv:2407.12442; Wang et al. 2023, arXiv:2312.01597; "
    "Bousselham et al. 2023, arXiv:2312.00878; Zhou et al. 2022, arXiv:2112.01071",
    options=ValuePath,
    reads="image",
    cost="pass",
    forwards=1,
)
