"""What benchmarks and their tests compare: outputs, blocks and attention of two models with the same random weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_SOFTMAX = (torch.softmax, torch.Tensor.softmax, torch.nn.functional.softmax)


@dataclass(frozen=True)
class Outcome:
    """What became of one architecture: "loads", "refused" (by name, with the reason) or "fails"."""

    name: str
    module: str
    result: str
    detail: str = ""


class Seen(TorchFunctionMode):
    """Outputs of the blocks and attention matrices of a forward call.

    The latter as the operands of the fused dot product give them, or as a softmax that is written out returns them.
    """

    def __init__(self, blocks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.attention: list[Tensor] = []
        self.blocks: list[Tensor] = []
        self._hooks = [block.register_forward_hook(self._keep) for block in blocks]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            scale = (kwargs or {}).get("scale") or args[0].shape[-1] ** -0.5
            scores, bias = args[0] @ args[1].transpose(-2, -1) * scale, (kwargs or {}).get("attn_mask")
            self.attention.append((scores if bias is None else scores + bias).softmax(dim=-1))
        out = func(*args, **(kwargs or {}))
        if func in _SOFTMAX and out.ndim == 4:
            self.attention.append(out)
        return out

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        super().__exit__(kind, value, trace)

    def _keep(self, _module: nn.Module, _arguments: Any, out: Any) -> None:
        self.blocks.append(out[0] if isinstance(out, tuple) else out)


def difference(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Largest max |a - b| / max |b| over pairs of tensors.

    Raises:
        ValueError: there are not as many of ours as of theirs.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} observations instead of {len(theirs)}")
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, theirs, strict=True))


@torch.no_grad()
def randomised(model: nn.Module) -> nn.Module:
    """Every parameter random, so that none can be forgotten unseen."""
    for name, parameter in model.named_parameters():
        spread = torch.randn_like(parameter)
        parameter.copy_(1 + 0.3 * spread if "norm" in name and name.endswith("weight") else 0.15 * spread)
    return model.eval()
