"""Questions about tokens: what they resemble, how long they are, what they have in common, and what the head says of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from vit_viz.analyses.key_segments import Method
from vit_viz.analyses.norms import OUTLIER_FACTOR
from vit_viz.analyses.options import NoOptions, Option, Options
from vit_viz.analyses.spec import Words
from vit_viz.analyses.tokens import Role
from vit_viz.errors import ParameterError
from vit_viz.session.question import Question

Forms = Literal["as patches need", "biased", "without bias"]
_FACTOR = Option("factor", "An outlier is longer than this many medians.", low=1.5, high=100, step=0.5)
BOX = r"|\d{1,6}(,\d{1,6}){3}"
"""A box as text, left,top,right,bottom in pixels of the photo; or nothing."""

_FORMS: dict[Forms, bool | None] = {"as patches need": None, "biased": False, "without bias": True}


@dataclass(frozen=True)
class RoleOptions(Options):
    """Which vectors are compared."""

    role: Annotated[Role, Option("role", "Which vectors: tokens of every layer, queries, or keys.")] = (
        "tokens"
    )


@dataclass(frozen=True)
class ComponentOptions(RoleOptions):
    """How common colours are fitted."""

    balanced: Annotated[
        bool, Option("balanced", "Let every layer count alike, though late tokens are longer.")
    ] = True
    foreground: Annotated[
        bool, Option("foreground", "Split at the first component and fit the inner side alone.")
    ] = False
    whitened: Annotated[bool, Option("whitened", "Give each component the same variance.")] = False


@dataclass(frozen=True)
class NormOptions(Options):
    """Which tokens count as outliers."""

    factor: Annotated[float, _FACTOR] = OUTLIER_FACTOR


@dataclass(frozen=True)
class LayerSimilarityOptions(RoleOptions):
    """How layers are compared."""

    form: Annotated[
        Forms, Option("form", "With or without the bias that few patches bring; by default as they need.")
    ] = "as patches need"


@dataclass(frozen=True)
class SegmentOptions(Options):
    """How patches are grouped."""

    layer: Annotated[
        int,
        Option("layer", "The layer, counted from 0; -1 is the last.", low=-1, high=999, is_layer=True),
    ] = -1
    role: Annotated[Role, Option("role", "Which vectors: keys, queries, or tokens after the layer.")] = "keys"
    method: Annotated[Method, Option("method", "k-means, or a cut into two.")] = "k-means"
    count: Annotated[int, Option("segments", "How many, by k-means; a cut has 2.", low=1, high=24)] = 4
    seed: Annotated[int, Option("seed", "Of the random starts.", low=0, high=9999)] = 0
    box: Annotated[
        str,
        Option(
            "box",
            "Where an object lies, for its overlap with each segment: left,top,right,bottom in pixels of the photo.",
            pattern=BOX,
        ),
    ] = ""


@dataclass(frozen=True)
class RegisterOptions(Options):
    """How a register is made."""

    count: Annotated[int, Option("neurons", "How many neurons are moved to it.", low=1, high=1000)] = 10
    factor: Annotated[float, _FACTOR] = OUTLIER_FACTOR


def _as_they_are(options: Options, _layers: int) -> dict[str, Any]:
    return asdict(options)


def _layer_similarity(options: LayerSimilarityOptions, _layers: int) -> dict[str, Any]:
    return {"role": options.role, "debiased": _FORMS[options.form]}


def _segments(options: SegmentOptions, layers: int) -> dict[str, Any]:
    asked = asdict(options) | {"layer": layers - 1 if options.layer == -1 else options.layer}
    box = asked.pop("box")
    boxes = {"boxes": (_box(box),)} if box else {}
    return asked | boxes | {"count": 2 if options.method == "cut" else options.count}


def _box(text: str) -> tuple[int, ...]:
    left, top, right, bottom = (int(side) for side in text.split(","))
    if not (left < right and top < bottom):
        raise ParameterError(f"A box is left,top,right,bottom, each side before the other, not {text}.")
    return left, top, right, bottom


OF_TOKENS = (
    Question(
        "token_similarity",
        Words(
            label="Similar tokens",
            shows="how much every token resembles the chosen one, before and after every layer.",
            hides="whether the model uses the resemblance, or what it consists of.",
            formula=r"$\cos(x_q, x_j)$",
            source="Amir et al. 2021, arXiv:2112.05814",
            class_blind=True,
        ),
        RoleOptions,
        "look-up",
        analysis="token similarity",
        parameters=_as_they_are,
        takes_query=True,
    ),
    Question(
        "token_change",
        Words(
            label="Change of tokens",
            shows="how much of each token stays as it was in each layer.",
            hides="what changes, and whether the answer depends on it.",
            formula=r"$\cos(x_l, x_{l-1})$",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929",
            class_blind=True,
        ),
        NoOptions,
        "look-up",
        analysis="token change",
        parameters=_as_they_are,
    ),
    Question(
        "token_components",
        Words(
            label="Common colours",
            shows="by what the patches differ most: three components of all layers, as colours.",
            hides="the rest of the variance: the shares say how much that is.",
            formula=r"the first eigenvectors of $X^\top X / n$, each layer centred",
            source="Oquab et al. 2023, arXiv:2304.07193, Fig. 1",
            class_blind=True,
        ),
        ComponentOptions,
        "look-up",
        analysis="token components",
        parameters=_as_they_are,
    ),
    Question(
        "token_norms",
        Words(
            label="Norms",
            shows="how long each token is after every layer, which stand far out, and the attention that these receive.",
            hides="what an outlier is used for.",
            formula=r"$\lVert x_i \rVert > c \cdot \mathrm{median}_j \lVert x_j \rVert$",
            source="Darcet et al. 2024, arXiv:2309.16588",
            class_blind=True,
        ),
        NormOptions,
        "look-up",
        analysis="token norms",
        parameters=_as_they_are,
    ),
    Question(
        "added_register",
        Words(
            label="A register at test time",
            shows="norms and attention before and after outlier patches have left their part to a register.",
            hides="what a model would do that was trained with one.",
            formula=r"$h_{\mathrm{register}, c} \leftarrow \max_i h_{i c}$, $h_{\mathrm{patch}, c} \leftarrow 0$",
            source="Jiang et al. 2025, arXiv:2506.08010",
            class_blind=True,
        ),
        RegisterOptions,
        "pass",
        analysis="register",
        parameters=_as_they_are,
    ),
    Question(
        "logit_lens",
        Words(
            label="Logit lens",
            shows="what the head would say of each patch after every layer: a probe.",
            hides="what the model uses: the head was trained on the pooled output of the last layer only.",
            formula=r"$\mathrm{softmax}(\mathrm{head}(\mathrm{norm}(x)))$",
            source="Vilas et al. 2023, arXiv:2310.18969",
        ),
        NoOptions,
        "pass",
        analysis="lens",
        parameters=_as_they_are,
        takes_target=True,
    ),
    Question(
        "layer_similarity",
        Words(
            label="Layers compared",
            shows="how alike the patches are to each other in any two layers.",
            hides="by what they are alike.",
            formula=r"$\lVert Y^\top X \rVert_F^2 / (\lVert X^\top X \rVert_F \lVert Y^\top Y \rVert_F)$",
            source="Kornblith et al. 2019, arXiv:1905.00414",
            class_blind=True,
        ),
        LayerSimilarityOptions,
        "look-up",
        analysis="layer similarity",
        parameters=_layer_similarity,
    ),
    Question(
        "segments",
        Words(
            label="Segments",
            shows="which patches a layer treats alike, as regions of the photo.",
            hides="what a region is: nothing here has names.",
            formula=r"k-means, or the second solution of $(D - W) y = \lambda D y$",
            source="Amir et al. 2021, arXiv:2112.05814; Wang et al. 2022, arXiv:2202.11539",
            class_blind=True,
        ),
        SegmentOptions,
        "look-up",
        analysis="segments",
        parameters=_segments,
    ),
)
