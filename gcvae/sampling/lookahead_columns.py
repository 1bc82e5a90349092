"""Finds the columns that are drawn in view of conditions on later columns (lookahead)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gcvae.codec.region import Region
from gcvae.model.decoders import GenerativeModel
from gcvae.model.level_functions import LevelFunction
from gcvae.sampling.dependent_regions import RegionsByRow
from gcvae.sampling.lookahead import Dependency, LookaheadRegion
from gcvae.sampling.solved_regions import ProposalRegion


def lookahead_regions(
    model: GenerativeModel, order: Sequence[int] | None, regions: Sequence[object]
) -> dict[int, LookaheadRegion | RegionsByRow]:
    """Returns the sets of possible cells (regions), by column index, of the columns that are drawn
    with lookahead: in view of conditions on later columns.

    These columns share a functional dependency with a conditioned column and are generated before
    it. In rows in which a rule restricts such a column, it keeps its region without lookahead.

    Args:
        order: Order in which the decoder generates the columns; None gives no regions.
        regions: Region of each column without lookahead.
    """
    found: dict[int, LookaheadRegion] = {}
    if order is None:
        return {}
    rank = {j: place for place, j in enumerate(order)}
    for function in model.decoder.functions:
        columns = function.columns
        for at, j in enumerate(columns):
            n_codes = model.marginals.columns[j].n_codes
            possible = {
                i: _possible(function, i, mask)
                for i, k in enumerate(columns)
                if rank[k] > rank[j] and (mask := _possible_codes(regions[k])) is not None
            }
            if possible:
                pairs = torch.from_numpy(function.pairs_by_code(at, n_codes))
                earlier = tuple(i for i, k in enumerate(columns) if rank[k] < rank[j])
                own = _without_rules(regions[j]) or Region.everything(n_codes)
                of_column = found.get(j, LookaheadRegion(own, ()))
                dependency = Dependency(function, pairs, at, earlier, possible)
                found[j] = replace(of_column, dependencies=(*of_column.dependencies, dependency))
    return {
        j: replace(rules, default_region=region)
        if isinstance(rules := regions[j], RegionsByRow)
        else region
        for j, region in found.items()
    }


def _without_rules(region: object) -> Region | None:
    """Returns a column's region in the rows in which no rule restricts it; None if any cell is
    possible there."""
    default_region = region.default_region if isinstance(region, RegionsByRow) else region
    return default_region if isinstance(default_region, Region) else None


def _possible_codes(region: object) -> Tensor | None:
    """Returns a mask of the codes that the column's condition allows. In rows in which known cells
    alone determine the solutions of a rule, only the solutions are marked. None if any cell is
    possible. Shape: (n, K), or (1, K) for all rows alike."""
    default_region = _without_rules(region)
    found = None if default_region is None else ~torch.isneginf(default_region.log_share)
    for solved in reversed(region.regions if isinstance(region, RegionsByRow) else ()):
        fixed = solved.fixed_codes() if isinstance(solved, ProposalRegion) else None
        if fixed is not None:
            is_fixed = torch.from_numpy(solved.is_restricted)[:, None]
            found = torch.where(is_fixed, fixed, torch.tensor(True) if found is None else found)
    return found


def _possible(function: LevelFunction, at: int, codes: Tensor) -> Tensor:
    """Converts a mask of the possible codes of a column to the codes of a functional dependency.
    If it only distinguishes missing from present cells, these are 0 for missing and 1 for present;
    else the mask is unchanged. Shape: (n, K) for K codes -> (n, 2) or (n, K)."""
    if function.class_counts is None or function.class_counts.shape[at] == codes.shape[-1]:
        return codes
    return torch.stack([codes[:, 0], codes[:, 1:].any(-1)], dim=-1)
