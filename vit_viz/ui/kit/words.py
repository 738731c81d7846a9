"""How views explain themselves: one sentence on what is shown, one on what is not, and the formula with its paper on demand."""

from __future__ import annotations

import html
import re
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
