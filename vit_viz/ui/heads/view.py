"""The Heads tab: every head in one table, the photo as each sees it, a name for each, and what each does for the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from vit_viz.drawing.pictures import screen_photo
from vit_viz.errors import ParameterError
from vit_viz.explorer import colour_tables
from vit_viz.explorer.value import described, trace_value
from vit_viz.geometry import format_query
from vit_viz.render.styles import unsuitable
from vit_viz.session.handles import OWNER, PAGE
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import guarded, sentence
from vit_viz.ui.explain.questions import Questions, found_classes
from vit_viz.ui.explain.target import target_value
from vit_viz.ui.heads import matrix, surgery
from vit_viz.ui.heads.causal import cost_words, followed, known_maps
from vit_viz.ui.heads.words import MEASURES
from vit_viz.ui.kit import HeadMatrix, HeadRoom, Surgery, words
from vit_viz.ui.page import LONG, QUICK, Page, Tab, subject_in
from vit_viz.ui.routes import PREFIX
from vit_viz.ui.visit.jobs import News, Stops
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HeadsOptions

_CAUSAL = "causal"  # the name of the job


@dataclass(frozen=True)
class Heads:
    """The components of the tab.

    Args:
        room: the table of heads with photo, plot, causal map and names.
        surgery: the switches that change the model.
        matrix: the whole matrix of the chosen head, and its links.
    """

    room: HeadRoom
    surgery: Surgery
    matrix: HeadMatrix
    stops: Stops = field(default_factory=Stops)
    news: News = field(default_factory=News)


def build() -> Heads:
    """Lay out the tab."""
    room = HeadRoom(
        elem_id="vv-heads",
        causal=None,
        matches=None,
        tables=colour_tables(),
        measures=_measures(),
        options=[described(field) for field in HeadsOptions.schema()],
    )
    changes = Surgery(elem_id="vv-surgery")
    with gr.Column(elem_id="vv-heads-matrix"):
        every_token = matrix.build()
    words.explain(
        shows="what each head of each layer does: one number for every head, the photo as it sees it, a name with the numbers that "
        "gave it, and what the answer loses when it is switched off.",
        hides="what heads do together: each is measured, and switched off, alone. The names are words for a few measures on this "
        "photo, and another photo can give another name.",
    )
    words.formula(
        (
            r"distance: $\mathrm{mean}_i \sum_j a_{i j} d_{i j}$",
            r"$a$: attention between patches, each row divided by its sum; $d$: distance of the centres in pixels of the model's "
            "input. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7.",
        ),
        (
            r"entropy: $-\sum_j A_{i j} \ln A_{i j} / \ln N$, mean over tokens $i$",
            r"$N$: number of tokens.",
        ),
        (
            r"causal effect: $f(x \mid o_{l h} \leftarrow 0) - f(x)$; gradient importance: "
            r"$\sum_i \frac{\partial f}{\partial o_{l h i}} \cdot (0 - o_{l h i})$",
            r"$o$: the output of a head; in place of 0 its mean over tokens, or what uniform attention gives. Michel et al. 2019, "
            "arXiv:1905.10650.",
        ),
        (
            r"size of what it moves: $\sum_j A_{i j} \lVert v_j W_{O, h} \rVert$",
            "Kobayashi et al. 2020, arXiv:2004.10102. Outlier tokens: Darcet et al. 2024, arXiv:2309.16588.",
        ),
    )
    return Heads(room, changes, every_token)


def wire(tab: Heads, page: Page) -> None:
    """Draw the tab, let the table choose heads and patches, and run the causal map."""
    room = tab.room
    for listener, names in (
        (room.choose, ("layer", "head")),
        (room.option, ("measure", "how", "head_order")),
        (room.pin, ("query",)),
    ):
        page.gesture(listener, _reducer(names))
    page.gesture(room.why, lambda view, owner, data: _why(page, view, owner, data))

    @guarded
    def start(view: ViewState, event: gr.EventData) -> Iterator[Any]:
        how = dict(event._data or {}).get("how", view.heads.how)
        questions = Questions.of(page, view.with_options({"how": how}), OWNER.get())
        yield from followed(questions, tab.stops.start(PAGE.get(), _CAUSAL, questions.key), tab.news)

    @guarded
    def stop() -> None:
        tab.stops.stop(PAGE.get(), _CAUSAL)

    @guarded
    def search(view: ViewState, event: gr.EventData) -> Any:
        return gr.update(matches=found_classes(page, view, OWNER.get(), dict(event._data or {})))

    room.search(search, [page.view], [room], **QUICK)
    room.start(start, [page.view], [room], **LONG)
    room.stop(stop, [], None, **QUICK)
    matrix.wire(tab.matrix, page, part="heads")
    surgery.wire(tab.surgery, page)
    page.drawing("heads", lambda p, view, owner: _draw(tab, p, view, owner), [room])


# --- actions


def _reducer(names: tuple[str, ...]) -> Any:
    """The view with what an event says of these options."""

    def reduce(view: ViewState, _owner: str, data: dict[str, Any]) -> ViewState:
        return view.with_options({name: data[name] for name in names if name in data}).after_action()

    return reduce


def _why(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """Another class is asked about."""
    classes, index = Questions.of(page, view, owner).targeted.classes, data.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < classes:
        raise ParameterError(f"A class is a whole number from 0 to {classes - 1}.")
    return view.after_action(target=str(index))


# --- drawings


def _draw(tab: Heads, page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    """Dim, then the table; a causal map of anything else ends."""
    try:
        value = room_value(page, view, owner)
        tab.stops.keep_only(PAGE.get(), value["key"])
    except Exception as error:
        value = {"revision": view.revision, "trace": "", "note": sentence(error)}
    yield value


def room_value(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    """The value of the room: what the heads are of, where their numbers are fetched, and what is chosen."""
    session = page.session
    subject = subject_of(session, view, owner)
    trace = session.trace_of(subject)
    view = matrix.placed(session, view, owner)
    screen, options = screen_photo(session, subject), view.heads
    return {
        "revision": view.revision,
        "trace": session.handles.issue(subject),
        "name": session.name_of(subject.image, owner=owner),
        **trace_value(trace),
        "photo": f"{PREFIX}/photo/{session.handles.issue(subject.photo)}",
        "photo_size": [screen.height, screen.width],
        "unlit": unsuitable(screen),
        "query": view.query or format_query(trace.layout.default_query),
        "layer": view.layer,
        "head": view.head if isinstance(view.head, int) else 0,
        "options": {"measure": options.measure, "how": options.how, "head_order": options.head_order},
        "note": "",
        **_causal(page, session, view, owner),
    }


def _causal(page: Page, session: Session, view: ViewState, owner: str) -> dict[str, Any]:
    """What the causal map would be about, what it costs, and which are there."""
    try:
        questions = Questions.of(page, view, owner)
    except ParameterError as error:  # a model that returns no scores
        return {"key": view.about, "target": None, "cost": "", "causal_note": sentence(error), "effects": {}}
    return {
        "key": questions.key,
        "target": target_value(session, questions.subject, questions.targeted)
        | {"single": True, "name": questions.targeted.words, "link": questions.targeted.view.target},
        "cost": cost_words(questions),
        "causal_note": "",
        "effects": known_maps(questions),
    }


def _measures() -> list[dict[str, str]]:
    """The measures in words, in the order of the chooser."""
    return [
        {"name": name, "group": said.group, "label": said.label, "sentence": said.sentence}
        for name, said in MEASURES.items()
    ]


TAB = Tab(
    "heads",
    "Heads",
    build,
    wire,
    shows=lambda view: (subject_in(view), view.query, view.layer, view.head, view.target, view.heads),
)
