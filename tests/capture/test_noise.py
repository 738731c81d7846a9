"""What a check finds out of a module does not depend on the photo that came first: a black one, a grey one, or noise of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import (
    CLASSES,
    COLS,
    DIM,
    HEAD_DIM,
    HEADS,
    PATCH,
    ROWS,
    Attend,
    Block,
    Model as WithPositions,
)
from tests.capture.models import SIZE, lively, pixels
from vit_viz.capture import trace
from vit_viz.capture.noise import noise_like
from vit_viz.capture.placement import UNANSWERED
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

CLASS, NO_CLASS = TokenLayout(grid=(ROWS, COLS)), TokenLayout(grid=(ROWS, COLS), prefix=(), pooling="mean")
SHAPE = (1, 3, *SIZE)


class NoBias(nn.Module):
    """Neither biases nor learned positions: a patch and a multiple of it are the same token, and a black one is none."""

    def __init__(self, *, has_class_token: bool) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH, bias=False)
        self.named = nn.Parameter(torch.randn(1, int(has_class_token), DIM))
        self.qkv = nn.ModuleList([nn.Linear(DIM, 3 * DIM, bias=False) for _ in range(2)])
        self.out = nn.ModuleList([nn.Linear(DIM, DIM, bias=False) for _ in range(2)])
        self.head = nn.Linear(DIM, CLASSES, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.named.expand(len(image), -1, -1), patches], 1)
        places = torch.arange(x.shape[1])[:, None] * torch.arange(1, HEAD_DIM // 2 + 1) / 5
        for qkv, out in zip(self.qkv, self.out, strict=True):
            q, k, v = qkv(F.rms_norm(x, (DIM,))).unflatten(-1, (3, HEADS, HEAD_DIM)).permute(2, 0, 3, 1, 4)
            q, k = turned(q, places), turned(k, places)
            x = x + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x = F.rms_norm(x, (DIM,))
        return self.head(x[:, 0] if self.named.shape[1] else x.mean(1))  # type: ignore[no-any-return]


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """Rotary positions."""
    one, other = x.chunk(2, -1)
    return torch.cat(
        [one * angles.cos() - other * angles.sin(), one * angles.sin() + other * angles.cos()], -1
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], TokenLayout]] = {
    "rotary, class token": (lambda: NoBias(has_class_token=True), CLASS),
    "rotary, mean of the patches": (lambda: NoBias(has_class_token=False), NO_CLASS),
    "learned positions": (lambda: WithPositions([Block(Attend) for _ in range(2)]), CLASS),
}


def randn(seed: int) -> Tensor:
    return torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))


def one_pixel_off() -> Tensor:
    photo = torch.full(SHAPE, 0.45)
    photo[0, 1, 3, 5] = 0.46
    return photo


def half_black() -> Tensor:
    photo = randn(4)
    photo[..., : SIZE[0] // 2, :] = 0
    return photo


PHOTOS: dict[str, Callable[[], Tensor]] = {
    "randn of seed 0": lambda: randn(0),
    "three times that": lambda: 3 * randn(0),
    "255 times that": lambda: 255 * randn(0),
    "zeros": lambda: torch.zeros(SHAPE),
    "all 0.1": lambda: torch.full(SHAPE, 0.1),
    "all -1.7": lambda: torch.full(SHAPE, -1.7),
    "black, normalised": lambda: torch.tensor([-2.1, -2.0, -1.8]).view(1, 3, 1, 1).expand(SHAPE).contiguous(),
    "grey but for one number": one_pixel_off,
    "half black": half_black,
    "the noise of the checks": lambda: noise_like(randn(3), 0),
    "the noise of their changes": lambda: noise_like(randn(3), 1),
    "a multiple of that": lambda: -2 * noise_like(randn(3), 1),
    "that, moved": lambda: noise_like(torch.zeros(SHAPE), 1) + 0.5,
}
CASES = [
    *(
        ("rotary, class token", photo)
        for photo in PHOTOS
        if "black" not in photo and "one number" not in photo
    ),
    *(
        ("rotary, mean of the patches", photo)
        for photo in ("zeros", "black, normalised", "grey but for one number", "half black")
    ),
    *(("learned positions", photo) for photo in ("all 0.1", "255 times that")),
]


@pytest.mark.parametrize(("name", "photo"), CASES)
def test_a_module_is_proven_whichever_photo_came_first(name: str, photo: str) -> None:
    build, layout = MODELS[name]
    module = lively(build())
    for image in (PHOTOS[photo](), pixels()):
        report = trace(module, image, layout=layout).proof_report
        assert (report.status, report.sentence) == ("proven", "")


@pytest.mark.parametrize("photo", ["zeros", "randn of seed 0", "the noise of their changes"])
def test_a_wrong_order_is_refused_whichever_photo_came_first(photo: str) -> None:
    class Turned(NoBias):
        def forward(self, image: Tensor) -> Tensor:
            return super().forward(image.flip(-1, -2))

    module = lively(Turned(has_class_token=True))
    for image in (PHOTOS[photo](), pixels()):
        with pytest.raises(
            CaptureError, match=r"token 1, which would be patch \(0, 0\), answers to patch \(3, 5\)"
        ):
            trace(module, image, layout=CLASS)


class Through(nn.Module):
    """A model that sees something else than the pixels it is given."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = lively(NoBias(has_class_token=True))
        self.change = change

    def forward(self, image: Tensor) -> Tensor:
        return self.inner(self.change(image))  # type: ignore[no-any-return]


def test_what_shows_no_change_is_unknown_and_another_photo_is_asked_anew() -> None:
    coarse = Through(lambda image: (image / 1e4).round())
    for _ in range(2):
        report = trace(coarse, pixels(), layout=CLASS).proof_report
        assert (report.status, report.placed) == ("captured, not proven", UNANSWERED)
        assert (
            report.complete.sentence
            == "Whether information flows as it is drawn could not be checked: the first layer reads the same of different photos."
        )
    assert trace(coarse, 1e5 * pixels(), layout=CLASS).proof_status == "proven"
    assert trace(coarse, pixels(), layout=CLASS).proof_status == "proven"


def test_a_module_that_scales_its_pixels_itself_is_checked_on_brighter_ones() -> None:
    rounding = Through(lambda image: (image / 100).round())
    assert trace(rounding, torch.zeros(SHAPE), layout=CLASS).proof_status == "proven"


def test_patches_that_are_masked_are_no_refusal() -> None:
    mask = torch.ones(SHAPE)
    mask[..., :PATCH, :PATCH] = 0
    masked = Through(lambda image: image * mask)
    report = trace(masked, pixels(), layout=CLASS).proof_report
    assert (report.placed, report.meaning) == (UNANSWERED, "not known")


def test_a_small_head_is_no_window() -> None:
    """Below the rounding of the largest head, changed pixels would move none of its tokens, or some."""
    model = lively(NoBias(has_class_token=True))
    with torch.no_grad():
        for qkv in model.qkv:  # type: ignore[union-attr]
            qkv.weight.view(3, HEADS, HEAD_DIM, DIM)[0, 2] *= 6e-5  # type: ignore[operator, union-attr]
    assert trace(model, pixels(), layout=CLASS).proof_report.placed.status == "holds"


def test_numbers_stay_in_the_range_of_the_photo_and_differ_in_every_patch() -> None:
    for photo, low, high in (
        (255 * torch.rand(SHAPE), 0, 256),
        (randn(5), -2, 2),
        (torch.zeros(SHAPE), 0, 1),
    ):
        noise = noise_like(photo, 0)
        assert low <= float(noise.min()) < float(noise.max()) <= high
        assert len(torch.unique(F.avg_pool2d(noise, PATCH).flatten())) == 3 * ROWS * COLS
        assert torch.equal(noise, noise_like(photo, 0))
        assert not torch.equal(noise, noise_like(photo, 1))
