"""The app: a header, the tabs, and the state of one visit that they share."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import gradio as gr
from gradio import http_server

from vit_viz import rest
from vit_viz.capture.given import as_model
from vit_viz.capture.wrappers import preprocess_within
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.checkpoints.visitor_models import HUB_BYTES
from vit_viz.explorer.value import link_fields
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.images.decoder import DecoderProcess
from vit_viz.labels import Labels
from vit_viz.lazy import nn
from vit_viz.listening import LOCAL, server_name
from vit_viz.outputs import Output
from vit_viz.sentences import sentence
from vit_viz.session.session import Session
from vit_viz.session.uploads import sweep_every
from vit_viz.settings import whole_number
from vit_viz.surface import Surface
from vit_viz.ui import opened
from vit_viz.ui.edge.door import guarded
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.request_log import log_with_request_numbers
from vit_viz.ui.header import routes as header_routes
from vit_viz.ui.help import LISTING, listing
from vit_viz.ui.kit import part
from vit_viz.ui.opened import page_route
from vit_viz.ui.page import Answers, Room, Tab, page_value
from vit_viz.ui.palette import view as palette
from vit_viz.ui.preview import ICON, TITLE
from vit_viz.ui.rooms import TABS
from vit_viz.ui.routes import routes
from vit_viz.ui.scripts import file_address
from vit_viz.ui.theme import theme
from vit_viz.views import choices

logger = logging.getLogger(__name__)

ANSWERS: Answers = {
    **header_routes.ANSWERS,
}
"""What the page asks of its link, by the name of its route."""

_MOUNT = 'window.vit_viz("web/page/page.js").mount(element, props);'
"""What gr.HTML runs: our script fills it."""


def build_app(session: Session, *, tabs: tuple[Tab, ...] = TABS) -> gr.Blocks:
    """The page for a session; it opens with the first tab."""
    session.notice = rest.notice
    demo = gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True)
    demo.space_id = None  # a Space's page is ours alone: else Gradio fetches a header for it from elsewhere
    questions = file_address(palette.LISTING, palette.listing())
    page = page_value(
        tabs,
        questions=questions,
        help_listing=file_address(LISTING, listing()),
        parts=[part("ui/visit/address")],
    )
    with demo:
        gr.HTML(
            html_template="<div></div>",
            js_on_load=_MOUNT,
            apply_default_css=False,
            elem_id="vv-page",
            elem_classes="vv-part",
            # as text: Gradio's page would watch objects, which takes longer; samples: the tray as it is for everybody
            fields=json.dumps(link_fields(_of_page(session, tabs))),
            samples=json.dumps(header_routes.tray(session, "", "")),
            page=json.dumps(page),
        )
    sweep_every(session.uploads)
    return demo


def _warm_up(session: Session, failed: Event) -> None:
    """Load the model and trace the first sample while the first page is still on its way."""
    try:
        session.trace(session.default_model, choices.first_image())
    except Exception as error:
        failed.set()
        logger.error("the first sample could not be traced, as the page says, too: %s", sentence(error))


def launch(
    session: Session,
    *,
    host: str | None = None,
    port: int | None = None,
    share: bool = False,
    inbrowser: bool = False,
    surfaces: Sequence[Surface] = (),
    rooms: Sequence[Room] = (),
) -> None:
    """Build the app and serve it until it is stopped; pictures of strangers are decoded in a process of their own.

    Args:
        surfaces: what is offered beside the page; nothing is unless whoever runs the app asks for it.
        rooms: tabs beside those that every page has.
    """
    whole_number("VIT_VIZ_HUB_BYTES", HUB_BYTES, unit="bytes")
    decoder = DecoderProcess()
    decoder.start()
    session.decode = decoder.decode
    options = launch_options(session, host=host, share=share, surfaces=surfaces, rooms=rooms)
    http_server.LOCALHOST_NAME = (
        LOCAL  # where it looks for a free port; GRADIO_SERVER_NAME may be no address of IPv4
    )
    build_app(session, tabs=(*TABS, *(room.tab for room in rooms))).launch(
        server_port=port, inbrowser=inbrowser, **options
    )


def launch_options(
    session: Session,
    *,
    host: str | None = None,
    share: bool = False,
    surfaces: Sequence[Surface] = (),
    rooms: Sequence[Room] = (),
) -> dict[str, Any]:
    """Keyword arguments for `Blocks.launch`: private and local unless the caller says otherwise.

    Args:
        host: address to listen on; None: GRADIO_SERVER_NAME, or this machine only.
        share: make a public link through Gradio's servers.
        surfaces: what is offered beside the page.
        rooms: tabs beside those that every page has.
    """
    name, exposure = server_name(host), exposure_of(host, share=share)
    session.max_patches = exposure.max_patches
    if not exposure.believes_proxy:
        os.environ["FORWARDED_ALLOW_IPS"] = ""  # the web server believes a proxy on this machine otherwise
    log_with_request_numbers()
    failed = Event()
    return {
        "server_name": f"[{name}]" if ":" in name else name,  # Gradio writes it into the app's address
        "share": share,
        "app_kwargs": {
            "routes": [
                *rest.routes(session),
                *(route for one in surfaces for route in one.routes),
                *(route for room in rooms for route in room.routes),
                *opened.routes(session),
                *(page_route(session, name, answer) for name, answer in ANSWERS.items()),
                header_routes.bring_route(session),
                *routes(session),
            ],
            "openapi_url": None,
            **guarded(
                exposure,
                surfaces,
                turns=session.turns,
                begin=partial(_warm_up, session, failed),
                has_model=lambda: session.has_model() or not failed.is_set(),
            ),
        },
        "run_history": False,
        "favicon_path": str(ICON),
        "footer_links": [],
        "allowed_paths": [],
        "enable_monitoring": False,
        "ssr_mode": False,
        "theme": theme(),
    }


def exposure_of(host: str | None, *, share: bool) -> Exposure:
    """How the app is reached that `launch` starts with these options."""
    return Exposure.of(server_name(host), share=share)


def _of_page(session: Session, tabs: Sequence[Tab]) -> dict[str, dict[str, Any]]:
    """What links say of this page, beside what they say of any view."""
    return {
        "model": {"usual": choices.default_name(session)},
        "image": {"usual": choices.first_image()},
        "tab": {"choices": [tab.name for tab in tabs]},
    }


def session_of(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | Any = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    output: Output | None = None,
) -> Session:
    """A session whose own model is this one."""
    meant = as_model(model)
    if isinstance(meant, nn.Module):
        preprocess, origin = preprocess_within(meant) if preprocess is None else (preprocess, "")
        shown: Model = plain_module(meant, preprocess=preprocess, origin=origin, labels=labels, layout=layout)
    else:
        shown = meant
    if output is not None:
        shown = shown.with_output(output)
    session = Session(model=shown.name)
    session.add_model(shown)
    return session


def serve(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | Any = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    output: Output | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> None:
    """Open the app in the browser on this model; see `vit_viz.serve`."""
    session = session_of(model, preprocess=preprocess, labels=labels, layout=layout, output=output)
    launch(session, host=host, port=port, inbrowser=True)
