"""How views explain themselves: one sentence on what is shown, one on what is not, and the formula with its paper on demand."""

from __future__ import annotations

import ast
import html
import re
import textwrap
from collections.abc import Iterable
from functools import cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert

from vit_viz.errors import ParameterError

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_SAID = {
    "msub": "{} sub {}",
    "munder": "{} under {}",
    "msup": "{} super {}",
    "mover": "{} with {} above",
    "mfrac": "({}) over ({})",
    "msqrt": "root of ({})",
    "msubsup": "{} sub {} super {}",
    "munderover": "{} from {} to {}",
}


def explain(*parts: tuple[str, str], shows: str, hides: str) -> str:
    """The two sentences below a view, and a closed "?" with pairs of (formula, where it comes from and what its letters mean), as
    `typeset` reads them; as HTML."""
    said = f"<p><b>Shows</b> {html.escape(shows)}</p><p><b>Does not show</b> {html.escape(hides)}</p>"
    if not parts:
        return f"<div class=vv-words>{said}</div>"
    more = f"<summary>? formula and paper</summary>{formulas(*parts)}"
    return f"<div class=vv-words>{said}</div><details class='vv-fold vv-formula'>{more}</details>"


def formulas(*parts: tuple[str, str]) -> str:
    """The inside of the "?" as HTML."""
    return "".join(f"<p class=vv-math>{typeset(line)}</p><p>{typeset(words)}</p>" for line, words in parts)


def listing(name: str, module: str, source: tuple[int, str], marks: Iterable[str]) -> str:
    """A function of ours as HTML, with its place; of its docstring the first line alone, so that the code stays on the screen.

    Args:
        source: its first line in the module's file, and its text.
        marks: texts; the lines that contain one of them are marked.
    """
    first, text = source
    place = f"{module.replace('.', '/')}.py, lines {first}-{first + text.rstrip().count(chr(10))}"
    shown = _without_long_docstring(textwrap.dedent(text))
    marked = [
        f"<mark>{html.escape(line)}</mark>" if any(mark in line for mark in marks) else html.escape(line)
        for line in shown
    ]
    return (
        f"<figure class=vv-listing><figcaption>our code: <b>{html.escape(name)}</b> <span>{html.escape(place)}</span></figcaption>"
        f'<pre tabindex=0 aria-label="Source of {html.escape(name)}"><code>'
        + "\n".join(marked)
        + "</code></pre></figure>"
    )


def _without_long_docstring(source: str) -> list[str]:
    """The lines of a function with only the first line of its docstring."""
    lines = source.rstrip("\n").split("\n")
    first = ast.parse(source).body[0].body[0]  # type: ignore[attr-defined]  # the source of one function
    if isinstance(first, ast.Expr) and first.end_lineno is not None and first.end_lineno > first.lineno:
        lines[first.lineno - 1 : first.end_lineno] = [f'{lines[first.lineno - 1]} ..."""']
    return lines


@cache
def typeset(text: str) -> str:
    """Text as HTML, escaped, its mathematics as MathML that also says itself in words."""
    pieces = text.split("$")
    if len(pieces) % 2 == 0:
        raise ParameterError(f"A formula has its mathematics between two dollar signs each, not {text!r}.")
    page = "".join(
        _mathml(piece) if place % 2 else html.escape(piece, quote=False) for place, piece in enumerate(pieces)
    )
    return re.sub(r"(<math\b(?:(?!</math>).)*</math>[,.;:)]+)", r"<span class=vv-math-bound>\1</span>", page)


def _parsed(latex: str) -> Element:
    """The tree of an expression, its tags without their namespace."""
    converted = convert(latex)
    if "\\" in converted:
        raise ParameterError(f"Some command of the formula {latex!r} is not known.")
    return ElementTree.fromstring(converted.replace(f' xmlns="{_NAMESPACE}"', "", 1))


def _mathml(latex: str) -> str:
    tree = _parsed(latex)
    tree.set("aria-label", _said(tree))
    return ElementTree.tostring(tree, encoding="unicode")


def _said(node: Element) -> str:
    """A part of the tree in words."""
    parts = [_said(child) for child in node]
    if node.tag == "mover" and parts[1] == "¯":
        return f"{parts[0]} bar"
    if node.tag in _SAID:
        return _SAID[node.tag].format(*parts)
    letters = node.tag == "mrow" and all(child.get("mathvariant") == "normal" for child in node)
    return (node.text or "").strip() if not parts else ("" if letters else " ").join(filter(None, parts))
