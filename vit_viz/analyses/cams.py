"""Class activation maps on tokens: Grad-CAM, HiResCAM, LayerCAM and XGrad-CAM, of what the last attention reads.

All four combine two arrays over the patches: a [patches, dim], what queries, keys and values of the last attention are projected
from (in a block that norms first: what its first norm returns), and g = dy/da. They are taken before the last attention, because
after the last block the gradient of patch tokens is exactly 0 under class-token pooling. Prefix tokens are left out before anything
is averaged.
"""

from __future__ import annotations

from collections.abc import Callable

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.spec import AnyMethod, SharedPass, explains
from vit_viz.capture.report import Reading
from vit_viz.lazy import Tensor, torch
from vit_viz.results import PatchMap

Combine = Callable[[Tensor, Tensor], Tensor]
"""From a and g, both [patches, dim], to one number per patch, [patches]; what is below 0 is cut off afterwards."""


def gradcam(a: Tensor, g: Tensor) -> Tensor:
    """sum_c w_c a[:, c] with w_c = mean_i g[i, c]: one weight per channel (Selvaraju et al. 2017, arXiv:1610.02391)."""
    return a @ g.mean(0)


def hirescam(a: Tensor, g: Tensor) -> Tensor:
    """sum_c g[:, c] a[:, c]: each patch has its own gradient (Draelos & Carin 2020, arXiv:2011.08891)."""
    return (g * a).sum(1)


def layercam(a: Tensor, g: Tensor) -> Tensor:
    """sum_c (g[:, c])+ a[:, c]: only where more of a channel helps (Jiang et al. 2021, doi:10.1109/TIP.2021.3089943)."""
    return (g.clamp(min=0) * a).sum(1)


def xgradcam(a: Tensor, g: Tensor) -> Tensor:
    """sum_c w_c a[:, c] with w_c = sum_i g[i, c] a[i, c] / sum_i a[i, c] (Fu et al. 2020, arXiv:2008.02312).

    A channel whose sum over patches is exactly 0 has no weight, where theirs adds 1e-7 to every sum. In double precision: a sum
    near 0 has few correct digits in single.
    """
    a, g = a.cpu().double(), g.cpu().double()
    sums = a.sum(0)
    return (a @ torch.where(sums == 0, 0, (g * a).sum(0) / sums)).float()


def token_cam(combine: Combine, inputs: MethodInput) -> PatchMap:
    """Which patches carry, into the last attention, the features that the target grows with.

    Args:
        combine: `gradcam`, `hirescam`, `layercam` or `xgradcam`.
        inputs: with a trace that kept what the last attention reads, `Trace.last_features`.

    Returns:
        Values at 0 or above over the patch grid, as they are, where the published code scales each map to [0, 1].

    Source: as `combine` says; on tokens instead of feature maps.
    """
    inputs.trace.wait()  # where tokens change places before the last layer, the map would mislead
    name, subject, features = _LABELS[combine], inputs.subject, inputs.trace.last_features()
    a, g = (both[subject.layout.patch_slice] for both in (features.values, features.gradient))
    return PatchMap(
        to_numpy(combine(a, g).clamp(min=0)).reshape(subject.layout.grid),
        unit="activation towards the target",
        value_range=(0.0, float("inf")),
        signed=False,
        method=f"token {name}",
        class_blind=False,
        provenance=subject.provenance.with_parameters(method=combine.__name__),
        crop_box=subject.crop_box,
        caption=f"{name} on the tokens that enter the last attention",
        note=around_last_layer(inputs.trace.structure.reading),
    )


def around_last_layer(reading: Reading | None) -> str:
    """How much the target reads around the last layer, in a sentence; "" for nothing."""
    share = 1.0 if reading is None else reading.shares[-1]
    if reading is None or share == 1:
        return ""
    part = f"Only {share:.0%}" if share > 0.005 else "Hardly anything"
    return f"{part} of what the {reading.of} takes from the image passes through the last layer; this map leaves out the rest."


def _declared(combine: Combine, **words: str) -> AnyMethod:
    return explains(
        lambda inputs: token_cam(combine, inputs),
        name=combine.__name__,
        cost="pass",
        shared=SharedPass(features=True),
        **words,
    )


_LABELS: dict[Combine, str] = {
    gradcam: "Grad-CAM",
    hirescam: "HiResCAM",
    layercam: "LayerCAM",
    xgradcam: "XGrad-CAM",
}

TOKEN_GRADCAM = _declared(
    gradcam,
    label="Token Grad-CAM",
    also_called="gradcam, grad-cam, class activation map, cam",
    shows="which patches carry the features that raise the target, as the last attention reads them.",
    hides="how earlier layers built those features, and evidence against the target.",
    formula=r"$(\sum_c w_c F[:, c])^{+}$ with $w_c = \mathrm{mean}_i\, \partial y / \partial F[i, c]$ over patches $i$; "
    r"$F$: what the last attention reads",
    source="Selvaraju et al. 2017, arXiv:1610.02391, on tokens",
)

HIRESCAM = _declared(
    hirescam,
    label="HiResCAM",
    also_called="cam, class activation map",
    shows="how much of the target each patch's own features account for, as the last attention reads them.",
    hides="how earlier layers built those features, and evidence against the target.",
    formula=r"$(\sum_c g[:, c] F[:, c])^{+}$ with $g = \partial y / \partial F$; $F$: what the last attention reads",
    source="Draelos & Carin 2020, arXiv:2011.08891, on tokens",
)

LAYERCAM = _declared(
    layercam,
    label="LayerCAM",
    also_called="cam, class activation map",
    shows="which patches carry features that the target would grow with if the patch had more of them.",
    hides="features that lower the target, which are left out before they are added up.",
    formula=r"$(\sum_c g[:, c]^{+} F[:, c])^{+}$ with $g = \partial y / \partial F$; $F$: what the last attention reads",
    source="Jiang et al. 2021, doi:10.1109/TIP.2021.3089943, on tokens",
)

XGRADCAM = _declared(
    xgradcam,
    label="XGrad-CAM",
    also_called="xgradcam, cam, class activation map",
    shows="as token Grad-CAM, with gradients that count by how strong the feature is at each patch.",
    hides="how earlier layers built those features; a feature whose sum over patches is near 0 weighs too much.",
    formula=r"$(\sum_c w_c F[:, c])^{+}$ with $w_c = \sum_i g[i, c] F[i, c] / \sum_i F[i, c]$; $g = \partial y / \partial F$",
    source="Fu et al. 2020, arXiv:2008.02312, on tokens",
)
