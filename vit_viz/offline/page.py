"""Rooms of the app as one HTML file: photo, every layer and head, and the program, with nothing left to fetch.

The page may load nothing (Content-Security-Policy): its scripts and its style are known by their digests, its numbers are text. The
Look tab computes everything from packed layers; what other tabs show are answers that were given when the file was written. A
tab is there if these were.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from vit_viz.analyses.opening import opening
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import Answer
from vit_viz.capture import Trace
from vit_viz.errors import ExportError, VitVizError
from vit_viz.explorer import EXPLORER, colour_tables, style, template
from vit_viz.explorer.packing import Storage, packed_error, packed_layer, source_of
from vit_viz.explorer.rooms import PROPS
from vit_viz.explorer.value import link_fields, proof_value, trace_value
from vit_viz.figures.record import record_text
from vit_viz.figures.styles import unsuitable
from vit_viz.images import Mode
from vit_viz.offline.bundle import bundled
from vit_viz.offline.letters import as_letters
from vit_viz.offline.stylesheet import bare, stylesheet
from vit_viz.sentences import sentence
from vit_viz.session.serialization import as_safetensors, facts_of

FP16_BYTES = 20_000_000
"""Bytes that queries and keys in fp16 may take in the page; beyond it they are stored as int8."""

PAGE_BYTES = 200_000_000
"""Bytes of layers with which a page still opens; there is none of more."""

MOST_WEIGHTS = 200_000_000
"""Weights of attention of all heads beyond which no question is answered for the page: it would take too long to write."""

Ask = Callable[..., Any]
"""Answers a question by its name, with its options, about the photo of a page."""

_VECTORS = ("keys", "queries")
"""By which tokens are compared in a page: both stand there, tokens do not."""

_ROOMS: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    "look": (),
    "heads": (("head_tables", {}), ("head_names", {})),
    "tokens": (
        *(("token_components", {"role": vectors}) for vectors in _VECTORS),
        ("token_change", {}),
        ("token_norms", {}),
        *(("layer_similarity", {"role": vectors}) for vectors in _VECTORS),
        ("logit_lens", {}),
    ),
}
"""The tabs of a page, and the questions whose answers they show, with options; a tab is there if its first one is answered."""

_PHOTO_SIDE = 1280
_PHOTO_BYTES = 300_000
_QUALITIES = (88, 80, 70, 55, 40)
_FOLDER = Path(__file__).parent
_PARAGRAPHS: dict[Storage, str] = {
    "fp16": "Queries and keys are stored as fp16.",
    "int8": "Queries and keys are stored as int8 with a scale for each row, because fp16 would take {size:.0f} MB.",
}


def page_of(
    trace: Trace,
    photo: Image.Image,
    *,
    name: str,
    mode: Mode = "fit",
    size: int = 0,
    view: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    most_bytes: int = PAGE_BYTES,
) -> bytes:
    """A trace as a page of its own, in UTF-8.

    Args:
        trace: of a photo, best with the norms of its values, which weighted attention needs.
        photo: mode RGB, upright; of the shape that the trace's crop box speaks of, at any size.
        name: of the photo.
        mode, size: how it became the model's input.
        view: what it opens with: layer, head, query as text, and options by their names; the rest is the explorer's own choice.
        ask: answers questions about the photo; without it the page has the Look tab alone.
        most_bytes: of all layers as they stand in the page.
    """
    check_fits(trace, most_bytes)
    storage = storage_of(trace)
    answers = _answers(trace, ask)
    tabs = _tabs(trace, answers)
    facts = page_facts(trace, photo, name=name, mode=mode, size=size, view=view, tabs=tabs)
    facts["answers"] = [about for about, _ in answers]
    packed = {
        f"vv-layer-{layer}": packed_layer(trace, layer, storage=storage) for layer in range(trace.num_layers)
    }
    packed |= {f"vv-answer-{i}": zlib.compress(data) for i, (_, data) in enumerate(answers) if data}
    program, script, css = _program(tuple(tabs)), _script(), _style()
    packed["vv-program"] = zlib.compress(program.encode(), 9)
    held = (
        f'<script type="application/octet-stream" id="{key}">{as_letters(data)}</script>'
        for key, data in packed.items()
    )
    parts = {
        # its scripts and style sheets, the photo that it holds
        "policy": policy(
            {
                "script-src": f"{digest_source(script)} {digest_source(program)}",
                "style-src": f"{digest_source(css)} {digest_source(_tabs_style())}",
                "img-src": "data:",
            }
        ),
        "title": html.escape(f"{name}, seen by {trace.provenance.model or 'a model'}"),
        "shape": _shape(trace),
        "style": css,
        "storage": _storage_words(trace, storage),
        "provenance": html.escape(record_text(trace.provenance)),
        "facts": script_json(facts),
        "held": "\n".join(held),
        "script": script,
    }
    # in one pass, so that text which looks like a placeholder stays text
    page = (_FOLDER / "page.html").read_text("utf-8")
    return re.sub(r"@@(\w+)@@", lambda match: parts[match[1]], page).encode()


def _answers(trace: Trace, ask: Ask | None) -> list[tuple[dict[str, Any], bytes]]:
    """Of each question its name, "question", its "options", and the answer as safetensors; or why there is none, "refused"."""
    if ask is None or trace.num_layers * trace.num_heads * trace.num_tokens**2 > MOST_WEIGHTS:
        return []
    answers: list[tuple[dict[str, Any], bytes]] = []
    for name, options in [one for questions in _ROOMS.values() for one in questions]:
        about = {"question": name, "options": QUESTIONS.named(name).read(options).values()}
        try:
            answer = ask(name, **options)
        except VitVizError as error:
            answers.append((about | {"refused": sentence(error)}, b""))
            continue
        words = answer.to_words() if isinstance(answer, Answer) else ""
        said = {"question": name, "facts": facts_of(answer), "words": words}
        answers.append((about, as_safetensors(answer, said)))
    return answers


def _tabs(trace: Trace, answers: Sequence[tuple[dict[str, Any], bytes]]) -> list[str]:
    """The tabs that have something to show."""
    answered = {about["question"] for about, data in answers if data}
    own = [tab for tab, questions in _ROOMS.items() if not questions or questions[0][0] in answered]
    has_vectors = {source_of(trace, layer) for layer in range(trace.num_layers)} == {"qk"}
    return [tab for tab in own if tab != "tokens" or has_vectors]


def _tab(name: str) -> dict[str, Any]:
    """A tab as vit_viz/web/page/tabs.js has it; what it shows is explained in the app."""
    inside = template(EXPLORER) if name == "look" else ""
    place = (
        f'<div id="{EXPLORER if name == "look" else f"vv-{name}"}" class="vv-part" data-room>{inside}</div>'
    )
    around = f"<div id=vv-heads-faces>{place}</div>" if name == "heads" else place
    props = PROPS[name]()
    if "options" in props:
        props["options"] = [_in_page(option) for option in props["options"]]
    module = f"web/{name}/room.js"
    return {"name": name, "label": name.capitalize(), "html": around, "module": module, "props": props}


def _in_page(option: dict[str, Any]) -> dict[str, Any]:
    """An option as a page can have it."""
    is_of_vectors = {"tokens", *_VECTORS} == set(option.get("choices", ()))
    return option | {"choices": list(_VECTORS), "default": _VECTORS[0]} if is_of_vectors else option


def page_facts(
    trace: Trace,
    photo: Image.Image,
    *,
    name: str,
    mode: Mode,
    size: int = 0,
    view: Mapping[str, Any] | None = None,
    tabs: list[str] | None = None,
) -> dict[str, Any]:
    """What vit_viz/offline/source.js is told at once: what it shows, the names of links, and how its layers are packed."""
    begins = opening(trace)
    small = photo.copy()
    small.thumbnail((_PHOTO_SIDE, _PHOTO_SIDE), Image.Resampling.LANCZOS)
    of = {"model": trace.provenance.model, "image": trace.provenance.image, "mode": mode, "size": size}
    value = {
        "trace": "page",
        **of,
        "part": "",
        **trace_value(trace),
        "photo": _photo(small),
        "photo_size": [small.height, small.width],
        "unlit": unsuitable(small),
        "opening": {
            "layer": begins.layer,
            "head": begins.head,
            "patch": next(iter(begins.tour), None),
        },
        "tour": [],
        "proof": proof_value(trace),
        "note": " ".join(trace.problems),
        "name": name,
        "about": {},
        "pictures": [],
    }
    begun = of | dict(view or {})
    viewed = {option["link"] for option in value["options"]}

    def begins_with(field: dict[str, Any]) -> dict[str, Any]:
        """A field of links, which say what differs from what the page opens with."""
        is_of_view = "of" not in field or field["link"] in viewed
        return {"default": begun[field["name"]]} if is_of_view and field["name"] in begun else {}

    fields = [
        _in_page(field) | begins_with(field) for field in link_fields({"tab": {"choices": tabs or ["look"]}})
    ]
    pool = trace.query_weights("pool").tolist() if trace.layout.pooling == "attention" else None
    return {"value": value, "fields": fields, "packing": {"storage": storage_of(trace), "pool": pool}}


def storage_of(trace: Trace) -> Storage:
    """How queries and keys are stored: as fp16 unless that takes too much."""
    return "fp16" if fp16_bytes(trace) <= FP16_BYTES else "int8"


def fp16_bytes(trace: Trace) -> int:
    """Bytes that all layers have in a page in fp16, at most: they are compressed, and then written as letters."""
    kept, whole = 4 * trace.head_dim + 8, 2 * trace.num_tokens + 4
    row = sum(kept if trace.source(layer) == "qk" else whole for layer in range(trace.num_layers))
    return trace.num_heads * trace.num_tokens * row * 16 // 13


def check_fits(trace: Trace, most_bytes: int = PAGE_BYTES) -> None:
    """Check that a trace fits into a page."""
    kinds = {source_of(trace, layer) for layer in range(trace.num_layers)}
    size = fp16_bytes(trace)
    stored = size // 2 if kinds == {"qk"} and size > FP16_BYTES else size
    if "rows" in kinds or stored > most_bytes:
        raise ExportError(
            f"A page holds at most {most_bytes // 10**6} MB of attention, and this model has more on "
            f"{trace.num_tokens} tokens: choose a smaller size of the input."
        )


def _photo(photo: Image.Image) -> str:
    """The photo as a data address, in the best quality that is small enough."""
    for quality in _QUALITIES:
        file = io.BytesIO()
        photo.save(file, "WEBP", quality=quality)
        if file.tell() <= _PHOTO_BYTES:
            break
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"


def _shape(trace: Trace) -> str:
    rows, cols = trace.layout.grid
    edits = dict(trace.provenance.parameters).get("edits")
    edited = f"The model is edited: {html.escape(edits)}. " if edits else ""
    return (
        f"{edited}{trace.num_layers} layers x {trace.num_heads} heads, {rows} x {cols} patches. Point at the photo to choose the "
        "query; click to keep it."
    )


def _storage_words(trace: Trace, storage: Storage) -> str:
    """How exact the page's numbers are, measured."""
    how = _PARAGRAPHS[storage].format(size=fp16_bytes(trace) / 1e6)
    error = 100 * packed_error(trace, storage=storage)
    return (
        f"{how} Rows of attention differ from the model's own by at most {error:.2g}% of their largest weight, as measured in "
        "every head of every layer."
    )


@cache
def _script() -> str:
    return bundled("offline/start.js", "entry.start();")


@cache
def _program(tabs: tuple[str, ...]) -> str:
    """What the first script unpacks and runs."""
    told = ", ".join(
        script_json(one) for one in ([_tab(tab) for tab in tabs], colour_tables(), _tabs_style())
    )
    rooms = [f"web/{tab}/room.js" for tab in tabs]
    return bundled("offline/page.js", f"window.vit_viz = need;\nentry.start({told});", *rooms)


def explorer_style() -> str:
    """The rules of the explorer and of what it is made of."""
    shared = ("ui/tokens.css", "ui/kit/system.css")  # as files, since nothing here needs the app
    return "\n".join([*((_FOLDER.parent / name).read_text("utf-8") for name in shared), style()])


@cache
def _style() -> str:
    """The rules of what stands in the page from the beginning."""
    own = ("ui/tokens.css", "site/site.css", "offline/page.css")
    return bare("\n".join((_FOLDER.parent / name).read_text("utf-8") for name in own))


@cache
def _tabs_style() -> str:
    """The rules of the tabs, which come with the program."""
    return bare(stylesheet(only={"kit", *_ROOMS}))


def policy(directives: Mapping[str, str]) -> str:
    """What a page may load and run (Content-Security-Policy): what is named, and nothing else."""
    named = {"default-src": "'none'", **directives, "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{name} {sources}" for name, sources in named.items())


def digest_source(text: str) -> str:
    """How a policy names a script or a style sheet that stands in the page: by the digest of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def script_json(facts: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(facts, separators=(",", ":"))
    return text.replace("</", "<\\/").replace("<!", "\\u003c!")
