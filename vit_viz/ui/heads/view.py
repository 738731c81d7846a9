"""The Heads tab: all heads by name, by numbers and as a matrix, and edits of the model; what it shows is vit_viz/web/heads."""

from __future__ import annotations

from dataclasses import asdict

import gradio as gr

from vit_viz.analyses.head_names import MARGIN, RULES
from vit_viz.explorer import colour_tables
from vit_viz.ui.kit import web_room, words
from vit_viz.ui.page import Page, Tab
from vit_viz.views.tab_options import HEAD_MEASURES


def build(_page: Page) -> None:
    """Lay out the tab: all faces, and the words of those that are seen."""
    with gr.Column(elem_id="vv-heads-faces"):
        web_room(
            "heads",
            tables=colour_tables(),
            measures=[{"name": name, **asdict(said)} for name, said in HEAD_MEASURES.items()],
            rules=[asdict(rule) for rule in RULES],
            margin=MARGIN,
        )
        with gr.Column(elem_id="vv-heads-matrix"):
            _matrix_words()
        with gr.Column(elem_id="vv-heads-words"):
            _words()


def _words() -> None:
    """Write what is seen, and its formulas."""
    words.explain(
        shows="what each head of each layer does: one number for every head, the photo as it sees it, a name with the numbers that "
        "gave it, and what the answer loses when it is switched off.",
        hides="what heads do together: each is measured, and switched off, alone. The names are words for a few measures on this "
        "photo, and another photo can give another name.",
    )
    words.formula(
        (
            r"distance: $\mathrm{mean}_i \sum_j a_{i j} d_{i j}$",
            r"$a$: attention between patches, each row divided by its sum; $d$: distance of the centres in pixels of the model's "
            "input. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7.",
        ),
        (r"entropy: $-\sum_j A_{i j} \ln A_{i j} / \ln N$, mean over tokens $i$", r"$N$: number of tokens."),
        (
            r"causal effect: $f(x \mid o_{l h} \leftarrow 0) - f(x)$; gradient importance: "
            r"$\sum_i \frac{\partial f}{\partial o_{l h i}} \cdot (0 - o_{l h i})$",
            r"$o$: the output of a head; in place of 0 its mean over tokens, or what uniform attention gives. Michel et al. 2019, "
            "arXiv:1905.10650.",
        ),
        (
            r"size of what it moves: $\sum_j A_{i j} \lVert v_j W_{O, h} \rVert$",
            "Kobayashi et al. 2020, arXiv:2004.10102. Outlier tokens: Darcet et al. 2024, arXiv:2309.16588.",
        ),
    )


def _matrix_words() -> None:
    """The same of the matrix."""
    words.explain(
        shows="all of one head at once: each row is a query, each column a key, and the arrows on the photo are the strongest of "
        "these links.",
        hides="what the links are used for. A few strong links are easy to draw, and the many weak ones often hold more: the "
        "share of what is drawn stands beside it.",
    )
    words.formula(
        (
            r"$A = \mathrm{softmax}(s\, q k^{\top})$, $N \times N$; links: the $k$ largest $A_{i j}$ with $i \ne j$",
            "$i$ and $j$ run over the patches. Above 2,000 tokens a cell is the mean of a block of neighbouring tokens. Vaswani "
            "et al. 2017, arXiv:1706.03762.",
        )
    )


TAB = Tab(
    "heads",
    "Heads",
    build,
    about="What each head does on this photo, what the answer loses without it, and the model with heads switched off.",
)
