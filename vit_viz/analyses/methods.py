"""All methods that explain an output, in the order in which the screen shows them. Each is declared beside its function."""

from __future__ import annotations

from vit_viz.analyses import attribution, cams, flow, grad_eclip, relevance, rollout, shapley
from vit_viz.analyses.spec import Methods

METHODS = Methods(
    relevance.RELEVANCE,
    relevance.GRADIENT_ROLLOUT,
    relevance.LEGRAD,
    cams.TOKEN_GRADCAM,
    cams.HIRESCAM,
    cams.LAYERCAM,
    cams.XGRADCAM,
    grad_eclip.GRAD_ECLIP,
    rollout.ROLLOUT,
    rollout.VALUE_ROLLOUT,
    rollout.LAST_LAYER_ATTENTION,
    flow.ATTENTION_FLOW,
    attribution.INTEGRATED_GRADIENTS,
    attribution.SMOOTHGRAD,
    attribution.OCCLUSION,
    shapley.KERNEL_SHAP,
    attribution.SALIENCY,
    attribution.INPUT_X_GRADIENT,
    attribution.GRADIENT_SHAP,
    missing="There is no method",
    listed="the Explain tab has a card for each.",
)
