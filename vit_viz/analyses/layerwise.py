"""Maps that need the model's blocks one by one: LeGrad, and Grad-CAM on tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vit_viz.analyses.attention import prefix_values, suffix_values, to_numpy
from vit_viz.analyses.chains import LayerRange, layer_range
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import NoOptions
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.spec import Method, SharedPass, Words
from vit_viz.analyses.targets import Target
from vit_viz.capture import Trace, trace
from vit_viz.capture.verified import verified_structure
from vit_viz.errors import CaptureError
from vit_viz.model import VisionTransformer
from vit_viz.model.vit import Block
from vit_viz.results import PatchMap

_QUERIES_AT_ONCE = 256


def legrad(subject: PreparedImage, target: Target, *, layers: LayerRange | None = None) -> PatchMap:
    """Which keys each layer's attention would have to look at more for the target to grow, summed over layers.

    Per layer l the residual stream after it is pooled and projected as if it were the last, y_l = target(head(pool(x_l))). With
    dA_l = dy_l / dA_l: sum_l mean_h mean_i (dA_lh[i, :])+, without a product with A. All layers share one forward and one backward,
    since each block starts from a cut-off copy of its input.

    Args:
        target: with its class or embedding fixed.
        layers: (first, end) of the layers that are summed, end excluded; None means all.

    Returns:
        Non-negative sensitivity over the patch grid, in units of the target.

    Raises:
        ParameterError: the model is not ours, so it has no layers that can be pooled on their own.

    Source: Bousselham et al. 2024, arXiv:2404.03214, eq. 6 to 10. Theirs rescales the sum to [0, 1]; ours stays raw.
    """
    model = subject.transformer("LeGrad")
    probe = _EachLayer(model, target)
    structure = verified_structure(model, subject.pixels, subject.layout)
    with subject.turn():
        recorded = trace(
            probe,
            subject.pixels,
            layout=subject.layout,
            target=torch.sum,
            pool=subject.pool,
            structure=structure,
        )
    first, end = layer_range(recorded, layers)
    total = torch.zeros(subject.layout.num_tokens, device=recorded.device)
    for layer in range(first, end):
        for queries in torch.split(torch.arange(recorded.num_tokens), _QUERIES_AT_ONCE):
            gradient = recorded.attention_gradient(layer, queries=queries)
            total += gradient.clamp_(min=0).sum((0, 1)) / (recorded.num_heads * recorded.num_tokens)
    return PatchMap(
        subject.layout.patches(to_numpy(total)),
        unit="sensitivity of the target",
        value_range=(0.0, float("inf")),
        signed=False,
        method="LeGrad",
        class_blind=False,
        provenance=subject.provenance.with_parameters(method="legrad", layers=f"{first}-{end - 1}"),
        prefix=prefix_values(recorded, total),
        suffix=suffix_values(recorded, total),
        crop_box=subject.crop_box,
        caption=f"LeGrad, summed over layers {first}-{end - 1}",
    )


def _legrad(given: MethodInput, _options: NoOptions) -> PatchMap:
    return legrad(given.subject, given.target, layers=given.layers)


LEGRAD = Method(
    name="legrad",
    options=NoOptions,
    run=_legrad,
    cost="pass",
    words=Words(
        label="LeGrad",
        shows="which patches the layers would have to look at more to raise the target, summed over all layers.",
        hides="where the layers actually look: it is a sensitivity and is not multiplied by the attention itself.",
        formula=r"$\sum_\ell \mathrm{mean}_{h, i}\, (\partial y_\ell / \partial A_{\ell h}[i, :])^{+}$; $y_\ell$: the target, "
        r"read from layer $\ell$",
        source="Bousselham et al. 2024, arXiv:2404.03214",
    ),
    shared=SharedPass(own_blocks=True),
)


def token_gradcam(subject: PreparedImage, recorded: Trace, target: Target) -> PatchMap:
    """Which patches carry, into the last attention, the features that the target grows with.

    With F the input of the last block after its first norm, [tokens, dim], and w_c the mean over patches of dy/dF[:, c]:
    map = (sum_c w_c F[:, c])+. Taken before the last attention, because after the last block the gradient of patch tokens is
    exactly 0 under class-token pooling.

    Args:
        recorded: a trace of the subject that kept its residual stream.
        target: with its class or embedding fixed.

    Raises:
        CaptureError: the residual stream was not kept.
        ParameterError: the model is not ours.

    Source: Selvaraju et al. 2017, arXiv:1610.02391, on tokens instead of feature maps.
    """
    model = subject.transformer("Token Grad-CAM")
    if recorded.residual is None:
        raise CaptureError("Token Grad-CAM needs a trace that kept the residual stream (keep_residual=True).")
    with subject.turn():
        features, gradient = _last_features(model, recorded.residual[-2][None], subject, target)
    weights = gradient[subject.layout.patch_slice].mean(0)  # [dim]
    return PatchMap(
        subject.layout.patches(to_numpy((features @ weights).clamp(min=0))),
        unit="activation towards the target",
        value_range=(0.0, float("inf")),
        signed=False,
        method="token Grad-CAM",
        class_blind=False,
        provenance=subject.provenance.with_parameters(method="gradcam"),
        crop_box=subject.crop_box,
        caption="Grad-CAM on the tokens that enter the last attention",
    )


def _token_gradcam(given: MethodInput, _options: NoOptions) -> PatchMap:
    return token_gradcam(given.subject, given.trace, given.target)


TOKEN_GRADCAM = Method(
    name="gradcam",
    options=NoOptions,
    run=_token_gradcam,
    cost="pass",
    words=Words(
        label="Token Grad-CAM",
        shows="which patches carry the features that raise the target, as the last attention reads them.",
        hides="how earlier layers built those features, and evidence against the target.",
        formula=r"$(\sum_c w_c F[:, c])^{+}$ with $w_c = \mathrm{mean}_i\, \partial y / \partial F[i, c]$ over patches $i$; "
        r"$F$: what the last attention reads",
        source="Selvaraju et al. 2017, arXiv:1610.02391, on tokens",
    ),
    shared=SharedPass(residual=True, own_blocks=True),
)


class _EachLayer(nn.Module):
    """A model that answers after each of its blocks, each block cut off from those before: [1, layers] of targets."""

    def __init__(self, model: VisionTransformer, target: Target) -> None:
        super().__init__()
        self.model, self.target = model, target

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.model.tokens(pixels)  # [1, tokens, dim]
        rotary = self.model.rotary(self.model.grid_of(*pixels.shape[-2:]))
        values = []
        for block in self.model.blocks:
            x = block(x.detach(), rotary)
            values.append(self.target(self.model.classify(x))[0])
        return torch.stack(values)[None]


def _last_features(
    model: VisionTransformer, stream: Tensor, subject: PreparedImage, target: Target
) -> tuple[Tensor, Tensor]:
    """Features after the last block's first norm and the target's gradient there, both [tokens, dim]."""
    block = model.blocks[-1]
    assert isinstance(block, Block)
    rotary, stream = model.rotary(subject.layout.grid), stream.to(subject.dtype)
    with torch.enable_grad():
        features = block.norm1(stream.detach()).detach().requires_grad_()
        x = stream.detach() + block.ls1(block.attn(features, rotary))
        x = x + block.ls2(block.mlp(block.norm2(x)))
        (gradient,) = torch.autograd.grad(target(model.classify(x))[0], features)
    return features.detach()[0].float(), gradient[0].float()
