"""Parts of a model that were compiled run as they are written while we look at them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture.misleading import Attend, Block, ByHand, Model
from tests.capture.models import lively, pixels
from vit_viz.capture import trace
from vit_viz.capture.forward import undisturbed
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout

CLASS = TokenLayout(grid=(4, 6))


def compiled(graphs: list[object]) -> nn.Module:
    """A model one of whose methods is compiled, by a backend that counts its graphs."""

    class Stepwise(Model):
        def features(self, image: Tensor) -> Tensor:
            return super().forward(image)

        def forward(self, image: Tensor) -> Tensor:
            return self.features(image)

    def backend(graph: Callable[..., object], _inputs: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph

    model = lively(Stepwise([Block(Attend), Block(Attend)]))
    model.features = torch.compile(model.features, backend=backend)  # type: ignore[assignment, arg-type]
    return model


def test_a_compiled_method_is_proven_and_compiled_for_no_pass_of_ours() -> None:
    graphs: list[object] = []
    model = compiled(graphs)
    recorded = trace(model, pixels(), layout=CLASS)
    assert (recorded.proof_status, recorded.proof_report.sentence, graphs) == ("proven", "", [])
    assert torch.allclose(model(pixels())[0], recorded.logits, atol=1e-5)  # type: ignore[arg-type]
    assert len(graphs) == 1  # and the user's own pass is


def test_passes_of_two_threads_leave_the_compiler_as_it_was() -> None:
    graphs: list[object] = []
    model, first, second = compiled(graphs), nn.Linear(2, 3), nn.Linear(2, 3)
    begun, may_end = threading.Event(), threading.Event()

    def pass_of_another_thread() -> None:
        with undisturbed(second):
            begun.set()
            assert may_end.wait(60)

    thread = threading.Thread(target=pass_of_another_thread)
    with undisturbed(first):
        thread.start()
        assert begun.wait(60)
    model(pixels())
    assert graphs == []  # the other pass is not over
    may_end.set()
    thread.join()
    model(pixels())
    assert len(graphs) == 1


@pytest.mark.parametrize(("attend", "is_decomposed"), [(Attend, False), (ByHand, False), (ByHand, True)])
def test_an_exported_module_is_traced_as_the_one_that_it_was_made_of(
    attend: type[nn.Module], is_decomposed: bool
) -> None:
    model = lively(Model([Block(attend), Block(attend), Block(attend)])).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about itself
        program = torch.export.export(model, (pixels(),))
        exported = (program.run_decompositions() if is_decomposed else program).module()
    with pytest.raises(NotImplementedError):
        exported.eval()
    recorded, expected = (trace(each, pixels(), layout=CLASS) for each in (exported, model))
    assert (recorded.proof_status, recorded.proof_report.sentence) == ("proven", "")
    for layer in range(3):
        assert torch.allclose(recorded.attention(layer), expected.attention(layer), atol=1e-6)
    with pytest.raises(ParameterError, match=r"pass its module\(\)"):
        trace(program, pixels(), layout=CLASS)  # type: ignore[arg-type]
