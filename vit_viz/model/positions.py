"""Where a patch is, as numbers: fixed sinusoidal tables, rotary angles, learned tables and biases, brought to another grid.

Tables are [rows * cols, dim], row by row as the patches are. Rotary angles and biases are where tokens are as far as the scores of
the attention depend on it (`Places`). A relative position bias has one number per head for each offset (down, across) from a key's
patch to a query's, and three more: for the class token that looks at a patch, a patch that looks at the class token, and the class
token that looks at itself.

Source: Bao et al. 2022 (BEiT), arXiv:2106.08254, `gen_relative_position_index` of timm; Fang et al. 2023 (EVA-02),
arXiv:2303.11331, `RotaryEmbeddingCat` of timm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model.config import Resample, ViTConfig


class Rotary(NamedTuple):
    """How queries and keys of patches are turned: cosines and sines of the angles, each [n, head_dim / 2].

    Pair j consists of the numbers j and j + head_dim / 2 (DINOv3), or of 2 j and 2 j + 1 where they are `adjacent` (EVA-02).
    """

    cos: Tensor
    sin: Tensor
    adjacent: bool = False


def resample(table: Tensor, old_grid: Grid, new_grid: Grid, *, variant: Resample = "timm") -> Tensor:
    """The position embedding that a model uses for a grid it was not trained on.

    Interpolation over the picture plane, in fp32, as the code that published the checkpoint does it: bicubic but for the last three
    variants. They differ by 2 to 34% on real tables, so a model must be given its own. Prefix tokens have to be split off before.

    Args:
        table: learned positions, [old rows * old cols, dim].
        old_grid: (rows, cols) of the table.
        new_grid: (rows, cols) that is wanted; the same grid returns the table itself.
        variant: "timm" and "dinov2_reg" resize to the size with antialiasing; "dino" and "dinov2" scale by (g + 0.1) / M without;
            "transformers" resizes to the size without; "torchvision" aligns the corners; "bilinear" is FlexiViT's; "radio" resizes
            to a square of the longer side, bilinearly with the corners aligned, and cuts the grid from its top left; "radio_v4"
            (C-RADIOv4, transformers) does so without aligning them.

    Returns:
        Positions [new rows * new cols, dim] in the dtype of the table.

    Source: the `interpolate_pos_encoding` of DINO and DINOv2, `resample_abs_pos_embed` of timm, transformers' ViT,
    torchvision's `interpolate_embeddings`, `ViTPatchGenerator` of RADIO (arXiv:2312.06709).
    """
    (rows, cols), (new_rows, new_cols) = old_grid, new_grid
    if table.shape[0] != rows * cols:
        raise ParameterError(
            f"A grid of {rows} x {cols} needs {rows * cols} positions; the table has {table.shape[0]}."
        )
    if old_grid == new_grid:
        return table
    picture = table.float().reshape(1, rows, cols, -1).permute(0, 3, 1, 2)  # [1, dim, rows, cols]
    if variant in ("dino", "dinov2"):  # the 0.1 keeps floor() inside interpolate from losing a row
        scale = ((new_rows + 0.1) / rows, (new_cols + 0.1) / cols)
        picture = F.interpolate(picture, scale_factor=scale, mode="bicubic")
    elif variant == "torchvision":
        picture = F.interpolate(picture, size=new_grid, mode="bicubic", align_corners=True)
    elif variant in ("radio", "radio_v4"):
        side = max(new_grid)
        picture = F.interpolate(picture, size=(side, side), mode="bilinear", align_corners=variant == "radio")
        picture = picture[..., :new_rows, :new_cols]
    elif variant == "bilinear":
        picture = F.interpolate(picture, size=new_grid, mode="bilinear")
    else:
        picture = F.interpolate(
            picture, size=new_grid, mode="bicubic", antialias=variant in ("timm", "dinov2_reg")
        )
    return picture.permute(0, 2, 3, 1).reshape(new_rows * new_cols, -1).to(table.dtype)


def sinusoidal_1d(length: int, dim: int) -> Tensor:
    """A fixed code for each place in the sequence: waves of geometrically growing length.

    table[t, 2i] = sin(t / 10000^(2i / dim)), table[t, 2i + 1] = cos of the same.

    Returns:
        Table [length, dim] with values in [-1, 1].

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """
    wave = torch.arange(dim, dtype=torch.float64)
    # [length, dim]
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10_000 ** (2 * (wave // 2) / dim)
    return torch.where(wave % 2 == 0, angle.sin(), angle.cos()).float()


def sinusoidal_2d(grid: Grid, dim: int, *, base: float = 10_000) -> Tensor:
    """A fixed code for each cell of the grid: the first half of the numbers says the column, the second half the row.

    Each half is [sin(t w), cos(t w)] with w_i = base^(-i / (dim / 4)).

    Returns:
        Table [rows * cols, dim] with values in [-1, 1].

    Source: He et al. 2022 (MAE), arXiv:2111.06377, `get_2d_sincos_pos_embed`, where the column goes first.
    """
    rows, cols = grid
    frequency = base ** -(torch.arange(dim // 4, dtype=torch.float64) / (dim // 4))

    def code(length: int) -> Tensor:
        angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency  # [length, dim / 4]
        return torch.cat((angle.sin(), angle.cos()), dim=1).float()  # [length, dim / 2]

    return torch.cat((code(cols).repeat(rows, 1), code(rows).repeat_interleave(cols, dim=0)), dim=1)


def rotary_angles(grid: Grid, head_dim: int, *, base: float = 100.0) -> Tensor:
    """By how much each pair of numbers of a query or key is turned at each patch.

    The patch centre 2 (i + 0.5) / g - 1 of each axis, rows first, times 2 pi / period, with periods base^(2i / (head_dim / 2)) for
    i < head_dim / 4.

    Returns:
        Angles in radians, [rows * cols, head_dim / 2]; pair j consists of the numbers j and j + head_dim / 2.

    Source: DINOv3, arXiv:2508.10104, `RopePositionEmbedding`; rotary positions: Su et al. 2021, arXiv:2104.09864.
    """
    rows, cols = grid
    # [head_dim / 4]
    periods = base ** (2 * torch.arange(head_dim // 4, dtype=torch.float32) / (head_dim // 2))
    row = 2 * (torch.arange(rows, dtype=torch.float32) + 0.5) / rows - 1
    col = 2 * (torch.arange(cols, dtype=torch.float32) + 0.5) / cols - 1
    centres = torch.stack(torch.meshgrid(row, col, indexing="ij"), dim=-1).reshape(-1, 2)  # [rows * cols, 2]
    return (2 * math.pi * centres[:, :, None] / periods).flatten(1)  # [rows * cols, head_dim / 2]


def grid_angles(grid: Grid, head_dim: int, *, trained: Grid, base: float = 10_000.0) -> Tensor:
    """As `rotary_angles`, for EVA-02: the place i / g * trained of each axis, rows first, times base^(-i / (head_dim / 4)).

    Returns:
        Angles in radians, [rows * cols, head_dim / 2].

    Source: EVA-02, arXiv:2303.11331; timm's `RotaryEmbeddingCat` with a `ref_feat_shape`.
    """
    count = head_dim // 4
    frequency = base ** -(torch.arange(count, dtype=torch.float32) / count)
    row, col = (
        torch.arange(size, dtype=torch.float32) / size * reach
        for size, reach in zip(grid, trained, strict=True)
    )
    places = torch.stack(torch.meshgrid(row, col, indexing="ij"), dim=-1).reshape(-1, 2)  # [rows * cols, 2]
    return (places[:, :, None] * frequency).flatten(1)  # [rows * cols, head_dim / 2]


def angles_of(config: ViTConfig, grid: Grid) -> Tensor | None:
    """By how much each pair of numbers of a query or key is turned at each patch, [n, d / 2]; None for no rotary positions."""
    if config.position == "rotary":
        return rotary_angles(grid, config.head_dim, base=config.rotary_base)
    if config.rotary_grid is None:
        return None
    return grid_angles(grid, config.head_dim, trained=config.rotary_grid, base=config.rotary_base)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, adjacent: bool = False) -> Tensor:
    """Turn the patch tokens of `x` by their angles; the prefix tokens before them stay as they are.

    Args:
        x: queries or keys, [..., tokens, head_dim].
        cos: cosines of the angles, [patches, head_dim / 2]; `sin` likewise.
        adjacent: which numbers make a pair, see `Rotary`.
    """
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    prefix, patches = x[..., : -cos.shape[0], :], x[..., -cos.shape[0] :, :]
    # each [..., patches, head_dim / 2]
    first, second = (patches[..., ::2], patches[..., 1::2]) if adjacent else patches.chunk(2, dim=-1)
    pair = first * cos - second * sin, second * cos + first * sin
    turned = torch.stack(pair, dim=-1).flatten(-2) if adjacent else torch.cat(pair, dim=-1)
    return torch.cat((prefix, turned), dim=-2)  # [..., tokens, head_dim]


# --- for the scores


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
    """The offset between each two tokens of a grid, as an index, `relative_index`, into a table of biases made for another."""

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
