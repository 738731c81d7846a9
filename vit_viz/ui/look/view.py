"""The Look tab: what one token looks at, in every head of every layer, live under the cursor; its page is vit_viz/web/look."""

from __future__ import annotations

from vit_viz.figures.files import Encoded, slug
from vit_viz.figures.screen import screen_photo
from vit_viz.offline import page_of
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.kit import explorer, words
from vit_viz.ui.page import Page, Tab
from vit_viz.ui.payload import explorer_view
from vit_viz.views.state import ViewState

MOST_BYTES = 40_000_000
"""Bytes of layers in a page that is made for a visitor, whom others wait beside; Python makes larger ones."""


def build(_page: Page) -> None:
    """Lay out the tab."""
    explorer(elem_id="vv-explorer")
    words.explain(
        shows="how one token, the query, spreads its attention over the photo in each head of each layer; point at a patch, "
        "or tap it, to make it the query.",
        hides="what the model did with what it saw: attention weights are not importance, and what falls on tokens that are not "
        "patches (class, registers, detection) is outside the photo (see the bars).",
    )
    words.formula(
        (
            r"$A = \mathrm{softmax}(s\, q k^{\top})$; looks at: $A[i, :]$; looked at by: $A[:, j]$",
            r"$s$: the scale, $1 / \sqrt{d}$ with $d$ numbers per head where a model says nothing else. Each row of $A$ sums "
            r"to 1 over all "
            "tokens. Vaswani et al. 2017, arXiv:1706.03762; Dosovitskiy et al. 2021, "
            "arXiv:2010.11929.",
        ),
        (
            r"weight x size of the value: $A_{i j} \lVert v_j W_{O, h} \rVert$",
            "How much moves, not only its weight. Kobayashi et al. 2020, arXiv:2004.10102.",
        ),
        (
            "keep the top 60%: the fewest patches whose weights sum to 60% (or the chosen share) of what falls on patches",
            "Caron et al. 2021 (DINO), arXiv:2104.14294.",
        ),
    )


TAB = Tab(
    "look",
    "Look",
    build,
    about="Where every head of every layer looks from the patch under the pointer.",
)


def explorer_file(session: Session, subject: Subject, view: ViewState) -> Encoded:
    """The live explorer of a subject as one HTML file, opening with this view.

    Raises:
        ParameterError: the view asks for what this model does not have.
        ExportError: the layers do not fit into a page.
        VitVizError: the subject is gone.
    """
    view = pictures.fitting(session, subject, view)
    trace = session.checked_trace_of(subject)
    name = session.name_of(subject.image, owner=subject.owner)
    page = page_of(
        trace,
        screen_photo(session, subject),
        name=name,
        mode=subject.mode,
        view=explorer_view(view, trace),
        most_bytes=MOST_BYTES,
    )
    parts = ("vit_viz", slug(name) or "photo", slug(trace.provenance.model) or "model")
    return Encoded(page, "text/html", "_".join(parts) + ".html")
