"""Maps of sentences by value paths: each published one against its authors' equations, written again here, on random weights."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from tests import kinds
from tests.comparing import assert_same
from vit_viz.analyses.value_paths import (
    INVERTED,
    PROBE,
    VALUE_PATHS,
    ValuePath,
    sentence_overlap,
    sentence_patches,
)
from vit_viz.capture import edit
from vit_viz.errors import CaptureError, ParameterError

pytestmark = pytest.mark.numbers

SENTENCES = ("a dog", "grass", "a red circle")
OWN = VALUE_PATHS["the model's own last vectors"]


class Tower:
    """Embeddings of sentences that are random, but always the same."""

    def __init__(self, scale=12.0, bias=0.0, sigmoid=False, width=7):
        self.scale, self.bias, self.sigmoid, self.width = scale, bias, sigmoid, width

    def encode(self, sentences, _templates):
        seeds = (torch.Generator().manual_seed(sum(map(ord, one))) for one in sentences)
        rows = [torch.randn(self.width, generator=seed) for seed in seeds]
        return F.normalize(torch.stack(rows), dim=-1)


def asked(tower=None, sentences=SENTENCES, **options):
    """A tiny model of random weights whose classes are sentences."""
    loaded = kinds.loaded(**options, projection=True)
    return replace(loaded, text=tower or Tower(), labels=None).with_prompts(sentences)


def pixels_of(loaded):
    torch.manual_seed(4)
    return torch.randn(1, loaded.config.in_chans, *loaded.config.img_size)


# --- the authors' equations


def heads_of(attn, x):
    """q, k and v of the tokens [tokens, dim], each [heads, tokens, head_dim]."""
    return [
        part.reshape(len(x), attn.num_heads, -1).transpose(0, 1)
        for part in F.linear(x, attn.qkv.weight, attn.qkv.bias).chunk(3, dim=-1)
    ]


def nearness(layout, deviation=5.0):
    """What NACLIP adds to the scores of patches, place by place."""
    rows, cols = layout.grid
    added = torch.zeros(layout.num_tokens, layout.num_tokens)
    for i in range(rows * cols):
        for j in range(rows * cols):
            squared = (i // cols - j // cols) ** 2 + (i % cols - j % cols) ** 2
            place = (layout.num_prefix + i, layout.num_prefix + j)
            added[place] = math.exp(-squared / (2 * deviation**2))
    return added


def attended(name, q, k, v, x, scale, layout):
    """What the heads gather, before the output projection."""

    def alike(a, added=0):
        return (torch.bmm(a, a.transpose(1, 2)) * scale + added).softmax(-1)

    if name == "MaskCLIP":
        return v
    if name == "ClearCLIP":
        return alike(q) @ v
    if name == "SCLIP":
        return (alike(q) + alike(k)) @ v
    if name == "NACLIP":
        return alike(k, nearness(layout)) @ v
    assert name == "GEM"
    inverse = x.norm(dim=-1).mean()
    gathered = []
    for one in (v, k, q):
        one = F.normalize(one, dim=-1)
        one = (torch.bmm(one, one.transpose(1, 2)) * scale * inverse).softmax(-1) @ one
        one = F.normalize(one, dim=-1)
        gathered.append((torch.bmm(one, one.transpose(1, 2)) * scale * inverse).softmax(-1) @ v)
    return sum(gathered) / 3


def published(name, model, pixels, blocks=1):
    """Cosines of all tokens with the sentences, [sentences, tokens]."""
    grid = model.grid_of(*pixels.shape[-2:])
    layout, places = model.layout(*pixels.shape[-2:]), model.places(grid)
    x = model.tokens(pixels)
    first = len(model.blocks) - blocks
    for block in model.blocks[:first]:
        x = block(x, places)
    y = x[0]  # of GEM alone: what is read runs beside the model
    for block in model.blocks[first:]:
        inside, attn = block.norm1(x[0]), block.attn
        o = attended(name, *heads_of(attn, inside), inside, attn.scale, layout)
        out = block.ls1(attn.proj(o.transpose(0, 1).flatten(1)))
        if name == "SCLIP":
            y = y + out
            y = y + block.ls2(block.mlp(block.norm2(y)))
        else:
            y = y + out if name == "GEM" else out
        x = block(x, places)
    features = model.head.projection(model.fc_norm(model.norm(y)))
    return F.cosine_similarity(features[None], model.head.directions[:, None], dim=-1)


def both(maps):
    """The cosines of all tokens in order, [sentences, tokens]: prefix tokens first."""
    prefix = np.array([maps.named[name] for name in maps.named]).T.reshape(len(maps.values), -1)
    return np.concatenate((prefix, maps.values.reshape(len(maps.values), -1)), axis=1)


@pytest.mark.parametrize("name", ["MaskCLIP", "ClearCLIP", "SCLIP", "NACLIP", "GEM"])
@pytest.mark.parametrize(
    "options",
    [{}, {"reg_tokens": 4, "layer_scale": True}, {"pre_norm": True, "mlp": "quick_gelu", "scale": 0.5}],
    ids=str,
)
def test_each_equals_its_authors_equations(name, options):
    loaded = asked(**options)
    pixels = pixels_of(loaded)
    blocks = 2 if name == "GEM" else 1  # of three
    with torch.no_grad():
        if "layer_scale" in options:
            for block in loaded.model.blocks:
                block.ls1.gamma.normal_()
                block.ls2.gamma.normal_()
        expected = published(name, loaded.model, pixels, blocks)
    found = sentence_patches(loaded, pixels, path=replace(VALUE_PATHS[name], blocks=blocks))
    assert_same(both(found.maps), expected.numpy(), relative=5e-5)
    assert found.maps.note == PROBE


@pytest.mark.parametrize(("residual", "mlp"), [(False, True), (True, False), (True, True)])
def test_residual_and_mlp_are_kept_as_asked(residual, mlp):
    loaded = asked()
    model, pixels = loaded.model, pixels_of(loaded)
    with torch.no_grad():
        x, block = model.run_blocks(model.tokens(pixels), (4, 6), stop=2)[0], model.blocks[2]
        _, _, v = heads_of(block.attn, block.norm1(x))
        gathered = (v @ v.transpose(1, 2) * block.attn.scale).softmax(-1) @ v
        y = block.attn.proj(gathered.transpose(0, 1).flatten(1)) + (x if residual else 0)
        y = y + block.mlp(block.norm2(y)) if mlp else y
        features = model.head.projection(model.norm(y))
        expected = F.cosine_similarity(features[None], model.head.directions[:, None], dim=-1)
    path = ValuePath("v-v", prior=0, residual=residual, mlp=mlp)
    assert_same(both(sentence_patches(loaded, pixels, path=path).maps), expected.numpy(), relative=5e-5)


# --- identities


@pytest.mark.parametrize(
    "options", [{"position": "rotary", "qk_norm": True}, {"relative_bias": True}], ids=str
)
@pytest.mark.parametrize("blocks", [1, 3])
def test_with_all_of_its_own_the_class_token_says_what_the_model_says(options, blocks):
    loaded = asked(**options)
    pixels = pixels_of(loaded)
    found = sentence_patches(loaded, pixels, path=replace(OWN, blocks=blocks))
    with torch.no_grad():
        logits = loaded.model(pixels)[0]
    assert_same(12.0 * found.maps.named["class"], logits.numpy(), relative=5e-5)
    assert found.maps.note == (INVERTED if blocks == 1 else PROBE)


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_where_one_patch_is_left_its_map_is_the_answer(pooling):
    loaded = asked(class_token=False, pooling=pooling)
    pixels = pixels_of(loaded)
    with edit(mask_keys=[patch for patch in range(24) if patch != 9]):
        found = sentence_patches(loaded, pixels, path=OWN)
        with torch.no_grad():
            logits = loaded.model(pixels)[0]
    assert_same(12.0 * found.maps.values.reshape(3, -1)[:, 9], logits.numpy(), relative=5e-5)


def test_a_class_token_that_sees_one_patch_says_what_the_patch_hands_on():
    loaded = asked()
    pixels, seen = pixels_of(loaded), 9
    identity = sentence_patches(loaded, pixels, path=VALUE_PATHS["MaskCLIP"])
    with edit(knockout={2: [(0, key) for key in range(25) if key != 1 + seen]}):
        own = sentence_patches(loaded, pixels, path=ValuePath("own", prior=0))
    assert_same(own.maps.named["class"], identity.maps.values.reshape(3, -1)[:, seen], relative=5e-5)


def test_of_a_learned_pool_the_value_path_is_read():
    loaded = asked(class_token=False, pooling="attention", reg_tokens=2)
    model, pixels = loaded.model, pixels_of(loaded)
    pool = model.attn_pool
    with torch.no_grad():
        x = model.norm(model.run_blocks(model.tokens(pixels), (4, 6)))[0]
        y = pool.proj(pool.kv(x)[:, 40:])
        y = model.head.projection(y + pool.mlp(pool.norm(y)))
        expected = F.cosine_similarity(y[None], model.head.directions[:, None], dim=-1)
    assert_same(both(sentence_patches(loaded, pixels, path=OWN).maps), expected.numpy(), relative=5e-5)


def test_a_wide_prior_is_none_and_a_narrow_one_looks_around_the_patch():
    loaded = asked()
    pixels = pixels_of(loaded)

    def by(deviation):
        return sentence_patches(loaded, pixels, path=ValuePath(prior=deviation)).maps.values

    # exp(-d^2 / 5000) is 1 for all patches: only the class token's score is lower by it
    layout = loaded.model.layout(*pixels.shape[-2:])
    assert nearness(layout, 50.0)[1:, 1:].min() > 0.99
    assert np.abs(by(0.5) - by(0)).max() > 10 * np.abs(by(50) - by(40)).max()


# --- best sentence


def test_the_best_sentence_is_that_of_the_largest_cosine():
    loaded = asked()
    found = sentence_patches(loaded, pixels_of(loaded))
    assert np.array_equal(found.best, found.maps.values.argmax(0))
    assert found.maps.names == SENTENCES
    sizes = np.bincount(found.best.ravel(), minlength=3)
    best = int(sizes.argmax())
    assert f"“{SENTENCES[best]}” on {sizes[best]}" in found.to_words()


def test_cosines_are_without_the_bias_of_a_siglip():
    shape = {"class_token": False, "pooling": "attention"}
    plain, biased = (asked(Tower(bias=bias, sigmoid=True), **shape) for bias in (0.0, -3.0))
    expected = sentence_patches(plain, pixels_of(plain)).maps.values
    assert_same(sentence_patches(biased, pixels_of(biased)).maps.values, expected, relative=2e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_and_no_more(dtype):
    loaded = asked()
    pixels = pixels_of(loaded)
    exact = sentence_patches(loaded, pixels, path=VALUE_PATHS["SCLIP"])
    rounded = replace(loaded, model=loaded.model.to(dtype))
    half = sentence_patches(rounded, pixels, path=VALUE_PATHS["SCLIP"])
    assert 0 < np.abs(half.maps.values - exact.maps.values).max() < 20 * torch.finfo(dtype).eps


# --- edits


def test_edits_of_earlier_layers_hold():
    loaded = asked()
    pixels = pixels_of(loaded)
    plain = sentence_patches(loaded, pixels)
    with edit(heads={(0, 1): 0.0, (1, 2): "mean"}):
        edited = sentence_patches(loaded, pixels)
        with torch.no_grad():
            x = loaded.model.run_blocks(loaded.model.tokens(pixels), (4, 6), stop=2)
    with torch.no_grad():
        unedited = loaded.model.run_blocks(loaded.model.tokens(pixels), (4, 6), stop=2)
        # what the last block is given decides
        block, layout = loaded.model.blocks[2], loaded.model.layout(*pixels.shape[-2:])
        inside = block.norm1(x[0])
        o = attended("NACLIP", *heads_of(block.attn, inside), inside, block.attn.scale, layout)
        y = loaded.model.head.projection(loaded.model.norm(block.attn.proj(o.transpose(0, 1).flatten(1))))
        expected = F.cosine_similarity(y[None], loaded.model.head.directions[:, None], dim=-1)
    assert not torch.allclose(x, unedited)
    assert_same(both(edited.maps), expected.numpy(), relative=5e-5)
    assert np.abs(edited.maps.values - plain.maps.values).max() > 1e-3


@pytest.mark.parametrize(
    "changes", [{"heads": {(2, 1): 0.0}}, {"mask_keys": [3]}, {"temperature": {2: 2.0}}], ids=str
)
def test_edits_of_an_attention_that_is_replaced_are_refused_and_of_its_own_they_hold(changes):
    loaded = asked()
    pixels = pixels_of(loaded)
    with edit(**changes):
        with pytest.raises(ParameterError, match="attention of layer 2 is replaced"):
            sentence_patches(loaded, pixels)
        found = sentence_patches(loaded, pixels, path=OWN)
        with torch.no_grad():
            logits = loaded.model(pixels)[0]
    assert_same(12.0 * found.maps.named["class"], logits.numpy(), relative=5e-5)


# --- refusals, and objects


def test_a_model_of_classes_is_refused_in_a_sentence():
    loaded = kinds.loaded()
    with pytest.raises(ParameterError, match=r"needs sentences.*name some as sentences"):
        sentence_patches(loaded, pixels_of(loaded))


def test_a_model_with_a_part_of_another_class_is_refused_in_a_sentence():
    loaded = asked()
    loaded.model.blocks[2].mlp = torch.nn.Sequential(loaded.model.blocks[2].mlp)
    with pytest.raises(CaptureError, match="a part of another class"):
        sentence_patches(loaded, pixels_of(loaded))


def test_more_blocks_than_there_are_is_refused():
    loaded = asked()
    with pytest.raises(ParameterError, match="6 blocks cannot run in another way: this model has 3"):
        sentence_patches(loaded, pixels_of(loaded), path=VALUE_PATHS["GEM"])


def test_overlap_of_the_best_patches_with_masks_by_hand():
    loaded = asked()
    found = sentence_patches(loaded, Image.new("RGB", (36, 16), (90, 40, 10)))
    best = np.array([[0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2] * 6, [2] * 6])
    found = replace(found, best=best)
    dog, grass = np.zeros((2, 16, 36), bool)
    dog[:8, :18] = True  # three columns of the upper two rows, of which two are found
    grass[4:16, 12:] = True  # twelve patches, of which four are found, and four beside
    masks = {"grass": grass, "a dog": dog}
    assert_same(sentence_overlap(found, masks), [4 / 16, 4 / 6], relative=1e-6)
    with pytest.raises(ParameterError, match="no map of 'a cat'"):
        sentence_overlap(found, {"a cat": dog})
    with pytest.raises(ParameterError, match="36 x 16"):
        sentence_overlap(found, {"a dog": dog[:, :20]})
    with pytest.raises(ParameterError, match="crop box"):
        sentence_overlap(replace(found, maps=replace(found.maps, crop_box=None)), masks)


def test_the_documentation_has_each_published_setting():
    page = (Path(__file__).resolve().parents[2] / "docs" / "METHODS.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()]
    written = {row[0].removesuffix(" (the usual one)"): row[2:] for row in rows if len(row) == 6}
    for name, path in VALUE_PATHS.items():
        near = f"{path.prior:g} patches" if path.prior else "no"
        kept = ["yes" if one else "no" for one in (path.residual, path.mlp)]
        assert written[name] == [near, *kept, str(path.blocks)]
