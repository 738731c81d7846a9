from __future__ import annotations

import pytest
import torch
from torch import Tensor

from training import data
from training.student import Targets, paste, random_patches, random_rectangles


def centre_of_mass(maps: Tensor) -> Tensor:
    """(x, y) in [-1, 1] of each map [batch, 1, side, side]."""
    side = maps.shape[-1]
    ticks = (torch.arange(side) + 0.5) * 2 / side - 1
    weights = maps[:, 0] / maps.sum((1, 2, 3))[:, None, None]
    return torch.stack([(weights.sum(1) * ticks).sum(1), (weights.sum(2) * ticks).sum(1)], 1)


def test_photo_and_teacher_map_are_cropped_alike() -> None:
    rng = torch.Generator().manual_seed(0)
    crops = data.random_crops(200, area=(0.35, 1.0), ratio=(0.75, 1.33), rng=rng)
    row, col = 5, 7  # one cell of an 11 x 11 map, and the same place on a photo of 11 * 6 pixels
    cell = torch.zeros(1, 1, 11, 11)
    cell[0, 0, row, col] = 1
    photo = cell.repeat_interleave(6, 2).repeat_interleave(6, 3)
    on_map = data.sample(cell.expand(200, -1, -1, -1), crops, 64)
    on_photo = data.sample(photo.expand(200, -1, -1, -1), crops, 64)
    whole = on_photo.sum((1, 2, 3)) > 0.99 * on_photo.sum((1, 2, 3)).max()  # the cell lies inside the crop
    edge = (on_map[:, :, 0].amax((1, 2)) + on_map[:, :, -1].amax((1, 2))) > 0
    edge |= (on_map[:, :, :, 0].amax((1, 2)) + on_map[:, :, :, -1].amax((1, 2))) > 0
    inside = (on_photo.sum((1, 2, 3)) > 0) & ~edge
    assert inside.sum() > 50, whole.sum()
    difference = centre_of_mass(on_map[inside]) - centre_of_mass(on_photo[inside])
    assert difference.abs().max() < 0.03


def test_about_half_of_the_crops_are_flipped() -> None:
    crops = data.random_crops(400, area=(0.35, 1.0), ratio=(0.75, 1.33), rng=torch.Generator().manual_seed(1))
    assert 150 < int((crops[:, 0, 0] < 0).sum()) < 250


def test_crops_lie_inside_the_photo_and_keep_their_area() -> None:
    crops = data.random_crops(400, area=(0.35, 1.0), ratio=(0.75, 1.33), rng=torch.Generator().manual_seed(2))
    width, height = crops[:, 0, 0].abs(), crops[:, 1, 1]
    assert ((crops[:, 0, 2].abs() + width) <= 1 + 1e-6).all()
    assert ((crops[:, 1, 2].abs() + height) <= 1 + 1e-6).all()
    assert (width * height).min() > 0.3


def test_an_area_above_one_shows_the_whole_photo_small() -> None:
    rng = torch.Generator().manual_seed(3)
    crops = data.random_crops(200, area=(1.8, 2.0), ratio=(1.0, 1.0), rng=rng)
    assert (crops[:, 0, 0].abs() > 1.3).all()
    photo = torch.full((1, 1, 64, 64), 5.0)
    inside = data.sample(photo.expand(200, -1, -1, -1), crops, 128, around="zeros")
    torch.testing.assert_close(  # a photo of half the frame's area covers that share of it, wherever it lies
        inside.mean((1, 2, 3)), 5.0 / (crops[:, 0, 0].abs() * crops[:, 1, 1]), atol=0.02, rtol=0
    )
    around = data.sample(photo.expand(200, -1, -1, -1), crops, 32)
    torch.testing.assert_close(around, torch.full_like(around, 5.0))


def test_a_share_of_the_photos_loses_its_colour() -> None:
    rng = torch.Generator().manual_seed(4)
    photos = torch.rand(400, 3, 4, 4, generator=rng) * 0.2
    changed = data.jitter(photos, 0.1, 0.25, rng=rng)
    grey = (changed.amax(1) - changed.amin(1)).amax((1, 2)) < 1e-6
    assert 70 < int(grey.sum()) < 130
    assert not (data.jitter(photos, 0.1, 0.0, rng=rng).std(1).amax((1, 2)) < 1e-6).any()


def test_pasted_region_has_the_other_photos_pixels_tokens_evidence_and_share_of_the_label() -> None:
    grid, size = 4, 3
    replaced = torch.zeros(2, grid, grid, dtype=torch.bool)
    replaced[0, 1:3, 2:4] = True  # 4 of 16 patches of the first photo come from the second
    pixels = torch.stack([torch.zeros(3, 12, 12), torch.ones(3, 12, 12)])
    tokens = torch.stack([torch.zeros(16, 5), torch.ones(16, 5)])
    one_hot, summary = torch.eye(2), torch.eye(2)
    evidence = torch.stack([torch.zeros(16), torch.ones(16)])
    mixed, targets = paste(pixels, Targets(one_hot, one_hot, tokens, summary, evidence), replaced)
    assert mixed[0].sum() == 3 * 4 * size**2
    assert mixed[0, :, 3:9, 6:12].eq(1).all()
    assert targets.tokens[0].view(grid, grid, 5)[1:3, 2:4].eq(1).all()
    assert targets.tokens[0].sum() == 4 * 5
    torch.testing.assert_close(targets.evidence[0], targets.tokens[0, :, 0])
    torch.testing.assert_close(targets.labels, torch.tensor([[0.75, 0.25], [0.0, 1.0]]))
    torch.testing.assert_close(targets.soft, targets.labels)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (1.0, 0.4, 0.6)])
def test_rectangles_cover_half_of_the_chosen_photos(share: float, low: float, high: float) -> None:
    replaced = random_rectangles(500, 8, share, rng=torch.Generator().manual_seed(0))
    assert low <= float(replaced.float().mean()) <= high


def test_kept_patches_are_different_ones() -> None:
    keep = random_patches(9, 20, 0.4, rng=torch.Generator().manual_seed(0))
    assert keep is not None
    assert keep.shape == (9, 8)
    assert all(len(set(row.tolist())) == 8 for row in keep)
    assert random_patches(9, 20, 1.0, rng=torch.Generator()) is None
