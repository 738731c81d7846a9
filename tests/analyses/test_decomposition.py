"""What an answer is made of: against a forward pass written out here in fp64, from which each part is left out by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz.analyses import direct_parts
from vit_viz.analyses.decomposition import NOTE, Decomposition, decomposition, decomposition_of
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import Target, similarity
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import CropBox
from vit_viz.model import ViTConfig
from vit_viz.model.positions import relative_index, rotate
from vit_viz.model.vit import SentenceHead, VisionTransformer

pytestmark = pytest.mark.numbers

GRID, HEADS, DEPTH, CLASSES, DIM = (4, 6), 5, 3, 7, 40
CASES: dict[str, dict[str, Any]] = {
    "class": {},
    "rotary, registers, LayerScale": {
        "position": "rotary", "reg_tokens": 4, "layer_scale": True, "mlp": "swiglu", "qk_norm": True, "qkv_bias": False,
    },
    "packed gate": {"reg_tokens": 1, "layer_scale": True, "mlp": "swiglu_packed", "mlp_hidden": 44, "no_embed_class": True},
    "mean": {"class_token": False, "pooling": "mean"},
    "mean, norm behind it": {"pooling": "mean", "fc_norm": True, "final_norm": False, "reg_tokens": 2},
    "mean of all tokens": {"pooling": "mean", "pool_prefix": True, "fc_norm": True, "layer_scale": True},
    "attention": {"class_token": False, "pooling": "attention", "mlp": "gelu_tanh"},
    "attention, all tokens": {"reg_tokens": 3, "pooling": "attention", "pool_prefix": True, "fc_norm": True},
    "distilled": {"dist_token": True, "dist_head": True},
    "distilled, norm behind": {"dist_token": True, "dist_head": True, "fc_norm": True, "layer_scale": True, "reg_tokens": 2},
    "class and mean": {"pool_concat": True, "reg_tokens": 3, "layer_scale": True},
    "root mean square": {
        "norm": "rms", "qkv_bias": False, "proj_bias": False, "mlp_bias": False, "head_bias": False, "fc_norm": True,
    },
    "norm in the attention": {"attn_norm": True, "mlp_norm": True, "mlp": "quick_gelu"},
    "norm in the attention, mean": {"attn_norm": True, "pooling": "mean", "norm": "rms", "layer_scale": True},
    "norm in front": {"pre_norm": True, "patch_bias": False, "reg_tokens": 1},
    "bias for offsets": {"position": "none", "relative_bias": True, "pooling": "mean", "layer_scale": True},
    "rotated beside positions": {"rotary_grid": (3, 5), "mlp": "swiglu", "mlp_norm": True},
    "several class tokens": {"class_tokens": 3, "class_read": (2, 0), "reg_tokens": 2, "no_embed_class": True},
    "no norm at the end": {"final_norm": False, "position": "sinusoidal_2d", "patch_embed": "unfold"},
}  # fmt: skip


def model(seed: int = 2, **options: Any) -> VisionTransformer:
    settings = {
        "img_size": (16, 36),
        "patch_size": (4, 6),
        "embed_dim": DIM,
        "depth": DEPTH,
        "num_heads": HEADS,
    }
    vit = VisionTransformer(ViTConfig(**{"num_classes": CLASSES, **settings, **options})).eval()
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=random))
    return vit.requires_grad_(False)


def picture(height: int = 16, width: int = 36, seed: int = 11) -> Tensor:
    return torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(seed))


# --- the same by hand: every part as a vector at every token, left out of the stream one at a time


def held(norm: nn.Module, x: Tensor, like: Tensor) -> Tensor:
    """norm(x) with the scale that `like` has."""
    if isinstance(norm, nn.Identity):
        return x
    if isinstance(norm, nn.RMSNorm):
        return x / (like.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight
    deviation = (like.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    return (x - x.mean(-1, keepdim=True)) / deviation * norm.weight + norm.bias


Change = Callable[[int, Tensor], Tensor]


def same(_layer: int, values: Tensor) -> Tensor:
    return values


def stream_by_hand(
    vit: VisionTransformer, pixels: Tensor, scores: Change, moved: Change
) -> dict[tuple[Any, ...], Tensor]:
    """What each part writes to each token, [tokens, dim] each: together the stream after the last block.

    Args:
        scores: changes q k^T * scale of a layer, [heads, queries, keys].
        moved: changes what each head takes from each token, [heads, queries, keys, head_dim].
    """
    x = vit.tokens(pixels)[0]
    count, config, parts = len(x), vit.config, {("embedding",): x}
    prefix = len(config.prefix)
    for layer, block in enumerate(vit.blocks):
        attn = block.attn
        q, k, v = attn.qkv(block.norm1(x)).reshape(count, 3, HEADS, -1).permute(1, 2, 0, 3)
        q, k = attn.q_norm(q), attn.k_norm(k)
        places = vit.places(vit.grid_of(*pixels.shape[-2:]))
        if places.rotary is not None:
            q, k = (rotate(one[None], *places.rotary)[0] for one in (q, k))
        products = q @ k.transpose(1, 2) * config.head_dim**-0.5
        if attn.relative_position_bias_table is not None:
            products = products + attn.relative_position_bias_table[relative_index((4, 6))].permute(2, 0, 1)
        attention = scores(layer, products).softmax(-1)
        taken = moved(layer, torch.einsum("hti,hid->htid", attention, v))
        whole = taken.sum(2).transpose(0, 1).reshape(count, -1)
        nothing = held(attn.norm, torch.zeros_like(whole), whole)
        gamma = block.ls1.gamma if config.layer_scale else 1.0
        for head in range(HEADS):
            for token in range(count):
                alone = torch.zeros(count, HEADS, config.head_dim, dtype=x.dtype)
                alone[:, head] = taken[head, :, token]
                said = held(attn.norm, alone.reshape(count, -1), whole) - nothing
                parts["head", layer, head, token] = said @ attn.proj.weight.T * gamma
        bias = nothing @ attn.proj.weight.T + (0.0 if attn.proj.bias is None else attn.proj.bias)
        parts["bias", layer] = bias * gamma
        x = x + block.ls1(attn.proj(attn.norm(whole)))
        parts["mlp", layer] = block.ls2(block.mlp(block.norm2(x)))
        x = x + parts["mlp", layer]
    assert prefix <= count
    assert_same(sum(parts.values()), x)
    return parts


def read_by_hand(vit: VisionTransformer, z: Tensor, whole: Tensor, kept: Tensor) -> Tensor:
    """The outputs of a stream with all norms' scales held at those of the whole stream; `kept`: tokens of a mean."""
    config = vit.config
    x, like = held(vit.norm, z, whole), vit.norm(whole)
    if config.dist_head:
        two = [held(vit.fc_norm, x[i], like[i]) for i in (0, 1)]
        return (vit.head(two[0]) + vit.head_dist(two[1])) / 2
    if config.pool_concat:
        return vit.head(torch.cat((x[0], x[kept].mean(0))))
    if config.class_tokens > 1:
        return vit.head(torch.cat([x[i] for i in config.class_read]))
    if config.pooling == "class":
        return scored(vit.head, held(vit.fc_norm, x[0], like[0]), vit.fc_norm(like[0]))
    mean = like[kept].mean(0)
    return scored(vit.head, held(vit.fc_norm, x[kept].mean(0), mean), vit.fc_norm(mean))


def scored(head: nn.Module, features: Tensor, like: Tensor) -> Tensor:
    """What a head says of features; of sentences with the length that the embedding of `like` has."""
    if not isinstance(head, SentenceHead):
        return head(features)
    length = head.projection(like).square().sum().sqrt()
    cosines = [direction @ head.projection(features) / length for direction in head.directions]
    return torch.stack([head.scale * cosine + head.bias for cosine in cosines])


def by_hand(
    vit: VisionTransformer,
    pixels: Tensor,
    weights: Tensor,
    *,
    scores: Change = same,
    moved: Change = same,
    removed: tuple[int, ...] = (),
) -> dict[str, Any]:
    """Terms [layers, heads, tokens], MLPs [layers], embedding and all biases together, each by leaving it out."""
    vit, weights = copy.deepcopy(vit).double(), weights.double()
    parts = stream_by_hand(vit, pixels.double(), scores, moved)
    whole = sum(parts.values())
    count, prefix = len(whole), len(vit.config.prefix)
    kept = torch.arange(0 if vit.config.pool_prefix else prefix, count)
    kept = kept[[int(i) not in removed for i in kept]]
    everything = float(weights @ read_by_hand(vit, whole, whole, kept))

    def gave(part: Tensor) -> float:
        return everything - float(weights @ read_by_hand(vit, whole - part, whole, kept))

    terms = np.zeros((DEPTH, HEADS, count))
    for name, part in parts.items():
        if name[0] == "head":
            terms[name[1:]] = gave(part)
    return {
        "terms": terms,
        "mlps": np.array([gave(parts["mlp", layer]) for layer in range(DEPTH)]),
        "embedding": gave(parts["embedding",]),
        "attention": sum(gave(parts["bias", layer]) for layer in range(DEPTH)),
        "read": float(weights @ read_by_hand(vit, whole - whole, whole, kept)),
        "output": everything,
    }


def pool_by_hand(vit: VisionTransformer, pixels: Tensor, weights: Tensor) -> dict[str, Any]:
    """The same of a learned pool."""
    vit, weights = copy.deepcopy(vit).double(), weights.double()
    pool = vit.attn_pool
    x = vit.norm(vit.run_blocks(vit.tokens(pixels.double()), vit.grid_of(*pixels.shape[-2:])))[0]
    first = 0 if vit.config.pool_prefix else len(vit.config.prefix)
    k, v = pool.kv(x).reshape(len(x), 2, HEADS, -1).permute(1, 2, 0, 3)
    q = pool.q(pool.latent)[0, 0].reshape(HEADS, -1, 1)
    attention = torch.zeros(HEADS, len(x), dtype=x.dtype)
    attention[:, first:] = ((k @ q)[:, first:, 0] * pool.head_dim**-0.5).softmax(-1)
    heads = [torch.zeros(len(x), DIM, dtype=x.dtype) for _ in range(HEADS)]
    for head, said in enumerate(heads):
        own = slice(head * pool.head_dim, (head + 1) * pool.head_dim)
        said += attention[head][:, None] * v[head] @ pool.proj.weight[:, own].T
    gathered = sum(said.sum(0) for said in heads) + pool.proj.bias
    thought = pool.mlp(pool.norm(gathered))
    whole = gathered + thought

    def read(pooled: Tensor) -> float:
        return float(weights @ scored(vit.head, held(vit.fc_norm, pooled, whole), vit.fc_norm(whole)))

    def gave(part: Tensor) -> float:
        return read(whole) - read(whole - part)

    return {
        "terms": np.array([[[gave(part) for part in said] for said in heads]]),
        "mlps": np.array([gave(thought)]),
        "embedding": 0.0,
        "attention": gave(pool.proj.bias),
        "read": read(whole - whole),
        "output": read(whole),
    }


def check(found: Decomposition, expected: dict[str, Any]) -> None:
    """Every part is the expected one, and all are judged by the size of the largest."""
    rest = dict(zip(found.rest_names, found.rest.tolist(), strict=True))
    read = rest.get("bias of the last norm", 0.0) + rest.get("bias of the output layer", 0.0)
    got = [rest.get("embedding", 0.0), rest.get("output biases of attention", 0.0), read]
    want = [expected["embedding"], expected["attention"], expected["read"]]
    heads = expected["terms"].sum(-1)
    largest = max(abs(heads).max(), abs(expected["mlps"]).max(), *map(abs, want))
    for what, ours, theirs in (
        ("terms", found.terms, expected["terms"]),
        ("heads", found.heads, heads),
        ("mlps", found.mlps, expected["mlps"]),
        ("rest", np.array(got), np.array(want)),
    ):
        assert ours.shape == theirs.shape, what
        assert np.abs(ours - theirs).max() <= 1e-5 * largest, what
    assert abs(found.output - expected["output"]) <= 1e-5 * largest
    sums(found)


def sums(found: Decomposition) -> None:
    """The parts sum to the number that the model returned, to 1e-5 of the largest part."""
    parts = found.parts
    assert len(parts) == found.heads.size + found.mlps.size + found.rest.size
    largest = max(map(abs, parts.values()))
    assert abs(sum(parts.values()) - found.output) <= 1e-5 * largest
    assert abs(found.total - found.output) <= 1e-5 * largest
    assert_same(
        found.terms.sum(-1), found.heads if found.terms.shape[1] > 1 else found.heads.sum(1, keepdims=True)
    )


def one_hot(index: int) -> Tensor:
    return torch.nn.functional.one_hot(torch.tensor(index), CLASSES).double()


@pytest.mark.parametrize("name", CASES)
def test_each_part_is_what_is_missing_without_it_while_the_norm_is_held(name: str) -> None:
    vit, pixels = model(**CASES[name]), picture()
    expected = (pool_by_hand if vit.attn_pool is not None else by_hand)(vit, pixels, one_hot(4))
    found = decomposition(vit, pixels, target=4)
    check(found, expected)
    assert found.output == pytest.approx(float(vit(pixels)[0, 4]), rel=1e-5)
    assert (found.layers, found.prefix) == (
        ("pool",) if vit.attn_pool else ("0", "1", "2"),
        vit.config.prefix,
    )


@pytest.mark.parametrize(
    "name", ["class", "mean, norm behind it", "rotary, registers, LayerScale", "class and mean"]
)
@pytest.mark.parametrize("size", [(20, 30), (8, 60)])
def test_it_holds_at_other_sizes_of_the_picture(name: str, size: tuple[int, int]) -> None:
    vit, pixels = model(seed=5, **CASES[name]), picture(*size)
    found = decomposition(vit, pixels, target=1)
    check(found, by_hand(vit, pixels, one_hot(1)))
    assert found.maps.shape == (DEPTH, HEADS, size[0] // 4, size[1] // 6)


def test_several_prefix_tokens_keep_their_places() -> None:
    vit = model(dist_token=True, reg_tokens=3, layer_scale=True)
    found = decomposition(vit, picture(), target=6)
    expected = by_hand(vit, picture(), one_hot(6))
    check(found, expected)
    assert found.prefix == ("class", "distillation", "register 0", "register 1", "register 2")
    whole = found.map_of()
    assert_same(whole.values, expected["terms"].sum((0, 1))[5:].reshape(GRID))
    assert_same(list(whole.prefix.values()), expected["terms"].sum((0, 1))[:5])
    assert_same(found.map_of(2, 3).values, expected["terms"][2, 3, 5:].reshape(GRID))
    assert_same(found.map_of(1).values, expected["terms"][1, :, 5:].sum(0).reshape(GRID))


def test_it_is_worked_by_hand() -> None:
    """One patch, one head of one number, identities everywhere: z = 2, taken 2 * 3 with weight 5, MLP 0, output 7 z + 1."""
    vit = VisionTransformer(
        ViTConfig(
            img_size=(1, 1), patch_size=(1, 1), in_chans=1, embed_dim=1, depth=1, num_heads=1, mlp_hidden=1, num_classes=1,
            class_token=False, pooling="mean", position="none", final_norm=False, norm="rms", layer_scale=True,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.zero_()
        vit.patch_embed.proj.weight.fill_(1)
        block = vit.blocks[0]
        block.norm1.weight.fill_(1)  # of one number, its sign
        block.attn.qkv.weight[2] = 3
        block.attn.proj.weight.fill_(5)
        block.attn.proj.bias.fill_(2)
        block.ls1.gamma.fill_(0.5)
        vit.head.weight.fill_(7)
        vit.head.bias.fill_(1)
    found = decomposition(vit, torch.full((1, 1, 1, 1), 2.0), target=0)
    assert found.terms.tolist() == [[[pytest.approx(7 * 0.5 * 5 * 3, rel=1e-6)]]]
    assert dict(zip(found.rest_names, found.rest.tolist(), strict=True)) == {
        "embedding": 14.0, "output biases of attention": 7.0, "bias of the output layer": 1.0,
    }  # fmt: skip
    assert found.mlps.tolist() == [pytest.approx(0, abs=1e-4)]
    assert found.total == pytest.approx(74.5)


@pytest.mark.parametrize("name", ["distilled", "attention", "norm in the attention, mean"])
def test_the_parts_of_a_lead_are_those_of_one_class_less_those_of_the_other(name: str) -> None:
    vit, pixels = model(**CASES[name]), picture()
    lead, first, second = (decomposition(vit, pixels, target=target) for target in ((2, 5), 2, 5))
    for field in ("terms", "heads", "mlps", "rest"):
        assert_same(getattr(lead, field), getattr(first, field) - getattr(second, field), relative=3e-6)
    assert lead.output == pytest.approx(first.output - second.output, rel=1e-5)
    sums(lead)


@pytest.mark.parametrize("name", ["class", "mean", "attention"])
def test_without_classes_the_parts_are_of_an_embedding(name: str) -> None:
    vit, pixels = model(**CASES[name] | {"num_classes": 0}), picture()
    output = vit(pixels)[0].double()
    hand = pool_by_hand if vit.attn_pool is not None else by_hand
    own = decomposition(vit, pixels)
    check(own, hand(vit, pixels, output / output.norm()))
    assert own.output == pytest.approx(float(output.norm()), rel=1e-5)
    other = torch.randn(DIM, generator=torch.Generator().manual_seed(3))
    alike = decomposition(vit, pixels, target=similarity(other))
    check(alike, hand(vit, pixels, other / (other.norm() * output.norm())))
    assert alike.output == pytest.approx(float(torch.cosine_similarity(output, other.double(), 0)), abs=1e-6)


# --- sentences as classes

SENTENCES: dict[str, dict[str, Any]] = {
    "CLIP": {"pre_norm": True, "patch_bias": False, "head_bias": False, "num_classes": 9},
    "CLIP, registers": {"reg_tokens": 2, "head_bias": False, "num_classes": 9, "mlp": "quick_gelu"},
    "mean, projection with a bias": {"pooling": "mean", "fc_norm": True, "reg_tokens": 3, "num_classes": 9},
    "SigLIP": {"class_token": False, "pooling": "attention", "mlp": "gelu_tanh", "num_classes": 0},
    "SigLIP, norm behind": {"pooling": "attention", "fc_norm": True, "reg_tokens": 1, "num_classes": 9},
}  # fmt: skip


def with_sentences(seed: int = 7, **options: Any) -> VisionTransformer:
    """A model whose classes are four sentences: 11 x cosine, and a bias as SigLIP has one."""
    vit = model(**options)
    directions = torch.randn(4, options["num_classes"] or DIM, generator=torch.Generator().manual_seed(seed))
    bias = -2.5 if options.get("pooling") == "attention" else 0.0
    vit.head = SentenceHead(vit.head, directions / directions.norm(dim=1, keepdim=True), 11.0, bias)
    vit.config = replace(vit.config, num_classes=4)
    return vit.eval().requires_grad_(False)


@pytest.mark.parametrize("name", SENTENCES)
def test_a_similarity_is_the_sum_of_its_parts_while_norm_and_length_are_held(name: str) -> None:
    vit, pixels = with_sentences(**SENTENCES[name]), picture()
    hand = pool_by_hand if vit.attn_pool is not None else by_hand
    check(decomposition(vit, pixels, target=2), hand(vit, pixels, torch.tensor([0.0, 0, 1, 0])))
    lead = decomposition(vit, pixels, target=(3, 1))
    check(lead, hand(vit, pixels, torch.tensor([0.0, -1, 0, 1])))
    logits = vit(pixels)[0]
    assert lead.output == pytest.approx(float(logits[3] - logits[1]), rel=1e-5)
    cosines = ((logits - vit.head.bias) / 11).tolist()
    added = " - 2.5" if vit.head.bias else ""
    said = f"A logit is 11 × cosine{added}; here cosine {cosines[3]:.3f} and {cosines[1]:.3f}. "
    assert lead.note.startswith(said)
    assert "the last norm and the length of the embedding held at those of this photo" in lead.note


@pytest.mark.parametrize("name", ["CLIP, registers", "mean, projection with a bias"])
def test_inside_an_edit_a_similarity_has_the_length_of_the_edited_embedding(name: str) -> None:
    vit, pixels = with_sentences(**SENTENCES[name]), picture(20, 30)
    edits, scores, moved, removed = edits_by_hand()
    with vv.edit(**edits):
        found = decomposition(vit, pixels, target=2)
    weights = torch.tensor([0.0, 0, 1, 0])
    check(found, by_hand(vit, pixels, weights, scores=scores, moved=moved, removed=removed))
    assert abs(found.output - float(vit(pixels)[0, 2])) > 1e-3


def test_maps_of_layers_are_the_sums_of_those_of_their_heads() -> None:
    vit, pixels = model(reg_tokens=2), picture()
    heads, layers = (decomposition(vit, pixels, target=3, maps=maps) for maps in ("heads", "layers"))
    assert layers.terms.shape == (DEPTH, 1, 3 + 24)
    assert_same(layers.terms[:, 0], heads.terms.sum(1))
    assert_same(layers.heads, heads.heads)
    assert_same(layers.map_of(1).values, heads.map_of(1).values)
    with pytest.raises(
        ParameterError, match="head 1 does not exist: this decomposition has maps of 3 layers x 1 heads"
    ):
        layers.map_of(1, 1)
    with pytest.raises(ParameterError, match="heads or of layers, not of 'all'"):
        decomposition(vit, pixels, maps="all")


# --- edits


def edits_by_hand() -> tuple[dict[str, Any], Change, Change, tuple[int, ...]]:
    """Edits of every kind, and what they do by hand."""
    edits = {
        "heads": {(0, 1): 0.0, (1, 2): "mean", (1, 3): -0.5, (2, 4): "uniform"},
        "knockout": {1: [(0, 7), (3, 3)]},
        "mask_keys": [9, 10],
        "temperature": {2: 1.7},
    }

    def scores(layer: int, values: Tensor) -> Tensor:
        values = values / 1.7 if layer == 2 else values.clone()
        if layer == 2:
            values[4] = 0
        if layer == 1:
            values[:, 0, 7] = values[:, 3, 3] = -torch.inf
        values[:, :, [9, 10]] = -torch.inf
        return values

    def moved(layer: int, taken: Tensor) -> Tensor:
        taken = taken.clone()
        if layer == 0:
            taken[1] = 0
        if layer == 1:
            taken[2] = taken[2].mean(0, keepdim=True).expand_as(taken[2])
            taken[3] *= -0.5
        return taken

    return edits, scores, moved, (9, 10)


@pytest.mark.parametrize(
    "name",
    [
        "class",
        "mean",
        "mean of all tokens",
        "class and mean",
        "norm in the attention, mean",
        "rotary, registers, LayerScale",
    ],
)
def test_inside_an_edit_it_is_the_sum_of_the_edited_model(name: str) -> None:
    vit, pixels = model(**CASES[name]), picture()
    edits, scores, moved, removed = edits_by_hand()
    with vv.edit(**edits):
        found = decomposition(vit, pixels, target=4)
        output = float(vv.trace(vit, pixels).logits[4])
    check(found, by_hand(vit, pixels, one_hot(4), scores=scores, moved=moved, removed=removed))
    assert found.output == pytest.approx(output, abs=1e-6)
    assert abs(found.output - decomposition(vit, pixels, target=4).output) > 1e-3


def test_inside_an_edit_a_learned_pool_leaves_out_what_is_removed() -> None:
    vit, pixels = model(**CASES["attention, all tokens"]), picture()
    with vv.edit(mask_keys=[2, 9], heads={(1, 1): 0.0}):
        found = decomposition(vit, pixels, target=4)
    sums(found)
    assert not found.terms[0, :, [2, 9]].any()
    assert found.output != pytest.approx(float(vit(pixels)[0, 4]), rel=1e-4)


def test_a_question_with_edits_has_the_parts_of_the_edited_model() -> None:
    edits = {"heads": {(4, 3): 0.0, (5, 2): "mean"}}
    asked = vv.run("mini", "lion", "decomposition", target="lion", edits=edits)
    with vv.edit(**edits):
        expected = decomposition("mini", "lion", target="lion")
    sums(asked)
    assert_same(asked.terms, expected.terms)
    assert not asked.terms[4, 3].any()
    assert asked.terms[5, 2].any()


# --- models of the world


def test_of_the_bundled_model_the_parts_sum_to_the_logit() -> None:
    found = decomposition("mini", "lion")
    sums(found)
    assert found.unit == "logit of class 184 (lion)"
    assert found.output == pytest.approx(11.8509, abs=1e-3)
    assert found.heads[4, 3] == pytest.approx(0.96, abs=0.01)
    assert found.mlps[5] == pytest.approx(6.16, abs=0.01)
    assert found.finding == (
        "Half of lion comes from the last MLP; of the heads, head 3 of layer 4 gave most, from around patch (4, 7)"
    )
    assert found.note == NOTE


def test_of_a_trained_vit_tiny_the_parts_sum_to_the_logit_and_to_the_lead(shared_data: Path) -> None:
    loaded = vv.load(shared_data / "vit_tiny_patch16_224.fp16.safetensors")
    for target, mode in ((None, "crop"), (("lion", "cougar"), "fit")):
        found = decomposition(loaded, "lion", target=target, mode=mode)
        sums(found)
        assert found.heads.shape == (12, 3)


def test_asked_by_name_it_is_the_same() -> None:
    asked = vv.run("mini", "tower", "decomposition", target=("lion", "cougar"), maps="layers")
    alone = decomposition("mini", "tower", target=("lion", "cougar"), maps="layers")
    assert_same(asked.terms, alone.terms)
    assert (asked.unit, asked.layers, asked.finding) == (alone.unit, alone.layers, alone.finding)


def test_half_precision_differs_by_its_own_rounding_alone() -> None:
    vit, pixels = model(reg_tokens=1), picture()
    exact = decomposition(vit, pixels, target=4)
    found = decomposition(copy.deepcopy(vit).to(torch.bfloat16), pixels, target=4)
    largest = max(map(abs, exact.parts.values()))
    assert abs(found.total - found.output) < 0.05 * largest
    assert abs(found.total - exact.total) < 0.1 * largest
    assert abs(sum(found.parts.values()) - found.total) <= 1e-5 * largest


# --- what is refused


def test_what_has_no_such_sum_is_refused_in_a_sentence() -> None:
    with pytest.raises(ParameterError, match="A probability is no sum of parts"):
        decomposition(model(), picture(), target=Target("probability", 3))
    with pytest.raises(ParameterError, match="Class 7 does not exist"):
        decomposition(model(), picture(), target=7)
    subject = PreparedImage.of(model(), picture())
    with pytest.raises(CaptureError, match="kept the residual stream"):
        decomposition_of(subject, subject.trace())


def test_a_hook_that_changes_the_output_is_noticed() -> None:
    vit = model()
    handle = vit.head.register_forward_hook(lambda *given: given[-1] * 2)
    with pytest.raises(CaptureError, match="something other than its modules, such as a hook"):
        decomposition(vit, picture(), target=2)
    handle.remove()
    sums(decomposition(vit, picture(), target=2))


def test_numbers_that_do_not_fit_are_refused() -> None:
    found = decomposition(model(), picture(), target=2)
    values = {name: getattr(found, name) for name in Decomposition.__dataclass_fields__}
    with pytest.raises(
        ParameterError, match=r"Terms of \[3, 5, 31\] and 4 other parts are expected, not \[3, 5, 25\] and 4"
    ):
        Decomposition(**values | {"grid": (5, 6)})
    with pytest.raises(ParameterError, match="other parts are expected"):
        Decomposition(**values | {"rest_names": ("embedding",)})


# --- in words, as a table


def answer(**options: Any) -> Decomposition:
    values: dict[str, Any] = {
        "terms": np.zeros((2, 3, 1 + 100)), "heads": np.zeros((2, 3)), "mlps": np.zeros(2), "rest": np.zeros(1),
        "rest_names": ("embedding",), "total": 8.0, "output": 8.0, "layers": ("0", "1"), "grid": (10, 10),
        "prefix": ("class",), "about": "cat", "crop_box": CropBox((10, 10), (10, 10), (0.0, 0.0, 10.0, 10.0)),
    }  # fmt: skip
    return Decomposition(**values | options)


def with_heads(heads: Any, terms: Any = None, **options: Any) -> Decomposition:
    return answer(heads=np.array(heads, float), **({} if terms is None else {"terms": terms}), **options)


def test_the_finding_says_what_stands_out_and_no_more() -> None:
    even = with_heads([[1, 1, 1], [1, 1, 1]], mlps=[1, 1])
    assert even.finding == "No single part makes up a fifth of cat; no head stands out"
    assert answer(mlps=[2, 6]).finding == "Three quarters of cat comes from the last MLP; no head stands out"
    assert answer(mlps=[4.8, 3.2]).finding == "60% of cat comes from the MLP of layer 0; no head stands out"
    assert answer(mlps=[9, -1]).finding.startswith(
        "The MLP of layer 0 gives more than all of cat, and others"
    )
    against = answer(mlps=[-6, -2], total=-8.0, about="what speaks against cat")
    assert against.finding.startswith(
        "Three quarters of what speaks against cat comes from the MLP of layer 0"
    )
    pool = answer(layers=("pool",), terms=np.zeros((1, 3, 101)), heads=np.array([[1, 0, 4.4]]), mlps=[2.6])
    assert pool.finding == "55% of cat comes from head 2 of the pool"


def test_what_is_equal_to_another_is_not_named_as_the_most() -> None:
    assert answer(mlps=[4, 4]).finding == "No single part gives most of cat; no head stands out"
    pair = with_heads([[4, 0, 0], [0, 4, 0]])
    assert pair.finding == "No single part gives most of cat; no head stands out"
    beside = with_heads([[1.5, 0, 0], [0, 1.5, 0]], mlps=[0, 5])
    assert beside.finding == "62% of cat comes from the last MLP; no head stands out"
    terms = np.zeros((2, 3, 101))
    terms[1, 1, 1 + 34] = terms[1, 1, 1 + 78] = 2
    apart = with_heads([[0, 0, 0], [0, 4, 0]], terms)
    assert apart.finding == "Half of cat comes from head 1 of layer 1"
    terms[1, 1, 1 + 34] = 3
    assert with_heads([[0, 0, 0], [0, 5, 0]], terms).finding.endswith("from around patch (3, 4)")


def test_the_finding_says_from_where_only_where_a_head_took_it_from_one_place() -> None:
    heads = np.array([[0, 0, 0], [0, 4.0, 0]])
    terms = np.zeros((2, 3, 101))
    terms[1, 1, 1 + 34] = terms[1, 1, 1 + 36] = 2
    assert (
        with_heads(heads, terms).finding
        == "Half of cat comes from head 1 of layer 1, from around patch (3, 5)"
    )
    terms[1, 1, 1:] = 0.04
    assert with_heads(heads, terms).finding == "Half of cat comes from head 1 of layer 1"
    terms[1, 1] = 0.0
    terms[1, 1, 0] = 4
    assert (
        with_heads(heads, terms).finding == "Half of cat comes from head 1 of layer 1, from the class token"
    )
    registers = with_heads(heads, terms, prefix=("register 0",))
    assert registers.finding.endswith(", from register 0")
    assert (
        with_heads(heads, terms.sum(1, keepdims=True)).finding == "Half of cat comes from head 1 of layer 1"
    )
    mixed = with_heads(heads, terms, mlps=[0, 4.5])
    assert (
        mixed.finding
        == "56% of cat comes from the last MLP; of the heads, head 1 of layer 1 gave most, from the class token"
    )


@pytest.mark.parametrize("target", [0, 1])
def test_what_is_explained_is_named_by_its_sign(target: int) -> None:
    vit, pixels = model(seed=1), picture()
    logits = vit(pixels)[0]
    high, low = int(logits.argmax()), int(logits.argmin())
    assert logits[low] < 0 < logits[high]
    assert decomposition(vit, pixels, target=high).about == f"class {high}"
    assert decomposition(vit, pixels, target=low).about == f"what speaks against class {low}"
    pair = (high, low) if target else (low, high)
    assert decomposition(vit, pixels, target=pair).about == f"the lead of class {high} over class {low}"


def test_the_table_has_every_part_once_and_every_term() -> None:
    found = decomposition(model(reg_tokens=1), picture(), target=2)
    table = found.to_table()
    rows = list(table.rows)
    assert table.columns == ("part", "layer", "head", "row", "col", "value")
    parts = [row for row in rows if not row[0].startswith("from")]
    assert sum(float(row[-1]) for row in parts) == pytest.approx(found.total, rel=1e-5)
    assert [row[0] for row in parts[:4]] == list(found.rest_names)
    terms = [row for row in rows if row[0] == "from a token by head"]
    assert len(terms) == DEPTH * HEADS * 26
    assert ("from a token by head", "1", 2, 3, 5, found.maps[1, 2, 3, 5]) in terms
    assert ("from a token by head", "0", 4, "register 0", "", found.terms[0, 4, 1]) in terms


@pytest.mark.parametrize("fault", ["LayerScale twice", "no output bias", "own scale"])
def test_the_oracle_notices_errors_in_circulation(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of METHODS: LayerScale folded twice, biases left out, a norm with the scale of something else."""
    vit, pixels = model(layer_scale=True), picture()
    expected = by_hand(vit, pixels, one_hot(4))
    original = direct_parts._held
    if fault == "LayerScale twice":
        attention = direct_parts._of_attention

        def twice(block: Any, *rest: Any) -> Any:
            terms, bias = attention(block, *rest)
            return terms * block.ls1.gamma.mean(), bias

        monkeypatch.setattr(direct_parts, "_of_attention", twice)
    elif fault == "no output bias":
        monkeypatch.setattr(direct_parts, "_held", lambda *given: (*original(*given)[:2], 0.0))
    else:
        monkeypatch.setattr(direct_parts, "_held", lambda norm, x, w: original(norm, x * 1.5, w))
    with pytest.raises((AssertionError, CaptureError)):
        check(decomposition(vit, pixels, target=4), expected)
