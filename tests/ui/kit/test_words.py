"""Formulas are declared once as words and LaTeX, and stand on the page as words and MathML."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import pytest

from vit_viz.analyses.methods import METHODS
from vit_viz.errors import ParameterError
from vit_viz.ui.kit.words import formulas, typeset
from vit_viz.ui.rooms import TABS

RAW = re.compile(r"\\|\$|\^|_\{|_\w\b|[{}]")
MATH = re.compile(r"<math\b.*?</math>", re.DOTALL)


def check(page: str) -> None:
    """HTML with mathematics in it, each expression well formed and named, and nothing of LaTeX left."""
    expressions = MATH.findall(page)
    assert expressions
    for expression in expressions:
        tree = ElementTree.fromstring(expression)
        assert RAW.findall(tree.get("aria-label") or "\\") == []
        assert "".join(tree.itertext()).strip()
    assert RAW.findall(html.unescape(re.sub(r"<[^>]+>", "", page))) == []


@pytest.mark.parametrize("name", list(METHODS))
def test_the_formula_of_every_method_is_typeset(name: str) -> None:
    words = METHODS[name].words
    check(formulas((words.formula, words.source)))


def test_every_formula_that_the_page_begins_with_is_typeset() -> None:
    built = [tab.build() for tab in TABS]
    pages = [
        page
        for tab in built
        for page in (tab["html"], tab["props"].get("how", ""))
        if "class=vv-math" in page
    ]
    assert len(pages) == len(TABS) - 1  # all but the Lesson, whose scenes have their own
    for page in pages:
        check(page)
        assert "<code>" not in page


def test_words_around_the_mathematics_are_escaped_and_a_comma_stays_on_its_line() -> None:
    page = typeset(r"looks <at>: $A[i, :]$ & more")
    assert page.startswith("looks &lt;at&gt;: <math ")
    assert page.endswith("</math> &amp; more")
    assert typeset("i mod n") == "i mod n"
    page = typeset("$a$, $b$ and ($c$).")
    assert re.findall(r"<span class=vv-math-bound>(.*?)</span>", MATH.sub("m", page)) == ["m,", "m)."]
    assert MATH.sub("m", re.sub(r"</?span[^>]*>", "", page)) == "m, m and (m)."


def test_a_formula_is_a_tree_and_is_said_in_words() -> None:
    for text, said in (
        (r"\frac{a_1}{\sqrt{d}}", "(a sub 1) over (root of (d))"),
        (r"\bar A_\ell", "A bar sub ℓ"),
        (r"A'_\ell", "A sub ℓ super ′"),
        (r"\mathrm{mean}_h\, A", "mean sub h A"),
        (r"x^{2}", "x super 2"),
        (r"\int_0^1 y", "∫ sub 0 super 1 y"),
    ):
        (expression,) = MATH.findall(typeset(f"${text}$"))
        assert ElementTree.fromstring(expression).get("aria-label") == said
    (expression,) = MATH.findall(typeset(r"$\frac{a_1}{\sqrt{d}}$"))
    assert [node.tag for node in ElementTree.fromstring(expression).iter()] == [
        "math", "mrow", "mfrac", "mrow", "msub", "mi", "mn", "mrow", "msqrt", "mrow", "mi",
    ]  # fmt: skip


def test_a_formula_that_cannot_be_typeset_says_why() -> None:
    for text, why in (("a $b", "two dollar signs"), (r"$\nosuch{a}$", "not known"), ("a$b$c$", "two dollar")):
        with pytest.raises(ParameterError, match=why):
            typeset(text)
