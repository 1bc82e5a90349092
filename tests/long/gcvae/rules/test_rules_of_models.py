"""Rules in fitted models: exact masses, hard rules, and what a model says of its own rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.errors import ConditionError, SchemaError
from tests.wordings import refuses

_SETTINGS = {"max_steps": 200, "patience_steps": 200}
_LANDS = {"Graz": "Österreich", "Wien": "Österreich", "Bern": "Schweiz"}


def every_row() -> pd.DataFrame:
    """All rows that a small table can have: whole fives, a sum with a surcharge, a function."""
    rows = [
        (deposit + fee + more, fee, deposit, land, city)
        for deposit, fee, more, city in product(range(0, 250, 5), (0, 1), (0, 1), _LANDS)
        for land in sorted(set(_LANDS.values()))
    ]
    return pd.DataFrame(rows, columns=["total", "fee", "deposit", "land", "город"])


def table(n: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    deposit = 5 * rng.integers(0, 50, n)
    fee = (rng.random(n) < 0.2 + 0.6 * deposit / 250).astype(int)
    more = (rng.random(n) < 0.05).astype(int)
    city = rng.choice(sorted(_LANDS), n)
    land = np.array([_LANDS[name] for name in city])
    is_moved = rng.random(n) < 0.02
    other = np.where(land == "Schweiz", "Österreich", "Schweiz")
    columns = {
        "total": deposit + fee + more,
        "fee": fee,
        "deposit": deposit,
        "land": np.where(is_moved, other, land),
        "город": city,
    }
    return pd.DataFrame(columns).astype(str)


SUM = {"rule": "total == deposit + fee"}
DEPENDENCY = {"rule": "determines(город; land)"}
SCHEMA: dict[str, Any] = {
    "columns": [
        {"name": "deposit", "kind": "integer"},
        {"name": "total", "kind": "integer"},
        {"name": "fee", "kind": "integer"},
    ],
    "rules": [SUM, DEPENDENCY],
}


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    model = Synthesizer.fit(table(), schema=SCHEMA, preset="fast", settings=_SETTINGS)
    return Synthesizer.from_bytes(model.to_bytes())


def test_the_masses_of_all_rows_add_up_to_one(fitted: Synthesizer) -> None:
    scores = fitted.log_likelihood(every_row(), draws=100, measure="rounding_cell")
    assert np.exp(scores.log_likelihood).sum() == pytest.approx(1.0, abs=0.02)


def test_a_row_that_breaks_a_rule_has_the_mass_of_the_exceptions(fitted: Synthesizer) -> None:
    rows = every_row()
    mass = np.exp(fitted.log_likelihood(rows, draws=50).log_likelihood.to_numpy())
    is_moved = rows["land"] != rows["город"].map(_LANDS)
    assert mass[is_moved].sum() == pytest.approx(0.02, abs=0.01)
    has_more = rows["total"] - rows["deposit"] - rows["fee"] == 1
    assert mass[has_more].sum() == pytest.approx(0.05, abs=0.03)


def test_a_model_says_which_share_of_its_own_rows_keeps_each_rule(fitted: Synthesizer) -> None:
    found = {rule["formula"]: rule for rule in fitted.training_record["rules"]}
    assert list(found) == ["total == deposit + fee", "город determines land"]
    shares = [rule["share"] for rule in found.values()]
    assert shares == [pytest.approx(0.95, abs=0.01), pytest.approx(0.98, abs=0.01)]
    assert all(abs(r["share_of_drawn"] - r["share"]) < 0.02 for r in found.values())


def test_a_hard_rule_is_kept_by_every_row_and_breaks_score_minus_infinity() -> None:
    hard = [{"rule": "total >= deposit", "keep": "hard"}]
    model = Synthesizer.fit(
        table(1000), schema=SCHEMA | {"rules": hard}, preset="fast", settings=_SETTINGS
    )
    model = Synthesizer.from_bytes(model.to_bytes())
    drawn = parse_table(model.sample(2000, seed=1), model.schema)
    assert (drawn["deposit"] <= drawn["total"]).all()
    rows = drawn.head(20).assign(total=drawn["deposit"] - 5)
    assert np.isneginf(model.log_likelihood(rows, draws=5).log_likelihood).all()
    with refuses(ConditionError):
        model.sample(given_rows=rows.head(1)[["total", "deposit"]])


def test_a_table_that_breaks_a_hard_rule_is_refused_with_its_rows() -> None:
    hard = [SUM | {"keep": "hard"}]
    with refuses(SchemaError, "/rules/0"):
        Synthesizer.fit(table(500), schema=SCHEMA | {"rules": hard}, preset="fast")
