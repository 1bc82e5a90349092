"""The functions between a table's columns of codes that a model keeps, counted in its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

import numpy as np

from gcvae.arrays import Codes
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.encoded_rows import EncodedRows
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import Problem, SchemaError
from gcvae.model.autoregressive import column_order
from gcvae.model.level_functions import (
    LevelFunction,
    order_with_rules,
    sharpest_last,
)
from gcvae.schema.rules import Missingness, Rule
from gcvae.training.assembly import column_shapes
from gcvae.training.settings import TrainingConfig


def is_coded(codec: ColumnCodec) -> bool:
    """Returns whether every cell of the codec's own table is a code: a level, or a number of few
    values."""
    return not codec.is_real or (isinstance(codec, QuantileCodec) and codec.is_discrete)


def keeps_rules(config: TrainingConfig) -> bool:
    """Returns whether a model of this configuration keeps rules of codes: its decoder does."""
    return config.rules != "none" and config.refinement


def kept_functions(rules: Sequence[Rule], config: TrainingConfig) -> list[Rule]:
    """Returns the functions among a schema's rules that a model of this configuration keeps.

    Without rules, or without an autoregressive decoder to keep them, there are none.
    """
    if not keeps_rules(config):
        return []
    return [rule for rule in rules if rule.is_dependency and rule.keep != "off"]


def level_functions(
    codec: TableCodec, rows: EncodedRows, rules: Sequence[Rule], config: TrainingConfig
) -> list[LevelFunction]:
    """Returns the functions among the rules that the model keeps: all of their columns are of
    codes.

    Args:
        codec: Codec of the rows.
        rows: The whole table.
        rules: Rules of its schema.
        config: Settings of the model.

    Raises:
        SchemaError: A function is demanded, or given to a model of rules, that it can not keep.
    """
    rewritten = codec.reduction.owners
    places = {
        column.name: j
        for j, column in enumerate(codec.columns)
        if is_coded(column) and column.name not in rewritten
    }
    kept = [rule for rule in kept_functions(rules, config) if places.keys() >= set(rule.columns)]
    _refuse_to_leave(rules, kept, config)
    counted = (
        _counted(codec, rows, [places[name] for name in (*rule.parents, rule.column)], rule)
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


def _refuse_to_leave(rules: Sequence[Rule], kept: Sequence[Rule], config: TrainingConfig) -> None:
    """Lets rules pass of which every function that is demanded, or given, is kept.

    A model without rules leaves those that are not demanded alone.
    """
    refused = {("hard", "found"), ("hard", "given")}
    refused |= {("soft", "given")} if keeps_rules(config) else set()
    problems = [
        Problem(
            f"the model can not keep it that {rule}",
            f"/rules/{i}",
            column=rule.column,
            expected="columns of levels, or of few distinct numbers that no other rule gives, and a"
            " preset with rules and an autoregressive decoder (default, fast); or the hard rule"
            " combinations(...) of its columns in its place",
        )
        for i, rule in enumerate(rules)
        if rule.is_dependency and (rule.keep, rule.source) in refused and rule not in kept
    ]
    if problems:
        raise SchemaError(*problems)


def _counted(codec: TableCodec, rows: EncodedRows, columns: list[int], rule: Rule) -> LevelFunction:
    """Returns the function of these columns, the dependent one last, in the rows that know them
    all."""
    has_missing = [codec.columns[j].has_missing for j in columns]
    codes = _codes(rows, columns)
    known = codes[(codes >= has_missing).all(axis=1)]
    return LevelFunction.fit(
        columns, known, has_missing=has_missing[-1], is_demanded=rule.keep == "hard"
    )


def _of_blanks(
    codec: TableCodec, rows: EncodedRows, rules: Sequence[Rule], order: Sequence[int]
) -> Iterator[LevelFunction]:
    """Yields the rules of blanks, with those that follow from several: blanks of a date and its
    weight that both follow the blanks of a third column go together, whichever is drawn last.

    Of columns that are blank together each has one with the first of them in the order, and of two
    sets of them the first columns have one.
    """
    asks = np.eye(len(codec.columns), dtype=bool)  # a blank in the line asks for one in the column
    for rule in rules:
        if not isinstance(rule.form, Missingness) or rule.keep == "off":
            continue
        columns = [_first_part(codec, name) for name in (rule.parents[0], rule.column)]
        known = [j for j in columns if j is not None and codec.columns[j].has_missing]
        if len(known) == 2:
            asks[known[0], known[1]] = True
            asks[known[1], known[0]] |= rule.form.is_same
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
    """Returns the number of the column that says whether a written column's cell is blank, if it is
    one."""
    part = codec.reduction.parts_of(name)[0]
    return next((j for j, column in enumerate(codec.columns) if column.name == part), None)


def _codes(rows: EncodedRows, columns: Sequence[int]) -> Codes:
    codes: Codes = rows.codes[:, list(columns)].cpu().numpy().astype(np.int64)
    return codes
