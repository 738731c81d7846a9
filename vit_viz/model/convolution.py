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
        """The same numbers as the convolution: the pixels of each patch times the filters, [D, C * P * P]."""
        (tall, wide), (images, channels, height, width) = self.kernel_size, pixels.shape
        rows, cols = height // tall, width // wide
        whole = pixels[:, :, : rows * tall, : cols * wide].reshape(images, channels, rows, tall, cols, wide)
        patches = whole.permute(0, 2, 4, 1, 3, 5).reshape(images, rows * cols, -1)  # [B, n, C * P * P]
        embedded = F.linear(patches, self.weight.flatten(1), self.bias)  # [B, n, D]
        return embedded.transpose(1, 2).reshape(images, self.out_channels, rows, cols)
