"""The functions between a table's columns of codes, counted in its encoded rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.encoded_rows import EncodedRows
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import Problem, SchemaError
from gcvae.model.level_functions import LevelFunction
from gcvae.schema.rules import FunctionRule, Rule
from gcvae.training.settings import TrainingConfig


def is_coded(codec: ColumnCodec) -> bool:
    """Whether every cell of the codec's own table is a code: a level, or a number of few values."""
    return not codec.is_real or (isinstance(codec, QuantileCodec) and codec.is_discrete)


def kept_functions(rules: Sequence[Rule], config: TrainingConfig) -> list[FunctionRule]:
    """The functions among a schema's rules that a model of this configuration keeps.

    Without rules, or without an autoregressive decoder to keep them, there are none.
    """
    if config.rules == "none" or not config.refinement:
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
    found = [
        _counted(codec, rows, [places[name] for name in (*rule.of, rule.column)], rule)
        for rule in kept
    ]
    return [function for function in found if len(function.pairs)]


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
    codes = rows.codes[:, columns].cpu().numpy().astype(np.int64)
    known = codes[(codes >= has_missing).all(axis=1)]
    return LevelFunction.fit(
        columns, known, has_missing=has_missing[-1], is_demanded=rule.keep == "demand"
    )
