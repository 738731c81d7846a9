"""A newcomer reads the steps in order: each term is explained where it first stands, and no answer is given away."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from tests.ui.kit.test_words import check
from tests.ui.walkthrough.kinds import KINDS, scene_of_kind, screens_of_kind
from vit_viz.ui.kit.words import typeset
from vit_viz.ui.walkthrough.routes import screen_of
from vit_viz.ui.walkthrough.screen import STEPS, html_of

TERMS = (
    "patch(es)?", "tokens?", "vectors?", "embeddings?", "bias", "filters?", "linear maps?", "convolution",
    "principal components?", "class token", "registers?", "layers?", "attention", "cosine similarity",
    "position embeddings?", "quer(y|ies)", "keys?", "softmax", "scores?", "heads?", "norm", "output projection", "blocks?",
    "MLP", "residual connections?", "residual stream", "classifier", "logits?(?! lens)", "logit lens",
)  # fmt: skip
PARTS = re.compile(r"<h2>.*?</h2>|<figure class=vv-w-code>.*?</figure>|<math\b.*?</math>", re.DOTALL)


def prose(page: str, *, terms_marked: bool = False) -> str:
    """What stands on the page as text, without titles, code and mathematics; explained terms between * where they are marked."""
    text = PARTS.sub(" ", page)
    if terms_marked:
        text = re.sub(r"<dfn>(.*?)</dfn>", r"*\1*", text)
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_term_is_explained_where_it_first_stands(kind: str) -> None:
    walk = " ".join(
        prose(html_of(screen, step), terms_marked=True)
        for step, screen in enumerate(screens_of_kind(kind), start=1)
    )
    for term in TERMS:
        first = re.search(rf"(\*?)\b{term}\b(\*?)", walk, re.IGNORECASE)
        if first is not None:
            around = walk[max(0, first.start() - 60) : first.end() + 40]
            assert first[0].startswith("*"), f"{term!r} stands before it is explained: {around!r}"
            assert first[0].endswith("*"), around


def test_the_terms_are_those_of_a_common_model() -> None:
    walk = " ".join(
        prose(html_of(screen, step))
        for step, screen in enumerate(screens_of_kind("class token and registers"), start=1)
    )
    assert [term for term in TERMS if not re.search(rf"\b{term}\b", walk, re.IGNORECASE)] == []


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_answer_stands_nowhere_before_it_is_unfolded(kind: str) -> None:
    for step, screen in enumerate(screens_of_kind(kind), start=1):
        page = html_of(screen, step)
        (quiz,) = re.findall(r"<details class='vv-card vv-w-quiz'>(.*?)</details>", page, re.DOTALL)
        assert html.escape(screen.question) in quiz
        assert html.escape(screen.answer) in quiz
        seen = prose(page.replace(quiz, "")) + screen.question
        figures = re.findall(r"\d+\.\d+%?|\d+%", screen.answer)
        given = [figure for figure in figures if re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d%])", seen)]
        assert not figures or given != figures, STEPS[step - 1]
        assert not screen.reveals or screen.reveals in quiz


def test_a_control_that_was_moved_unfolds_what_it_decides() -> None:
    scene = scene_of_kind("class token and registers")
    moved = replace(scene, view=scene.view.with_options({"step_option": 1}))
    opened = [step for step in range(1, 9) if "vv-w-quiz' open>" in html_of(screen_of(moved, step), step)]
    assert opened == [1, 4, 5, 8]


@pytest.mark.parametrize("kind", list(KINDS))
def test_formulas_are_typeset_and_their_letters_are_theirs(kind: str) -> None:
    for step, screen in enumerate(screens_of_kind(kind), start=1):
        formula, letters = typeset(screen.formula), typeset(screen.letters)
        check(formula)
        check(letters)
        names = [set(re.findall(r"<mi>(.*?)</mi>", page)) for page in (letters, formula)]
        assert names[0] <= names[1], (STEPS[step - 1], names[0] - names[1])
        assert "$" not in prose(html_of(screen, step))


def test_a_head_is_a_head_of_attention() -> None:
    for kind in KINDS:
        page = html_of(screens_of_kind(kind)[7], 8)
        said = prose(re.sub(r"<p class=vv-w-terms>.*?</p>", "", page, flags=re.DOTALL))
        assert not re.search(r"\bheads?\b", said)


def test_the_comparison_begins_with_another_patch_size_than_the_models() -> None:
    for kind in KINDS:
        scene, screen = scene_of_kind(kind), screens_of_kind(kind)[0]
        (tried,) = re.findall(r"If patches had (\d+) x \d+ pixels", screen.reveals)
        assert int(tried) not in scene.config.patch_size
        assert "frame" not in prose(html_of(screen, 1))


def test_the_note_on_old_code_is_folded() -> None:
    page = html_of(screens_of_kind("positions resampled as dino")[3], 4)
    (note,) = re.findall(r"<details class=vv-w-more>.*?</details>", page, re.DOTALL)
    assert "0.1" in note
    assert not re.search(r"\b0\.1\b", prose(page.replace(note, "")))
