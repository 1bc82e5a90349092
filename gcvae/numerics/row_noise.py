"""Reproducible random numbers for rows, which depend only on a row's key and not on other rows.

The random number with index c of a row is a hash of the row's key and c. Rows may therefore be
computed in any order, repeatedly, and a few samples at a time.

Source: Steele, Lea & Flood 2014 (SplitMix64).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcvae.numerics.permutations import GOLDEN, Numbers, finalised
from gcvae.numerics.seeds import check_seed

N_BITS = 52
"""Number of random bits of a sample (i + 1/2) / 2^52 in (0, 1), with 0 <= i < 2^52."""


@dataclass(frozen=True)
class RowNoise:
    """Reproducible random numbers for n rows, derived from one key for each row, so that a row's
    noise does not depend on batching. Shape: keys (n,), uint64."""

    keys: Numbers

    @classmethod
    def numbered(cls, seed: int, purpose: str, numbers: Iterable[int]) -> RowNoise:
        """Returns the noise of rows whose keys are derived from a seed, a purpose and row numbers;
        noise for different purposes is independent. Raises SettingError if the seed is out of
        range."""
        stream = _number_of(f"{check_seed(seed)}\x1f{purpose}")
        return cls(finalised(np.fromiter(numbers, dtype=np.uint64) * np.uint64(GOLDEN) + stream))

    @classmethod
    def joined(cls, parts: Iterable[RowNoise]) -> RowNoise:
        """Concatenates the noise of several sets of rows, in order."""
        return cls(np.concatenate([part.keys for part in parts]))

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.keys)

    def take(self, rows: Tensor) -> RowNoise:
        """Returns the noise of the rows with these indices."""
        return RowNoise(self.keys[rows.cpu().numpy()])

    def of(self, purpose: str) -> RowNoise:
        """Returns noise of the same rows for another purpose, independent of this noise."""
        return RowNoise(finalised(self.keys ^ _number_of(purpose)))

    def uniform(self, n_draws: int, width: int, first: int = 0) -> Tensor:
        """Returns uniform samples from the open interval (0, 1) for each of n rows.

        Args:
            n_draws: Number of samples S of each row.
            width: Number of values of each sample.
            first: Index of the first sample, so that samples can be computed in parts.

        Shape: (S, n, width), float64.
        """
        places = np.arange(first * width, (first + n_draws) * width, dtype=np.uint64) + np.uint64(1)
        steps = places.reshape(n_draws, 1, width) * np.uint64(GOLDEN)
        bits = finalised(self.keys[:, None] + steps) >> np.uint64(64 - N_BITS)
        return torch.from_numpy((bits.astype(np.float64) + 0.5) * 2.0**-N_BITS)

    def shifted(self, points: Numbers) -> Tensor:
        """Returns quasi-random points, randomised for each of n rows by a digital shift.

        Coordinates of points are given as integers of `N_BITS` bits. The shift combines them with
        random bits of the row by exclusive or. Shape: points (S, n, width) or (S, 1, width) -> (S,
        n, width), float64 in the open unit cube."""
        steps = np.arange(1, points.shape[-1] + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        bits = finalised(self.keys[:, None] + steps) >> np.uint64(64 - N_BITS)
        return torch.from_numpy(((points ^ bits).astype(np.float64) + 0.5) * 2.0**-N_BITS)

    def normal(self, n_draws: int, width: int) -> Tensor:
        """Returns standard normal samples, drawn for each row as by `uniform`. Shape: (n_draws, n,
        width), float64."""
        scores: Tensor = torch.special.ndtri(self.uniform(n_draws, width))
        return scores


def _number_of(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))
