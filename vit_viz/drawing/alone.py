"""Figures of results by themselves, without a photo: tables as cells, curves, rankings, positions as small maps."""

from __future__ import annotations

from vit_viz.drawing import charts
from vit_viz.drawing.layout import Composed, Output, capital, composed_of
from vit_viz.drawing.sheet import Block
from vit_viz.render.captioned import ColourBar
from vit_viz.render.colormaps import Limits, limits
from vit_viz.render.overlay import default_table
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix

Numbers = PatchMap | HeadTable | TokenMatrix | Curve | Ranking


def of_result(
    numbers: Numbers,
    output: Output,
    *,
    title: str = "",
    ends: Limits | None = None,
    ringed: tuple[int, int] | None = None,
) -> Composed:
    """A result alone, without a photo.

    Args:
        ends: of its scale; None: its own.
        ringed: the cell that is marked.
    """
    title = title or capital(numbers.method)
    words = [numbers.caption] if isinstance(numbers, PatchMap) else []
    if numbers.provenance.model:
        words.append(numbers.provenance.model_words)
    caption = " ".join(f"{text.strip().rstrip('.')}." for text in [*words, numbers.note] if text.strip())
    body = _body(numbers, output.inner, ends, ringed)
    return composed_of(body, numbers.provenance, output, title=title, caption=caption)


def ends_of(answer: object) -> Limits:
    """The ends of the scale of all maps that a figure stands beside."""
    assert isinstance(answer, PatchMap | HeadTable | TokenMatrix)
    return limits(answer.values, signed=answer.signed)


def _body(numbers: Numbers, inner: float, ends: Limits | None, ringed: tuple[int, int] | None) -> list[Block]:
    if isinstance(numbers, Curve):
        return [charts.curve_block(numbers, inner)]
    if isinstance(numbers, Ranking):
        unit = charts.caption_block(numbers.unit, inner)
        return [charts.ranking_block(numbers, inner), unit]
    ends = ends or ends_of(numbers)
    table = default_table(signed=numbers.signed)
    names = {PatchMap: ("row", "column"), HeadTable: ("layer", "head")}.get(
        type(numbers), ("position", "other")
    )
    rows, cols = numbers.values.shape
    grid = charts.grid_block(
        charts.cells_image(numbers.values, table, ends),
        (rows, cols),
        inner,
        names=names,
        ringed=ringed,
        most=28.0,
    )
    return [grid, charts.bar_block(ColourBar(table, *ends, unit=numbers.unit), inner)]


def of_positions(matrix: TokenMatrix, output: Output, *, title: str = "") -> Composed:
    """All positions as small maps, each where it lies in the photo."""
    (rows, cols), ends, inner = matrix.grid, ends_of(matrix), output.inner
    table = default_table(signed=matrix.signed)
    tiles = matrix.values.reshape(rows, cols, rows, cols).transpose(0, 2, 1, 3)
    image = charts.cells_image(tiles.reshape(rows * rows, cols * cols), table, ends)
    body = [
        charts.grid_block(charts.spaced(image, matrix.grid), matrix.grid, inner, names=("row", "column")),
        charts.bar_block(ColourBar(table, *ends, unit=matrix.unit), inner),
    ]
    title = title or f"{capital(matrix.method)}, grid {rows} x {cols}"
    words = f"Each position with all {rows} x {cols} patch positions, laid out like the patches; one scale for all maps."
    model = f" {matrix.provenance.model_words}." if matrix.provenance.model else ""
    caption = f"{words}{model} {matrix.note}".strip()
    return composed_of(body, matrix.provenance, output, title=title, caption=caption)
