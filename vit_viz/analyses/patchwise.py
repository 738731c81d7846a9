"""From numbers of pixels to numbers of patches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_viz.analyses.prepared_image import PreparedImage


def patch_mask(subject: PreparedImage) -> Tensor:
    """The patch index of each pixel, [1, 1, height, width]."""
    (height, width), (patch_h, patch_w) = subject.pixels.shape[-2:], subject.patch_size
    row = torch.arange(height, device=subject.pixels.device) // patch_h
    col = torch.arange(width, device=subject.pixels.device) // patch_w
    return (row[:, None] * subject.layout.grid[1] + col)[None, None]


def patch_sum(subject: PreparedImage, attributions: Tensor) -> Tensor:
    """Sum over channels and the pixels of each patch: [1, channels, height, width] -> [rows, cols]."""
    return _pooled(subject, attributions.detach().sum(1))


def patch_mean(subject: PreparedImage, values: Tensor) -> Tensor:
    """Mean over the pixels of each patch: [1, height, width] -> [rows, cols]."""
    return _pooled(subject, values.detach()) / _pooled(subject, torch.ones_like(values))


def patch_value(subject: PreparedImage, attributions: Tensor) -> Tensor:
    """The one value that all pixels of a patch have, [rows, cols]."""
    return patch_mean(subject, attributions.detach()[:, 0])


def patch_colours(subject: PreparedImage) -> Tensor:
    """Mean of each channel over the pixels of each patch, [rows, cols, channels]."""
    count = _pooled(subject, torch.ones_like(subject.pixels[:, 0]))
    return torch.stack([_pooled(subject, channel[None]) / count for channel in subject.pixels[0]], dim=-1)


def _pooled(subject: PreparedImage, values: Tensor) -> Tensor:
    """[1, height, width] -> sums over patches [rows, cols]; a last, incomplete patch counts with what it has."""
    (rows, cols), (patch_h, patch_w) = subject.layout.grid, subject.patch_size
    missing = (0, cols * patch_w - values.shape[-1], 0, rows * patch_h - values.shape[-2])
    padded = F.pad(values[0], missing).reshape(rows, patch_h, cols, patch_w)
    return padded.sum((1, 3))
