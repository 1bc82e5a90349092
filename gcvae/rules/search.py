"""The rules of a table: looked for in a sample of its rows, measured in all of them.

Half of the sample finds a rule, the other half judges it: it has to hold in nearly all of those
rows, and to say more of them than one of so many rules says by chance. The kinds of rules take
turns, the most telling first, and a rule is taken where it goes with those that are: a column is
rewritten by one rule, and no column depends on itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gcvae.arrays import Mask
from gcvae.expressions.terms import compile_condition
from gcvae.files.typed_columns import TypedTable, row_chunks, value_codes
from gcvae.progress import Report, report_to_nobody
from gcvae.rules.predictions import Prediction, keeps
from gcvae.rules.row_sample import Candidate, RowSample
from gcvae.rules.search_blanks import find_blanks
from gcvae.rules.search_dates import find_clocks, find_date_parts, find_spans
from gcvae.rules.search_equalities import find_equalities
from gcvae.rules.search_features import find_features
from gcvae.rules.search_formulas import find_formulas
from gcvae.rules.search_functions import find_functions, joint_codes, most_frequent_codes
from gcvae.rules.search_orders import find_orders
from gcvae.schema.columns import TableSchema
from gcvae.schema.constraints import formula_texts
from gcvae.schema.rule_documents import parents_of, rule_problems
from gcvae.schema.rules import Condition, Formula, Missingness, Rule

MOST_EXCEPTIONS = 10
_LEAST_SHARE = 0.85
"""Of all rows; in the sample a rule had to hold in more of them ..."""
_MOST_OF_SAMPLE = 0.8
"""... and one that holds in a share of the rows, in nearly that share."""


@dataclass(frozen=True)
class RuleFinding:
    """A rule, and the rows of a table that keep it.

    Attributes:
        rule: With the share of rows that keep it.
        kept: Rows that keep it.
        rows: Rows in which all its columns are known; of blanks, in which a cell is blank that asks
            for another.
        exceptions: Numbers of the first rows that break it, counted from 0; at most ten.
    """

    rule: Rule
    kept: int
    rows: int
    exceptions: tuple[int, ...]


def find_rules(
    table: TypedTable, schema: TableSchema, report: Report = report_to_nobody
) -> list[RuleFinding]:
    """Returns the rules that hold in most rows of a typed table, those that rewrite columns first.

    The same table gives the same rules. Time grows linearly with rows and with the square of
    columns.

    Args:
        table: Values, as `parse_table` gives them.
        schema: Schema of the table; its own rules are not asked.
        report: Takes the share that is done.
    """
    sample = RowSample.of(table, schema)
    if min(len(sample.finding), len(sample.judging)) == 0:
        return []
    taken: list[Rule] = []
    shares: dict[str, float] = {}
    with np.errstate(all="ignore"):  # numbers that are none are no rule's
        for i, candidate in enumerate(_candidates(sample, taken)):
            rule = _side_that_goes(candidate.rule, taken)
            if rule is not None:
                taken.append(rule)
                shares[rule.text] = min(_MOST_OF_SAMPLE * candidate.share, _LEAST_SHARE)
                report(1 - 1 / (i + 2) - 0.5)
    found = measured(taken, table, schema)
    return [f for f in found if (f.rule.share or 0.0) >= shares[f.rule.text]]


def _of_constraints(schema: TableSchema) -> list[Rule]:
    """Returns the formulas and inequalities among a schema's constraints, so that rows keep them by
    construction, and drawing anew is left with the rest."""
    texts = [text for constraint in schema.constraints for text in formula_texts(constraint)]
    rules = [Rule(text, source="given") for text in texts]
    return [rule for rule in rules if _fits(rule, schema)]


def _candidates(sample: RowSample, taken: Sequence[Rule]) -> Iterator[Candidate]:
    """Yields candidate rules in turn; each search knows the rules taken so far.

    An inequality that every row keeps is looked at after formulas, of which it may follow.
    """

    def is_free(rule: Rule) -> bool:
        return _goes_with(rule, taken)

    given = [Candidate(rule, 0.0, 0.0) for rule in _of_constraints(sample.schema)]
    yield from (one for one in given if not _is_inequality(one.rule))
    yield from find_date_parts(sample)
    yield from find_clocks(sample)
    yield from find_spans(sample)
    yield from find_formulas(sample, is_free)
    yield from find_features(sample, is_free)
    yield from (one for one in given if _is_inequality(one.rule))
    yield from find_orders(sample)
    yield from find_equalities(sample)
    yield from find_functions(sample)
    yield from find_blanks(sample)


def _is_inequality(rule: Rule) -> bool:
    return isinstance(rule.form, Formula) and rule.form.is_inequality


def _side_that_goes(rule: Rule, taken: Sequence[Rule]) -> Rule | None:
    """Returns the rule, or the same of two columns with the other one dependent, beside those
    taken."""
    sides = [rule] if rule.turned is None else [rule, replace(rule, text=rule.turned)]
    return next((side for side in sides if _goes_with(side, taken)), None)


def _goes_with(rule: Rule, taken: Sequence[Rule]) -> bool:
    """Returns whether a rule may stand beside others: no column follows twice, and none from
    itself."""
    if isinstance(rule.form, Missingness):
        return all(
            other.column != rule.column for other in taken if isinstance(other.form, Missingness)
        )
    others = [other for other in taken if not isinstance(other.form, Missingness)]
    if any(other.column == rule.column for other in others):
        return False
    parents = parents_of(others)
    before, waiting = set[str](), list(rule.parents)
    while waiting:
        name = waiting.pop()
        if name not in before:
            before.add(name)
            waiting += parents.get(name, ())
    return rule.column not in before


def measured(rules: Sequence[Rule], table: TypedTable, schema: TableSchema) -> list[RuleFinding]:
    """Each rule with the rows that keep it, counted in all of a typed table.

    Of a dropped rule that does not fit its columns, nothing is counted.
    """
    counts = [_Counts() for _ in rules]
    fitting = [_fits(rule, schema) for rule in rules]
    by_chunk = [i for i, rule in enumerate(rules) if fitting[i] and not rule.is_dependency]
    names = list(dict.fromkeys(name for i in by_chunk for name in rules[i].columns))
    n_before = 0
    for chunk in row_chunks(table, names) if names else ():
        for i in by_chunk:
            counts[i].add(*keeps(rules[i], chunk, schema), n_before)
        n_before += len(chunk)
    for rule, count, fits in zip(rules, counts, fitting, strict=True):
        if fits and rule.is_dependency:
            count.add(*_function_keeps(rule, table), 0)
    return [count.finding(rule) for rule, count in zip(rules, counts, strict=True)]


def _fits(rule: Rule, schema: TableSchema) -> bool:
    """Returns whether a rule can be counted: one that is off may say anything."""
    if rule_problems([replace(rule, keep="hard")], schema):
        return False
    try:
        if isinstance(rule.form, Formula):
            Prediction.of(rule, schema)
        elif isinstance(rule.form, Condition):
            compile_condition(rule.form.tree, schema, rule.tables)
    except ValueError:
        return False
    return True


def _function_keeps(rule: Rule, table: TypedTable) -> tuple[Mask, Mask]:
    """Returns (all is known, the cell is the one that most rows with its parents' cells have)."""
    joint = joint_codes([value_codes(table, name) for name in rule.parents])
    codes = value_codes(table, rule.column)
    known = (joint >= 0) & (codes >= 0)
    usual = most_frequent_codes(joint, codes)
    return known, known & (codes == np.append(usual, -1)[joint])


@dataclass
class _Counts:
    """Counts of a rule so far."""

    kept: int = 0
    rows: int = 0
    exceptions: tuple[int, ...] = ()

    def add(self, known: Mask, kept: Mask, first: int) -> None:
        """Counts the rows from a number on. Shape: (n,), (n,)."""
        self.rows += int(known.sum())
        self.kept += int((known & kept).sum())
        if len(self.exceptions) < MOST_EXCEPTIONS:
            broken = np.flatnonzero(known & ~kept)[: MOST_EXCEPTIONS - len(self.exceptions)]
            self.exceptions += tuple((broken + first).tolist())

    def finding(self, rule: Rule) -> RuleFinding:
        """Returns the rule with its share."""
        share = self.kept / self.rows if self.rows else None
        return RuleFinding(replace(rule, share=share), self.kept, self.rows, self.exceptions)
