"""Finds the rules of a table: proposes and validates them on a sample, then counts all rows.

One half of the sample proposes rules and the other half validates them: a rule has to hold in
nearly all validation rows, and its gain has to exceed what the best of all rules tried gains by
chance. The kinds of rules are searched in turn, most informative first. A rule is accepted if it is
compatible with those accepted before: only one rule computes a column, and no column depends on
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gcvae.arrays import Mask
from gcvae.expressions.terms import compile_condition
from gcvae.files.typed_columns import TypedTable, row_chunks, value_codes
from gcvae.progress import Report, report_to_nobody
from gcvae.rules.plan import Plan
from gcvae.rules.predictions import Prediction, keeps
from gcvae.rules.row_sample import Candidate, RowSample
from gcvae.rules.search_conditions import find_conditions, find_missingness
from gcvae.rules.search_dates import (
    find_clocks,
    find_date_parts,
    find_months,
    find_spans,
    find_starts,
)
from gcvae.rules.search_features import find_features
from gcvae.rules.search_formulas import (
    FormulaTerms,
    find_approximations,
    find_bounded,
    find_exempting,
    find_formulas,
)
from gcvae.rules.search_functions import (
    LEAST_ROWS_EACH,
    find_functions,
    joint_codes,
    most_frequent_codes,
)
from gcvae.rules.search_orders import find_equalities, find_orders, inequality
from gcvae.rules.search_sums import find_sums
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import Outcomes
from gcvae.schema.rule_documents import is_of_entity, rule_problems
from gcvae.schema.rules import (
    Combination,
    Condition,
    Formula,
    Rule,
    dependency,
    implied_formulas,
)

MOST_EXCEPTIONS = 10
_LEAST_SHARE = 0.85
"""Share of all rows that always suffices for a rule to be accepted."""
_MOST_OF_SAMPLE = 0.8
"""Fraction of a rule's share of sampled rows that suffices as its share of all rows."""
_MOST_STRICT = 3
"""Maximum number of inequalities that every row of the table satisfies although they cannot be used
to compute a column; generated rows that violate them are rejected."""
_SURE_SHARE = 0.999
"""Minimum share of sampled rows that satisfy a rule, for an accepted relation to be solved for a
different column in its favour."""


@dataclass(frozen=True)
class RuleFinding:
    """A rule and the number of rows that satisfy it.

    Attributes:
        rule: Rule, including the share of rows that satisfy it.
        kept: Number of rows that satisfy it.
        rows: Number of rows to which it applies, because all its columns are known or, for a rule
            on missing cells, because a cell must be missing.
        exceptions: Indices, counted from 0, of the first ten rows that violate it.
    """

    rule: Rule
    kept: int = 0
    rows: int = 0
    exceptions: tuple[int, ...] = ()

    def _with_rows(self, known: Mask, kept: Mask, first: int) -> RuleFinding:
        """Returns a copy that also counts consecutive rows of the table, the first of which has the
        index `first`. The rule applies to the rows `known`, and the rows `kept` satisfy it."""
        rows, n_kept = self.rows + int(known.sum()), self.kept + int((known & kept).sum())
        broken = np.flatnonzero(known & ~kept)[: MOST_EXCEPTIONS - len(self.exceptions)]
        exceptions = (*self.exceptions, *(broken + first).tolist())
        rule = replace(self.rule, share=n_kept / rows if rows else None)
        return RuleFinding(rule, n_kept, rows, exceptions)


def find_rules(
    table: TypedTable, schema: TableSchema, report: Report = report_to_nobody
) -> list[RuleFinding]:
    """Returns the rules of a schema, followed by further rules that hold in most rows of a table.

    Among the found rules, those that compute columns come first. The search is deterministic. Its
    time grows linearly with rows and quadratically with columns.

    Args:
        schema: Schema of the table; the found rules do not conflict with its rules.
        report: Function that receives the fraction of the search that is done.
    """
    sample = RowSample.of(table, schema)
    given = schema.rules or ()
    implied = [rule for rule in implied_formulas(given) if _fits(rule, schema)]
    if min(len(sample.training), len(sample.validation)) == 0:
        return measured(given, table, schema)
    named = (*given, *implied)
    known = {text for rule in named for text in (rule.text, rule.reversed_text)}
    plan = Plan(
        [
            ((0.0, rule),)
            for rule in given
            if rule.keep != "off" and _computes(rule) and not is_of_entity(rule, schema)
        ]
    )
    shares: dict[int, float] = {}
    strict: dict[str, Rule] = {}
    with np.errstate(all="ignore"):  # terms may be undefined in some rows
        for i, candidate in enumerate(_candidates(sample, plan, implied)):
            if candidate.rule.text in known:
                if candidate.rule in named:
                    plan.add([(0.0, side) for side in candidate.rule.sides], may_rearrange=False)
            elif plan.add(candidate.sides, may_rearrange=candidate.share >= _SURE_SHARE):
                shares[len(plan.relations) - 1] = min(
                    _MOST_OF_SAMPLE * candidate.share, _LEAST_SHARE
                )
                report(1 - 1 / (i + 2) - 0.5)
            elif candidate.rule.is_inequality and candidate.share == 1.0:
                strict[candidate.rule.text] = candidate.rule
    found = measured([plan.rules[i] for i in shares], table, schema)
    kept = [
        finding
        for finding, least in zip(found, shares.values(), strict=True)
        if (finding.rule.share or 0.0) >= least
    ]
    orders = [
        rule
        for rule in strict.values()
        if not plan.relates(*rule.columns)
        and _opposite(rule) not in strict
        and not all(plan.computes(name, exactly=True) for name in rule.columns)
    ]
    kept += [f for f in measured(orders[:_MOST_STRICT], table, schema) if f.kept == f.rows]
    return [*measured(given, table, schema), *kept, *_of_entities(table, schema)]


def _opposite(rule: Rule) -> str:
    """Returns the text of the opposite inequality: y <= x for a rule y >= x, and vice versa."""
    [bound] = rule.parents
    return inequality(rule.column, bound, ()).text


def _of_entities(table: TypedTable, schema: TableSchema) -> list[RuleFinding]:
    """Returns the functional dependencies of other columns on a recurring key, such as a customer
    number, that every row satisfies. Of several such keys, the one that determines most columns is
    used."""
    known = {rule.text for rule in schema.rules or ()}
    found: list[list[RuleFinding]] = [[]]
    for key in schema:
        if not key.is_key:
            continue
        codes = value_codes(table, key.name)
        if len(codes) < LEAST_ROWS_EACH * (int(codes.max(initial=-1)) + 1) or (codes < 0).any():
            continue
        rules = [
            Rule(dependency((key.name,), column.name), source="found")
            for column in schema
            if column.name != key.name and not column.drop
            if column.kind.outcomes is not Outcomes.ONE_VALUE
        ]
        unknown = [rule for rule in rules if rule.text not in known]
        found.append([f for f in measured(unknown, table, schema) if f.kept == f.rows > 0])
    return max(found, key=len)


def _computes(rule: Rule) -> bool:
    """Returns whether a rule of the schema is in the plan before the search begins. The search then
    finds no other rule that computes the same column.

    Combinations and conditions are not in the plan. Neither are inequalities, except soft ones that
    cannot be reversed, for example because their bound is an expression.
    """
    if rule.is_inequality:
        return rule.keep == "soft" and rule.reversed_text is None
    return not isinstance(rule.form, Combination | Condition)


def _candidates(sample: RowSample, plan: Plan, implied: Sequence[Rule]) -> Iterator[Candidate]:
    """Yields candidate rules in the order of the searches. Some searches consider the plan, which
    contains the rules accepted so far.

    Inequalities of the schema, and those that its rules imply (`implied`), come after formulas and
    exact functional dependencies, which restrict a column more, and may imply the inequality.
    """
    given = [rule for rule in sample.schema.rules or () if rule.keep != "off"]
    inequalities = [rule for rule in (*given, *implied) if rule.is_inequality]
    yield from (Candidate(rule, 0.0, 0.0) for rule in implied if not rule.is_inequality)
    yield from find_date_parts(sample)
    yield from find_clocks(sample)
    yield from find_months(sample)
    yield from find_starts(sample)
    yield from find_spans(sample)
    terms = FormulaTerms.of(sample)
    yield from find_formulas(sample, terms, plan)
    yield from find_sums(sample, plan)
    yield from find_features(sample, plan)
    yield from find_sums(sample, plan, of_products=True)
    functions = find_functions(sample)
    yield from (f for f in functions if f.share == 1.0 and _is_of_labels(f.rule, sample.schema))
    yield from find_bounded(sample, terms, plan)
    yield from find_exempting(sample, terms, plan)
    yield from find_approximations(sample, terms, plan)
    yield from (function for function in functions if function.share == 1.0)
    yield from (Candidate(rule, 0.0, 0.0) for rule in inequalities)
    yield from find_orders(sample)
    yield from find_equalities(sample)
    yield from (function for function in functions if function.share < 1.0)
    yield from find_missingness(sample)
    yield from find_conditions(sample, plan)


def _is_of_labels(rule: Rule, schema: TableSchema) -> bool:
    return not any(schema[name].has_numbers or schema[name].has_times for name in rule.parents)


def measured(rules: Sequence[Rule], table: TypedTable, schema: TableSchema) -> list[RuleFinding]:
    """Counts the rows of a parsed table that satisfy each rule, including rules with keep "off".

    The counts are 0 for rules that cannot be evaluated, for example because the types of their
    columns do not fit.
    """
    found = [RuleFinding(replace(rule, share=None)) for rule in rules]
    fitting = [i for i, rule in enumerate(rules) if _fits(rule, schema)]
    by_chunk = [i for i in fitting if not rules[i].is_dependency]
    names = list(dict.fromkeys(name for i in by_chunk for name in rules[i].columns))
    n_before = 0
    for chunk in row_chunks(table, names) if names else ():
        for i in by_chunk:
            found[i] = found[i]._with_rows(*keeps(rules[i], chunk, schema), n_before)
        n_before += len(chunk)
    for i in set(fitting) - set(by_chunk):
        found[i] = found[i]._with_rows(*_function_keeps(rules[i], table), 0)
    return found


def _fits(rule: Rule, schema: TableSchema) -> bool:
    """Returns whether a rule can be evaluated on the columns of a schema."""
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
    """Returns, for a functional dependency, (mask of the rows in which none of its columns is
    missing, mask of the rows whose dependent cell is the most frequent one among the rows with the
    same determining cells)."""
    joint = joint_codes([value_codes(table, name) for name in rule.parents])
    codes = value_codes(table, rule.column)
    known = (joint >= 0) & (codes >= 0)
    usual = most_frequent_codes(joint, codes)
    return known, known & (codes == np.append(usual, -1)[joint])
