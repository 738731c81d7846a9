"""The recipe that turns a picture into a model's input: data that can be stored, shown, applied and undone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.images.reading import decode, is_upright_rgb
from vit_viz.lazy import Tensor, torch

Mode = Literal["fit", "crop", "stretch"]
Size = tuple[int, int]
Region = tuple[float, float, float, float]  # top, left, height, width in pixels of the original

MAX_INPUT_SIDE = 2048
"""Pixels."""
MAX_PATCHES = 1024
"""Of the checkpoint's own size in mode "fit", which is made smaller beyond it."""
MAX_CHOSEN_PATCHES = 4096
"""Of a size that is chosen, which is refused beyond it."""

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


_PICTURE_CHANNELS = (1, 3)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A picture as the model receives it, and where that is in the original.

    Args:
        pixels: normalised input, float32 [1, channels, height, width].
        crop_box: the part of the original that the pixels show.
        words: how they were made of it.
        note: why in another mode than was asked for; "" where it is that mode.
    """

    pixels: Tensor
    crop_box: CropBox
    words: str
    note: str


@dataclass(frozen=True)
class Preprocess:
    """How a checkpoint wants its input.

    Args:
        input_size: (height, width) that the checkpoint was trained for, in pixels.
        patch_size: (height, width) of a patch, in pixels.
        resize_to: size before the centre crop of the evaluation recipe, (height, width); a number stands for the short side of one
            with the shape of `input_size`, and None for `input_size`.
        interpolation: PIL's filter, always antialiased.
        mean: per channel, of levels / 255; one number stands for all channels.
        std: as `mean`.
        channels: 3 (RGB) or 1 (luminance); with other numbers a recipe can be kept, but no picture can be turned into them.
        crop: what the recipe does with the shape before the cut: "center" keeps it and covers all of `resize_to`, "squash" makes it
            that of `resize_to`, and "border" keeps it and stays within `resize_to`, with a border in the colour of `mean`.
        rounds_down: a cut that would start in the middle of a pixel starts with it, as transformers has it; else at an even one, as
            timm and torchvision have it.
        drop_remainder: of an input that the patch does not divide, leave out the last pixels at the bottom and on the right, as the
            model would, so that the crop box says so. Not needed in mode "fit", whose inputs consist of whole patches.
        one_size: the model takes `input_size` and no other: a picture that mode "fit" would give another is given as in mode
            "crop", and with `drop_remainder` the model itself leaves out the last pixels.

    Raises:
        ParameterError: a value is out of bounds; recipes come from checkpoints of strangers.
    """

    input_size: Size
    patch_size: Size = (16, 16)
    resize_to: int | Size | None = None
    interpolation: str = "bicubic"
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    channels: int = 3
    crop: Literal["center", "squash", "border"] = "center"
    drop_remainder: bool = False
    one_size: bool = False
    rounds_down: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_size", _pair("input_size", self.input_size))
        object.__setattr__(self, "patch_size", _pair("patch_size", self.patch_size))
        if self.resize_to is None:
            object.__setattr__(self, "resize_to", min(self.input_size))
        if isinstance(self.resize_to, tuple | list):
            object.__setattr__(self, "resize_to", _pair("resize_to", self.resize_to))
        else:
            _bounded("resize_to", self.resize_to)
        _bounded("channels", self.channels)
        if self.interpolation not in _FILTERS:
            raise ParameterError(
                f"interpolation is one of {', '.join(_FILTERS)}, not {self.interpolation!r}."
            )
        if self.crop not in ("center", "squash", "border"):
            raise ParameterError(f'crop is "center", "squash" or "border", not {self.crop!r}.')
        for name in ("drop_remainder", "one_size", "rounds_down"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} is true or false, not {getattr(self, name)!r}.")
        if self.drop_remainder and min(self.covered_size) < 1:
            raise ParameterError(
                f"No patch of {_times(self.patch_size)} fits into an input of {_times(self.input_size)}."
            )
        object.__setattr__(self, "mean", _per_channel("mean", self.mean, self.channels))
        object.__setattr__(self, "std", _per_channel("std", self.std, self.channels))
        if min(self.std) <= 0:
            raise ParameterError(f"std is positive in every channel, not {self.std}.")

    @property
    def covered_size(self) -> Size:
        """(height, width) of `input_size` that becomes patches: less than all of it only with `drop_remainder`."""
        (height, width), (patch_h, patch_w) = self.input_size, self.patch_size
        return (
            (height - height % patch_h, width - width % patch_w) if self.drop_remainder else (height, width)
        )

    @property
    def short_side(self) -> int:
        """Short side of the checkpoint's own input, in patches."""
        return min(self._own_grid)

    def sized(self, size: int) -> Preprocess:
        """The recipe for another input: its short side has `size` patches, and all else is in proportion; 0 is this recipe.

        Raises:
            ParameterError: `size` is no number of patches, a side would have more than `MAX_INPUT_SIDE` pixels, or the model takes
                no other size.
        """
        if type(size) is not int or size < 0:
            raise ParameterError(f"A size is the short side in patches, a whole number, not {size!r}.")
        if size in (0, self.short_side):
            return self
        if self.one_size:
            raise ParameterError(
                f"This model takes inputs of {_times(self.input_size)} pixels and no others, so no other size can be chosen."
            )
        axis = self._own_grid.index(self.short_side)
        scale = size * self.patch_size[axis] / self.covered_size[axis]
        height, width = (
            max(1, round(side * scale / patch)) * patch
            for side, patch in zip(self.covered_size, self.patch_size, strict=True)
        )
        if max(height, width) > MAX_INPUT_SIDE:
            raise ParameterError(
                f"A short side of {size} patches makes the input {height} x {width} pixels; a side has at most {MAX_INPUT_SIDE}."
            )

        def in_proportion(side: int) -> int:
            return min(MAX_INPUT_SIDE, round(side * min(height, width) / min(self.input_size)))

        to = self.resize_to
        assert to is not None
        resize_to = (
            (in_proportion(to[0]), in_proportion(to[1])) if isinstance(to, tuple) else in_proportion(to)
        )
        return replace(self, input_size=(height, width), resize_to=resize_to)

    def grid(
        self, height: int, width: int, *, mode: Mode = "fit", size: int = 0, max_patches: int | None = None
    ) -> Size:
        """(rows, cols) of the patches that a picture becomes; see `apply`.

        Args:
            height: of the picture, in pixels.
            width: likewise.

        Raises:
            ParameterError: a size was chosen that has more than `max_patches`.
        """
        recipe = self.sized(size)
        if recipe.mode_for(height, width, mode=mode, max_patches=max_patches) == "fit":
            most = MAX_INPUT_SIDE**2 if size else max_patches or MAX_PATCHES
            tall, wide = recipe.fit_size(height, width, max_patches=most)
            rows, cols = tall // self.patch_size[0], wide // self.patch_size[1]
        else:
            rows, cols = recipe._own_grid
        limit = max_patches or MAX_CHOSEN_PATCHES
        if size and rows * cols > limit:
            raise ParameterError(
                f"This size has {rows} x {cols} = {rows * cols:,} patches, more than the {limit:,} that are computed here; please "
                "choose a smaller one."
            )
        return rows, cols

    def apply(
        self, image: Image.Image, *, mode: Mode = "fit", size: int = 0, max_patches: int | None = None
    ) -> Prepared:
        """The model's input for a picture: `cut`, normalised.

        Args:
            image, mode, size, max_patches: as `cut` has them.

        Raises:
            ParameterError, ImageError: as `cut` says.
        """
        cut, box = self.cut(image, mode=mode, size=size, max_patches=max_patches)
        used = self.mode_for(*box.original_size, mode=mode, max_patches=max_patches)
        why = f'as in mode "crop", since this model takes no other size than {_times(self.input_size)} pixels'
        note = "" if used == mode else why
        words = "; ".join(filter(None, (self.sized(size).describe(mode=used), note)))
        return Prepared(self.normalised(levels_of(cut, self.channels)[None]), box, words, note)

    def mode_for(self, height: int, width: int, *, mode: Mode, max_patches: int | None = None) -> Mode:
        """The mode that a picture of this size gets: "crop" where "fit" would make an input that the model does not take."""
        if mode != "fit" or not self.one_size:
            return mode
        fitted = self.fit_size(height, width, max_patches=max_patches or MAX_PATCHES)
        return "fit" if fitted == self.input_size else "crop"

    def cut(
        self, image: Image.Image, *, mode: Mode = "fit", size: int = 0, max_patches: int | None = None
    ) -> tuple[Image.Image, CropBox]:
        """What the model receives of a picture, not normalised yet, and where that is in the original.

        fit: the whole picture at its own shape; the short side gets the short side of `input_size`, the long side its proportional
        length, both rounded to the patch; smaller if that were more than `max_patches`; where the model takes `one_size`, which
        this is not, as crop. crop: the checkpoint's evaluation recipe, equal to timm's and torchvision's to the last bit, to that
        of transformers within a level. stretch: `input_size` whatever the shape.

        Args:
            image: upright RGB from `decode`; any other PIL image is decoded first.
            size: short side of the input in patches; 0 is the checkpoint's own. See `sized`.
            max_patches: bound on rows x cols: of the checkpoint's own size in mode fit, which is made smaller beyond it (None:
                1024), and of a size that is chosen, which is refused beyond it (None: 4096).

        Raises:
            ParameterError: the mode does not exist, the size has more than `max_patches`, that is less than 1, or the model takes
                neither 1 nor 3 channels.
            ImageError: a picture of another kind cannot be decoded.
        """
        if max_patches is not None and max_patches < 1:
            raise ParameterError(f"max_patches is at least 1, not {max_patches}.")
        if self.channels not in _PICTURE_CHANNELS:
            raise ParameterError(
                f"This model takes {self.channels} channels, but a picture gives 1 or 3; please give it its pixels directly."
            )
        image = image if is_upright_rgb(image) else decode(image)
        original = (image.height, image.width)
        if size:
            rows, cols = self.grid(*original, mode=mode, size=size, max_patches=max_patches)
            return self.sized(size).cut(image, mode=mode, max_patches=rows * cols)
        mode = self.mode_for(*original, mode=mode, max_patches=max_patches)
        if mode == "crop":
            prepared, region = self._crop(image)
        elif mode in ("fit", "stretch"):
            fitted = self.fit_size(*original, max_patches=max_patches or MAX_PATCHES)
            prepared = self._resize(image, self.input_size if mode == "stretch" else fitted)
            region = (0.0, 0.0, float(original[0]), float(original[1]))
        else:
            raise ParameterError(f'mode is "fit", "crop" or "stretch", not {mode!r}.')
        box = CropBox(original, (prepared.height, prepared.width), region)
        if mode == "fit" or not self.drop_remainder:
            return prepared, box
        box = box.of_patches(self._own_grid, self.patch_size)
        covered = prepared.crop((0, 0, box.input_size[1], box.input_size[0]))
        return prepared if self.one_size else covered, box

    def normalised(self, levels: Tensor) -> Tensor:
        """The model's input of grey or colour levels 0..255, float32, on their device: (levels / 255 - mean) / std.

        The order of operations is torchvision's, so that the bits agree.

        Args:
            levels: [images, channels, height, width].
        """
        mean, std = _statistics_on(levels.device, tuple(self.mean), tuple(self.std))
        return levels.to(torch.float32).div(255).sub_(mean).div_(std)

    def reverse(self, pixels: Tensor) -> Image.Image:
        """The picture that a model's input shows: the normalisation undone, clipped to 0..255.

        Args:
            pixels: [channels, height, width] or [1, channels, height, width].

        Raises:
            ParameterError: the shape is another one.
        """
        values = pixels.detach().to("cpu", torch.float32)
        values = values[0] if values.ndim == 4 and len(values) == 1 else values
        if values.ndim != 3 or len(values) != self.channels or self.channels not in _PICTURE_CHANNELS:
            raise ParameterError(f"pixels are [1, {self.channels}, height, width], not {list(pixels.shape)}.")
        mean, std = _statistics_on(values.device, tuple(self.mean), tuple(self.std))
        array = values.mul(std).add(mean).mul(255).round().clamp(0, 255).to(torch.uint8).numpy()
        return Image.fromarray(
            array[0] if self.channels == 1 else np.ascontiguousarray(array.transpose(1, 2, 0))
        )

    def fit_size(self, height: int, width: int, *, max_patches: int = MAX_PATCHES) -> Size:
        """(height, width) of the input in mode fit: whole patches, at most `max_patches`, the shape kept as well as they can."""
        if max_patches < 1:
            raise ParameterError(f"max_patches is at least 1, not {max_patches}.")
        patch_h, patch_w = self.patch_size
        scale = min(self.input_size) / min(height, width)
        tall, wide = height * scale / patch_h, width * scale / patch_w  # in patches, before rounding
        rows, cols = max(1, round(tall)), max(1, round(wide))
        if rows * cols > max_patches:
            rows, cols = _largest_grid(tall / wide, max_patches)
        return rows * patch_h, cols * patch_w

    def describe(self, *, mode: Mode = "crop") -> str:
        """The recipe in words, for captions and provenance."""
        height, width = self.input_size
        tall, wide = self._target
        recipe = {
            "center": f"short side {tall}" if tall == wide else f"covering {tall} x {wide}",
            "squash": f"stretched to {tall} x {wide}",
            "border": f"within {tall} x {wide} and a border of the mean",
        }[self.crop]
        shape = {
            "fit": f"whole image, short side near {min(self.input_size)} px, rounded to patches of {_times(self.patch_size)}",
            "crop": f"{recipe}, centre crop {height} x {width}",
            "stretch": f"stretched to {height} x {width}",
        }[mode]
        colour = "" if self.channels == 3 else ", luminance"
        if mode != "fit" and self.covered_size != self.input_size:
            shape += f", of which patches cover {_times(self.covered_size)}"
        return f"{shape}, {self.interpolation}{colour}, mean {_numbers(self.mean)}, std {_numbers(self.std)}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Preprocess:
        """The inverse of `to_dict`.

        Raises:
            ParameterError: a field is unknown, missing or out of bounds.
        """
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        try:
            return cls(**fields)
        except TypeError as error:
            raise ParameterError(
                f"This is not a preprocessing recipe: its fields are {sorted(data)}."
            ) from error

    @property
    def _own_grid(self) -> Size:
        """(rows, cols) of `input_size`: a patch that reaches beyond it counts, unless `drop_remainder` leaves it out."""
        (height, width), (patch_h, patch_w) = self.covered_size, self.patch_size
        return -(-height // patch_h), -(-width // patch_w)

    def _crop(self, image: Image.Image) -> tuple[Image.Image, Region]:
        """Resize and centre crop; where the picture is too small for the cut, the border is black as torchvision's, or the mean."""
        height, width = self._recipe_size(image.height, image.width)
        crop_h, crop_w = self.input_size
        top = _centre(height, crop_h, rounds_down=self.rounds_down)
        left = _centre(width, crop_w, rounds_down=self.rounds_down)
        resized = self._resize(image, (height, width))
        scale_h, scale_w = image.height / height, image.width / width
        region = (top * scale_h, left * scale_w, crop_h * scale_h, crop_w * scale_w)
        if self.crop != "border":
            return resized.crop((left, top, left + crop_w, top + crop_h)), region
        mean = tuple(min(255, max(0, round(255 * value))) for value in self.mean)
        framed = Image.new(resized.mode, (crop_w, crop_h), mean if self.channels == 3 else mean[0])
        framed.paste(resized, (-left, -top))
        return framed, region

    @property
    def _target(self) -> Size:
        """`resize_to` as (height, width)."""
        to, (height, width) = self.resize_to, self.input_size
        if isinstance(to, tuple):
            return to
        assert to is not None
        return round(height * to / min(height, width)), round(width * to / min(height, width))

    def _recipe_size(self, height: int, width: int) -> Size:
        """(height, width) before the centre crop, by the arithmetic of torchvision's Resize and timm's ResizeKeepRatio."""
        target_h, target_w = self._target
        if self.crop == "squash":
            return target_h, target_w
        if target_h == target_w and self.crop == "center":
            long_side = int(target_h * max(height, width) / min(height, width))
            return (target_h, long_side) if height <= width else (long_side, target_h)
        nearer = max if self.crop == "border" else min
        ratio = nearer(height / target_h, width / target_w)
        return max(1, round(height / ratio)), max(1, round(width / ratio))

    def _resize(self, image: Image.Image, size: Size) -> Image.Image:
        gray_or_rgb = image.convert("L") if self.channels == 1 else image
        if (image.height, image.width) == size:
            return gray_or_rgb
        return gray_or_rgb.resize((size[1], size[0]), _FILTERS[self.interpolation])


def levels_of(image: Image.Image, channels: int) -> Tensor:
    """A picture's grey or colour levels, uint8 [channels, height, width]."""
    array = np.array(image).reshape(image.height, image.width, channels)
    return torch.from_numpy(array).permute(2, 0, 1).contiguous()


# --- values of a recipe; those that check raise a ParameterError where the value is out of bounds


def _pair(name: str, value: Any) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ParameterError(f"{name} is (height, width), not {value!r}.")
    return _bounded(name, value[0]), _bounded(name, value[1])


def _bounded(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INPUT_SIDE:
        raise ParameterError(f"{name} is a number of pixels from 1 to {MAX_INPUT_SIDE}, not {value!r}.")
    return value


def _per_channel(name: str, value: Any, channels: int) -> tuple[float, ...]:
    """A number for each channel, checked; one number stands for all."""
    values = tuple(float(v) for v in (value if isinstance(value, tuple | list) else (value,)))
    if len(values) in (1, 3) and len(set(values)) == 1:  # one number for all, or the default, which has three
        values = values[:1] * channels
    if len(values) != channels or not all(map(math.isfinite, values)):
        raise ParameterError(f"{name} has one finite number per channel ({channels}), not {value!r}.")
    return values


def _times(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def _numbers(values: tuple[float, ...]) -> str:
    return f"{values[0]:g}" if len(set(values)) == 1 else "(" + ", ".join(f"{v:g}" for v in values) + ")"


def _largest_grid(aspect: float, max_patches: int) -> tuple[int, int]:
    """(rows, cols) of at most `max_patches` patches, rows / cols near `aspect`; of equally near ones the larger."""
    ideal = math.sqrt(max_patches * aspect)
    candidates = []
    for rows in {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}:
        for cols in {
            max(1, math.floor(rows / aspect)),
            max(1, math.ceil(rows / aspect)),
            max(1, max_patches // rows),
        }:
            if rows * cols <= max_patches:
                candidates.append((abs(math.log(rows / cols / aspect)), -rows * cols, rows, cols))
    return min(candidates)[2:] if candidates else (1, 1)


def _centre(size: int, crop: int, *, rounds_down: bool) -> int:
    """Where a centre crop starts; negative where the picture is padded. Python's round to even is torchvision's."""
    if crop > size:
        return -((crop - size) // 2)
    return (size - crop) // 2 if rounds_down else round((size - crop) / 2.0)


@lru_cache(maxsize=8)
def _statistics_on(
    device: torch.device, mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[Tensor, Tensor]:
    """Mean and std, each [channels, 1, 1], on a device, which is waited for only once."""
    values = (torch.tensor(one, dtype=torch.float32)[:, None, None].to(device) for one in (mean, std))
    return next(values), next(values)
