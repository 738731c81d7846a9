"""The models of the picker: what is known of each, whether it is on this disk, and what a download would fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vit_viz.bundled import bundled_file
from vit_viz.checkpoints.catalog import BUNDLED, BUNDLED_LICENCE, entry_of
from vit_viz.checkpoints.source import announced_bytes, is_hub_id, is_on_disk
from vit_viz.session.session import Session
from vit_viz.views import choices

Value = dict[str, Any]


def picker_value(session: Session) -> Value:
    """The models that are offered, and whether other ids of the Hub are taken."""
    offered = [_offer(session, name) for name in choices.model_names(session)]
    return {"offered": offered, "own_ids": choices.own_hub_ids()}


def is_here(session: Session, ref: str) -> bool:
    """Whether a model opens without a download: it is loaded, bundled, a file of the owner's, or in the Hub's cache."""
    is_of_hub = entry_of(ref) is not None or (is_hub_id(ref) and not Path(ref).exists())
    return session.has_model(ref) or not is_of_hub or is_on_disk(ref)


def download_question(ref: str) -> Value:
    """What a visitor is asked before a model is fetched: its title, where it is, and what is known of size and licence."""
    entry = entry_of(ref)
    if entry is not None:
        size, licence = f"{entry.megabytes} MB", entry.licence
    else:
        announced = announced_bytes(ref)
        size, licence = "" if announced is None else _megabytes(announced), ""
    return {
        "title": _title(ref),
        "hub": entry.hub_id if entry else ref,
        "size": size,
        "licence": licence,
    }


def _offer(session: Session, name: str) -> Value:
    """One line of the list; what is not known is left out."""
    ref = choices.model_reference(session, name)
    entry = entry_of(ref)
    here = is_here(session, ref)
    sizes = []
    if session.has_model(ref):
        sizes.append(f"{session.model(ref).num_parameters / 1e6:.1f} M parameters")
    if entry is not None:
        sizes.append(f"{entry.megabytes} MB")
    elif (path := bundled_file(f"{ref}.safetensors") if ref in BUNDLED else Path(ref)).is_file():
        sizes.append(_megabytes(path.stat().st_size))
    licence = entry.licence if entry is not None else BUNDLED_LICENCE if ref in BUNDLED else ""
    about = entry.good_for if entry is not None else BUNDLED.get(ref, "")
    hub = entry.hub_id if entry is not None else ref if is_hub_id(ref) and not Path(ref).exists() else ""
    return {
        "name": name,
        "title": _title(name),
        "hub": hub,
        "about": about,
        "facts": [*sizes, *([licence] if licence else [])],
        "here": here,
    }


def _title(name: str) -> str:
    entry = entry_of(name)
    return entry.title if entry is not None else name


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e6:.1g} MB"
