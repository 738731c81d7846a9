"""What a Vision Transformer is made of, as data: every choice that its forward pass needs and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from vit_viz.errors import ParameterError
from vit_viz.geometry import Pooling
from vit_viz.sentences import spelled

Position = Literal["learned", "sinusoidal_1d", "sinusoidal_2d", "rotary", "none"]
MlpKind = Literal["gelu", "quick_gelu", "gelu_tanh", "swiglu", "swiglu_packed"]
Norm = Literal["layer", "rms"]
Resample = Literal[
    "timm", "bilinear", "dino", "dinov2", "dinov2_reg", "transformers", "torchvision", "radio", "radio_v4"
]
PatchEmbedding = Literal["conv", "unfold"]
Size = tuple[int, int]

_LIMITS = {
    "in_chans": (1, 1024),
    "embed_dim": (1, 16_384),
    "depth": (0, 256),
    "num_heads": (1, 1024),
    "mlp_hidden": (1, 262_144),
    "num_classes": (0, 1_000_000),
    "class_tokens": (1, 1024),
    "reg_tokens": (0, 1024),
}
_WORDS = {
    "in_chans": "number of channels",
    "embed_dim": "width of a token",
    "depth": "number of layers",
    "num_heads": "number of heads",
    "mlp_hidden": "width of the MLP",
    "num_classes": "number of classes",
    "class_tokens": "number of class tokens",
    "class_read": "class token that is read",
    "reg_tokens": "number of registers",
    "img_size": "size of the picture",
    "patch_size": "size of a patch",
    "position_grid": "grid of the table of positions",
    "rotary_grid": "grid of the rotary positions",
    "norm_eps": "epsilon of the norms",
    "rotary_base": "base of the rotary positions",
    "scale": "factor of the scores",
    "position": "kind of positions",
    "mlp": "kind of MLP",
    "norm": "kind of norm",
    "resample": "way to resample positions",
    "patch_embed": "kind of patch embedding",
    "global_pool": "pooling",
}
"""What errors call an entry: whoever opens a checkpoint did not write its configuration.

Others are called by their name, spelled."""

_MAX_SIDE = 16_384
_MAX_PATCHES = 1 << 18
_MAX_PARAMETERS = 12_000_000_000  # the largest published ViT (DINOv3 7B) has 6.7 billion


@dataclass(frozen=True)
class ViTConfig:
    """The architecture of a Vision Transformer; bounded, so that a hostile file cannot ask for all memory.

    Args:
        img_size: (height, width) in pixels that the position embedding was made for; a number means a square.
        patch_size: (height, width) of a patch in pixels.
        mlp_hidden: width of the MLP between its two layers; None means 4 x embed_dim.
        num_classes: outputs of the head; 0 means no head, and the model returns pooled features.
        class_tokens: how many class tokens there are where `class_token` says that there are some (RADIO: one for each teacher).
        class_read: which of them the output reads, side by side.
        no_embed_class: the prefix tokens have no position embedding of their own.
        position_grid: (rows, cols) of the learned positions where they were made for another grid than that of `img_size`, and are
            resampled for it, too (RADIO); None for that grid.
        resample: how learned positions are brought to another grid; families differ (`vit_viz.model.positions.resample`).
        rotary_base: the longest wavelength of rotary positions, in units of the picture; of those of `rotary_grid` the base of
            their frequencies.
        rotary_grid: (rows, cols) of the grid to which places are scaled for rotary positions that come beside those of `position`
            (EVA-02); None for none.
        relative_bias: each block adds a learned bias per head and offset to the scores (BEiT).
        shared_bias: all blocks add one such bias, instead or besides.
        patch_embed: a strided convolution, or unfold and a linear layer; equal up to a reshape of the weight.
        patch_norm: a norm right after the patch embedding (AIMv2).
        pad: fill up sides that the patch does not divide with zeros at the bottom and on the right, instead of refusing them.
        drop_remainder: leave out the last pixels of such sides, as a convolution does whose stride does not fit (SigLIP SO400M at
            384 px in patches of 14: 27 patches, 6 pixels left over).
        scale: factor on q k^T; None means head_dim ** -0.5.
        attn_norm: a norm between attention and its output projection (BEiT-3); mlp_norm likewise in the MLP.
        pre_norm: a norm before the first block (CLIP).
        fc_norm: a norm after pooling.
        pool_prefix: mean and attention pooling see the prefix tokens too.
        pool_concat: the head reads the class token and the mean of the patches side by side (DINOv2's linear head).
        dist_head: the distillation token has a head of its own; the output is the mean of both heads (DeiT).
        projection: the head maps to an embedding (CLIP), so its outputs are not classes.

    Raises:
        ParameterError: a value is outside its range, or two choices exclude each other.
    """

    img_size: Size = (224, 224)
    patch_size: Size = (16, 16)
    in_chans: int = 3
    embed_dim: int = 768
    depth: int = 12
    num_heads: int = 12
    mlp_hidden: int | None = None
    num_classes: int = 1000
    class_token: bool = True
    class_tokens: int = 1
    class_read: tuple[int, ...] = (0,)
    dist_token: bool = False
    reg_tokens: int = 0
    no_embed_class: bool = False
    position: Position = "learned"
    position_grid: Size | None = None
    resample: Resample = "timm"
    rotary_base: float = 100.0
    rotary_grid: Size | None = None
    relative_bias: bool = False
    shared_bias: bool = False
    patch_embed: PatchEmbedding = "conv"
    patch_bias: bool = True
    patch_norm: bool = False
    pad: bool = False
    drop_remainder: bool = False
    qkv_bias: bool = True
    proj_bias: bool = True
    mlp_bias: bool = True
    qk_norm: bool = False
    scale: float | None = None
    attn_norm: bool = False
    mlp_norm: bool = False
    layer_scale: bool = False
    mlp: MlpKind = "gelu"
    norm: Norm = "layer"
    norm_eps: float = 1e-6
    pre_norm: bool = False
    final_norm: bool = True
    pooling: Pooling = "class"
    pool_prefix: bool = False
    pool_concat: bool = False
    fc_norm: bool = False
    head_bias: bool = True
    dist_head: bool = False
    projection: bool = False

    def __post_init__(self) -> None:
        for name in ("img_size", "patch_size"):
            object.__setattr__(self, name, _size(name, getattr(self, name)))
        for name in ("rotary_grid", "position_grid"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _size(name, getattr(self, name), unit="patches"))
        if self.mlp_hidden is None:
            object.__setattr__(self, "mlp_hidden", 4 * _integer("embed_dim", self.embed_dim))
        for name in _LIMITS:
            object.__setattr__(self, name, _integer(name, getattr(self, name)))
        object.__setattr__(self, "class_read", _indices("class_read", self.class_read, self.class_tokens))
        for name, options in _CHOICES.items():
            _choose(name, getattr(self, name), options)
        for field in fields(self):
            if field.type == "bool" and not isinstance(getattr(self, field.name), bool):
                raise ParameterError(
                    f"The {words_of(field.name)} must be true or false, not {str(getattr(self, field.name))[:40]!r}."
                )
        for name, limit in _POSITIVE.items():
            value = getattr(self, name)
            if name == "scale" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < limit:
                raise ParameterError(
                    f"The {words_of(name)} must lie between 0 and {limit:g}, not {str(value)[:40]!r}."
                )
        self._check_combinations()

    @property
    def grid(self) -> Size:
        """Patches of an input of `img_size` as (rows, cols)."""
        (height, width), (patch_height, patch_width) = self.img_size, self.patch_size
        if self.pad:
            return -(-height // patch_height), -(-width // patch_width)
        return height // patch_height, width // patch_width

    @property
    def table_grid(self) -> Size:
        """(rows, cols) of the learned positions as they are stored."""
        return self.position_grid or self.grid

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.embed_dim // self.num_heads

    @property
    def prefix(self) -> tuple[str, ...]:
        """Names of the tokens before the patches, in their order."""
        classes = ["class"] if self.class_tokens == 1 else [f"class {i}" for i in range(self.class_tokens)]
        names = classes * self.class_token + ["distillation"] * self.dist_token
        return (*names, *(f"register {i}" for i in range(self.reg_tokens)))

    @property
    def unread(self) -> tuple[str, ...]:
        """Names of the class and distillation tokens that the output does not read, where it reads another of them."""
        if self.pooling != "class":
            return ()
        others = tuple(self.prefix[i] for i in range(self.class_tokens) if i not in self.class_read)
        return others + ("distillation",) * (self.dist_token and not self.dist_head)

    @property
    def position_kind(self) -> str:
        """What says where a patch is: `position`; "rotary" or "relative" where scores alone depend on it."""
        if self.position == "none" and self.rotary_grid is not None:
            return "rotary"
        is_relative = self.position == "none" and (self.relative_bias or self.shared_bias)
        return "relative" if is_relative else self.position

    @property
    def positioned_prefix(self) -> tuple[str, ...]:
        """The prefix tokens that have a position embedding of their own: the first rows of the position table."""
        return () if self.no_embed_class or self.position in ("rotary", "none") else self.prefix

    @property
    def num_parameters(self) -> int:
        """About how many numbers the model has; norms and other small parts are left out."""
        dim, hidden = self.embed_dim, int(self.mlp_hidden or 0)
        block = 4 * dim * dim + (3 if self.mlp == "swiglu" else 2) * dim * hidden
        positions = self.table_grid[0] * self.table_grid[1] * dim if self.position == "learned" else 0
        embed = self.in_chans * self.patch_size[0] * self.patch_size[1] * dim
        tables = self.depth * self.relative_bias + self.shared_bias
        biases = tables * self.num_heads * (2 * self.grid[0] - 1) * (2 * self.grid[1] - 1)
        return self.depth * block + positions + biases + embed + self.num_classes * dim

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain JSON values; `from_dict` reads it back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ViTConfig:
        """Read our own names, or timm's (global_pool, mlp_ratio, init_values, ...) as checkpoints of timm carry them.

        Raises:
            ParameterError: a name is unknown or a value is out of range.
        """
        values = _from_timm(dict(values))
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ParameterError(f"A ViT configuration has no entry {', '.join(map(repr, unknown[:5]))}.")
        return cls(**values)

    def _check_combinations(self) -> None:
        size, patch, is_biased = self.img_size, self.patch_size, self.relative_bias or self.shared_bias
        wrong: dict[str, object] = {
            f"The {self.embed_dim} numbers of a token cannot be shared by {self.num_heads} heads: each takes equally many.":
                self.embed_dim % self.num_heads,
            "A side that the patch does not divide is filled up or cut, not both.":
                self.pad and self.drop_remainder,
            f"Rotary positions need heads whose width 4 divides, not {self.head_dim}.":
                (self.position == "rotary" or self.rotary_grid) and self.head_dim % 4,
            "A grid of rotary positions comes beside other positions than rotary ones.":
                self.position == "rotary" and self.rotary_grid,
            "A relative position bias has entries for one class token and patches, and for no distillation token or register.":
                is_biased and self.prefix != ("class",),
            f"A relative position bias is resampled as timm or transformers does it, not as {self.resample!r}.":
                is_biased and self.resample not in ("timm", "transformers"),
            f"2-D sinusoidal positions need a width of a token that 4 divides, not {self.embed_dim}.":
                self.position == "sinusoidal_2d" and self.embed_dim % 4,
            "A packed SwiGLU needs an MLP of even width: half of it is the gate.":
                self.mlp == "swiglu_packed" and int(self.mlp_hidden or 0) % 2,
            "Class pooling needs a class token; choose pooling 'mean' or 'attention'.":
                self.pooling == "class" and not self.class_token,
            "With several class tokens there can be no distillation token, no mean beside them and no norm after pooling.":
                self.class_tokens > 1 and (not self.class_token or self.dist_token or self.pool_concat or self.fc_norm),
            "Only learned positions can have a grid of their own.":
                self.position_grid and (self.position != "learned" or is_biased),
            "A head that reads class token and mean side by side needs class pooling, and neither a distillation head nor a norm "
            "after pooling.":
                self.pool_concat and (self.pooling != "class" or self.fc_norm or self.dist_head),
            "A distillation head needs a distillation token and class pooling.":
                self.dist_head and not (self.dist_token and self.pooling == "class"),
            f"A picture of {size[0]} x {size[1]} pixels in patches of {patch[0]} x {patch[1]} gives no usable patch grid.":
                min(self.grid) < 1 or max(math.prod(self.grid), math.prod(self.table_grid)) > _MAX_PATCHES,
            f"A model of {self.num_parameters / 1e9:.0f} billion parameters is too large to be loaded here.":
                self.num_parameters > _MAX_PARAMETERS,
        }  # fmt: skip
        for words, is_so in wrong.items():
            if is_so:
                raise ParameterError(words)


_POSITIVE = {"norm_eps": 1.0, "rotary_base": 1e9, "scale": 1e9}  # and the limit of each
_CHOICES: dict[str, tuple[str, ...]] = {
    "position": get_args(Position),
    "mlp": get_args(MlpKind),
    "norm": get_args(Norm),
    "resample": get_args(Resample),
    "patch_embed": get_args(PatchEmbedding),
    "pooling": get_args(Pooling),
}
_TIMM_POOLING = {"token": "class", "avg": "mean", "map": "attention"}
_TIMM_IGNORED = ("architecture", "fix_init", "weight_init", "dynamic_img_size", "drop_path_rate", "head_dim")


def _from_timm(values: dict[str, Any]) -> dict[str, Any]:
    """Translate timm's argument names; ours pass through."""
    for name in _TIMM_IGNORED:
        values.pop(name, None)
    if "global_pool" in values:
        pool = values.pop("global_pool")
        _choose("global_pool", pool, tuple(_TIMM_POOLING))
        values["pooling"] = _TIMM_POOLING[pool]
        if values.get("fc_norm") is None:  # timm: mean pooling moves the final norm behind the pool
            values["fc_norm"] = pool == "avg"
        has_norm = values.get("final_norm", True)
        values["final_norm"] = bool(has_norm and not values["fc_norm"])
        values["fc_norm"] = bool(has_norm and values["fc_norm"])
    if "mlp_ratio" in values:
        ratio = values.pop("mlp_ratio")
        if not isinstance(ratio, int | float) or not 0 < ratio < 1000:
            raise ParameterError(
                f"The ratio of the MLP's width to a token's must be a positive number, not {ratio!r}."
            )
        values.setdefault("mlp_hidden", int(_integer("embed_dim", values.get("embed_dim", 768)) * ratio))
    if "init_values" in values:
        values["layer_scale"] = bool(values.pop("init_values"))
    if values.get("pre_norm") and "patch_bias" not in values:
        values["patch_bias"] = False
    return values


def _size(name: str, value: Any, *, unit: str = "pixels") -> Size:
    pair = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value, value)
    if len(pair) != 2:
        raise ParameterError(f"The {words_of(name)} is (height, width) or one number, not {value!r}.")
    height, width = (_integer(name, side) for side in pair)
    if not (1 <= height <= _MAX_SIDE and 1 <= width <= _MAX_SIDE):
        raise ParameterError(
            f"The {words_of(name)} must lie between 1 and {_MAX_SIDE} {unit}, not {height} x {width}."
        )
    return height, width


def _indices(name: str, value: Any, count: int) -> tuple[int, ...]:
    """Which of `count` are meant, each once."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(
            f"The {words_of(name)} is given in a list of numbers, not as {str(value)[:40]!r}."
        )
    indices = tuple(_integer(name, index) for index in value)
    if not indices or len(set(indices)) < len(indices) or min(indices) < 0 or max(indices) >= count:
        raise ParameterError(
            f"The {words_of(name)} must be one of 0-{count - 1}, and none twice, not {str(list(indices))[:40]}."
        )
    return indices


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value != int(value):
        raise ParameterError(f"The {words_of(name)} must be a whole number, not {str(value)[:40]!r}.")
    low, high = _LIMITS.get(name, (0, _MAX_SIDE))
    if name in _LIMITS and not low <= value <= high:
        raise ParameterError(f"The {words_of(name)} must lie between {low} and {high}, not {value}.")
    return int(value)


def _choose(name: str, value: Any, options: tuple[str, ...]) -> None:
    if value not in options:
        there = ", ".join(map(spelled, options))
        raise ParameterError(f"The {words_of(name)} must be one of {there}, not {str(value)[:40]!r}.")


def words_of(entry: str) -> str:
    """What errors call an entry of a configuration: "width of a token"."""
    return _WORDS.get(entry, spelled(entry))


def highest(entry: str) -> int:
    """The largest value of an entry that is a size or a count."""
    return _LIMITS[entry][1] if entry in _LIMITS else _MAX_SIDE
