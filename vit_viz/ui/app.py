"""The app: a header, four views, and one visit's state that they share."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from vit_viz.session import Session
from vit_viz.ui import choices
from vit_viz.ui.boundary import GuardedBlocks, notice
from vit_viz.ui.gate import Gate
from vit_viz.ui.page import QUICK, Page
from vit_viz.ui.parts import stylesheet
from vit_viz.ui.routes import routes
from vit_viz.ui.state import Tab, ViewState
from vit_viz.ui.views import explain, header, look, patches, positions, walkthrough
from vit_viz.uploads import sweep_every

logger = logging.getLogger(__name__)

MAX_FILE_SIZE = "20mb"
QUEUE_LENGTH = 64
MAX_THREADS = 64  # more than may wait for a device, so that what is at hand is still served; our routes have threads of their own
TABS: tuple[tuple[Tab, str], ...] = (
    ("look", "Look"),
    ("explain", "Explain"),
    ("positions", "Positions"),
    ("patches", "Patches"),
    ("walkthrough", "Walkthrough"),
)


def build_app(session: Session) -> gr.Blocks:
    """The page for a session: laid out first, wired second."""
    session.notice = notice
    demo = GuardedBlocks(title="vit_viz", analytics_enabled=False, fill_width=True, delete_cache=(600, 3600))
    demo.space_id = None  # a Space's page is ours alone: else Gradio fetches a header for it from elsewhere
    with demo:
        page = Page.create(session)
        top = header.build(page)
        views: dict[Tab, Any] = {}
        with gr.Tabs(elem_id="vv-tabs", selected="look") as tabs:
            for name, label in TABS:
                with gr.Tab(label, id=name, elem_id=f"vv-tab-{name}") as tab:
                    module = _VIEWS[name]
                    views[name] = module.build()
                page.action(tab.select, _choose(name))
        header.wire(top, page)
        for name, _label in TABS:
            _VIEWS[name].wire(views[name], page)
        _select_tab_of_link(page, tabs)
        demo.unload(leaving(page))
    demo.queue(max_size=QUEUE_LENGTH, api_open=False, default_concurrency_limit=8)
    threading.Thread(target=_warm_up, args=(session,), daemon=True).start()
    sweep_every(session.uploads)
    return demo


def leaving(page: Page) -> Callable[[gr.Request], None]:
    """What happens when a page is closed: with the last page of a visitor, what runs for that visitor ends."""

    def leave(request: gr.Request) -> None:
        owner = page.pages.close(request.session_hash or "")
        if owner:
            page.session.leave(owner)

    return leave


def _warm_up(session: Session) -> None:
    """Load the model and trace the first sample while the first page is still on its way."""
    try:
        session.trace(session.default_model, choices.first_image())
    except Exception:
        logger.exception("the first sample could not be traced; the page will say why")


def launch_options(session: Session) -> dict[str, Any]:
    """Keyword arguments for `Blocks.launch`: private and local unless the caller says otherwise."""
    return {
        "server_name": os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        "share": False,
        "app_kwargs": {"routes": routes(session), "middleware": [Middleware(Gate)], "openapi_url": None},
        "max_file_size": MAX_FILE_SIZE,
        "max_threads": MAX_THREADS,
        "run_history": False,
        "footer_links": [],
        "allowed_paths": [],
        "enable_monitoring": False,
        "ssr_mode": False,
        "state_session_capacity": 2000,
        "css": stylesheet(),
        "theme": theme(),
    }


def theme() -> gr.themes.Base:
    """Gradio's own look, tighter, in the fonts of the reader's system: nothing is fetched from elsewhere."""
    sans = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
    mono = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")
    return gr.themes.Default(
        primary_hue="teal",
        neutral_hue="gray",
        spacing_size="sm",
        radius_size="sm",
        text_size="sm",
        font=sans,
        font_mono=mono,
    )


def _choose(name: Tab) -> Any:
    """The view with another tab, where a visitor chose it."""

    def choose(view: ViewState) -> ViewState:
        if view.turn > 1:
            return view if view.tab == name else view.next_turn(tab=name)
        # Gradio selects the first tab by itself while the page opens, and then the one of the link: neither is a choice
        if view.tab == name:
            return view if name == "look" else view.next_turn()
        return view if name == "look" else view.next_turn(tab=name)

    return choose


def _select_tab_of_link(page: Page, tabs: gr.Tabs) -> None:
    """A link to a view opens its tab, as do Back and Forward; nothing else moves a visitor to another one."""

    def select(view: ViewState) -> gr.Tabs:
        return gr.Tabs(selected=view.tab)

    page.arrival.change(select, [page.view], [tabs], **QUICK)


_VIEWS: dict[Tab, Any] = {
    "look": look,
    "explain": explain,
    "positions": positions,
    "patches": patches,
    "walkthrough": walkthrough,
}
