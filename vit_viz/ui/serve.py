"""Open the app on a model that a notebook or a script holds: a loaded checkpoint, or any PyTorch module with attention."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from vit_viz.capture.given import as_model
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.session.session import Session
from vit_viz.ui.app import launch


def session_of(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
) -> Session:
    """A session whose own model is this one.

    Raises:
        ParameterError: a module without `preprocess` that does not say how pictures become its input.
    """
    meant = as_model(model)
    if isinstance(meant, nn.Module):
        shown: Model = plain_module(meant, preprocess=preprocess, labels=labels, layout=layout)
    else:
        shown = meant
    session = Session(model=shown.name)
    session.add_model(shown)
    return session


def serve(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> None:
    """Open the app in the browser on this model; see `vit_viz.serve`."""
    session = session_of(model, preprocess=preprocess, labels=labels, layout=layout)
    launch(session, host=host, port=port, inbrowser=True)
