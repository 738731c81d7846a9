"""One image on its way into a model, step by step: pixels, patches, embedding.

Each step is a frozen value with every number that the screen shows. The numbers are recomputed from the model's own parts and
its input; tests compare them with the trace, which recorded the model itself. `tokens` goes on with prefix tokens and positions,
`layers` with attention, heads, a block and the class.

Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1 and Fig. 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.capture.forward import undisturbed
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid, TokenLayout
from vit_viz.lazy import F, Tensor, nn, torch, without_gradients
from vit_viz.model import VisionTransformer

Array = NDArray[Any]
Size = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Walk:
    """One input on its way through one model: what every step is computed from.

    Args:
        model: in eval mode.
        pixels: normalised input, [1, channels, height, width].
        stream: the residual stream before the first and after each block, [layers + 1, tokens, dim].
    """

    model: VisionTransformer
    pixels: Tensor
    stream: Tensor

    @classmethod
    def of(cls, model: nn.Module, pixels: Tensor) -> Walk:
        """Run the model block by block and keep what is between the blocks.

        Raises:
            ParameterError: the model is not ours, or the pixels are not those of one image.
        """
        model = own_transformer(model)
        if pixels.ndim != 4 or len(pixels) != 1:
            raise ParameterError(
                f"A walkthrough is of one image [1, channels, height, width], not {list(pixels.shape)}."
            )
        pixels = pixels.detach().to(model.patch_embed.proj.weight)
        with torch.no_grad(), undisturbed(model):
            x = model.tokens(pixels)
            places = model.places(model.grid_of(*pixels.shape[-2:]))
            stream = [x]
            for block in model.blocks:
                stream.append(block(stream[-1], places))
        return cls(model, pixels, torch.cat(stream))

    @property
    def layout(self) -> TokenLayout:
        """Which token is what."""
        return self.model.layout(*self.pixels.shape[-2:])

    @property
    def grid(self) -> Grid:
        """Patches as (rows, cols)."""
        return self.layout.grid


def own_transformer(model: nn.Module) -> VisionTransformer:
    """The model, where it is ours.

    Raises:
        ParameterError: it is another one.
    """
    if isinstance(model, VisionTransformer):
        return model
    raise ParameterError(
        f"The walkthrough needs the parts of vit_viz's own VisionTransformer, not {type(model).__name__}; load the "
        "checkpoint with vit_viz.load."
    )


@dataclass(frozen=True, eq=False)
class PatchStep:
    """An image cut into patches, and one patch as the row of numbers that it is.

    Args:
        size: (height, width) of the input in pixels.
        padded: the same after the zeros that this model adds where the patch does not divide a side.
        values: the patch as the model receives it, normalised, [channels, patch height, patch width].
        flat: the same numbers in one row, channel by channel, [channels * patch height * patch width].
    """

    size: Size
    padded: Size
    patch_size: Size
    channels: int
    grid: Grid
    place: Size
    index: int
    values: Array
    flat: Array

    @property
    def count(self) -> int:
        """Patches of the image: n."""
        return self.grid[0] * self.grid[1]


def patch_step(walk: Walk, *, place: Size) -> PatchStep:
    """The patch at (row, col) of the grid.

    Raises:
        ParameterError: there is no such patch.
    """
    embed, config = walk.model.patch_embed, walk.model.config
    index = patch_index(walk, place)
    flat = embed.patches(walk.pixels)[0, index]
    (height, width), padded = walk.pixels.shape[-2:], embed.whole_patches(walk.pixels).shape[-2:]
    return PatchStep(
        size=(int(height), int(width)),
        padded=(int(padded[0]), int(padded[1])),
        patch_size=config.patch_size,
        channels=config.in_chans,
        grid=walk.grid,
        place=place,
        index=index,
        values=to_numpy(flat.reshape(config.in_chans, *config.patch_size)),
        flat=to_numpy(flat),
    )


@dataclass(frozen=True)
class Cut:
    """What another patch size would do to the same input: whole patches, and the pixels that fit into none."""

    size: Size
    patch: int

    @property
    def grid(self) -> Grid:
        """Whole patches as (rows, cols)."""
        return self.size[0] // self.patch, self.size[1] // self.patch

    @property
    def remainder(self) -> Size:
        """Pixels at the end of each side that fit into no patch."""
        return self.size[0] % self.patch, self.size[1] % self.patch

    @property
    def left_out(self) -> float:
        """Share of the pixels that fit into no whole patch."""
        inside = self.grid[0] * self.grid[1] * self.patch**2
        return 1 - inside / (self.size[0] * self.size[1])


@dataclass(frozen=True, eq=False)
class EmbeddingStep:
    """One patch turned into one vector by a linear map, in two ways.

    Args:
        weight: the linear map, [dim, channels * patch height * patch width].
        bias: [dim]; zeros where the model has none.
        linear: the embedded patch by unfold and matrix product, [dim].
        convolution: the same by a convolution whose stride is its kernel, [dim].
        embedded: what the model continues with: the same, after the norm that some models have here, [dim].
        difference: largest difference between the two over ALL patches.
        number: index of the output number that is taken apart.
        products: pixel times weight for that number, [channels, patch height, patch width]; their sum plus the bias is the number.
    """

    weight: Array
    bias: Array
    linear: Array
    convolution: Array
    embedded: Array
    difference: float
    number: int
    products: Array
    flat: Array
    shape: tuple[int, int]


@without_gradients()
def embedding_step(walk: Walk, *, place: Size, number: int = 0) -> EmbeddingStep:
    """The embedding of the patch at (row, col), and how one of its numbers comes about.

    Raises:
        ParameterError: there is no such patch, or the embedding has no such number.
    """
    model, config = walk.model, walk.model.config
    if not 0 <= number < config.embed_dim:
        raise ParameterError(
            f"Number {number} does not exist: an embedding has numbers 0-{config.embed_dim - 1}."
        )
    index = patch_index(walk, place)
    projection = model.patch_embed.proj
    weight = projection.weight.detach().flatten(1).clone()  # a step does not change when the model does
    bias = None if projection.bias is None else projection.bias.detach().clone()
    flat = model.patch_embed.patches(walk.pixels)[0]  # [n, channels * P * P]
    linear = F.linear(flat, weight, bias)  # [n, dim]
    kernel = weight.reshape(-1, config.in_chans, *config.patch_size)
    by_conv = F.conv2d(model.patch_embed.whole_patches(walk.pixels), kernel, bias, stride=config.patch_size)
    by_conv = by_conv[0].flatten(1).T  # [n, dim]
    embedded = model.patch_embed(walk.pixels)[0]
    products = (flat[index] * weight[number]).reshape(config.in_chans, *config.patch_size)
    return EmbeddingStep(
        weight=to_numpy(weight),
        bias=np.zeros(len(weight), np.float32) if bias is None else to_numpy(bias),
        linear=to_numpy(linear[index]),
        convolution=to_numpy(by_conv[index]),
        embedded=to_numpy(embedded[index]),
        difference=float((linear - by_conv).abs().max()),
        number=number,
        products=to_numpy(products),
        flat=to_numpy(flat[index]),
        shape=(int(embedded.shape[0]), int(embedded.shape[1])),
    )


def patch_index(walk: Walk, place: Size) -> int:
    """Index of the patch (row, col) among the patches."""
    return walk.layout.token(place) - walk.layout.patch_slice.start
