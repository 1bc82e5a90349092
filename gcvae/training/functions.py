"""Fits functional dependencies between coded columns to the training table.

A coded column is one in which every cell has an integer code: a level, or one of few numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations

import numpy as np
import pandas as pd

from gcvae.arrays import Codes
from gcvae.codec.column_codec import ColumnCodec
from gcvae.codec.encoded_rows import EncodedRows
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import Problem, SchemaError
from gcvae.expressions.rounded_numbers import FALSE, truths
from gcvae.expressions.terms import Rows, column_values, compile_condition
from gcvae.model.autoregressive import column_order
from gcvae.model.level_functions import (
    LevelFunction,
    by_decreasing_exceptions,
    order_with_rules,
)
from gcvae.schema.columns import TableSchema
from gcvae.schema.rule_documents import is_of_entity, is_of_pair
from gcvae.schema.rules import Condition, Missingness, Rule
from gcvae.training.assembly import column_shapes
from gcvae.training.settings import TrainingConfig


def is_coded(codec: ColumnCodec) -> bool:
    """Returns whether every cell of the column is represented by an integer code, as in columns of
    levels or of few distinct numbers."""
    return not codec.is_real or (isinstance(codec, QuantileCodec) and codec.is_discrete)


def keeps_rules(config: TrainingConfig) -> bool:
    """Returns whether a model with these settings enforces functional dependencies."""
    return config.rules != "none" and config.refinement


def kept_functions(schema: TableSchema, config: TrainingConfig) -> list[Rule]:
    """Returns those rules of a schema that are functional dependencies between modelled columns and
    that a model with these settings enforces."""
    if not keeps_rules(config):
        return []
    return [
        rule
        for rule in schema.rules or ()
        if rule.is_dependency and rule.keep != "off" and not is_of_entity(rule, schema)
    ]


def level_functions(
    codec: TableCodec, rows: EncodedRows, rules: Sequence[Rule], config: TrainingConfig
) -> list[LevelFunction]:
    """Fits the functional dependencies that the decoder enforces between coded columns (those with
    an integer code for each cell), in the order in which it applies them.

    Raises:
        SchemaError: The model cannot enforce a dependency that is a hard rule, or that the user
            specified in the schema.
    """
    rewritten = codec.reduction.owners
    column_index = {
        column.name: j
        for j, column in enumerate(codec.columns)
        if is_coded(column) and column.name not in rewritten
    }
    kept = [
        rule
        for rule in kept_functions(codec.schema, config)
        if column_index.keys() >= set(rule.columns)
    ]
    fitted = (
        _fit_dependency(
            codec, rows, [column_index[name] for name in (*rule.parents, rule.column)], rule
        )
        for rule in kept
    )
    found = _informative(fitted, codec)
    found += _implied(found, codec, rows)
    if keeps_rules(config):
        shapes = column_shapes(codec)
        order = order_with_rules(column_order(shapes), shapes, found)
        conditions = list(_conditions(codec, rows, rules, column_index, order))
        kept += [rule for rule, _ in conditions]
        blanks = (
            *_missingness_functions(codec, rows, rules, order),
            *_residuals_of_missing_parents(codec, rows),
            *(function for _, function in conditions),
        )
        found += _informative(blanks, codec)
    _require_enforced([r for r in rules if not is_of_entity(r, codec.schema)], kept, config)
    return by_decreasing_exceptions(found)


def _implied(
    functions: Sequence[LevelFunction], codec: TableCodec, rows: EncodedRows
) -> list[LevelFunction]:
    """Returns the dependencies that follow from two others, if neither has exceptions.

    For example, a car's number plate determines its model, and the model determines its category;
    then the plate determines the category. Without this third dependency, a decoder that generates
    the category before the model could generate one that contradicts the plate.
    """
    exact = {f.columns: f for f in functions if f.is_exact or f.is_hard}
    found: dict[tuple[int, ...], LevelFunction] = {}
    waiting = list(exact)
    for columns in waiting:
        *parents, column = columns
        for then in exact:
            joint = (*parents, then[-1])
            if then[:-1] != (column,) or then[-1] in parents or joint in exact | found:
                continue
            has_missing = [codec.columns[j].has_missing for j in joint]
            codes = _codes(rows, joint)
            known = codes[(codes >= has_missing).all(axis=1)]
            found[joint] = LevelFunction.fit(joint, known, has_missing=has_missing[-1])
            waiting.append(joint)
    return list(found.values())


def _informative(functions: Iterable[LevelFunction], codec: TableCodec) -> list[LevelFunction]:
    """Returns the dependencies that exclude some combination of codes; others would have no
    effect."""
    return [
        function
        for function in functions
        if len(function.pairs) and all(codec.columns[j].n_codes > 1 for j in function.columns)
    ]


def _require_enforced(rules: Sequence[Rule], kept: Sequence[Rule], config: TrainingConfig) -> None:
    """Checks that `kept`, the rules that the model enforces, contains all that are required.

    Hard functional dependencies are required. Unless the settings turn rules off, two sorts of soft
    rules that the user specified are required too: functional dependencies, and conditions that
    some rows of the table violate.

    Raises:
        SchemaError: `kept` lacks a required rule.
    """
    refused = {("hard", "found"), ("hard", "given")}
    refused |= {("soft", "given")} if keeps_rules(config) else set()
    problems = [
        Problem(
            f"the model cannot keep it that {rule}",
            f"/rules/{i}",
            column=rule.column,
            expected="columns of levels, or of few distinct numbers that no other rule gives, and a"
            " preset with rules and an autoregressive decoder (default, fast); or the hard rule"
            " combinations(...) of its columns in its place",
        )
        for i, rule in enumerate(rules)
        if (rule.keep, rule.source) in refused and rule not in kept
        if rule.is_dependency or (rule.keep == "soft" and _may_be_broken(rule))
    ]
    if problems:
        raise SchemaError(*problems)


def _may_be_broken(rule: Rule) -> bool:
    """Returns whether a rule is a condition that some rows of the table violate."""
    return isinstance(rule.form, Condition) and rule.share != 1.0


def _fit_dependency(
    codec: TableCodec, rows: EncodedRows, columns: list[int], rule: Rule
) -> LevelFunction:
    """Fits a functional dependency to the rows in which none of its columns is missing."""
    has_missing = [codec.columns[j].has_missing for j in columns]
    codes = _codes(rows, columns)
    known = codes[(codes >= has_missing).all(axis=1)]
    return LevelFunction.fit(
        columns, known, has_missing=has_missing[-1], is_hard=rule.keep == "hard"
    )


def _missingness_functions(
    codec: TableCodec, rows: EncodedRows, rules: Sequence[Rule], order: Sequence[int]
) -> Iterator[LevelFunction]:
    """Yields the dependencies "b is missing where a is missing" and "b is missing where a has a
    value", including those that follow from several rules.

    Columns that are missing in the same rows form a group. Each column depends on the first column
    of its group in `order`, and groups depend on each other through their first columns.
    """
    implies = np.eye(len(codec.columns), dtype=bool)  # implies[i, j]: j is missing where i is
    inverse: list[tuple[int, int, bool]] = []
    for rule in rules:
        if not isinstance(rule.form, Missingness) or rule.keep == "off":
            continue
        columns = [_missingness_index(codec, name) for name in (rule.parents[0], rule.column)]
        known = [j for j in columns if j is not None and codec.columns[j].has_missing]
        if len(known) == 2 and rule.form.is_inverse:
            inverse.append((known[0], known[1], rule.form.is_same))
        elif len(known) == 2:
            implies[known[0], known[1]] = True
            implies[known[1], known[0]] |= rule.form.is_same
    for j in order:
        implies |= implies[:, [j]] & implies[[j]]
    first = {j: next(i for i in order if implies[i, j] and implies[j, i]) for j in order}
    for a, b in permutations(order, 2):
        is_same = first[a] == first[b]
        if implies[a, b] and first[a] == a and (is_same or first[b] == b):
            allowed = np.array([[True, False], [not is_same, True]])
            yield LevelFunction.of_classes((a, b), _codes(rows, [a, b]), allowed)
    for a, b, is_same in dict.fromkeys((first[a], first[b], same) for a, b, same in inverse):
        allowed = np.array([[not is_same, True], [True, False]])
        yield LevelFunction.of_classes((a, b), _codes(rows, [a, b]), allowed)


def _conditions(
    codec: TableCodec,
    rows: EncodedRows,
    rules: Sequence[Rule],
    column_index: Mapping[str, int],
    order: Sequence[int],
) -> Iterator[tuple[Rule, LevelFunction]]:
    """Yields each rule that is a condition on the levels or missing cells of two columns, with the
    function that enforces it. `column_index` contains the index of each coded column by name."""
    for rule in rules:
        if rule.keep == "off" or not is_of_pair(rule, codec.schema):
            continue
        assert isinstance(rule.form, Condition), "of a pair"
        of_missing = rule.form.of_missing
        found = {
            j: name
            for name in rule.columns
            for j in [
                _missingness_index(codec, name) if name in of_missing else column_index.get(name)
            ]
            if j is not None and (name not in of_missing or codec.columns[j].has_missing)
        }
        if len(found) < 2:
            continue
        columns = parent, y = sorted(found, key=order.index)
        sizes = [2 if found[j] in of_missing else codec.columns[j].n_codes for j in columns]
        values, said = {}, {}
        for j, codes in zip(columns, np.indices(sizes).reshape(2, -1), strict=True):
            name, blank = found[j], pd.Series([None] * codes.size)
            cells = codec.columns[j].decode(codes, np.full(codes.size, 0.5))
            cells = blank if name in of_missing else cells
            values[name] = column_values(cells, codec.schema[name])
            is_blank = codes == 0 if name in of_missing else cells.isna().to_numpy()
            said[name] = truths(is_blank, True)
        term = compile_condition(rule.form.tree, codec.schema, rule.tables)
        allowed = (term.evaluate(Rows(values, True, said)) != FALSE).reshape(sizes)
        yield rule, LevelFunction.of_classes((parent, y), _codes(rows, columns), allowed)


def _residuals_of_missing_parents(codec: TableCodec, rows: EncodedRows) -> Iterator[LevelFunction]:
    """Yields dependencies of residuals (differences between a column and the formula of its rule):
    one for each residual and each column in its formula that may be missing. In rows in which this
    column is missing, the residual may have only codes that occur in such rows of the table."""
    for rewriting in codec.reduction.rewritings:
        y = _missingness_index(codec, rewriting.column)
        for name in rewriting.parents:
            parent = _missingness_index(codec, name)
            if y is None or parent is None or not codec.columns[parent].has_missing:
                continue
            codes = _codes(rows, [parent, y])
            yield LevelFunction.of_pairs((parent, y), codes[codes[:, 0] == 0])


def _missingness_index(codec: TableCodec, name: str) -> int | None:
    """Returns the index of the encoded column that shows whether a table column's cell is missing;
    None if there is no such column."""
    part = codec.reduction.parts_of(name)[0]
    return next((j for j, column in enumerate(codec.columns) if column.name == part), None)


def _codes(rows: EncodedRows, columns: Sequence[int]) -> Codes:
    codes: Codes = rows.codes[:, list(columns)].cpu().numpy().astype(np.int64)
    return codes
