"""Samplers generate rows under conditions, in blocks, so that the schema's hard rules hold.

    given           every row satisfies conditions on columns
    given_rows      row i contains the known cells of row i of a table
    distribution    the levels of one column have given shares

For `given` and `distribution`, a pilot run first estimates the condition's probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch

from gcvae.arrays import Numbers
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.region import Region
from gcvae.errors import ConditionError, Problem, SettingError, json_pointer
from gcvae.numerics.freed_memory import keep_freed_memory
from gcvae.numerics.generators import generator_for
from gcvae.sampling.conditioning import ConditionedModel
from gcvae.sampling.conditions import Condition, read_condition
from gcvae.sampling.constrained import ConstrainedModel, joined
from gcvae.sampling.dependent_regions import unrounded_columns
from gcvae.sampling.known_cells import KnownRows

SAMPLE_BLOCK_ROWS = 4096
"""Number of rows of a block. Each block has its own random generator, seeded by (seed, block
number)."""
_GOLDEN = 0.6180339887498949
"""Fractional part of the golden ratio: its first n multiples modulo 1 fill (0, 1) evenly for every
n."""
_MOST_OFF = 1e-3
"""Tolerance of the sum of shares, which should be one."""


class Sampler(Protocol):
    """Interface of objects that generate rows under a condition."""

    @property
    def seed(self) -> int:
        """Seed of all draws."""
        ...

    def blocks(self, rows: int, among: range | None = None) -> Iterator[pd.DataFrame]:
        """Yields generated rows in blocks, with cells of the columns' dtypes.

        Args:
            rows: Number of rows of the sample.
            among: Range of the rows to generate, which begins at a block's first row; None
                generates all. A row does not depend on this range.
        """

    def summary(self, rows: int) -> dict[str, Any]:
        """Returns estimates by name, without generating rows.

        `probability` is the probability of the condition under the model. If the condition names
        numbers that are not rounded, it is replaced by `density`. `effective_sample_size` is the
        number of independent rows that would give the same precision as a sample of `rows` rows.
        """


def block_ranges(rows: int, among: range | None) -> Iterator[tuple[int, int]]:
    """Yields (first row, number of rows) of each block; one empty block if there are no rows.

    A block's number determines its random generator, so that every process draws the same rows.

    Args:
        rows: Number of rows of the sample.
        among: Range of the rows to generate, which begins at a block's first row; None generates
            all.
    """
    among = range(rows) if among is None else among
    assert among.start % SAMPLE_BLOCK_ROWS == 0, "a run of rows begins with a block"
    keep_freed_memory()
    for first_row in range(among.start, max(among.stop, among.start + 1), SAMPLE_BLOCK_ROWS):
        yield first_row, min(SAMPLE_BLOCK_ROWS, among.stop - first_row)


def free_blocks(
    constrained: ConstrainedModel, rows: int, seed: int, among: range | None
) -> Iterator[pd.DataFrame]:
    """Yields generated rows without a condition, in blocks. `among` is the range of rows to
    generate, which begins at a block's first row; None generates all `rows`."""
    for first_row, n in block_ranges(rows, among):
        generator = generator_for(seed, "sample", first_row // SAMPLE_BLOCK_ROWS)
        block = constrained.draw(n, SAMPLE_BLOCK_ROWS, generator)
        yield constrained.decode(block, first_row, seed)


def make_sampler(
    constrained: ConstrainedModel,
    seed: int,
    *,
    given: Mapping[str, Any] | None = None,
    given_rows: pd.DataFrame | None = None,
    distribution: Mapping[str, Any] | None = None,
    reveals_probability: bool = True,
) -> Sampler:
    """Returns an object that generates rows under a condition: `given`, `distribution`, both, or
    `given_rows` alone.

    Args:
        given: For each conditioned column, a value, a list of values, or {"min": ..., "max": ...}.
        given_rows: Known cells of each row to generate.
        distribution: Shares of the levels of one column: {column: {level: share}}.
        reveals_probability: Whether the summary and error messages may contain the condition's
            probability. It can disclose a score: the log probability of a condition on all cells
            of a row is the score of the row.

    Raises:
        ConditionError: The condition is malformed, names an unknown column or level, or is too
            improbable under the model.
        TableError: A cell of `given_rows` cannot be read.
    """
    if given is not None and not isinstance(given, Mapping):
        message = f"a condition is no {type(given).__name__}"
        expected = 'the columns and what is known of them, such as {"age": 40}'
        raise ConditionError(Problem(message, "/given", expected=expected))
    if given_rows is not None:
        if given is not None or distribution is not None:
            message = "rows of known cells cannot be joined with another condition"
            raise ConditionError(Problem(message, "/given_rows", expected="one of them"))
        return RowsSampler(KnownRows.read(given_rows, constrained), seed)
    if distribution is not None:
        return SharesSampler.fit(
            constrained, seed, dict(given or {}), distribution, reveals_probability
        )
    return ConditionSampler.fit(constrained, seed, given or {}, reveals_probability)


@dataclass(frozen=True)
class ConditionSampler:
    """Generates rows that all satisfy one condition.

    Attributes:
        constrained: Model with its hard rules.
        seed: Seed of all draws.
        condition: Parsed condition.
        conditioned: Model with the condition, after the pilot run.
        reveals_probability: Whether the summary contains the condition's probability.
    """

    constrained: ConstrainedModel
    seed: int
    condition: Condition
    conditioned: ConditionedModel
    reveals_probability: bool

    @classmethod
    def fit(
        cls,
        constrained: ConstrainedModel,
        seed: int,
        given: Mapping[str, Any],
        reveals_probability: bool,
    ) -> ConditionSampler:
        """Reads the condition and runs the pilot, which estimates its probability. Raises a
        ConditionError if the condition is invalid or too improbable."""
        model = constrained.model
        functions = model.decoder.functions
        condition = read_condition(given, constrained.codec, model.order, functions)
        model, regions = constrained.model, condition.regions
        conditioned = ConditionedModel.fit(
            model,
            regions,
            seed,
            reveals_probability=reveals_probability,
            n_columns=len(given),
            expected=condition.expected,
        )
        return cls(constrained, seed, condition, conditioned, reveals_probability)

    def summary(self, rows: int) -> dict[str, Any]:
        """Returns the effective sample size, and the probability if it may be revealed."""
        name = "density" if self.conditioned.has_density else "probability"
        revealed = (
            {name: math.exp(self.conditioned.log_probability)} if self.reveals_probability else {}
        )
        return revealed | {"effective_sample_size": round(self._effective_rows(rows), 1)}

    def _effective_rows(self, rows: int) -> float:
        return self.conditioned.effective_rows(SAMPLE_BLOCK_ROWS) / SAMPLE_BLOCK_ROWS * rows

    def blocks(self, rows: int, among: range | None = None) -> Iterator[pd.DataFrame]:
        """Yields rows in blocks; the arguments are those of `Sampler.blocks`.

        If the last block is shorter than the others, its rows equal the first rows of a full block.
        This does not hold for tables with a recurring key, such as a customer number, because the
        rows of a block are grouped by key after they are drawn.
        """
        for first_row, n in block_ranges(rows, among):
            generator = generator_for(self.seed, "sample", first_row // SAMPLE_BLOCK_ROWS)
            block = self.draw(n, SAMPLE_BLOCK_ROWS, generator)
            known = self.condition.known.reindex(np.zeros(n, dtype=np.int64)).reset_index(drop=True)
            yield self.constrained.decode(block, first_row, self.seed, self.condition.names, known)

    def draw(self, n: int, block_rows: int, generator: torch.Generator) -> EncodedTable:
        """Draws the first n rows of a block of `block_rows` rows. Raises a HardRuleError if too few
        rows satisfy the hard rules."""
        return self.constrained.draw(n, block_rows, generator, self._drawn)

    def _drawn(self, n: int, generator: torch.Generator) -> EncodedTable:
        codec = self.constrained.codec
        codes, values = self.conditioned.draw(n, generator)
        rows = EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool))
        regions = [r if isinstance(r, Region) else None for r in self.condition.regions]
        rows = codec.with_positions(
            rows, generator, regions, unrounded_columns(self.condition.regions)
        )
        return self.condition.with_drawn_levels(rows, codec, generator)


@dataclass(frozen=True)
class SharesSampler:
    """Generates rows in which the levels of one column have given shares.

    Attributes:
        samplers: One sampler for each of L levels, which generates rows with this level.
        shares: Share of each of the L levels; they add up to one. Shape: (L,).
        seed: Seed of all draws.
    """

    samplers: tuple[ConditionSampler, ...]
    shares: Numbers
    seed: int

    @classmethod
    def fit(
        cls,
        constrained: ConstrainedModel,
        seed: int,
        given: dict[str, Any],
        distribution: Mapping[str, Any],
        reveals_probability: bool,
    ) -> SharesSampler:
        """Makes one sampler for each level with a positive share. Raises a ConditionError if a
        level or share is invalid."""
        name, share_of_level = _read_distribution(distribution, given)
        levels = [level for level, share in share_of_level.items() if share > 0]
        problems: list[Problem] = []
        samplers = []
        for level in levels:
            try:
                each = given | {name: level}
                samplers.append(ConditionSampler.fit(constrained, seed, each, reveals_probability))
            except ConditionError as error:
                problems += [_moved(problem, name, level) for problem in error.problems]
        if problems:
            raise ConditionError(*problems)
        shares = np.array([share_of_level[level] for level in levels])
        return cls(tuple(samplers), shares / shares.sum(), seed)

    def summary(self, rows: int) -> dict[str, Any]:
        """Returns the effective sample size and, if it may be revealed, the probability that a row
        of the model has one of the levels."""
        parts = [sampler.summary(rows) for sampler in self.samplers]
        names = [name for name in parts[0] if name != "effective_sample_size"]
        effective = sum(
            share * part["effective_sample_size"]
            for share, part in zip(self.shares, parts, strict=True)
        )
        totals = {name: sum(part[name] for part in parts) for name in names}
        return totals | {"effective_sample_size": round(float(effective), 1)}

    def blocks(self, rows: int, among: range | None = None) -> Iterator[pd.DataFrame]:
        """Yields rows in blocks.

        The level of a row depends only on its row number and on the shares, so that every part of
        the sample has nearly the given shares.
        """
        sampler = self.samplers[0]
        for first_row, n in block_ranges(rows, among):
            block = self._block(first_row)
            drawn, names = block.take(torch.arange(n)), sampler.condition.names
            yield sampler.constrained.decode(drawn, first_row, self.seed, names)

    def _block(self, first_row: int) -> EncodedTable:
        number = first_row // SAMPLE_BLOCK_ROWS
        u = (0.5 + _GOLDEN * np.arange(first_row, first_row + SAMPLE_BLOCK_ROWS)) % 1.0
        places = np.searchsorted(np.cumsum(self.shares), u, side="right")
        places = places.clip(max=len(self.shares) - 1)
        parts = []
        for level, sampler in enumerate(self.samplers):
            n = int((places == level).sum())
            generator = generator_for(self.seed, "sample", number, level)
            parts.append(sampler.draw(n, n, generator))
        order = np.argsort(np.argsort(places, kind="stable"), kind="stable")
        return joined(parts).take(torch.from_numpy(order))


@dataclass(frozen=True)
class RowsSampler:
    """Generates one completion for each row of a table of known cells.

    Attributes:
        known: Rows with their known cells.
        seed: Seed of all draws.
    """

    known: KnownRows
    seed: int

    def summary(self, rows: int) -> dict[str, Any]:
        """Returns `effective_particles`, the effective sample size of the weighted draws from which
        a row's completion is chosen: the median over the rows of the first block."""
        return {"effective_particles": round(float(self._first[1].median()), 1)}

    def blocks(self, rows: int, among: range | None = None) -> Iterator[pd.DataFrame]:
        """Yields the completed rows in blocks, in order. `among` is the range of rows to complete,
        which begins at a block's first row; None completes all.

        Raises:
            SettingError: `rows` is not the number of rows with known cells.
        """
        if rows != len(self.known):
            expected = f"{len(self.known)}, or leave rows out"
            message = f"rows is {rows}, and {len(self.known)} rows have known cells"
            raise SettingError(Problem(message, "/rows", expected=expected))
        for number in self.known.block_numbers(range(rows) if among is None else among):
            yield (self._first if number == 0 else self._block(number))[0]

    @cached_property
    def _first(self) -> tuple[pd.DataFrame, torch.Tensor]:
        return self._block(0)

    def _block(self, number: int) -> tuple[pd.DataFrame, torch.Tensor]:
        generator = generator_for(self.seed, "given rows", number)
        completed, effective = self.known.complete(number, 1, generator, self.seed)
        return completed, effective


def _read_distribution(
    distribution: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[str, dict[str, float]]:
    """Returns (column, share of each level) of a distribution; raises a ConditionError if it is
    invalid."""
    expected = '{"column": {"level": share, ...}}, the shares adding up to 1'
    if len(distribution) != 1:
        message = f"it names {len(distribution)} columns"
        raise ConditionError(Problem(message, "/distribution", expected=expected))
    [(name, shares)] = distribution.items()
    place = json_pointer("distribution", name)
    if name in given:
        message = "the column is in `given` too"
        raise ConditionError(Problem(message, place, column=name, expected="one of the two"))
    if not isinstance(shares, Mapping) or not shares:
        message = "there are no shares of levels"
        raise ConditionError(Problem(message, place, column=name, expected=expected))
    wrong = [
        Problem(
            f"the share is {share!r}", place + json_pointer(level), expected="a number from 0 to 1"
        )
        for level, share in shares.items()
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1
    ]
    if wrong:
        raise ConditionError(*wrong)
    total = sum(shares.values())
    if abs(total - 1.0) > _MOST_OFF:
        message = f"the shares add up to {total:g}"
        raise ConditionError(Problem(message, place, column=name, expected="1"))
    return name, {str(level): float(share) for level, share in shares.items()}


def _moved(problem: Problem, name: str, level: str) -> Problem:
    place = json_pointer("distribution", name, level)
    return replace(problem, pointer=place, column=name)
