"""Partly observed rows, which a model completes in blocks such that its hard rules hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask
from gcvae.cells.data_frames import with_columns
from gcvae.cells.distinct_cells import shortened
from gcvae.cells.levels import are_numeric, level_texts, listed_levels
from gcvae.cells.values import in_column_zones, parse_table, refuse_unknown_columns
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import ConditionError, HardRuleError, Problem, TableError
from gcvae.rules.grids import Grid, nearest_on_grid
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.sampling.deductions import determined
from gcvae.sampling.dependent_regions import unrounded_columns
from gcvae.sampling.regions import known_regions
from gcvae.sampling.row_completion import Completions, complete_rows
from gcvae.sampling.target_intervals import rows_of
from gcvae.schema.kinds import Outcomes
from gcvae.schema.suggestions import nearest

BLOCK_ROWS = 512
"""Number of rows of a block. Each block has its own random generator, seeded by (seed, block
number)."""
_MOST_SHOWN = 10
"""Maximum number of rows that an error lists."""
_MOST_ROUNDS = 50
"""Maximum number of times that a completion is drawn, until it satisfies the hard rules."""
_ROUNDS_OF_DEPENDENCIES = 5
"""Number of first rounds that also require functional dependencies without exceptions to hold."""


@dataclass(frozen=True)
class KnownRows:
    """Partly observed rows, which a model completes in blocks so that its hard rules hold.

    Attributes:
        constrained: Model with its hard rules.
        typed: Rows with cells of the columns' dtypes.
        rows: The same rows, encoded; cells that are not `observed` are unknown.
        may_be_missing: Whether an unknown cell may be a missing value; else it is always a value.
        lines: Line number of each row in its file, for error messages; None without a file.
    """

    constrained: ConstrainedModel
    typed: pd.DataFrame
    rows: EncodedTable
    may_be_missing: bool
    lines: tuple[int | None, ...] | None = None

    @classmethod
    def read(cls, frame: pd.DataFrame, constrained: ConstrainedModel) -> KnownRows:
        """Reads rows to be completed; columns may be absent and cells missing.

        A number beyond its column's limits, or with more decimals, is replaced by the nearest
        possible one.

        Raises:
            ConditionError: A known cell is impossible, or violates a hard rule.
            TableError: A cell cannot be parsed, or there are no rows.
            UnknownColumnError: The schema does not contain a column of the frame.
        """
        schema, codec = constrained.codec.schema, constrained.codec
        if not len(frame):
            raise TableError("there are no rows of known cells")
        refuse_unknown_columns(list(frame.columns), schema)
        absent = [c.name for c in schema if c.is_modelled and c.name not in frame]
        whole = with_columns(frame, dict.fromkeys(absent))
        whole.attrs = dict(frame.attrs)
        typed = parse_table(in_column_zones(whole, schema), schema)
        typed = _nearest(typed, codec).reset_index(drop=True)
        numbers = frame.attrs.get("lines")
        lines = None if numbers is None else tuple(numbers[label] for label in frame.index)
        rows = codec.encode(typed, blanks_unknown=True)
        rows = with_missing(codec, rows, constrained.hard_rules.required_missing(typed))
        # Code 0 means missing in known cells; unknown cells have it too.
        observed = rows.observed | _declared_missing(whole, codec)
        rows = EncodedTable(rows.codes, rows.values, observed)
        known = cls(constrained, typed, rows, may_be_missing=True, lines=lines)
        known._check(whole)
        return known

    @classmethod
    def with_blanks(
        cls,
        typed: pd.DataFrame,
        constrained: ConstrainedModel,
        kept: Collection[str],
        context: Tensor | None = None,
        missing: Mapping[str, Mask] | None = None,
    ) -> KnownRows:
        """Reads rows whose missing cells are to be filled with values, except those of the `kept`
        columns, which are known to be missing.

        Cells that must be missing by a rule, such as `is_missing(refund) if status != 'returned'`,
        are also known to be missing; if the status is unknown too, both are drawn. Cells that
        formulas determine from known cells count as known. A known cell of probability 0 under the
        model is ignored when other cells are drawn.

        Args:
            typed: Rows with cells of the columns' dtypes.
            kept: Names of the columns whose missing cells are known to be missing.
            context: Encoded context of each row of a conditional model: C codes, then C values.
                None for other models. Shape: (n, 2 C), C context columns.
            missing: By column, a mask of further cells known to be missing. Shape: (n,) each.
        """
        typed, codec = typed.reset_index(drop=True), constrained.codec
        own = {codec.copies.get(name, name) for name in kept}
        blanks = dict(constrained.hard_rules.required_missing(typed))
        for name, mask in (missing or {}).items():
            blanks[name] = blanks.get(name, False) | mask
        barred = blanks | {name: np.ones(len(typed), dtype=bool) for name in own.union(kept)}
        typed = determined(codec, typed, barred)
        rows = codec.encode(typed, blanks_unknown=True)
        are_kept = torch.tensor([c.has_missing and c.name in own for c in codec.columns])
        are_kept = are_kept.repeat(len(rows), 1)
        rows = with_missing(codec, rows, blanks)
        are_blank = ~rows.observed & ~codec.hidden_cells(rows)
        observed = (rows.observed & (rows.codes >= 0)) | (are_blank & are_kept)
        rows = EncodedTable(rows.codes, rows.values, observed, context=context)
        return cls(constrained, typed, rows, False)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.rows)

    @property
    def n_blocks(self) -> int:
        """Number of blocks of BLOCK_ROWS rows, of which the last may be shorter."""
        return -(-len(self) // BLOCK_ROWS)

    def block_numbers(self, among: range) -> range:
        """Returns the indices of the blocks that contain the rows in `among`, a range that begins
        at a block's first row."""
        assert among.start % BLOCK_ROWS == 0, "a run of rows begins with a block"
        return range(among.start // BLOCK_ROWS, -(-among.stop // BLOCK_ROWS))

    def rows_of(self, number: int) -> slice:
        """Returns the range of rows of the block with index `number`, as a slice."""
        return slice(number * BLOCK_ROWS, min((number + 1) * BLOCK_ROWS, len(self)))

    def complete(
        self, number: int, n_outputs: int, generator: torch.Generator, seed: int
    ) -> tuple[pd.DataFrame, Tensor]:
        """Returns (completed rows of a block, effective sample size of each row).

        The completions of a row are chosen from weighted draws and are consecutive. `generator`
        draws all cells except identifiers, which `seed` and the row number determine. Shape: n *
        n_outputs rows, (n,), for n rows of the block.

        Args:
            number: Number of the block.
            n_outputs: Number of completions of each row.

        Raises:
            HardRuleError: No completion of a row satisfies the hard rules.
            ConditionError: No completion contains all known cells of its row.
        """
        at = self.rows_of(number)
        index = torch.arange(at.start, at.stop)
        typed, rows = self.typed.iloc[at].reset_index(drop=True), self.rows.take(index)
        held = torch.from_numpy(self.constrained.allowed(typed, blanks_unknown=True).copy())
        codec = self.constrained.codec
        hard_rules = self.constrained.hard_rules
        open_blanks = {} if self.may_be_missing else hard_rules.possible_blanks(typed)
        open_blanks = {name: mask & held.numpy() for name, mask in open_blanks.items()}
        regions = known_regions(
            codec,
            typed,
            rows,
            self.constrained.model.order,
            may_be_missing=self.may_be_missing,
            open_blanks=open_blanks,
            impossible=hard_rules.impossible_levels(typed),
        )
        # The numbers of rows from `read` lie within the columns' limits.
        numbers = typed[[] if self.may_be_missing else _numeric(codec)]
        pending = torch.arange(len(rows))
        codes = torch.zeros(len(rows), n_outputs, rows.codes.shape[1], dtype=torch.int32)
        values = torch.zeros(codes.shape, dtype=torch.float64)
        is_open = torch.ones(len(rows), n_outputs, dtype=torch.bool)
        effective = torch.zeros(len(rows), dtype=torch.float64)
        for round_number in range(_MOST_ROUNDS):
            drawn = complete_rows(
                self.constrained.model,
                [None if region is None else region.take(pending) for region in regions],
                rows.take(pending),
                n_outputs,
                generator,
            )
            found = self._positioned(
                drawn, rows.take(pending), generator, unrounded_columns(regions)
            )
            of_drawn = pending.repeat_interleave(n_outputs).numpy()
            open_cells = {name: mask[of_drawn] for name, mask in open_blanks.items()}
            good = self._satisfied(found, rows_of(numbers, of_drawn), open_cells)
            good = good.view(len(pending), n_outputs) | ~held[pending, None]
            if round_number < _ROUNDS_OF_DEPENDENCIES:
                kept = self._keep_dependencies(found, rows.observed[of_drawn])
                good &= kept.view(len(pending), n_outputs)
            taken = is_open[pending] & good
            shape = (len(pending), n_outputs, -1)
            codes[pending] = torch.where(taken[..., None], found.codes.view(shape), codes[pending])
            values[pending] = torch.where(
                taken[..., None], found.values.view(shape), values[pending]
            )
            effective[pending] = drawn.effective
            is_open[pending] &= ~taken
            pending = is_open.any(1).nonzero()[:, 0]
            if not len(pending):
                break
        else:
            never = np.zeros(len(self), dtype=bool)
            never[at.start + pending.numpy()] = True
            message = "no completion of the row keeps the hard rules"
            raise HardRuleError(self._problem(never, message))
        everything = torch.ones_like(codes, dtype=torch.bool)
        table = EncodedTable(codes.flatten(0, 1), values.flatten(0, 1), everything.flatten(0, 1))
        known = rows_of(numbers, np.arange(len(rows)).repeat(n_outputs))
        completed = codec.decode(table, at.start * n_outputs, seed, known)
        if self.may_be_missing:
            self._check_kept(completed, at.start, effective)
        return completed, effective

    def _positioned(
        self,
        drawn: Completions,
        rows: EncodedTable,
        generator: torch.Generator,
        exact: Collection[str],
    ) -> EncodedTable:
        """Converts completions to encoded rows: draws a level where several share a code, and
        restores known cells. Numbers of the columns `exact` are not rounded. Shape: (n, O, D) -> (n
        O, D)."""
        codes, values = drawn.codes, drawn.values
        n_outputs = codes.shape[1]
        table = EncodedTable(
            codes.flatten(0, 1),
            values.flatten(0, 1),
            torch.ones_like(codes, dtype=torch.bool).flatten(0, 1),
        )
        table = self.constrained.codec.with_positions(table, generator, exact=exact)
        known = rows.observed.repeat_interleave(n_outputs, 0)
        own = rows.values.repeat_interleave(n_outputs, 0)
        return EncodedTable(table.codes, torch.where(known, own, table.values), table.observed)

    def _satisfied(
        self, table: EncodedTable, known: pd.DataFrame, open_cells: Mapping[str, Mask]
    ) -> Tensor:
        """Returns a mask of the completed rows that satisfy the hard rules and in which no cell of
        the masks `open_cells` is missing unless a rule requires it. `known` are known numbers and
        dates, which replace decoded ones. Shape: (n,)."""
        hard_rules = self.constrained.hard_rules
        if not len(hard_rules) and not open_cells:
            return torch.ones(len(table), dtype=torch.bool)
        completed = self.constrained.codec.decode(table, known=known)
        satisfied = self.constrained.allowed(completed, blanks_unknown=False)
        certain = hard_rules.required_missing(completed) if open_cells else {}
        for name, is_open in open_cells.items():
            has_to_be = certain.get(name, np.zeros(len(completed), dtype=bool))
            satisfied = satisfied & ~(is_open & completed[name].isna().to_numpy() & ~has_to_be)
        return torch.from_numpy(satisfied)

    def _keep_dependencies(self, table: EncodedTable, known: Tensor) -> Tensor:
        """Returns a mask of the completed rows whose drawn cells satisfy the functional
        dependencies without exceptions in training. The decoder gives exceptions a small
        probability, which other known cells may increase. Shape: (n,)."""
        codec, kept = self.constrained.codec, np.ones(len(table), dtype=bool)
        exact = {
            (*rule.parents, rule.column)
            for rule in codec.schema.rules or ()
            if rule.is_dependency and rule.share == 1.0
        }
        for function in self.constrained.model.decoder.functions:
            columns = list(function.columns)
            if tuple(codec.columns[j].name for j in columns) not in exact:
                continue
            sizes = [codec.columns[j].n_codes for j in columns]
            codes = table.codes[:, columns].numpy().T
            pairs = function.pairs.T
            has_values = np.isin(
                np.ravel_multi_index(tuple(codes[:-1]), sizes[:-1]),
                np.ravel_multi_index(tuple(pairs[:-1]), sizes[:-1]),
            ) & (codes[-1] >= function.has_missing)
            is_listed = np.isin(
                np.ravel_multi_index(tuple(codes), sizes),
                np.ravel_multi_index(tuple(pairs), sizes),
            )
            is_drawn = ~known[:, columns].all(dim=1).numpy()
            kept &= is_listed | ~(is_drawn & has_values)
        return torch.from_numpy(kept)

    def _check(self, written: pd.DataFrame) -> None:
        """Checks that the model can generate the known cells; `written` has their original form."""
        problems = [*self._made_up(), *self._impossible(written)]
        for copy, differ in self.constrained.codec.differing_copies(self.typed).items():
            if differ.any():
                source = self.constrained.codec.copies[copy]
                message = (
                    f"columns {copy!r} and {source!r} differ; they are equal in every row of the "
                    "training table"
                )
                problems.append(self._problem(differ, message))
        hard_rules = self.constrained.hard_rules
        broken = ~hard_rules.kept(self.typed, blanks_unknown=True)
        problems += [
            self._problem(broken[:, i], f"the known cells break a hard rule: {rule}")
            for i, rule in enumerate(hard_rules.rules)
            if broken[:, i].any()
        ]
        if problems:
            raise ConditionError(*problems)

    def _check_kept(self, completed: pd.DataFrame, first: int, effective: Tensor) -> None:
        """Checks that the completions of a block, which begins at row `first`, contain the known
        cells. Rows whose known cells the model's rules exclude have an effective sample size
        (`effective`) of 0."""
        problems = []
        n_outputs = len(completed) // max(len(effective), 1)
        lost = (effective == 0.0).nonzero()[:, 0].numpy()
        rewritings = self.constrained.codec.reduction.rewritings
        for rewriting in rewritings if len(lost) else ():
            differ = np.zeros(len(self), dtype=bool)
            for name in (rewriting.column, *rewriting.parents):
                own = self.typed[name].iloc[first + lost.repeat(n_outputs)].reset_index(drop=True)
                at = (lost[:, None] * n_outputs + np.arange(n_outputs)).ravel()
                found = completed[name].iloc[at].reset_index(drop=True)
                known = own.notna().to_numpy()
                wrong = np.zeros(len(own), dtype=bool)
                if known.any():
                    wrong[known] = _differ(own[known], found[known])
                differ[first + lost] |= wrong.reshape(-1, n_outputs).any(axis=1)
            if differ.any():
                message = f"no row of the model is found that has its known cells: {rewriting}"
                problems.append(self._problem(differ, message, column=rewriting.column))
        if problems:
            raise ConditionError(*problems)

    def _made_up(self) -> list[Problem]:
        schema = self.constrained.codec.schema
        message = "identifiers are generated and cannot be known"
        return [
            Problem(message, column=column.name, expected="a table without the column")
            for column in schema
            if column.kind.outcomes is Outcomes.KEYS
            and column.name in self.typed
            and self.typed[column.name].notna().any()
        ]

    def _impossible(self, written: pd.DataFrame) -> list[Problem]:
        """Returns a problem for each cell value that the model does not contain, at most ten of a
        column; an unknown level has the most similar known one as suggestion."""
        problems, codec = [], self.constrained.codec
        are_hidden = codec.hidden_cells(self.rows)
        are_unseen = are_hidden | (self.rows.observed & (self.rows.codes < 0))
        for j, column in enumerate(codec.columns):
            rewriting = codec.reduction.rewritten.get(column.name)
            original = codec.schema[column.name] if rewriting is not None else column.column
            is_unseen = are_unseen[:, j].numpy().copy()
            if rewriting is not None and original.levels and column.name in self.typed:
                cells = self.typed[column.name]
                is_unseen |= (cells.notna() & ~cells.isin(original.typed_levels)).to_numpy()
            rows = np.flatnonzero(is_unseen).tolist()
            sources = [column.name, *(c for c, s in codec.copies.items() if s == column.name)]
            rows_of: dict[str, list[int]] = {}
            for row in rows:
                own = next(n for n in sources if pd.notna(self.typed[n].iloc[row]))
                rows_of.setdefault(str(written[own].iloc[row]), []).append(row)
            for cell, same in list(rows_of.items())[:_MOST_SHOWN]:
                message = f"{shortened(cell)} is no level of the column"
                place: dict[str, Any] = {}
                value = self.typed[column.name].iloc[same[0]]
                is_new = bool(original.levels) and value not in original.typed_levels
                if rewriting is not None and not is_new:
                    rule = f"a rule that every row of the training table keeps: {rewriting}"
                    message = f"{shortened(cell)} breaks {rule}"
                else:
                    if are_hidden[same[0], j]:
                        message += " in the model, which has no levels of few rows"
                    place = {"expected": listed_levels(original, value)}
                    if not are_numeric(original.levels or ()):
                        place["suggestion"] = nearest(cell, level_texts(original))
                wrong = np.isin(np.arange(len(self)), same)
                problems.append(self._problem(wrong, message, column=column.name, **place))
        return problems

    def _problem(self, wrong: Mask, message: str, **place: Any) -> Problem:
        """Returns one problem for all rows of the mask `wrong`, placed at the first of them, by its
        line or index; the message lists the others."""
        rows = np.flatnonzero(wrong).tolist()
        places = rows if self.lines is None else [self.lines[row] for row in rows]
        if len(places) > 1:
            shown = ", ".join(map(str, places[1:_MOST_SHOWN]))
            more = f", ... ({len(places):,} in all)" if len(places) > _MOST_SHOWN else ""
            message = f"{message}; the same at {shown}{more}"
        row, line = (places[0], None) if self.lines is None else (None, places[0])
        return Problem(message, row=row, line=line, **place)


def _numeric(codec: TableCodec) -> list[str]:
    """Returns the columns whose known cells may lie beyond the training table's range."""
    return [c.name for c in codec.schema if c.is_modelled and Grid.of(c) is not None]


def with_missing(
    codec: TableCodec, rows: EncodedTable, missing: Mapping[str, Mask]
) -> EncodedTable:
    """Returns partly observed rows after marking some unknown cells as known to be missing.

    Args:
        rows: n encoded rows.
        missing: By column, the mask of the cells to mark. Shape: (n,) each.
    """
    observed = rows.observed.clone()
    for j, column in enumerate(codec.columns):
        if column.has_missing and column.name in missing:
            observed[:, j] |= torch.from_numpy(missing[column.name])
    return replace(rows, observed=observed)


def _nearest(typed: pd.DataFrame, codec: TableCodec) -> pd.DataFrame:
    """Clips and rounds numbers and dates to the columns' limits and decimals."""
    codecs = {column.name: column for column in codec.columns if column.is_real}
    columns = codecs | {c: codecs[s] for c, s in codec.copies.items() if s in codecs}
    columns = {name: column for name, column in columns.items() if name in typed}
    near = {}
    for name, column in columns.items():
        own = typed[name]
        if name in codec.reduction.rewritten:
            back = nearest_on_grid(own, codec.schema[name])
        else:
            codes, values = column.encode(own)
            back = column.decode(codes.astype(np.int64), values).set_axis(own.index)
        differ = own.notna().to_numpy()
        if differ.any():
            differ = differ.copy()
            differ[differ] = _differ(own[differ], back[differ])
        near[name] = own.mask(differ, back)
    return with_columns(typed, near)


def _declared_missing(frame: pd.DataFrame, codec: TableCodec) -> Tensor:
    """Returns a mask of the cells that a text such as "none" declares missing, in columns with
    `missing.is_value`; empty cells are unknown. Shape: (n, D)."""
    found = torch.zeros(len(frame), len(codec.columns), dtype=torch.bool)
    for column in codec.schema:
        words = [text for text in column.missing.markers if text.strip()]
        if not column.missing.is_value or not words or column.name not in frame:
            continue
        is_word = torch.from_numpy(frame[column.name].astype(str).isin(words).to_numpy().copy())
        name = codec.copies.get(column.name, column.name)
        for part in codec.reduction.parts_of(name):
            at = codec.places.get(part)
            if at is not None and codec.columns[at].has_missing:
                found[:, at] |= is_word
    return found


def _differ(own: pd.Series[Any], other: pd.Series[Any]) -> Mask:
    """Returns a mask of the cells that differ by more than the rounding errors of encoding."""
    if own.dtype.kind == "f" and other.dtype.kind == "f":
        return ~np.isclose(own, other, rtol=1e-9, atol=1e-9 * float(other.abs().max() or 0.0))
    return (own != other).fillna(False).to_numpy(dtype=bool)
