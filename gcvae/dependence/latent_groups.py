"""Generates several rows for each of many latent vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import HardRuleError
from gcvae.sampling.constrained import MOST_DRAWS, ConstrainedModel, joined

_ROWS_AT_ONCE = 4096
_FEWEST_GROUPS = 100


@dataclass(frozen=True)
class LatentGroups:
    """M groups of n rows; row m n + i is the i-th at the m-th z.

    Attributes:
        n_incomplete: Number of z that were left out because too few of their rows keep the
            hard rules.
    """

    rows: EncodedTable
    rows_per_z: int
    n_incomplete: int


def draw_groups(
    model: ConstrainedModel, n_latents: int, rows_per_z: int, generator: torch.Generator
) -> LatentGroups:
    """Generates groups of rows; under hard rules z ~ p(z) a(z) / a, x ~ p(x | z, ok).

    z is accepted with its first row that keeps all hard rules, so z has the same distribution
    as in generated rows. The expected number of tries for each further row is again 1 / a.

    Raises:
        HardRuleError: More than MOST_DRAWS tries per row are needed, or hardly any z has enough
            rows.
    """
    z, first = _accepted_latents(model, n_latents, generator)
    place = torch.arange(n_latents).repeat_interleave(rows_per_z)
    table = first.take(place)
    is_done = torch.arange(len(place)) % rows_per_z == 0
    for _ in range(MOST_DRAWS):
        waiting = (~is_done).nonzero()[:, 0]
        if not len(waiting):
            break
        for some in waiting.split(_ROWS_AT_ONCE):
            drawn, satisfied = model.draw_at(z[place[some]], generator)
            at = some[torch.from_numpy(satisfied)]
            _put(table, at, drawn.take(torch.from_numpy(np.flatnonzero(satisfied))))
            is_done[at] = True
    complete = is_done.view(n_latents, rows_per_z).all(1)
    if int(complete.sum()) < _FEWEST_GROUPS:
        raise HardRuleError(
            f"{int(complete.sum())} of {n_latents} draws of z have {rows_per_z} rows that satisfy "
            f"all hard rules in {MOST_DRAWS} tries; a map of its parts needs {_FEWEST_GROUPS}"
        )
    kept = complete.repeat_interleave(rows_per_z).nonzero()[:, 0]
    return LatentGroups(table.take(kept), rows_per_z, int((~complete).sum()))


def _accepted_latents(
    model: ConstrainedModel, n: int, generator: torch.Generator
) -> tuple[Tensor, EncodedTable]:
    """Returns n samples of z, each with a row that keeps all hard rules. Shape: (n, K), n
    rows."""
    latents: list[Tensor] = []
    parts: list[EncodedTable] = []
    n_kept, most_rounds = 0, -(-MOST_DRAWS * n // _ROWS_AT_ONCE)
    for _ in range(most_rounds):
        with torch.no_grad():
            z = model.model.latents(_ROWS_AT_ONCE, generator)
        rows, satisfied = model.draw_at(z, generator)
        at = torch.from_numpy(np.flatnonzero(satisfied))
        latents.append(z[at])
        parts.append(rows.take(at))
        n_kept += len(at)
        if n_kept >= n:
            return torch.cat(latents)[:n], joined(parts).take(torch.arange(n))
    raise HardRuleError(
        f"{n_kept} of {most_rounds * _ROWS_AT_ONCE} rows that the model drew satisfy all "
        f"hard rules; a map of its parts needs {n}"
    )


def _put(table: EncodedTable, at: Tensor, rows: EncodedTable) -> None:
    table.codes[at] = rows.codes
    table.values[at] = rows.values


def grouped(scores: NDArray[np.float64], rows_per_z: int) -> NDArray[np.float64]:
    """Reshapes (M n, D) to (M, n, D)."""
    return scores.reshape(-1, rows_per_z, scores.shape[-1])
