"""The Heads tab: every head in one table, a name for each, what each does for the answer, and switches that edit the model."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any, get_args

import gradio as gr

from vit_viz.analyses.ablation import CausalMap
from vit_viz.analyses.head_estimate import Ablation
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.explorer import colour_tables
from vit_viz.explorer.value import described, trace_value
from vit_viz.figures.screen import screen_photo
from vit_viz.figures.styles import unsuitable
from vit_viz.geometry import TokenLayout, format_query
from vit_viz.progress import duration
from vit_viz.session.edits import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, NO_EDITS, ModelEdits
from vit_viz.session.handles import OWNER, PAGE
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.questions import Questions, answer_search, class_index, target_value
from vit_viz.ui.heads.answers import (
    MEASURES,
    Numbers,
    asked,
    causal_value,
    request_of,
    takes_long,
)
from vit_viz.ui.jobs import News, Stops, followed as job_followed, steps
from vit_viz.ui.kit import HeadMatrix, HeadRoom, words
from vit_viz.ui.page import QUICK, Page, Tab
from vit_viz.ui.payload import explorer_value, explorer_view, photo_value, placed, ranking_value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HeadsTabOptions, MatrixTabOptions

_CAUSAL, _NUMBERS = "causal", "numbers"  # the names of the jobs

_OPTIONS = tuple(field.name for field in fields(MatrixTabOptions))
STOPPED = "Stopped; the heads that were done are shown."
PASSES_PER_HEAD = 0.45
"""Of a whole one: a run starts behind the layers before its head."""
_LABELS = {
    "class": "class token",
    "patches": "all patches",
    "registers": "all registers",
    "everything": "all tokens",
}

_RANKED = 50
"""Classes that are compared before and after an edit."""

_MANY = 16
"""Named tokens beyond which those behind the patches are left to be typed."""


def build(page: Page) -> None:
    """Lay out the tab, draw it, let table and matrix choose heads and patches, and run the causal map."""
    (room, matrix), stops, numbers, news = _laid_out(), Stops(), Stops(), News()
    page.choices(room.choose, "layer", "head")
    page.choices(room.option, "face", "measure", "how", "head_order")
    page.choices(room.pin, "query")
    page.gesture(room.why, lambda view, owner, data: _why(page, view, owner, data))
    answer_search(room, page)
    page.reply(room.stop, lambda _view, _owner, data: _stop(stops, numbers, data))

    def start(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        view = view.with_options({"how": data.get("how", view.heads.how)})
        questions = Questions.of(page, view, owner)
        yield from followed(questions, stops.start(PAGE.get(), _CAUSAL, questions.key), news)

    page.job(room.start, start, [room])
    page.job(room.compute, lambda *asked: _computed(page, numbers, *asked), [room])
    page.choices(matrix.pin, "query")
    page.choices(matrix.choose, "layer", "head")
    page.choices(matrix.option, *_OPTIONS)
    page.drawing("heads", _draw_matrix, [matrix])
    _wire_surgery(room, page)
    page.drawing("heads", lambda p, view, owner: _draw((stops, numbers), p, view, owner), [room])


def _laid_out() -> tuple[HeadRoom, HeadMatrix]:
    """The heads as photos, as switches and by depth, and the matrix of the chosen one; one of these is seen at a time."""
    with gr.Column(elem_id="vv-heads-faces"):
        room = _room()
        with gr.Column(elem_id="vv-heads-matrix"):
            matrix = _matrix()
        with gr.Column(elem_id="vv-heads-words"):
            _words()
    return room, matrix


def _room() -> HeadRoom:
    """Lay out all faces but the matrix."""
    return HeadRoom(
        elem_id="vv-heads",
        causal=None,
        surgery=None,
        job=None,
        matches=None,
        tables=colour_tables(),
        measures=[{"name": name, **asdict(said)} for name, said in MEASURES.items()],
        options=[described(field) for field in HeadsTabOptions.schema()],
    )


def _words() -> None:
    """Write what is seen, and its formulas."""
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
        (r"entropy: $-\sum_j A_{i j} \ln A_{i j} / \ln N$, mean over tokens $i$", r"$N$: number of tokens."),
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


def _matrix() -> HeadMatrix:
    """Lay out the matrix and its words."""
    matrix = HeadMatrix(
        elem_id="vv-head-matrix",
        tables=colour_tables(),
        options=[described(field) for field in MatrixTabOptions.schema()],
    )
    words.explain(
        shows="all of one head at once: each row is a query, each column a key, and the arrows on the photo are the strongest of "
        "these links.",
        hides="what the links are used for. A few strong links are easy to draw, and the many weak ones often hold more: the "
        "share of what is drawn stands beside it.",
    )
    words.formula(
        (
            r"$A = \mathrm{softmax}(s\, q k^{\top})$, $N \times N$; links: the $k$ largest $A_{i j}$ with $i \ne j$",
            "$i$ and $j$ run over the patches. Above 2,000 tokens a cell is the mean of a block of neighbouring tokens. Vaswani "
            "et al. 2017, arXiv:1706.03762.",
        )
    )
    return matrix


def _why(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """Another class is asked about."""
    return view.after_action(target=str(class_index(data, Questions.of(page, view, owner).targeted.classes)))


def _stop(stops: Stops, numbers: Stops, data: dict[str, Any]) -> None:
    """End the causal map, or what the room waits for."""
    if data.get("job") == "compute":
        numbers.stop(PAGE.get(), _NUMBERS)
    else:
        stops.stop(PAGE.get(), _CAUSAL)


def _computed(
    page: Page, numbers: Stops, view: ViewState, owner: str, data: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Follow what the room waits for, until it can be fetched."""

    def begin() -> Callable[..., Any]:
        options = dict(data.get("options") or {})
        there = view.with_options({name: options[name] for name in ("how", "target") if name in options})
        request = request_of(subject_of(page.session, view, owner), there, str(data.get("kind", "")))
        return partial(page.session.run, request)

    stop = numbers.start(PAGE.get(), _NUMBERS, view.about)
    for job in job_followed(begin, stop, key=str(data.get("key", ""))[:400]):
        yield gr.update(job=job)


def _draw(stops: tuple[Stops, Stops], page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    """Dim what waits for a pass, then the table; what runs about anything else ends."""
    causal, numbers = stops
    numbers.keep_only(PAGE.get(), view.about)
    try:
        if not page.session.keeps(subject_of(page.session, view, owner).request("trace")):
            yield {"revision": view.revision, "busy": True}
        value = room_value(page, view, owner)
        causal.keep_only(PAGE.get(), value["key"])
    except Exception as error:
        value = {"revision": view.revision, "trace": "", "note": sentence(error)}
    yield value | {
        "surgery": _panel(page, view, owner)
    }  # one value: another property, set before the tab is seen, is lost


def room_value(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    """The value of the room: what the heads are of, where their numbers are fetched, and what is chosen."""
    session = page.session
    subject = subject_of(session, view, owner)
    trace = session.trace_of(subject)
    view, _ = placed(session, subject, view)
    options = view.heads
    return {
        "revision": view.revision,
        "trace": session.handles.issue(subject),
        "long": takes_long(trace),
        **photo_value(session, subject),
        **trace_value(trace),
        "unlit": unsuitable(screen_photo(session, subject)),
        "query": view.query or format_query(trace.layout.default_query),
        "layer": view.layer,
        "head": view.head if isinstance(view.head, int) else 0,
        "options": {
            "face": options.face,
            "measure": options.measure,
            "how": options.how,
            "head_order": options.head_order,
        },
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


def _draw_matrix(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    if view.heads.face != "matrix":
        yield {"trace": ""}  # not gr.skip(): an update before the tab is seen takes the properties away
        return
    try:
        subject = subject_of(page.session, view, owner)
        there, _ = placed(page.session, subject, view)
        shown = explorer_view(there, page.session.trace_of(subject))
        value = explorer_value(page.session, there, owner)
        yield value | {"view": shown, "matrix": asdict(there.matrix)}
    except Exception:  # the room above says it in words
        yield {"trace": ""}


# --- the causal map


def cost_words(questions: Questions) -> str:
    """How often the model runs for a causal map and, where a pass was measured, about how long that takes."""
    heads = questions.trace.num_layers * questions.trace.num_heads
    words = f"switches off {heads} heads, one after the other, at about half a pass each"
    seconds = questions.page.session.pass_seconds(questions.subject)
    return words if seconds is None else f"{words}: about {duration(seconds * PASSES_PER_HEAD * heads)}"


def known_maps(questions: Questions) -> dict[str, Numbers]:
    """The causal maps that are kept, by the way of switching off."""
    session, maps = questions.page.session, {}
    for how in get_args(Ablation):
        view = questions.targeted.view.with_options({"how": how})
        request = asked(questions.subject, view, "causal map")
        if session.keeps(request):
            causal = session.run(request)
            assert isinstance(causal, CausalMap)
            maps[how] = causal_value(causal)
    return maps


def followed(questions: Questions, stop: threading.Event, news: News) -> Iterator[dict[str, Any]]:
    """Follow a causal map from its first batch to its last."""
    page, view = PAGE.get(), questions.targeted.view
    how, session = view.heads.how, questions.page.session
    request, shown = asked(questions.subject, view, "causal map"), deque[CausalMap](maxlen=1)

    def tell(**said: Any) -> dict[str, Any]:
        there = causal_value(shown[0]) if shown else {}
        return gr.update(causal=news.tell(page, questions.key, how, **(there | said)))

    yield tell(running=True, share=0.0)
    try:
        for step in steps(partial(session.run, request, preview=shown.append), stop):
            if step.is_last:
                shown.append(step.result)
            yield tell(running=not step.is_last, share=step.share, left=step.left)
    except Exception as error:
        yield tell(running=False, error=STOPPED if shown and stop.is_set() else sentence(error))
    yield gr.update(causal=news.latest(page, questions.key))  # what others said while this was on its way


# --- surgery: heads off or replaced, temperatures, forbidden views; the edited model is what every tab then shows


def _wire_surgery(room: HeadRoom, page: Page) -> None:
    """Let the switches change the model that the page is about; what is not possible stays in the panel, with the reason."""

    def edit(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        words = dict(event._data or {}).get("edits", "")
        try:
            edits = possible_edits(page.session, view, OWNER.get(), words)
        except Exception as error:
            told = panel_value(page.session, view, OWNER.get()) | {"error": sentence(error)}
            return gr.update(surgery=told), *(gr.skip() for _ in page.outputs)
        changed = page.changed(request, view, lambda newest: newest.after_action(edits=str(edits)))
        return gr.skip(), *changed

    room.edit(edit, [page.view], [room, *page.outputs], **QUICK)


def possible_edits(session: Session, view: ViewState, owner: str, words: object) -> ModelEdits:
    """Edits in words, where the model of a view can have them.

    Raises:
        ParameterError: it cannot; the sentence says why.
    """
    edits = ModelEdits.parse(words)
    edits.of(session.trace_of(replace(subject_of(session, view, owner), edits=NO_EDITS)))
    return edits


def _panel(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    try:
        return panel_value(page.session, view, owner)
    except Exception as error:
        return {"revision": view.revision, "layers": 0, "error": sentence(error)}


def panel_value(session: Session, view: ViewState, owner: str) -> dict[str, Any]:
    """What there is to edit, and what is edited; also where a link asks for edits that this model cannot have."""
    subject = replace(subject_of(session, view, owner), edits=NO_EDITS)
    trace, edits = session.trace_of(subject), ModelEdits.parse(view.edits)
    assert trace.crop_box is not None  # a session traces photos, which have one
    return {
        "revision": view.revision,
        "layers": trace.num_layers,
        "heads": trace.num_heads,
        "grid": list(trace.layout.grid),
        "crop": trace.crop_box.to_dict(),
        **photo_value(session, subject),
        "tokens": _named_tokens(trace.layout),
        "off": [[layer, head, state] for (layer, head), state in edits.heads],
        "temperatures": [list(pair) for pair in edits.temperatures],
        "lowest": LOWEST_TEMPERATURE,
        "highest": HIGHEST_TEMPERATURE,
        "forbidden": [str(one) for one in edits.forbidden],
        "error": "",
        **_before_and_now(session, subject, edits),
    }


def _before_and_now(session: Session, subject: Subject, edits: ModelEdits) -> dict[str, Any]:
    """The answers without the edits and with them, and where the rows of the unedited model are fetched."""
    told: dict[str, Any] = {"trace": session.handles.issue(subject), "before": [], "now": []}
    before = session.top_classes_of(subject, count=_RANKED)
    if before is None:
        return told
    told |= {"before": ranking_value(before), "now": ranking_value(before)}
    with suppress(VitVizError):  # edits that this model cannot have: the page says so in words
        now = session.top_classes_of(replace(subject, edits=edits), count=_RANKED)
        told |= {"now": ranking_value(now)} if now is not None else {}
    return told


def _named_tokens(layout: TokenLayout) -> list[dict[str, str]]:
    """Tokens to choose from by name: those that are no patches, and groups."""
    registers = [name for name in layout.named if name.startswith("register")]
    groups = ["patches", *(["registers"] if len(registers) > 1 else []), "everything"]
    names = [name for name in layout.named if len(layout.named) <= _MANY or name not in layout.suffix]
    return [{"value": name, "label": _LABELS.get(name, name)} for name in (*names, *groups)]


TAB = Tab(
    "heads",
    "Heads",
    build,
    shows=lambda view: (view.about, view.query, view.layer, view.head, view.target, view.heads),
    about="What each head does on this photo, what the answer loses without it, and the model with heads switched off.",
)
