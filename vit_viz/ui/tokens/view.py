"""The Tokens tab: what each patch's token resembles after every layer, how long it is, and what the head would say of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import gradio as gr

from vit_viz import samples
from vit_viz.drawing.pictures import screen_photo
from vit_viz.errors import VitVizError
from vit_viz.explorer import colour_tables
from vit_viz.explorer.packing import LAYER_BYTES
from vit_viz.explorer.value import described
from vit_viz.geometry import format_query
from vit_viz.session.handles import OWNER, PAGE, Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import guarded, sentence
from vit_viz.ui.explain.questions import found_classes
from vit_viz.ui.explain.target import target_value, with_target
from vit_viz.ui.kit import TokenRoom, words
from vit_viz.ui.page import LONG, QUICK, Page, Tab, subject_in
from vit_viz.ui.routes import PREFIX
from vit_viz.ui.tokens import answers
from vit_viz.ui.visit.jobs import Stops, steps
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import TokensOptions

OPTIONS = tuple(field.name for field in TokensOptions.schema())
"""What the room chooses, by the names of the fields."""


@dataclass(frozen=True)
class Tokens:
    """The components of the tab."""

    room: TokenRoom
    stops: Stops = field(default_factory=Stops)


def build() -> Tokens:
    """Lay out the tab."""
    room = TokenRoom(
        elem_id="vv-tokens",
        tables=colour_tables(),
        options=[described(field) for field in TokensOptions.schema()],
        job=None,
        matches=None,
    )
    words.explain(
        shows="what has become of each patch before the first and after every layer: which patches resemble the one under the "
        "pointer, by what they differ most, how long their vectors are, what the head would say of each, how much each layer "
        "changes them, and which of them it treats alike.",
        hides="what the model uses: tokens can resemble each other in numbers that no later layer reads. The logit lens is a "
        "probe, since the head was trained on the output of the last layer only.",
    )
    words.formula(
        (
            r"similar: $\cos(x_q, x_j)$",
            "$x$: a token before the first or after a layer, or the queries or keys of a layer with all heads side by side. Amir "
            "et al. 2021, arXiv:2112.05814.",
        ),
        (
            "colours: three principal components of all layers together",
            "Each layer is centred and divided by its spread, then one basis is fitted on all. Of a component and its "
            "negative the one is taken whose largest entry is positive. Oquab et al. 2023, arXiv:2304.07193.",
        ),
        (
            r"norms: $\lVert x_i \rVert$; outliers: more than 5 times the median",
            "Darcet et al. 2024, arXiv:2309.16588.",
        ),
        (
            r"logit lens: $\mathrm{softmax}(\mathrm{head}(\mathrm{norm}(x_i)))$",
            "Models without classes: cosine with the image's own embedding. Vilas et al. 2023, arXiv:2310.18969.",
        ),
        (
            r"layers: $\lVert Y^\top X \rVert_F^2 / (\lVert X^\top X \rVert_F \lVert Y^\top Y \rVert_F)$ (linear CKA); on the "
            r"photo $\cos(x_l, x_{l-1})$",
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
    return Tokens(room)


def wire(tab: Tokens, page: Page) -> None:
    """Draw the tab, let a click pin a patch for the whole page, and compute what takes a while."""
    page.gesture(
        tab.room.pin,
        lambda view, _owner, data: view.with_options({"query": str(data.get("query", ""))}).after_action(),
    )
    page.gesture(tab.room.choose, lambda view, _owner, data: chosen(view, data))
    page.gesture(tab.room.why, lambda view, _owner, data: asked_about(view, data))

    @guarded
    def search(view: ViewState, event: gr.EventData) -> Any:
        return gr.update(matches=found_classes(page, view, OWNER.get(), dict(event._data or {})))

    @guarded
    def compute(view: ViewState, event: gr.EventData) -> Iterator[Any]:
        stop = tab.stops.start(PAGE.get(), "tokens", view.about)
        for job in computed(page, view, OWNER.get(), dict(event._data or {}), stop):
            yield gr.update(job=job)

    @guarded
    def stop() -> None:
        tab.stops.stop(PAGE.get(), "tokens")

    tab.room.search(search, [page.view], [tab.room], **QUICK)
    tab.room.compute(compute, [page.view], [tab.room], **LONG)
    tab.room.stop(stop, [], None, **QUICK)

    def draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
        tab.stops.keep_only(PAGE.get(), view.about)
        yield from _draw(page, view, owner)

    page.drawing("tokens", draw, [tab.room])


def chosen(view: ViewState, data: dict[str, Any]) -> ViewState:
    """The view after what the room chose: options of the tab, by the names of their fields."""
    return view.with_options({name: data[name] for name in OPTIONS if name in data}).after_action()


def asked_about(view: ViewState, data: dict[str, Any]) -> ViewState:
    """The view with another class for the lens, which is the one that Explain explains."""
    return view.with_options({"target": data.get("index", "")}).after_action()


def computed(
    page: Page, view: ViewState, owner: str, data: dict[str, Any], stop: threading.Event
) -> Iterator[dict[str, Any]]:
    """Follow a measure that takes a while until its numbers can be fetched; `key` says which one."""
    said = {"key": str(data.get("key", ""))[:400]}
    yield said | {"share": 0.0}
    try:
        subject = subject_of(page.session, view, owner)
        options = {str(name): str(value)[:100] for name, value in dict(data.get("options") or {}).items()}
        request = answers.request_of(page.session, subject, str(data.get("kind", "")), options)
        for step in steps(lambda p, c: page.session.run(request, progress=p, cancelled=c), stop):
            yield said | ({"done": True} if step.is_last else {"share": step.share})
    except Exception as error:
        yield said | {"error": sentence(error)}


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    try:
        yield room_value(page, view, owner)
    except Exception as error:
        yield {"revision": view.revision, "handle": "", "note": sentence(error)}


def _classes(session: Session, subject: Subject, view: ViewState) -> dict[str, Any] | None:
    """The classes that the lens can be of; None while something else is shown."""
    if view.tokens.token_measure != "lens":
        return None
    targeted = with_target(session, subject, view)
    if not targeted.classes:
        return {"classes": [], "single": True}
    return target_value(session, subject, targeted) | {"single": True}


def room_value(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    """The value of the room: what the tokens are of, where they are fetched, and what is chosen."""
    session = page.session
    subject = subject_of(session, view, owner)
    trace = session.trace_of(subject)
    view, _ = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    width = trace.num_heads * trace.head_dim
    travels = 2 * (trace.num_layers + 1) * trace.num_tokens * width <= LAYER_BYTES
    return _photo(session, subject) | {
        "revision": view.revision,
        "layers": trace.num_layers,
        "prefix": list(trace.layout.prefix),
        "suffix": list(trace.layout.suffix),
        "query": view.query or format_query(trace.layout.default_query),
        "travels": travels,
        "roles": ["tokens", *(["queries", "keys"] if trace.head_dim else [])],
        "chosen": asdict(view.tokens),
        "target": view.target.split("-")[0],
        "classes": _classes(session, subject, view),
        "pictures": _others(session, view, owner),
        "second": _second(session, subject, view),
        "note": "",
    }


def _photo(session: Session, subject: Subject) -> dict[str, Any]:
    """Where a photo and its numbers are fetched, and where its patches lie."""
    trace, screen = session.trace_of(subject), screen_photo(session, subject)
    assert trace.crop_box is not None  # a session traces photos, which have one
    return {
        "handle": session.handles.issue(subject),
        "grid": list(trace.layout.grid),
        "photo": f"{PREFIX}/photo/{session.handles.issue(subject.photo)}",
        "photo_size": [screen.height, screen.width],
        "crop": {"region": list(trace.crop_box.region), "original": list(trace.crop_box.original_size)},
        "name": session.name_of(subject.image, owner=subject.owner),
    }


def _others(session: Session, view: ViewState, owner: str) -> list[dict[str, str]]:
    """The pictures of the tray beside the one that is shown."""
    offered = {name: name for name in samples.sample_names()}
    offered |= {image: stored.name for image, stored in session.uploads.of(owner).items()}
    return [{"id": image, "name": name} for image, name in offered.items() if image != view.image]


def _second(session: Session, subject: Subject, view: ViewState) -> dict[str, Any] | None:
    """The photo that shares the colours; None where none is chosen, or where it has gone."""
    image = view.tokens.token_second
    if view.tokens.token_measure != "components" or image in ("", subject.image):
        return None
    other = replace(subject, image=image, part=None)
    try:
        return _photo(session, other)
    except VitVizError as error:
        return {"handle": "", "note": sentence(error)}


TAB = Tab(
    "tokens",
    "Tokens",
    build,
    wire,
    shows=lambda view: (subject_in(view), view.query, view.target, view.tokens),
)
