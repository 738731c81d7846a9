"""Gradio's theme in the colours and sizes of `tokens.css`."""

from __future__ import annotations

import gradio as gr

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
