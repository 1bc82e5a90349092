"""Plan of the columns that rules compute: each column at most once, and none from itself.

A relation such as total == net + tax can be solved for several columns, its sides. The plan holds
one side of each relation. Where a further relation needs a side that the plan does not allow,
another relation may be solved for a different column:

    gross == net + tax, tax == 0.2 * gross    becomes    net == gross - tax, tax == 0.2 * gross

Of all possible sides, those of least total cost are chosen. The cost of a side tells how unnatural
it is to compute its column: the number of times that the number of steps of the column's resolution
has to be doubled to reach that of the finest column of the relation, and more for a column of
levels of which the computed number is often none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gcvae.schema.rule_documents import depends_on, parents_of
from gcvae.schema.rules import Condition, Formula, Missingness, Rule

Side = tuple[float, Rule]
"""A rule with its cost."""
Sides = tuple[Side, ...]
OF_NO_LEVEL = 4.0
"""Cost of a side that computes numbers that are often none of the column's levels."""
_LEAST_COVERAGE = 0.9


def is_sparse_bound(of_column: float, of_bound: float) -> bool:
    """Returns whether one column of an inequality is no useful bound of the other: it is often
    missing where the other has a value, which is a useful bound of it.

    Args:
        of_column: Share of the other column's known rows in which the bound is known, too.
        of_bound: Share of the bound's known rows in which the other column is known, too.
    """
    return of_column < _LEAST_COVERAGE <= of_bound


@dataclass
class Plan:
    """Accepted relations between columns.

    Attributes:
        relations: Sides of each relation; the first is the one of the plan.
    """

    relations: list[Sides] = field(default_factory=list)

    @property
    def rules(self) -> list[Rule]:
        """The rule of each relation."""
        return [sides[0][1] for sides in self.relations]

    def allows(self, rule: Rule, *, turns: bool = True) -> bool:
        """Returns whether `add` would add a rule."""
        return self._with(((0.0, rule),), turns=turns) is not None

    def computes(self, name: str, *, exactly: bool = False) -> bool:
        """Returns whether a rule of the plan computes or, unless `exactly`, limits a column."""
        return any(
            rule.column == name and not (exactly and rule.is_inequality)
            for rule in self.rules
            if not isinstance(rule.form, Missingness | Condition)
        )

    def depends(self, name: str, on: str) -> bool:
        """Returns whether column `name` is `on`, or a rule of the plan computes it from `on`."""
        return depends_on([name], on, parents_of(self.rules))

    def relates(self, a: str, b: str) -> bool:
        """Returns whether rules of the plan compute or limit one of two columns by the other."""
        return self.depends(a, b) or self.depends(b, a)

    def add(self, sides: Sequence[Side], *, turns: bool = True) -> bool:
        """Adds a relation by one of its sides; returns whether the plan allows one.

        Args:
            turns: Whether another relation may be solved for a different column.
        """
        found = self._with(tuple(sides), turns=turns)
        self.relations = self.relations if found is None else found
        return found is not None

    def _with(self, sides: Sides, *, turns: bool) -> list[Sides] | None:
        """Returns the relations with a further one, of which at most one other relation is solved
        for a different column, at the least cost; None if there is no such plan."""
        found: list[tuple[float, list[Sides]]] = []
        can_turn = turns and is_formula(sides[0][1])
        for first in _each_first(sides):
            [(cost, rule), *_] = first
            if _is_compatible(rule, self.rules):
                found.append((cost, [*self.relations, first]))
            for k, relation in enumerate(self.relations) if can_turn else ():
                rest = [*self.rules[:k], *self.rules[k + 1 :]]
                if len(relation) == 1 or not _is_compatible(rule, rest):
                    continue
                for turned in _each_first(relation):
                    if _is_compatible(turned[0][1], [*rest, rule]):
                        relations = [*self.relations[:k], turned, *self.relations[k + 1 :], first]
                        found.append((cost + turned[0][0] - relation[0][0], relations))
        return min(found, key=lambda one: round(one[0], 1))[1] if found else None


def _each_first(sides: Sides) -> Iterator[Sides]:
    """Yields the sides with each of them in the first place."""
    for i, side in enumerate(sides):
        yield (side, *sides[:i], *sides[i + 1 :])


def is_formula(rule: Rule) -> bool:
    """Returns whether a rule is an exact formula that computes with numbers or dates: not one that
    only looks a value up, nor one whose lookup is by levels."""
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
    """Returns whether a rule can be added: no column is computed twice, and none depends on
    itself."""
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
