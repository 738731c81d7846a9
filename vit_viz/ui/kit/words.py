"""How views explain themselves: one sentence on what is shown, one on what is not, and the formula with its paper on demand."""

from __future__ import annotations

import html

import gradio as gr

from vit_viz.ui.kit.mathematics import typeset


def explain(*, shows: str, hides: str) -> gr.HTML:
    """The two sentences above a view."""
    return gr.HTML(sentences(shows=shows, hides=hides), elem_classes="vv-words", apply_default_css=False)


def sentences(*, shows: str, hides: str) -> str:
    """The two sentences as HTML."""
    return f"<p><b>Shows</b> {html.escape(shows)}</p><p><b>Does not show</b> {html.escape(hides)}</p>"


def formula(*parts: tuple[str, str], title: str = "? formula and paper") -> gr.HTML:
    """A closed "?" with pairs of (formula, where it comes from and what its letters mean), as `typeset` reads them."""
    with gr.Accordion(title, open=False, elem_classes="vv-formula"):
        return gr.HTML(formulas(*parts), apply_default_css=False)


def formulas(*parts: tuple[str, str]) -> str:
    """The inside of the "?" as HTML."""
    return "".join(f"<p class=vv-math>{typeset(line)}</p><p>{typeset(words)}</p>" for line, words in parts)


def plain(text: str) -> str:
    """Text as one paragraph of HTML."""
    return f"<p>{html.escape(text)}</p>"
