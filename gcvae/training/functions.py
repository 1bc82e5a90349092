"""The functions between a table's columns of codes, and the pairs of codes that never come along.

Functions are counted in the encoded rows. But an airline does not fly everywhere, and nothing is
paid where the status is unpaid. A network leaves such pairs a little mass each, and all of them
together enough to be seen. How much mass is due to pairs that fewer than two rows of the table
have, the table tells by its pairs of one row and of two (Good 1953). Where the model's own rows
have more, the pairs of two rows and more become a relation of the decoder, which gives all others
that share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt
import torch

from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.encoded_rows import EncodedRows
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import Problem, SchemaError
from gcvae.model.autoregressive import column_order
from gcvae.model.decoders import GenerativeModel
from gcvae.model.level_functions import (
    LevelFunction,
    order_with_rules,
    rows_of_rare_pairs,
    sharpest_last,
)
from gcvae.numerics.generators import generator_for, uniform
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rules import BlanksRule, FunctionRule, Rule
from gcvae.training.assembly import column_shapes
from gcvae.training.settings import TrainingConfig

DRAWN_ROWS = 8_192
_COUNTED_ROWS = 100_000
"""Rows of the table that pairs are looked for in, at most."""
_MOST_COLUMNS = 60
_MOST_NUMBERS = 32
"""Codes of a column of numbers, or of numbers and a few atoms."""
_MOST_RELATIONS = 6
_MOST_COUNTERS = 1_000_000
"""Pairs that have a counter each; of more than these the ones that there are get sorted."""
_MOST_PAIRS = 5_000
_LEAST_EXCESS = 0.003
"""Share of the model's rows with pairs that no row has, beyond what such pairs have."""
_DEVIATIONS = 4.0
_LEAST_TABLE_ROWS = 200

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def is_coded(codec: ColumnCodec) -> bool:
    """Whether every cell of the codec's own table is a code: a level, or a number of few values."""
    return not codec.is_real or (isinstance(codec, QuantileCodec) and codec.is_discrete)


def keeps_rules(config: TrainingConfig) -> bool:
    """Whether a model of this configuration keeps rules of codes: its decoder does."""
    return config.rules != "none" and config.refinement


def kept_functions(rules: Sequence[Rule], config: TrainingConfig) -> list[FunctionRule]:
    """The functions among a schema's rules that a model of this configuration keeps.

    Without rules, or without an autoregressive decoder to keep them, there are none.
    """
    if not keeps_rules(config):
        return []
    return [rule for rule in rules if isinstance(rule, FunctionRule) and rule.keep != "drop"]


def level_functions(
    codec: TableCodec, rows: EncodedRows, rules: Sequence[Rule], config: TrainingConfig
) -> list[LevelFunction]:
    """The functions among the rules that the model keeps: all of their columns are of codes.

    Args:
        codec: Of the rows.
        rows: The whole table.
        rules: Of its schema.
        config: Of the model.

    Raises:
        SchemaError: A function is demanded that the model can not keep.
    """
    rewritten = codec.reduction.owners
    places = {
        column.name: j
        for j, column in enumerate(codec.columns)
        if is_coded(column) and column.name not in rewritten
    }
    kept = [rule for rule in kept_functions(rules, config) if places.keys() >= set(rule.columns)]
    _refuse_to_demand(rules, kept)
    counted = (
        _counted(codec, rows, [places[name] for name in (*rule.of, rule.column)], rule)
        for rule in kept
    )
    found = _that_say_something(counted, codec)
    if keeps_rules(config):
        shapes = column_shapes(codec)
        order = order_with_rules(column_order(shapes), shapes, found)
        blanks = (*_of_blanks(codec, rows, rules, order), *_beside_blank_parents(codec, rows))
        found += _that_say_something(blanks, codec)
    return sharpest_last(found)


def _that_say_something(
    functions: Iterable[LevelFunction], codec: TableCodec
) -> list[LevelFunction]:
    """Those with pairs, between columns that have a choice."""
    return [
        function
        for function in functions
        if len(function.pairs) and all(codec.columns[j].n_codes > 1 for j in function.columns)
    ]


def _refuse_to_demand(rules: Sequence[Rule], kept: Sequence[FunctionRule]) -> None:
    """Lets rules pass of which every function that is demanded is kept."""
    problems = [
        Problem(
            f"the model can not demand that {rule}",
            f"/rules/{i}",
            column=rule.column,
            expected="columns of levels, or of few distinct numbers that no other rule gives, and a"
            " preset with rules and an autoregressive decoder (default, fast); or a constraint of"
            ' kind unique_combinations in its place, and "keep": "model"',
        )
        for i, rule in enumerate(rules)
        if isinstance(rule, FunctionRule) and rule.keep == "demand" and rule not in kept
    ]
    if problems:
        raise SchemaError(*problems)


def _counted(
    codec: TableCodec, rows: EncodedRows, columns: list[int], rule: FunctionRule
) -> LevelFunction:
    """The function of these columns, the dependent one last, in the rows that know them all."""
    has_missing = [codec.columns[j].has_missing for j in columns]
    codes = _codes(rows, columns)
    known = codes[(codes >= has_missing).all(axis=1)]
    return LevelFunction.fit(
        columns, known, has_missing=has_missing[-1], is_demanded=rule.keep == "demand"
    )


def _of_blanks(
    codec: TableCodec, rows: EncodedRows, rules: Sequence[Rule], order: Sequence[int]
) -> Iterator[LevelFunction]:
    """The rules of blanks, with those that follow from several: blanks of a date and its weight
    that both follow the blanks of a third column go together, whichever is drawn last.

    Of columns that are blank together each has one with the first of them in the order, and of two
    sets of them the first columns have one.
    """
    asks = np.eye(len(codec.columns), dtype=bool)  # a blank in the line asks for one in the column
    for rule in rules:
        if not isinstance(rule, BlanksRule) or rule.keep == "drop":
            continue
        columns = [_first_part(codec, name) for name in (rule.of, rule.column)]
        known = [j for j in columns if j is not None and codec.columns[j].has_missing]
        if len(known) == 2:
            asks[known[0], known[1]] = True
            asks[known[1], known[0]] |= rule.relation == "same"
    for j in order:
        asks |= asks[:, [j]] & asks[[j]]
    first = {j: next(i for i in order if asks[i, j] and asks[j, i]) for j in order}
    for a, b in permutations(order, 2):
        is_same = first[a] == first[b]
        if asks[a, b] and first[a] == a and (is_same or first[b] == b):
            yield LevelFunction.of_blanks((a, b), _codes(rows, [a, b]), is_same=is_same)


def _beside_blank_parents(codec: TableCodec, rows: EncodedRows) -> Iterator[LevelFunction]:
    """Which codes residuals have where a parent of theirs is blank: not that of a rule kept."""
    for rewriting in codec.reduction.rewritings:
        y = _first_part(codec, rewriting.column)
        for name in rewriting.parents:
            parent = _first_part(codec, name)
            if y is None or parent is None or not codec.columns[parent].has_missing:
                continue
            codes = _codes(rows, [parent, y])
            yield LevelFunction.of_pairs((parent, y), codes[codes[:, 0] == 0])


def _first_part(codec: TableCodec, name: str) -> int | None:
    """The number of the column that says whether a written column's cell is blank, if it is one."""
    part = codec.reduction.parts_of(name)[0]
    return next((j for j, column in enumerate(codec.columns) if column.name == part), None)


def _codes(rows: EncodedRows, columns: Sequence[int]) -> Codes:
    codes: Codes = rows.codes[:, list(columns)].cpu().numpy().astype(np.int64)
    return codes


@dataclass(frozen=True)
class _Excess:
    """Two columns whose drawn codes come together as no row's do.

    Attributes:
        columns: The earlier in the model's order, then the later.
        share: Of the drawn rows, less what the table lets expect.
        breaking: Those rows. Shape: (DRAWN_ROWS,).
    """

    columns: tuple[int, int]
    share: float
    breaking: Mask


def keep_known_pairs(
    model: GenerativeModel, rows: EncodedRows, codecs: Sequence[ColumnCodec], seed: int
) -> list[LevelFunction]:
    """Adds to a trained autoregressive decoder the relations that its own rows break, in place.

    Args:
        model: With its prior.
        rows: That it was trained on.
        codecs: Of its columns.
        seed: Of the model's own rows.

    Returns:
        The relations, those that are broken most first.
    """
    decoder = model.decoder
    if not decoder.is_autoregressive or len(rows) < _LEAST_TABLE_ROWS:
        return []
    every = max(len(rows) // _COUNTED_ROWS, 1)
    table = rows.codes[::every].cpu().numpy().astype(np.int64)
    drawn, order = _drawn_codes(model, seed)
    left = np.ones(len(drawn), dtype=bool)
    linked = {frozenset(f.columns) for f in decoder.functions if f.blanks is None}
    order = [j for j in order if _has_few_codes(codecs[j])][:_MOST_COLUMNS]
    named = {j for j in order if codecs[j].column.kind.outcomes is Outcomes.NOMINAL_LEVELS}
    pairs = [
        pair
        for pair in combinations(order, 2)
        if named.intersection(pair) and frozenset(pair) not in linked
    ]
    found: list[LevelFunction] = []
    excesses = list(_excesses(table, drawn, pairs, left))
    while excesses and len(found) < _MOST_RELATIONS:
        most = max(excesses, key=lambda excess: excess.share)
        relation = _relation(rows, most.columns, codecs)
        left &= ~most.breaking
        others = [e.columns for e in excesses if e.columns != most.columns]
        if relation is not None:
            found.append(relation)
        excesses = list(_excesses(table, drawn, others, left))
    decoder.add_functions(found)
    return found


def _has_few_codes(codec: ColumnCodec) -> bool:
    """Whether the codes are names, or numbers that are few: numbers near each other are alike."""
    return codec.n_codes > 1 and (not codec.is_real or codec.n_codes <= _MOST_NUMBERS)


def _drawn_codes(model: GenerativeModel, seed: int) -> tuple[Codes, Sequence[int]]:
    """Codes of rows of the model, and the order of its columns. Shape: (DRAWN_ROWS, D)."""
    generator = generator_for(seed, "known pairs")
    with torch.no_grad():
        walk = model.decoder.ordered_walk(model.prior.sample(DRAWN_ROWS, generator))
        assert walk is not None, "the decoder is autoregressive"
        codes = torch.zeros(DRAWN_ROWS, len(walk.order), dtype=torch.int64)
        for j in walk.order:
            noise = uniform((DRAWN_ROWS,), generator, torch.float64)
            cells = walk.column(j).draw(noise)
            walk.step(j, *cells)
            codes[:, j] = cells[0]
    return codes.numpy(), walk.order


def _excesses(
    table: Codes, drawn: Codes, pairs: Sequence[tuple[int, int]], left: Mask
) -> Iterator[_Excess]:
    """The pairs of columns of which the drawn rows that are left break more than they should."""
    n_left = max(int(left.sum()), 1)
    for a, b in pairs:
        width = int(max(table[:, b].max(), drawn[:, b].max())) + 1
        known, counts = _counted_pairs(table[:, a] * width + table[:, b])
        if len(known) > _MOST_PAIRS:
            continue
        usual = known[counts >= 2]
        joint = drawn[:, a] * width + drawn[:, b]
        at = np.minimum(np.searchsorted(usual, joint), len(usual) - 1)
        breaking = (usual[at] != joint) if len(usual) else np.ones(len(joint), dtype=bool)
        n_rare, n = int(rows_of_rare_pairs(counts).sum()), len(table)
        expected = (n_rare + 0.5) / (n + 1.0)
        share = float((breaking & left).sum() / n_left) - expected
        error = np.sqrt(2 * n_rare + 1.0) / n + np.sqrt((expected + max(share, 0.0)) / n_left)
        if share >= max(_LEAST_EXCESS, _DEVIATIONS * error):
            yield _Excess((a, b), share, breaking)


def _counted_pairs(pairs: Codes) -> tuple[Codes, Codes]:
    """The distinct pairs, ascending, and the rows of each. Shape: (n,) -> (m,), (m,)."""
    if pairs.max(initial=0) > _MOST_COUNTERS:
        return np.unique(pairs, return_counts=True)
    counts = np.bincount(pairs)
    known = np.flatnonzero(counts)
    return known, counts[known]


def _relation(
    rows: EncodedRows, columns: tuple[int, int], codecs: Sequence[ColumnCodec]
) -> LevelFunction | None:
    """Which codes of two columns go together in the whole table; None where they say nothing."""
    codes = _codes(rows, columns)
    has_missing = [codecs[j].has_missing for j in columns]
    known = codes[(codes >= has_missing).all(axis=1)]
    relation = LevelFunction.of_pairs(columns, known, has_missing=has_missing[1])
    return relation if len(relation.pairs) else None
