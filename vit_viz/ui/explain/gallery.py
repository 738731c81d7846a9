"""What is explained, and the cards of the Explain tab: the maps of all methods, and how far to believe each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.render.lettering import number
from vit_viz.results import PatchMap
from vit_viz.session.handles import OWNER, PAGE
from vit_viz.ui import pictures
from vit_viz.ui.edge.user_errors import guarded, sentence
from vit_viz.ui.explain import trust
from vit_viz.ui.explain.methods import card_named
from vit_viz.ui.explain.questions import Questions, found_classes
from vit_viz.ui.explain.target import target_value
from vit_viz.ui.kit import Gallery, Target
from vit_viz.ui.page import LONG, QUICK, Page
from vit_viz.ui.payload import picture_address
from vit_viz.ui.visit.jobs import News, Stops, steps
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class Cards:
    """The chips of classes and the cards of methods."""

    targeted: Target
    gallery: Gallery
    stops: Stops = field(default_factory=Stops)
    news: News = field(default_factory=News)


def build_target() -> Target:
    """Lay out the chips of classes."""
    return Target(None, matches=None, elem_id="vv-target")


def build_gallery() -> Gallery:
    """Lay out the cards."""
    return Gallery(None, trust=None, progress=None, weights=None, elem_id="vv-gallery")


def wire(cards: Cards, page: Page) -> None:
    """Let chips and cards change the view, draw them, and run what is asked for by a button."""
    page.gesture(cards.targeted.why, lambda view, owner, data: _why(page, view, owner, data))
    page.gesture(cards.targeted.unlike, lambda view, owner, data: _unlike(page, view, owner, data))
    page.gesture(cards.gallery.open, lambda view, _, data: view.after_action(method=_method(data).name))

    page.gesture(
        cards.gallery.map_scale,
        lambda view, _, data: view.after_action().with_options({"map_scale": data.get("map_scale")}),
    )

    @guarded
    def search(view: ViewState, event: gr.EventData) -> Any:
        return gr.update(matches=found_classes(page, view, OWNER.get(), dict(event._data or {})))

    @guarded
    def stop(event: gr.EventData) -> None:
        cards.stops.stop(PAGE.get(), str(dict(event._data or {}).get("name", ""))[:40] or "nothing")

    @guarded
    def compute(view: ViewState, event: gr.EventData) -> Iterator[Any]:
        method, questions = _method(dict(event._data or {})), Questions.of(page, view, OWNER.get())
        stop = cards.stops.start(PAGE.get(), method.name, questions.key)
        yield from _computed(questions, method, stop, cards.news)

    @guarded
    def test(view: ViewState, event: gr.EventData) -> Iterator[Any]:
        data = dict(event._data or {})
        names = [*data.get("known", []), *data.get("methods", [])]
        methods = [method for method in METHODS.cards if method.name in names]
        questions = Questions.of(page, view, OWNER.get())
        yield from trust.tested(questions, methods, cards.stops.start(PAGE.get(), "trust", questions.key))

    cards.targeted.search(search, [page.view], [cards.targeted], **QUICK)
    cards.gallery.stop(stop, [], None, **QUICK)
    cards.gallery.compute(compute, [page.view], [cards.gallery], **LONG)
    cards.gallery.trust(test, [page.view], [cards.gallery], **LONG)
    page.drawing(
        "explain", lambda p, view, owner: _draw(cards, p, view, owner), [cards.targeted, cards.gallery]
    )


# --- actions


def _method(data: dict[str, Any]) -> AnyMethod:
    return card_named(str(data.get("method", "")))


def _index(data: dict[str, Any], classes: int) -> int:
    index = data.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < classes:
        raise ParameterError(f"A class is a whole number from 0 to {classes - 1}.")
    return index


def _why(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """Another class is explained; what it was set against stays, unless it is that class."""
    targeted = Questions.of(page, view, owner).targeted
    index, *others = _index(data, targeted.classes), *targeted.view.target.split("-")[1:]
    kept = [other for other in others if int(other) != index]
    return view.after_action(target="-".join([str(index), *kept]))


def _unlike(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The class is set against another one, or against nothing."""
    targeted = Questions.of(page, view, owner).targeted
    first = targeted.view.target.split("-")[0]
    if data.get("index") is None:
        return view.after_action(target=first)
    other = _index(data, targeted.classes)
    return view if str(other) == first else view.after_action(target=f"{first}-{other}")


# --- drawings


def _draw(cards: Cards, page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """Dim, then chips and cards; what still runs about something else ends."""
    yield gr.skip(), {"revision": view.revision, "busy": True}
    try:
        questions = Questions.of(page, view, owner)
        cards.stops.keep_only(PAGE.get(), questions.key)
        yield (
            target_value(page.session, questions.subject, questions.targeted) | {"revision": view.revision},
            gr.skip(),
        )
        yield gr.skip(), gallery_value(questions)
    except Exception as error:
        yield gr.skip(), {"revision": view.revision, "error": sentence(error)}


def gallery_value(questions: Questions) -> dict[str, Any]:
    """The base of the gallery: a card per method, with its map where it is quick or at hand."""
    return {
        "revision": questions.targeted.view.revision,
        "key": questions.key,
        "about": questions.targeted.view.about,
        "target": questions.targeted.words,
        "map_scale": questions.targeted.view.explain.map_scale,
        "cards": [_card(questions, method) for method in METHODS.cards],
    }


def _card(questions: Questions, method: AnyMethod) -> dict[str, Any]:
    session, subject, view = questions.page.session, questions.subject, questions.view(method)
    box = questions.trace.crop_box
    height, width = box.original_size if box else (1, 1)
    card = {
        "name": method.name,
        "label": method.words.label,
        "blind": method.words.class_blind,
        "slow": method.is_slow,
        "chosen": method.name == questions.targeted.view.method,
        "words": cost_words(method, questions.trace.layout.num_patches, session.pass_seconds(subject)),
        "shows": method.words.shows,
        "hides": method.words.hides,
        "ratio": width / height,
        "options": repr(questions.options(method)),
        "src": picture_address(session, subject, view, "card") + "&bare=1",
    }
    if not method.is_slow or session.keeps(questions.request(method)):
        try:
            card["map"] = _map_value(questions, method, pictures.explanation(session, subject, view))
        except VitVizError as error:
            card["words"] = sentence(error)
    return card


def cost_words(method: AnyMethod, patches: int, seconds: float | None) -> str:
    """How often the model runs for a method and, where a pass of it was measured, about how long that takes."""
    if method.passes is None or seconds is None:
        return method.words.runs
    least = "at least " if method.passes.at_least else "about "
    return f"{method.words.runs}: {least}{duration(seconds * method.passes.of(patches))}"


def duration(seconds: float) -> str:
    """A time for people, as they would guess it."""
    if seconds < 90:
        return f"{max(1, round(seconds))}\N{NO-BREAK SPACE}s"
    return f"{round(seconds / 60)}\N{NO-BREAK SPACE}min"


def _map_value(questions: Questions, method: AnyMethod, found_map: PatchMap) -> dict[str, Any]:
    """What is said of a map: what it is, and its scale with numbers."""
    view = questions.view(method)
    drawn, (low, high), _name = pictures.on_scale(questions.page.session, questions.subject, view, found_map)
    largest = float(abs(drawn.values).max())
    note = (
        f" Its largest value, {number(largest)}, lies beyond this scale." if largest > high * 1.0001 else ""
    )
    words_of = caption_of(found_map, method, questions.targeted.words)
    scale = f"{drawn.unit} from {number(low)} to {number(high)}"
    return {"caption": f"{words_of}. Scale: {scale}.{note}"}


def caption_of(found_map: PatchMap, method: AnyMethod, target: str) -> str:
    """A map in words, with the names of the classes where the analysis knows their numbers."""
    what = found_map.caption.split(", towards the ")[0]
    targeted = "" if method.words.class_blind else f", for {target}" if target else ", for its own embedding"
    note = f". {found_map.note.rstrip('.')}" if found_map.note else ""
    return f"{what[:1].upper()}{what[1:]}{targeted}{note}"


# --- long work


def _computed(
    questions: Questions, method: AnyMethod, stop: threading.Event, news: News
) -> Iterator[dict[str, Any]]:
    """Follow a slow method to its map."""
    if not method.is_slow:
        raise ParameterError(f"{method.words.label} needs no waiting.")
    page, view = PAGE.get(), questions.view(method)

    def tell(**said: Any) -> dict[str, Any]:
        return gr.update(progress=news.tell(page, questions.key, method.name, **said))

    yield tell(share=0.0, words="Starting …")
    try:
        for step in steps(
            lambda progress, cancelled: pictures.explanation(
                questions.page.session, questions.subject, view, progress=progress, cancelled=cancelled
            ),
            stop,
        ):
            if step.is_last:
                yield tell(map=_map_value(questions, method, step.result))
            else:
                yield tell(share=step.share, words=f"{step.share:.0%} of {method.words.runs}")
    except Exception as error:
        yield tell(error=sentence(error))
    yield gr.update(progress=news.latest(page, questions.key))  # what others said while this was on its way
