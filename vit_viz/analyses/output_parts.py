"""What an answer is made of, as numbers that sum to it: the parts, from where heads took theirs, and what stands out among them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vit_viz.answer import Answer, Provenance, Row, Table, axes, checked_array
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Grid
from vit_viz.results import PatchMap

NOTE = (
    "Direct parts, with the scale of the last norm held at that of this photo: what a part does through later layers is not "
    "among them."
)


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Answer):
    """An output as a sum: `heads`, `mlps` and `rest` together are `total`.

    Args:
        terms: what each head took from each token, [layers, heads, tokens], prefix tokens first; [layers, 1, tokens] for all heads
            of a layer together.
        heads: of each head, [layers, heads]: the sum of its terms.
        mlps: of each MLP, [layers]: all that a block adds beside its attention.
        rest: what neither heads nor MLPs gave, in the order of `rest_names`.
        total: all parts together.
        output: the number that the model returned; it differs from `total` by rounding alone.
        layers: names of the rows: "0", "1", ...; "pool" for a learned pool, which is the last layer.
        grid: the patches as (rows, cols).
        prefix: names of the tokens before them.
        about: what is explained, for titles: "lion".
        unit: the same in full: "logit of class 291 (lion)".
        crop_box: where the patches lie in the original image.
        finding: what stands out, in one sentence; it follows from the numbers, whatever is given.
    """

    terms: NDArray[np.float32]
    heads: NDArray[np.float32]
    mlps: NDArray[np.float32]
    rest: NDArray[np.float32]
    rest_names: tuple[str, ...]
    total: float
    output: float
    layers: tuple[str, ...]
    grid: Grid
    prefix: tuple[str, ...] = ()
    about: str = ""
    unit: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    crop_box: CropBox | None = None
    note: str = NOTE
    finding: str = ""

    AXES = axes(terms=("layer", "head", "token"), heads=("layer", "head"), mlps=("layer",), rest=("part",))

    def __post_init__(self) -> None:
        for name, ndim in (("terms", 3), ("heads", 2), ("mlps", 1), ("rest", 1)):
            object.__setattr__(
                self, name, checked_array(getattr(self, name), ndim, f"{name} of a decomposition")
            )
        for name in ("rest_names", "layers", "prefix", "grid"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        shape = (len(self.layers), self.terms.shape[1], len(self.prefix) + self.grid[0] * self.grid[1])
        if self.terms.shape != shape or len(self.rest) != len(self.rest_names):
            raise ParameterError(
                f"Terms of {list(shape)} and {len(self.rest_names)} other parts are expected, not {list(self.terms.shape)} and "
                f"{len(self.rest)}."
            )
        object.__setattr__(self, "finding", _finding(self))
        super().__post_init__()

    def __repr__(self) -> str:
        return f"Decomposition({self.unit}: {self.total:.6g}; {self.finding})"

    @property
    def maps(self) -> NDArray[np.float32]:
        """The terms of the patches, [layers, heads, rows, cols]."""
        patches = self.terms[:, :, len(self.prefix) :]
        return patches.reshape(*patches.shape[:2], *self.grid)

    @property
    def parts(self) -> dict[str, float]:
        """Every part by its name, heads as "4 · 3"; together they are the total."""
        rest = dict(zip(self.rest_names, self.rest.tolist(), strict=True))
        heads = {
            f"{self.layers[row]} · {head}": float(value) for (row, head), value in np.ndenumerate(self.heads)
        }
        mlps = {f"MLP {name}": float(value) for name, value in zip(self.layers, self.mlps, strict=True)}
        return rest | heads | mlps

    def map_of(self, layer: int | None = None, head: int | None = None) -> PatchMap:
        """From which patches a part was taken: of one head, all heads of a layer, or all heads; signed, in units of the output.

        Args:
            layer: row of `layers`; None: all.
            head: None: all.

        Raises:
            ParameterError: there is no such layer or head, or terms of single heads were not kept.
        """
        if (layer is not None and not 0 <= layer < len(self.terms)) or (
            head is not None and not 0 <= head < self.terms.shape[1]
        ):
            raise ParameterError(
                f"Layer {layer}, head {head} does not exist: this decomposition has maps of {self.terms.shape[0]} layers x "
                f"{self.terms.shape[1]} heads."
            )
        rows = self.terms if layer is None else self.terms[layer : layer + 1]
        tokens = (rows if head is None else rows[:, head : head + 1]).sum((0, 1), dtype=np.float64)
        whose = "all heads" if head is None else f"head {head}"
        where = "" if layer is None else f" of layer {self.layers[layer]}"
        count = len(self.prefix)
        return PatchMap(
            tokens[count:].reshape(self.grid).astype(np.float32),
            unit=f"part of the {self.unit}",
            value_range=(-np.inf, np.inf),
            signed=True,
            method="direct part",
            class_blind=False,
            provenance=self.provenance,
            prefix=dict(zip(self.prefix, tokens[:count].tolist(), strict=True)),
            crop_box=self.crop_box,
            caption=f"what {whose}{where} took from each patch",
            note=self.note,
        )

    def to_table(self) -> Table:
        """Every part with its layer and head, then every term with its token: row and column of a patch, or the name of another."""
        rows: list[Row] = [
            (name, "", "", "", "", value) for name, value in zip(self.rest_names, self.rest, strict=True)
        ]
        rows += [("MLP", name, "", "", "", value) for name, value in zip(self.layers, self.mlps, strict=True)]
        rows += [("head", self.layers[i], j, "", "", value) for (i, j), value in np.ndenumerate(self.heads)]
        kind = "head" if self.terms.shape[1] == self.heads.shape[1] else "heads"
        for (layer, head, token), value in np.ndenumerate(self.terms):
            patch = token - len(self.prefix)
            place = (self.prefix[token], "") if patch < 0 else divmod(patch, self.grid[1])
            rows.append(
                (f"from a token by {kind}", self.layers[layer], head if kind == "head" else "", *place, value)
            )
        return Table(("part", "layer", "head", "row", "col", "value"), rows)


# --- in words


def _finding(decomposed: Decomposition) -> str:
    """What stands out, in one sentence."""
    sign = -1.0 if decomposed.total < 0 else 1.0
    mlps = [f"the MLP of layer {name}" for name in decomposed.layers]
    mlps[-1] = "the pool's MLP" if decomposed.layers == ("pool",) else "the last MLP"
    parts = dict(zip(mlps, (sign * decomposed.mlps).tolist(), strict=True))
    parts |= {
        f"the {name}": sign * float(value)
        for name, value in zip(decomposed.rest_names, decomposed.rest, strict=True)
    }
    heads = sign * decomposed.heads.astype(np.float64)
    row, head = (int(i) for i in np.unravel_index(int(heads.argmax()), heads.shape))
    best = f"head {head} of {'the pool' if decomposed.layers == ('pool',) else f'layer {decomposed.layers[row]}'}"
    parts[best] = float(heads[row, head])
    name = max(parts, key=lambda one: parts[one])
    share = parts[name] / max(abs(decomposed.total), 1e-30)
    if share > 1:
        first = f"{name[0].upper()}{name[1:]} gives more than all of {decomposed.about}, and others take away from it"
    elif share >= 0.2:
        first = f"{_share(share)} of {decomposed.about} comes from {name}"
    else:
        first = f"No single part makes up a fifth of {decomposed.about}"
    if not heads[row, head] > 2 * np.abs(heads).mean():
        return f"{first}; no head stands out"
    place = _place(decomposed, row, head, sign)
    return f"{first}{place}" if name == best else f"{first}; of the heads, {best} gave most{place}"


_SHARES = {0.25: "A quarter", 1 / 3: "A third", 0.5: "Half", 2 / 3: "Two thirds", 0.75: "Three quarters"}


def _share(share: float) -> str:
    """A share in words, where a plain one is within three hundredths of it."""
    near = min(_SHARES, key=lambda one: abs(one - share))
    return _SHARES[near] if abs(near - share) <= 0.03 else f"{share:.0%}"


def _place(decomposed: Decomposition, row: int, head: int, sign: float) -> str:
    """Where a head took most of what it gave, in words; "" where it took it from all over, or is not kept by itself."""
    if decomposed.terms.shape[1] != decomposed.heads.shape[1]:
        return ""
    terms = np.maximum(sign * decomposed.terms[row, head].astype(np.float64), 0)
    count, total = len(decomposed.prefix), float(terms.sum())
    if count and terms[:count].max() > total / 2:
        name = decomposed.prefix[int(terms[:count].argmax())]
        return f", from {name}" if name.startswith("register") else f", from the {name} token"
    padded = np.pad(terms[count:].reshape(decomposed.grid), 1)
    around = np.lib.stride_tricks.sliding_window_view(padded, (3, 3)).sum((2, 3))
    if (
        not around.max() > max(0.15, 4 * 9 / around.size) * total
    ):  # four times what chance gives to nine patches
        return ""
    top, left = np.unravel_index(int(around.argmax()), around.shape)
    window = padded[top : top + 3, left : left + 3]
    middle = [round(float((window.sum(1 - axis) @ np.arange(-1, 2)) / window.sum())) for axis in (0, 1)]
    return f", from around ({top + middle[0]}, {left + middle[1]})"
