"""Random generators, each a function of a seed and of what it is for."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

from gcvae.numerics.seeds import check_seed


def generator_for(
    seed: int, *purpose: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Generator of the stream (seed, purpose).

    Streams are addressed, not consumed: step 500 of a training run or block 7 of a sample has the
    same noise whether the process began at 0 or was restarted just before. Nothing of a generator's
    state has to be stored in a checkpoint.

    Raises: SettingError for a seed that is negative or too large.
    """
    text = "\x1f".join(map(str, (check_seed(seed), *purpose)))
    digest = hashlib.sha256(text.encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Standard normal draws in float32. Shape: `shape`, on the generator's device."""
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Draws from the open interval (0, 1). Shape: `shape`.

    A grid with a half-step at each end, so that the normal score of a draw is finite; float32 has
    room for 2^23 points, float64 for 2^52.
    """
    n_points = 1 << (23 if dtype is torch.float32 else 52)
    steps = torch.randint(0, n_points, shape, generator=generator, device=generator.device)
    return (steps.to(torch.float64) + 0.5).div_(n_points).to(dtype)


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """NumPy's generator of the stream (seed, purpose). Raises as `generator_for`."""
    return np.random.default_rng(generator_for(seed, *purpose).initial_seed())
