"""All methods that explain an output, in the order in which the screen shows them. Each is declared beside its function."""

from __future__ import annotations

from vit_viz.analyses.attribution import (
    GRADIENT_SHAP,
    INPUT_X_GRADIENT,
    INTEGRATED_GRADIENTS,
    OCCLUSION,
    SALIENCY,
    SMOOTHGRAD,
)
from vit_viz.analyses.cams import HIRESCAM, LAYERCAM, TOKEN_GRADCAM, XGRADCAM
from vit_viz.analyses.flow import ATTENTION_FLOW
from vit_viz.analyses.relevance import GRADIENT_ROLLOUT, LEGRAD, RELEVANCE
from vit_viz.analyses.rollout import LAST_LAYER_ATTENTION, ROLLOUT, VALUE_ROLLOUT
from vit_viz.analyses.shapley import KERNEL_SHAP
from vit_viz.analyses.spec import Methods

METHODS = Methods(
    RELEVANCE,
    GRADIENT_ROLLOUT,
    LEGRAD,
    TOKEN_GRADCAM,
    HIRESCAM,
    LAYERCAM,
    XGRADCAM,
    ROLLOUT,
    VALUE_ROLLOUT,
    LAST_LAYER_ATTENTION,
    ATTENTION_FLOW,
    INTEGRATED_GRADIENTS,
    SMOOTHGRAD,
    OCCLUSION,
    KERNEL_SHAP,
    SALIENCY,
    INPUT_X_GRADIENT,
    GRADIENT_SHAP,
    missing="There is no method",
    listed="the Explain tab has a card for each.",
)
