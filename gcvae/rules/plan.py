"""Plan of the columns that rules compute: each column at most once, and none from itself.

A relation such as total == net + tax can be solved for several columns. Each solution, a rule that
computes one column, is called a side. The plan uses one side of each relation. If a new relation
conflicts with the plan, another relation may be solved for a different column:

    gross == net + tax, tax == 0.2 * gross    becomes    net == gross - tax, tax == 0.2 * gross

Among the possible plans, the one with the least total cost is chosen. The cost of a side measures
how unnatural it is to compute its column:

    cost = log2(largest spread of a column in the relation / spread of the computed column)

In sums, the spread of a column is the standard deviation of its term, such as 0.2 * gross. In other
formulas, it is the standard deviation in multiples of a step of the column. A side that computes a
column of levels costs more if its results are often none of the levels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gcvae.schema.rule_documents import depends_on, parents_of
from gcvae.schema.rules import Condition, Formula, Missingness, Rule

Side = tuple[float, Rule]
"""(Cost, rule that computes one column of a relation)."""
Sides = tuple[Side, ...]
OF_NO_LEVEL = 4.0
"""Cost of computing a column of levels if the computed numbers are often none of the levels."""
_LEAST_COVERAGE = 0.9


def is_sparse_bound(of_column: float, of_bound: float) -> bool:
    """Returns whether an inequality should only be used in reverse, because its bound is too often
    missing, while in reverse the bound is rarely missing.

    In `end >= start`, the column `end` is bounded, and `start` is its bound. In reverse, `start` is
    bounded, and `end` is its bound.

    Args:
        of_column: Share of the rows with a value of the bounded column in which the bound also has
            a value.
        of_bound: Share of the rows with a value of the bound in which the bounded column also has a
            value.
    """
    return of_column < _LEAST_COVERAGE <= of_bound


@dataclass
class Plan:
    """Accepted relations between columns, each with the rule that computes one of its columns.

    Attributes:
        relations: For each relation, its solutions for different columns; the first one is in use.
    """

    relations: list[Sides] = field(default_factory=list)

    @property
    def rules(self) -> list[Rule]:
        """The rule in use for each relation."""
        return [sides[0][1] for sides in self.relations]

    def allows(self, rule: Rule, *, may_rearrange: bool = True) -> bool:
        """Returns whether a rule can be added to the plan.

        Args:
            may_rearrange: Whether a relation of the plan may be solved for a different column to
                make room for the rule.
        """
        return self._with(((0.0, rule),), may_rearrange=may_rearrange) is not None

    def computes(self, name: str, *, exactly: bool = False) -> bool:
        """Returns whether a rule of the plan computes or, unless `exactly`, bounds a column."""
        return any(
            rule.column == name and not (exactly and rule.is_inequality)
            for rule in self.rules
            if not isinstance(rule.form, Missingness | Condition)
        )

    def depends(self, name: str, on: str) -> bool:
        """Returns whether column `name` is `on`, or rules of the plan compute it from `on`,
        directly or through other columns."""
        return depends_on([name], on, parents_of(self.rules))

    def relates(self, a: str, b: str) -> bool:
        """Returns whether rules of the plan compute or limit one of two columns by the other."""
        return self.depends(a, b) or self.depends(b, a)

    def add(self, sides: Sequence[Side], *, may_rearrange: bool = True) -> bool:
        """Adds a relation, solved for the column with the least cost.

        Returns False, and leaves the plan unchanged, if no solution of the relation is compatible
        with the plan.

        Args:
            sides: Solutions of the relation for different columns, with their costs.
            may_rearrange: Whether a relation of the plan may be solved for a different column to
                make room for the new relation.
        """
        found = self._with(tuple(sides), may_rearrange=may_rearrange)
        self.relations = self.relations if found is None else found
        return found is not None

    def _with(self, sides: Sides, *, may_rearrange: bool) -> list[Sides] | None:
        """Returns the plan's relations together with a new relation, at the least total cost; None
        if the new relation cannot be added. At most one relation of the plan is solved for a
        different column to make room."""
        found: list[tuple[float, list[Sides]]] = []
        can_rearrange = may_rearrange and is_formula(sides[0][1])
        for first in _each_first(sides):
            [(cost, rule), *_] = first
            if _is_compatible(rule, self.rules):
                found.append((cost, [*self.relations, first]))
            for k, relation in enumerate(self.relations) if can_rearrange else ():
                rest = [*self.rules[:k], *self.rules[k + 1 :]]
                if len(relation) == 1 or not _is_compatible(rule, rest):
                    continue
                for turned in _each_first(relation):
                    if _is_compatible(turned[0][1], [*rest, rule]):
                        relations = [*self.relations[:k], turned, *self.relations[k + 1 :], first]
                        found.append((cost + turned[0][0] - relation[0][0], relations))
        return min(found, key=lambda one: round(one[0], 1))[1] if found else None


def _each_first(sides: Sides) -> Iterator[Sides]:
    """Yields the solutions of a relation in several orders: each solution comes first once, because
    a plan uses the first solution."""
    for i, side in enumerate(sides):
        yield (side, *sides[:i], *sides[i + 1 :])


def is_formula(rule: Rule) -> bool:
    """Returns whether a rule is an equality whose formula computes with numbers or dates, such as y
    == rate[bracket(x, 7, 30)] * z.

    A rule that only looks up a value does not count. Neither does a formula with a lookup by a
    plain column, such as rate[product] * z: the key has to be a function call or a comparison.
    """
    form = rule.form
    if (
        not isinstance(form, Formula)
        or form.relation != "=="
        or isinstance(form.value, ast.Subscript)
    ):
        return False
    lookups = (node for node in ast.walk(form.value) if isinstance(node, ast.Subscript))
    return all(isinstance(lookup.slice, ast.Call | ast.Compare) for lookup in lookups)


def _is_compatible(rule: Rule, accepted: Sequence[Rule]) -> bool:
    """Returns whether a rule can be added to the accepted rules, so that no column is computed
    twice, and no column depends on itself."""
    if isinstance(rule.form, Condition):
        return True
    if isinstance(rule.form, Missingness):
        return all(
            other.column != rule.column for other in accepted if isinstance(other.form, Missingness)
        )
    others = [other for other in accepted if not isinstance(other.form, Missingness | Condition)]
    if any(other.column == rule.column for other in others):
        return False
    return not depends_on(rule.parents, rule.column, parents_of(others))
