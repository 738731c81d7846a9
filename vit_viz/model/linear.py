"""Linear layers that may use oneDNN's kernel where that is faster, with the same numbers and names; and the embedding of patches.

On some CPUs torch's fp32 linear layer reaches less than half of what oneDNN reaches. oneDNN's operator has no gradient of its own
(it would be wrong, with only a warning), so it is used where none is wanted, and for frozen weights, where the gradient is a linear
layer again; and only where a short timing has shown that it pays. The two round differently, so a machine times them once for each
size of a layer and keeps the choice in a file: every process then has the same last digits.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from torch.autograd import forward_ad

from vit_viz.errors import ParameterError
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.settings import setting

Kernel = Literal["auto", "onednn", "torch"]

MIN_GAIN = 1.15
"""How much faster than torch's kernel oneDNN's must be to be chosen."""

_TOKENS = 197
_logger = logging.getLogger(__name__)


class _Override:
    """Which kernel all linear layers of the process use; "auto" leaves it to each layer."""

    kernel: Kernel = "auto"


class Linear(nn.Linear):
    """torch's linear layer with a second kernel for inference in fp32 on the CPU; off until `use_fastest_linear` turns it on."""

    use_onednn = False

    def forward(self, x: Tensor) -> Tensor:
        """x W^T + b: [..., in_features] -> [..., out_features]."""
        if not _picks_onednn(self, x):
            return F.linear(x, self.weight, self.bias)
        return _frozen_linear(x, self.weight, self.bias)


class PatchConv2d(nn.Conv2d):
    """A convolution whose stride is its kernel; as one matrix product where a GPU computes it.

    cuDNN's convolutions round fp32 to TF32 by torch's default, products of matrices do not: a batch of images would differ from one
    image, and a GPU from a CPU, by a thousandth where everything after it agrees to a millionth. That switch belongs to the
    process, so it is left alone.

    Source: https://docs.pytorch.org/docs/stable/notes/cuda.html, "TensorFloat-32 on Ampere (and later) devices".
    """

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, C, height, width] -> [B, D, rows, cols]."""
        return self.as_product(pixels) if pixels.is_cuda else super().forward(pixels)

    def as_product(self, pixels: Tensor) -> Tensor:
        """The same numbers as the convolution: the pixels of each patch times the filters, [D, C * P * P]."""
        (tall, wide), (images, channels, height, width) = self.kernel_size, pixels.shape
        rows, cols = height // tall, width // wide
        whole = pixels[:, :, : rows * tall, : cols * wide].reshape(images, channels, rows, tall, cols, wide)
        patches = whole.permute(0, 2, 4, 1, 3, 5).reshape(images, rows * cols, -1)  # [B, n, C * P * P]
        embedded = F.linear(patches, self.weight.flatten(1), self.bias)  # [B, n, D]
        return embedded.transpose(1, 2).reshape(images, self.out_channels, rows, cols)


class _FrozenLinear(torch.autograd.Function):
    """x W^T + b by oneDNN for weights that want no gradient.

    The gradient of x is that of the output times W: again such a layer, with W^T, so that further derivatives are right as well.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """[..., in_features] -> [..., out_features]."""
        ctx.save_for_backward(weight)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """[..., out_features] -> [..., in_features]."""
        (weight,) = ctx.saved_tensors
        return _frozen_linear(gradient, weight.t(), None), None, None


def _frozen_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not (torch.is_grad_enabled() and x.requires_grad):
        return _onednn(x, weight, bias)
    output: Tensor = _FrozenLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]  # torch's
    return output


@contextmanager
def forced_kernel(kernel: Kernel) -> Iterator[None]:
    """Let every linear layer of the process use this kernel, whatever was timed, in all threads: for tests and benchmarks.

    Layers for which oneDNN has no kernel (another precision, a GPU) use torch's all the same.
    """
    if kernel == "onednn" and not _has_onednn():
        raise ParameterError(
            "This build of torch has no oneDNN linear kernel to force: use 'torch' or 'auto'."
        )
    before, _Override.kernel = _Override.kernel, kernel
    try:
        yield
    finally:
        _Override.kernel = before


def use_fastest_linear(model: nn.Module) -> bool:
    """Let all linear layers of `model` use the faster of the two kernels, which this machine timed once on its largest layer.

    VIT_VIZ_LINEAR=torch or onednn says which, in place of the timing.

    Returns:
        Whether oneDNN was chosen or is forced; False on a GPU, where the operator is missing, or where it does not pay.
    """
    if _Override.kernel != "auto":
        return _Override.kernel == "onednn"
    wanted = setting("VIT_VIZ_LINEAR").lower()
    if wanted not in ("", "torch", "onednn"):
        raise ParameterError(f"VIT_VIZ_LINEAR is torch or onednn, not {wanted[:40]!r}.")
    layers = [layer for layer in model.modules() if isinstance(layer, Linear)]
    chosen = False
    if layers:
        largest = max(layers, key=lambda layer: layer.weight.numel())
        if largest.weight.device.type == "cpu" and largest.weight.dtype == torch.float32:
            if wanted == "onednn" and not _has_onednn():
                raise ParameterError(
                    "This build of torch has no oneDNN linear kernel: set VIT_VIZ_LINEAR to torch, or not at all."
                )
            size = largest.out_features, largest.in_features
            chosen = (wanted or _choice(size, torch.get_num_threads())) == "onednn"
    for layer in layers:
        layer.use_onednn = chosen
    _logger.debug("linear kernel: %s", "oneDNN" if chosen else "torch")
    return chosen


def set_linear(model: nn.Module, *, onednn: bool) -> bool:
    """Let all linear layers of `model` use a kernel that was chosen elsewhere, so that numbers are those of then.

    Returns:
        Whether this build of torch has it; where not, nothing is changed.
    """
    if onednn and not _has_onednn():
        return False
    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.use_onednn = onednn
    return True


def _picks_onednn(layer: Linear, x: Tensor) -> bool:
    """The one place where the kernel of a call is decided: what is forced, else what was chosen for its model, where oneDNN can."""
    wanted = layer.use_onednn if _Override.kernel == "auto" else _Override.kernel == "onednn"
    return (
        wanted and x.dtype == torch.float32 and x.device.type == "cpu" and _is_plain(layer.weight, layer.bias)
    )


def _is_plain(weight: Tensor, bias: Tensor | None) -> bool:
    """Whether a call wants nothing that oneDNN's operator lacks: gradients of weights or forward ones, autocast, torch.func."""
    trains = weight.requires_grad or (bias is not None and bias.requires_grad)
    return not (
        (trains and torch.is_grad_enabled())
        or torch.is_autocast_enabled("cpu")
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )


def _has_onednn() -> bool:
    return hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


# --- which one is faster


@lru_cache(maxsize=64)
def _choice(size: tuple[int, int], threads: int) -> str:
    """The kernel, "torch" or "onednn", that this machine chose for layers of a size; chosen now where it has not yet.

    Of processes that choose at the same moment, the first to write decides for all. Where nothing can be kept, this process does.

    Args:
        size: (out_features, in_features).
        threads: that torch computes with.
    """
    if not _has_onednn():
        return "torch"
    machine = (_processor(), torch.backends.cpu.get_cpu_capability(), torch.__version__, threads)
    name = hashlib.sha256(repr((machine, size, _TOKENS, MIN_GAIN)).encode()).hexdigest()[:32]
    try:
        caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    except RuntimeError:  # nobody says where home is
        return _timed(size)
    file = Path(caches) / "vit_viz" / "linear" / name
    return _kept(file) or _keep(file, _timed(size))


def _kept(file: Path) -> str:
    """The choice in a file; "" where there is none that can be read."""
    try:
        content = file.read_bytes().decode("ascii", errors="replace").strip()
    except OSError:
        return ""
    return content if content in ("torch", "onednn") else ""


def _keep(file: Path, chosen: str) -> str:
    """Write a choice, unless another process has; the one that stands."""
    half = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
    with suppress(OSError):  # of a folder that cannot be written to
        file.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(f"{chosen}\n", encoding="ascii")
        try:
            os.link(half, file)  # as a whole, and only where there is none yet
        except FileExistsError:
            if not (other := _kept(file)):
                os.replace(half, file)  # what is there is no choice
            chosen = other or chosen
    with suppress(OSError):
        half.unlink(missing_ok=True)
    return chosen


def _processor() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    names = ("model name", "CPU implementer", "CPU part", "uarch")
    return "; ".join([platform.machine(), *sorted({line for line in lines if line.startswith(names)})])


def _timed(size: tuple[int, int]) -> str:
    return "onednn" if _onednn_gain(size) >= MIN_GAIN else "torch"


@torch.no_grad()
def _onednn_gain(size: tuple[int, int]) -> float:
    """Time of torch's kernel over that of oneDNN's for a layer of this size; 0 where oneDNN cannot be used.

    The best of several interleaved runs, because another process can only slow a run down.
    """
    # the global random state stays as it was
    weight, bias = torch.linspace(-1, 1, size[0] * size[1]).reshape(size) / size[1], torch.zeros(size[0])
    x = torch.linspace(-1, 1, _TOKENS * size[1]).reshape(1, _TOKENS, -1)
    try:
        if not torch.allclose(_onednn(x, weight, bias), F.linear(x, weight, bias), rtol=1e-3, atol=1e-3):
            return 0.0
    except (RuntimeError, NotImplementedError) as error:
        _logger.debug("oneDNN's linear kernel is not available: %s", error)
        return 0.0
    kernels: tuple[Callable[[Tensor, Tensor, Tensor | None], Tensor], ...] = (F.linear, _onednn)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(9):
        for kernel, record in zip(kernels, times, strict=True):
            start = time.perf_counter()
            kernel(x, weight, bias)
            record.append(time.perf_counter() - start)
    return min(times[0]) / min(times[1])
