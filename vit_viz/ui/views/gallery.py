"""The upper part of the Explain tab: what is explained, the maps of all methods side by side, and how far to trust each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from vit_viz.errors import ParameterError, VitVizError
from vit_viz.render.lettering import number
from vit_viz.results import PatchMap
from vit_viz.ui import pictures
from vit_viz.ui.aims import aim_value, aimed, found
from vit_viz.ui.boundary import guarded, sentence
from vit_viz.ui.choices import subject_of
from vit_viz.ui.methods import METHODS, Method, method_named
from vit_viz.ui.page import DRAWING, QUICK, Page
from vit_viz.ui.parts.explanation import Aim, Gallery
from vit_viz.ui.payload import bar_value, picture_address
from vit_viz.ui.state import ViewState
from vit_viz.ui.views import trust
from vit_viz.ui.views.asked import Asked
from vit_viz.ui.watching import Stops, steps

SLOW = tuple(method for method in METHODS if method.runs)
LONG: dict[str, Any] = DRAWING | {"trigger_mode": "multiple", "concurrency_limit": 4}


@dataclass(frozen=True)
class Cards:
    """The components of the upper part."""

    aim: Aim
    gallery: Gallery
    curves: gr.Row
    caption: gr.HTML
    deletion: gr.Plot
    insertion: gr.Plot
    stops: Stops = field(default_factory=Stops)


def build() -> Cards:
    """Lay out the upper part."""
    aim = Aim(None, found=None, elem_id="vv-aim")
    gallery = Gallery(
        None, trust=None, slow_0=None, slow_1=None, slow_2=None, slow_3=None, elem_id="vv-gallery"
    )
    with gr.Column(visible=False, elem_id="vv-curves") as curves:
        caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
        with gr.Row(elem_classes="vv-view"):
            deletion, insertion = (
                gr.Plot(show_label=False, container=False, elem_id=f"vv-{name}", buttons=[])
                for name in ("deletion", "insertion")
            )
    return Cards(aim, gallery, curves, caption, deletion, insertion)


def wire(cards: Cards, page: Page) -> None:
    """Let chips and cards change the view, draw them, and run what is asked for by a button."""
    page.gesture(cards.aim.why, lambda view, owner, data: _why(page, view, owner, data))
    page.gesture(cards.aim.unlike, lambda view, owner, data: _unlike(page, view, owner, data))
    page.gesture(cards.gallery.open, lambda view, _, data: view.next_turn(method=_method(data).name))

    page.gesture(
        cards.gallery.ruler, lambda view, _, data: view.next_turn().with_options({"ruler": data.get("ruler")})
    )

    @guarded
    def search(view: ViewState, owner: str, event: gr.EventData) -> Any:
        data = dict(event._data or {})
        subject = subject_of(page.session, view, owner)
        aim = aimed(page.session, subject, view)
        hits = found(aim.labels, aim.classes, str(data.get("text", ""))[:100])
        return gr.update(found={"seq": data.get("seq"), "hits": hits})

    @guarded
    def stop(owner: str, event: gr.EventData) -> None:
        cards.stops.stop(owner, str(dict(event._data or {}).get("name", ""))[:40] or "nothing")

    @guarded
    def compute(view: ViewState, owner: str, event: gr.EventData) -> Iterator[Any]:
        method, asked = _method(dict(event._data or {})), Asked.of(page, view, owner)
        yield from _computed(asked, method, cards.stops.start(owner, method.name, asked.key))

    @guarded
    def test(view: ViewState, owner: str, event: gr.EventData) -> Iterator[Any]:
        data = dict(event._data or {})
        names = [*data.get("known", []), *data.get("methods", [])]
        methods = [method for method in METHODS if method.name in names]
        asked = Asked.of(page, view, owner)
        yield from trust.tested(asked, methods, cards.stops.start(owner, "trust", asked.key))

    @guarded
    def curves(view: ViewState, owner: str, event: gr.EventData) -> Any:
        return trust.curves_of(Asked.of(page, view, owner), _method(dict(event._data or {})))

    cards.aim.search(search, [page.view, page.owner], [cards.aim], **QUICK)
    cards.gallery.stop(stop, [page.owner], None, **QUICK)
    cards.gallery.compute(compute, [page.view, page.owner], [cards.gallery], **LONG)
    cards.gallery.trust(test, [page.view, page.owner], [cards.gallery], **LONG)
    shown = [cards.curves, cards.caption, cards.deletion, cards.insertion]
    cards.gallery.curves(curves, [page.view, page.owner], shown, **LONG)
    page.drawing("explain", lambda p, view, owner: _draw(cards, p, view, owner), [cards.aim, cards.gallery])


# --- actions


def _method(data: dict[str, Any]) -> Method:
    return method_named(str(data.get("method", "")))


def _index(data: dict[str, Any], classes: int) -> int:
    index = data.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < classes:
        raise ParameterError(f"A class is a whole number from 0 to {classes - 1}.")
    return index


def _why(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """Another class is explained; what it was set against stays, unless it is that class."""
    aim = Asked.of(page, view, owner).aim
    index, *others = _index(data, aim.classes), *aim.view.target.split("-")[1:]
    kept = [other for other in others if int(other) != index]
    return view.next_turn(target="-".join([str(index), *kept]))


def _unlike(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The class is set against another one, or against nothing."""
    aim = Asked.of(page, view, owner).aim
    first = aim.view.target.split("-")[0]
    if data.get("index") is None:
        return view.next_turn(target=first)
    other = _index(data, aim.classes)
    return view if str(other) == first else view.next_turn(target=f"{first}-{other}")


# --- drawings


def _draw(cards: Cards, page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """Dim, then chips and cards; what still runs about something else ends."""
    yield gr.skip(), {"turn": view.turn, "busy": True}
    try:
        asked = Asked.of(page, view, owner)
        cards.stops.keep_only(owner, asked.key)
        yield aim_value(page.session, asked.subject, asked.aim) | {"turn": view.turn}, gr.skip()
        yield gr.skip(), gallery_value(asked)
    except Exception as error:
        yield gr.skip(), {"turn": view.turn, "error": sentence(error)}


def gallery_value(asked: Asked) -> dict[str, Any]:
    """The base of the gallery: a card per method, with its map where it is quick or at hand."""
    return {
        "turn": asked.aim.view.turn,
        "key": asked.key,
        "ruler": asked.aim.view.ruler,
        "cards": [_card(asked, method) for method in METHODS],
    }


def _card(asked: Asked, method: Method) -> dict[str, Any]:
    session, subject, view = asked.page.session, asked.subject, asked.view(method)
    box = asked.trace.crop_box
    height, width = box.original_size if box else (1, 1)
    card = {
        "name": method.name,
        "label": method.label,
        "blind": method.class_blind,
        "slow": bool(method.runs),
        "chosen": method.name == asked.aim.view.method,
        "words": f"Takes longer: {method.runs}." if method.runs else "",
        "ratio": width / height,
        "options": repr(asked.options(method)),
        "src": picture_address(session, subject, view, "card") + "&bare=1",
        "save": picture_address(session, subject, view, "explain"),
    }
    if not method.runs or session.keeps(asked.request(method)):
        try:
            card["map"] = _map_value(asked, method, pictures.explanation(session, subject, view))
        except VitVizError as error:
            card["words"] = sentence(error)
    return card


def _map_value(asked: Asked, method: Method, found_map: PatchMap) -> dict[str, Any]:
    """What stands under a map: its scale with numbers, and what it is in words."""
    view = asked.view(method)
    drawn, (low, high), _name = pictures.on_scale(asked.page.session, asked.subject, view, found_map)
    bar = bar_value(low, high, table="diverging" if drawn.signed else view.table, unit=drawn.unit)
    beyond = float(abs(drawn.values).max()) > high * 1.0001
    note = (
        f" Its largest value, {number(float(abs(drawn.values).max()))}, lies beyond this scale."
        if beyond
        else ""
    )
    words_of = caption_of(found_map, method, asked.aim.words)
    return {"caption": f"{words_of}. Scale: {drawn.unit}.{note}", "bar": bar}


def caption_of(found_map: PatchMap, method: Method, target: str) -> str:
    """A map in words, with the names of the classes where the analysis knows their numbers."""
    what = found_map.caption.split(", towards the ")[0]
    aim = "" if method.class_blind else f", for {target}" if target else ", for its own embedding"
    note = f". {found_map.note.rstrip('.')}" if found_map.note else ""
    return f"{what[:1].upper()}{what[1:]}{aim}{note}"


# --- long work


def _computed(asked: Asked, method: Method, stop: threading.Event) -> Iterator[Any]:
    """Follow a slow method to its map."""
    if method not in SLOW:
        raise ParameterError(f"{method.label} needs no waiting.")
    prop = f"slow_{SLOW.index(method)}"
    view = asked.view(method)

    def tell(**said: Any) -> Any:
        news: dict[str, Any] = {prop: {"key": asked.key, "method": method.name, **said}}
        return gr.update(**news)

    yield tell(share=0.0, words="Starting …")
    try:
        for step in steps(
            lambda progress, cancelled: pictures.explanation(
                asked.page.session, asked.subject, view, progress=progress, cancelled=cancelled
            ),
            stop,
        ):
            if step.is_last:
                yield tell(map=_map_value(asked, method, step.found))
            else:
                yield tell(share=step.share, words=f"{step.share:.0%} of {method.runs}")
    except Exception as error:
        yield tell(error=sentence(error))
