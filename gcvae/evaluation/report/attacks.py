"""Membership and attribute inference attacks on synthetic rows.

Each attack is run on training rows (members) and on as many real rows that were not used in
training (unseen rows). The attacker's scales and reference models are fitted to neither of them. A
higher score means that the attacker considers the row more likely to be a member.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.arrays import Mask, Numbers
from gcvae.evaluation.columns import evenly_spaced, is_number, measured_columns
from gcvae.evaluation.features import fit_features
from gcvae.evaluation.report.row_space import Points, Space, axes_of, fit_space, nearest
from gcvae.schema.columns import TableSchema

ISOLATED_SHARE = 0.1
_MOST_SECRETS = 8
_NEAR = 0.05
"""Largest error of a guessed number that counts as correct, in units of the column's spread."""
_LINKS = 5
_PREDICATES, _TRIES = 500, 5_000
_COLUMNS_OF_A_PREDICATE = 4
_MOST_TREE_ROWS = 10_000

_TREES = 50

METHODS = {
    "likelihood": "log-likelihood of the row under the model",
    "likelihood_ratio": "the same, minus the log-likelihood under a Gaussian copula of other real"
    " rows",
    "distance": "distance to the nearest synthetic row",
    "distance_ratio": "distance to the nearest synthetic row, relative to the nearest other real"
    " row",
    "density_ratio": f"{_TREES} boosted trees separate synthetic rows from other real rows, at most"
    f" {_MOST_TREE_ROWS:,} synthetic rows (DOMIAS, van Breugel et al. 2023)",
    "copies": "whether a synthetic row equals the row in every column",
    "attribute_inference": f"up to {_MOST_SECRETS} columns are unknown in turn; the guess is the"
    " cell of the synthetic row that is nearest in all others; the success with other real rows is"
    " subtracted",
    "linkability": "the columns are cut at random into two halves; whether a synthetic row is among"
    f" the {_LINKS} nearest by either half (Giomi et al. 2023)",
    "singling_out": f"whether the row alone satisfies one of {_PREDICATES} predicates on up to"
    f" {_COLUMNS_OF_A_PREDICATE} columns that only one synthetic row satisfies (Giomi et al. 2023)",
}
"""How each attack scores a row, with its settings; for readers."""

Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]


@dataclass(frozen=True)
class Targets:
    """The rows that membership attacks try to classify, and the rows that the attacker knows.

    Attributes:
        tables: n members, as many unseen rows, reference rows (other real rows, which the attacker
            knows) and synthetic rows.
        space: Embedding of rows in A dimensions, in which similar rows are near each other.
        attacked: Points of the members, then of the unseen rows. Shape: (2 n, A).
        reference: Points of the reference rows. Shape: (r, A).
        drawn: Points of the synthetic rows. Shape: (m, A).
    """

    schema: TableSchema
    tables: Tables
    space: Space
    attacked: Points
    reference: Points
    drawn: Points
    seed: int

    @classmethod
    def of(cls, schema: TableSchema, tables: Tables, seed: int) -> Targets:
        """Returns the targets, embedded in a space fitted to reference and synthetic rows only."""
        space = fit_space(pd.concat(tables[2:], ignore_index=True), schema)
        members, unseen, reference, drawn = (space.embed(table) for table in tables)
        attacked = np.concatenate([members, unseen])
        return cls(schema, tables, space, attacked, reference, drawn, seed)

    @property
    def n_rows(self) -> int:
        """Number of members, which is also the number of unseen rows."""
        return len(self.tables[0])

    def are_isolated(self) -> Mask:
        """Returns a mask of the isolated rows: the 10 % of the attacked rows whose nearest
        reference row is farthest away. Shape: (2 n,)."""
        far = nearest(self.attacked, self.reference)[0][:, 0]
        n_isolated = round(ISOLATED_SHARE * len(far))
        found = np.zeros(len(far), dtype=bool)
        found[np.argsort(-far, kind="stable")[:n_isolated]] = True
        return found


def nearness_scores(targets: Targets) -> dict[str, Numbers]:
    """Returns two scores of each attacked row, which are high if a synthetic row is near.

    `distance` is -d, with d the distance to the nearest synthetic row; `distance_ratio` is log(r /
    d), with r the distance to the nearest reference row. Shape: (2 n,) each.

    `distance_ratio` compares nearest-neighbour estimates of the densities of synthetic and
    reference rows. It was chosen by an experiment with the data sets Adult, Shoppers and Magic: 1 %
    of the members were copied into 2,000 independent rows, and attacks had to find the copied
    members at a false positive rate of 0.1 %. Shares of the copied members that were found:

        distance_ratio                          100 %
        kernel estimates of the same densities  83 %, at the best bandwidth
        Gen-LRA                                 no more than by chance
        density_ratio_scores                    no more than by chance

    Gen-LRA compares the likelihoods of the ten nearest synthetic rows with and without the attacked
    row.
    """
    to_drawn = nearest(targets.attacked, targets.drawn)[0][:, 0].astype(np.float64)
    to_reference = nearest(targets.attacked, targets.reference)[0][:, 0].astype(np.float64)
    ratio = np.log(to_reference + 1e-6) - np.log(to_drawn + 1e-6)
    return {"distance": -to_drawn, "distance_ratio": ratio}


def density_ratio_scores(targets: Targets) -> Numbers:
    """Returns log (p(synthetic) / p(reference)) of each attacked row, estimated by boosted trees.

    The trees find leaks that are spread over many rows, and miss single copied rows, which
    `nearness_scores` finds.

    Source: van Breugel et al., DOMIAS (2023).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    members, unseen, reference, drawn = targets.tables
    drawn = drawn.head(_MOST_TREE_ROWS)
    both = pd.concat([drawn, reference], ignore_index=True)
    features = fit_features(both, measured_columns(targets.schema))
    is_drawn = np.repeat([1, 0], [len(drawn), len(reference)])
    trees = HistGradientBoostingClassifier(
        categorical_features=features.are_levels,
        class_weight="balanced",
        early_stopping=False,
        max_iter=_TREES,
        random_state=targets.seed,
    )
    trees.fit(features.matrix(both), is_drawn)
    attacked = pd.concat([members, unseen], ignore_index=True)
    found: Numbers = trees.decision_function(features.matrix(attacked))
    return found


def inference_gains(targets: Targets) -> Numbers:
    """Returns by how much synthetic rows improve an attacker's guesses of each row's cells.

    Up to eight columns are treated as unknown, one at a time. The guess is the cell of the
    synthetic row that is nearest in all other columns. Another guess is the cell of the nearest
    reference row (real row that the attacker knows). The gain is the difference of their shares of
    correct guesses, from -1 to 1. Shape: (2 n,), for n members, then n unseen rows.
    """
    secrets = evenly_spaced(len(targets.space.slices), _MOST_SECRETS)
    gains = [
        _are_guessed(targets, secret, targets.drawn)
        - _are_guessed(targets, secret, targets.reference)
        for secret in secrets
    ]
    mean: Numbers = np.mean(gains, axis=0)
    return mean


def _are_guessed(targets: Targets, secret: int, known: Points) -> Numbers:
    """Returns 1 for each attacked row if the row of `known` that is nearest in all other columns
    has nearly the same cell in column `secret`, else 0. Shape: known (m, A) -> (2 n,)."""
    axes, attacked = targets.space.slices[secret], targets.attacked
    others = np.delete(np.arange(attacked.shape[1]), axes)
    at = nearest(attacked[:, others], np.ascontiguousarray(known[:, others]))[1][:, 0]
    gaps = np.abs(attacked[:, axes] - known[at][:, axes]).max(axis=1)
    return np.where(gaps <= _NEAR, 1.0, 0.0)


def linked_rows(targets: Targets) -> Numbers:
    """Returns 1 for each attacked row whose two halves can be linked, else 0. Shape: (2 n,).

    The columns are divided at random into two halves. A row's halves are linked if one synthetic
    row is among the five nearest both in the columns of the first half and in those of the second
    half.

    Source: Giomi et al., A unified framework for quantifying privacy risk (2023).
    """
    random = np.random.default_rng(targets.seed)
    order = random.permutation(len(targets.space.slices))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    found = []
    for half in halves:
        axes = axes_of(targets.space, half.tolist())
        drawn = np.ascontiguousarray(targets.drawn[:, axes])
        found.append(nearest(targets.attacked[:, axes], drawn, _LINKS)[1])
    linked: Numbers = (found[0][:, :, None] == found[1][:, None, :]).any(axis=(1, 2)).astype(float)
    return linked


def singled_out(targets: Targets) -> Numbers:
    """Returns 1 for each attacked row that a predicate singles out, else 0. Shape: (2 n,).

    A predicate is a conjunction of conditions on up to four columns, taken from a synthetic row:
    equal to its level, at least its number, or at most its number. Predicates that only one
    synthetic row satisfies are tested on members and on unseen rows; a row is singled out if it is
    the only member, or the only unseen row, that satisfies the predicate. Rows are counted instead
    of predicates, because predicates for the same row are not independent.

    Source: the multivariate attack of Giomi et al. (2023), with as many unseen rows as members.
    """
    members, unseen, _, drawn = targets.tables
    features = fit_features(drawn, measured_columns(targets.schema))
    drawn_cells = features.matrix(drawn.head(targets.n_rows))
    tables = [features.matrix(table) for table in (members, unseen)]
    numbers = [is_number(column) for column in features.columns]
    found = np.zeros((2, targets.n_rows))
    n_tried = 0
    for conditions in _predicates(drawn_cells, numbers, targets.seed):
        if len(_rows_with(drawn_cells, conditions)) == 1:
            n_tried += 1
            for table, hits in zip(tables, found, strict=True):
                rows = _rows_with(table, conditions)
                hits[rows] = 1.0 if len(rows) == 1 else hits[rows]
        if n_tried == _PREDICATES:
            break
    return found.ravel()


Condition = tuple[int, float, int]
"""(column index, value, operator), with operator 0 for equal, 1 for at least, -1 for at most."""


def _predicates(cells: Numbers, are_numbers: list[bool], seed: int) -> Iterator[list[Condition]]:
    random = np.random.default_rng(seed)
    n_columns = cells.shape[1]
    with np.errstate(all="ignore"):
        middle = [np.nanmedian(x) if not np.isnan(x).all() else 0.0 for x in cells.T]
    for _ in range(_TRIES):
        row = cells[random.integers(len(cells))]
        n_chosen = min(n_columns, _COLUMNS_OF_A_PREDICATE)
        chosen = random.choice(n_columns, n_chosen, replace=False)
        yield [
            (int(j), float(row[j]), (1 if row[j] >= middle[j] else -1) if are_numbers[j] else 0)
            for j in chosen
        ]


def _rows_with(cells: Numbers, conditions: list[Condition]) -> npt.NDArray[np.int64]:
    hold = np.ones(len(cells), dtype=bool)
    for j, value, side in conditions:
        x = cells[:, j]
        if np.isnan(value):
            hold &= np.isnan(x)
        else:
            hold &= (x == value) if side == 0 else (x >= value) if side > 0 else (x <= value)
    return np.flatnonzero(hold)
