"""Where a patch lies on the picture, in models that cut off or pad what their patches do not divide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import vit_viz as vv
from vit_viz.analyses.prepared_image import PreparedImage, patch_mask
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.errors import ParameterError
from vit_viz.figures.maps import query_marks
from vit_viz.figures.sheet import Box
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.results import PatchMap

timm = pytest.importorskip("timm", reason="timm's padding is tested here")
transformers = pytest.importorskip("transformers", reason="transformers' cut is tested here")

PATCH = (8, 12)
TIMM: dict[str, Any] = {"patch_size": PATCH, "embed_dim": 40, "depth": 2, "num_heads": 5, "num_classes": 7}


class Unfolding(nn.Module):
    """Its patches are cut out by hand; a remainder is dropped or padded."""

    def __init__(self, *, pads: bool) -> None:
        super().__init__()
        self.pads = pads
        self.embed = nn.Linear(3 * PATCH[0] * PATCH[1], 40)
        self.block = nn.TransformerEncoderLayer(40, 5, 48, batch_first=True)
        self.head = nn.Linear(40, 7)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        down, across = PATCH
        height, width = pixels.shape[-2:]
        if self.pads:
            pixels = nn.functional.pad(pixels, (0, -width % across, 0, -height % down))
        rows, cols = pixels.shape[-2] // down, pixels.shape[-1] // across
        cells = pixels[..., : rows * down, : cols * across].reshape(-1, 3, rows, down, cols, across)
        return self.head(
            self.block(self.embed(cells.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2))).mean(1)
        )

    def layout(self, height: int, width: int) -> vv.TokenLayout:
        whole = -1 if self.pads else 1
        return vv.TokenLayout(
            (whole * (whole * height // PATCH[0]), whole * (whole * width // PATCH[1])), prefix=()
        )


def of_timm(**options: Any) -> nn.Module:
    model: nn.Module = timm.create_model("vit_tiny_patch16_224", **TIMM, **options)
    return model


def of_transformers(height: int, width: int) -> nn.Module:
    sizes = {"hidden_size": 40, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 48}
    config = transformers.ViTConfig(**sizes, image_size=(height, width), patch_size=PATCH, num_labels=7)
    return transformers.ViTForImageClassification(config)


SIZE = (35, 67)  # 4.375 rows of 8 and 5.583 columns of 12
OWN: dict[str, Any] = {
    "img_size": SIZE,
    "patch_size": PATCH,
    "embed_dim": 40,
    "depth": 2,
    "num_heads": 5,
    "num_classes": 7,
}
MODULES: dict[str, tuple[Any, tuple[int, int]]] = {
    "timm, padded": (lambda: of_timm(img_size=(32, 60), dynamic_img_size=True, dynamic_img_pad=True), (5, 6)),
    "timm, cut": (lambda: of_timm(img_size=SIZE), (4, 5)),
    "transformers, cut": (lambda: of_transformers(*SIZE), (4, 5)),
    "our own, padded": (lambda: VisionTransformer(ViTConfig(**OWN, pad=True)), (5, 6)),
    "our own, cut": (lambda: VisionTransformer(ViTConfig(**OWN, drop_remainder=True)), (4, 5)),
}


@pytest.fixture(scope="module", params=MODULES)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, torch.Tensor, tuple[int, int]]:
    make, grid = MODULES[request.param]
    generator = torch.Generator().manual_seed(0)
    return make().eval(), torch.rand((1, 3, *SIZE), generator=generator), grid


def true_place(row: int, col: int) -> tuple[slice, slice]:
    return (
        slice(row * PATCH[0], min(SIZE[0], (row + 1) * PATCH[0])),
        slice(col * PATCH[1], min(SIZE[1], (col + 1) * PATCH[1])),
    )


def one_hot(like: PatchMap, row: int, col: int) -> PatchMap:
    values = np.zeros(like.grid, np.float32)
    values[row, col] = 1
    return replace(like, values=values, signed=False, value_range=(0, 1))


def lit(patch_map: PatchMap, photo: Image.Image) -> np.ndarray:
    """Which pixels of a dark photo have the colour of the highest value."""
    shown = np.asarray(patch_map.overlay(photo, style="heat", alpha=1.0, smooth=False))
    return shown[..., 0] > 200  # yellow, where the lowest value is violet


def test_a_map_of_pixels_lights_the_pixels_that_the_patch_covers(case: Any) -> None:
    module, pixels, grid = case
    of_trace = vv.attention_map(vv.trace(module, pixels), layer=1, head=2, query=(1, 2))
    of_method = vv.explain(module, pixels, target=3, methods=["relevance"])["relevance"]
    photo = Image.new("RGB", SIZE[::-1], (90, 120, 150))
    for patch_map in (of_trace, of_method):
        assert patch_map.grid == grid
        for row, col in ((0, 0), (1, 3), (grid[0] - 1, grid[1] - 1)):
            expected = np.zeros(SIZE, bool)
            expected[true_place(row, col)] = True
            np.testing.assert_array_equal(lit(one_hot(patch_map, row, col), photo), expected)


def test_a_larger_copy_of_the_picture_is_lit_in_the_same_place(case: Any) -> None:
    module, pixels, _ = case
    patch_map = vv.attention_map(vv.trace(module, pixels), layer=0, head=1, query=(0, 1))
    inside = lit(one_hot(patch_map, 1, 2), Image.new("RGB", (SIZE[1] * 9, SIZE[0] * 9)))
    rows, cols = true_place(1, 2)
    expected = np.zeros(inside.shape, bool)
    expected[rows.start * 9 : rows.stop * 9, cols.start * 9 : cols.stop * 9] = True
    np.testing.assert_array_equal(inside, expected)


def test_a_photo_whose_shape_was_rounded_to_the_pixels_is_theirs(case: Any) -> None:
    module, pixels, _ = case
    patch_map = one_hot(vv.attention_map(vv.trace(module, pixels), layer=0, head=1, query=(0, 1)), 1, 2)
    inside = lit(
        patch_map, Image.new("RGB", (1341, 697))
    )  # of which 35 x 67 is no twentieth but for rounding
    rows, cols = (np.flatnonzero(inside.any(axis)) for axis in (1, 0))
    assert (rows[0], rows[-1] + 1) == (
        pytest.approx(8 * 697 / 35, abs=1),
        pytest.approx(16 * 697 / 35, abs=1),
    )
    assert (cols[0], cols[-1] + 1) == (
        pytest.approx(24 * 1341 / 67, abs=1),
        pytest.approx(36 * 1341 / 67, abs=1),
    )


@pytest.mark.parametrize("size", [(35, 90), (60, 67), (67, 35)])
def test_a_photo_of_another_shape_than_the_pixels_is_refused_with_both(
    case: Any, size: tuple[int, int]
) -> None:
    module, pixels, _ = case
    patch_map = vv.attention_map(vv.trace(module, pixels), layer=0, head=1, query=(0, 1))
    sentence = (
        f"67 x 35 pixels; this one, {size[1]} x {size[0]}, has another shape: .* as the model received it"
    )
    with pytest.raises(ParameterError, match=sentence):
        patch_map.overlay(Image.new("RGB", size[::-1]))


def test_each_pixel_counts_with_the_patch_that_covers_it(case: Any) -> None:
    module, pixels, grid = case
    subject = PreparedImage.of(module, pixels)
    assert subject.patch_size == PATCH
    index = patch_mask(subject)[0, 0]
    for row, col in ((0, 0), (2, 1), (3, 4)):
        rows, cols = true_place(row, col)
        assert set(index[rows, cols].flatten().tolist()) == {row * grid[1] + col}


def test_without_a_patch_the_answer_does_not_depend_on_its_pixels(case: Any) -> None:
    """By gradients: what reaches the first layer's token lies in the rectangle that is drawn for it."""
    module, pixels, grid = case
    box = PreparedImage.of(module, pixels).crop_box
    assert box is not None
    embed = getattr(module, "patch_embed", None) or module.vit.embeddings.patch_embeddings
    moving = pixels.clone().requires_grad_()
    tokens = embed(moving).reshape(1, -1, 40)
    for row, col in ((0, 0), (1, 3), (grid[0] - 1, grid[1] - 1)):
        (slope,) = torch.autograd.grad(tokens[0, row * grid[1] + col].sum(), moving, retain_graph=True)
        rows, cols = (torch.nonzero(slope[0].abs().sum((0, axis)))[:, 0] for axis in (2, 1))
        top, left, bottom, right = box.patch_rect(row, col, grid)
        assert (rows[0], cols[0]) == (pytest.approx(top), pytest.approx(left))
        assert (rows[-1] + 1, cols[-1] + 1) == (min(SIZE[0], round(bottom)), min(SIZE[1], round(right)))


@pytest.mark.parametrize("mode", ["crop", "stretch"])
@pytest.mark.parametrize("pads", [True, False])
def test_a_lit_patch_of_a_photo_lights_its_token_alone(mode: Any, pads: bool) -> None:
    """Of a module that nothing says anything of but its recipe; the photo itself shows where the patch lies."""
    module, recipe = Unfolding(pads=pads).eval(), Preprocess(SIZE, PATCH, resize_to=41, interpolation="box")
    model = plain_module(module, preprocess=recipe)
    size = (350 * 3, 670 * 2)
    dark = Image.new("RGB", size[::-1])
    traced = vv.trace(model, dark, mode=mode)
    assert traced.crop_box is not None
    grid = traced.layout.grid
    assert grid == ((5, 6) if pads else (4, 5))
    before = tokens_of(module, recipe, dark, mode)
    for row, col in ((0, 0), (2, 3), (grid[0] - 1, grid[1] - 1)):
        top, left, bottom, right = traced.crop_box.patch_rect(row, col, grid)
        photo = dark.copy()
        photo.paste("white", (round(left) + 40, round(top) + 40, round(right) - 40, round(bottom) - 40))
        moved = (tokens_of(module, recipe, photo, mode) - before).abs().sum(-1)[0]
        assert torch.nonzero(moved).flatten().tolist() == [row * grid[1] + col]


def tokens_of(module: Unfolding, recipe: Preprocess, photo: Image.Image, mode: Any) -> torch.Tensor:
    kept = []
    handle = module.embed.register_forward_hook(lambda _module, _given, tokens: kept.append(tokens))
    with torch.no_grad():
        module(recipe.apply(photo, mode=mode).pixels)
    handle.remove()
    return kept[0]


def test_occlusion_of_pixels_that_leave_a_remainder_paints_whole_patches() -> None:
    module, pixels = Unfolding(pads=False).eval(), torch.rand(1, 3, *SIZE)
    model = plain_module(module, preprocess=Preprocess(SIZE, PATCH))
    scores = vv.explain(model, pixels, target=3, methods=["occlusion"])["occlusion"]
    with torch.no_grad():
        whole = module(pixels)[0, 3]
        for row, col in ((0, 0), (3, 4)):
            without = pixels.clone()
            rows, cols = slice(row * 8, row * 8 + 8), slice(col * 12, col * 12 + 12)
            without[..., rows, cols] = 0
            torch.testing.assert_close(torch.tensor(scores.values[row, col]), whole - module(without)[0, 3])


def test_where_nothing_tells_what_becomes_of_the_rest_a_trace_says_so() -> None:
    recorded = vv.trace(Unfolding(pads=False).eval(), torch.rand(1, 3, *SIZE))
    assert any("beyond whole patches is not known" in problem for problem in recorded.problems)
    told = vv.trace(
        plain_module(Unfolding(pads=False).eval(), preprocess=Preprocess(SIZE, PATCH)),
        torch.rand(1, 3, *SIZE),
    )
    assert not any("whole patches" in problem for problem in told.problems)


def test_a_figure_of_pixels_on_another_picture_says_how_it_is_placed(case: Any, tmp_path: Any) -> None:
    module, pixels, grid = case
    patch_map = vv.attention_map(vv.trace(module, pixels), layer=0, head=1, query=(grid[0] - 1, 0))
    photo = Image.new("RGB", SIZE[::-1], (90, 120, 150))
    said = {}
    for name, picture in (("same", photo), ("larger", photo.resize((134, 70)))):
        patch_map.save(tmp_path / f"{name}.svg", image=picture)
        said[name] = "as if the model had received all" in " ".join(
            (tmp_path / f"{name}.svg").read_text().split()
        )
    assert said == {"same": False, "larger": True}
    frames = [mark for mark in query_marks(patch_map, {}, photo.size, width=67.0) if isinstance(mark, Box)]
    assert frames
    assert all(one.top >= 0 and one.top + one.height <= SIZE[0] + 1e-6 for one in frames)
