"""Plan of the columns that rules compute: each column at most once, and none from itself.

A relation such as total == net + tax can be solved for several columns, its sides. The plan holds
one side of each relation. A further relation may need a side that the plan does not allow; then
another relation of the plan is solved for a different column, if that makes room:

    gross == net + tax, tax == 0.2 * gross    becomes    net == gross - tax, tax == 0.2 * gross
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gcvae.schema.rule_documents import depends_on, parents_of
from gcvae.schema.rules import Formula, Missingness, Rule

Sides = tuple[Rule, ...]


@dataclass
class Plan:
    """Accepted relations between columns.

    Attributes:
        relations: Sides of each relation; the first is the rule of the plan.
    """

    relations: list[Sides] = field(default_factory=list)

    @property
    def rules(self) -> list[Rule]:
        """The rule of each relation."""
        return [sides[0] for sides in self.relations]

    def allows(self, rule: Rule) -> bool:
        """Returns whether `add` would add a rule."""
        return self._with((rule,)) is not None

    def computes(self, name: str) -> bool:
        """Returns whether a rule of the plan computes or limits a column."""
        return any(
            rule.column == name for rule in self.rules if not isinstance(rule.form, Missingness)
        )

    def depends(self, name: str, on: str) -> bool:
        """Returns whether column `name` is `on`, or a rule of the plan computes it from `on`."""
        return depends_on([name], on, parents_of(self.rules))

    def add(self, sides: Sequence[Rule], *, turns: bool = True) -> bool:
        """Adds a relation by the first of its sides that the plan allows; returns whether there is
        one.

        Args:
            turns: Whether another relation may be solved for a different column.
        """
        found = self._with(tuple(sides), turns=turns)
        self.relations = self.relations if found is None else found
        return found is not None

    def _with(self, sides: Sides, *, turns: bool = True) -> list[Sides] | None:
        """Returns the relations with a further one, of which at most one other relation is solved
        for a different column; None if there is no such plan."""
        can_turn = turns and _computes(sides[0])
        for first in _each_first(sides):
            if _is_compatible(first[0], self.rules):
                return [*self.relations, first]
            for k, relation in enumerate(self.relations) if can_turn else ():
                rest = [*self.rules[:k], *self.rules[k + 1 :]]
                if len(relation) == 1 or not _is_compatible(first[0], rest):
                    continue
                for turned in _each_first(relation):
                    if _is_compatible(turned[0], [*rest, first[0]]):
                        return [*self.relations[:k], turned, *self.relations[k + 1 :], first]
        return None


def _each_first(sides: Sides) -> Iterator[Sides]:
    """Yields the sides with each of them in the first place."""
    for i, side in enumerate(sides):
        yield (side, *sides[:i], *sides[i + 1 :])


def _computes(rule: Rule) -> bool:
    """Returns whether a rule is an exact formula, unlike inequalities and dependencies."""
    return isinstance(rule.form, Formula) and rule.form.relation == "=="


def _is_compatible(rule: Rule, accepted: Sequence[Rule]) -> bool:
    """Returns whether a rule can be added: no column is computed twice, and none depends on
    itself."""
    if isinstance(rule.form, Missingness):
        return all(
            other.column != rule.column for other in accepted if isinstance(other.form, Missingness)
        )
    others = [other for other in accepted if not isinstance(other.form, Missingness)]
    if any(other.column == rule.column for other in others):
        return False
    return not depends_on(rule.parents, rule.column, parents_of(others))
