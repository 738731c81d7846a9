"""What can be opened, and what is edited: what the header asks of a view beside what it is of, by POST and in JSON.

/vit_viz/offered   the models of the picker, and the pictures of this visit
/vit_viz/load      {"name": ...}: answers once this model is here; says how far that is. One that would have to be downloaded waits
                   for {"agreed": true}: until then the answer is what a visitor is asked before that
/vit_viz/edited    what is changed inside the model, and what that changes in the answer; {"edits": words}: these in one way of
                   writing them, refused where the model cannot have them
/vit_viz/bring     a file, as it is, with its name in a header: it becomes a picture of this visit
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import anyio
from PIL import Image
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vit_viz import samples
from vit_viz.errors import ImageError, VitVizError
from vit_viz.images.thumbnails import small_square
from vit_viz.lazy import F
from vit_viz.progress import StopCheck
from vit_viz.rest import THREADS, AnswerProgress, Computed, refusal
from vit_viz.sentences import formatted, sentence
from vit_viz.session.edits import NO_EDITS, ModelEdits
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.surface import BRING, FILE_HEADER, OWNER
from vit_viz.ui.header import offers
from vit_viz.ui.opened import PageCall, load
from vit_viz.ui.page import Answers
from vit_viz.ui.payload import answers_of
from vit_viz.views import choices

_HEADS = {"off": "off", "mean": "at its mean", "uniform": "looks at all tokens alike"}
_TOKENS = {"class": "the class token", "everything": "all tokens"}
Value = dict[str, Any]


def _load(call: PageCall) -> Value:
    ref = choices.model_reference(call.session, str(call.body.get("name", "")).strip())
    if call.body.get("agreed") is not True and not offers.is_here(call.session, ref):
        return offers.download_question(ref)
    load(call, ref)
    return {}


def _offered(call: PageCall) -> Value:
    models = offers.picker_value(call.session)
    return {"models": models} | tray(call.session, call.view.image, call.owner)


# --- the pictures of a visit


def tray(session: Session, chosen: str, owner: str) -> Value:
    """The samples, then the pictures of this owner that are still kept, each as a thumbnail; the shapes of all of them."""
    pictures: list[Value] = []
    shown: dict[str, Image.Image] = {}
    for name in samples.sample_names():
        shown[name], digest = samples.sample_and_hash(name)
        pictures.append(
            {"id": name, "name": name, "thumbnail": _thumbnail(session, name, shown[name], digest)}
        )
    for image, stored in session.uploads.of(owner).items():
        shown[image] = stored.image
        thumbnail = _thumbnail(session, image, stored.image, stored.digest)
        pictures.append({"id": image, "name": stored.name, "thumbnail": thumbnail, "own": True})
    if chosen not in shown:
        with suppress(VitVizError):  # one that is not in the tray: a photo of a survey
            shown[chosen] = session.image(chosen or choices.first_image(), owner=owner)
    aspects = {image: picture.width / picture.height for image, picture in shown.items()}
    return {"pictures": pictures, "chosen": chosen, "aspects": aspects}


def _thumbnail(session: Session, image: str, picture: Image.Image, digest: str) -> str:
    """The middle of a picture, small, as an address that holds it whole."""
    return session.kept(("thumbnail", digest), lambda: small_square(picture), image, digest, size_of=len)


def bring_route(session: Session) -> Route:
    """Where a file becomes a picture of its visitor's, without being written down.

    Answers with its id and all that are kept, or with the problem of a file that is none, as browsers log refusals as errors.
    """
    threads = anyio.CapacityLimiter(THREADS)

    async def post(request: Request) -> Response:
        content, owner = await request.body(), request.scope[OWNER]
        name = unquote(request.headers.get(FILE_HEADER, ""))

        def added(_told: AnswerProgress | None, _cancelled: StopCheck) -> Response:
            try:
                image = session.add_upload(content, owner=owner, file_name=name)
                return JSONResponse({"image": image, "kept": list(session.uploads.of(owner))})
            except ImageError as error:
                return JSONResponse({"problem": sentence(error)})
            except Exception as error:
                return refusal(error)

        return Computed(added, threads, is_streamed=False)

    return Route(BRING, post, methods=["POST"])


# --- what is changed inside the model


def edited(call: PageCall) -> Value:
    """The edits of a view in words, each by itself with what is left without it, and the answers before and after them."""
    edits = ModelEdits.parse(call.body.get("edits", call.view.edits))
    if "edits" in call.body:
        edits.of(call.session.trace_of(replace(call.subject, edits=NO_EDITS)))
        return {"edits": str(edits)}
    each = [{"said": _said(single), "left": str(edits.without(single))} for single in edits.singles]
    value: Value = {"words": edits.sentence, "each": each}
    if not edits:
        return value
    try:
        return value | _compared(call.session, call.subject)
    except Exception as error:  # they can be taken back all the same
        return value | {"error": sentence(error)}


def _said(single: ModelEdits) -> str:
    """One edit in words."""
    for (layer, head), state in single.heads:
        return f"layer {layer}, head {head}: {_HEADS[state]}"
    for layer, temperature in single.temperatures:
        return f"layer {layer}: temperature {temperature:g}, {'sharper' if temperature < 1 else 'more even'}"
    (one,) = single.forbidden
    seeing, seen = (
        f"patches {region}" if region[0].isdigit() else _TOKENS.get(region, region)
        for region in (one.seeing, one.seen)
    )
    _, _, layers = str(one).partition("@")
    where = f"in {'layer' if len(one.layers) == 1 else 'layers'} {layers}" if layers else "in all layers"
    return f"{seeing} can no longer see {seen}, {where}"


def _compared(session: Session, subject: Subject) -> Value:
    """The answers before and after, beside each other; of a model without classes, how far its embedding has moved."""
    was = replace(subject, edits=NO_EDITS)
    before, after = (answers_of(session, one) for one in (was, subject))
    if before is not None and after is not None:
        return {"before": before, "after": after}
    first, second = (session.trace_of(one).logits for one in (was, subject))
    if first is None or second is None:
        return {}
    cosine = float(F.cosine_similarity(first, second, dim=0))
    return {
        "moved": f"Similarity of the photo's embedding with that of the unedited model: {formatted(cosine, '.3f')}."
    }


ANSWERS: Answers = {"offered": _offered, "load": _load, "edited": edited}
