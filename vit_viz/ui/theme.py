"""Gradio's theme in the colours and sizes of `tokens.css`, and the rules of the page, which is one component of Gradio's."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from vit_viz.explorer import style
from vit_viz.ui.kit import EXPLORER

_ROLES = {
    "--vv-ground": ("body_background_fill", "background_fill_primary"),
    "--vv-text": ("body_text_color",),
    "--vv-muted": ("body_text_color_subdued",),
    "--vv-accent": ("color_accent", "loader_color"),
}
"""Of what Gradio draws around the page, and while that is on its way."""

_SMALL, _BODY = "var(--vv-type-small)", "var(--vv-type)"
_TYPE = gr.themes.Size(
    name="vv_type",
    xxs=_SMALL,
    xs=_SMALL,
    sm=_SMALL,
    md=_BODY,
    lg="var(--vv-type-large)",
    xl="var(--vv-type-title)",
    xxl="var(--vv-type-page)",
)
_SHAPES = {"body_text_size": _BODY, "block_shadow": "none"}

_HERE = Path(__file__).parent
_SHARED = ("kit/system.css", "kit/kit.css", "page.css")


def theme() -> gr.themes.Base:
    """The theme of the page, in the fonts of the reader's system: nothing is fetched from elsewhere."""
    sans = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
    mono = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")
    plain = gr.themes.Default(
        primary_hue="amber",
        neutral_hue="gray",
        text_size=_TYPE,
        spacing_size="sm",
        radius_size="sm",
        font=sans,
        font_mono=mono,
    )
    colours = {role: f"var({token})" for token, roles in _ROLES.items() for role in roles}
    return plain.set(**_with_dark(colours), **_with_dark(_SHAPES))


def _with_dark(values: dict[str, str]) -> dict[str, str]:
    """The same for the dark look, whose tokens have the same names; Gradio has other defaults there."""
    known = vars(gr.themes.Default())
    return values | {f"{role}_dark": value for role, value in values.items() if f"{role}_dark" in known}


def stylesheet() -> str:
    """The rules of the page. All but the tokens and the explorer's stand inside a rule for the root, which is named so often that
    they win against Gradio's own; `&` is the root there.
    """
    shared = [_HERE / name for name in _SHARED]
    everywhere = [*sorted(_HERE.glob("*/*.css")), *sorted((_HERE.parent / "web").glob("*/*.css"))]
    rooms = [file for file in everywhere if file not in shared]
    rules = (file.read_text("utf-8") for file in (*shared, *rooms, _HERE / "phone.css"))
    tokens = (_HERE / "tokens.css").read_text("utf-8")
    return "\n".join([tokens, f"#{EXPLORER} {{ {style()} }}", ":root:root:root {", *rules, "}"])
