"""One step as it stands on the screen: words, shapes, pictures, a control, a question, and the code that does it."""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from vit_viz.ui.kit.mathematics import typeset

STEPS = (
    "Patches",
    "Embedding",
    "Extra tokens",
    "Positions",
    "Attention",
    "Heads",
    "Block",
    "Class",
)
"""Names of the steps, in the order of the data."""


@dataclass(frozen=True)
class Slider:
    """A control of whole numbers from `low` to `high`."""

    label: str
    low: int
    high: int
    value: int


@dataclass(frozen=True)
class Choice:
    """A control of a few named options; its value is the place among them."""

    label: str
    options: tuple[str, ...]
    value: int


@dataclass(frozen=True)
class Code:
    """A function of ours and the pieces of it that do this step.

    Args:
        what: the function itself, so that what is shown is what runs.
        marks: texts; the lines that contain one of them are marked. They are lines that run in this model.
    """

    what: Callable[..., Any]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Screen:
    """One step, ready to be laid out; plain text everywhere but in `figures` and `reveals`, which are escaped HTML.

    Args:
        title: what happens, in a few words.
        words: three sentences that need no knowledge of transformers; a term stands between * where it is explained.
        terms: further terms that the step uses, a sentence each.
        formula: words and LaTeX, as `typeset` reads them; `letters` says what its letters mean, and nothing else.
        shapes: (name, shape, what it is), in the order of the data.
        control: to play with; None where layer and head are the controls.
        shared: controls of the whole page that matter here.
        question, answer: to predict, before the answer is unfolded.
        reveals: the pictures that hold the answer; they are unfolded with it.
        played: whether the control decides what they show, and was moved: then they are unfolded.
        papers: (words, address).
        follows: what the photo beside the step shows: the followed patch, the followed token, what that token looks at, or nothing.
    """

    title: str
    words: tuple[str, str, str]
    formula: str
    letters: str
    shapes: tuple[tuple[str, str, str], ...]
    figures: str
    question: str
    answer: str
    code: tuple[Code, ...]
    papers: tuple[tuple[str, str], ...]
    hides: str
    terms: tuple[str, ...] = ()
    reveals: str = ""
    played: bool = False
    control: Slider | Choice | None = None
    shared: tuple[Literal["layer", "head"], ...] = ()
    follows: Literal["patch", "token", "map", "nothing"] = "nothing"


_LEGEND = (
    "<p class=vv-w-quiet>Strips: one field per number; blue is below 0, white is 0, red is above, and the darkest field is the "
    "number farthest from 0.</p>"
)


def html_of(screen: Screen, number: int) -> str:
    """The whole step as HTML; every text escaped."""
    words = "".join(f"<p>{_defining(sentence)}</p>" for sentence in screen.words)
    terms = f"<p class=vv-w-terms>{_defining(' '.join(screen.terms))}</p>" if screen.terms else ""
    papers = "; ".join(
        f'<a href="{html.escape(address)}" target="_blank" rel="noopener noreferrer">{html.escape(text)}</a>'
        for text, address in screen.papers
    )
    parts = [
        f"<h2>{number}. {html.escape(screen.title)}</h2>",
        f"<div class=vv-w-words>{words}</div>{terms}",
        _shapes(screen.shapes),
        f"<div class=vv-w-figures>{screen.figures}</div>",
        _LEGEND if "vv-w-strip" in screen.figures else "",
        _quiz(screen),
        f"<p class='vv-math vv-w-formula'>{typeset(screen.formula)}</p>",
        f"<p class=vv-w-quiet>{typeset(screen.letters)} Paper: {papers}.</p>",
        f"<p class=vv-w-quiet><b>Does not show</b> {html.escape(screen.hides)}</p>",
        *(code_html(code) for code in screen.code),
    ]
    return f"<div class=vv-w data-step={number}>{''.join(parts)}</div>"


def _quiz(screen: Screen) -> str:
    """The question; the answer and its pictures are folded until they are asked for."""
    return (
        f"<details class='vv-card vv-w-quiz'{' open' if screen.played else ''}>"
        f"<summary><b>Predict, then look.</b> {html.escape(screen.question)}</summary>"
        f"<p>{html.escape(screen.answer)}</p><div class=vv-w-figures>{screen.reveals}</div></details>"
    )


def _defining(text: str) -> str:
    """Text as HTML; a term between * is marked as the one that is explained here."""
    return re.sub(r"\*([^*]+)\*", r"<dfn>\1</dfn>", html.escape(text))


def code_html(code: Code) -> str:
    """The source of a function as it is on disk, with its place and its marked lines."""
    lines, first = inspect.getsourcelines(code.what)
    place = f"{code.what.__module__.replace('.', '/')}.py, lines {first}-{first + len(lines) - 1}"
    shown = _without_long_docstring(textwrap.dedent("".join(lines)))
    marked = [
        f"<mark>{html.escape(line)}</mark>" if any(mark in line for mark in code.marks) else html.escape(line)
        for line in shown
    ]
    name = html.escape(code.what.__qualname__)
    return (
        f"<figure class=vv-w-code><figcaption>our code: <b>{name}</b> <span>{html.escape(place)}</span></figcaption>"
        f'<pre tabindex=0 aria-label="Source of {name}"><code>' + "\n".join(marked) + "</code></pre></figure>"
    )


def _without_long_docstring(source: str) -> list[str]:
    """The lines of a function with only the first line of its docstring, so that the code stays on the screen."""
    lines = source.rstrip("\n").split("\n")
    first = ast.parse(source).body[0].body[0]  # type: ignore[attr-defined]  # the source of one function
    if isinstance(first, ast.Expr) and first.end_lineno is not None and first.end_lineno > first.lineno:
        lines[first.lineno - 1 : first.end_lineno] = [f'{lines[first.lineno - 1]} ..."""']
    return lines


def _shapes(shapes: tuple[tuple[str, str, str], ...]) -> str:
    cells = [
        f"<div class=vv-step><b>{html.escape(name)}</b><code>{html.escape(shape)}</code><span>{html.escape(what)}</span></div>"
        for name, shape, what in shapes
    ]
    return f"<div class='vv-steps'>{'<i aria-hidden=true>→</i>'.join(cells)}</div>"
