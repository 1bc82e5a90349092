"""Random generators, each a function of a seed and of what it is for."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def generator_for(
    seed: int, *purpose: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Generator of the stream (seed, purpose).

    Streams are addressed, not consumed: step 500 of a training run or block 7 of a sample has the
    same noise whether the process began at 0 or was restarted just before. Nothing of a generator's
    state has to be stored in a checkpoint.
    """
    text = "\x1f".join(map(str, (seed, *purpose)))
    digest = hashlib.sha256(text.encode()).digest()
    return torch.Generator(device=device).manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Standard normal draws in float32. Shape: `shape`, on the generator's device."""
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draws from the open interval (0, 1) in float32. Shape: `shape`.

    float32's grid on [0, 1) has 2^24 points; the half-step keeps both ends out, so that the normal
    score of a draw is finite.
    """
    steps = torch.randint(0, 1 << 23, shape, generator=generator, device=generator.device)
    return (steps.to(torch.float64) + 0.5).div_(1 << 23).to(torch.float32)
