"""Generates several rows from each of many latent vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import HardRuleError
from gcvae.sampling.constrained import MOST_DRAWS, ConstrainedModel, joined

_ROWS_AT_ONCE = 4096
_FEWEST_GROUPS = 100


class LatentGroups(NamedTuple):
    """Rows generated in groups, one group after the other: each from the same latent vector z.

    `n_incomplete` latent vectors were left out because too few of the rows generated from them
    satisfy the hard rules.
    """

    rows: EncodedTable
    n_incomplete: int


def draw_groups(
    model: ConstrainedModel, n_latents: int, rows_per_z: int, generator: torch.Generator
) -> LatentGroups:
    """Generates groups of rows, each from one latent vector z; all rows satisfy the hard rules.

    Let a(z) be the probability that a row generated from z satisfies the hard rules. A z is
    accepted if its first row satisfies them, so z is distributed as in generated rows, in
    proportion to p(z) a(z). Further rows of the group are generated until enough satisfy them.

    Raises:
        HardRuleError: Too few generated rows satisfy the hard rules, or too few latent vectors have
            enough rows after `MOST_DRAWS` tries for each row.
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
            is_kept = torch.from_numpy(satisfied)
            at = some[is_kept]
            table.codes[at], table.values[at] = drawn.codes[is_kept], drawn.values[is_kept]
            is_done[at] = True
    complete = is_done.view(n_latents, rows_per_z).all(1)
    if int(complete.sum()) < _FEWEST_GROUPS:
        raise HardRuleError(
            f"{int(complete.sum())} of {n_latents} draws of z have {rows_per_z} rows that satisfy "
            f"all hard rules in {MOST_DRAWS} tries; a map of its parts needs {_FEWEST_GROUPS}"
        )
    kept = complete.repeat_interleave(rows_per_z).nonzero()[:, 0]
    return LatentGroups(table.take(kept), int((~complete).sum()))


def _accepted_latents(
    model: ConstrainedModel, n: int, generator: torch.Generator
) -> tuple[Tensor, EncodedTable]:
    """Returns n samples of z, each with a generated row that satisfies all hard rules."""
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
