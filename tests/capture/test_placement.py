"""Which token is which patch, asked of models that pad their image or attend within windows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.capture.placement import check_placement, find_layout
from vit_viz.capture.report import HOLDS
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

DOWN, ACROSS, DIM = 4, 6, 8


class Embedded(nn.Module):
    """Patches of 4 x 6 pixels, the image padded to whole ones; one head looks at all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, (DOWN, ACROSS), (DOWN, ACROSS))

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[-2:]
        x = self.embed(F.pad(image, (0, -width % ACROSS, 0, -height % DOWN))).flatten(2).transpose(1, 2)
        return self.attend(x)

    def attend(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])


class Cut(Embedded):
    """What is no whole patch is cut off."""

    def forward(self, image: Tensor) -> Tensor:
        return self.attend(self.embed(image).flatten(2).transpose(1, 2))


class ByHand(Embedded):
    """The size of a patch is nowhere to be read."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(self.embed.weight.detach().flatten(1))
        del self.embed

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[-2:]
        padded = F.pad(image, (0, -width % ACROSS, 0, -height % DOWN))
        return self.attend(
            F.unfold(padded, (DOWN, ACROSS), stride=(DOWN, ACROSS)).transpose(1, 2) @ self.weight.T
        )


class Overlapping(Embedded):
    """Pixels reach the tokens around their own, a little; two tokens stand before the patches, which stand in another order."""

    def __init__(self, order: list[int]) -> None:
        super().__init__()
        self.order = order

    def forward(self, image: Tensor) -> Tensor:
        around = F.avg_pool2d(image, 3, stride=1, padding=1)
        x = self.embed(image + 0.1 * around).flatten(2).transpose(1, 2)
        return self.attend(torch.cat([torch.zeros_like(x[:, :2]), x[:, self.order]], 1))


class InWindows(Embedded):
    """Three windows of equally many tokens, which stand beside the images."""

    def attend(self, x: Tensor) -> Tensor:
        return super().attend(x.reshape(-1, x.shape[1] // 3, DIM))


@pytest.mark.parametrize(
    ("height", "width", "grid"),
    [(8, 30, (2, 5)), (8, 31, (2, 6)), (9, 30, (3, 5)), (3, 21, (1, 4)), (2, 5, (1, 1))],
)
def test_the_grid_of_a_padded_image_is_found(height: int, width: int, grid: tuple[int, int]) -> None:
    found = find_layout(Embedded(), torch.randn(1, 3, height, width), grid[0] * grid[1])
    assert found == (grid, 0, 0)


@pytest.mark.parametrize(("height", "width"), [(11, 30), (8, 35), (11, 35)])
def test_the_grid_of_an_image_that_is_cut_is_found(height: int, width: int) -> None:
    assert find_layout(Cut(), torch.randn(1, 3, height, width), 10) == ((2, 5), 0, 0)


@pytest.mark.parametrize(("height", "width"), [(10, 30), (12, 26), (10, 26), (12, 30)])
def test_patches_of_a_padded_image_are_found_where_no_part_of_the_model_says_their_size(
    height: int, width: int
) -> None:
    assert check_placement(ByHand(), torch.randn(1, 3, height, width), TokenLayout((3, 5), ())) == HOLDS


def test_another_number_of_tokens_than_the_patches_is_no_layout() -> None:
    assert find_layout(Embedded(), torch.randn(1, 3, 8, 30), 11) is None


class Reshaped(Embedded):
    """Patches cut by an expression: no part of the model says their size. Tokens in `order`, others before and after them."""

    def __init__(
        self, cut: Callable[[Tensor], Tensor], order: list[int], before: int = 0, after: int = 0
    ) -> None:
        super().__init__()
        self.cut, self.order, self.filled = cut, order, (0, 0, before, after)
        self.weight = nn.Parameter(self.embed.weight.detach().flatten(1))
        del self.embed

    def forward(self, image: Tensor) -> Tensor:
        return self.attend(F.pad((self.cut(image) @ self.weight.T)[:, self.order], self.filled))


def by_reshaping(image: Tensor) -> Tensor:
    batch, channels, height, width = image.shape
    cut = image.reshape(batch, channels, height // DOWN, DOWN, width // ACROSS, ACROSS)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


def by_unfolding(image: Tensor) -> Tensor:
    return F.unfold(image, (DOWN, ACROSS), stride=(DOWN, ACROSS)).transpose(1, 2)


def cut_off(image: Tensor) -> Tensor:
    return by_reshaping(image[..., : image.shape[2] // DOWN * DOWN, : image.shape[3] // ACROSS * ACROSS])


ROW_BY_ROW = [*range(15)]
COLUMN_BY_COLUMN = [5 * row + col for col in range(5) for row in range(3)]
SERPENTINE = [*range(5), *range(9, 4, -1), *range(10, 15)]


@pytest.mark.parametrize("cut", [by_reshaping, by_unfolding])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 0), (0, 3), (1, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_grid_of_patches_that_no_convolution_cuts_is_measured(
    cut: Callable[[Tensor], Tensor], before: int, after: int, dtype: torch.dtype
) -> None:
    model = Reshaped(cut, ROW_BY_ROW, before, after).to(dtype)
    found = find_layout(model, torch.randn(1, 3, 12, 30, dtype=dtype), before + 15 + after)
    assert found == ((3, 5), before, after)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (COLUMN_BY_COLUMN, r"token 3, which would be patch \(0, 1\), answers to patch \(1, 0\)"),
        (SERPENTINE, r"token 7, which would be patch \(1, 0\), answers to patch \(1, 4\)"),
    ],
)
def test_patches_in_another_order_get_no_layout(order: list[int], words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        find_layout(Reshaped(by_reshaping, order, before=2), torch.randn(1, 3, 12, 30), 17)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(6, 4, 1), (7, 3, 3), (5, 5, 0), (4, 2, 3)])
def test_the_grid_of_patches_that_overlap_is_measured(kernel: int, stride: int, padding: int) -> None:
    class Overlapped(Embedded):
        def forward(self, image: Tensor) -> Tensor:
            patches = F.unfold(image, kernel, stride=stride, padding=padding).transpose(1, 2)
            return self.attend(patches @ torch.linspace(-1, 1, patches.shape[2] * DIM).view(-1, DIM))

    rows, cols = ((side + 2 * padding - kernel) // stride + 1 for side in (15, 25))
    assert find_layout(Overlapped(), torch.randn(1, 3, 15, 25), rows * cols) == ((rows, cols), 0, 0)


def test_what_reaches_every_token_has_no_grid() -> None:
    class Stirred(Reshaped):
        def attend(self, x: Tensor) -> Tensor:
            return super().attend(x + x.mean(1, keepdim=True))

    with pytest.raises(
        ParameterError, match=r"Each of the 15 tokens that Stirred .* all over the image.*channels"
    ):
        find_layout(Stirred(by_reshaping, ROW_BY_ROW), torch.randn(1, 3, 12, 30), 15)


def test_patches_of_a_cut_image_are_found_where_no_part_of_the_model_says_their_size() -> None:
    model = Reshaped(cut_off, ROW_BY_ROW)  # of 15 x 35 pixels, where patches of 5 x 7 would fit, too
    assert check_placement(model, torch.randn(1, 3, 15, 35), TokenLayout((3, 5), ())) == HOLDS


@pytest.mark.parametrize("after", ["bhij,hg->bgij", "hg,bgij->bhij", "ij h g"])
def test_scores_that_are_mixed_over_heads_are_no_windows(after: str) -> None:
    class Talking(Embedded):
        def attend(self, x: Tensor) -> Tensor:
            heads = x.unflatten(2, (4, 2)).transpose(1, 2)
            scores = torch.einsum("bhid,bhjd->bhij", heads, heads) * 0.7
            mix = torch.linspace(-1, 2, 16).view(4, 4)
            if " " in after:
                scores = (scores.permute(0, 2, 3, 1) @ mix).permute(0, 3, 1, 2)
            else:
                scores = torch.einsum(after, *((scores, mix) if after[0] == "b" else (mix, scores)))
            return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), heads)

    pixels, layout = torch.randn(1, 3, 20, 30), TokenLayout((5, 5), ())
    assert check_placement(Talking(), pixels, layout) == HOLDS
    assert find_layout(Talking(), pixels, 25) == ((5, 5), 0, 0)


def test_windows_beside_the_images_are_named() -> None:
    pixels = torch.randn(1, 3, 12, 30)
    for grid in ((3, 5), (1, 5)):
        with pytest.raises(CaptureError, match="windows stand in the place of heads"):
            check_placement(InWindows(), pixels, TokenLayout(grid=grid, prefix=()))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([*range(14, -1, -1)], r"token 16, which would be patch \(2, 4\), answers to patch \(0, 0\)"),
        ([0, *range(14, 0, -1)], r"token 15, which would be patch \(2, 3\), answers to patch \(0, 2\)"),
    ],
)
def test_a_token_of_another_patch_is_named_also_where_pixels_reach_further(
    order: list[int], words: str
) -> None:
    layout = TokenLayout(grid=(3, 5), prefix=("class", "register 0"))
    assert check_placement(Overlapping([*range(15)]), torch.randn(1, 3, 12, 30), layout).status == "fails"
    with pytest.raises(CaptureError, match=words):
        check_placement(Overlapping(order), torch.randn(1, 3, 12, 30), layout)


class InFrame(Overlapping):
    """The pixels of the first patch are hidden by a frame."""

    def forward(self, image: Tensor) -> Tensor:
        image = image.clone()
        image[..., :DOWN, :ACROSS] = 0
        return super().forward(image)


def test_a_patch_that_moves_nothing_hides_no_other_that_moves_its_neighbours() -> None:
    layout = TokenLayout(grid=(3, 5), prefix=("class", "register 0"))
    found = check_placement(InFrame([*range(15)]), torch.randn(1, 3, 12, 30), layout)
    assert (found.status, "tokens of others too" in found.sentence) == ("fails", True)
