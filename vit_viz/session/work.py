"""How much work an input is before it is computed: from its tokens and the shape of the model, not from a clock."""

from __future__ import annotations

from vit_viz.checkpoints import Model
from vit_viz.model import VisionTransformer


def forward_work(model: VisionTransformer, tokens: int) -> float:
    """Multiplications and additions of a forward pass in all blocks.

    Per block 2 P N for the linear maps, with P their weights, and 4 N^2 D for scores and the sums of values; norms, softmax and the
    patch embedding, a few percent together, are left out.

    Args:
        tokens: N, prefix tokens and patches together.
    """
    weights = sum(p.numel() for p in model.blocks.parameters() if p.ndim == 2)  # of all blocks
    return 2.0 * weights * tokens + 4.0 * model.config.depth * tokens**2 * model.config.embed_dim


def relative_work(loaded: Model, tokens: int, own_tokens: int) -> float:
    """How many times the work of an input of `own_tokens` one of `tokens` is.

    Of a module whose parts are not known as if all of it were attention, which is the most that it can be.
    """
    if not isinstance(loaded.model, VisionTransformer):
        return (tokens / own_tokens) ** 2
    return forward_work(loaded.model, tokens) / forward_work(loaded.model, own_tokens)
