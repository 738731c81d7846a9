"""What the Explain tab asks that is no question of its own right; the maps and their tests are questions, which the page draws.

POST /vit_viz/agree     {"view": LINK}: which of the maps that are quick or at hand agree
"""

from __future__ import annotations

from vit_viz.ui.explain import agree
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.page import Answers

ANSWERS: Answers = {
    "agree": lambda asked: {"value": agree.value(Questions.of(asked, asked.view, asked.owner))},
}
