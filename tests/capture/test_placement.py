"""Which token is which patch, asked of models that pad their image or attend within windows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.capture.placement import check_placement, find_layout
from vit_viz.capture.report import HOLDS
from vit_viz.errors import CaptureError
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
