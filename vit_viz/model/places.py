"""Where tokens are, as far as the scores of the attention depend on it: rotary angles, and learned biases for offsets.

A relative position bias has one number per head for each offset (down, across) from a key's patch to a query's, and three more:
for the class token that looks at a patch, a patch that looks at the class token, and the class token that looks at itself.

Source: Bao et al. 2022 (BEiT), arXiv:2106.08254, `gen_relative_position_index` of timm; Fang et al. 2023 (EVA-02),
arXiv:2303.11331, `RotaryEmbeddingCat` of timm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vit_viz.geometry import Grid
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model.config import Resample, ViTConfig
from vit_viz.model.positions import Rotary, angles_of


@dataclass(frozen=True, eq=False)
class Places:
    """What every attention of a pass is told of where tokens are.

    Args:
        rotary: how queries and keys of patches are turned; None where they are not.
        offsets: which bias belongs to which pair of tokens; None where scores have none.
        shared: the bias that all blocks add, [1, H, N, N]; None where each has its own alone.
    """

    rotary: Rotary | None = None
    offsets: BiasOffsets | None = None
    shared: Tensor | None = None

    @classmethod
    def of(cls, config: ViTConfig, grid: Grid, *, table: Tensor | None, device: torch.device) -> Places:
        """The places of an input of that grid; `table`: the biases that all blocks share, where they do."""
        angles, offsets, shared = angles_of(config, grid), None, None
        rotary = None
        if angles is not None:
            angles = angles.to(device)
            rotary = Rotary(angles.cos(), angles.sin(), config.rotary_grid is not None)
        if config.relative_bias or config.shared_bias:
            offsets = BiasOffsets(grid, config.grid, config.resample, relative_index(grid).to(device))
        if config.shared_bias and offsets is not None and table is not None:
            shared = offsets.bias(table)
        return cls(rotary, offsets, shared)

    def bias(self, table: Tensor | None) -> Tensor | None:
        """What a block with this table of biases, or without one, adds to its scores, [1, H, N, N]; None for nothing."""
        if table is None or self.offsets is None:
            return self.shared
        own = self.offsets.bias(table)
        return own if self.shared is None else own + self.shared


@dataclass(frozen=True, eq=False)
class BiasOffsets:
    """The offset between each two tokens of a grid, as an index into a table of biases that was made for another.

    Args:
        index: of `relative_index`, [N, N].
    """

    grid: Grid
    trained: Grid
    variant: Resample
    index: Tensor

    def bias(self, table: Tensor) -> Tensor:
        """What is added to the scores, [1, H, N, N], of biases [offsets + 3, H] for the grid of the training."""
        table = resample_bias(table, self.trained, self.grid, variant=self.variant)
        heads = table.T.contiguous()  # [H, offsets + 3]
        return heads.index_select(1, self.index.flatten()).reshape(1, -1, *self.index.shape)


def bias_table(config: ViTConfig) -> nn.Parameter:
    """Learned biases for the grid of a configuration, [offsets + 3, H]: no bias before training."""
    return nn.Parameter(torch.zeros(num_biases(config.grid), config.num_heads))


def num_biases(grid: Grid) -> int:
    """How many biases a head has: one per offset between two patches of the grid, and the class token's own three."""
    return (2 * grid[0] - 1) * (2 * grid[1] - 1) + 3


def relative_index(grid: Grid) -> Tensor:
    """Which entry of a table is the bias of query i (row) at key j (column), [1 + n, 1 + n]; the class token comes first."""
    rows, cols = grid
    row, col = torch.arange(rows).repeat_interleave(cols), torch.arange(cols).repeat(rows)  # each [n]
    down, across = row[:, None] - row + rows - 1, col[:, None] - col + cols - 1  # each [n, n], from 0
    index = F.pad(down * (2 * cols - 1) + across, (1, 0, 1, 0))  # [1 + n, 1 + n]
    offsets = num_biases(grid) - 3
    index[0, :] = offsets  # the class token looks at a patch
    index[:, 0] = offsets + 1  # a patch looks at the class token
    index[0, 0] = offsets + 2  # the class token looks at itself
    return index


def resample_bias(table: Tensor, old_grid: Grid, new_grid: Grid, *, variant: Resample = "timm") -> Tensor:
    """The relative position biases that a model uses for a grid it was not trained on.

    The picture of the offsets is interpolated linearly along both axes; the class token's three biases stay. As timm does it, the
    trained offsets are placed at distances that grow geometrically up to the new grid's largest, so that near offsets keep their
    biases; as transformers does it, the picture is resized.

    Args:
        table: biases, [offsets + 3, heads].
        variant: "timm" or "transformers".

    Returns:
        Biases [new offsets + 3, heads] in the dtype of the table.

    Source: timm's `resize_rel_pos_bias_table`, after BEiT's `run_class_finetuning.py` (there with cubic interpolation);
    transformers' `BeitRelativePositionBias`.
    """
    if old_grid == new_grid:
        return table
    (tall, wide), (new_tall, new_wide) = ((2 * rows - 1, 2 * cols - 1) for rows, cols in (old_grid, new_grid))
    picture = table[:-3].float().T.reshape(1, -1, tall, wide)  # [1, heads, offsets down, offsets across]
    if variant == "transformers":
        picture = F.interpolate(picture, size=(new_tall, new_wide), mode="bilinear")
    else:
        down, across = (
            _weights(*pair).float().to(picture.device) for pair in ((tall, new_tall), (wide, new_wide))
        )
        picture = down @ picture @ across.T
    return torch.cat((picture.flatten(2)[0].T.to(table.dtype), table[-3:]))


def _weights(old: int, new: int) -> Tensor:
    """By how much each old offset of an axis enters each new one, [new, old]."""
    distances = np.concatenate(([0.0], np.cumsum(_ratio(old // 2, new // 2) ** np.arange(old // 2))))
    places = np.concatenate((-distances[:0:-1], distances))  # of the old offsets, in patches of the new grid
    wanted = np.arange(new) - new // 2
    return torch.from_numpy(np.stack([np.interp(wanted, places, own) for own in np.eye(old)], axis=1))


def _ratio(count: int, reach: int) -> float:
    """The ratio at which `count` steps that begin with 1 reach that far together, between 1.01 and 1.5, by bisection as timm's."""
    low = ratio = 1.01
    high = 1.5
    while high - low > 1e-6:
        ratio = (low + high) / 2
        low, high = (low, ratio) if (1 - ratio**count) / (1 - ratio) > reach else (ratio, high)
    return ratio
