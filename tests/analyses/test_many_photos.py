"""Numbers of many photos: those of each photo alone, from the analyses that the tabs show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.capture.models import own, pixels, timm_vit, transformers_vit
from tests.comparing import assert_same
from vit_viz.analyses import head_sums, many_photos
from vit_viz.analyses.attention import mosaic_maps
from vit_viz.analyses.heads import head_table
from vit_viz.analyses.localisation import object_on_grid
from vit_viz.analyses.many_photos import MEASURES, PhotoNumbers, begun_numbers
from vit_viz.analyses.norms import token_norms
from vit_viz.capture import layers, trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, TokenLayout

pytestmark = pytest.mark.numbers

PHOTOS = 3
MODELS = {
    "class token": own,
    "registers": lambda: own(reg_tokens=2),
    "mean of patches": lambda: own(pooling="mean", class_token=False),
    "attention pooling": lambda: own(pooling="attention", class_token=False),
    "timm": timm_vit,
    "written out": lambda: transformers_vit("eager"),
}
BATCHED = {"class token", "registers", "mean of patches", "timm"}


@pytest.mark.parametrize("name", MODELS)
def test_the_numbers_of_a_batch_are_those_of_each_photo_alone(name):
    module, images = MODELS[name](), pixels(PHOTOS)
    layout = trace(module, images[:1]).layout
    numbers = begun_numbers(module, images, layout=layout)()
    assert numbers.batched == (name in BATCHED)
    for i in range(PHOTOS):
        alone = trace(module, images[i : i + 1], keep_residual=True)
        assert_same(numbers.logits[i], alone.logits.numpy())
        maps = mosaic_maps(alone, query=alone.output_query())
        assert_same(numbers.maps[i].reshape(maps.shape), maps)
        for measure in MEASURES:
            expected = head_table(alone, measure=measure, patch_size=(16, 16)).values
            assert_same(numbers.tables[measure][i], expected, floor=1e-12, what=measure)
        assert_same(numbers.norms[i], alone.residual.norm(dim=-1).numpy())


@pytest.mark.parametrize("name", sorted(BATCHED))
@pytest.mark.parametrize(("room", "sizes"), [(0, [1, 1, 1]), (2, [2, 1]), (2.99, [2, 1]), (3, [3])])
def test_layers_side_by_side_give_the_same_and_fill_no_more_than_a_tile(monkeypatch, name, room, sizes):
    module, images, seen = MODELS[name](), pixels(PHOTOS), []
    first = trace(module, images[:1])
    alone = begun_numbers(module, images, layout=first.layout)()
    heads, tokens = first.num_heads, first.num_tokens

    def noted(given, names):
        seen.append(given.trace.layers[given.layer].shape[0] // (PHOTOS * heads))
        return head_sums.layer_sums(given, names)

    monkeypatch.setitem(layers.STACK_BYTES, "cpu", room * PHOTOS * heads * tokens * tokens * 4)
    monkeypatch.setattr(many_photos, "layer_sums", noted)
    stacked = begun_numbers(module, images, layout=first.layout)()
    assert seen == sizes
    assert_same(stacked.maps, alone.maps)
    assert_same(stacked.norms, alone.norms)
    for measure in MEASURES:
        assert_same(stacked.tables[measure], alone.tables[measure], floor=1e-12, what=measure)


def test_layers_of_another_scale_or_with_a_bias_do_not_stand_beside_each_other():
    q, k = torch.randn(2, 5, 7, 3)
    plain = layers.LayerAttention(q, k, 0.3)
    both = layers.side_by_side([plain, layers.LayerAttention(k, q, 0.3)])
    assert_same(both.rows(None, None)[:5], plain.rows(None, None))
    assert_same(both.rows(None, None)[5:], layers.LayerAttention(k, q, 0.3).rows(None, None))
    assert plain.fits_beside(layers.LayerAttention(k, q, 0.3))
    others = [
        layers.LayerAttention(q, k, 0.4),
        layers.LayerAttention(q[:4], k[:4], 0.3),
        layers.LayerAttention(q, k, 0.3, bias=torch.zeros(1, 1, 7)),
        layers.LayerAttention(q, k, 0.3, lse=plain.normaliser()),
        layers.LayerAttention(weights=torch.ones(5, 7, 7) / 7),
    ]
    assert [plain.fits_beside(other) or other.fits_beside(plain) for other in others] == [False] * 5


def numbers_of(maps, norms=None, logits=None):
    maps = np.asarray(maps, dtype=np.float32)[:, None, None]  # [photos, rows, cols] of one head
    layout = TokenLayout(grid=maps.shape[3:], prefix=("class",))
    return PhotoNumbers(logits, {}, maps, norms, layout, batched=True)


def test_a_map_of_one_patch_is_concentrated_and_an_even_one_is_not():
    numbers = numbers_of(
        [[[0, 0, 0], [0, 0.5, 0]], [[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]], [[0.2, 0.2, 0], [0, 0, 0]]]
    )
    assert_same(numbers.concentrations[:, 0, 0], [1, 0, 1 - np.log(2) / np.log(6)], floor=1e-6)


def test_the_peak_is_the_first_of_the_highest_patches():
    numbers = numbers_of([[[0, 0.3, 0], [0, 0.3, 0]], [[0, 0, 0], [0.1, 0, 0.2]]])
    assert numbers.peaks[:, 0, 0].tolist() == [[0, 1], [1, 2]]


def test_the_share_inside_counts_parts_of_patches():
    """A box over the left half of the input's second column: half of that patch's weight, of 0.8 on patches."""
    numbers = numbers_of([[[0.1, 0.4, 0.1], [0, 0.2, 0]]])
    box = CropBox((20, 30), (20, 30), (0, 0, 20, 30))
    inside = object_on_grid(box, (2, 3), boxes=[(10, 0, 15, 10)]).share
    assert_same(numbers.share_inside(0, inside), [[0.2 / 0.8]])


def test_outliers_are_those_of_the_tokens_tab():
    module, images = own(), pixels(PHOTOS)
    with torch.no_grad():
        module.pos_embed[0, 5] += 900
    numbers = begun_numbers(module, images, layout=module.layout(*images.shape[-2:]))()
    assert numbers.outliers(1)[0] == [5]
    for i in range(PHOTOS):
        alone = token_norms(trace(module, images[i : i + 1], keep_residual=True))
        assert numbers.outliers(i) == [list(tokens) for tokens in alone.outliers]


def test_the_highest_outputs_come_in_order_and_their_softmax_sums_to_one():
    numbers = numbers_of([[[0, 1]]], logits=np.array([[1.0, 3.0, 2.0, 3.0]], dtype=np.float32))
    assert numbers.highest(0, 3) == [1, 3, 2]
    probabilities = numbers.shown(0, "softmax")
    assert_same(probabilities.sum(-1), 1.0)
    assert_same(probabilities[1] / probabilities[0], np.exp(2.0))


def test_a_model_without_scores_says_so():
    with pytest.raises(ParameterError, match="no scores"):
        numbers_of([[[0, 1]]]).shown(0, "softmax")


def test_batches_side_by_side_are_one_batch():
    module, images = own(), pixels(PHOTOS)
    layout = module.layout(*images.shape[-2:])
    parts = [begun_numbers(module, part, layout=layout)() for part in (images[:2], images[2:])]
    whole, joined = begun_numbers(module, images, layout=layout)(), PhotoNumbers.joined(parts)
    assert joined.maps.shape == whole.maps.shape
    assert_same(joined.maps, whole.maps)
    assert_same(joined.logits, whole.logits)
    assert_same(joined.tables["entropy"], whole.tables["entropy"])
