"""Answers: numbers that print in one line, tell themselves as a table, and draw and save themselves.

Whatever an analysis returns is an `Answer`. Its type says what the axes of its arrays count; from that come its CSV, its data frame
and its figure. Drawing is of a higher floor, whose functions are imported when they are first called.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vit_viz.errors import ParameterError
from vit_viz.lazy import extra, named

if TYPE_CHECKING:
    from pandas import DataFrame
    from PIL import Image

ValueRange = tuple[float, float]
Row = tuple[object, ...]
Axes = Mapping[str, tuple[str, ...]]

_LONGEST = 60  # characters of one part in a line
_SAVING = "vit_viz.figures.saving"


@dataclass(frozen=True)
class Provenance:
    """Where numbers came from: model, weights, image, preprocessing and parameters, all as text.

    Args:
        model: name of the model as the user gave it.
        weights: hash of the weights.
        image: hash of the decoded image.
        preprocess: the preprocessing in words.
        parameters: pairs (name, value), in order.
    """

    model: str = ""
    weights: str = ""
    image: str = ""
    preprocess: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def with_parameters(self, **parameters: object) -> Provenance:
        """A copy with these parameters added; a name that is there already is replaced."""
        merged = dict(self.parameters) | {name: str(value) for name, value in parameters.items()}
        return replace(self, parameters=tuple(merged.items()))

    @property
    def model_words(self) -> str:
        """The model in words, with what was changed inside it; "" where it has no name."""
        edits = dict(self.parameters).get("edits")
        return f"Model {self.model}{f', edited: {edits}' if edits else ''}" if self.model else ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON and file metadata."""
        return asdict(self) | {"parameters": dict(self.parameters)}


@dataclass(frozen=True)
class Table:
    """Numbers as lines: what the columns are called, and the lines."""

    columns: tuple[str, ...]
    rows: Iterable[Row]


def axes(**names: tuple[str, ...]) -> Axes:
    """What the axes of arrays count, by the name of the field: the `AXES` of an answer."""
    return MappingProxyType(names)


class Answer:
    """A dataclass of numbers, declared with `repr=False`; what checks it, `__post_init__`, ends with that of this class."""

    AXES: ClassVar[Axes] = axes()
    """What the axes of its arrays count, by the name of the field."""

    DRAWN: ClassVar[tuple[str, ...] | None] = None
    """The fields that its figure shows, where it has no drawing of its own; None: all."""

    def __post_init__(self) -> None:
        """Answers are kept and handed to whoever asks again: nobody writes to their arrays and mappings.

        Raises:
            ParameterError: there is a `value_range` whose low end is not below its high one.
        """
        for name, part in parts_of(self).items():
            if name == "value_range":
                object.__setattr__(self, name, _checked_range(part))
            elif isinstance(part, Mapping):
                object.__setattr__(self, name, MappingProxyType(dict(part)))
        for array in arrays_of(self).values():
            array.setflags(write=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its fields and rebuilt on arrival: checked, and read-only again."""
        parts = parts_of(self).values()
        return type(self), tuple(dict(p) if isinstance(p, MappingProxyType) else p for p in parts)

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{name}={_short(part)}" for name, part in parts_of(self).items() if name != "provenance"
        )
        return f"{type(self).__name__}({parts})"

    def to_table(self) -> Table:
        """Its numbers, one a line after its places; of several arrays the first column names each."""

        def has_table(part: object) -> bool:
            return isinstance(part, Answer) and type(part).to_table is not Answer.to_table

        tables = {
            name: part.to_table() if isinstance(part, Answer) else array_table(part, axes)
            for name, part, axes in leaves_of(self, has_table)
        }
        if len(tables) == 1:
            return next(iter(tables.values()))
        return joined_tables(tables, "numbers")

    def to_words(self) -> str:
        """What its numbers say, in a sentence or two; "" where nothing is said of them."""
        return ""

    def to_dataframe(self) -> DataFrame:
        """The same as a pandas.DataFrame.

        Raises:
            VitVizError: pandas is not installed.
        """
        with extra("plots", needed_for="A data frame"):
            from pandas import DataFrame
        table = self.to_table()
        return DataFrame(list(table.rows), columns=list(table.columns))

    def plot(self, ax: Any = None) -> Any:
        """Draw the numbers on axes of matplotlib: a table as cells, a curve as a line, a ranking as bars.

        Args:
            ax: the axes; None: those at hand (`matplotlib.pyplot.gca`).

        Returns:
            The axes.

        Raises:
            ExportError: these are several arrays; the message names the parts that can be drawn.
            VitVizError: matplotlib is not installed.
        """
        return named(_SAVING, "plotted")(self, ax)

    def save(
        self,
        path: str | Path,
        *,
        image: Image.Image | str | Path | None = None,
        style: Literal["light", "tint", "heat"] = "light",
        title: str = "",
        width_cm: float = 12.0,
        dpi: int = 300,
    ) -> Path:
        """Save as a figure (.png, .svg, .pdf) or as numbers (.csv, .npz): the file's ending says which.

        A file that can be made again from itself (`vit-viz replay`) is saved by `vit_viz.figure`.

        Args:
            image: the photo that maps are laid over, or its path; None draws the numbers alone.
            style: how a map changes the photo.
            title: first line; "" names the method.
            width_cm: in print.
            dpi: of a PNG, and of the pictures in SVG and PDF.

        Raises:
            ExportError: there is no such format, or the file cannot be written.
        """
        written: Path = named(_SAVING, "save")(
            self, Path(path), image=image, style=style, title=title, width_cm=width_cm, dpi=dpi
        )
        return written

    def _repr_png_(self) -> bytes:
        drawn: bytes = named(_SAVING, "preview")(self)
        return drawn

    def _repr_html_(self) -> str:
        picture = base64.b64encode(self._repr_png_()).decode()
        words = html.escape(repr(self))
        return f'<img alt="{words}" style="max-width:100%" src="data:image/png;base64,{picture}">'


def parts_of(answer: object) -> Mapping[Any, object]:
    """What an answer is made of, by name: fields, entries, or places of a tuple that names none."""
    if is_dataclass(answer):
        return {field.name: getattr(answer, field.name) for field in fields(answer)}
    if isinstance(answer, Mapping):
        return answer
    if not isinstance(answer, tuple):
        return {}
    names = getattr(answer, "_fields", range(len(answer)))
    return {str(name): part for name, part in zip(names, answer, strict=True)}


def arrays_of(answer: object) -> dict[str, NDArray[Any]]:
    """Every array of an answer by its name: "values", or "faithfulness.deletion.y" where results stand within results."""
    if isinstance(answer, np.ndarray):
        return {"": answer}
    return {
        f"{name}.{inner}".rstrip("."): array
        for name, part in parts_of(answer).items()
        for inner, array in arrays_of(part).items()
    }


def leaves_of(
    answer: object, has_own: Callable[[object], bool], name: str = "", *, only_drawn: bool = False
) -> Iterator[tuple[str, object, tuple[str, ...]]]:
    """The parts that stand for themselves: those that have what is looked for of their own, arrays, and single numbers.

    Args:
        has_own: whether a part is taken as a whole.
        only_drawn: whether fields that no figure shows are left out, see `Answer.DRAWN`.

    Returns:
        Of each its name, itself, and what its axes count.
    """
    is_answer = isinstance(answer, Answer)
    axes, drawn = (answer.AXES, answer.DRAWN) if isinstance(answer, Answer) else ({}, None)
    for key, part in parts_of(answer).items():
        whole = f"{name}.{key}".lstrip(".")
        if only_drawn and drawn is not None and key not in drawn:
            continue
        if isinstance(part, np.ndarray) or (is_answer and isinstance(part, float)) or has_own(part):
            yield whole, part, axes.get(key, ())
        elif isinstance(part, Answer | Mapping | tuple):
            yield from leaves_of(part, has_own, whole, only_drawn=only_drawn)


def array_table(values: Any, axes: tuple[str, ...] = ()) -> Table:
    """An array after its places, or a single number."""
    places = axes or tuple(f"axis {place}" for place in range(np.ndim(values)))
    return Table((*places, "value"), ((*place, value) for place, value in np.ndenumerate(np.asarray(values))))


def joined_tables(tables: Mapping[str, Table], first: str) -> Table:
    """The lines of several tables under the columns of all, after a column that names the table."""
    columns = tuple(dict.fromkeys(name for table in tables.values() for name in table.columns))
    rows = (
        (name, *(cells.get(column, "") for column in columns))
        for name, table in tables.items()
        for cells in (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    )
    return Table((first, *columns), rows)


def _short(part: object) -> str:
    if isinstance(part, np.ndarray):
        return f"{part.dtype}{list(part.shape)}"
    if isinstance(part, Answer):
        return type(part).__name__
    whole = repr(part)
    if len(whole) <= _LONGEST:
        return whole
    if isinstance(part, Mapping):
        return f"{{{', '.join(map(str, part))}}}" if len(part) < 8 else f"{len(part)} by name"
    if isinstance(part, Sized) and not isinstance(part, str):
        return f"{len(part)} of them"
    return f"{whole[: _LONGEST - 1]}…"


def checked_array(values: ArrayLike, ndim: int, what: str) -> NDArray[np.float32]:
    """A float32 copy of `values`, checked for its axes and for NaN; `what` they are begins the sentence that refuses them."""
    array = np.array(values, dtype=np.float32)
    if array.ndim != ndim:
        raise ParameterError(f"{what} has {ndim} axes, not {array.ndim}.")
    if np.isnan(array).any():
        raise ParameterError(f"{what} holds values that are not numbers (NaN).")
    return array


def _checked_range(ends: Any) -> ValueRange:
    low, high = (float(v) for v in ends)
    if not low < high:
        raise ParameterError(f"A value range needs its low end below its high end, not {low} and {high}.")
    return low, high
