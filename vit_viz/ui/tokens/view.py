"""The Tokens tab: what each patch's token resembles after every layer, how long it is, and what the head would say of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import gradio as gr

from vit_viz import samples
from vit_viz.errors import VitVizError
from vit_viz.explorer import colour_tables
from vit_viz.explorer.value import described
from vit_viz.figures.screen import screen_photo
from vit_viz.figures.styles import unsuitable
from vit_viz.geometry import format_query
from vit_viz.session.handles import PAGE
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.questions import answer_search, target_value, with_target
from vit_viz.ui.jobs import Stops, followed
from vit_viz.ui.kit import TokenRoom, words
from vit_viz.ui.page import Page, Tab
from vit_viz.ui.payload import opening_of, photo_value
from vit_viz.ui.tokens import answers
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import TokensTabOptions

OPTIONS = tuple(field.name for field in TokensTabOptions.schema())
"""What the room chooses, by the names of the fields."""

DRAWING = ("style", "alpha")
"""What it chooses of how maps are drawn everywhere."""


def build(page: Page) -> None:
    """Lay out the tab, draw it, let a click pin a patch for the whole page, and compute what takes a while."""
    room, stops = _laid_out(), Stops()
    page.choices(room.pin, "query")
    page.choices(room.choose, *OPTIONS, *DRAWING)
    page.gesture(room.why, lambda view, _owner, data: asked_about(view, data))
    answer_search(room, page)
    page.reply(room.stop, lambda _view, _owner, _data: stops.stop(PAGE.get(), "tokens"))

    def compute(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        stop = stops.start(PAGE.get(), "tokens", view.about)
        for job in computed(page, view, owner, data, stop):
            yield gr.update(job=job)

    def draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
        stops.keep_only(PAGE.get(), view.about)
        try:
            yield room_value(page, view, owner)
        except Exception as error:
            yield {"revision": view.revision, "handle": "", "note": sentence(error)}

    page.job(room.compute, compute, [room])
    page.drawing("tokens", draw, [room])


def _laid_out() -> TokenRoom:
    """The room, and below it what it shows and its formulas."""
    room = TokenRoom(
        elem_id="vv-tokens",
        tables=colour_tables(),
        options=[described(field) for field in TokensTabOptions.schema()],
        job=None,
        matches=None,
    )
    words.explain(
        shows="what becomes of each patch, layer by layer: by what the patches differ most, which of them resemble the one that "
        "is pointed at or tapped, how long their vectors are, what the head would say of each, how far each layer turns them, "
        "and which of them belong together.",
        hides="what the model uses: tokens can resemble each other in numbers that no later layer reads. What the head would say "
        "(the logit lens) is a probe, since the head was trained on the output of the last layer only.",
    )
    words.formula(
        (
            "colours: three principal components of all layers together",
            "Each layer is centred and divided by its spread, then one basis is fitted on all. Of a component and its "
            "negative the one is taken whose largest entry is positive. Colours are multiplied by the photo's own lightness, from "
            "0.35 where it is black to 1 where it is white. Oquab et al. 2023, arXiv:2304.07193.",
        ),
        (
            r"alike: $\cos(x_q, x_j)$",
            "$x$: a token before the first or after a layer, or the queries or keys of a layer with all heads side by side. Lit: "
            "from the mean over the other patches up to the largest of them. Amir et al. 2021, arXiv:2112.05814.",
        ),
        (
            r"length: $\lVert x_i \rVert$; outliers: more than 5 times the median",
            "Darcet et al. 2024, arXiv:2309.16588.",
        ),
        (
            r"says (logit lens): $\mathrm{softmax}(\mathrm{head}(\mathrm{norm}(x_i)))$",
            "Lit by the largest probability, or by that of a chosen class, on one scale from 0 for all layers; by its own "
            "sigmoid where classes may hold beside each other, or by the value where outputs are values. Models without classes: "
            "cosine with the image's own embedding. Vilas et al. 2023, arXiv:2310.18969.",
        ),
        (
            r"change: the angle whose cosine is $\cos(x_l, x_{l-1})$; layers: "
            r"$\lVert Y^\top X \rVert_F^2 / (\lVert X^\top X \rVert_F \lVert Y^\top Y \rVert_F)$ (linear CKA)",
            "With fewer patches than numbers per patch the form without bias. Kornblith et al. 2019, arXiv:1905.00414; Nguyen "
            "et al. 2021, arXiv:2010.15327.",
        ),
        (
            r"segments: k-means, or the second solution of $(D - W) y = \lambda D y$",
            "Of unit vectors; $W$ is 1 where two patches' cosine exceeds 0.2. Overlap: intersection over union with the box. Amir "
            "et al. 2021, arXiv:2112.05814; Wang et al. 2022, arXiv:2202.11539.",
        ),
        (
            r"register: $h_{\mathrm{register}, c} \leftarrow \max_i h_{i c}$, $h_{\mathrm{patch}, c} \leftarrow 0$",
            "$c$: the ten neurons of the MLPs that are largest where the outlier patches are. Jiang et al. 2025, arXiv:2506.08010.",
        ),
    )
    return room


def asked_about(view: ViewState, data: dict[str, Any]) -> ViewState:
    """The view with another class for the lens, which is the one that Explain explains."""
    return view.with_options({"target": data.get("index", "")}).after_action()


def computed(
    page: Page, view: ViewState, owner: str, data: dict[str, Any], stop: threading.Event
) -> Iterator[dict[str, Any]]:
    """Follow a measure that takes a while until its numbers can be fetched; `key` says which one."""

    def begin() -> Callable[..., Any]:
        subject = subject_of(page.session, view, owner)
        options = {str(name): str(value)[:100] for name, value in dict(data.get("options") or {}).items()}
        request = answers.request_of(page.session, subject, str(data.get("kind", "")), options)
        return partial(page.session.run, request)

    yield from followed(begin, stop, key=str(data.get("key", ""))[:400])


def _classes(session: Session, subject: Subject, view: ViewState) -> dict[str, Any] | None:
    """The classes that the lens can be of; None while something else is shown."""
    if view.tokens.token_measure != "lens":
        return None
    targeted = with_target(session, subject, view)
    if not targeted.classes:
        return {"classes": [], "single": True}
    told = target_value(session, subject, targeted) | {"single": True}
    return told if view.target else told | {"chosen": None}  # the likeliest class of each patch


def room_value(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    """The value of the room: what the tokens are of, where they are fetched, and what is chosen."""
    session = page.session
    subject = subject_of(session, view, owner)
    trace = session.trace_of(subject)
    view, _ = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    return _photo(session, subject) | {
        "revision": view.revision,
        "layers": trace.num_layers,
        "prefix": list(trace.layout.prefix),
        "suffix": list(trace.layout.suffix),
        "query": view.query or _first_patch(session, subject),
        "unlit": unsuitable(screen_photo(session, subject)),
        "roles": ["tokens", *(["queries", "keys"] if trace.head_dim else [])],
        "chosen": asdict(view.tokens) | dict(zip((*DRAWING, "smooth"), _drawn(view), strict=True)),
        "target": view.target.split("-")[0],
        "classes": _classes(session, subject, view),
        "pictures": _others(session, view, owner),
        "second": _second(session, subject, view),
        "note": "",
    }


def _first_patch(session: Session, subject: Subject) -> str:
    """What is looked at before anybody has chosen: a patch that is worth it, since most questions here are about patches."""
    trace = session.trace_of(subject)
    tour = opening_of(session, subject, trace).tour
    if not tour:
        return format_query(trace.layout.default_query)
    row, col = divmod(tour[0], trace.layout.grid[1])
    return f"{row},{col}"


def _photo(session: Session, subject: Subject) -> dict[str, Any]:
    """Where a photo and its numbers are fetched, and where its patches lie."""
    trace = session.trace_of(subject)
    assert trace.crop_box is not None  # a session traces photos, which have one
    return {
        "handle": session.handles.issue(subject),
        "grid": list(trace.layout.grid),
        **photo_value(session, subject),
        "crop": {"region": list(trace.crop_box.region), "original": list(trace.crop_box.original_size)},
    }


def _others(session: Session, view: ViewState, owner: str) -> list[dict[str, str]]:
    """The pictures of the tray beside the one that is shown."""
    offered = {name: name for name in samples.sample_names()}
    offered |= {image: stored.name for image, stored in session.uploads.of(owner).items()}
    return [{"id": image, "name": name} for image, name in offered.items() if image != view.image]


def _second(session: Session, subject: Subject, view: ViewState) -> dict[str, Any] | None:
    """The photo that shares the colours; None where none is chosen, or where it has gone."""
    image = view.tokens.token_second
    if image in ("", subject.image):
        return None
    other = replace(subject, image=image, part=None)
    try:
        return _photo(session, other)
    except VitVizError as error:
        return {"handle": "", "note": sentence(error)}


def _drawn(view: ViewState) -> tuple[Any, ...]:
    return view.drawing.style, view.drawing.alpha, view.drawing.smooth


TAB = Tab(
    "tokens",
    "Tokens",
    build,
    shows=lambda view: (view.about, view.query, view.target, view.tokens, _drawn(view)),
    about="What becomes of every patch, layer by layer.",
)
