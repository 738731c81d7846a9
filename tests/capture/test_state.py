"""What a module is made of: another number where something else computes, the same where passes merely count or keep."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import pixels, timm_vit
from vit_viz.capture import trace
from vit_viz.capture.state import make_up_of
from vit_viz.checkpoints.digest import held_states, weights_of
from vit_viz.errors import CaptureError


def scaled(factor: float) -> Callable[..., Tensor]:
    return lambda _part, _args, output: output * factor


CHANGES: dict[str, Callable[[Any], object]] = {
    "submodule": lambda m: setattr(m, "head", nn.Linear(m.head.in_features, 3)),
    "hook": lambda m: m.blocks[1].register_forward_hook(scaled(2)),
    "hook before": lambda m: m.blocks[1].register_forward_pre_hook(lambda _part, args: args),
    "forward": lambda m: setattr(m.blocks[0], "forward", lambda x, **_: x),
    "number": lambda m: setattr(m.blocks[0].attn, "scale", 0.3),
    "switch": lambda m: setattr(m.blocks[0].attn, "fused_attn", not m.blocks[0].attn.fused_attn),
    "list": lambda m: setattr(m, "kept_layers", [0, 2]),
    "tensor": lambda m: setattr(m, "temperature", torch.tensor(2.0)),
    "parametrised": lambda m: nn.utils.parametrizations.weight_norm(m.head),
    "class": lambda m: setattr(m.norm, "__class__", type("Other", (nn.LayerNorm,), {})),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_computes_otherwise_is_another_make_up(change: Callable[[Any], object]) -> None:
    module = timm_vit()
    before = make_up_of(module)
    assert make_up_of(module) == before
    change(module)
    after = make_up_of(module)
    assert after not in (before, make_up_of(timm_vit()))
    assert make_up_of(module) == after


def test_training_and_other_weights_leave_the_make_up_and_a_hook_that_is_gone_gives_the_old_one() -> None:
    module = timm_vit()
    before = make_up_of(module)
    module.train()
    next(module.parameters()).data.mul_(2)
    assert make_up_of(module) == before
    hook = module.register_forward_hook(scaled(2))
    assert make_up_of(module) != before
    hook.remove()
    assert make_up_of(module) == before


def test_two_functions_of_the_same_code_are_two() -> None:
    """A function that is gone may leave its place in memory to the next one."""
    module, found = timm_vit(), set[int]()
    for factor in range(6):
        module.forward_head = partial(scaled(factor), None)
        found.add(make_up_of(module))
    assert len(found) == 6


class Counting(nn.Module):
    """Counts its passes, and keeps what it returned last."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls, self.scale = timm_vit(), 0, 2.0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.last: Tensor = self.scale * self.inner(x)
        return self.last


def test_what_a_pass_changes_is_no_part_of_the_make_up() -> None:
    module = Counting().eval()
    before = make_up_of(module)
    for _ in range(2):
        trace(module, pixels())
        assert make_up_of(module) == before
    module.scale = 3.0
    assert make_up_of(module) != before


def test_a_finding_about_a_module_is_found_out_anew_where_the_module_was_changed() -> None:
    passes: list[object] = []
    module = timm_vit().eval()
    module.register_forward_hook(lambda *_: passes.append(0))

    def count() -> int:
        passes.clear()
        _ = trace(module, pixels()).structure
        return len(passes)

    assert count() > 5
    assert count() == 1
    with torch.no_grad():
        module.norm.weight *= 2
    assert count() == 1  # an optimizer's step costs no proof
    module.blocks[1].attn.scale *= 1.1
    module.steps, module.losses = 7, [0.5]
    assert count() == 1  # nor do the numbers that training writes beside it
    module.blocks[1].register_forward_hook(lambda _part, _args, output: output.roll(1, 1))
    with pytest.raises(CaptureError):
        count()


def test_inside_held_states_a_module_is_looked_at_once() -> None:
    module = timm_vit()
    with held_states():
        weights, made_of = weights_of(module), make_up_of(module)
        next(module.parameters()).data.mul_(2)
        module.kept = 1.5
        with held_states():
            assert (weights_of(module), make_up_of(module)) == (weights, made_of)
    assert weights_of(module) != weights
    assert make_up_of(module) != made_of


def test_what_is_remembered_of_a_module_does_not_hold_it() -> None:
    module = timm_vit()
    module.register_forward_hook(lambda *_, inner=module.norm: inner)
    module.own, gone = [module.forward], weakref.ref(module.blocks[0])
    make_up_of(module)
    del module
    import gc

    gc.collect()
    assert gone() is None
