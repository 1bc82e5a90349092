"""Columns of a database that are computed: totals of children, and formulas of one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer
from gcvae.errors import SchemaError

QUICK: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 2}, "device": "cpu"}
PRODUCT, SUM = "amount == hours * wage", "bill == work + travel"


def jobs() -> dict[str, pd.DataFrame]:
    """Jobs and their shifts: an amount is a product, the work of a job the sum of its amounts, and
    its bill the sum of work and travel. No shift has a higher wage than its job."""
    rng = np.random.default_rng(0)
    n, of = 150, np.repeat(np.arange(150), 1 + rng.poisson(1, 150))
    jobs = pd.DataFrame({"job_id": np.arange(n), "highest": rng.integers(60, 600, n)})
    shifts = pd.DataFrame({"job_id": of, "hours": rng.integers(1, 9, len(of))})
    highest = jobs["highest"].to_numpy()[of]
    shifts["wage"] = np.round(highest - rng.exponential(9, len(of)), 2)
    shifts["amount"] = (shifts["hours"] * shifts["wage"]).round(2)
    jobs["work"] = shifts.groupby("job_id")["amount"].sum().round(2)
    jobs["travel"] = rng.choice([0.0, 12.5, 30.0], n)
    jobs["bill"] = (jobs["work"] + jobs["travel"]).round(2)
    return {"jobs": jobs, "shifts": shifts}


def of_rules(keep: str) -> dict[str, Any]:
    """A schema that states the formulas of both tables."""
    stated = {"jobs": SUM, "shifts": PRODUCT}
    return {"tables": {name: {"rules": [{"rule": r, "keep": keep}]} for name, r in stated.items()}}


@pytest.mark.parametrize("schema", [None, of_rules("hard")], ids=["found", "stated"])
def test_formulas_of_a_table_and_totals_hold_together(schema: Any) -> None:
    model = DatabaseSynthesizer.fit(jobs(), schema=schema, seed=1, **QUICK)
    model = DatabaseSynthesizer.from_bytes(model.to_bytes())
    drawn = model.sample(seed=2)
    shifts, bills = drawn["shifts"], drawn["jobs"].set_index("job_id")
    exact = {"rtol": 0, "atol": 0.0051}
    np.testing.assert_allclose(shifts["amount"], shifts["hours"] * shifts["wage"], **exact)
    work = shifts.groupby("job_id")["amount"].sum().reindex(bills.index).fillna(0.0)
    np.testing.assert_allclose(bills["work"], work, **exact)
    np.testing.assert_allclose(bills["bill"], bills["work"] + bills["travel"], **exact)
    assert (shifts["wage"] <= bills["highest"].loc[shifts["job_id"]].to_numpy()).all()


def test_a_hard_rule_that_rows_break_is_refused_with_the_cells_of_the_table() -> None:
    tables = jobs()
    tables["shifts"].loc[3, ["hours", "wage", "amount"]] = [2, 20.0, 41.0]
    with pytest.raises(SchemaError) as raised:
        DatabaseSynthesizer.fit(tables, schema=of_rules("hard"), **QUICK)
    [problem] = raised.value.problems
    assert problem.pointer == "/tables/shifts/rules/0"
    assert "the first has amount '41.0', hours '2.0', wage '20.0'" in problem.message
