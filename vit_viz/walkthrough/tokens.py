"""One image on its way into a model: the tokens before the patches, and positions. See `embedding`.

Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1 and appendix D.4; Darcet et al. 2024, arXiv:2309.16588 (registers).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from vit_viz.analyses.attention import to_numpy
from vit_viz.capture import Trace
from vit_viz.capture.forward import undisturbed
from vit_viz.geometry import Grid
from vit_viz.lazy import F, Tensor, torch, without_gradients
from vit_viz.model import VisionTransformer
from vit_viz.model.positions import angles_of, sinusoidal_1d
from vit_viz.walkthrough.embedding import Array, Size, Walk, patch_index


@dataclass(frozen=True, eq=False)
class PrefixStep:
    """The tokens that come from no patch: learned vectors put before the sequence.

    Args:
        names: of the prefix tokens, in order.
        vectors: as they are learned, before positions, [prefix, dim].
        patch_norm: median length of an embedded patch, to compare with.
        layer: the layer whose attention is looked at.
        received: share of the attention of all patches that each prefix token receives there, mean over heads, [prefix].
        changed: cosine similarity of each prefix token before the first and after the last block, [prefix].
    """

    names: tuple[str, ...]
    vectors: Array
    patch_norm: float
    layer: int
    received: Array
    changed: Array
    num_patches: int
    dim: int
    pooling: str
    read: tuple[str, ...]


@without_gradients()
def prefix_step(walk: Walk, trace: Trace, *, layer: int) -> PrefixStep:
    """The prefix tokens, and how much of the patches' attention they draw in a layer."""
    model, layout = walk.model, walk.layout
    names, count = layout.prefix, layout.num_prefix
    parts = [part[0] for part in (model.cls_token, model.dist_token, model.reg_token) if part is not None]
    dim = model.config.embed_dim
    vectors = torch.cat(parts).clone() if parts else torch.zeros(0, dim)
    received = torch.zeros(0)
    if count:
        columns = trace.received(layer, list(range(count)))  # [heads, tokens, prefix]
        received = columns[:, layout.patch_slice].mean((0, 1))
    return PrefixStep(
        names=names,
        vectors=to_numpy(vectors),
        patch_norm=float(model.patch_embed(walk.pixels)[0].norm(dim=-1).median()),
        layer=layer,
        received=to_numpy(received),
        changed=to_numpy(F.cosine_similarity(walk.stream[0, :count], walk.stream[-1, :count], dim=-1)),
        num_patches=layout.num_patches,
        dim=dim,
        pooling=str(layout.pooling),
        read=layout.class_tokens,
    )


@dataclass(frozen=True, eq=False)
class PositionStep:
    """How the model knows where a patch was, and what it answers when it does not.

    Args:
        kind: as `ViTConfig.position_kind` calls it.
        trained_grid: grid that the positions were made for.
        table: position of each patch of this image, [n, dim]; None where nothing is added to the patches.
        trained_table: the same on the trained grid.
        waves: for comparison, the sine and cosine table of n places, [n, dim].
        angles: for rotary positions, the angle of each pair of numbers at each patch, [n, head_dim / 2].
        similarity: cosine similarity of the followed patch's position with every other, [rows, cols]; None for no positions.
        position_norm: length of the followed patch's position; 0 without a table.
        patch_norm: length of the followed patch's embedding.
        output: what the model says of the image, [outputs].
        shuffled: what it says when the patches are shuffled, [outputs].
        unplaced: what it says without positions, [outputs].
        unplaced_shuffled: without positions, shuffled: the same up to rounding.
        order: which patch stands where after shuffling, [n].
    """

    kind: str
    grid: Grid
    trained_grid: Grid
    variant: str
    place: Size
    table: Array | None
    trained_table: Array | None
    waves: Array
    angles: Array | None
    similarity: Array | None
    position_norm: float
    patch_norm: float
    output: Array
    shuffled: Array
    unplaced: Array
    unplaced_shuffled: Array
    order: Array

    @property
    def resampled(self) -> bool:
        """Whether the positions had to be brought to another grid."""
        return self.trained_table is not None and self.grid != self.trained_grid


@without_gradients()
def position_step(walk: Walk, *, place: Size, seed: int = 1) -> PositionStep:
    """Positions at the patch (row, col), and the model's answer to the same patches in another order.

    Args:
        seed: of the shuffle; 0 leaves the patches where they are.
    """
    model, config, grid = walk.model, walk.model.config, walk.grid
    index, own = patch_index(walk, place), len(config.positioned_prefix)
    order = torch.arange(grid[0] * grid[1])
    if seed:
        order = order[torch.randperm(len(order), generator=torch.Generator().manual_seed(seed))]
    without = copy.copy(model)  # shares every parameter; only its configuration is another
    without.config = replace(
        config, position="none", position_grid=None, rotary_grid=None, relative_bias=False, shared_bias=False
    )
    mixed = _rearranged(walk, order.to(walk.pixels.device))
    with undisturbed(model):
        output, shuffled = model.classify(walk.stream[-1:])[0], model(mixed)[0]
        unplaced, unplaced_shuffled = without(
            torch.cat((model.patch_embed.whole_patches(walk.pixels), mixed))
        )
    has_table = config.position not in ("rotary", "none")
    table = model.position_table(grid)[own:] if has_table else None
    angles = angles_of(config, grid)
    embedded = model.patch_embed(walk.pixels)[0, index]
    return PositionStep(
        kind=config.position_kind,
        grid=grid,
        trained_grid=config.table_grid,
        variant=config.resample,
        place=place,
        table=None if table is None else to_numpy(table.clone()),
        trained_table=to_numpy(model.position_table(config.table_grid)[own:].clone()) if has_table else None,
        waves=to_numpy(sinusoidal_1d(len(order), config.embed_dim)),
        angles=None if angles is None else to_numpy(angles),
        similarity=_similarity(table, angles, index, grid),
        position_norm=0.0 if table is None else float(table[index].norm()),
        patch_norm=float(embedded.norm()),
        output=to_numpy(output),
        shuffled=to_numpy(shuffled),
        unplaced=to_numpy(unplaced),
        unplaced_shuffled=to_numpy(unplaced_shuffled),
        order=to_numpy(order),
    )


@dataclass(frozen=True, eq=False)
class PositionColours:
    """Three directions in which learned positions differ most, so that each position becomes a colour.

    Args:
        mean: of the positions as trained, [dim].
        axes: the directions, [3, dim], sign fixed by the largest entry; zeros where there are fewer.
        low, high: ends of the positions as trained along each direction, [3].
    """

    mean: Array
    axes: Array
    low: Array
    high: Array

    def of(self, table: Array) -> Array:
        """Positions [n, dim] as colours, bytes [n, 3]; what lies beyond the trained ends is clipped."""
        along = (table - self.mean) @ self.axes.T
        share = np.clip((along - self.low) / np.maximum(self.high - self.low, 1e-12), 0, 1)
        colours: Array = np.round(255 * share).astype(np.uint8)
        return colours


@without_gradients()
def position_colours(model: VisionTransformer) -> PositionColours | None:
    """Colours for the positions of a model; None where it has learned none."""
    if model.config.position != "learned":
        return None
    table = (
        model.position_table(model.config.table_grid)[len(model.config.positioned_prefix) :].double().cpu()
    )
    mean = table.mean(0)
    axes = torch.linalg.svd(table - mean, full_matrices=False).Vh[:3]
    axes = axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    axes = F.pad(axes, (0, 0, 0, 3 - len(axes)))
    along = (table - mean) @ axes.T
    ends = along.min(0).values, along.max(0).values
    return PositionColours(to_numpy(mean), to_numpy(axes), to_numpy(ends[0]), to_numpy(ends[1]))


def _similarity(table: Tensor | None, angles: Tensor | None, index: int, grid: Grid) -> Array | None:
    """How alike one position is to all others: cosine of the vectors, or mean cosine of the relative phase."""
    if table is not None:
        values = F.cosine_similarity(table[index : index + 1].double(), table.double(), dim=-1)
    elif angles is not None:
        values = (angles - angles[index]).double().cos().mean(-1)
    else:
        return None
    return to_numpy(values.float().reshape(grid))


def _rearranged(walk: Walk, order: Tensor) -> Tensor:
    """The input with its patches in another order, [1, channels, height, width]."""
    patches = walk.model.patch_embed.patches(walk.pixels)[:, order]  # [1, n, channels * P * P]
    size = walk.model.config.patch_size
    whole = (walk.grid[0] * size[0], walk.grid[1] * size[1])
    return F.fold(patches.transpose(1, 2), whole, kernel_size=size, stride=size)
