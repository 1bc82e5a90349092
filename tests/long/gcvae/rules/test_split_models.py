"""Models of tables with steps: drawn rows keep them, and scores are of the written column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, parse_table

N = 2_000


def orders() -> pd.DataFrame:
    r = np.random.default_rng(4)
    size = r.integers(0, 2, N)
    whole = r.integers(0, 150, N) + 50 * size
    price = np.where(r.random(N) < 0.85, 10 * whole + 9, r.integers(0, 2_000, N))
    day = pd.Series(pd.Timestamp("2019-01-01") + pd.to_timedelta(r.integers(0, 1_600, N), "D"))
    day -= pd.to_timedelta(np.maximum(day.dt.dayofweek - 4, 0), "D")
    seen = day + pd.to_timedelta(8 + r.integers(0, 10, N), "h")
    fare = np.round(r.gamma(3, 30, N) * 4) / 4
    return pd.DataFrame(
        {
            "größe": np.where(size == 1, "gross", "klein"),
            "preis": [f"{tenths / 10:.1f}" for tenths in price],
            "seen": seen.dt.strftime("%d.%m.%Y %H:%M:%S"),
            "fare": ["" if i % 20 == 0 else f"{x:.2f}" for i, x in enumerate(fare)],
        }
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    path = tmp_path_factory.mktemp("models") / "steps.gcvae"
    Synthesizer.fit(orders(), settings={"max_steps": 300}, seed=1).save(path)
    return Synthesizer.load(path)


@pytest.fixture(scope="module")
def drawn(model: Synthesizer) -> pd.DataFrame:
    return parse_table(model.sample(4_000, seed=2), model.schema)


def test_drawn_rows_keep_the_steps(model: Synthesizer, drawn: pd.DataFrame) -> None:
    real = parse_table(orders(), model.schema)

    def shares(table: pd.DataFrame) -> list[float]:
        tenths = (table["preis"] * 10).round()
        return [(tenths % 10 == 9).mean(), table["fare"].isna().mean()]

    assert shares(drawn) == pytest.approx(shares(real), abs=0.03)
    assert (drawn["seen"].dt.dayofweek < 5).mean() >= 0.995
    assert drawn["seen"].dt.hour.between(8, 17).all()
    assert (drawn["seen"] == drawn["seen"].dt.floor("h")).all()
    assert (drawn["fare"].dropna() * 4 % 1 == 0).all()


def test_rows_are_drawn_around_known_cells_of_columns_in_parts(model: Synthesizer) -> None:
    known = orders()[["seen", "preis"]][:60]
    around = parse_table(model.sample(given_rows=known, seed=1), model.schema)
    real = parse_table(orders(), model.schema)[:60]
    assert around[["seen", "preis"]].equals(real[["seen", "preis"]])


def test_a_range_of_a_column_in_parts_is_kept_to_the_digit(model: Synthesizer) -> None:
    given = {"preis": {"min": 24.5, "max": 26.2}, "seen": {"max": "04.03.2020 10:00:00"}}
    rows = parse_table(model.sample(200, given=given, seed=3), model.schema)
    assert rows["preis"].between(24.5, 26.2).all()
    assert (rows["seen"] <= pd.Timestamp("2020-03-04 10:00:00")).all()
    assert rows["preis"].isin([24.9, 25.9]).mean() > 0.5


def test_a_cell_beside_the_step_of_all_cells_has_no_probability(model: Synthesizer) -> None:
    rows = orders().iloc[1:3].reset_index(drop=True)
    rows.loc[1, "fare"] = "7.33"
    found = model.log_likelihood(rows, seed=1)["log_likelihood"]
    assert np.isfinite(found[0])
    assert found[1] == -np.inf


def test_the_densities_of_all_prices_add_up_to_one() -> None:
    """Whatever part of a price is an atom, each counts per unit, a tenth of which it is."""
    r = np.random.default_rng(5)
    tenths = np.where(r.random(N) < 0.85, 10 * r.integers(0, 40, N) + 9, r.integers(0, 400, N))
    table = pd.DataFrame({"preis": [f"{x / 10:.1f}" for x in tenths], "size": r.integers(0, 2, N)})
    given = {"columns": [{"name": "preis", "steps": [1, 0.1]}]}
    model = Synthesizer.fit(table.astype(str), schema=given, settings={"max_steps": 200}, seed=1)
    every = pd.DataFrame({"preis": [f"{x / 10:.1f}" for x in range(400)]})
    densities = np.exp(model.log_likelihood(every, seed=1)["log_likelihood"])
    assert densities.sum() / 10 == pytest.approx(1.0, abs=0.01)
