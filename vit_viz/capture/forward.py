"""A forward pass that leaves the model as it was: eval mode, random state and hooks are restored, also after an exception."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vit_viz.capture.gradients import is_of_autograd
from vit_viz.capture.per_module import PerModule
from vit_viz.capture.state import first_pass_seen
from vit_viz.capture.structure_check import guarded_pass
from vit_viz.errors import CaptureError, VitVizError
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

    from vit_viz.capture.listed_blocks import ListedBlocks

_VISION = ("vision_model", "vision_tower", "visual", "vision_encoder")
"""Names of the part that looks at the image in models that also read text, and of the part that reads it:"""
_TEXT = ("text_model", "text_encoder", "text_decoder", "language_model", "token_embedding")
_LACKS_TEXT = (TypeError, ValueError, AttributeError, RuntimeError)
_OF_SIZE = (AssertionError, ValueError, RuntimeError, IndexError)
"""What models stop with where the text is missing, and where the size does not suit them."""


@dataclass
class _Note:
    """The lock that is held while a module runs, and how many layers its last pass had."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    depth: int | None = None


_NOTES = PerModule(_Note)

USUAL_DEPTH = 12


def expected_layers(module: nn.Module) -> int:
    """How many layers to reserve memory for: as many as the last pass had, else one per block."""
    return _NOTES.of(module).depth or len(block_list(module)) or USUAL_DEPTH


def remember_layers(module: nn.Module, count: int) -> None:
    """Note how many layers a pass had."""
    _NOTES.of(module).depth = count


def lock_of(module: nn.Module) -> threading.RLock:
    """The lock that is held while a module runs; taken after that of its device."""
    return _NOTES.of(module).lock


class _Uncompiled:
    """Lets compiled functions run as they are written while a pass is under way in any thread: torch knows one stance for all."""

    def __init__(self) -> None:
        self._guard, self._passes, self._stance = threading.Lock(), 0, ExitStack()

    @contextmanager
    def passes(self) -> Iterator[None]:
        """Context of one pass; the last that ends restores what was before the first."""
        # where neither was imported, nothing is compiled; the latter compiles what it is called with
        if sys.modules.keys().isdisjoint(("torch._dynamo", "torch.nn.attention.flex_attention")):
            yield
            return
        with self._guard:
            if self._passes == 0:
                self._stance.enter_context(torch.compiler.set_stance("force_eager"))
            self._passes += 1
        try:
            yield
        finally:
            with self._guard:
                self._passes -= 1
                if self._passes == 0:
                    self._stance.close()


_UNCOMPILED = _Uncompiled()


@contextmanager
def undisturbed(module: nn.Module) -> Iterator[list[nn.Module]]:
    """Eval mode for one forward pass under the model's lock; training flags and random state are restored. Yields all modules.

    Whatever of it was compiled runs as it is written: a mode that sees and replaces torch's calls cannot be compiled with it. Where
    autograd is at work, weights that were made in inference mode are replaced meanwhile by copies that it takes.
    """
    with guarded_pass(), lock_of(module), _UNCOMPILED.passes():
        parts = submodules_of(module)
        training = [part for part in parts if part.training]
        with torch.random.fork_rng(devices=[] if is_capturing() else _random_devices(module)):
            try:
                if training:
                    with suppress(NotImplementedError):  # of what torch.export made: its graph knows one mode
                        module.eval()
                differentiable = _differentiable_weights(parts) if torch.is_grad_enabled() else nullcontext()
                with first_pass_seen(module, parts), differentiable:
                    yield parts
            finally:
                for part in training:
                    part.training = True


def answer_of(module: nn.Module, pixels: Tensor) -> Any:
    """What a module returns for pixels, whatever that is."""
    try:
        return module(pixels)
    except Exception as error:
        if isinstance(module, VisionTransformer) or isinstance(error, VitVizError | torch.OutOfMemoryError):
            raise
        if torch.is_grad_enabled() and is_of_autograd(error):
            raise  # `differentiable` has the words for it
        name = type(getattr(module, "module", module)).__name__  # not that of a wrapper
        kind = type(error).__name__
        names = [name for name, _ in module.named_modules()]
        vision = next((name for name in names if name.rpartition(".")[2] in _VISION), None)
        reads_text = any(name.rpartition(".")[2] in _TEXT for name in names)
        if vision is not None and reads_text and isinstance(error, _LACKS_TEXT):
            raise CaptureError(
                f"{name} does not run on pixels alone ({kind}); trace the part of it that looks at the image, .{vision}."
            ) from error
        if problem := _input_problem(module, pixels, error):
            raise CaptureError(f"{name} {problem}.") from error
        reason = " ".join(str(error).split())[:200].rstrip(".").replace(". ", "; ")
        advice = 'mode="crop" or "stretch", without size=, gives it a picture at that size'
        if getattr(module, "dynamic_img_size", None) is False:
            advice += ", and dynamic_img_size=True makes a timm model that takes others"
        of_size = f"; if it takes one size only, {advice}" if isinstance(error, _OF_SIZE) else ""
        raise CaptureError(
            f"{name} does not run on pixels {list(pixels.shape)} ({kind}{f': {reason}' if reason else ''}){of_size}."
        ) from error


def _input_problem(module: nn.Module, pixels: Tensor, error: Exception) -> str:
    """Why a module that stopped cannot run on pixels as they are given, and what to do; "" where nothing shows it."""
    inputs = list(inspect.signature(module.forward).parameters.values())
    by_name = [one.name for one in inputs[:1] if one.kind is one.KEYWORD_ONLY]
    by_name += [one.name for one in inputs[1:] if one.name == "pixel_values"]
    if by_name:
        return (
            "does not take pixels as its first input: give it them by name, as in forward = model.forward; "
            f"model.forward = lambda pixels: forward({by_name[0]}=pixels)"
        )
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in inputs[1:] if one.default is one.empty and one.kind not in kinds]
    if needed and isinstance(error, TypeError):
        return (
            f"needs {' and '.join(needed)} beside pixels: bind that first, as in "
            f"model.forward = functools.partial(model.forward, {needed[0]}=...)"
        )
    if pixels.shape[1] > 4 >= pixels.shape[3]:
        return (
            f"does not run on pixels {list(pixels.shape)}, whose channels seem to come last: pass [1, channels, height, width], as "
            "pixels.permute(0, 3, 1, 2)"
        )
    empty = next((name for name, weight in module.named_parameters() if weight.is_meta), None)
    if empty is not None and not any(hasattr(part, "_hf_hook") for part in module.modules()):
        return f"does not run: its weight {empty} is on the meta device, where it has a shape and no numbers; load all first"
    return ""


@contextmanager
def _differentiable_weights(parts: list[nn.Module]) -> Iterator[None]:
    """Copies in place of weights that were made in inference mode, which autograd refuses."""
    parameters = [p for part in parts for p in part._parameters.values() if p is not None]
    if not any(parameter.is_inference() for parameter in parameters):
        yield
        return
    places: list[dict[str, Any]] = []
    for part in parts:
        places += [part._parameters, part._buffers, part.__dict__]
    kept = [
        (held, name, value)
        for held in places
        for name, value in held.items()
        if isinstance(value, Tensor) and value.is_inference()
    ]
    try:
        for held, name, value in kept:
            held[name] = value.detach().clone()
        yield
    finally:
        for held, name, value in kept:
            held[name] = value


class ResidualStream:
    """Records what enters the first block and leaves each block, in this thread only.

    Args:
        module: the model; its blocks are the longest list of equal children.
        keep: what is kept of each state; None keeps a copy of it.

    Attributes:
        states: what was kept: of what enters the first block, and of what leaves each block.
    """

    def __init__(self, module: nn.Module, *, keep: Callable[[Tensor], Tensor] | None = None) -> None:
        self._blocks = block_list(module)
        if not self._blocks:
            raise CaptureError(
                "keep_residual needs a model with a list of blocks (ModuleList or Sequential); none was found."
            )
        self._thread = threading.get_ident()
        self._handles: list[RemovableHandle] = []
        self.states: list[Tensor] = []
        self._listed: ListedBlocks | None = None
        self._of = keep or torch.clone

    def __enter__(self) -> ResidualStream:
        if are_lists(self._blocks):
            from vit_viz.capture.listed_blocks import ListedBlocks  # which imports torch at once

            self._listed = ListedBlocks(self._blocks, self._keep)
            self._listed.__enter__()
            return self
        self._handles.append(self._blocks[0].register_forward_pre_hook(self._before, with_kwargs=True))
        self._handles.extend(block.register_forward_hook(self._after) for block in self._blocks)
        return self

    def __exit__(self, *exception: object) -> None:
        for handle in self._handles:
            handle.remove()
        if self._listed is not None:
            self._listed.__exit__(*exception)
            self.states = self.states if self._listed.is_found else []

    def stacked(self, *, layers: int, tokens: int) -> Tensor:
        """The stream before the first and after each layer, fp32 [layers + 1, tokens, dim]."""
        shapes = {tuple(state.shape) for state in self.states}
        if len(self.states) != layers + 1 or len(shapes) != 1:
            raise CaptureError(
                f"Where each layer ends was not found: keep_residual expects one state per block, {layers + 1} in all; the blocks "
                f"gave {len(self.states)} of shapes {sorted(shapes)}."
            )
        stream = torch.stack(self.states).float()
        batch_axis = next((axis for axis in (1, 2) if stream.ndim == 4 and stream.shape[axis] == 1), None)
        if batch_axis is not None:
            stream = stream.squeeze(batch_axis)
        if stream.ndim != 3 or stream.shape[1] != tokens:
            raise CaptureError(
                f"keep_residual expects {tokens} tokens per block, not outputs of shape {list(self.states[0].shape)}."
            )
        return stream

    def _before(self, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ARG002
        self._keep(args[0] if args else kwargs.get("hidden_states"))

    def _after(self, block: nn.Module, args: tuple[Any, ...], output: Any) -> None:  # noqa: ARG002
        self._keep(output[0] if isinstance(output, tuple) else output)

    def _keep(self, state: Any) -> Any:
        if threading.get_ident() == self._thread and isinstance(state, Tensor):
            self.states.append(self._of(state.detach()))
        return state


def _random_devices(module: nn.Module) -> list[int]:
    """GPUs whose random state has to be restored; none where this process has not used a GPU yet."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return []
    return sorted({p.device.index or 0 for p in module.parameters() if p.device.type == "cuda"})


def is_capturing() -> bool:
    """Whether what runs in this thread becomes a CUDA graph, and is not computed yet."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def are_lists(blocks: Sequence[nn.Module]) -> bool:
    """Whether blocks are lists of parts, which a model runs one by one, see `ListedBlocks`."""
    return any(isinstance(block, nn.ModuleList | nn.ModuleDict) for block in blocks)


def block_list(module: nn.Module) -> list[nn.Module]:
    """The model's blocks: the longest ModuleList or Sequential whose children are all of one class.

    One of parts that have parts themselves goes before one of single layers, such as a head for each class.
    """
    lists = [
        list(part.children())
        for part in submodules_of(module)
        if isinstance(part, nn.ModuleList | nn.Sequential)
    ]
    alike = [children for children in lists if len({type(child) for child in children}) == 1]
    return max(alike, key=lambda children: (bool(children[0]._modules), len(children)), default=[])
