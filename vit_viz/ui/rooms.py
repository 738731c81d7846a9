"""The tabs that every page has, in their order: what each is for, the words around what it shows, and their formulas.

What a tab shows is vit_viz/web/NAME.
"""

from __future__ import annotations

from typing import Any

from vit_viz.explorer import EXPLORER, template
from vit_viz.explorer.rooms import PROPS
from vit_viz.ui import lesson
from vit_viz.ui.explain import declared
from vit_viz.ui.kit import part, place, words
from vit_viz.ui.page import Tab

PLACES = " Patches are named by (row, column), counted from 0 at the top left."


def _look() -> dict[str, Any]:
    said = words.explain(
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
        shows="how one token, the query, spreads its attention over the photo in each head of each layer; point at a patch, "
        "or tap it, to make it the query.",
        hides="what the model did with what it saw: attention weights are not importance, and what falls on tokens that are not "
        "patches (class, registers, detection) is outside the photo (see the bars).",
    )
    there = place("explorer", inside=template(EXPLORER), classes="vit-viz-explorer")
    return part("web/look/room", html=there + said, **PROPS["look"]())


def _lesson() -> dict[str, Any]:
    said = words.explain(
        shows="how this photo becomes the answer above, as one scene that plays: every number and picture is of this model and "
        f"this photo.{PLACES}",
        hides="how the model was trained: its weights are taken as they are.",
    )
    return part("web/lesson/room", html=place("lesson") + said, parts=lesson.parts())


def _explain() -> dict[str, Any]:
    how = words.formulas(
        (
            r"deletion: area under $p(\mathrm{target})$ while the map's best patches are painted over, the lower the better;  "
            "insertion: while they are put back into a blurred photo, the higher the better",
            "20 steps; gray marks where 95% of random orders lie (10 orders: mean ± 2.37 standard deviations of their log-odds). "
            "A card's “x faster” is the mean area of random orders over that of the map, in deletion. Of two classes, the lead "
            "$z_a - z_b$ takes the place of the probability, in logits, and its band is that of the areas themselves, as is that "
            "of an output that is a value. Petsiuk et al. 2018, arXiv:1806.07421, on patches.",
        ),
        (
            r"changes with the class: $1 - \rho(m_1, m_2)$, the maps $m_1$ and $m_2$ for two classes; mirrored photo, mirrored "
            r"map: $\rho(m, m^{\prime})$, with $m^{\prime}$ the map of the mirrored photo, mirrored back",
            r"$\rho$: Spearman's rank correlation. Class 0: the map is the same whatever the class. Mirror 1: the map does not "
            "mind a mirror.",
        ),
    )
    values = {"methods": declared.methods(), "drawing": declared.drawing(), "how": how}
    return part("web/explain/room", html=place("explain"), **values)


def _heads() -> dict[str, Any]:
    matrix = words.explain(
        (
            r"$A = \mathrm{softmax}(s\, q k^{\top})$, $N \times N$; links: the $k$ largest $A_{i j}$ with $i \ne j$",
            "$i$ and $j$ run over the patches. Above 2,000 tokens a cell is the mean of a block of neighbouring tokens. "
            "Vaswani et al. 2017, arXiv:1706.03762.",
        ),
        shows="all of one head at once: each row is a query, each column a key, and the arrows on the photo are the "
        f"strongest of these links.{PLACES}",
        hides="what the links are used for. A few strong links are easy to draw, and the many weak ones often hold more: "
        "the share of what is drawn stands beside it.",
    )
    said = words.explain(
        (
            r"distance: $\mathrm{mean}_i \sum_j a_{i j} d_{i j}$",
            r"$a$: attention between patches, each row divided by its sum; $d$: distance of the centres in pixels of the "
            "model's input. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7.",
        ),
        (
            r"entropy: $-\sum_j A_{i j} \ln A_{i j} / \ln N$, mean over tokens $i$",
            r"$N$: number of tokens.",
        ),
        (
            r"causal effect: $f(x \mid o_{l h} \leftarrow 0) - f(x)$; gradient importance: "
            r"$\sum_i \frac{\partial f}{\partial o_{l h i}} \cdot (0 - o_{l h i})$",
            r"$o$: the output of a head; in place of 0 its mean over tokens, or what uniform attention gives. Michel et "
            "al. 2019, arXiv:1905.10650.",
        ),
        (
            r"size of what it moves: $\sum_j A_{i j} \lVert v_j W_{O, h} \rVert$",
            "Kobayashi et al. 2020, arXiv:2004.10102. Outlier tokens: Darcet et al. 2024, arXiv:2309.16588.",
        ),
        shows="what each head of each layer does: one number for every head, the photo as it sees it, a name with the "
        "numbers that gave it, and what the answer loses when it is switched off.",
        hides="what heads do together: each is measured, and switched off, alone. The names are words for a few measures "
        "on this photo, and another photo can give another name.",
    )
    around = f"<div id=vv-heads-matrix>{matrix}</div><div id=vv-heads-words>{said}</div>"
    return part(
        "web/heads/room",
        html=f"<div id=vv-heads-faces>{place('heads')}{around}</div>",
        **PROPS["heads"](),
    )


def _tokens() -> dict[str, Any]:
    said = words.explain(
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
        shows="what becomes of each patch, layer by layer: by what the patches differ most, which of them resemble the one that "
        "is pointed at or tapped, how long their vectors are, what the head would say of each, how far each layer turns them, "
        f"and which of them belong together.{PLACES}",
        hides="what the model uses: tokens can resemble each other in numbers that no later layer reads. What the head would say "
        "(the logit lens) is a probe, since the head was trained on the output of the last layer only.",
    )
    return part("web/tokens/room", html=place("tokens") + said, **PROPS["tokens"]())


def _positions() -> dict[str, Any]:
    said = words.explain(
        (
            r"$\cos(p_i, p_j) = \frac{p_i \cdot p_j}{\lVert p_i \rVert \lVert p_j \rVert}$",
            r"$p_i$: the position embedding of patch $i$, resampled to the grid by the model family's own rule. Rotary "
            r"positions: the "
            "mean cosine of the angles between two places. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 centre.",
        ),
        (
            r"on another grid: $\lVert p_i - p_i^{\mathrm{own}} \rVert / \mathrm{mean}_j \lVert p_j^{\mathrm{own}} \rVert$",
            "Families of models interpolate the table in ways of their own; loading a model with another's way changes its input.",
        ),
        (
            r"rotary periods: $\cos(2 \pi \cdot 2 d / (g T))$",
            "$d$: patches apart of $g$ on an axis; $T$: the period, in half sides of the picture. DINOv3, arXiv:2508.10104.",
        ),
        (
            "in colours, patch filters: principal components of the table, and of the filters of the patch embedding",
            "Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 left.",
        ),
        shows="how alike the positions of any two patches are: one small map per place, laid out like the photo; point at one, or "
        "tap it, to enlarge it; choose it to make that patch the query. Then, where the model has them: what its table becomes on "
        f"another grid, what each rotary period tells apart, and by what positions and patch filters differ most.{PLACES}",
        hides="the photo itself: positions are the same for every image of this size. Nor does it show how much the layers use "
        "them.",
    )
    return part("web/positions/room", html=place("positions") + said)


def _patches() -> dict[str, Any]:
    said = words.explain(
        (
            r"image $[C, H, W]$ → patches $[n, P^2 C]$ → tokens $[p + n, D]$ with $n = \frac{H}{P} \cdot \frac{W}{P}$",
            r"$C$ channels; $P$: side of a patch; $D$ numbers per token. $p$ prefix tokens (class, registers) come first, "
            r"suffix tokens (detection) last where the model has them; a position "
            "embedding is added where the model has one. "
            "Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, arXiv:2010.11929, section 3.1.",
        ),
        shows="where the model cuts the photo, what it leaves out (hatched), and the patches in the order in which it "
        "receives them.",
        hides="what the model makes of a patch: a single linear map turns each patch into one vector, and everything else happens "
        "in the layers.",
    )
    return part("web/patches/room", html=place("patches") + said)


TABS: tuple[Tab, ...] = (
    Tab(
        "look", "Look", _look, about="Where every head of every layer looks from the patch under the pointer."
    ),
    Tab(
        "lesson",
        "Lesson",
        _lesson,
        about="From pixels to the answer, as one scene that plays, with the numbers of this photo.",
    ),
    Tab(
        "explain",
        "Explain",
        _explain,
        about="Which patches made the model say a class, by many methods, and which of them deserve trust.",
    ),
    Tab(
        "heads",
        "Heads",
        _heads,
        about="What each head does on this photo, what the answer loses without it, and the model with heads switched off.",
    ),
    Tab("tokens", "Tokens", _tokens, about="What becomes of every patch, layer by layer."),
    Tab(
        "positions",
        "Positions",
        _positions,
        about="What the model's position embeddings know of where a patch lies.",
    ),
    Tab(
        "patches",
        "Patches",
        _patches,
        about="How the photo becomes the sequence of tokens that the model receives.",
    ),
)
