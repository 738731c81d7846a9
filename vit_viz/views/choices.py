"""The models and samples that a view may name, and what a name in a link stands for. Paths never come from the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vit_viz import samples
from vit_viz.analyses.methods import METHODS
from vit_viz.checkpoints.catalog import BUNDLED, CATALOG
from vit_viz.checkpoints.source import is_hub_id
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.images.part import parse_part
from vit_viz.prompts import Prompts
from vit_viz.session.edits import ModelEdits
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.settings import switch
from vit_viz.views.state import ViewState


def model_names(session: Session) -> list[str]:
    """The models that are offered, the session's own first."""
    own = default_name(session)
    return [own, *(name for name in (*BUNDLED, *(entry.name for entry in CATALOG)) if name != own)]


def default_name(session: Session) -> str:
    """The session's own model as the page and its links call it: never a path of this machine."""
    name = session.default_model
    return name if is_hub_id(name) and not Path(name).exists() else Path(name).name


def own_hub_ids() -> bool:
    """Whether visitors may name any model of the Hub; VIT_VIZ_OWN_HUB_IDS=0 leaves them the catalog."""
    return switch("VIT_VIZ_OWN_HUB_IDS")


def model_reference(session: Session, name: str) -> str:
    """What `Session.model` takes for a name on the page: one of those offered, or a Hub id of the visitor's own."""
    if name in ("", default_name(session)):
        return session.default_model
    if own_hub_ids() and is_hub_id(name):
        return name
    if name not in model_names(session):
        own = ", or type a Hub id as owner/name" if own_hub_ids() else ""
        raise ParameterError(f"The model {name[:60]!r} is not offered here; choose one of the list{own}.")
    return name


def first_image() -> str:
    """The image that a visitor finds on arrival."""
    return samples.first_sample()


def settled(session: Session, view: ViewState) -> tuple[ViewState, tuple[str, ...]]:
    """The view with a model that is offered and an image that has a name; one sentence for each thing that had to change."""
    problems: list[str] = []
    try:
        model_reference(session, view.model)
    except ParameterError:
        shown = default_name(session)
        problems.append(f"The model {view.model[:60]!r} is not offered here; {shown} is shown instead.")
        view = view.on_subject(model="")
    if view.method not in {method.name for method in METHODS.cards}:
        problems.append(
            f"There is no method {view.method[:40]!r}; “{METHODS.usual.words.label}” is shown instead."
        )
        view = replace(view, method=ViewState().method)
    if not view.image:
        view = replace(view, image=first_image())
    return replace(view, model=view.model or default_name(session)), tuple(problems)


def arrived(session: Session, search: str, owner: str) -> tuple[ViewState, tuple[str, ...]]:
    """The view of an address, and one sentence for each thing in it that is not possible."""
    view, problems = ViewState.from_address(search)
    view, more = settled(session, view)
    try:
        session.image(view.image, owner=owner)
    except VitVizError:
        more += (
            "The link is to a picture that was uploaded elsewhere or is no longer kept; "
            "choose that picture again and the rest of the view comes back.",
        )
        view = replace(view, image=first_image(), awaits_upload=True)
    return view, problems + more


def subject_of(session: Session, view: ViewState, owner: str) -> Subject:
    """What the view is about, as the session knows it."""
    subject = Subject(
        *(model_reference(session, view.model), view.image or first_image(), view.mode, owner),
        prompts=Prompts(view.sentences, view.templates),
    )
    edits = ModelEdits.parse(view.edits)
    if view.awaits_upload:  # size, part and places are meant of a picture that is not here yet
        return replace(subject, edits=edits.on_any_grid)
    return replace(subject, size=view.size, part=parse_part(view.part) if view.part else None, edits=edits)
