"""The recipe as data, and its schedule: what the learning rate and the image size are at a share of the time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stage:
    """A stretch of the run at one image size.

    Args:
        until: share of the run, in (0, 1], at which the stage ends.
        size: side of the square input in pixels.
        batch: photos per step.
        keep: share of the patches that the student sees, in (0, 1]; the others are dropped at random.
    """

    until: float
    size: int
    batch: int
    keep: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the run apart from the data, the seed and the time."""

    stages: tuple[Stage, ...] = (
        Stage(until=0.40, size=48, batch=128),
        Stage(until=0.70, size=64, batch=128),
        Stage(until=0.90, size=128, batch=96, keep=0.5),
        Stage(until=1.00, size=128, batch=64),
    )
    warm_up: float = 0.015
    decay_from: float = 0.55
    matrix_rate: float = 0.008
    other_rate: float = 1e-3
    matrix_decay: float = 0.02
    other_decay: float = 0.02
    momentum: float = 0.95
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 5.0
    ema: float = 0.998
    smoothing: float = 0.1
    temperature: float = 2.0
    label_weight: float = 0.5
    logit_weight: float = 0.5
    token_weight: float = 16.0
    class_weight: float = 4.0
    look_weight: float = 3.0
    crop_area: tuple[float, float] = (0.35, 1.3)
    crop_ratio: tuple[float, float] = (0.75, 1.3333)
    jitter: float = 0.3
    grey_share: float = 0.2
    paste_share: float = 0.35
    model: dict[str, object] = field(
        default_factory=lambda: {
            "architecture": "vision_transformer",
            "patch_size": 8,
            "img_size": 128,
            "in_chans": 3,
            "embed_dim": 192,
            "depth": 6,
            "num_heads": 6,
            "mlp_ratio": 4,
            "num_classes": 200,
            "reg_tokens": 4,
            "class_token": True,
            "no_embed_class": True,
            "qkv_bias": True,
            "global_pool": "token",
            "norm_eps": 1e-6,
        }
    )

    def stage(self, progress: float) -> Stage:
        """The stage that a step at `progress` (share of the run, from 0) belongs to."""
        return next((stage for stage in self.stages if progress < stage.until), self.stages[-1])

    def rate(self, progress: float) -> float:
        """The factor on the learning rates at `progress`: warm-up, stable, then a straight line to 0.

        A run can be continued from any checkpoint of the stable part with more time, which a cosine
        does not allow. Source: Hu et al. 2024, arXiv:2404.06395 (warm-up, stable, decay).
        """
        if progress < self.warm_up:
            return progress / self.warm_up
        if progress < self.decay_from:
            return 1.0
        return max(0.0, (1.0 - progress) / (1.0 - self.decay_from))
