"""The methods of the Explain tab: what each is called, what it shows and does not show, and which options it has.

To add one: an analysis in `vit_viz.session`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from vit_viz.errors import ParameterError
from vit_viz.ui.state import ViewState

Option = Literal["query", "share", "fusion", "discard", "layers", "target"]
Parameters = Callable[[ViewState, int], dict[str, Any]]
Aim = int | tuple[int, int] | None


def aim_of(view: ViewState) -> Aim:
    """The target of a view as analyses take it: a class, a pair of classes, or None for the model's own."""
    classes = [int(part) for part in view.target.split("-") if part]
    if len(classes) == 2:
        return classes[0], classes[1]
    return classes[0] if classes else None


@dataclass(frozen=True)
class Method:
    """One way to explain an output.

    Args:
        name: as it stands in links.
        label: as it stands on the screen.
        analysis: name in `ANALYSES`.
        class_blind: whether the map is the same for every class.
        shows: one sentence on what the map shows.
        hides: one sentence on what it does not show.
        formula: in one line of plain text.
        source: paper and its address.
        options: the controls that matter to it.
        parameters: from the view and the number of layers to the analysis' keyword parameters.
        runs: where the model runs many times, how often in words; such a map is made when it is asked for.
    """

    name: str
    label: str
    analysis: str
    class_blind: bool
    shows: str
    hides: str
    formula: str
    source: str
    options: tuple[Option, ...]
    parameters: Parameters
    runs: str = ""


def _layers(view: ViewState, count: int) -> tuple[int, int] | None:
    """The chosen range with its end excluded; None where it is all layers."""
    last = view.last if 0 <= view.last < count else count - 1
    first = min(view.first, last)
    return None if (first, last) == (0, count - 1) else (first, last + 1)


def _rollout(view: ViewState, count: int) -> dict[str, Any]:
    return {
        "attention_share": view.share,
        "head_fusion": view.fusion,
        "discard": view.discard,
        "layers": _layers(view, count),
    }


def _towards(name: str) -> Parameters:
    """Parameters of the analysis "explain" for a method."""
    return lambda view, _layers: {"method": name, "target": aim_of(view)}


def _method(
    name: str, label: str, *, shows: str, hides: str, formula: str, source: str, runs: str = ""
) -> Method:
    """A method towards the chosen target, without options of its own."""
    return Method(
        name, label, "explain", False, shows, hides, formula, source, ("target",), _towards(name), runs
    )


METHODS: tuple[Method, ...] = (
    _method(
        "relevance",
        "Relevance",
        shows="which patches made the target larger, followed back through the attention of all layers, each head weighted by "
        "how much the target depends on it.",
        hides="what speaks against the target, and what the MLPs add: only positive influence that travels by attention counts.",
        formula="Ā_l = mean_h (∇A_lh ∘ A_lh)⁺;  r ← r + r Ā_l for l = L..1",
        source="Chefer, Gur & Wolf 2021, arXiv:2103.15679",
    ),
    _method(
        "gradient_rollout",
        "Gradient rollout",
        shows="attention rollout in which each head counts by how much the target depends on it.",
        hides="how large the influence is: every layer is rescaled to sum to 1, so only proportions remain.",
        formula="A'_l = a · mean_h (∇A_lh ∘ A_lh)⁺ + (1 − a) · I, rows renormalised; map = the output's row of A'_L ··· A'_1",
        source="after Abnar & Zuidema 2020, arXiv:2005.00928; clamped before the mean over heads",
    ),
    _method(
        "legrad",
        "LeGrad",
        shows="which patches every layer would have to look at more for the target to grow, summed over the layers.",
        hides="what the layers really look at: it is a sensitivity, not multiplied by the attention itself.",
        formula="Σ_l mean_h mean_i (∂y_l / ∂A_lh[i, :])⁺,  y_l: the target read from layer l",
        source="Bousselham et al. 2024, arXiv:2404.03214",
    ),
    _method(
        "gradcam",
        "Token Grad-CAM",
        shows="which patches carry, into the last attention, the features that the target grows with.",
        hides="how those features came about in the layers before, and anything that speaks against the target.",
        formula="(Σ_c w_c F[:, c])⁺,  w_c = mean over patches of ∂y / ∂F[:, c]",
        source="Selvaraju et al. 2017, arXiv:1610.02391, on tokens",
    ),
    Method(
        name="rollout",
        label="Attention rollout",
        analysis="rollout",
        class_blind=True,
        shows="How much the query draws on each patch of the photo when the attention of all chosen layers is multiplied through.",
        hides="It knows nothing of the predicted class, nor of what the values and the MLPs do: it shows where information "
        "could flow, not why the model answered as it did.",
        formula="A'_l = a · fuse_h(A_lh) + (1 − a) · I, rows renormalised; map = the query's row of A'_L ··· A'_1",
        source="Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, arXiv:2005.00928",
        options=("query", "share", "fusion", "discard", "layers"),
        parameters=_rollout,
    ),
    Method(
        name="attention",
        label="Last-layer attention",
        analysis="explain",
        class_blind=True,
        shows="what the output token looks at in the last layer, as the mean over its heads.",
        hides="the class, and all layers before: it is what everyone shows, and it often misses the object.",
        formula="mean_h A_Lh[output, :]",
        source="Vaswani et al. 2017, arXiv:1706.03762",
        options=(),
        parameters=_towards("attention"),
    ),
    _method(
        "integrated_gradients",
        "Integrated gradients",
        shows="how much each patch moves the target on the way from a gray image to this one; blue patches move it down.",
        hides="patches that look like the gray start count little, whatever they mean.",
        formula="(x − x₀) ∘ ∫ ∂y / ∂x (x₀ + t (x − x₀)) dt, summed over each patch",
        source="Sundararajan, Taly & Yan 2017, arXiv:1703.01365, by captum",
        runs="50 runs forwards and backwards or more, until it adds up",
    ),
    _method(
        "smoothgrad",
        "SmoothGrad",
        shows="where small changes of pixels change the target most, as the mean over noisy copies of the photo.",
        hides="whether the pixels that are there speak for or against the target.",
        formula="|mean over noise of ∂y / ∂x|, the largest channel, mean over each patch",
        source="Smilkov et al. 2017, arXiv:1706.03825, by captum",
        runs="16 runs forwards and backwards",
    ),
    _method(
        "occlusion",
        "Occlusion",
        shows="by how much the target falls when this patch alone is painted gray; blue patches make it rise.",
        hides="patches that can stand in for each other: with one of them gone, the others still carry the answer.",
        formula="y(x) − y(x with the patch painted over)",
        source="Zeiler & Fergus 2014, arXiv:1311.2901, by captum",
        runs="one run per patch",
    ),
    _method(
        "kernel_shap",
        "KernelShap",
        shows="each segment's fair share of the target, estimated from subsets of twenty segments; blue shares are against it.",
        hides="what differs within a segment: all its patches show the same share.",
        formula="weighted least squares of y over subsets of segments, spread evenly over the patches of each",
        source="Lundberg & Lee 2017, arXiv:1705.07874",
        runs="about 800 runs",
    ),
)
FAST_METHODS = tuple(method for method in METHODS if not method.runs)


def method_named(name: str) -> Method:
    """The method of a name.

    Raises:
        ParameterError: there is none.
    """
    for method in METHODS:
        if method.name == name:
            return method
    known = ", ".join(method.name for method in METHODS)
    raise ParameterError(f"There is no method {name[:40]!r}; there are: {known}.")
