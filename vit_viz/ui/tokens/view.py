"""The Tokens tab: what becomes of each patch, layer by layer; what it shows is vit_viz/web/tokens."""

from __future__ import annotations

from vit_viz.explorer import colour_tables
from vit_viz.explorer.value import described
from vit_viz.ui.kit import web_room, words
from vit_viz.ui.page import Page, Tab
from vit_viz.views.tab_options import TokensTabOptions


def build(_page: Page) -> None:
    """Lay out the tab."""
    options = [described(field) for field in TokensTabOptions.schema()]
    web_room("tokens", tables=colour_tables(), options=options)
    words.explain(
        shows="what becomes of each patch, layer by layer: by what the patches differ most, which of them resemble the one that "
        "is pointed at or tapped, how long their vectors are, what the head would say of each, how far each layer turns them, "
        "and which of them belong together.",
        hides="what the model uses: tokens can resemble each other in numbers that no later layer reads. What the head would say "
        "(the logit lens) is a probe, since the head was trained on the output of the last layer only.",
    )
    words.formula(
        (
            "colours: three principal components of all layers together",
            "Each layer is centred and divided by its spread, then one basis is fitted on all. Of a component and its "
            "negative the one is taken whose largest entry is positive. Colours are multiplied by the photo's own lightness, from "
            "0.35 where it is black to 1 where it is white. Oquab et al. 2023, arXiv:2304.07193.",
        ),
        (
            r"alike: $\cos(x_q, x_j)$",
            "$x$: a token before the first or after a layer, or the queries or keys of a layer with all heads side by side. Lit: "
            "from the mean over the other patches up to the largest of them. Amir et al. 2021, arXiv:2112.05814.",
        ),
        (
            r"length: $\lVert x_i \rVert$; outliers: more than 5 times the median",
            "Darcet et al. 2024, arXiv:2309.16588.",
        ),
        (
            r"says (logit lens): $\mathrm{softmax}(\mathrm{head}(\mathrm{norm}(x_i)))$",
            "Lit by the largest probability, or by that of a chosen class, on one scale from 0 for all layers; by its own "
            "sigmoid where classes may hold beside each other, or by the value where outputs are values. Models without classes: "
            "cosine with the image's own embedding. Vilas et al. 2023, arXiv:2310.18969.",
        ),
        (
            r"change: the angle whose cosine is $\cos(x_l, x_{l-1})$; layers: "
            r"$\lVert Y^\top X \rVert_F^2 / (\lVert X^\top X \rVert_F \lVert Y^\top Y \rVert_F)$ (linear CKA)",
            "With fewer patches than numbers per patch the form without bias. Kornblith et al. 2019, arXiv:1905.00414; Nguyen "
            "et al. 2021, arXiv:2010.15327.",
        ),
        (
            r"segments: k-means, or the second solution of $(D - W) y = \lambda D y$",
            "Of unit vectors; $W$ is 1 where two patches' cosine exceeds 0.2. Overlap: intersection over union with the box. Amir "
            "et al. 2021, arXiv:2112.05814; Wang et al. 2022, arXiv:2202.11539.",
        ),
        (
            r"register: $h_{\mathrm{register}, c} \leftarrow \max_i h_{i c}$, $h_{\mathrm{patch}, c} \leftarrow 0$",
            "$c$: the ten neurons of the MLPs that are largest where the outlier patches are. Jiang et al. 2025, arXiv:2506.08010.",
        ),
    )


TAB = Tab(
    "tokens",
    "Tokens",
    build,
    about="What becomes of every patch, layer by layer.",
)
