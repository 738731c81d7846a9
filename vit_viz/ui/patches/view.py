"""The Patches tab: how the photo becomes the sequence of tokens that the model receives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.figures.patches import visible_area
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.images import Preprocess
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.kit import Picture, words
from vit_viz.ui.page import Page, Tab, choose_query
from vit_viz.ui.payload import picture_address, picture_value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState


def build(page: Page) -> None:
    """Lay out the tab, draw it, and let a click in it pin the query for all views."""
    with gr.Row(elem_classes="vv-view", elem_id="vv-patches"):
        with gr.Column(min_width=280):
            grid = Picture(elem_id="vv-grid-picture")
            numbers = gr.Checkbox(False, label="number the patches", container=False, elem_id="vv-numbers")
        with gr.Column(min_width=280):
            shapes = gr.HTML("", elem_classes="vv-shapes", apply_default_css=False)
            sequence = Picture(elem_id="vv-sequence-picture")
    words.explain(
        shows="where the model cuts the photo, what it leaves out (hatched), and the patches in the order in which it "
        "receives them.",
        hides="what the model makes of a patch: a single linear map turns each patch into one vector, and everything else happens "
        "in the layers.",
    )
    words.formula(
        (
            r"image $[C, H, W]$ → patches $[n, P^2 C]$ → tokens $[p + n, D]$ with $n = \frac{H}{P} \cdot \frac{W}{P}$",
            r"$C$ channels; $P$: side of a patch; $D$ numbers per token. $p$ prefix tokens (class, registers) come first, "
            r"suffix tokens (detection) last where the model has them; a position "
            "embedding is added where the model has one. "
            "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929, section 3.1.",
        )
    )
    choose_query(grid, page)
    page.option(numbers, "numbers")
    page.drawing("patches", _draw, [grid, sequence, shapes, numbers])


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    busy = {"revision": view.revision, "busy": True}
    yield busy, busy, gr.skip(), gr.skip()
    try:
        yield _drawn(page, view, owner)
    except Exception as error:
        failed = {"revision": view.revision, "error": sentence(error)}
        yield failed, failed, "", gr.skip()


def _drawn(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    session = page.session
    subject = subject_of(session, view, owner)
    loaded = session.model(subject.model)
    trace = session.trace_of(subject)
    view, problems = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    box = trace.crop_box
    assert box is not None
    rows, cols = trace.layout.grid
    grid = picture_value(
        view,
        picture_address(session, subject, view, "numbered" if view.patches.numbers else "patches"),
        caption=f"{view.model} · {rows} rows x {cols} columns of patches · {left_out(box, loaded.preprocess)}",
        trace=trace,
        area=visible_area(box.original_size, box.region),
        note=" ".join(problems),
    )
    sequence = picture_value(
        view,
        picture_address(session, subject, view, "sequence"),
        caption=f"{view.model} · the sequence: {_sequence_words(trace.layout)}",
        trace=trace,
        pick=False,
    )
    sequence |= {"area": None, "themed": True}
    return grid, sequence, shapes_html(loaded, trace), gr.update(value=view.patches.numbers)


def shapes_html(loaded: Model, trace: Trace) -> str:
    """The three shapes between pixels and tokens, with their names."""
    box, recipe = trace.crop_box, loaded.preprocess
    assert box is not None
    (height, width), (tall, wide) = box.input_size, recipe.patch_size
    dim = loaded.config.embed_dim if loaded.config is not None else trace.num_heads * trace.head_dim
    count, prefix, suffix = trace.layout.num_patches, trace.layout.num_prefix, trace.layout.num_suffix
    steps = [
        ("image", f"[{recipe.channels}, {height}, {width}]", "channels, height, width"),
        (
            "patches",
            f"[{count}, {tall * wide * recipe.channels}]",
            f"{tall} x {wide} pixels x {recipe.channels} channels each",
        ),
        (
            "tokens",
            f"[{trace.layout.num_tokens}, {dim}]",
            f"{prefix} prefix + {count} patches" + (f" + {suffix} suffix" if suffix else ""),
        ),
    ]
    return words.steps(steps)


def left_out(box: CropBox, recipe: Preprocess) -> str:
    """What of the photo the model does not see, and why where its patches do not fill its own input."""
    share = 1 - box.covers
    seen = "the whole photo" if share < 0.0005 else f"{share:.1%} of the photo left out"
    (height, width), (tall, wide) = box.original_size, box.input_size
    if share >= 0.0005 and (tall, wide) == recipe.covered_size != recipe.input_size:
        rows, cols = recipe.input_size
        seen += (
            f": the last {rows - tall} rows and {cols - wide} columns of its {rows} x {cols} px fill no patch"
        )
    return f"photo {height} x {width} px to input {tall} x {wide} px, {seen}"


def _sequence_words(layout: TokenLayout) -> str:
    """The order of the tokens; many suffix tokens by the first and the last."""
    parts = [f"{', '.join(layout.prefix)}, then " if layout.prefix else ""]
    parts.append(f"{layout.num_patches} patches, row by row")
    if layout.suffix:
        few = len(layout.suffix) <= 4
        parts.append(
            f", then {', '.join(layout.suffix) if few else f'{layout.suffix[0]} to {layout.suffix[-1]}'}"
        )
    return "".join(parts)


TAB = Tab(
    "patches",
    "Patches",
    build,
    shows=lambda view: (view.about, view.query, view.patches.numbers),
    about="How the photo becomes the sequence of tokens that the model receives.",
)
