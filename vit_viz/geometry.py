"""Where things are: token <-> (row, col) <-> pixels of the original image.

Token counts, prefix and suffix tokens and patch rectangles are worked out here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError

Query = str | tuple[int, int] | Sequence[tuple[int, int]]
"""What is asked about: "class", "pool", "register 0", "detection 3", one patch (row, col), or a region [(row, col), ...].

Patches may be written as text, too: "3,4", or "3,4;3,5" for a region."""

Pooling = Literal["class", "mean", "attention"]
Grid = tuple[int, int]

_NUMBER = re.compile(r" \d+$")
_CLASS_TOKEN = re.compile(r"class( \d+)?")
_PATCH_TEXT = re.compile(r"\(?\s*(\d{1,5})\s*,\s*(\d{1,5})\s*\)?")
_POSITIONS = re.compile(rf"\s*{_PATCH_TEXT.pattern}(?:\s*;\s*{_PATCH_TEXT.pattern})*\s*;?\s*")


@dataclass(frozen=True)
class TokenLayout:
    """Which token of the sequence is what: prefix tokens first, then the patches row by row, then suffix tokens.

    Args:
        grid: patches as (rows, cols).
        prefix: names of the tokens before the patches, e.g. ("class", "register 0", "register 1"), or ("class 0", "class 1", ...)
            where there are several class tokens, as of models with one for each class.
        pooling: what the model's output is read from; None means the class tokens where there are any, else the mean of the
            patches.
        suffix: names of the tokens after the patches, e.g. ("detection 0", "detection 1").
        joins_patches: beside the class token the output reads the mean of all patches, as the linear heads of DINOv2 do.
        unread: class tokens that the output does not read, as RADIO has them; also a distillation token without a head of its own.

    Raises:
        ParameterError: the grid is empty, two of the prefix and suffix tokens have the same name, one is named as a query or
            share that is not a token ("pool", "patches"), or one that is not read is no class or distillation token.
    """

    grid: Grid
    prefix: tuple[str, ...] = ("class",)
    pooling: Pooling | None = None
    suffix: tuple[str, ...] = field(default=(), kw_only=True)
    joins_patches: bool = field(default=False, kw_only=True)
    unread: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        rows, cols = (int(n) for n in self.grid)
        if rows < 1 or cols < 1:
            raise ParameterError(f"A patch grid has at least 1 x 1 patches, not {rows} x {cols}.")
        object.__setattr__(self, "grid", (rows, cols))
        for names in ("prefix", "suffix", "unread"):
            object.__setattr__(self, names, tuple(getattr(self, names)))
        for name in ("pool", "patches"):
            if name in self.named:
                raise ParameterError(f"No token can be named {name!r}: that word has another meaning.")
        twice = [name for i, name in enumerate(self.named) if name in self.named[:i]]
        if twice:
            raise ParameterError(
                f"Prefix and suffix tokens need different names, but {twice[0]!r} is there twice."
            )
        for name in self.unread:
            if name not in self.named or not (_CLASS_TOKEN.fullmatch(name) or name == "distillation"):
                raise ParameterError(
                    f"Only class and distillation tokens of the layout can be declared as not read; {name!r} is not one of them."
                )
        if self.pooling is None:
            object.__setattr__(self, "pooling", "class" if self.class_tokens else "mean")
        if self.pooling == "class" and not self.class_tokens:
            raise ParameterError("Class pooling needs a class token among the prefix or suffix tokens.")

    @property
    def named(self) -> tuple[str, ...]:
        """The tokens that are not patches: prefix tokens, then suffix tokens, in the order of the sequence."""
        return self.prefix + self.suffix

    @property
    def class_tokens(self) -> tuple[str, ...]:
        """Names of what class pooling reads: "class", or "class 0", "class 1", ..., with a distillation token beside it."""
        read = [name for name in self.named if name not in self.unread]
        names = tuple(name for name in read if _CLASS_TOKEN.fullmatch(name))
        return names + ("distillation",) * (bool(names) and "distillation" in read)

    @property
    def num_prefix(self) -> int:
        """Tokens before the first patch."""
        return len(self.prefix)

    @property
    def num_suffix(self) -> int:
        """Tokens after the last patch."""
        return len(self.suffix)

    @property
    def num_patches(self) -> int:
        """Patches of the grid."""
        return self.grid[0] * self.grid[1]

    @property
    def num_tokens(self) -> int:
        """Prefix tokens, patches and suffix tokens together: the length of the sequence."""
        return self.num_prefix + self.num_patches + self.num_suffix

    @property
    def patch_slice(self) -> slice[int, int, None]:
        """Where the patches are in the sequence."""
        return slice(self.num_prefix, self.num_prefix + self.num_patches)

    @property
    def suffix_slice(self) -> slice[int, int, None]:
        """Where the suffix tokens are in the sequence."""
        return slice(self.num_prefix + self.num_patches, self.num_tokens)

    @property
    def suffix_groups(self) -> dict[str, tuple[int, ...]]:
        """Token indices of the suffix tokens by kind: "detection" has those of "detection 0", "detection 1", ..."""
        groups: dict[str, tuple[int, ...]] = {}
        for token, name in enumerate(self.suffix, start=self.suffix_slice.start):
            group = kind_of(name, self.prefix)
            groups[group] = (*groups.get(group, ()), token)
        return groups

    @property
    def default_query(self) -> str:
        """The query that stands for the model's output: "class" where the class token is pooled, else "pool"."""
        return "class" if self.pooling == "class" and "class" in self.named else "pool"

    @property
    def output_query(self) -> str:
        """The query that a map of the output starts from where the layout is right: all class tokens, where there are several."""
        return self.default_query if len(self.class_tokens) == 1 else "pool"

    def check_tokens(self, count: int) -> None:
        """Check that the layout has as many tokens as a model attends over.

        Raises:
            ParameterError: it does not.
        """
        if self.num_tokens != count:
            rows, cols = self.grid
            after = f" + {self.num_suffix} suffix" if self.suffix else ""
            raise ParameterError(
                f"The layout has {self.num_tokens} tokens ({self.num_prefix} prefix + {rows} x {cols} patches{after}), but the "
                f"model attends over {count}: pass layout=TokenLayout(grid=(rows, cols), prefix=(...)) that fits."
            )

    def token(self, where: str | tuple[int, int]) -> int:
        """Index of one token in the sequence.

        Raises:
            ParameterError: the model has no token of this name, or the patch lies outside the grid.
        """
        if isinstance(where, str):
            if where in self.prefix:
                return self.prefix.index(where)
            if where in self.suffix:
                return self.suffix_slice.start + self.suffix.index(where)
            names = f"its prefix tokens are: {_list_words(self.prefix)}"
            names += f"; its suffix tokens are: {_list_words(self.suffix)}" if self.suffix else ""
            raise ParameterError(f"This model has no token {where!r}; {names}.")
        row, col = where
        rows, cols = self.grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise ParameterError(
                f"Patch {place_words(where)} does not exist: rows are 0-{rows - 1} and columns 0-{cols - 1}."
            )
        return self.num_prefix + int(row) * cols + int(col)

    def place(self, token: int) -> tuple[int, int] | None:
        """The patch (row, col) of a token; None for a prefix or suffix token.

        Raises:
            ParameterError: there is no such token.
        """
        if not 0 <= token < self.num_tokens:
            raise ParameterError(f"Token {token} does not exist: tokens are 0-{self.num_tokens - 1}.")
        index = token - self.num_prefix
        return divmod(index, self.grid[1]) if 0 <= index < self.num_patches else None

    def tokens(self, query: Query) -> tuple[int, ...]:
        """Indices of all tokens that a query stands for, ascending and without repetition."""
        return tuple(int(i) for i in np.flatnonzero(self.weights(query)))

    def weights(self, query: Query) -> NDArray[np.float64]:
        """Weight of each token in a query, [tokens]; the sum is 1.

        One token has weight 1; a region is the mean of its patches; "pool" is what the layout says that the output is read from:
        the class token, the mean of several (a distillation token is one of them), or the mean of all patches.

        Raises:
            ParameterError: the query names no token, or the pool is a learned attention (the trace knows its weights).
        """
        query = as_query(query)
        chosen = [self.token(part) for part in _parts(query)] if query != "pool" else self._pool()
        weights = np.zeros(self.num_tokens)
        weights[sorted(set(chosen))] = 1 / len(set(chosen))
        return weights

    def name(self, token: int) -> str:
        """A token in words: "class", "register 0", "patch (3, 5)", "detection 3"."""
        place = self.place(token)
        if place is not None:
            return f"patch {place_words(place)}"
        return self.prefix[token] if token < self.num_prefix else self.suffix[token - self.suffix_slice.start]

    def describe(self, query: Query) -> str:
        """A query in words, for captions: "class token", "register 0", "patch (3, 5)"."""
        query = as_query(query)
        if query == "pool":
            of_class = "class token" if self.class_tokens == ("class",) else _list_words(self.class_tokens)
            read = {"class": of_class, "mean": "mean of patches", "attention": "learned attention"}
            return f"pool ({read[str(self.pooling)]})"
        parts = _parts(query)
        names = [self.name(self.token(part)) for part in parts]
        if len(set(names)) == 1:
            return names[0] if names[0][-1].isdigit() or names[0].startswith("patch") else f"{names[0]} token"
        return f"region of {len(set(names))} patches"

    def patches(self, values: Any) -> Any:
        """The patch part of `values` as pictures: [..., tokens] -> [..., rows, cols]; NumPy or torch."""
        return values[..., self.patch_slice].reshape(*values.shape[:-1], *self.grid)

    def _pool(self) -> list[int]:
        if self.pooling == "class":
            return [self.token(name) for name in self.class_tokens]
        if self.pooling == "attention":
            raise ParameterError(
                "The pool of this model is a learned attention, whose weights are those of a trace where it was recorded; ask for "
                'a token, such as query="0,0".'
            )
        return list(range(self.patch_slice.start, self.patch_slice.stop))


def place_words(place: Sequence[SupportsIndex]) -> str:
    """What a patch is called everywhere, by its row and column, both counted from 0: "(3, 5)"."""
    return f"({place[0]}, {place[1]})"


def kind_of(name: str, prefix: Iterable[str]) -> str:
    """What a suffix token is counted as: "detection" for "detection 3"; its whole name where a prefix token has the kind."""
    kind = _NUMBER.sub("", name)
    return name if kind in (*prefix, "patches") else kind


def _list_words(names: tuple[str, ...]) -> str:
    """Names in a sentence; of many, the first and the last."""
    return f"{names[0]} ... {names[-1]}" if len(names) > 8 else ", ".join(names) or "none"


def _parts(query: Query) -> list[str | tuple[int, int]]:
    query = as_query(query)
    if isinstance(query, str):
        return [query]
    return [query] if isinstance(query, tuple) else list(query)  # `as_query` makes a tuple of one patch


def _is_place(item: object) -> bool:
    """Whether this is (row, col): whole numbers of Python or NumPy, or tensors of one."""
    return isinstance(item, list | tuple) and len(item) == 2 and all(map(_is_number, item))


def _is_number(item: object) -> bool:
    return isinstance(item, SupportsIndex) and not isinstance(item, bool) and not getattr(item, "shape", ())


def as_query(query: Query) -> Query:
    """A query whose patches are numbers of Python: "3,4" is (3, 4), an array of places a list; names of tokens stay as they are."""
    if isinstance(query, str):
        return parse_query(query) if _POSITIONS.fullmatch(query) else query
    as_list = getattr(query, "tolist", None)
    value: Any = query if as_list is None else as_list()
    if _is_place(value):
        return int(value[0]), int(value[1])
    if isinstance(value, list | tuple | set | frozenset) and all(map(_is_place, value)):
        if not value:
            raise ParameterError("A region query needs at least one patch.")
        return [(int(row), int(col)) for row, col in value]
    raise ParameterError(
        'A query is a token such as "class", "pool" or "register 0", a patch (row, col) or a list of patches, '
        f"not {query!r:.60}."
    )


def parse_query(text: str) -> Query:
    """Read a query as links write it: "class", "detection 3", "7,12" or "7,12;7,13"."""
    text = text.strip()
    if re.fullmatch(r"[a-z]+( \d{1,4})?", text):
        return text
    matches = [_PATCH_TEXT.fullmatch(part.strip()) for part in text.split(";") if part.strip()]
    patches = [(int(m[1]), int(m[2])) for m in matches if m]
    if not patches or len(patches) != len(matches):
        raise ParameterError(
            f"A query is a token name or row,col pairs such as 7,12;7,13, not {text[:80]!r}."
        )
    return patches[0] if len(patches) == 1 else patches


def format_query(query: Query) -> str:
    """Write a query as `parse_query` reads it."""
    return ";".join(part if isinstance(part, str) else f"{part[0]},{part[1]}" for part in _parts(query))


@dataclass(frozen=True)
class CropBox:
    """Which part of the original image the model's patches cover, and at which scale on each axis.

    Args:
        original_size: (height, width) of the upright original, in pixels; of pixels that were given in place of a photo, theirs.
        input_size: (height, width) of all patches in pixels of the model's input.
        region: (top, left, height, width) in pixels of the original that the patches cover; it may reach beyond the image where
            the input was padded.
    """

    original_size: tuple[int, int]
    input_size: tuple[int, int]
    region: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        if min(*self.original_size, *self.input_size, *self.region[2:]) <= 0:
            raise ParameterError("A crop box needs positive sizes.")

    @classmethod
    def of_pixels(cls, height: int, width: int) -> CropBox:
        """Of an input that is its own original."""
        return cls((height, width), (height, width), (0.0, 0.0, float(height), float(width)))

    def of_patches(self, grid: Grid, patch_size: tuple[int, int] | None) -> CropBox:
        """The same input by what patches of this size cover: less where the last pixels are cut off, more where it is padded.

        Without a size of patches the grid divides the input.
        """
        if patch_size is None:
            return self
        tall, wide = grid[0] * patch_size[0], grid[1] * patch_size[1]
        top, left, height, width = self.region
        region = (top, left, height * (tall / self.input_size[0]), width * (wide / self.input_size[1]))
        return CropBox(self.original_size, (tall, wide), region)

    @property
    def covers(self) -> float:
        """Share of the original's area that the model received, in [0, 1]."""
        top, left, height, width = self.region
        inside = max(0.0, min(top + height, self.original_size[0]) - max(top, 0.0))
        inside *= max(0.0, min(left + width, self.original_size[1]) - max(left, 0.0))
        return inside / (self.original_size[0] * self.original_size[1])

    def patch_rect(self, row: int, col: int, grid: Grid) -> tuple[float, float, float, float]:
        """Rectangle (top, left, bottom, right) of a patch, in pixels of the original."""
        top, left, height, width = self.region
        rows, cols = grid
        return (
            top + height * row / rows,
            left + width * col / cols,
            top + height * (row + 1) / rows,
            left + width * (col + 1) / cols,
        )

    def within(self, part: tuple[int, int, int, int], whole: tuple[int, int]) -> CropBox:
        """The same input in the picture that this box's original is a part of.

        Args:
            part: (top, left, height, width) of that original, in pixels of the whole.
            whole: (height, width) of the whole.
        """
        top, left, height, width = part
        if (height, width) != self.original_size:
            raise ParameterError(
                f"A part of {height} x {width} pixels is not this original of {self.original_size[0]} x {self.original_size[1]}."
            )
        down, across, tall, wide = self.region
        return CropBox(whole, self.input_size, (top + down, left + across, tall, wide))

    def locate(self, y: float, x: float, grid: Grid) -> tuple[int, int] | None:
        """The patch (row, col) at a point of the original, or None outside the model's input."""
        top, left, height, width = self.region
        row = int(np.floor((y - top) / height * grid[0]))
        col = int(np.floor((x - left) / width * grid[1]))
        return (row, col) if 0 <= row < grid[0] and 0 <= col < grid[1] else None

    def to_dict(self) -> dict[str, list[float]]:
        """As plain lists, for JSON."""
        return {
            "original": list(self.original_size),
            "input": list(self.input_size),
            "region": list(self.region),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CropBox:
        """The inverse of `to_dict`."""
        top, left, height, width = (float(v) for v in data["region"])
        (oh, ow), (ih, iw) = data["original"], data["input"]
        return cls((int(oh), int(ow)), (int(ih), int(iw)), (top, left, height, width))
