"""Random generators, each determined by a seed and a purpose."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from gcvae.numerics.row_noise import RowNoise
from gcvae.numerics.seeds import check_seed


def generator_for(
    seed: int, *purpose: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Returns a torch generator that is seeded with a hash of the seed and the purpose.

    Step 500 of a training run, or block 7 of a sample, therefore gets the same random numbers
    whether the process began at 0 or was restarted just before, and checkpoints need no generator
    state.

    Args:
        *purpose: Names and numbers that identify the use, such as `"step", 500`.

    Raises:
        SettingError: The seed is negative or too large.
    """
    text = "\x1f".join(map(str, (check_seed(seed), *purpose)))
    digest = hashlib.sha256(text.encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


@dataclass(frozen=True)
class RowGenerators:
    """One generator for each row of a batch, so that a row's samples do not depend on other rows.

    The first dimension of samples is S times the number of rows; S consecutive samples belong to
    each row.
    """

    of_rows: tuple[torch.Generator, ...]

    @classmethod
    def of_noise(cls, noise: RowNoise) -> Self:
        """Returns a generator for each row, seeded with the row's key in `noise`."""
        seeds = [int(key) >> 1 for key in noise.keys]
        return cls(tuple(torch.Generator().manual_seed(seed) for seed in seeds))

    def take(self, rows: Tensor) -> RowGenerators:
        """Returns the generators of the rows with these indices."""
        return RowGenerators(tuple(self.of_rows[i] for i in rows.tolist()))

    def joined(
        self, shape: tuple[int, ...], draw: Callable[[tuple[int, ...], torch.Generator], Tensor]
    ) -> Tensor:
        """Returns samples of the given shape, made by `draw` with each row's generator."""
        first, *others = shape
        own = (first // len(self.of_rows), *others)
        return torch.cat([draw(own, generator) for generator in self.of_rows])


AnyGenerator = torch.Generator | RowGenerators


def normal(shape: tuple[int, ...], generator: AnyGenerator) -> Tensor:
    """Returns standard normal samples of the given shape, float32 on the generator's device."""
    if isinstance(generator, RowGenerators):
        return generator.joined(shape, normal)
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(
    shape: tuple[int, ...], generator: AnyGenerator, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Returns uniform samples from the open interval (0, 1): (i + 1/2) / m for a random integer i <
    m, so that Phi^-1 of each is finite; m is 2^23 in float32 and 2^52 in float64."""
    if isinstance(generator, RowGenerators):
        return generator.joined(shape, lambda own, each: uniform(own, each, dtype))
    n_points = 1 << (23 if dtype is torch.float32 else 52)
    steps = torch.randint(0, n_points, shape, generator=generator, device=generator.device)
    return (steps.to(torch.float64) + 0.5).div_(n_points).to(dtype)


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Returns a NumPy generator for a seed and a purpose, as `generator_for` does."""
    return np.random.default_rng(generator_for(seed, *purpose).initial_seed())
