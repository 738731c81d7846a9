"""One step as it stands on the screen: words, shapes, pictures, a control, a question, and the code that does it."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from vit_viz.ui.kit.words import listing, steps, typeset

PAPERS = {
    "vit": ("Dosovitskiy et al. 2021, section 3.1", "https://arxiv.org/abs/2010.11929"),
    "vit filters": ("Dosovitskiy et al. 2021, section 4.5 and Fig. 7", "https://arxiv.org/abs/2010.11929"),
    "vit positions": (
        "Dosovitskiy et al. 2021, section 3.1 and appendix D.4",
        "https://arxiv.org/abs/2010.11929",
    ),
    "attention": ("Vaswani et al. 2017, section 3.2.1", "https://arxiv.org/abs/1706.03762"),
    "heads": ("Vaswani et al. 2017, section 3.2.2", "https://arxiv.org/abs/1706.03762"),
    "waves": ("Vaswani et al. 2017, section 3.5 (waves)", "https://arxiv.org/abs/1706.03762"),
    "rotary": ("Su et al. 2021, section 3 (rotary)", "https://arxiv.org/abs/2104.09864"),
    "registers": ("Darcet et al. 2024, section 2.2 (registers)", "https://arxiv.org/abs/2309.16588"),
    "gelu": ("Hendrycks & Gimpel 2016, section 2 (GELU)", "https://arxiv.org/abs/1606.08415"),
    "pre-norm": ("Xiong et al. 2020, section 3 (pre-norm and post-norm)", "https://arxiv.org/abs/2002.04745"),
    "lens": ("Belrose et al. 2023, section 2 (logit lens)", "https://arxiv.org/abs/2303.08112"),
}
"""The sections of papers that the steps point to, and their addresses; links only."""


STEPS = ("Patches", "Embedding", "Extra tokens", "Positions", "Attention", "Heads", "Block", "Class")
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
        papers: keys of `PAPERS`.
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
    papers: tuple[str, ...]
    hides: str
    terms: tuple[str, ...] = ()
    reveals: str = ""
    played: bool = False
    control: Slider | Choice | None = None
    shared: tuple[Literal["layer", "head"], ...] = ()
    follows: Literal["patch", "token", "map", "nothing"] = "nothing"


_LEGEND = (
    "<p class=vv-w-quiet>Strips: one field per number; blue is below 0, white is 0, orange is above, and the darkest field is the "
    "number farthest from 0.</p>"
)


def html_of(screen: Screen, number: int) -> str:
    """The whole step as HTML; every text escaped."""
    words = "".join(f"<p>{_defining(sentence)}</p>" for sentence in screen.words)
    terms = f"<p class=vv-w-terms>{_defining(' '.join(screen.terms))}</p>" if screen.terms else ""
    papers = "; ".join(
        f'<a href="{html.escape(address)}" target="_blank" rel="noopener noreferrer">{html.escape(text)}</a>'
        for text, address in map(PAPERS.__getitem__, screen.papers)
    )
    parts = [
        f"<h2>{number}. {html.escape(screen.title)}</h2>",
        f"<div class=vv-w-words>{words}</div>{terms}",
        steps(screen.shapes),
        f"<div class=vv-w-figures>{screen.figures}</div>",
        _LEGEND if "vv-w-strip" in screen.figures else "",
        # the answer and its pictures are folded until they are asked for
        f"<details class='vv-card vv-w-quiz'{' open' if screen.played else ''}>"
        f"<summary><b>Predict, then look.</b> {html.escape(screen.question)}</summary>"
        f"<p>{html.escape(screen.answer)}</p><div class=vv-w-figures>{screen.reveals}</div></details>",
        f"<p class='vv-math vv-w-formula'>{typeset(screen.formula)}</p>",
        f"<p class=vv-w-quiet>{typeset(screen.letters)} Paper: {papers}.</p>",
        f"<p class=vv-w-quiet><b>Does not show</b> {html.escape(screen.hides)}</p>",
        *(code_html(code) for code in screen.code),
    ]
    return f"<div class=vv-w data-step={number}>{''.join(parts)}</div>"


def _defining(text: str) -> str:
    """Text as HTML; a term between * is marked as the one that is explained here."""
    return re.sub(r"\*([^*]+)\*", r"<dfn>\1</dfn>", html.escape(text))


def code_html(code: Code) -> str:
    """The source of a function as it is on disk, with its place and its marked lines."""
    lines, first = inspect.getsourcelines(code.what)
    return listing(code.what.__qualname__, code.what.__module__, (first, "".join(lines)), code.marks)
