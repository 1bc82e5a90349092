"""Random numbers of rows: one stream for all rows together, or one for each row of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcvae.numerics.generators import normal, uniform


@dataclass(frozen=True)
class RowStreams:
    """A generator for each row: its numbers do not depend on which rows stand beside it."""

    generators: Sequence[torch.Generator]

    def take(self, rows: Tensor) -> RowStreams:
        """The streams of the rows of these numbers."""
        return RowStreams([self.generators[i] for i in rows.tolist()])


Streams = torch.Generator | RowStreams


def streams_of(streams: Streams, rows: Tensor) -> Streams:
    """What the rows of these numbers draw from."""
    return streams.take(rows) if isinstance(streams, RowStreams) else streams


def normal_of_rows(n_draws: int, n_rows: int, width: int, streams: Streams) -> Tensor:
    """Standard normal draws. Shape: (S, n, `width`)."""
    if isinstance(streams, torch.Generator):
        return normal((n_draws, n_rows, width), streams)
    return torch.stack([normal((n_draws, width), own) for own in streams.generators], 1)


def uniform_of_rows(
    n_draws: int,
    n_rows: int,
    width: int,
    streams: Streams,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Draws from (0, 1); of a row the same in one call or in several. Shape: (S, n, `width`)."""
    if isinstance(streams, torch.Generator):
        return uniform((n_draws, n_rows, width), streams, dtype)
    return torch.stack([uniform((n_draws, width), own, dtype) for own in streams.generators], 1)
