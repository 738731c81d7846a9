"""The random numbers of the checks, always the same, and the photos of noise on which a module is checked.

What is found out is remembered of the module, so it must not depend on the photo that came first: the patches of a black photo are
all the same token, and a photo may itself be noise, of which other noise from the same seed is but a multiple. Of the user's photo
only the range of its numbers is used.
"""

from __future__ import annotations

from vit_viz.lazy import Tensor, torch

_SEED = 2_654_435_769  # far from those that people choose
_LARGEST = 255.0  # of pixels that a module itself scales


def random_numbers(number: int) -> torch.Generator:
    """A generator that always draws the same numbers, others for each `number`."""
    return torch.Generator().manual_seed(_SEED + number)


def photos_of_noise(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Photos to check a module on: one in the range of `pixels`, and a brighter one in case the first shows nothing."""
    return noise_like(pixels, 0), noise_like(torch.full_like(pixels, _LARGEST), 0)


def noise_like(pixels: Tensor, number: int) -> Tensor:
    """Noise of the mean and spread of some pixels, at least from 0 to 1, and of their shape; another for each `number`."""
    exact = pixels.float()
    spread, mean = torch.std_mean(exact, correction=0)
    reach = 3**0.5 * spread  # of evenly spread numbers; a photo of few ends before that
    low = min(0.0, float(torch.maximum(exact.amin(), mean - reach)))
    high = max(1.0, float(torch.minimum(exact.amax(), mean + reach)))
    noise = torch.rand(pixels.shape, generator=random_numbers(number))
    return (low + (high - low) * noise).to(pixels.device, pixels.dtype)
