"""Muon for the matrices of the blocks, AdamW for everything else."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalised(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrices whose singular values are all about 1: [count, rows, cols], rows <= cols.

    Newton-Schulz iteration; the coefficients send singular values into [0.7, 1.2], fast.

    Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
    """
    a, b, c = NEWTON_SCHULZ
    x = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def square_parts(weight: Tensor) -> Tensor:
    """A weight [out, in] as matrices with rows <= cols: q, k and v apart, tall ones transposed."""
    rows, cols = weight.shape
    if rows == 3 * cols:
        return weight.view(3, cols, cols)
    return weight.mT[None] if rows > cols else weight[None]


class Muon:
    """Momentum whose update is made orthogonal before it is applied, over all matrices of a shape at once.

    W <- (1 - rate decay) W - rate sqrt(long side / short side) orth(m), m the momentum of the gradients
    (Nesterov), so that one element changes by rate / sqrt(dim) in every matrix, whatever its shape.
    """

    def __init__(self, weights: Iterable[nn.Parameter], *, momentum: float, decay: float) -> None:
        self.weights = list(weights)
        self.momentum, self.decay = momentum, decay
        self.averages = [torch.zeros_like(weight) for weight in self.weights]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Apply one update; weights without a gradient are an error."""
        by_shape: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
        for weight, average in zip(self.weights, self.averages, strict=True):
            assert weight.grad is not None
            average.lerp_(weight.grad, 1 - self.momentum)
            direction = weight.grad.lerp(average, self.momentum)
            for part, target in zip(square_parts(direction), square_parts(weight), strict=True):
                by_shape.setdefault((part.shape[0], part.shape[1]), []).append((part, target))
        for (rows, cols), pairs in by_shape.items():
            updates = orthogonalised(torch.stack([part for part, _ in pairs]))
            for update, (_, target) in zip(updates, pairs, strict=True):
                target.mul_(1 - rate * self.decay).sub_(update, alpha=rate * (cols / rows) ** 0.5)

    def state_dict(self) -> dict[str, list[Tensor]]:
        """The averages, in the order of the weights."""
        return {"averages": self.averages}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        """Continue with the averages of `state_dict`."""
        for mine, given in zip(self.averages, state["averages"], strict=True):
            mine.copy_(given)
