"""Random generators addressed by a seed and a purpose."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

from gcvae.numerics.seeds import check_seed


def generator_for(
    seed: int, *purpose: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Returns the generator of the stream (seed, purpose).

    Streams are addressed instead of consumed: step 500 of a training run, or block 7 of a sample,
    has the same noise whether the process began at 0 or was restarted just before. Checkpoints need
    no generator state.

    Raises:
        SettingError: The seed is negative or too large.
    """
    text = "\x1f".join(map(str, (check_seed(seed), *purpose)))
    digest = hashlib.sha256(text.encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Returns standard normal samples in float32. Shape: `shape`, on the generator's device."""
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Returns uniform samples from the open interval (0, 1). Shape: `shape`.

    Samples lie on a grid with a half-step at each end, so that their normal scores are finite;
    float32 has 2^23 points, float64 has 2^52.
    """
    n_points = 1 << (23 if dtype is torch.float32 else 52)
    steps = torch.randint(0, n_points, shape, generator=generator, device=generator.device)
    return (steps.to(torch.float64) + 0.5).div_(n_points).to(dtype)


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Returns NumPy's generator of the stream (seed, purpose).

    Raises:
        SettingError: As `generator_for`.
    """
    return np.random.default_rng(generator_for(seed, *purpose).initial_seed())
