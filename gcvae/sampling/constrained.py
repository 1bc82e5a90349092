"""Rejection sampling: rows that violate a hard rule are generated again.

The remaining rows have the distribution p(x) 1[x satisfies all hard rules] / a, where p is the
distribution of the model's rows. The acceptance a is the share of the model's rows that satisfy all
hard rules. It is measured once, after training, on rows that are then discarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import HardRuleError, Problem
from gcvae.model.decoders import Draws, GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.progress import Report, report_to_nobody
from gcvae.sampling.hard_rules import HardRules

MEASURED_ROWS = 10_000
LEAST_ACCEPTANCE = 0.01
"""Minimum acceptance; a training whose model has less raises an error."""
_MORE_OFTEN = (
    f"at least {LEAST_ACCEPTANCE:.0%}: give up the rule, or drop a column that follows from the "
    "others and compute it afterwards"
)
_ANOTHER_CONDITION = "a condition under which the hard rule can hold"
_MOST_DRAWS = 300
"""Maximum number of draws per row of a block: three times what the minimum acceptance needs."""
_FEWEST_ROWS = 64
Source = Callable[[int, torch.Generator], EncodedTable]
"""Function that draws a number of encoded rows with a generator."""


@dataclass(frozen=True)
class Acceptance:
    """Counts of generated rows that satisfy the hard rules; their share is the acceptance.

    Attributes:
        rows: Number of rows drawn; 0 if the acceptance was not measured.
        accepted: Number of rows that satisfy all hard rules.
        kept: Number of rows that satisfy each hard rule.
    """

    rows: int
    accepted: int
    kept: tuple[int, ...]

    @property
    def share(self) -> float:
        """Share of rows that satisfy all hard rules; 1 if it was not measured."""
        return self.accepted / self.rows if self.rows else 1.0

    def to_json(self, pointers: Sequence[str]) -> dict[str, Any]:
        """Returns the acceptance as an entry of the model's training record.

        `pointers` are JSON pointers of the hard rules in the schema. The entry's member
        `log_standard_error` is the standard error of log(a), sqrt((1 - a) / (a n)), where a is the
        share of the n drawn rows that satisfy all hard rules.
        """
        return {
            "rows": self.rows,
            "accepted": self.accepted,
            "share": self.share,
            "log_standard_error": math.sqrt((1.0 - self.share) / self.accepted),
            "rules": [
                {"pointer": pointer, "kept": n, "share": n / self.rows}
                for pointer, n in zip(pointers, self.kept, strict=True)
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Reads the acceptance from a JSON document (`to_json`)."""
        kept = tuple(part["kept"] for part in document["rules"])
        return cls(document["rows"], document["accepted"], kept)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Reads the acceptance from a training record.

        The record of a model without hard rules does not contain it; the result then means that
        nothing was measured and every row is accepted.
        """
        measured = record.get("hard_rule_acceptance")
        return cls(0, 0, ()) if measured is None else cls.from_json(measured)


NOT_MEASURED = Acceptance(0, 0, ())
"""Acceptance of a model without hard rules: every row is accepted."""


@dataclass(frozen=True)
class ConstrainedModel:
    """Generates rows of a model that satisfy all hard rules, by rejecting rows that violate one.

    Attributes:
        model: Trained model.
        codec: Codec of the model's table.
        hard_rules: Rules that rows must satisfy; may be empty.
        acceptance: Measured share of the model's rows that satisfy them.
    """

    model: GenerativeModel
    codec: TableCodec
    hard_rules: HardRules
    acceptance: Acceptance

    def draw(
        self, n: int, block_rows: int, generator: torch.Generator, source: Source | None = None
    ) -> EncodedTable:
        """Draws the first n rows of a block, a run of rows with a random generator of its own; all
        rows satisfy the hard rules.

        Rows are drawn in rounds until n are accepted. The size of a round is the number of draws
        that the complete block is still expected to need. It does not depend on n, so that any n
        gives the same first rows.

        Args:
            n: Number of rows to return.
            block_rows: Number of rows of the complete block, at least n.
            source: Function that draws the rows before rejection; None draws them from the model.

        Raises:
            HardRuleError: The rows need more than `_MOST_DRAWS` draws per row of the block, or none
                of MEASURED_ROWS is accepted.
        """
        kept: list[EncodedTable] = []
        n_kept, n_drawn, size = 0, 0, block_rows
        n_kept_each = np.zeros(len(self.hard_rules), dtype=np.int64)
        while True:
            found = (
                _drawn(self.model, self.codec, size, generator, self._row_draws)
                if source is None
                else source(size, generator)
            )
            if not len(self.hard_rules) and size == block_rows:
                return found.first(n)
            satisfied = self._keeps(found)
            drawn = found.take(torch.from_numpy(np.flatnonzero(satisfied.all(axis=1))))
            kept.append(drawn)
            n_kept, n_drawn = n_kept + len(drawn), n_drawn + size
            n_kept_each += satisfied.sum(axis=0)
            if n_kept >= n:
                return joined(kept).take(torch.arange(n))
            most = _MOST_DRAWS * block_rows
            if n_drawn >= (most if n_kept else min(most, MEASURED_ROWS)):
                measured = Acceptance(n_drawn, n_kept, tuple(n_kept_each.tolist()))
                expected = _MORE_OFTEN if source is None else _ANOTHER_CONDITION
                raise _refusal(n_kept, n_drawn, measured, self.hard_rules, expected)
            needed = math.ceil((block_rows - n_kept) / self.acceptance.share)
            size = min(max(needed, _FEWEST_ROWS), block_rows)

    def decode(
        self,
        rows: EncodedTable,
        first_row: int,
        seed: int,
        conditioned: Iterable[str] = (),
        known: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Decodes generated rows to cells of the columns' dtypes, with identifiers.

        If the table has a recurring key, such as a customer number, rows are grouped into
        customers: all rows of a group have the same number and name. This is only done where it
        violates no hard rule and no condition.

        Args:
            rows: Encoded rows.
            first_row: Number of the first row in the sample.
            seed: Seed of identifiers and personal cells.
            conditioned: Names of the columns with a condition.
            known: Known cells of the rows, which replace decoded ones; None for none.
        """
        together = [rule.columns for rule in self.hard_rules.rules]
        grouping = self.codec.grouping(conditioned, together)
        return self.codec.decode(rows, first_row, seed, known, grouping)

    def draw_at(self, z: Tensor, generator: torch.Generator) -> tuple[EncodedTable, Mask]:
        """Draws a row for each latent vector. Returns (rows, mask of the rows that satisfy all hard
        rules). Shape: z (n, K), K dimensions -> n rows, (n,)."""
        rows = _drawn_at(self.codec, z, generator, self._row_draws)
        return rows, np.logical_and.reduce(self._keeps(rows), axis=1)

    def draw_given(self, context: Tensor, generator: torch.Generator) -> EncodedTable:
        """Draws a row of a model p(row | context) for each of n contexts, such as parent rows.

        A row that violates a hard rule is drawn again with the same context. The encoded context
        has an integer code for each of C columns, then a number for each. Shape: context (n, 2 C)
        -> n rows.

        Raises:
            HardRuleError: No row of _MOST_DRAWS draws with one context satisfies all hard rules.
        """
        open_rows, rows = torch.arange(len(context)), None
        for _ in range(_MOST_DRAWS):
            with torch.no_grad():
                z = self.model.prior.sample(len(open_rows), generator)
            z = torch.cat([z, context[open_rows].to(z)], dim=-1)
            drawn, are_kept = self.draw_at(z, generator)
            rows = drawn if rows is None else rows.with_rows(open_rows, drawn)
            open_rows = open_rows[torch.from_numpy(~are_kept)]
            if not len(open_rows):
                return rows
        satisfied = self._keeps(rows) if rows is not None else np.zeros((0, 0), dtype=bool)
        n_kept = len(context) - len(open_rows)
        measured = Acceptance(len(context), n_kept, tuple(satisfied.sum(axis=0).tolist()))
        raise _refusal(n_kept, len(context), measured, self.hard_rules, _ANOTHER_CONDITION)

    @cached_property
    def _row_draws(self) -> Draws:
        return self.model.decoder.row_draws()

    def allowed(self, frame: pd.DataFrame, *, blanks_unknown: bool) -> Mask:
        """Returns a mask of the rows that satisfy all hard rules. Shape: (n,).

        Args:
            frame: Rows with cells of the columns' dtypes.
            blanks_unknown: Whether missing cells stand for unknown values, which violate no rule;
                else they are known to be missing.
        """
        satisfied = self.hard_rules.kept(frame, blanks_unknown=blanks_unknown)
        return np.logical_and.reduce(satisfied, axis=1)  # type: ignore[no-any-return]

    def _keeps(self, rows: EncodedTable) -> Mask:
        if not len(self.hard_rules):
            return np.ones((len(rows), 0), dtype=bool)
        return self.hard_rules.kept(self.codec.decode(rows))


def measure_acceptance(
    model: GenerativeModel,
    codec: TableCodec,
    hard_rules: HardRules,
    seed: int,
    batch: int,
    report: Report = report_to_nobody,
) -> tuple[Acceptance, pd.DataFrame, Mask]:
    """Draws rows and measures the share that satisfies all hard rules.

    Returns (acceptance, the MEASURED_ROWS rows, mask of the accepted ones). Without hard rules,
    nothing is measured: returns NOT_MEASURED and no rows.

    Args:
        hard_rules: Hard rules; may be empty.
        batch: Number of rows drawn at once.
        report: Receives the fraction that is done.

    Raises:
        HardRuleError: Less than LEAST_ACCEPTANCE of the rows satisfy all hard rules.
    """
    if not len(hard_rules):
        return NOT_MEASURED, pd.DataFrame(), np.zeros(0, dtype=bool)
    generator = generator_for(seed, "hard rule acceptance")
    frames, found, draws = [], [], model.decoder.row_draws()
    for rows in torch.arange(MEASURED_ROWS).split(batch):
        frames.append(codec.decode(_drawn(model, codec, len(rows), generator, draws)))
        found.append(hard_rules.kept(frames[-1]))
        report(sum(map(len, found)) / MEASURED_ROWS)
    satisfied = np.concatenate(found)
    is_kept = np.logical_and.reduce(satisfied, axis=1)
    accepted = int(is_kept.sum())
    counts = tuple(satisfied.sum(axis=0).tolist())
    acceptance = Acceptance(MEASURED_ROWS, accepted, counts)
    if acceptance.share < LEAST_ACCEPTANCE:
        raise _refusal(accepted, MEASURED_ROWS, acceptance, hard_rules, _MORE_OFTEN)
    return acceptance, pd.concat(frames, ignore_index=True), is_kept


def _drawn(
    model: GenerativeModel, codec: TableCodec, n: int, generator: torch.Generator, draws: Draws
) -> EncodedTable:
    with torch.no_grad():
        z = model.latents(n, generator)
    return _drawn_at(codec, z, generator, draws)


def _drawn_at(
    codec: TableCodec, z: Tensor, generator: torch.Generator, draws: Draws
) -> EncodedTable:
    with torch.no_grad():
        codes, values = draws(z, generator)
    rows = EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool))
    return codec.with_positions(rows, generator)


def joined(parts: list[EncodedTable]) -> EncodedTable:
    """Concatenates encoded tables, in order."""

    def together(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    return EncodedTable(together("codes"), together("values"), together("observed"))


def _refusal(
    accepted: int,
    drawn: int,
    measured: Acceptance,
    hard_rules: HardRules,
    expected: str,
) -> HardRuleError:
    """Returns the error for too small an acceptance; it names the rule that is violated most often.
    `expected` tells what the user can change."""
    worst = int(np.argmin(measured.kept))
    share = measured.kept[worst] / measured.rows
    return HardRuleError(
        Problem(
            f"{accepted} of {drawn} rows that the model drew keep all hard rules; the one that "
            f"fails most, {hard_rules.rules[worst]}, is kept by {share:.2%} of "
            "its rows",
            hard_rules.pointers[worst],
            expected=expected,
        )
    )
