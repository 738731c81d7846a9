"""The convolution that embeds patches, in the precision of the rest of the model on every device."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class PatchConv2d(nn.Conv2d):
    """A convolution whose stride is its kernel; as one matrix product where a GPU computes it.

    cuDNN's convolutions round fp32 to TF32 by torch's default, products of matrices do not: a batch of images would differ from one
    image, and a GPU from a CPU, by a thousandth where everything after it agrees to a millionth. That switch belongs to the
    process, so it is left alone.

    Source: https://docs.pytorch.org/docs/stable/notes/cuda.html, "TensorFloat-32 on Ampere (and later) devices".
    """

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, C, height, width] -> [B, D, rows, cols]."""
        return self.as_product(pixels) if pixels.is_cuda else super().forward(pixels)

    def as_product(self, pixels: Tensor) -> Tensor:
        """The same numbers as the convolution: the pixels of each patch, [B, C * P * P, n], times the filters, [D, C * P * P]."""
        (tall, wide), rows = self.kernel_size, pixels.shape[2] // self.kernel_size[0]
        patches = F.unfold(pixels, kernel_size=(tall, wide), stride=(tall, wide))
        embedded = F.linear(patches.transpose(1, 2), self.weight.flatten(1), self.bias)  # [B, n, D]
        return embedded.transpose(1, 2).reshape(len(pixels), self.out_channels, rows, -1)
