"""The Explain tab: why the model said this, by all methods side by side, and how far each map can be trusted."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any

import gradio as gr

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.figures.lettering import number
from vit_viz.progress import duration
from vit_viz.results import PatchMap
from vit_viz.session.handles import PAGE
from vit_viz.ui import pictures
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain import agree, parts, stage, trust
from vit_viz.ui.explain.questions import Questions, answer_search, class_index, target_value
from vit_viz.ui.jobs import News, Stops, steps
from vit_viz.ui.kit import Gallery, PartsRoom, TargetChips, words
from vit_viz.ui.page import Page, Tab
from vit_viz.ui.payload import picture_address
from vit_viz.ui.pictures import card_named
from vit_viz.views.state import ViewState


def build(page: Page) -> None:
    """Lay out the tab: the question above, the stage at the left, the cards and what is known of them at the right."""
    target = TargetChips(None, matches=None, elem_id="vv-target")
    made_of = PartsRoom(None, elem_id="vv-parts")
    with gr.Row(elem_classes="vv-view", elem_id="vv-explain-columns"):
        with gr.Column(scale=2, min_width=320):
            staged = stage.build()
        with gr.Column(scale=3, min_width=320):
            gallery = Gallery(None, trust=None, progress=None, weights=None, elem_id="vv-gallery")
            _how_trust_is_measured()
            checked = trust.build_sanity()
    page.choices(target.face, "explain_face")
    page.choices(staged.stage.sides, "sides")
    parts.wire(made_of, page)
    _wire_cards(target, gallery, page)
    stage.wire(staged, page)
    trust.wire_sanity(checked, gallery, page)


def _wire_cards(target: TargetChips, gallery: Gallery, page: Page) -> None:
    """Let chips and cards change the view, draw them, and run what is asked for by a button."""
    stops, news = Stops(), News()
    page.gesture(target.why, lambda view, owner, data: _why(page, view, owner, data))
    page.gesture(target.unlike, lambda view, owner, data: _unlike(page, view, owner, data))
    page.gesture(gallery.open, lambda view, _, data: view.after_action(method=_method(data).name))
    page.choices(gallery.map_scale, "map_scale")
    answer_search(target, page)

    def stop(_view: ViewState, _owner: str, data: dict[str, Any]) -> None:
        stops.stop(PAGE.get(), str(data.get("name", ""))[:40] or "nothing")

    def compute(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        method, questions = _method(data), Questions.of(page, view, owner)
        yield from _computed(questions, method, stops.start(PAGE.get(), method.name, questions.key), news)

    def test(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        names = [*data.get("known", []), *data.get("methods", [])]
        methods = [method for method in METHODS.cards if method.name in names]
        questions = Questions.of(page, view, owner)
        yield from trust.tested(questions, methods, stops.start(PAGE.get(), "trust", questions.key))

    page.reply(gallery.stop, stop)
    page.job(gallery.compute, compute, [gallery])
    page.job(gallery.trust, test, [gallery])
    page.drawing("explain", lambda p, view, owner: _draw(stops, p, view, owner), [target, gallery])


def _how_trust_is_measured() -> None:
    words.formula(
        (
            r"deletion: area under $p(\mathrm{target})$ while the map's best patches are painted over, the lower the better;  "
            "insertion: while they are put back into a blurred photo, the higher the better",
            "20 steps; gray marks where 95% of random orders lie (10 orders: mean ± 2.37 standard deviations of their log-odds). "
            "A card's “x faster” is the mean area of random orders over that of the map, in deletion. Of two classes, the lead "
            "$z_a - z_b$ takes the place of the probability, in logits, and its band is that of the areas themselves, as is that "
            "of an output that is a value. "
            "Petsiuk et al. 2018, arXiv:1806.07421, on patches.",
        ),
        (
            r"changes with the class: $1 - \rho(m_1, m_2)$, the maps $m_1$ and $m_2$ for two classes; mirrored photo, mirrored "
            r"map: $\rho(m, m')$, with $m'$ the map of the mirrored photo, mirrored back",
            r"$\rho$: Spearman's rank correlation. Class 0: the map is the same whatever the class. Mirror 1: the map does not "
            "mind a mirror.",
        ),
        title="How this is measured",
    )


def _shows(view: ViewState) -> Hashable:
    # a slow map may have been computed since the view was drawn: with it each action draws anew, from what is kept
    method = METHODS.get(view.method)
    since = view.revision if method and method.is_slow else 0
    return view.about, view.query, view.method, since, view.target, view.options


# --- actions


def _method(data: dict[str, Any]) -> AnyMethod:
    return card_named(str(data.get("method", "")))


def _why(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """Another class is explained; what it was set against stays, unless it is that class."""
    targeted = Questions.of(page, view, owner).targeted
    index, *others = class_index(data, targeted.classes), *targeted.view.target.split("-")[1:]
    kept = [other for other in others if int(other) != index]
    return view.after_action(target="-".join([str(index), *kept]))


def _unlike(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The class is set against another one, or against nothing."""
    targeted = Questions.of(page, view, owner).targeted
    first = targeted.view.target.split("-")[0]
    if data.get("index") is None:
        return view.after_action(target=first)
    other = class_index(data, targeted.classes)
    if str(other) == first:
        return view
    return view.after_action(target=f"{first}-{other}").with_option("explain", "sides", "difference")


# --- drawings


def _draw(stops: Stops, page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """Dim, then chips and, where they are looked at, cards; what still runs about something else ends."""
    has_cards = not parts.is_shown(view)
    if has_cards:
        yield gr.skip(), {"revision": view.revision, "busy": True}
    try:
        questions = Questions.of(page, view, owner)
        stops.keep_only(PAGE.get(), questions.key)
        yield (
            target_value(page.session, questions.subject, questions.targeted)
            | {"revision": view.revision, "face": view.explain.explain_face},
            gr.skip(),
        )
        if has_cards:
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
        "rule": agree.scale_words(questions),
        "agreement": agree.value(questions),
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


def _map_value(questions: Questions, method: AnyMethod, patch_map: PatchMap) -> dict[str, Any]:
    """What is said of a map: what it is, and its scale with numbers."""
    view = questions.view(method)
    drawn, (low, high), _name = pictures.on_scale(questions.page.session, questions.subject, view, patch_map)
    largest = float(abs(drawn.values).max())
    note = (
        f" Its largest value, {number(largest)}, lies beyond this scale." if largest > high * 1.0001 else ""
    )
    words_of = caption_of(patch_map, method, questions.targeted.words)
    scale = f"{drawn.unit} from {number(low)} to {number(high)}"
    return {"caption": f"{words_of}. Scale: {scale}.{note}"}


def caption_of(patch_map: PatchMap, method: AnyMethod, target: str) -> str:
    """A map in words, with the names of the classes where the analysis knows their numbers."""
    what = patch_map.caption.split(", towards the ")[0]
    targeted = "" if method.words.class_blind else f", for {target}" if target else ", for its own embedding"
    note = f". {patch_map.note.rstrip('.')}" if patch_map.note else ""
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
        run = partial(pictures.explanation, questions.page.session, questions.subject, view)
        for step in steps(run, stop):
            if step.is_last:
                yield tell(map=_map_value(questions, method, step.result))
            else:
                yield tell(share=step.share, words=f"{step.far} of {method.words.runs}")
    except Exception as error:
        yield tell(error=sentence(error))
    yield gr.update(progress=news.latest(page, questions.key))  # what others said while this was on its way


TAB = Tab(
    "explain",
    "Explain",
    build,
    shows=_shows,
    about="Which patches made the model say a class, by many methods, and which of them deserve trust.",
)
